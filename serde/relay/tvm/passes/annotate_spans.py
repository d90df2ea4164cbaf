"""Calls that know where they stand in the text of their module."""

from __future__ import annotations

from typing import ClassVar

from serde.relay.ir.module import IRModule
from serde.relay.text.parser import parse_with_places
from serde.relay.transform.base import Pass
from serde.relay.transform.infer_type import InferType

__all__ = ["AnnotateSpans"]

_SOURCE = "GeneratedSource"


class AnnotateSpans(Pass):
    """Print a module, and give each call, function and branch its place in the text as its span.

    The module is read again from that text, so that its nodes are new.
    """

    name: ClassVar[str] = "AnnotateSpans"

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Return the module that its text holds."""
        found = parse_with_places(mod.astext(), _SOURCE)
        return (InferType().run(found)[0] if mod.checked else found), True

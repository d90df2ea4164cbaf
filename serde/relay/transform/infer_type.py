"""Type inference as a pass; what it does is in :mod:`serde.relay.ir.infer`."""

from __future__ import annotations

from typing import ClassVar

from serde.relay.ir import IRModule, infer_module
from serde.relay.transform.base import Pass

__all__ = ["InferType"]


class InferType(Pass):
    """Find the type of every expression, and note it there.

    Types are unified: untyped variables and results take theirs from arguments, from what is
    declared, from branches, and from the operators that they feed (a weight of ``nn.conv2d``
    whose ``channels`` and ``kernel_size`` are given).

    Raises:
        TypeInferenceError: Types do not fit, or one cannot be found.
    """

    name: ClassVar[str] = "InferType"

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Infer all functions."""
        return infer_module(mod)

"""Replacement of calls by what functions of their operators make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from serde.relay.transform.tvm.by_attribute import RewriteByAttribute
from serde.relay.transform.tvm.typed import TypedPass

__all__ = ["Legalize"]


@dataclass(frozen=True)
class Legalize(RewriteByAttribute, TypedPass):
    """Replace calls, operands first, by what an attribute of their operator makes of them.

    The attribute is a function of the call's attributes, its operands, and the types of the
    operands and of the result; it returns a call, or None where the call stays. What it makes is
    not looked at again. :class:`~serde.relay.transform.Decompose` spells out operators that a
    target lacks.

    Args:
        legalize_map_attr_name: Key of the attribute.
    """

    name: ClassVar[str] = "Legalize"
    opt_level: ClassVar[int] = 1
    required: ClassVar[Sequence[str]] = ("InferType",)

    legalize_map_attr_name: str = "FTVMLegalize"

    @property
    def key(self) -> str:
        """Key of the attribute."""
        return self.legalize_map_attr_name

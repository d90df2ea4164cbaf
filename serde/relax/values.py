"""Values of a module of Relax while it is written, and where they are bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any as AnyValue

from serde.relay.ir.types import SequenceType, TensorType
from serde.walk.placement import Scope
from serde.weights import Array

__all__ = ["Block", "Value"]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the module.

    Attributes:
        expr: The variable that it is; None for a constant that nothing uses yet.
        type: Its Relay type.
        data: Its value where it is a constant.
    """

    expr: AnyValue = field(default=None, compare=False)
    type: TensorType | SequenceType | None = None
    data: Array | None = field(default=None, compare=False)


class Block(Scope):
    """Where bindings go: a function, or a branch of a conditional."""

    __slots__ = ("bindings",)

    def __init__(self, parent: Scope | None = None, step: str = "") -> None:
        super().__init__(parent, step)
        self.bindings: list[AnyValue] = []

"""Values of a module of Relax while it is written, and where they are bound."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Final

from serde.core.records import dataclass, field
from serde.core.weights import Array
from serde.errors import Unsupported
from serde.relay.ir.types import SequenceType, TensorType
from serde.walk.placement import Scope

__all__ = ["Block", "Value", "require_tensor"]

_PACKED: Final = frozenset(
    ("int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
)
"""Elements of less than a byte, which TVM packs, and computes wrongly where it does at all."""


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


def require_tensor(type_: TensorType | SequenceType) -> TensorType:
    """Return the type of what may be a tensor of the module.

    Raises:
        Unsupported: It is a sequence, or has elements that TVM does not compute.
    """
    if not isinstance(type_, TensorType):
        raise Unsupported(f"Relax has tensors only, found {type_!r}")
    if type_.dtype in _PACKED:
        raise Unsupported(f"TVM computes no tensors of {type_.dtype}")
    return type_

"""Values of a module of Relax while it is written, where they are bound, and their names."""

from __future__ import annotations

import keyword
import re
from typing import Any as AnyValue, Final

from serde.core import Array, dataclass, field
from serde.errors import Unsupported
from serde.relay.ir import SequenceType, TensorType, UniqueNames
from serde.walk.placement import Scope

__all__ = ["BRANCH", "PACKED", "Block", "Names", "Value", "plain_name", "require_tensor"]

PACKED: Final = frozenset(
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
    if type_.dtype in PACKED:
        raise Unsupported(f"TVM computes no tensors of {type_.dtype}")
    return type_


_OTHER: Final = re.compile(r"[^A-Za-z0-9_]+")
_VALID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MODULES: Final = frozenset(("I", "R", "T", "metadata"))
"""What names in TVMScript stand for something else."""

BRANCH: Final = "branch"
"""What functions are called like that hold a branch of a conditional."""

_MOST_CHARACTERS: Final = 120


def plain_name(name: str) -> str:
    """Return an identifier like `name`, the same for the same name."""
    plain = name
    if not _VALID.fullmatch(name):
        plain = _OTHER.sub("_", name).strip("_") or "x"
        plain = f"v_{plain}" if not plain[0].isalpha() else plain
    if keyword.iskeyword(plain) or plain in _MODULES:
        plain = f"{plain}_"
    return plain[:_MOST_CHARACTERS]


class Names:
    """Names that are taken so far, with what they stand for."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self._taken = UniqueNames()

    def claim(self, name: str) -> str:
        """Return an identifier like `name` that nothing else has."""
        found = self._taken.reserve(plain_name(name))
        self.names[found] = name
        return found

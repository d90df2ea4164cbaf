"""Operators that a program declares piece by piece, as with ``relay.op.register`` of TVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue

from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir.attrs import Attrs
from serde.relay.ir.registry import OpDef, declare
from serde.relay.ir.schema import Operand
from serde.relay.ir.shapes import broadcast
from serde.relay.ir.types import TensorType

__all__ = ["CustomOp", "register"]

_Kernel = Callable[..., AnyValue]
_Relation = Callable[[list[AnyValue], Attrs], AnyValue]


def register(op_name: str, describe: str = "", kernel: _Kernel | None = None) -> CustomOp:
    """Declare an operator, as no other is called; what this returns is told what it takes.

    What it computes is a `kernel`, which gets its operands as arrays of NumPy and its attributes by
    keyword. Without one it can be typed, printed and rewritten, but not run.
    """
    return declare(CustomOp(op_name, describe, kernel))


class CustomOp(OpDef):
    """An operator that is told step by step what it is; any attributes are taken."""

    __slots__ = ("_named", "_relation")
    _relation: _Relation | None

    def __init__(self, name: str, describe: str, kernel: _Kernel | None) -> None:
        super().__init__(name, self._no_kernel if kernel is None else kernel, self._type, ())
        self.kernel, self.infer, self.decompose, self.complete = self._declared
        self.operands, self.attributes, self.carries, self.fields = (), {}, (), 0
        self.doc = describe
        self._named, self._relation = 0, None

    def set_num_inputs(self, n: int) -> None:
        """Set how many operands a call has."""
        more = (Operand(f"x{index}") for index in range(len(self.operands), n))
        self.operands = (*self.operands[:n], *more)

    def add_argument(self, name: str, type: str, description: str) -> None:
        """Name the next operand; a ``Tuple`` is one of any number of tensors."""
        operand, place = Operand(name, variadic=type == "Tuple"), self._named
        self.operands = (*self.operands[:place], operand, *self.operands[place + 1 :])
        self._named += 1

    def add_type_rel(self, rel_name: str, type_rel_func: _Relation | None = None) -> None:
        """Set what gives a call's type, from those of its operands and from its attributes."""
        self._relation = type_rel_func or _RELATIONS.get(rel_name)
        if self._relation is None:
            raise RelayError(f"no type relation {rel_name} is known: give its function")

    def _note(self, fact: AnyValue) -> None:
        """Nothing depends on it here."""

    set_support_level = set_attrs_type_key = _note

    def bind(self, attrs: Mapping[str, AnyValue]) -> Attrs:
        """Return the attributes as they are."""
        return Attrs(attrs)

    def _type(self, *types: AnyValue, **attrs: AnyValue) -> AnyValue:
        if self._relation is None:
            raise TypeInferenceError(f"{self.name} has no type relation; see add_type_rel")
        return self._relation(list(types), Attrs(attrs))

    def _no_kernel(self, *_operands: AnyValue, **_attrs: AnyValue) -> AnyValue:
        raise RelayError(f"{self.name} has no kernel; see relay.op.register")


_RELATIONS: Mapping[str, _Relation] = {
    "Identity": lambda types, attrs: types[0],
    "Broadcast": lambda types, attrs: TensorType(
        broadcast(*(each.shape for each in types)), types[0].dtype
    ),
}

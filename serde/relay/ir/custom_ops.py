"""Operators that a program declares piece by piece, as with ``relay.op.register`` of TVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue

from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir.expr import Attrs
from serde.relay.ir.registry import OpDef, declare
from serde.relay.ir.schema import Operand
from serde.relay.ir.shapes import broadcast
from serde.relay.ir.types import TensorType

__all__ = ["CustomOp", "register"]

_Relation = Callable[[list[AnyValue], Attrs], AnyValue]


def register(
    op_name: str, describe: str = "", kernel: Callable[..., AnyValue] | None = None
) -> CustomOp:
    """Declare an operator whose operands and type relation are told to what this returns.

    Args:
        op_name: Its name, which no other operator has.
        describe: Its documentation.
        kernel: What it computes: gets its operands as arrays of NumPy and its attributes by
            keyword. Without one it can be typed, printed and rewritten, but not run.

    Raises:
        RelayError: The name is taken.

    Example:
        ``relay.op.register("acme.log1p", kernel=np.log1p).add_type_rel("Identity")``
    """
    return declare(CustomOp(op_name, describe, kernel))


class CustomOp(OpDef):
    """An operator that is told step by step what it is; any attributes are taken."""

    __slots__ = ("_named", "_relation", "attrs_type_key", "support_level")

    def __init__(self, name: str, describe: str, kernel: Callable[..., AnyValue] | None) -> None:
        super().__init__(name, kernel or self._no_kernel, self._infer_type, ())
        self.doc = describe
        self.operands, self.attributes, self.carries, self.fields = (), {}, (), 0
        self.kernel, self.infer = self._declared[:2]
        self.decompose = self.complete = None
        self._named = 0
        self._relation: _Relation | None = None
        self.attrs_type_key, self.support_level = "", 10

    def set_num_inputs(self, n: int) -> None:
        """Set how many operands a call has."""
        more = (Operand(f"x{index}") for index in range(len(self.operands), n))
        self.operands = (*self.operands[:n], *more)

    def add_argument(self, name: str, type: str, description: str) -> None:
        """Name the next operand; a ``Tuple`` is one of any number of tensors."""
        operand = Operand(name, variadic=type == "Tuple")
        place = self._named
        self.operands = (*self.operands[:place], operand, *self.operands[place + 1 :])
        self._named += 1

    def add_type_rel(self, rel_name: str, type_rel_func: _Relation | None = None) -> None:
        """Set what gives the type of a call.

        Args:
            rel_name: Its name; ``Identity`` and ``Broadcast`` are known without a function.
            type_rel_func: Gets the types of operands as a list, and the attributes.

        Raises:
            RelayError: No relation of this name is known, and there is no function.
        """
        if type_rel_func is None and rel_name not in _RELATIONS:
            raise RelayError(f"no type relation {rel_name} is known: give its function")
        self._relation = type_rel_func or _RELATIONS[rel_name]

    def set_support_level(self, level: int) -> None:
        """Note a level, of which nothing depends."""
        self.support_level = level

    def set_attrs_type_key(self, key: str) -> None:
        """Note a kind of attributes; all are taken by name, whatever it is."""
        self.attrs_type_key = key

    def bind(self, attrs: Mapping[str, AnyValue]) -> Attrs:
        """Return the attributes as they are."""
        return Attrs(attrs)

    def _infer_type(self, *types: AnyValue, **attrs: AnyValue) -> AnyValue:
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
"""Relations that TVM knows by name and scripts use."""

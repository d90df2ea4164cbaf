"""What the walks from Relay share: contexts of converters and values with Relay types."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue
from typing import Protocol, TypeVar

from serde.errors import ConverterBug, Unsupported
from serde.relay.ir.expr import Constant, Expr, Tuple, TupleGetItem
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.walk.context import TypedContext
from serde.weights import Array

__all__ = ["Emitted", "EmittingContext", "structural", "with_types"]


class Emitted(Protocol):
    """A tensor of the target's graph."""

    @property
    def data(self) -> Array | None:
        """Return its value where it is a constant."""


ValueT = TypeVar("ValueT", bound=Emitted)


class EmittingContext(TypedContext[ValueT]):
    """What every converter from Relay may reach.

    Attributes:
        result: Relay type of what the converter must return.
    """

    def __init__(self) -> None:
        self.result: Type = TensorType(())
        self._source = ""

    @property
    def source(self) -> str:
        """Name of the node that is converted."""
        return self._source

    def enter(self, source: str, result: Type) -> None:
        """Turn to the node called `source`, whose Relay type is `result`."""
        self._source = source
        self.result = result

    @abstractmethod
    def const(self, value: AnyValue, dtype: AnyValue = None) -> ValueT:
        """Return a constant of the target's graph."""

    def constant(self, x: ValueT) -> Array:
        """Return the value of a constant.

        Raises:
            Unsupported: It is computed when the model runs, or a large weight.
        """
        if x.data is None:
            raise Unsupported("needs a constant, found a value computed at run time")
        return x.data

    def result_type(self) -> TensorType:
        """Return the type of the one tensor that the converter must return."""
        if not isinstance(self.result, TensorType):
            raise ConverterBug(f"{self._source}: the result is {self.result!r}")
        return self.result

    def result_types(self) -> Sequence[TensorType]:
        """Return the types of the tensors that the converter must return."""
        fields = self.result.fields if isinstance(self.result, TupleType) else (self.result,)
        return tuple(field for field in fields if isinstance(field, TensorType))


def structural(
    node: Constant | Tuple | TupleGetItem,
    values: Mapping[Expr, ValueT | tuple[ValueT, ...] | None],
    const: Callable[[Array], ValueT],
) -> ValueT | tuple[ValueT, ...] | None:
    """Return the values of a constant, a tuple or one of its fields, where there are any.

    Args:
        node: The constant, tuple or field.
        values: The values of what lies below it.
        const: Makes a constant.
    """
    if isinstance(node, Constant):
        return const(node.data)
    if isinstance(node, Tuple):
        fields = [values[item] for item in node.fields]
        flat = tuple(each for each in fields if each is not None and not isinstance(each, tuple))
        return flat if len(flat) == len(fields) else None
    source = values[node.tuple_value]
    return source[node.index] if isinstance(source, tuple) else None


def with_types(
    result: ValueT | Sequence[ValueT],
    type_: Type,
    typed: Callable[[ValueT, TensorType], ValueT],
) -> ValueT | tuple[ValueT, ...]:
    """Note the Relay types of a converter's results.

    Args:
        result: What the converter returned.
        type_: The type of the call.
        typed: Returns a value with a type.
    """
    if not isinstance(result, Sequence):
        if not isinstance(type_, TensorType):
            raise ConverterBug(f"expected {type_!r}, found one value")
        return typed(result, type_)
    fields = type_.fields if isinstance(type_, TupleType) else ()
    if len(fields) < len(result):
        raise ConverterBug(f"{len(result)} results for {type_!r}")
    pairs = zip(result, fields, strict=False)
    return tuple(typed(value, each) for value, each in pairs if isinstance(each, TensorType))

"""Types of Relay expressions: tensors, tuples and functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any as AnyValue
from typing import Final

from serde.errors import TypeInferenceError
from serde.relay.dims import Dim, DimLike, as_dim, product, substitute
from serde.weights import dtype_name

__all__ = ["FuncType", "TensorType", "TupleType", "Type", "accepts", "substitute_type"]

# Shared fields make a short text unfold to any number of them.
_MAX_LEAVES: Final = 50_000


class TensorType:
    """Shape and element type of a tensor.

    Args:
        shape: Dimensions; a string is a symbol's name, ``"?"`` an anonymous dimension.
        dtype: Name, NumPy dtype or scalar type of the elements.
    """

    __slots__ = ("_hash", "dtype", "shape")

    def __init__(self, shape: Iterable[DimLike] = (), dtype: AnyValue = "float32") -> None:
        self.shape: tuple[Dim, ...] = tuple(as_dim(dim) for dim in shape)
        self.dtype: str = dtype_name(dtype)
        self._hash = hash((self.shape, self.dtype))

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Dim:
        """Number of elements."""
        return product(self.shape)

    @property
    def concrete_shape(self) -> tuple[int, ...] | None:
        """The shape where every dimension is an integer, else None."""
        if all(type(dim) is int for dim in self.shape):
            return self.shape  # type: ignore[return-value]
        return None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TensorType)
            and self.dtype == other.dtype
            and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if not self.shape:
            return self.dtype
        return f"Tensor[({', '.join(map(str, self.shape))}), {self.dtype}]"


class TupleType:
    """The types of a tuple's fields.

    Raises:
        TypeInferenceError: Tuples of tuples unfold to more tensors than any model has.
    """

    __slots__ = ("_leaves", "fields")

    def __init__(self, fields: Iterable[Type]) -> None:
        self.fields: tuple[Type, ...] = tuple(fields)
        self._leaves: int = sum(getattr(field, "_leaves", 1) for field in self.fields)
        if self._leaves > _MAX_LEAVES:
            raise TypeInferenceError(f"a tuple unfolds to more than {_MAX_LEAVES} tensors")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TupleType) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((TupleType, self.fields))

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.fields))
        return f"({inner},)" if len(self.fields) == 1 else f"({inner})"


class FuncType:
    """The types of a function's parameters and of its result."""

    __slots__ = ("arg_types", "ret_type")

    def __init__(self, arg_types: Iterable[Type], ret_type: Type) -> None:
        self.arg_types: tuple[Type, ...] = tuple(arg_types)
        self.ret_type = ret_type

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FuncType)
            and self.arg_types == other.arg_types
            and self.ret_type == other.ret_type
        )

    def __hash__(self) -> int:
        return hash((FuncType, self.arg_types, self.ret_type))

    def __repr__(self) -> str:
        return f"fn ({', '.join(map(repr, self.arg_types))}) -> {self.ret_type!r}"


Type = TensorType | TupleType | FuncType


def accepts(expected: Type, given: Type) -> bool:
    """Whether a value of type `given` may stand where `expected` is declared.

    Integers must be equal; a symbol or an anonymous dimension on either side
    accepts any, since nothing known contradicts it.
    """
    pending = [(expected, given)]
    while pending:
        left, right = pending.pop()
        if isinstance(left, TensorType) and isinstance(right, TensorType):
            if left.dtype != right.dtype or left.rank != right.rank:
                return False
            pairs = zip(left.shape, right.shape, strict=True)
            if any(type(a) is int and type(b) is int and a != b for a, b in pairs):
                return False
        elif isinstance(left, TupleType) and isinstance(right, TupleType):
            if len(left.fields) != len(right.fields):
                return False
            pending.extend(zip(left.fields, right.fields, strict=True))
        elif isinstance(left, FuncType) and isinstance(right, FuncType):
            if len(left.arg_types) != len(right.arg_types):
                return False
            pending.extend(zip(left.arg_types, right.arg_types, strict=True))
            pending.append((left.ret_type, right.ret_type))
        else:
            return False
    return True


def substitute_type(type_: Type, values: Mapping[str, Dim]) -> Type:
    """Replace symbolic dimensions by the dimensions that `values` gives them."""
    if isinstance(type_, TensorType):
        return TensorType([substitute(dim, values) for dim in type_.shape], type_.dtype)
    if isinstance(type_, TupleType):
        return TupleType(substitute_type(field, values) for field in type_.fields)
    return FuncType(
        [substitute_type(arg, values) for arg in type_.arg_types],
        substitute_type(type_.ret_type, values),
    )

"""Types of Relay expressions: tensors, tuples, sequences and functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any as AnyValue
from typing import Final

from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Any, Dim, DimLike, as_dim, product, substitute
from serde.weights import dtype_name

__all__ = [
    "FuncType",
    "SequenceType",
    "TensorType",
    "TupleType",
    "Type",
    "accepts",
    "join_types",
    "substitute_type",
]

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

    A sequence of which every position is known before the model runs is such a tuple; one whose
    length or positions are only known then is a :class:`SequenceType`.

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


class SequenceType:
    """The type of a sequence of tensors whose length is known only when the model runs.

    TVM has no such type, so that legal text for it cannot hold one. The elements have one dtype
    and one rank; a length that they do not share is anonymous in `element`. Values are Python
    lists of arrays. An optional tensor is a sequence of at most one.

    Args:
        element: The type of each element.

    Raises:
        TypeInferenceError: An element is no tensor.
    """

    __slots__ = ("element",)

    def __init__(self, element: Type) -> None:
        if not isinstance(element, TensorType):
            raise TypeInferenceError(f"a sequence holds tensors, not {element!r}")
        self.element: TensorType = element

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SequenceType) and self.element == other.element

    def __hash__(self) -> int:
        return hash((SequenceType, self.element))

    def __repr__(self) -> str:
        return f"Sequence[{self.element!r}]"


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


Type = TensorType | TupleType | SequenceType | FuncType


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
        elif isinstance(left, SequenceType) and isinstance(right, SequenceType):
            pending.append((left.element, right.element))
        elif isinstance(left, FuncType) and isinstance(right, FuncType):
            if len(left.arg_types) != len(right.arg_types):
                return False
            pending.extend(zip(left.arg_types, right.arg_types, strict=True))
            pending.append((left.ret_type, right.ret_type))
        else:
            return False
    return True


def join_types(left: Type, right: Type) -> Type | None:
    """Return the type of a value that has either type; a length they do not share is anonymous.

    None where dtypes, ranks or structures differ, or where functions do.
    """
    if left == right:
        return left
    if isinstance(left, TensorType) and isinstance(right, TensorType):
        if left.dtype != right.dtype or left.rank != right.rank:
            return None
        dims = (a if a == b else Any() for a, b in zip(left.shape, right.shape, strict=True))
        return TensorType(dims, left.dtype)
    if isinstance(left, SequenceType) and isinstance(right, SequenceType):
        element = join_types(left.element, right.element)
        return None if element is None else SequenceType(element)
    if not isinstance(left, TupleType) or not isinstance(right, TupleType):
        return None
    if len(left.fields) != len(right.fields):
        return None
    joined = [join_types(a, b) for a, b in zip(left.fields, right.fields, strict=True)]
    known = [field for field in joined if field is not None]
    return TupleType(known) if len(known) == len(joined) else None


def substitute_type(type_: Type, values: Mapping[str, Dim]) -> Type:
    """Replace symbolic dimensions by the dimensions that `values` gives them."""
    if isinstance(type_, TensorType):
        return TensorType([substitute(dim, values) for dim in type_.shape], type_.dtype)
    if isinstance(type_, TupleType):
        return TupleType(substitute_type(field, values) for field in type_.fields)
    if isinstance(type_, SequenceType):
        return SequenceType(substitute_type(type_.element, values))
    return FuncType(
        [substitute_type(arg, values) for arg in type_.arg_types],
        substitute_type(type_.ret_type, values),
    )

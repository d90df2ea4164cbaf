"""Types of Relay expressions: tensors, tuples, sequences, functions, algebraic data, references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any as AnyValue, Final

from serde.core import MAX_RANK, dtype_name
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir.dims import Any, Dim, DimLike, as_dim, product, substitute

__all__ = [
    "MAX_LEAVES", "FuncType", "GlobalTypeVar", "IncompleteType", "Kind", "RefType",
    "RelayRefType", "SequenceType", "TensorType", "TupleType", "Type", "TypeCall",
    "TypeConstraint", "TypeKind", "TypeRelation", "TypeVar", "accepts", "bind_type_vars",
    "is_complete", "join_types", "map_type", "substitute_type", "type_parts", "walk_type",
]  # fmt: skip

_C_NAMES: Final = {"int": "int32", "uint": "uint32", "float": "float32", "uint1": "bool"}
"""Names of element types that TVM takes as C does, and that of a single bit."""

_INTEGERS: Final = frozenset({int})

MAX_LEAVES: Final = 50_000
"""Most tensors in a tuple; shared fields make a short text unfold to any number of them."""


class TensorType:
    """Shape and element type of a tensor.

    Args:
        shape: Dimensions; a string is a symbol's name, ``"?"`` an anonymous dimension.
        dtype: Name, NumPy dtype or scalar type of the elements.

    Raises:
        TypeInferenceError: It has more axes than a tensor may have.
    """

    __slots__ = ("_fixed", "_hash", "dtype", "shape")

    def __init__(self, shape: Iterable[DimLike] = (), dtype: AnyValue = "float32") -> None:
        self.shape: tuple[Dim, ...] = tuple(map(as_dim, shape))
        if len(self.shape) > MAX_RANK:
            raise TypeInferenceError(
                f"a tensor of {len(self.shape)} axes, of which it may have {MAX_RANK}"
            )
        self.dtype: str = _C_NAMES.get(dtype) or dtype_name(dtype)
        self._hash = hash((self.shape, self.dtype))
        self._fixed = {*map(type, self.shape)} <= _INTEGERS

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
        return self.shape if self._fixed else None  # type: ignore[return-value]

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
        if self._leaves > MAX_LEAVES:
            raise TypeInferenceError(f"a tuple unfolds to more than {MAX_LEAVES} tensors")

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


class TypeKind(IntEnum):
    """What a type variable stands for; the numbers are TVM's."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


Kind = TypeKind
"""As older releases of TVM call it."""


def _read_kind(kind: AnyValue) -> TypeKind:
    try:
        return TypeKind(kind)
    except ValueError:
        raise RelayError(f"expected a kind of type, found {kind!r}") from None


class _NamedType:
    """A type of a name, which may take others.

    Args:
        name_hint: Name for people and for text.
        kind: What it stands for.

    Raises:
        RelayError: There is no such kind.
    """

    __slots__ = ("kind", "name_hint")

    def __init__(self, name_hint: str, kind: TypeKind | int = TypeKind.Type) -> None:
        self.name_hint = name_hint
        self.kind = _read_kind(kind)

    @property
    def name(self) -> str:
        """Its name, as TVM's users ask for it."""
        return self.name_hint

    def __call__(self, *args: Type) -> TypeCall:
        """Return this type applied to others."""
        return TypeCall(self, args)  # type: ignore[arg-type]  # It is one of the two below.

    def __repr__(self) -> str:
        return self.name_hint


class TypeVar(_NamedType):
    """A type that a polymorphic function or an algebraic data type takes as a parameter.

    Two are the same only if they are one object, whatever their names.
    """

    __slots__ = ()


class GlobalTypeVar(_NamedType):
    """The name of an algebraic data type; within a module, a name stands for one of them."""

    __slots__ = ()

    def __init__(self, name_hint: str, kind: TypeKind | int = TypeKind.AdtHandle) -> None:
        super().__init__(name_hint, kind)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GlobalTypeVar)
            and self.name_hint == other.name_hint
            and self.kind == other.kind
        )

    def __hash__(self) -> int:
        return hash((GlobalTypeVar, self.name_hint))


class TypeCall:
    """An algebraic data type applied to the types it takes, as ``List[int32]``."""

    __slots__ = ("args", "func")

    def __init__(self, func: Type, args: Iterable[Type] = ()) -> None:
        self.func = func
        self.args: tuple[Type, ...] = tuple(args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeCall) and self.func == other.func and self.args == other.args

    def __hash__(self) -> int:
        return hash((TypeCall, self.func, self.args))

    def __repr__(self) -> str:
        return f"{self.func!r}[{', '.join(map(repr, self.args))}]"


class RefType:
    """The type of a reference: a place that holds a value of type `value`, and can be written."""

    __slots__ = ("value",)

    def __init__(self, value: Type) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RefType) and self.value == other.value

    def __hash__(self) -> int:
        return hash((RefType, self.value))

    def __repr__(self) -> str:
        return f"ref({self.value!r})"


RelayRefType = RefType


class IncompleteType:
    """A part of a declared type that inference is to find.

    Each place stands for a type of its own, though two are equal if their kinds are.

    Args:
        kind: What it stands for.

    Raises:
        RelayError: There is no such kind.
    """

    __slots__ = ("kind",)

    def __init__(self, kind: TypeKind | int = TypeKind.Type) -> None:
        self.kind = _read_kind(kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IncompleteType) and self.kind == other.kind

    def __hash__(self) -> int:
        return hash((IncompleteType, self.kind))

    def __repr__(self) -> str:
        return "_"


class TypeConstraint:
    """What a function demands of its type parameters; root of its kinds."""

    __slots__ = ()


class TypeRelation(TypeConstraint):
    """That a function's types satisfy a relation, such as that of broadcasting.

    Args:
        func: The relation's name.
        args: The types it relates; the last ones are its results.
        num_inputs: How many of them are given rather than found.
        attrs: Attributes that it depends on.
    """

    __slots__ = ("args", "attrs", "func", "num_inputs")

    def __init__(
        self, func: AnyValue, args: Iterable[Type], num_inputs: int, attrs: AnyValue = None
    ) -> None:
        self.func = func
        self.args: tuple[Type, ...] = tuple(args)
        self.num_inputs = num_inputs
        self.attrs = attrs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeRelation) and (
            (self.func, self.args, self.num_inputs, self.attrs)
            == (other.func, other.args, other.num_inputs, other.attrs)
        )

    def __hash__(self) -> int:
        return hash((TypeRelation, self.args, self.num_inputs))

    def __repr__(self) -> str:
        return f"TypeRelation({self.func}, {', '.join(map(repr, self.args))})"


class FuncType:
    """The types of a function's parameters and of its result.

    Two are equal whatever their type parameters are called.

    Args:
        arg_types: Types of the parameters.
        ret_type: Type of the result.
        type_params: Type variables that stand for any type where the function is called.
        type_constraints: What is demanded of them.
    """

    __slots__ = ("arg_types", "ret_type", "type_constraints", "type_params")

    def __init__(
        self,
        arg_types: Iterable[Type],
        ret_type: Type,
        type_params: Iterable[TypeVar] | None = None,
        type_constraints: Iterable[TypeConstraint] | None = None,
    ) -> None:
        self.arg_types: tuple[Type, ...] = tuple(arg_types)
        self.ret_type = ret_type
        self.type_params: tuple[TypeVar, ...] = tuple(type_params or ())
        self.type_constraints: tuple[TypeConstraint, ...] = tuple(type_constraints or ())

    def __eq__(self, other: object) -> bool:
        if (
            not isinstance(other, FuncType)
            or len(self.type_params) != len(other.type_params)
            or len(self.arg_types) != len(other.arg_types)
        ):
            return False
        if self.type_constraints != other.type_constraints:
            return False
        if [each.kind for each in self.type_params] != [each.kind for each in other.type_params]:
            return False
        if not self.type_params or self.type_params == other.type_params:
            return self.arg_types == other.arg_types and self.ret_type == other.ret_type
        fresh = [TypeVar(each.name_hint, each.kind) for each in self.type_params]
        mine = dict(zip(self.type_params, fresh, strict=True))
        theirs = dict(zip(other.type_params, fresh, strict=True))
        return all(
            bind_type_vars(one, mine) == bind_type_vars(two, theirs)
            for one, two in zip(type_parts(self), type_parts(other), strict=True)
        )

    def __hash__(self) -> int:
        if self.type_params:
            return hash((FuncType, len(self.type_params), len(self.arg_types)))
        return hash((FuncType, self.arg_types, self.ret_type))

    def __repr__(self) -> str:
        params = f"[{', '.join(map(repr, self.type_params))}]" if self.type_params else ""
        return f"fn {params}({', '.join(map(repr, self.arg_types))}) -> {self.ret_type!r}"


Type = (
    TensorType
    | TupleType
    | SequenceType
    | FuncType
    | TypeCall
    | TypeVar
    | RefType
    | GlobalTypeVar
    | IncompleteType
)


def type_parts(type_: Type) -> tuple[Type, ...]:
    """Return the types directly inside a type, in order; type parameters are none of them."""
    if isinstance(type_, TupleType):
        return type_.fields
    if isinstance(type_, FuncType):
        return (*type_.arg_types, type_.ret_type)
    if isinstance(type_, SequenceType):
        return (type_.element,)
    if isinstance(type_, TypeCall):
        return (type_.func, *type_.args)
    if isinstance(type_, RefType):
        return (type_.value,)
    return ()


def _with_parts(type_: Type, parts: list[Type]) -> Type:
    """Return a type with other types directly inside it, in the order of :func:`type_parts`."""
    if isinstance(type_, TupleType):
        return TupleType(parts)
    if isinstance(type_, FuncType):
        return FuncType(parts[:-1], parts[-1], type_.type_params, type_.type_constraints)
    if isinstance(type_, SequenceType):
        return SequenceType(parts[0])
    if isinstance(type_, TypeCall):
        return TypeCall(parts[0], parts[1:])
    if isinstance(type_, RefType):
        return RefType(parts[0])
    return type_


def walk_type(type_: Type | None) -> Iterator[Type]:
    """Yield a type and all those inside it, outer ones first."""
    pending = [] if type_ is None else [type_]
    while pending:
        here = pending.pop()
        yield here
        pending.extend(reversed(type_parts(here)))


def map_type(type_: Type, replace: Callable[[Type], Type]) -> Type:
    """Return a type rebuilt from the inside out; itself where nothing changes.

    Args:
        type_: The type.
        replace: Gets each type inside, with its own parts replaced; returns what stands for it.
    """
    parts = type_parts(type_)
    new = [map_type(part, replace) for part in parts]
    same = all(a is b for a, b in zip(parts, new, strict=True))
    return replace(type_ if same else _with_parts(type_, new))


def is_complete(type_: Type | None) -> bool:
    """Whether a type is known to its last part."""
    if type(type_) is TensorType:
        return True
    return type_ is not None and not any(isinstance(t, IncompleteType) for t in walk_type(type_))


def bind_type_vars(type_: Type, values: Mapping[TypeVar, Type]) -> Type:
    """Replace type variables by the types that `values` gives them.

    A type parameter of a function inside is its own.
    """
    if isinstance(type_, TypeVar):
        return values.get(type_, type_)
    if isinstance(type_, FuncType) and any(param in values for param in type_.type_params):
        values = {each: to for each, to in values.items() if each not in type_.type_params}
    parts = type_parts(type_)
    new = [bind_type_vars(part, values) for part in parts]
    same = all(a is b for a, b in zip(parts, new, strict=True))
    return type_ if same else _with_parts(type_, new)


def accepts(expected: Type, given: Type) -> bool:
    """Whether a value of type `given` may stand where `expected` is declared.

    Integers must be equal; a symbol or an anonymous dimension on either side accepts any, since
    nothing known contradicts it. So does an incomplete type, and a type parameter of a function
    that the other side does not have.
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
            continue
        if isinstance(left, IncompleteType) or isinstance(right, IncompleteType):
            continue
        if isinstance(left, (TypeVar, GlobalTypeVar)):
            if left != right:
                return False
            continue
        if isinstance(left, FuncType) and isinstance(right, FuncType):
            if left == right:
                continue
            left, right = _without_params(left), _without_params(right)
        one, other = type_parts(left), type_parts(right)
        if type(left) is not type(right) or len(one) != len(other):
            return False
        pending.extend(zip(one, other, strict=True))
    return True


def _without_params(type_: FuncType) -> FuncType:
    """Return a function's type with incomplete types for its type parameters."""
    if not type_.type_params:
        return type_
    open_ = {param: IncompleteType() for param in type_.type_params}
    return FuncType(
        [bind_type_vars(each, open_) for each in type_.arg_types],
        bind_type_vars(type_.ret_type, open_),
    )


def join_types(left: Type, right: Type) -> Type | None:
    """Return the type of a value that has either type; a length they do not share is anonymous.

    A polymorphic function is of the type of another one that it has an instance of. None where
    dtypes, ranks or structures differ, or where functions or references do.
    """
    if left == right:
        return left
    if isinstance(left, TensorType) and isinstance(right, TensorType):
        if left.dtype != right.dtype or left.rank != right.rank:
            return None
        dims = (a if a == b else Any() for a, b in zip(left.shape, right.shape, strict=True))
        return TensorType(dims, left.dtype)
    if isinstance(left, FuncType) and isinstance(right, FuncType):
        special = left if right.type_params else right
        differ = bool(left.type_params) is not bool(right.type_params)
        return special if differ and accepts(left, right) else None
    one, other = type_parts(left), type_parts(right)
    if type(left) is not type(right) or len(one) != len(other):
        return None
    if not isinstance(left, (TupleType, SequenceType, TypeCall)):
        return None
    joined = [join_types(a, b) for a, b in zip(one, other, strict=True)]
    known = [part for part in joined if part is not None]
    return _with_parts(left, known) if len(known) == len(joined) else None


def substitute_type(type_: Type, values: Mapping[str, Dim]) -> Type:
    """Replace symbolic dimensions by the dimensions that `values` gives them."""

    def replace(each: Type) -> Type:
        if isinstance(each, TensorType):
            return TensorType([substitute(dim, values) for dim in each.shape], each.dtype)
        return each

    return map_type(type_, replace)

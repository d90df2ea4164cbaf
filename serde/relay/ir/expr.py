"""The nodes of Relay expressions.

Where a node takes an expression, it takes what a builder of several results returns as well.
Nodes are compared by identity and never change once built, apart from the
type that inference notes on them. Sharing a node shares its value. The fields
are TVM's; a `repr` shows one node, not what hangs below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import NoneType
from typing import Any as AnyValue, Final

import numpy as np

from serde.core.weights import Array
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir import hooks
from serde.relay.ir.attrs import Attrs, OpAttributes
from serde.relay.ir.dims import DimLike
from serde.relay.ir.ndarray import NDArray
from serde.relay.ir.span import Span
from serde.relay.ir.types import FuncType, TensorType, TupleType, Type, TypeVar, is_complete

__all__ = [
    "Attrs", "Call", "Callee", "Constant", "Expr", "Function", "GlobalVar", "If", "Let", "Op",
    "RelayExpr", "Span", "Tuple", "TupleGetItem", "TupleWrapper", "Var", "astuple", "const",
    "is_absent", "tensor_type", "var",
]  # fmt: skip


class Expr:
    """Root of all expressions.

    Attributes:
        below: The expressions directly below, in order of evaluation and of text: operands come
            before a callee; an operator or global function called is none of them, parameters
            and variables bound by lets and patterns are below their binder.
        type: The type inference found, or None.
        span: Where the node comes from, or None.
    """

    __slots__ = ("__weakref__", "below", "span", "type")

    below: tuple[Expr, ...]
    type: Type | None
    span: Span | None

    @property
    def checked_type(self) -> Type:
        """The inferred type.

        Raises:
            RelayError: The type is not inferred yet.
        """
        if self.type is None:
            raise RelayError(f"{self!r} has no type yet; run transform.InferType()")
        return self.type

    def astext(
        self,
        show_meta_data: bool = True,
        annotate: Callable[[Expr], str] | None = None,
        *,
        strict: bool = False,
    ) -> str:
        """Return the text of this expression.

        Args:
            show_meta_data: Whether the header and constants that do not print inline are there.
            annotate: Gives what follows each node in the text.
            strict: Whether the text is legal for TVM 0.18; otherwise it is serde's dialect.
        """
        text: str = hooks.printer().print_expr(
            self, show_meta_data=show_meta_data, strict=strict, annotate=annotate
        )
        return text

    def __str__(self) -> str:
        return self.astext(show_meta_data=False)

    def same_as(self, other: object) -> bool:
        """Whether this is the same node; nodes are compared so anyway."""
        return self is other

    def astype(self, dtype: AnyValue) -> Expr:
        """Return this value cast to `dtype`."""
        return self._apply("cast", dtype=dtype)

    def _apply(self, name: str, *operands: Expr, **attrs: AnyValue) -> Expr:
        if not all(isinstance(operand, Expr) for operand in operands):
            raise TypeError(f"{name} needs expressions; turn numbers into relay.const(...) first")
        node: Expr = hooks.call(name, self, *operands, **attrs)
        return node

    def __neg__(self) -> Expr:
        return self._apply("negative")

    def __add__(self, other: Expr) -> Expr:
        return self._apply("add", other)

    def __sub__(self, other: Expr) -> Expr:
        return self._apply("subtract", other)

    def __mul__(self, other: Expr) -> Expr:
        return self._apply("multiply", other)

    def __truediv__(self, other: Expr) -> Expr:
        return self._apply("divide", other)

    def __lt__(self, other: Expr) -> Expr:
        return self._apply("less", other)

    def __le__(self, other: Expr) -> Expr:
        return self._apply("less_equal", other)

    def __gt__(self, other: Expr) -> Expr:
        return self._apply("greater", other)

    def __ge__(self, other: Expr) -> Expr:
        return self._apply("greater_equal", other)


RelayExpr = Expr
"""As TVM also calls it."""


class Op(OpAttributes, Expr):
    """An operator; the registry holds one object for each name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name
        self.below = ()
        self.type = None
        self.span = None

    def __repr__(self) -> str:
        return f"Op({self.name})"


class Constant(Expr):
    """A small value that belongs to the graph.

    Args:
        data: The value; it is kept, not copied, and must not change.
    """

    __slots__ = ("data",)

    def __init__(self, data: AnyValue, span: Span | None = None) -> None:
        self.data: NDArray = np.asarray(data).view(NDArray)
        self.below = ()
        self.type = TensorType(self.data.shape, self.data.dtype)
        self.span = span

    def __repr__(self) -> str:
        return f"Constant({self.type!r})"


class Callee(Expr):
    """An expression that may be a function, and is called like one of Python's."""

    __slots__ = ()

    def __call__(self, *args: Expr) -> Call:
        """Call the function that this is, holds, names or yields; a constructor makes its value."""
        return Call(self, args)


class Var(Callee):
    """A variable; two are the same only if they are one object, whatever their names.

    Args:
        name_hint: Name for people and for text.
        type_annotation: Declared type, or None.
    """

    __slots__ = ("name_hint", "type_annotation")

    def __init__(
        self, name_hint: str, type_annotation: Type | None = None, span: Span | None = None
    ) -> None:
        self.name_hint = name_hint
        self.below = ()
        self.type_annotation = type_annotation
        self.type = type_annotation if is_complete(type_annotation) else None
        self.span = span

    @property
    def vid(self) -> Var:
        """What tells this variable from others: itself, which has its name."""
        return self

    def __repr__(self) -> str:
        return f"Var({self.name_hint})"


class GlobalVar(Callee):
    """The name of a function of the module."""

    __slots__ = ("name_hint",)

    def __init__(self, name_hint: str, type_: Type | None = None) -> None:
        self.name_hint = name_hint
        self.below = ()
        self.type = type_
        self.span = None

    def __repr__(self) -> str:
        return f"GlobalVar({self.name_hint})"


class Call(Expr):
    """An operator or a function applied to arguments.

    Args:
        op: What is called: an :class:`Op`, a function, or an expression that yields one.
        args: Operands in order.
        attrs: Attributes of an operator; all of them, defaults included.
        type_args: What the type parameters of a polymorphic function stand for in this call;
            None leaves it to inference.
    """

    __slots__ = ("args", "attrs", "given_type_args", "op")

    def __init__(
        self,
        op: Expr,
        args: Iterable[Expr],
        attrs: Attrs | None = None,
        type_args: Iterable[Type] | None = None,
        span: Span | None = None,
    ) -> None:
        self.op = op
        self.args: tuple[Expr, ...] = tuple(map(astuple, args))
        self.below = self.args if isinstance(op, (Op, GlobalVar)) else (*self.args, op)
        self.attrs = attrs if attrs is not None else Attrs()
        self.given_type_args = tuple(type_args) if type_args else None
        self.type = None
        self.span = span

    @property
    def type_args(self) -> tuple[Type, ...]:
        """What type parameters stand for; of a typed call of an operator, the operands' types."""
        if self.given_type_args is not None:
            return self.given_type_args
        found: tuple[Type, ...] = hooks.type_args(self)
        return found

    def __repr__(self) -> str:
        name = self.op.name if isinstance(self.op, Op) else repr(self.op)
        return f"Call({name}, {len(self.args)} args)"


class Tuple(Expr):
    """Several values as one."""

    __slots__ = ("fields",)

    def __init__(self, fields: Iterable[Expr], span: Span | None = None) -> None:
        self.fields: tuple[Expr, ...] = tuple(map(astuple, fields))
        self.below = self.fields
        types = [field.type for field in self.fields]
        self.type = None
        if all(type_ is not None for type_ in types):
            self.type = TupleType(type_ for type_ in types if type_ is not None)
        self.span = span

    def __getitem__(self, index: int) -> Expr:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def __repr__(self) -> str:
        return f"Tuple({len(self.fields)} fields)"


class TupleGetItem(Expr):
    """One field of a tuple."""

    __slots__ = ("index", "tuple_value")

    def __init__(self, tuple_value: Expr, index: int, span: Span | None = None) -> None:
        self.tuple_value = tuple_value = astuple(tuple_value)
        self.index = index
        self.below = (tuple_value,)
        self.type = None
        if isinstance(tuple_value.type, TupleType):
            fields = tuple_value.type.fields
            if not 0 <= index < len(fields):
                raise TypeInferenceError(f"field {index} of a tuple with {len(fields)} fields")
            self.type = fields[index]
        self.span = span

    def __repr__(self) -> str:
        return f"TupleGetItem({self.index})"


class Function(Callee):
    """A function of expressions.

    Args:
        params: Parameters.
        body: Result.
        ret_type: Declared type of the result, or None.
        type_params: Type variables of a polymorphic function, each any type where it is called.
        attrs: Free facts such as ``Primitive`` or ``Composite``.

    Attributes:
        carried: The bodies below it, once :func:`serde.relay.ir.bodies.inner_first` has found them.
        kinds: What :func:`serde.relay.ir.visit.kinds` has found below it.
        order: The nodes below it, once :func:`serde.relay.ir.visit.post_order` has found them.

    Raises:
        RelayError: A type parameter is no type variable.
    """

    __slots__ = ("attrs", "body", "carried", "kinds", "order", "params", "ret_type", "type_params")

    def __init__(
        self,
        params: Iterable[Var],
        body: Expr,
        ret_type: Type | None = None,
        type_params: Iterable[TypeVar] | None = None,
        attrs: Mapping[str, AnyValue] | None = None,
        span: Span | None = None,
    ) -> None:
        self.params: tuple[Var, ...] = tuple(params)
        self.body = body = astuple(body)
        self.below = (*self.params, body)
        self.carried: tuple[Function, ...] | None = None
        self.kinds: frozenset[Op | type[Expr]] | None = None
        self.order: tuple[Expr, ...] | None = None
        self.ret_type = ret_type
        self.type_params: tuple[TypeVar, ...] = _read_type_params(type_params)
        self.attrs: dict[str, AnyValue] = dict(attrs or {})
        self.span = span
        self.type = None
        result = ret_type if is_complete(ret_type) else body.type
        arguments = [param.type for param in self.params]
        if result is not None and all(type_ is not None for type_ in arguments):
            known = [type_ for type_ in arguments if type_ is not None]
            self.type = FuncType(known, result, self.type_params)

    @property
    def declared_type(self) -> FuncType | None:
        """The type that parameters and result state, whatever the body is; None without one."""
        arguments = [param.type for param in self.params if param.type is not None]
        if self.ret_type is None or len(arguments) != len(self.params):
            return None
        if not is_complete(self.ret_type):
            return None
        return FuncType(arguments, self.ret_type, self.type_params)

    def with_attr(self, name: str | Mapping[str, AnyValue], value: AnyValue = None) -> Function:
        """Return a copy with an attribute set, or with all of a mapping set."""
        added = {name: value} if isinstance(name, str) else dict(name)
        return self.evolve(attrs={**self.attrs, **added})

    with_attrs = with_attr

    def without_attr(self, name: str) -> Function:
        """Return a copy without an attribute."""
        return self.evolve(attrs={key: x for key, x in self.attrs.items() if key != name})

    def evolve(self, **changes: AnyValue) -> Function:
        """Return a copy with some of what it was made of replaced."""
        fields = ("params", "body", "ret_type", "type_params", "attrs", "span")
        return Function(**{**{name: getattr(self, name) for name in fields}, **changes})

    def __repr__(self) -> str:
        return f"Function({len(self.params)} params)"


def _read_type_params(given: Iterable[TypeVar] | None) -> tuple[TypeVar, ...]:
    if not given:
        return ()
    found = tuple(given)
    if isinstance(given, Mapping) or not all(isinstance(each, TypeVar) for each in found):
        raise RelayError(f"expected type variables as type parameters, found {given!r}")
    return found


class Let(Callee):
    """A value bound to a variable inside a body; the value may be a function that calls itself."""

    __slots__ = ("body", "value", "var")

    def __init__(self, var: Var, value: Expr, body: Expr, span: Span | None = None) -> None:
        self.var = var
        self.value = value = astuple(value)
        self.body = body = astuple(body)
        self.below = (var, value, body)
        self.type = body.type
        self.span = span

    def __repr__(self) -> str:
        return f"Let({self.var.name_hint})"


class If(Expr):
    """One of two values, chosen by a scalar boolean; only the chosen one is evaluated."""

    __slots__ = ("cond", "false_branch", "true_branch")

    def __init__(
        self, cond: Expr, true_branch: Expr, false_branch: Expr, span: Span | None = None
    ) -> None:
        self.cond = cond
        self.true_branch = true_branch = astuple(true_branch)
        self.false_branch = false_branch = astuple(false_branch)
        self.below = (cond, true_branch, false_branch)
        self.type = None
        if true_branch.type == false_branch.type:
            self.type = true_branch.type
        self.span = span

    def __repr__(self) -> str:
        return "If"


class TupleWrapper:
    """A call that yields a tuple, handed out so that it indexes and unpacks.

    Args:
        tuple_value: The call.
        size: Number of fields.
    """

    __slots__ = ("size", "tuple_value")

    def __init__(self, tuple_value: Expr, size: int) -> None:
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> Expr:
        """Return the call itself."""
        return self.tuple_value

    asobject = astuple

    def astext(self, show_meta_data: bool = True, *, strict: bool = False) -> str:
        """Return the text of the call."""
        return self.tuple_value.astext(show_meta_data, strict=strict)

    def astype(self, _dtype: AnyValue) -> Expr:
        """Refuse to cast, as TVM does."""
        raise TypeError("a tuple cannot be cast; cast its fields")

    def __getitem__(self, index: int) -> Expr:
        if not 0 <= index < self.size:
            raise IndexError(f"field {index} of a tuple with {self.size} fields")
        return TupleGetItem(self.tuple_value, index)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Expr]:
        return (self[index] for index in range(self.size))

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"


def astuple(value: AnyValue) -> AnyValue:
    """Return `value`, or the call inside it where it is a :class:`TupleWrapper`."""
    return value.tuple_value if isinstance(value, TupleWrapper) else value


def is_absent(node: Expr) -> bool:
    """Whether a node is the empty tuple that stands for an operand that is not given."""
    return isinstance(node, Tuple) and not node.fields


def tensor_type(x: Expr) -> TensorType:
    """Return the type of a tensor.

    Raises:
        TypeInferenceError: It is not known.
    """
    if not isinstance(x.type, TensorType):
        raise TypeInferenceError(f"expected a tensor of known type, found {x.type!r}")
    return x.type


def var(
    name_hint: str,
    type_annotation: Type | str | None = None,
    shape: Iterable[DimLike] | None = None,
    dtype: AnyValue = "float32",
    span: Span | None = None,
) -> Var:
    """Return a new variable, typed by `type_annotation` or by `shape` and `dtype`.

    Args:
        name_hint: Name for people and for text.
        type_annotation: Its type; the name of a dtype is the type of a scalar.
        shape: Lengths of a tensor, instead of a type.
        dtype: Element type beside `shape`.
        span: Where the variable comes from.

    Raises:
        ValueError: Both a type and a shape are given.
        RelayError: `type_annotation` is no type.
    """
    if shape is not None and type_annotation is not None:
        raise ValueError("a variable takes a type or a shape, not both")
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    if isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    if not isinstance(type_annotation, (Type, NoneType)):
        raise RelayError(f"%{name_hint}: expected a type, found {type_annotation!r}")
    return Var(name_hint, type_annotation, span)


def const(value: AnyValue, dtype: AnyValue = None, span: Span | None = None) -> Constant:
    """Return `value` as a constant.

    Without `dtype`, 64 bits become 32, as in TVM: float64 float32, and int64 int32, of Python
    numbers and of arrays. An array keeps its dtype in ``Constant(array)``, and so does the value
    of another constant here.

    Args:
        value: A number, an array, nested lists of numbers, or an array of a framework that gives
            its values by ``asnumpy()`` or ``numpy()``.
        dtype: The element type, or the type of a tensor that has it.
        span: Where the constant comes from.

    Raises:
        RelayError: `value` is no numbers, or one does not fit the 32 bits or the dtype.
    """
    from serde.core.weights import dtype_name, numpy_dtype

    if isinstance(value, (Expr, type(None), str)):
        raise RelayError(f"a constant needs numbers, found {value!r}")
    if dtype is None and isinstance(value, NDArray):
        return Constant(value, span)
    give = getattr(value, "asnumpy", None) or getattr(value, "numpy", None)
    given = give() if callable(give) else value
    element = dtype.dtype if isinstance(dtype, TensorType) else dtype
    wanted = None if element is None else numpy_dtype(dtype_name(element))
    try:
        data = np.array(given)
        # Integers beyond 64 bits are objects until they have a dtype.
        if wanted is not None and data.dtype.kind == "O":
            data = np.array(given, wanted)
    except (OverflowError, TypeError, ValueError) as error:
        raise TypeInferenceError(f"a constant needs numbers: {error}") from None
    if data.dtype.kind in _NO_NUMBERS:
        raise RelayError(f"a constant needs numbers, found {data.dtype.name}")
    if wanted is not None:
        found = data.astype(wanted, copy=False)
        if isinstance(value, int) and wanted.kind in "iu" and int(found) != value:
            raise TypeInferenceError(f"{value} does not fit {wanted.name}")
        return Constant(found, span)
    narrow = {"float64": np.float32, "int64": np.int32}.get(data.dtype.name)
    return Constant(data if narrow is None else _narrow(data, np.dtype(narrow)), span)


_NO_NUMBERS: Final = "OSUcmM"
"""Kinds of arrays of NumPy that a tensor cannot be."""


def _narrow(data: Array, dtype: np.dtype[AnyValue]) -> Array:
    """Return `data` in 32 bits."""
    with np.errstate(over="ignore"):
        found = data.astype(dtype)
    fits = np.isfinite(found) | ~np.isfinite(data) if dtype.kind == "f" else found == data
    if not fits.all():
        shown = data[~fits].flat[0]
        hint = f"say const(value, {data.dtype.name!r})"
        raise RelayError(f"{shown} does not fit {dtype.name}; {hint}")
    return found

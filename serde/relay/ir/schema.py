"""Schemas of operators, read from the signatures of their kernels, and samples of calls."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from functools import partial, wraps
from typing import Any as AnyValue, ClassVar, TypeGuard, Union

import numpy as np

from serde.core import Array, dataclass, dtype_name, numpy_dtype
from serde.errors import RelayError
from serde.relay.ir.device import Device, device
from serde.relay.ir.dims import Dim, SymDim, as_dim
from serde.relay.ir.expr import Function
from serde.relay.ir.types import SequenceType, TensorType, Type

__all__ = [
    "PLAIN", "REQUIRED", "Arguments", "Array", "Attribute", "Operand", "Sample", "SequenceSpec",
    "TensorSpec", "attribute_converter", "gather", "innermost", "is_shared", "read_schema",
    "sample", "sequence", "shared_fields", "tensor",
]  # fmt: skip

REQUIRED = inspect.Parameter.empty
"""Default of an attribute that has none."""

Convert = Callable[[AnyValue], AnyValue]

_ELEMENT = Array | list[Array]


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of an operator: a tensor, unless it says otherwise.

    Attributes:
        name: Its name.
        optional: Whether it may be absent.
        variadic: Whether it is a tuple of tensors.
        sequence: Whether it is a sequence; of a tuple, whether fields of it may be.
        any_value: Whether it is whatever a program can compute, tuples included.
        description: Nothing, where TVM has a text: the operator's documentation tells.
    """

    name: str
    optional: bool = False
    variadic: bool = False
    sequence: bool = False
    any_value: bool = False
    description: ClassVar[str] = ""

    @property
    def type_info(self) -> str:
        """What TVM calls its type; ``Sequence`` and ``Any``, which TVM lacks, are other kinds."""
        whole = "Sequence" if self.sequence else "Tensor"
        return "Any" if self.any_value else "Tuple" if self.variadic else whole

    def takes_whole(self, type_: Type | None) -> bool:
        """Whether a value of a type is the operand as it is, present and not one of several."""
        if self.any_value or self.variadic:
            return self.any_value
        return isinstance(type_, SequenceType if self.sequence else TensorType)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: its name, how values become canonical, and its default."""

    name: str
    convert: Convert
    default: AnyValue
    annotation: str
    hint: AnyValue

    @property
    def required(self) -> bool:
        """Whether a call must give a value; its text then always shows it."""
        return self.default is REQUIRED


@dataclass(frozen=True)
class Arguments:
    """How a builder takes attributes, where it does so otherwise than the declaration says.

    Attributes:
        order: Attributes that come first, in this order; the others follow as declared.
        names: What the builder calls operands and attributes, where it calls them otherwise.
        defaults: Values of attributes that may be left out though they are required, or that
            have other defaults than in text.
        convert: What makes the value of an attribute of what is given, defaults included.
        required: Attributes that must be given though text may leave them out.
        hidden: Attributes that the builder does not take.
    """

    order: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, AnyValue] = field(default_factory=dict)
    convert: Mapping[str, Callable[[AnyValue], AnyValue]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


PLAIN = Arguments()
"""Operands, then attributes, as the declaration has them."""


def read_schema(
    name: str, kernel: Callable[..., AnyValue]
) -> tuple[tuple[Operand, ...], dict[str, Attribute], int | None]:
    """Return operands, attributes and the number of results from a kernel's signature.

    The number is None for one tensor, and 0 where it depends on the attributes.

    Raises:
        RelayError: An annotation is none of those allowed.
    """
    hints = typing.get_type_hints(kernel)
    operands: list[Operand] = []
    attributes: dict[str, Attribute] = {}
    for parameter in inspect.signature(kernel).parameters.values():
        hint = hints.get(parameter.name)
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            operands.append(_operand(name, parameter.name, hint))
        elif is_shared(hint):
            for each in shared_fields(hint, parameter.default):
                attributes[each[0]] = _attribute(name, *each)
        else:
            text = str(kernel.__annotations__[parameter.name])
            attributes[parameter.name] = _attribute(
                name, parameter.name, hint, parameter.default, text
            )
    result = hints.get("return")
    if typing.get_origin(result) is Generator:
        result = typing.get_args(result)[2]
    count: int | None = None
    if typing.get_origin(result) is tuple:
        items = typing.get_args(result)
        count = 0 if Ellipsis in items else len(items)
    return tuple(operands), attributes, count


def _attribute(op: str, name: str, hint: AnyValue, default: AnyValue, text: str) -> Attribute:
    convert = attribute_converter(hint)
    if convert is None:
        raise RelayError(f"{op}: attribute {name} cannot be a {hint}")
    if default is not REQUIRED:
        default = convert(default)
    return Attribute(name, convert, default, text, hint)


def is_shared(hint: AnyValue) -> TypeGuard[type[AnyValue]]:
    """Whether an annotation is a dataclass whose fields, by keyword only, are attributes."""
    if not isinstance(hint, type) or not is_dataclass(hint):
        return False
    return all(each.kw_only for each in fields(hint))


def shared_fields(
    kind: type[AnyValue], given: AnyValue = REQUIRED
) -> Iterator[tuple[str, AnyValue, AnyValue, str]]:
    """Yield name, annotation, default and the annotation's text of the fields of a dataclass.

    Defaults are those of an object where one is given.
    """
    hints = typing.get_type_hints(kind)
    for each in fields(kind):
        default = REQUIRED if each.default is MISSING else each.default
        if given is not REQUIRED:
            default = getattr(given, each.name)
        yield each.name, hints[each.name], default, str(each.type)


def innermost(function: Callable[..., AnyValue]) -> AnyValue:
    """Return the function that one with arguments bound beforehand calls."""
    while isinstance(function, partial):
        function = function.func
    return function


def gather(
    function: Callable[..., AnyValue], known: Collection[str] = ()
) -> Callable[..., AnyValue]:
    """Return a function of single attributes for one that shares some of them.

    Args:
        function: The function.
        known: Names of the attributes; hints, which are costly to resolve, tell what others are.
    """
    inner = innermost(function)
    code = inner.__code__
    taken = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if all(name in known for name in taken):
        return function
    shared = {
        name: (hint, [each.name for each in fields(hint)])
        for name, hint in typing.get_type_hints(inner).items()
        if name in taken and is_shared(hint)
    }
    if not shared:
        return function

    @wraps(function)
    def call(*operands: AnyValue, **attrs: AnyValue) -> AnyValue:
        for name, (kind, names) in shared.items():
            attrs[name] = kind(**{each: attrs.pop(each) for each in names if each in attrs})
        return function(*operands, **attrs)

    return call


def _operand(op: str, name: str, hint: AnyValue) -> Operand:
    if hint == Array:
        return Operand(name)
    if hint is AnyValue:
        return Operand(name, any_value=True)
    if _is_union(hint) and set(typing.get_args(hint)) == {Array, type(None)}:
        return Operand(name, optional=True)
    if typing.get_origin(hint) is tuple and typing.get_args(hint) == (Array, Ellipsis):
        return Operand(name, variadic=True)
    if hint == list[Array]:
        return Operand(name, sequence=True)
    if typing.get_origin(hint) is tuple and typing.get_args(hint) == (_ELEMENT, Ellipsis):
        return Operand(name, variadic=True, sequence=True)
    raise RelayError(
        f"{op}: operand {name} must be Array, Array | None, list[Array], tuple[Array, ...], "
        "tuple[Array | list[Array], ...] or Any"
    )


def _is_union(hint: AnyValue) -> bool:
    return typing.get_origin(hint) in (Union, types.UnionType)


def attribute_converter(hint: AnyValue) -> Convert | None:
    """Return the function that makes values of an annotation canonical.

    None where the annotation is not one that an attribute may have.
    """
    simple: dict[AnyValue, Convert] = {
        int: _to_int,
        float: _to_float,
        bool: _to_bool,
        str: _to_str,
        np.dtype: _to_dtype,
        type(None): _to_none,
        SymDim: _to_dim,
        Function: _to_function,
        Device: _to_device,
    }
    if hint in simple:
        return simple[hint]
    if typing.get_origin(hint) is np.dtype:
        return _to_dtype
    if typing.get_origin(hint) is typing.Literal:
        return partial(_to_member, members=typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return _tuple_converter(typing.get_args(hint))
    if _is_union(hint):
        return _union_converter(typing.get_args(hint))
    return None


def _tuple_converter(items: tuple[AnyValue, ...]) -> Convert | None:
    if len(items) == 2 and items[1] is Ellipsis:
        each = attribute_converter(items[0])
        return None if each is None else partial(_to_tuple_of, each=each)
    parts = [attribute_converter(item) for item in items]
    if any(part is None for part in parts):
        return None
    return partial(_to_fixed_tuple, parts=[part for part in parts if part is not None])


def _union_converter(items: tuple[AnyValue, ...]) -> Convert | None:
    if SymDim in items:
        rest = [item for item in items if item is type(None)]
        return partial(_to_first, parts=[_to_none] * len(rest) + [_to_dim])
    parts = [attribute_converter(item) for item in items]
    if any(part is None for part in parts):
        return None
    return partial(_to_first, parts=[part for part in parts if part is not None])


def _to_int(value: AnyValue) -> int:
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)):
        raise TypeError
    return int(value.__index__()) if hasattr(value, "__index__") else _refuse()


def _refuse() -> AnyValue:
    raise TypeError


def _to_float(value: AnyValue) -> float:
    if isinstance(value, (bool, np.bool_, str)):
        raise TypeError
    return float(value)


def _to_bool(value: AnyValue) -> bool:
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError


def _to_str(value: AnyValue) -> str:
    return value if isinstance(value, str) else _refuse()


def _to_dtype(value: AnyValue) -> np.dtype[AnyValue]:
    if not value and not isinstance(value, (np.dtype, type)):
        raise TypeError
    return numpy_dtype("bool" if value == "uint1" else dtype_name(value))


def _to_none(value: AnyValue) -> None:
    if value is not None and not (isinstance(value, str) and value == ""):
        raise TypeError


def _to_dim(value: AnyValue) -> Dim:
    """Return a dimension, or a negative number that is a code."""
    if isinstance(value, np.integer):
        value = int(value)
    return value if isinstance(value, int) and value < 0 else as_dim(value)


def _to_function(value: AnyValue) -> Function:
    return value if isinstance(value, Function) else _refuse()


def _to_device(value: AnyValue) -> Device:
    if isinstance(value, (str, Device)):
        return device(value) if isinstance(value, str) else value
    kind, number, scope = value
    return Device(_to_int(kind), _to_int(number), _to_str(scope))


def _to_member(value: AnyValue, *, members: tuple[AnyValue, ...]) -> AnyValue:
    # Python takes True for 1, and 1.0, which no list has a place at.
    kinds = {type(member) for member in members if member == value}
    strict = isinstance(value, (bool, float, complex))
    return value if kinds and (not strict or type(value) in kinds) else _refuse()


def _to_tuple_of(value: AnyValue, *, each: Convert) -> tuple[AnyValue, ...]:
    if value is None or isinstance(value, (str, bytes)):
        raise TypeError
    if isinstance(value, (tuple, Iterable)):  # Tuples, most of all, need no protocol.
        return tuple(map(each, value))
    return (each(value),)


def _to_fixed_tuple(value: AnyValue, *, parts: Sequence[Convert]) -> tuple[AnyValue, ...]:
    items = list(value)
    if len(items) != len(parts):
        raise ValueError
    return tuple(part(item) for part, item in zip(parts, items, strict=True))


def _to_first(value: AnyValue, *, parts: Sequence[Convert]) -> AnyValue:
    for part in parts:
        try:
            return part(value)
        except (TypeError, ValueError, RelayError):
            continue
    raise TypeError


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A random tensor of a sample: uniform values between `low` and `high`."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0

    def array(self, generator: np.random.Generator) -> Array:
        """Return values drawn from `generator`."""
        if self.dtype == "bool":
            return generator.integers(0, 2, self.shape).astype(bool)
        if np.issubdtype(numpy_dtype(self.dtype), np.integer):
            return generator.integers(int(self.low), int(self.high) + 1, self.shape).astype(
                self.dtype
            )
        return generator.uniform(self.low, self.high, self.shape).astype(numpy_dtype(self.dtype))


@dataclass(frozen=True, slots=True)
class SequenceSpec:
    """A sequence of random tensors of a sample, alike in dtype and rank."""

    items: tuple[TensorSpec, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """Operands and attributes of one call that shows a branch of an operator.

    An operand is a :class:`TensorSpec` (a variable of the graph), a :class:`SequenceSpec`
    (likewise), an array (a constant of the graph), a list of these (a tuple) or None (absent).
    """

    operands: tuple[AnyValue, ...]
    attrs: Mapping[str, AnyValue]


def tensor(
    shape: Iterable[int], dtype: str = "float32", *, low: float = -2.0, high: float = 2.0
) -> TensorSpec:
    """Return an operand of a :func:`sample`."""
    return TensorSpec(tuple(shape), dtype, low, high)


def sequence(*items: TensorSpec | tuple[int, ...]) -> SequenceSpec:
    """Return an operand of a :func:`sample` that is a sequence of at least one tensor."""
    specs = [item if isinstance(item, TensorSpec) else TensorSpec(item) for item in items]
    return SequenceSpec(tuple(specs))


def sample(*operands: AnyValue, **attrs: AnyValue) -> Sample:
    """Return a sample; an operand that is a tuple of integers is a float32 tensor of that shape."""

    def spec(operand: AnyValue) -> AnyValue:
        if isinstance(operand, tuple):
            return TensorSpec(operand)
        if isinstance(operand, list):
            return [spec(item) for item in operand]
        return operand

    return Sample(tuple(spec(operand) for operand in operands), attrs)

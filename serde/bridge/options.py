"""What every format takes when it is read or written, and how arguments become options."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import index
from typing import Any as AnyValue, Literal, TypeAlias

import numpy as np

from serde.bridge.ranges import BoundedName, bounded_axes
from serde.core import dataclass, dtype_name, field, near_names, require_installed, shown
from serde.core.limits import Limits
from serde.core.lossy import check_allowed
from serde.errors import OptionError
from serde.relay.ir import Any, DimLike, SymDim, TensorType, symbol
from serde.walk.inputs import parse_fixed
from serde.walk.user_converters import UserConverter, read_converters

__all__ = [
    "ExportOptions", "ImportOptions", "UnknownOptionError", "bind_options", "check_convert_map",
    "option_names", "other_names", "refuse_options",
]  # fmt: skip


Shape: TypeAlias = Sequence[DimLike | range | None]
DType: TypeAlias = str | np.dtype[AnyValue] | type[AnyValue]

_MULTIPLE = re.compile(r"[1-9]\d{0,8}\*[^\W\d]\w*")

_CONVERTERS: Mapping[str, AnyValue] = {
    "accepts": Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | os.PathLike[str] | Callable[..., AnyValue]]
    | str
    | os.PathLike[str]
}
_LIMITS: Mapping[str, AnyValue] = {"accepts": Mapping[str, int] | Sequence[str] | Limits}


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Options that every format takes when it is read.

    Attributes:
        input_shapes: Shape of each input: integers, names of dynamic dimensions, ``"?"`` (also
            -1 or None) for one without a name, ``"N=1..8"``, ``"1..8"`` or ``range(1, 9)`` for
            one with bounds, ``"32*H"`` for multiples; a bare shape if there is one input.
        fix_inputs: Values of inputs, which are no inputs then: a number (for all elements), an
            array, or the path of a ``.npy`` file. Branches that they decide against are left.
        input_dtypes: dtype of each input that is not what the format says or implies; a bare
            dtype if there is one input.
        allow: Names of lossy steps that may be taken.
        converters: Functions of yours that convert operators: by name, decorated by
            ``serde.imports`` or ``serde.exports``, or in files of these.
        keep_unknown: Keep operators that nobody can convert as ``serde.foreign``.
        result_types: Types of what such operators give, by the node's name:
            ``"float32[1,10]"``, of several results a list.
        labels: Class labels, in the order of the scores, of a model that says none itself.
        limits: What the conversion may take beyond what the source holds, by the names that
            :class:`serde.core.limits.Limits` has: ``{"nodes": 1_000_000}``.
    """

    input_shapes: Mapping[str, Sequence[DimLike]] = field(
        default_factory=dict, metadata={"accepts": Mapping[str, Shape] | Shape}
    )
    input_dtypes: Mapping[str, str] = field(
        default_factory=dict, metadata={"accepts": Mapping[str, DType] | DType}
    )
    fix_inputs: Mapping[str, AnyValue] = field(
        default_factory=dict,
        metadata={
            "flag": "--fix-input",
            "parse": parse_fixed,
            "metavar": "NAME=VALUE",
            "help": "Value of an input, which is none then: a number, or the path of a .npy file.",
        },
    )
    allow: frozenset[str] = frozenset()
    converters: tuple[UserConverter, ...] = field(default=(), metadata=_CONVERTERS)
    keep_unknown: bool = False
    result_types: Mapping[str, tuple[TensorType, ...]] = field(
        default_factory=dict,
        metadata={"accepts": Mapping[str, str | TensorType | Sequence[str | TensorType]]},
    )
    labels: tuple[str, ...] = field(default=(), metadata={"accepts": Sequence[str], "flag": None})
    limits: Limits = field(default=Limits(), metadata=_LIMITS)

    def __post_init__(self) -> None:
        check_allowed(self.allow)
        object.__setattr__(self, "labels", _labels(self.labels))
        object.__setattr__(self, "limits", Limits.read(self.limits))
        object.__setattr__(self, "converters", read_converters(self.converters, "read"))
        if self.result_types != {}:
            from serde.walk.result_types import read_result_types

            object.__setattr__(self, "result_types", read_result_types(self.result_types))
        if not isinstance(self.fix_inputs, Mapping):
            raise OptionError(
                f"fix_inputs: expected values by name, found {shown(self.fix_inputs)}"
            )
        shapes: AnyValue = self.input_shapes
        dtypes: AnyValue = self.input_dtypes
        named_shapes = shapes if isinstance(shapes, Mapping) else {"": shapes}
        named_dtypes = dtypes if isinstance(dtypes, Mapping) else {"": dtypes}
        checked = {name: _shape(name, shape) for name, shape in named_shapes.items()}
        bounded_axes(checked)
        object.__setattr__(self, "input_shapes", checked)
        names = {name: _dtype(name, dtype) for name, dtype in named_dtypes.items()}
        object.__setattr__(self, "input_dtypes", names)


def check_convert_map(found: AnyValue) -> None:
    """Refuse what are no functions by the names of operators.

    Raises:
        OptionError: It is something else.
    """
    if not isinstance(found, Mapping) or not all(map(callable, found.values())):
        raise OptionError(f"custom_convert_map: expected functions by name, found {shown(found)}")


def _labels(given: AnyValue) -> tuple[str, ...]:
    """Return labels that a caller gave."""
    is_list = isinstance(given, Sequence) and not isinstance(given, (str, bytes))
    if not is_list or not all(isinstance(each, str) for each in given):
        raise OptionError(f"labels: expected texts, found {shown(given)}")
    return tuple(given)


def _shape(name: str, shape: AnyValue) -> tuple[DimLike, ...]:
    """Return a shape that a caller gave, unnamed dynamic dimensions as ``"?"``."""
    where = f"input_shapes: {name or 'the input'}"
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise OptionError(
            f"{where}: expected a shape such as (1, 3, 224, 224), found {shown(shape)}"
        )
    dims: list[DimLike] = []
    for axis, dim in enumerate(shape):
        length = None
        with contextlib.suppress(TypeError):
            length = index(dim)
        if isinstance(dim, range) or (isinstance(dim, str) and (".." in dim or "=" in dim)):
            dims.append(BoundedName.read(dim, f"{name or 'input'}_{axis}", where))
        elif isinstance(dim, str) and _MULTIPLE.fullmatch(dim):
            times, _, symbol_ = dim.partition("*")
            dims.append(int(times) * symbol(symbol_))
        elif isinstance(dim, (str, SymDim, Any)):
            dims.append(dim)
        elif dim is None or length == -1:
            dims.append("?")
        elif length is not None and length >= 0:
            dims.append(length)
        else:
            raise OptionError(
                f"{where}: expected a length, a name such as 'N', or '?', "
                f"found {shown(dim)} in {shown(shape)}"
            )
    return tuple(dims)


def _dtype(name: str, dtype: AnyValue) -> str:
    try:
        if dtype is None:
            raise TypeError
        return dtype_name(dtype)
    except TypeError:
        where = f"input_dtypes: {name or 'the input'}"
        raise OptionError(
            f"{where}: expected a dtype such as 'int32', found {shown(dtype)}"
        ) from None


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options that every format takes when it is written.

    Attributes:
        allow: Names of lossy steps that may be taken.
        converters: Functions of yours that convert operators: by name, decorated by
            ``serde.imports`` or ``serde.exports``, or in files of these.
        custom_ops: Operators of other frameworks that Relay does not know, by name, which are
            written as custom operators of the target.
        limits: What the conversion may take beyond what the source holds, by the names that
            :class:`serde.core.limits.Limits` has: ``{"nodes": 1_000_000}``.
        write_packages: Packages without which the format is not written.
        run_packages: Those without which what was written is not run.
    """

    # Without annotations, as these are no options.
    write_packages = tuple[str, ...]()
    run_packages = tuple[str, ...]()

    allow: frozenset[str] = frozenset()
    converters: tuple[UserConverter, ...] = field(default=(), metadata=_CONVERTERS)
    custom_ops: frozenset[str] = frozenset()
    limits: Limits = field(default=Limits(), metadata=_LIMITS)

    def __post_init__(self) -> None:
        check_allowed(self.allow)
        object.__setattr__(self, "limits", Limits.read(self.limits))
        object.__setattr__(self, "converters", read_converters(self.converters, "written"))

    def require(self, *, run: bool) -> None:
        """Refuse, before anything is converted, what cannot be met, and packages that are missing.

        Args:
            run: Whether what is written is to be run too.

        Raises:
            MissingDependency: A package is not installed.
            OptionError: An option cannot be met.
        """
        for package in (*self.write_packages, *(self.run_packages if run else ())):
            require_installed(package)

    @property
    def keeps_functions(self) -> bool:
        """Whether global functions are to stay whole until the bridge sees them."""
        return False

    @property
    def keeps_lists(self) -> bool:
        """Whether the target has algebraic data types, of which lists are one."""
        return False

    @property
    def keeps_training(self) -> bool:
        """Whether operators that only matter in training stay until the bridge sees them."""
        return False

    @property
    def keeps_stored_weights(self) -> bool:
        """Whether large weights in files stay as they are where the graph can rearrange them."""
        return False

    @property
    def computes_float16(self) -> bool:
        """Whether what is written computes in float16 whatever the model does."""
        return False


def bind_options(
    cls: type[AnyValue], given: Mapping[str, AnyValue]
) -> tuple[AnyValue, dict[str, AnyValue]]:
    """Return an options object made of the entries of `given` that it has, and the rest.

    Raises:
        OptionError: A value is none that its option takes, or an option is given in two spellings.
    """
    items = dataclasses.fields(cls)
    names = {name: item.name for item in items for name in (item.name, *other_names(item))}
    hints = typing.get_type_hints(cls) if names.keys() & given.keys() else {}
    own: dict[str, AnyValue] = {}
    for name, value in given.items():
        if name in names and names[name] in own:
            other = next(n for n in given if n != names[name] and names.get(n) == names[name])
            raise OptionError(f"{names[name]} is given twice, once as {other}")
        if name in names:
            own[names[name]] = _convert_value(name, value, hints[names[name]])
    rest = {name: value for name, value in given.items() if name not in names}
    return cls(**own), rest


def other_names(item: dataclasses.Field[AnyValue]) -> tuple[str, ...]:
    """Return what else an option may be called: as its flag is, and as its metadata says."""
    flag = (item.metadata.get("flag") or "").partition("/")[0].removeprefix("--").replace("-", "_")
    names = dict.fromkeys([flag, *item.metadata.get("aliases", ())])
    return tuple(name for name in names if name not in ("", item.name))


def option_names(*classes: type[AnyValue] | None) -> Iterator[str]:
    """Yield the names of the options of dataclasses, other spellings included."""
    for item in (item for cls in classes if cls is not None for item in dataclasses.fields(cls)):
        yield from (item.name, *other_names(item))


class UnknownOptionError(OptionError):
    """Options that nothing at hand has; ``names`` are theirs."""

    def __init__(self, message: str, names: Sequence[str]) -> None:
        super().__init__(message)
        self.names = names


def refuse_options(unknown: Iterable[str], known: Iterable[str]) -> None:
    """Refuse options that nothing at hand has, each with the name of one that is most like it.

    Raises:
        UnknownOptionError: There is one.
    """
    names, known = sorted(unknown), {*known}
    near = {name: near_names(name, known) for name in names}
    told = [f"unknown option {name}{near[name] and '.'}{near[name]}" for name in names]
    if told:
        raise UnknownOptionError("; ".join(told), names)


def _convert_value(name: str, value: AnyValue, hint: AnyValue) -> AnyValue:
    """Return the value of an option as its annotation says; containers are left to the class."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds = typing.get_args(hint) if is_union else (hint,)
    choices = [each for kind in kinds for each in _choices(kind)]
    readers = [_READERS[kind] for kind in kinds if kind in _READERS]
    if len(readers) + sum(typing.get_origin(kind) is Literal for kind in kinds) < len(kinds):
        return value
    if isinstance(value, str) and value in choices:
        return value
    for _, read in readers:
        with contextlib.suppress(RuntimeError, TypeError, ValueError):  # Of tensors, too.
            return read(value)
    expected = " or ".join([*map(repr, choices), *(what for what, _ in readers if what)])
    raise OptionError(f"{name}: expected {expected}, found {shown(value)}")


def _choices(kind: AnyValue) -> tuple[AnyValue, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) is Literal else ()


def _nothing(value: AnyValue) -> None:
    if value is not None:
        raise TypeError


def _truth(value: AnyValue) -> bool:
    if value not in (0, 1):
        raise ValueError
    return bool(value)


def _integer(value: AnyValue) -> int:
    if isinstance(value, bool):
        raise TypeError
    return index(value)


def _text(value: AnyValue) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _names(value: AnyValue) -> tuple[str, ...]:
    """Return any number of names; a text is one."""
    return (value,) if isinstance(value, str) else tuple(map(_text, value))


_READERS: Mapping[AnyValue, tuple[str, Callable[[AnyValue], AnyValue]]] = {
    type(None): ("", _nothing),
    bool: ("True or False", _truth),
    int: ("an integer", _integer),
    str: ("text", _text),
    frozenset[str]: ("names", lambda value: frozenset(_names(value))),
    tuple[str, ...]: ("names", _names),
}
"""For each annotation what it asks for, and how a value becomes such a one."""

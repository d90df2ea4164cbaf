"""Converters of users: functions with the signature of our own, for single conversions.

They come as a dict by name, as functions that :func:`imports` or :func:`exports` decorates, or in
a file of these. Nothing is registered anywhere: the conversion that is given them has them.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any as AnyValue, Final, Literal, TypeVar

from serde.core import dataclass, replace, shown
from serde.errors import OptionError
from serde.relay.ir.expr import Expr, TupleWrapper
from serde.relay.ir.registry import op_signature
from serde.relay.ir.schema import innermost
from serde.walk.converter import Converter, Entry

__all__ = [
    "UserConverter", "check_custom_results", "exports", "imports", "read_converter_files",
    "read_converters", "with_directions",
]  # fmt: skip

Direction = Literal["", "read", "written"]
F = TypeVar("F", bound=Callable[..., AnyValue])

_MARK: Final = "__serde_converters__"
_DICT: Final = "CONVERTERS"


@dataclass(frozen=True)
class UserConverter:
    """A function of a user's that converts one operator.

    Attributes:
        name: The operator: in the words of the format where it is read, in Relay's where it is
            written.
        function: What converts it.
        direction: Whether it reads or writes; "" where nobody says.
        format: Of which format alone, "" for any.
    """

    name: str
    function: Callable[..., AnyValue]
    direction: Direction = ""
    format: str = ""

    @cached_property
    def where(self) -> str:
        """Name and place of the function, for messages."""
        inner = innermost(self.function)
        name = getattr(inner, "__qualname__", type(inner).__name__)
        code = getattr(inner, "__code__", None)
        if code is None:
            return f"converter {name} of {self.name}"
        place = f"{os.path.basename(code.co_filename)}, line {code.co_firstlineno}"
        return f"converter {name} of {self.name} ({place})"

    @cached_property
    def converter(self) -> Converter:
        """The function with its schema.

        Raises:
            OptionError: It does not take what converters take.
        """
        try:
            return Entry(self.function, 1, lenient=True).converter
        except (TypeError, ValueError, NameError, AttributeError) as error:
            raise OptionError(f"{self.where}: its signature cannot be read: {error}") from error

    def check_results(self, node: str, op: str, results: Sequence[AnyValue], outputs: int) -> None:
        """Refuse what the function gives that is no expression, or too little of it.

        Raises:
            OptionError: It is so.
        """
        wrong = [each for each in results if not isinstance(each, Expr)]
        if wrong or len(results) < outputs:
            what = f"{wrong[0]!r:.100}" if wrong else str(len(results))
            raise OptionError(
                f"{self.where}: node {node} ({op}): expected {max(outputs, 1)} Relay "
                f"expressions, found {what}"
            )

    def failed(self, node: str, op: str, error: Exception) -> OptionError:
        """Return what a failure of the function at a node is told as."""
        return OptionError(f"{self.where}: node {node} ({op}): {type(error).__name__}: {error}")

    def is_for(self, direction: Direction, format_name: str) -> bool:
        """Whether a conversion from or into a format may use it."""
        return self.direction in ("", direction) and self.format in ("", format_name)


def imports(*names: str, format: str = "") -> Callable[[F], F]:
    """Mark a function as what reads operators, for ``converters=`` and ``--converters``.

    Args:
        names: The operators, in the format's own words: ``"my_op"`` of an MXNet ``Custom``,
            ``"com.acme::MyOp"`` of ONNX, ``"mylib::op"`` of PyTorch, the class of a custom layer
            of Core ML, a fragment of NNEF.
        format: The format, where it is for one alone.

    Example:
        >>> @serde.imports("com.acme::Twice")
        ... def import_twice(ctx, x):
        ...     return relay.add(x, x)
        >>> report = serde.convert("custom.onnx", "plain.onnx", converters=[import_twice])
        >>> sorted(report.after)
        ['Add', 'Gemm']
    """
    return _mark("read", names, format)


def exports(*names: str, format: str = "") -> Callable[[F], F]:
    """Mark a function as what writes operators, for ``converters=`` and ``--converters``.

    Args:
        names: Operators of Relay, names of Composite functions, or of operators that were kept
            as ``serde.foreign``.
        format: The format that is written, where it is for one alone.

    Example:
        >>> @serde.exports("com.acme::Twice", format="onnx")
        ... def export_twice(ctx, x):
        ...     return ctx.emit("Add", x, x)
        >>> report = serde.convert("custom.onnx", "plain.onnx", converters=[export_twice],
        ...     keep_unknown=True, result_types={"last": "float32[1,3]"})
        >>> sorted(report.after)
        ['Add', 'Gemm']
    """
    return _mark("written", names, format)


def _mark(direction: Direction, names: tuple[str, ...], format_name: str) -> Callable[[F], F]:
    if not names or not all(isinstance(each, str) and each for each in names):
        raise OptionError(f"converters: expected names of operators, found {shown(names)}")

    def mark(function: F) -> F:
        made = [UserConverter(name, function, direction, format_name) for name in names]
        setattr(function, _MARK, (*getattr(function, _MARK, ()), *made))
        return function

    return mark


def read_converters(given: AnyValue, direction: Direction) -> tuple[UserConverter, ...]:
    """Return the converters that an option names; what says no direction has `direction`.

    Args:
        given: A dict of functions by name, decorated functions, or paths of files of these.
        direction: What the option is for; "" where it is for both.

    Raises:
        OptionError: It is something else, a file does not run, or a name has two functions.
    """
    found = list(_each_converter(given))
    seen: dict[tuple[str, str, str], UserConverter] = {}
    for each in found:
        each = replace(each, direction=each.direction or direction)
        _check_signature(each)
        key = each.name, each.direction, each.format
        if key in seen and seen[key].function is not each.function:
            raise OptionError(f"converters: {each.name} has two: {seen[key].where}, {each.where}")
        seen[key] = each
    return tuple(seen.values())


def with_directions(given: AnyValue, *, only_written: bool) -> tuple[UserConverter, ...]:
    """Return the converters of a conversion that both reads and writes.

    What says no direction reads, unless its name is that of an operator of Relay.

    Args:
        given: As :func:`read_converters` takes it.
        only_written: Whether the source has no operators of its own, as Relay has none.
    """
    return tuple(
        each
        if each.direction
        else replace(
            each, direction="written" if only_written or op_signature(each.name) else "read"
        )
        for each in read_converters(given, "")
    )


def read_converter_files(paths: Iterable[str]) -> tuple[UserConverter, ...]:
    """Return the converters of files, as the command line names them.

    Raises:
        OptionError: A file is not there, does not run or has none.
    """
    return read_converters(list(paths), "")


def _each_converter(given: AnyValue) -> Iterator[UserConverter]:
    if isinstance(given, UserConverter):
        yield given
    elif isinstance(given, Mapping):
        yield from _of_mapping(given)
    elif isinstance(given, (str, os.PathLike)):
        yield from _of_file(Path(given))
    elif callable(given) and hasattr(given, _MARK):
        yield from getattr(given, _MARK)
    elif isinstance(given, (list, tuple)):
        for each in given:
            yield from _each_converter(each)
    else:
        raise OptionError(
            "converters: expected functions by name, decorated ones or paths of files, "
            f"found {shown(given)}"
        )


def _of_mapping(given: Mapping[AnyValue, AnyValue]) -> Iterator[UserConverter]:
    for name, function in given.items():
        if not isinstance(name, str) or not name or not callable(function):
            raise OptionError(
                f"converters: expected functions by name, found {shown(name)}: {function}"
            )
        marked = getattr(function, _MARK, ())
        own = [each for each in marked if each.name == name] or [UserConverter(name, function)]
        yield from own


def _of_file(path: Path) -> Iterator[UserConverter]:
    module = _run_file(path)
    found: list[UserConverter] = []
    for value in vars(module).values():
        if inspect.isfunction(value) and hasattr(value, _MARK):
            found += getattr(value, _MARK)
    if hasattr(module, _DICT):
        given = getattr(module, _DICT)
        if not isinstance(given, Mapping):
            raise OptionError(f"converters: {path}: {_DICT} is no dict, but {given!r:.100}")
        found += _of_mapping(given)
    if not found:
        raise OptionError(
            f"converters: {path} has no function that serde.imports or serde.exports decorates, "
            f"and no dict {_DICT}"
        )
    yield from found


def _run_file(path: Path) -> ModuleType:
    """Run a file that the user named."""
    if not path.is_file():
        raise OptionError(f"converters: {path}: there is no such file")
    name = f"serde_converters_{abs(hash(path.resolve()))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise OptionError(f"converters: {path}: expected a file of Python, a name ending in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        message = f"converters: {path} does not run: {type(error).__name__}: {error}"
        raise OptionError(message) from error
    return module


def check_custom_results(op: str, found: AnyValue, count: int | None) -> list[Expr]:
    """Return what a function of ``custom_convert_map`` gives, as a list.

    Args:
        op: The operator that it converts.
        found: An expression, or several, or None for none.
        count: How many results the operator has, None where it gives a list of any length.

    Raises:
        OptionError: It is no expression, or not as many as the operator has results.
    """
    several = isinstance(found, (list, tuple, TupleWrapper))
    results = list(found) if several else [] if found is None else [found]
    wrong = [each for each in results if not isinstance(each, Expr)]
    if wrong or (count is not None and len(results) != count):
        wanted = "expressions" if count is None else f"{count} expressions"
        what = f"{wrong[0]!r:.100}" if wrong else f"{len(results)} results"
        raise OptionError(f"custom_convert_map: {op}: expected {wanted}, found {what}")
    return results


def _check_signature(each: UserConverter) -> None:
    """Refuse a function that takes no context."""
    try:
        parameters = list(inspect.signature(each.function).parameters.values())
    except (TypeError, ValueError) as error:
        raise OptionError(f"{each.where}: its signature cannot be read: {error}") from error
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in kinds:
        raise OptionError(
            f"{each.where}: expected (ctx, *tensors, attribute=...): a context, tensors by "
            f"position, attributes by keyword; found {inspect.signature(each.function)}"
        )
    _ = each.converter

"""What the public functions take: their own parameters, and the options of formats and passes.

A function says with :func:`takes_options` whose options its ``**options`` are. Its signature and
documentation then have each of them, made from the dataclasses when somebody asks.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any as AnyValue, NewType, TypeVar

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import format_names, get_bridge
from serde.bridge.options import ImportOptions, UnknownOptionError, option_names, refuse_options
from serde.conversion.locations import Locations
from serde.conversion.steps import call_anywhere
from serde.core.limits import spending
from serde.core.records import dataclass
from serde.errors import OptionError

__all__ = [
    "FormatName", "OptionGroup", "PublicFunction", "attribute_texts", "describe_fields",
    "option_default", "takes_options",
]  # fmt: skip

FormatName = NewType("FormatName", str)
"""Name of a format of another package, for type checkers: its options are then not checked.

``export_model(net, format=FormatName("toy"), volume=11)``; at run time it is the plain text.
"""

FunctionT = TypeVar("FunctionT", bound=Callable[..., AnyValue])


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Options that belong together.

    Attributes:
        title: Whose they are.
        format: Name of the format, empty where they are of none.
        direction: ``"read"`` or ``"written"``, empty for passes.
        cls: The dataclass.
    """

    title: str
    format: str
    direction: str
    cls: type[AnyValue]


class PublicFunction:
    """A function whose signature and documentation name every option.

    Attributes:
        reads: The parameter that names the source's format, empty if none does; None if no source
            is read.
        writes: Likewise of the target; or the name of the only one there is, after ``=``.
        passes: Dataclass of the options between source and target.
        after: Dataclass of the options of what is done to the written target.
        locations: Which parameters may lie in a store or an archive; None if all are local.
    """

    def __init__(
        self,
        function: Callable[..., AnyValue],
        reads: str | None,
        writes: str | None,
        passes: type[AnyValue] | None,
        after: type[AnyValue] | None,
        locations: Locations | None = None,
    ) -> None:
        self.__wrapped__ = function
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__annotations__ = function.__annotations__
        self.reads = reads
        self.writes = writes
        self.passes = passes
        self.after = after
        self.locations = locations

    def __call__(self, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        """Call the function, within the limits that it is given."""
        try:
            with spending(kwargs.get("limits")):
                if self.locations is None:
                    return self.__wrapped__(*args, **kwargs)
                return call_anywhere(self.__wrapped__, args, kwargs, self.locations)
        except (OptionError, TypeError) as error:
            refused = error.names if isinstance(error, UnknownOptionError) else ()
            try:
                self._refuse_unknown(kwargs, refused)
            except OptionError as better:
                raise better from None
            raise

    def _refuse_unknown(self, given: Iterable[str], refused: Iterable[str]) -> None:
        """Refuse what no format has, then what is an option of formats that take no part."""
        known = {*self.__signature__.parameters}
        owners = [(group.title, {*option_names(group.cls)}) for group in self.groups()]
        refuse_options({*given}.difference(known, *(names for _, names in owners)), known)
        for name in refused:
            titles = [title for title, names in owners if name in names]
            if titles:
                told = f"it is one of {' and '.join(titles)}, which takes no part here"
                raise OptionError(f"unknown option {name}: {told}")

    def __get__(self, instance: object, owner: type | None = None) -> AnyValue:
        """Return it, bound as functions are; by this, ``help`` takes it for a routine."""
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def groups(self, names: Sequence[str] | None = None) -> Iterator[OptionGroup]:
        """Yield the options of formats that load, all or those named, each under its format."""
        bridges = list(_bridges(format_names() if names is None else names))
        if self.reads is not None:
            yield OptionGroup("every source", "", "read", ImportOptions)
            for bridge in bridges:
                if bridge.import_options is not None:
                    title = f"reading {bridge.name}"
                    yield OptionGroup(title, bridge.name, "read", bridge.import_options)
        if self.passes is not None:
            yield OptionGroup("the passes between", "", "", self.passes)
        only = (self.writes or "").partition("=")[2]
        for bridge in bridges if self.writes is not None else ():
            if bridge.export_options is not None and only in ("", bridge.name):
                title = f"writing {bridge.name}"
                yield OptionGroup(title, bridge.name, "written", bridge.export_options)
        if self.after is not None:
            yield OptionGroup("making the target smaller", "", "", self.after)

    @property
    def __signature__(self) -> inspect.Signature:
        own = inspect.signature(self.__wrapped__)
        parameters = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        known = {parameter.name for parameter in parameters}
        for group in self.groups():
            for item in dataclasses.fields(group.cls):
                if item.name in known:
                    continue
                known.add(item.name)
                parameters.append(
                    inspect.Parameter(
                        item.name,
                        inspect.Parameter.KEYWORD_ONLY,
                        default=option_default(item),
                        annotation=item.type,
                    )
                )
        return own.replace(parameters=parameters)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        parts = [inspect.getdoc(self.__wrapped__) or ""]
        known: set[str] = set()
        for group in self.groups():
            lines = list(describe_fields(group.cls, known))
            if lines:
                parts.append("\n".join([f"Options of {group.title}:", *lines]))
        return "\n\n".join(parts) + "\n"


def _bridges(names: Sequence[str]) -> Iterator[AnyBridge]:
    """Yield the formats that load."""
    for name in names:
        try:
            yield get_bridge(name)
        except OptionError:
            continue


def describe_fields(cls: type[AnyValue], known: set[str]) -> Iterator[str]:
    """Yield the lines that describe the fields of a dataclass, those that are known left out."""
    texts = attribute_texts(cls)
    for item in dataclasses.fields(cls):
        if item.name in known:
            continue
        known.add(item.name)
        text = texts.get(item.name) or item.metadata.get("help", "")
        head = f"{item.name} ({item.type}, default {option_default(item)!r}): "
        yield textwrap.fill(head + text, 96, initial_indent="    ", subsequent_indent=" " * 8)


def takes_options(
    *,
    reads: str | None = None,
    writes: str | None = None,
    passes: type[AnyValue] | None = None,
    after: type[AnyValue] | None = None,
    locations: Locations | None = None,
) -> Callable[[FunctionT], FunctionT]:
    """Say whose options the ``**options`` of a function are; see :class:`PublicFunction`."""

    def wrap(function: FunctionT) -> FunctionT:
        return typing.cast(
            "FunctionT", PublicFunction(function, reads, writes, passes, after, locations)
        )

    return wrap


def option_default(item: dataclasses.Field[AnyValue]) -> AnyValue:
    """Return the value of an option that is left out."""
    if item.default_factory is not dataclasses.MISSING:
        return item.default_factory()
    return item.default


def attribute_texts(cls: type[AnyValue]) -> Mapping[str, str]:
    """Return the entries under ``Attributes`` in the docstrings of a class and its bases."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        section = re.search(r"^Attributes:\n((?:[ ]+.*\n?|\n)*)", _doc(base), re.MULTILINE)
        for entry in re.finditer(
            r"^    (\w+): (.*(?:\n {5,}.*)*)", section.group(1) if section else "", re.MULTILINE
        ):
            texts[entry.group(1)] = " ".join(entry.group(2).split()).replace("`", "")
    return texts


def _doc(cls: type[AnyValue]) -> str:
    return inspect.cleandoc(cls.__dict__.get("__doc__") or "")

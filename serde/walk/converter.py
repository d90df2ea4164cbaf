"""Converters as tables hold them: what a signature declares, read and bound."""

from __future__ import annotations

import inspect
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any as AnyValue, TypeAlias

from serde.core.records import dataclass, field, fields, replace
from serde.errors import RelayError, Unsupported
from serde.relay.ir import Call, OpDef
from serde.relay.ir.schema import REQUIRED, attribute_converter, innermost, is_shared, shared_fields
from serde.walk.takes import NotTaken, Takes

__all__ = [
    "Converter", "Decode", "Deferred", "Entry", "Parameter", "make_parameter", "parameters_of",
]  # fmt: skip


Decode = Callable[[AnyValue, AnyValue], AnyValue]
"""Turns an attribute as a file has it into a Python value, given the annotation."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An attribute that a converter takes."""

    name: str
    hint: AnyValue
    convert: Callable[[AnyValue], AnyValue]
    default: AnyValue
    annotation: str


@dataclass(frozen=True, slots=True)
class Converter:
    """One entry of a table.

    Attributes:
        function: The converter itself.
        since: Version from which on it holds.
        operands: Names of the tensors; the last one stands for all that follow where `accepted`
            is None.
        required: Least number of tensors.
        accepted: Greatest number of tensors, or None without limit.
        omissible: For each tensor whether it may be left out before others; the last entry
            holds for all that follow.
        attributes: Attributes by name.
        shared: Parameters that take several attributes at once, with their dataclasses.
        ignored: Attributes that do not bear on the result.
        uses: How many leading inputs bear on the result; None means all.
        takes_rest: Whether attributes that it does not name go to it, too, as they are.
        renamed: What the function calls attributes that the format has other words for.
    """

    function: Callable[..., AnyValue]
    since: int
    operands: tuple[str, ...]
    required: int
    accepted: int | None
    omissible: tuple[bool, ...]
    attributes: Mapping[str, Parameter]
    shared: Mapping[str, type]
    ignored: frozenset[str]
    uses: int | None
    takes_rest: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)

    def bind(
        self, attrs: Mapping[str, AnyValue], decode: Decode
    ) -> tuple[dict[str, AnyValue], list[str]]:
        """Return the attributes by keyword, and what is wrong with them."""
        bound: dict[str, AnyValue] = {}
        faults = []
        for name, raw in attrs.items():
            parameter = self.attributes.get(name)
            if parameter is None:
                if self.takes_rest:
                    bound[name] = raw
                elif name not in self.ignored:
                    faults.append(f"unknown attribute {_short(name, str)}={_short(raw)}")
                continue
            try:
                value = raw if parameter.hint is AnyValue else decode(raw, parameter.hint)
                bound[name] = parameter.convert(value)
            except (TypeError, ValueError, OverflowError, RelayError):
                faults.append(
                    f"attribute {name}: expected {parameter.annotation}, found {_short(raw)}"
                )
        for name, parameter in self.attributes.items():
            if parameter.default is REQUIRED and name not in attrs:
                faults.append(f"attribute {name} is missing")
        return bound, faults

    def arity_faults(self, inputs: Sequence[AnyValue]) -> list[str]:
        """Return what is wrong with the number of tensors, or with those that are left out."""
        count = len(inputs)
        if count < self.required:
            return [f"expected at least {self.required} inputs, found {count}"]
        if self.accepted is not None and count > self.accepted:
            return [f"expected at most {self.accepted} inputs, found {count}"]
        if None not in inputs:
            return []
        last = len(self.omissible) - 1
        return [
            f"input {index} is left out"
            for index, x in enumerate(inputs)
            if x is None and not self.omissible[min(index, last)]
        ]

    def run(
        self, ctx: AnyValue, operands: Sequence[AnyValue], attrs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Call the function, shared attributes as one object of their dataclass."""
        if not self.renamed and not self.shared:
            return self.function(ctx, *operands, **attrs)
        keywords = {self.renamed.get(name, name): value for name, value in attrs.items()}
        for name, kind in self.shared.items():
            own = [each.name for each in fields(kind) if each.name in keywords]
            keywords[name] = kind(**{each: keywords.pop(each) for each in own})
        return self.function(ctx, *operands, **keywords)


class Deferred(ABC):
    """A converter that is no function: what says all of it is read when it is needed."""

    @abstractmethod
    def converter(self, since: int, ignored: frozenset[str], uses: int | None) -> Converter:
        """Return the entry of the table."""


Legality: TypeAlias = tuple[
    Takes, Callable[[Call], bool] | None, Callable[[int, Call], Unsupported | None] | None
]


_ALL: Legality = (Takes(), None, None)


class Entry:
    """A converter as it was registered; the hints of its signature are read when it is needed.

    Args:
        function: The converter.
        since: Version from which on it holds.
        ignored: Attributes that do not bear on the result.
        uses: How many leading inputs bear on the result; None means all.
        legal: Of an exporter, what it takes, a further question about calls, and what tells why
            a schema does not take one at a version.
        lenient: Whether attributes need no types.
        renamed: What the function calls attributes that the format has other words for.
    """

    def __init__(
        self,
        function: Callable[..., AnyValue] | Deferred,
        since: int,
        ignored: Iterable[str] = (),
        uses: int | None = None,
        *,
        legal: Legality = _ALL,
        lenient: bool = False,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        known = since, frozenset(ignored), uses
        if isinstance(function, Deferred):
            self._read = partial(function.converter, *known)
        else:
            self._read = partial(_read_signature, function, *known, lenient)
        self._renamed = renamed or {}
        self.declared, self._when, self._schema = legal
        self._takes: Takes | None = None

    @cached_property
    def converter(self) -> Converter:
        """What the table hands out."""
        found, words = self._read(), {own: word for word, own in self._renamed.items()}
        if not words:
            return found
        attributes = {words.get(name, name): each for name, each in found.attributes.items()}
        operands = tuple(words.get(name, name) for name in found.operands)
        return replace(found, operands=operands, attributes=attributes, renamed=self._renamed)

    def fault(self, node: Call, version: int, *, worded: bool = True) -> Unsupported | None:
        """Return why an exporter does not write a call at a version; None if it does.

        An attribute that it does not know must have its default.
        """
        if self._takes is None:
            known = {*self.converter.attributes, *self.converter.ignored, *self.declared.names}
            declared = node.op.attributes if isinstance(node.op, OpDef) else {}
            rest = {name: each.default for name, each in declared.items() if name not in known}
            lost = [name for name, default in rest.items() if default is REQUIRED]
            if lost:
                raise RelayError(f"the exporter of {node.op!r} does not take {', '.join(lost)}")
            self._takes = self.declared.over(rest)
        if not self._takes.holds(node):
            return NotTaken(self._takes.fault(node) if worded else "")
        if self._when is not None and not self._when(node):
            return Unsupported("has no counterpart for these types and attributes")
        return None if self._schema is None else self._schema(version, node)


def _read_signature(
    function: Callable[..., AnyValue],
    since: int,
    ignored: frozenset[str],
    uses: int | None,
    lenient: bool,
) -> Converter:
    """Read a converter's schema from its signature; a lenient one tells no types of attributes."""
    hints = typing.get_type_hints(innermost(function))
    parameters = parameters_of(function)[1:]
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    attributes: dict[str, Parameter] = {}
    shared: dict[str, type] = {}
    for parameter in parameters:
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        hint = hints.get(parameter.name, AnyValue) if lenient else hints[parameter.name]
        if is_shared(hint):
            shared[parameter.name] = hint
            attributes |= {each[0]: make_parameter(*each) for each in shared_fields(hint)}
        else:
            text = str(innermost(function).__annotations__.get(parameter.name, ""))
            attributes[parameter.name] = make_parameter(
                parameter.name, hint, parameter.default, text
            )
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    tensors = [p for p in parameters if p in positional or p.kind is p.VAR_POSITIONAL]
    return Converter(
        function=function, since=since, operands=tuple(p.name for p in tensors),
        required=sum(p.default is REQUIRED for p in positional),
        accepted=None if variadic else len(positional),
        omissible=tuple(_takes_none(hints.get(p.name)) for p in tensors), attributes=attributes,
        shared=shared, ignored=ignored, uses=uses,
        takes_rest=lenient and any(p.kind is p.VAR_KEYWORD for p in parameters),
    )  # fmt: skip


@cache
def parameters_of(function: Callable[..., AnyValue]) -> tuple[inspect.Parameter, ...]:
    """Return the parameters of a converter, without keywords that are bound beforehand."""
    bound = function.keywords if isinstance(function, partial) else {}
    return tuple(p for n, p in inspect.signature(function).parameters.items() if n not in bound)


def make_parameter(name: str, hint: AnyValue, default: AnyValue, text: str) -> Parameter:
    """Return an attribute whose values are made canonical as its type says."""
    return Parameter(name, hint, attribute_converter(hint) or _as_it_is, default, text)


def _as_it_is(value: AnyValue) -> AnyValue:
    return value


def _takes_none(hint: AnyValue) -> bool:
    return type(None) in typing.get_args(hint)


def _short(value: AnyValue, spell: Callable[[AnyValue], str] = repr) -> str:
    """Return a value of a file as text, cut where it would fill a screen."""
    text = spell(value)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"

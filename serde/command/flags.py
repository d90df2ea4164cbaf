"""Command-line flags: the spellings of shapes and dtypes, and flags made from option dataclasses.

A format's option becomes a flag by itself: the field's name with hyphens, its
annotation for the type, its entry under ``Attributes`` in the docstring for
the help. Field metadata may say otherwise: ``flag`` (``None`` for no flag) and
``help``; ``first`` is true of what the short help tells; ``parse`` makes the value of the texts
that a repeatable flag was given, which ``metavar`` shows. The field's name and its ``aliases`` are
understood, too.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any as AnyValue

import click

from serde.bridge.options import other_names
from serde.command.flag import FORMAT_THEME, READING_THEME, Flag, complete_paths
from serde.conversion.signature import attribute_texts, option_default
from serde.errors import OptionError

__all__ = [
    "generated_options", "parse_dims", "parse_dtypes", "parse_images", "parse_lengths",
    "parse_shapes",
]  # fmt: skip

SHAPE_FORMS = (
    "data:1,3,224,224  data:[1,3,224,224]  data:1x3x224x224  data:N,3,?,-1 (dynamic)  "
    "data:N=1..8,3,224,224 (bounds)  1,3,224,224 (a single input)"
)
DTYPE_FORMS = "tokens:int32  int32 (a single input)"
LENGTH_FORMS = "N=4"

_THEMES = {
    "ImportOptions": READING_THEME,
    "PrepareOptions": "The model in between",
    "QuantizeOptions": "Making the target smaller",
}
"""What options of a class are for that is no format's."""

_BRACKETS = {"[": "]", "(": ")"}
_LIST_SPLIT = re.compile(r"\s*,\s*")
_RANGE = r"\s*\d+\s*\.\.\s*\d+"
_BOUNDED = re.compile(rf"(?:[^\W\d]\w*\s*=)?{_RANGE}|[1-9]\d*\*[^\W\d]\w*")
_X_PART = re.compile(rf"\d+|\?|-1|(?:[A-Z][A-Z0-9_]*=)?{_RANGE}|[A-Z][A-Z0-9_]*")


def parse_shapes(values: Iterable[str]) -> dict[str, tuple[int | str, ...]]:
    """Return shapes by input from values of ``--input-shape``; a bare shape has the name ``""``.

    Raises:
        OptionError: A value is none of the accepted forms, or an input is named twice.
    """
    shapes: dict[str, tuple[int | str, ...]] = {}
    for value in values:
        name, _, text = value.rpartition(":")
        dims = parse_dims(text)
        if dims is None or (":" in value and not name):
            raise OptionError(f"--input-shape {value}: expected one of: {SHAPE_FORMS}")
        _add(shapes, name, dims, "--input-shape")
    return shapes


def parse_dims(text: str) -> tuple[int | str, ...] | None:
    """Return the dimensions in a text, ``"?"`` where nothing is known; None if it is no shape.

    Without commas, ``x`` separates if every part is a number, ``?``, ``-1`` or a name in
    capitals.
    """
    text = text.strip()
    bracketed = text[:1] in _BRACKETS
    if bracketed:
        if text[-1:] != _BRACKETS[text[0]]:
            return None
        text = text[1:-1].strip().removesuffix(",")
        if not text:
            return ()
    parts = _LIST_SPLIT.split(text)
    if len(parts) == 1:
        by_x = re.split(r"\s*x\s*", text)
        if all(_X_PART.fullmatch(part) for part in by_x):
            parts = by_x
    dims: list[int | str] = []
    for part in parts:
        if part in ("?", "-1"):
            dims.append("?")
        elif part.isascii() and part.isdigit():
            dims.append(int(part))
        elif part.isidentifier() or _BOUNDED.fullmatch(part):
            dims.append(part)
        else:
            return None
    return tuple(dims)


def parse_dtypes(values: Iterable[str]) -> dict[str, str]:
    """Return dtypes by input from values of ``--input-dtype``; a bare dtype has the name ``""``.

    Raises:
        OptionError: A value is none of the accepted forms, or an input is named twice.
    """
    from serde.core.weights import dtype_name

    dtypes: dict[str, str] = {}
    for value in values:
        name, _, text = value.rpartition(":")
        try:
            _add(dtypes, name, dtype_name(text), "--input-dtype")
        except TypeError:
            raise OptionError(f"--input-dtype {value}: expected one of: {DTYPE_FORMS}") from None
    return dtypes


def parse_lengths(values: Iterable[str]) -> dict[str, int]:
    """Return lengths of dynamic dimensions by name from values of ``--check-dim``.

    Raises:
        OptionError: A value is not of the accepted form.
    """
    lengths: dict[str, int] = {}
    for value in values:
        name, _, text = value.rpartition("=")
        if not name or not (text.isascii() and text.isdigit()):
            raise OptionError(f"--check-dim {value}: expected, for example: {LENGTH_FORMS}")
        _add(lengths, name, int(text), "--check-dim")
    return lengths


def parse_images(values: Iterable[str]) -> dict[str, str]:
    """Return colour layouts by input from values of ``--image``, empty where none is given.

    Raises:
        OptionError: An input is named twice.
    """
    layouts: dict[str, str] = {}
    for value in values:
        name, _, layout = value.partition(":")
        _add(layouts, name, layout, "--image")
    return layouts


def _add(found: dict[str, AnyValue], name: str, value: AnyValue, flag: str) -> None:
    if name in found:
        raise OptionError(f"{flag}: {name or 'the single input'} is given twice")
    found[name] = value


def generated_options(
    classes: Sequence[tuple[str, type[AnyValue]]], *, taken: Iterable[str] = ()
) -> list[click.Option]:
    """Return a flag for each field of option dataclasses.

    Fields of one name are one flag, which every class that has the field gets.

    Args:
        classes: Format (for the help; empty for no format) and dataclass.
        taken: Names of fields that have a flag written by hand.

    Raises:
        OptionError: Two formats have a field of one name and different types.
    """
    options: dict[str, tuple[Flag, AnyValue, str]] = {}
    for owner, cls in classes:
        hints = typing.get_type_hints(cls)
        texts = attribute_texts(cls)
        for item in dataclasses.fields(cls):
            if item.name in taken or item.metadata.get("flag", "") is None:
                continue
            if item.name in options:
                _merge(options[item.name], owner, hints[item.name], option_default(item))
                continue
            kind = _click_kind(hints[item.name], item.default)
            if "parse" in item.metadata:
                kind = _repeatable_arguments(item.metadata["parse"], item.metadata.get("metavar"))
            if kind is None:
                continue
            if kind.get("metavar") is None and "metavar" in item.metadata:
                kind["metavar"] = item.metadata["metavar"]
            text = item.metadata.get("help") or texts.get(item.name, "")
            flag = item.metadata.get("flag") or f"--{item.name.replace('_', '-')}"
            if kind.pop("negated", False):
                flag = f"{flag}/--no-{flag[2:]}"
            tag = f"[{owner}] " if owner else ""
            spelled = (item.name, *other_names(item))
            aliases = [f"--{name.replace('_', '-')}" for name in spelled]
            kind.setdefault("shell_complete", _completion(kind.get("metavar")))
            option = Flag([flag, item.name], help=f"{tag}{text}", aliases=aliases, **kind)
            option.show_default_of(owner, option_default(item))
            if not item.metadata.get("first"):
                option.theme = f"{FORMAT_THEME}{owner}" if owner else _THEMES.get(cls.__name__, "")
            options[item.name] = (option, hints[item.name], owner)
    return [option for option, _, _ in options.values()]


def _completion(metavar: str | None) -> Callable[..., AnyValue] | None:
    """Return what completes the values of a flag whose help calls them a file."""
    return complete_paths if metavar is not None and "FILE" in metavar else None


def _merge(
    known: tuple[Flag, AnyValue, str], owner: str, hint: AnyValue, default: AnyValue
) -> None:
    option, known_hint, first = known
    if hint != known_hint:
        raise OptionError(
            f"option {option.name} is {known_hint!r} for {first} and {hint!r} for {owner}"
        )
    option.show_default_of(owner, default)
    tag = f"[{first}] "
    if owner and first and (option.help or "").startswith(tag):
        option.help = f"[{first}, {owner}] {(option.help or '')[len(tag) :]}"


def _click_kind(hint: AnyValue, default: AnyValue) -> dict[str, AnyValue] | None:
    """Return click's arguments for an option of this annotation; None if it can be no flag."""
    members = [hint]
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        members = [member for member in typing.get_args(hint) if member is not type(None)]
    words = [member for member in members if typing.get_origin(member) is typing.Literal]
    if set(members) == {int, *words} and len(words) == 1:
        choices = typing.get_args(words[0])
        metavar = "|".join(["INTEGER", *choices])
        return {"type": _number_or(choices), "default": None, "metavar": metavar}
    if set(members) == {bool, *words} and len(words) == 1:
        kind = click.Choice(("usual", *typing.get_args(words[0])))
        found = {"type": kind, "metavar": f"[{'|'.join(kind.choices[1:])}]"}
        return {**found, "callback": lambda _ctx, _option, value: value == "usual" or value}
    if len(members) != 1:
        return None
    (member,) = members
    if member is bool:
        return {"is_flag": True, "default": default, "negated": default is not False}
    if member in (int, float, str):
        return {"type": member, "default": None}
    if typing.get_origin(member) is typing.Literal:
        choices = typing.get_args(member)
        if all(isinstance(choice, str) for choice in choices):
            return {"type": click.Choice(choices), "default": None}
    if member in (frozenset[str], tuple[str, ...]):
        gather: Callable[..., AnyValue] = _make_gatherer(typing.get_origin(member))
        return {"multiple": True, "callback": gather, "metavar": "A,B"}
    return None


def _number_or(words: Sequence[str]) -> Callable[[str], int | str]:
    """Return what reads an integer, or one of some words."""

    def read(text: str) -> int | str:
        if text in words:
            return text
        try:
            return int(text)
        except ValueError:
            raise click.BadParameter(f"{text!r} is no integer, nor {', '.join(words)}") from None

    return read


def _repeatable_arguments(
    parse: Callable[[Sequence[str]], AnyValue], metavar: str | None
) -> dict[str, AnyValue]:
    """Return click's arguments for a repeatable flag whose texts are parsed together."""

    def callback(_ctx: click.Context, _option: click.Parameter, values: Sequence[str]) -> AnyValue:
        return parse(values)

    return {"multiple": True, "callback": callback, "metavar": metavar}


def _make_gatherer(kind: AnyValue) -> Callable[..., AnyValue]:
    def callback(_ctx: click.Context, _option: click.Parameter, values: Sequence[str]) -> AnyValue:
        items = (item.strip() for value in values for item in value.split(","))
        return kind(item for item in items if item)

    return callback

"""Edits of a model, as texts on the command line tell them."""

from __future__ import annotations

import inspect
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from serde.conversion.prepare import Edit, parse_names
from serde.core.texts import near_names
from serde.errors import OptionError
from serde.relay import transform
from serde.relay.ir import RelayModel, tensor_type

__all__ = ["parse_edits", "replaced_parts"]

_FUNCTION = r"\s*fn\b.*\}\s*"
_REPLACEMENT = re.compile(rf"({_FUNCTION}|[^=]+)=({_FUNCTION}|[^=]+)", re.DOTALL)
_TAIL = re.compile(r"(.+?):([^:=]+=.*)", re.DOTALL)
"""What is edited, and how: ``data:mean=0.5``. Names may have colons of their own."""


def parse_edits(given: Iterable[tuple[str, str]]) -> list[Edit]:
    """Return the edits that flags tell, in their order; new names in a row are one edit.

    Args:
        given: Names of flags, each with its text.

    Raises:
        OptionError: A text does not tell such an edit.
    """
    found: list[Edit] = []
    for name, group in groupby(given, key=lambda pair: pair[0]):
        texts = [text for _, text in group]
        if name == "rename":
            names = parse_names("--rename")(texts)
            found.append(partial(transform.rename_all, names=names))
        else:
            found += [_MAKERS[name](text) for text in texts]
    return found


def _normalize(text: str) -> Edit:
    name, options = _parse(text, "--normalize", transform.normalize_input)
    return partial(transform.normalize_input, name=name, **options)


def _cast(text: str) -> Edit:
    name, _, dtype = text.rpartition(":")
    if not name:
        raise OptionError(f"--insert-cast {text}: expected NAME:DTYPE")
    return partial(transform.insert_cast, name=name, dtype=dtype)


def _suppress(text: str) -> Edit:
    head, options = _parse(text, "--nms", transform.suppress_boxes)
    boxes, comma, scores = head.partition(",")
    given = scores if comma else None
    return partial(transform.suppress_boxes, boxes=boxes, scores=given, **options)


def _merge(text: str) -> Edit:
    match = None if os.path.exists(text) else _TAIL.fullmatch(text)
    path, tail = match.groups() if match is not None else (text, "")
    pairs = [pair.partition("=") for pair in tail.split(",") if pair]
    if any(not (old and new) for old, _, new in pairs):
        raise OptionError(f"--merge {text}: expected MODEL or MODEL:OUTPUT=INPUT,...")

    def merge(model: RelayModel) -> RelayModel:
        from serde.api import to_relay

        inputs = {new: old for old, _, new in pairs}
        values = transform.find_values(model, "merge", [*inputs.values()])[1]
        # Formats such as MXNet's do not say of which shapes inputs are.
        shapes = {name: tensor_type(value).shape for name, value in zip(inputs, values, strict=True)}
        other = to_relay(path, input_shapes=shapes)
        return transform.merge_models(model, other, inputs or None)

    return merge


def _replace(text: str) -> Edit:
    parts = [_read_function(each) for each in replaced_parts(text)]
    return partial(transform.replace_pattern, pattern=parts[0], replacement=parts[1])


def replaced_parts(text: str) -> Sequence[str]:
    """Return a pattern and what replaces it: functions in Relay's text, or files of these.

    Raises:
        OptionError: There are no two.
    """
    match = _REPLACEMENT.fullmatch(text)
    if match is None:
        raise OptionError(f"--replace {text}: expected PATTERN=WITH, files or fn (%x) {{ ... }}")
    return [each.strip() for each in match.groups()]


def _read_function(text: str) -> str:
    return text if re.match(r"fn\b", text) else Path(text).read_text(encoding="utf-8")


def _metadata(text: str) -> Edit:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise OptionError(f"--set-metadata {text}: expected KEY=VALUE, or KEY= to take it away")
    return partial(transform.set_metadata, metadata={name: value})


def _describe(text: str) -> Edit:
    return partial(transform.set_metadata, description=text)


_MAKERS: dict[str, Callable[[str], Edit]] = {
    "normalize": _normalize,
    "insert_cast": _cast,
    "nms": _suppress,
    "merge": _merge,
    "replace": _replace,
    "set_metadata": _metadata,
    "description": _describe,
}


def _parse(text: str, flag: str, function: Callable[..., Any]) -> tuple[str, dict[str, Any]]:
    """Return what is edited, and keywords of a function, whose annotations read them.

    A keyword may be shortened as long as it is one; commas part keywords and numbers.
    """
    match = _TAIL.fullmatch(text)
    head, tail = match.groups() if match is not None else (text, "")
    hints, known = typing.get_type_hints(function), inspect.signature(function).parameters
    keywords = [name for name, each in known.items() if each.kind is each.KEYWORD_ONLY]
    found: dict[str, Any] = {}
    for key, values in _grouped(tail):
        near = [name for name in keywords if name == key] or [
            name for name in keywords if name.startswith(key)
        ]
        if len(near) != 1 or near[0] in found:
            why = "given twice" if near and near[0] in found else f"none of {', '.join(keywords)}"
            raise OptionError(f"{flag} {text}: {key!r} is {why}.{near_names(key, keywords)}")
        try:
            found[near[0]] = _value(hints[near[0]], values)
        except (ValueError, ZeroDivisionError) as error:
            raise OptionError(f"{flag} {text}: {key}: {error}") from None
    return head, found


def _grouped(tail: str) -> Iterator[tuple[str, list[str]]]:
    parts = re.findall(r"([^,=]+)=([^=]*)(?:,|$)", tail)
    return ((key.strip(), values.split(",")) for key, values in parts)


def _value(hint: Any, texts: Sequence[str]) -> Any:
    """Return the value that texts between commas tell, of a parameter's type."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    members = typing.get_args(hint) if is_union else (hint,)
    kind = next(each for each in members if each is not type(None))
    if typing.get_origin(kind) is not None and typing.get_origin(kind) is not typing.Literal:
        return tuple(float(Fraction(each)) for each in texts)
    if len(texts) > 1:
        raise ValueError(f"expected one value, found {','.join(texts)}")
    if typing.get_origin(kind) is typing.Literal:
        if texts[0] not in typing.get_args(kind):
            listed = ", ".join(typing.get_args(kind))
            raise ValueError(f"expected one of {listed}, found {texts[0]!r}")
        return texts[0]
    return float(Fraction(texts[0])) if kind is float else kind(texts[0])

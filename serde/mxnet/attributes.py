"""Attributes of MXNet's operators: strings in the file, values in a converter.

MXNet reads these strings with the parsers of dmlc-core's ``parameter.h`` and
of its own ``tuple.h``; the forms accepted here are theirs.
"""

from __future__ import annotations

import math
import re
import types
import typing
from typing import Any as AnyValue, Final, Union

import numpy as np

from serde.core.limits import MAX_ATTRIBUTE_CHARS
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.mxnet.model import DTYPES

__all__ = ["decode_attribute", "dtype_of_code", "encode_attribute"]

_NUMBER = re.compile(
    r"[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|inf|nan)\Z", re.IGNORECASE | re.ASCII
)
_INTEGER = re.compile(r"[+-]?\d+L?\Z", re.ASCII)


_LEAST: Final = -(2**63)
"""The least integer that MXNet reads."""

_MOST_DIGITS: Final = 30
"""Of an integer, leading zeros among them."""


def dtype_of_code(code: int) -> str:
    """Return the dtype name of one of MXNet's type flags.

    Raises:
        Unsupported: There is no such flag.
    """
    if not 0 <= code < len(DTYPES):
        raise Unsupported(f"unknown type flag {code}")
    return DTYPES[code]


def decode_attribute(raw: AnyValue, hint: AnyValue) -> AnyValue:
    """Return the value that the text `raw` stands for where a converter declares `hint`.

    Raises:
        ValueError: The text is no such value.
    """
    if not isinstance(raw, str):
        return raw
    if len(raw) > MAX_ATTRIBUTE_CHARS:
        raise ValueError("the value is too long")
    members = _members(hint)
    if type(None) in members and raw == "None":
        return None
    if bool in members and raw.lower() in ("true", "false", "1", "0"):
        return raw.lower() in ("true", "1")
    if any(typing.get_origin(member) is np.dtype or member is np.dtype for member in members):
        if raw not in DTYPES:
            raise ValueError(f"{raw!r} is no dtype of MXNet")
        return numpy_dtype(raw)
    if any(member is str or typing.get_origin(member) is typing.Literal for member in members):
        return raw
    return _value(raw.strip())


def encode_attribute(value: AnyValue) -> str:
    """Return the text that MXNet writes for the value of an attribute."""
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, (tuple, list)):
        items = ", ".join(encode_attribute(item) for item in value)
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, float):
        return repr(value)
    return str(value)


def _members(hint: AnyValue) -> tuple[AnyValue, ...]:
    if typing.get_origin(hint) in (Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _value(text: str) -> AnyValue:
    """Return a number, None, or a tuple of these nested at most twice."""
    if text[:1] in ("(", "[") and text[-1:] in (")", "]"):
        return tuple(_value(item) for item in _items(text[1:-1]))
    if text == "None":
        return None
    if _INTEGER.match(text):
        return _integer(text.rstrip("L"))
    if _NUMBER.match(text):
        return _real(text)
    raise ValueError(f"{text!r} is no number")


def _integer(text: str) -> int:
    """Return an integer, which MXNet reads into 64 bits at most."""
    number = int(text) if len(text) <= _MOST_DIGITS else _LEAST - 1
    if not _LEAST <= number <= -_LEAST - 1:
        raise ValueError(f"{text[:_MOST_DIGITS]} has more than 64 bits")
    return number


def _real(text: str) -> float:
    """Return a real number; one beyond those of 64 bits is none of MXNet's."""
    number = float(text)
    if math.isinf(number) and "inf" not in text.lower():
        raise ValueError(f"{text[:_MOST_DIGITS]} has more than 64 bits")
    return number


def _items(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    items, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if not 0 <= depth <= 2:
            raise ValueError("brackets are nested too deeply or not closed")
        if char == "," and depth == 0:
            items.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    if depth:
        raise ValueError("a bracket is not closed")
    return [*items, last] if last else items

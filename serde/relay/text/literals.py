"""Numbers and strings as they stand in Relay text."""

from __future__ import annotations

import math
import re
from typing import Any as AnyValue, Final

import numpy as np

__all__ = ["constant_text", "escape", "float_text", "number_value", "six_digits", "unescape"]

_FLOAT_SUFFIX: Final = {"float16": "f16", "float32": "f", "float64": "f64"}
_INT_SUFFIX: Final = {"int16": "i16", "int32": "", "int64": "i64"}
_NUMBER: Final = re.compile(
    r"(?P<digits>[0-9]+)(?P<fraction>\.[0-9]*)?(?P<exponent>[eE][+-]?[0-9]+)?"
    r"(?P<suffix>[fi](?P<bits>[0-9]*))?\Z"
)
_MAX_DIGITS: Final = 400
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_UNESCAPE: Final = {value[1]: key.encode() for key, value in _ESCAPES.items()}
_ESCAPED: Final = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_PLAIN: Final = re.compile(r"[ !#-\[\]-~]*\Z")


def six_digits(value: float) -> str:
    """Return `value` with six significant digits, as C++ streams print it."""
    return f"{value:g}"


def float_text(value: float, *, strict: bool) -> str:
    """Return an attribute's float, with its suffix."""
    value = float(value)
    if not math.isfinite(value):
        return ("-" if value < 0 else "") + ("nanf" if math.isnan(value) else "inff")
    return f"{six_digits(value) if strict else _shortest(repr(value))}f"


def _shortest(text: str) -> str:
    return text[:-2] if text.endswith(".0") else text


def constant_text(data: np.ndarray[AnyValue, AnyValue], *, strict: bool) -> str | None:
    """Return a scalar constant as it stands in an expression; None if it prints as metadata."""
    if data.ndim:
        return None
    name = data.dtype.name
    if name == "bool":
        return "True" if data else "False"
    if name in _INT_SUFFIX:
        return f"{int(data)}{_INT_SUFFIX[name]}"
    if name not in _FLOAT_SUFFIX or np.isnan(data):
        return None
    value = float(data)
    suffix = _FLOAT_SUFFIX[name]
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}inf{suffix}"
    return f"{six_digits(value) if strict else _shortest(str(data[()]))}{suffix}"


def number_value(text: str) -> tuple[int | float, str]:
    """Return the value of an unsigned literal and its dtype.

    A float without a suffix is refused, as by TVM; the value is not yet
    rounded to the dtype.

    Raises:
        ValueError: `text` is no literal of Relay.
    """
    match = _NUMBER.match(text)
    if match is None or len(text) > _MAX_DIGITS:
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise ValueError(f"{shown} is not a number")
    suffix, bits = match["suffix"], match["bits"]
    if suffix and suffix[0] == "f":
        dtype = f"float{bits or 32}"
        if dtype not in _FLOAT_SUFFIX:
            raise ValueError(f"{text}: there is no {dtype}")
        value = float(text[: len(text) - len(suffix)])
        if math.isinf(value):
            raise ValueError(f"{text} is beyond the range of floats")
        return value, dtype
    if match["fraction"] or match["exponent"]:
        raise ValueError(f"{text}: a float needs a suffix, as in {text}f")
    whole = int(match["digits"])
    if not suffix:
        return whole, "int32" if whole < 2**31 else "int64"
    dtype = f"int{bits or 32}"
    if dtype not in _INT_SUFFIX:
        raise ValueError(f"{text}: there is no literal of {dtype}")
    return whole, dtype


def escape(text: str) -> str:
    """Return a string literal, in quotes."""
    if _PLAIN.match(text):
        return f'"{text}"'
    parts = []
    for char in text:
        if char in _ESCAPES:
            parts.append(_ESCAPES[char])
        elif " " <= char <= "~":
            parts.append(char)
        else:
            parts += [f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass")]
    return f'"{"".join(parts)}"'


def unescape(text: str) -> str:
    """Return the string that a literal, without its quotes, stands for.

    Raises:
        ValueError: An escape is unknown, or the bytes are not UTF-8.
    """
    if "\\" not in text:
        return text
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPED.finditer(text):
        parts.append(text[end : match.start()].encode("utf-8", "surrogatepass"))
        code = match[1]
        if code[0] == "x" and len(code) == 3:
            parts.append(bytes([int(code[1:], 16)]))
        elif code in _UNESCAPE:
            parts.append(_UNESCAPE[code])
        else:
            raise ValueError(f"unknown escape \\{code}")
        end = match.end()
    parts.append(text[end:].encode("utf-8", "surrogatepass"))
    return b"".join(parts).decode("utf-8", "surrogatepass")

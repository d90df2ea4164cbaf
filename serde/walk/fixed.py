"""Values of inputs that a caller fixes, which are constants of the graph then."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any as AnyValue
from typing import Final

import numpy as np

from serde.core.weights import Array, numpy_dtype
from serde.errors import FormatError, OptionError

__all__ = ["fixed_value", "parse_fixed"]

_WORDS: Final = {"true": True, "false": False}


def parse_fixed(values: Iterable[str]) -> dict[str, AnyValue]:
    """Return numbers, lists of these and paths by input, of texts such as ``sr=16000``."""
    found: dict[str, AnyValue] = {}
    for value in values:
        name, equals, text = value.rpartition("=")
        if not (name and equals and text) or name in found:
            raise OptionError(f"--fix-input {value}: expected NAME=VALUE, once for each input")
        found[name] = text if text.endswith(".npy") else _numbers(value, text)
    return found


def _numbers(value: str, text: str) -> AnyValue:
    try:
        items = [_WORDS[item] if item in _WORDS else _number(item) for item in text.split(",")]
    except ValueError:
        what = "expected numbers, or the path of a .npy file"
        raise OptionError(f"--fix-input {value}: {what}") from None
    return items if len(items) > 1 else items[0]


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def fixed_value(name: str, given: AnyValue, shape: Sequence[AnyValue], dtype: str) -> Array:
    """Return the value of an input; one number stands for a tensor of them.

    Args:
        name: Its name.
        given: A number, a list, an array, or the path of a ``.npy`` file.
        shape: Its shape; what is no integer fits any length.
        dtype: Its dtype.

    Raises:
        FormatError: The file holds no array.
        OptionError: The value has another shape, or is none of this dtype.
    """
    where = f"fix_inputs: {name}"
    if isinstance(given, (str, os.PathLike)):
        given = _load(given)
    try:
        value = np.asarray(given)
        found = value.astype(numpy_dtype(dtype))
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{where}: expected numbers of {dtype}, found {given!r}"[:300]) from None
    if found.dtype.kind in "iub" and not np.array_equal(found, value):
        raise OptionError(f"{where}: {given!r} has a value that is none of {dtype}"[:300])
    known = [n if isinstance(n, int) else None for n in shape]
    lengths = [n for n in known if n is not None]
    if not found.ndim and shape and len(lengths) == len(known):
        return np.broadcast_to(found, lengths)
    fits = len(known) == found.ndim and all(
        n in (None, length) for n, length in zip(known, found.shape, strict=True)
    )
    if not fits:
        shown = ", ".join(map(str, shape))
        raise OptionError(f"{where}: expected the shape ({shown}), found {found.shape}")
    return found


def _load(path: str | os.PathLike[str]) -> Array:
    """Return the array of a file, of which nothing is read that it does not have."""
    if not os.path.isfile(path):
        raise OptionError(f"fix_inputs: {os.fspath(path)}: there is no such file")
    try:
        files: AnyValue = np.lib.format
        value: Array = files.open_memmap(path, mode="r")
    except Exception as error:  # NumPy lets through what Python's own parser raises
        raise FormatError(f"expected a .npy array: {error}", path=path) from error
    return value

"""Shapes, dtypes and values that the caller gives for inputs of a model."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any as AnyValue, Final, TypeVar

import numpy as np

from serde.core.weights import Array, numpy_dtype
from serde.errors import FormatError, OptionError
from serde.relay.ir.dims import DimLike

__all__ = [
    "bind_inputs", "check_names", "check_rank", "fixed_value", "missing_shapes_text", "parse_fixed",
]  # fmt: skip

T = TypeVar("T")
Shapes = Mapping[str, Sequence[DimLike]]


def bind_inputs(
    names: Sequence[str],
    shapes: Shapes,
    dtypes: Mapping[str, str],
    *,
    weights: Collection[str] = (),
    unused: Collection[str] = (),
) -> tuple[Shapes, Mapping[str, str]]:
    """Return the shapes and dtypes by input, those without a name for the only one.

    Args:
        names: The inputs.
        shapes: The shapes given.
        dtypes: The dtypes given.
        weights: Names that are weights.
        unused: Names of what would be inputs if a result depended on them.

    Raises:
        OptionError: There is no such input, or not only one.
    """
    found = _by_name(names, shapes, "shape"), _by_name(names, dtypes, "dtype")
    unknown = sorted({*found[0], *found[1]}.difference(names, unused))
    if unknown and unknown[0] in weights:
        raise OptionError(f"{unknown[0]} is a weight of the model, not an input")
    if unknown:
        raise OptionError(f"no input is called {unknown[0]}; inputs: {', '.join(names)}")
    return found


def _by_name(names: Sequence[str], given: Mapping[str, T], what: str) -> dict[str, T]:
    if "" in given and len(names) != 1:
        raise OptionError(f"a {what} without a name, but the inputs are {', '.join(names)}")
    return {name or names[0]: each for name, each in given.items()}


def check_names(names: Sequence[str], source: str | None) -> None:
    """Refuse inputs of a model of which two have one name, or one has none."""
    if "" in names:
        raise FormatError("an input without a name", path=source)
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise FormatError(f"a second input is called {twice!r}", path=source)


def check_rank(name: str, given: Sequence[DimLike], declared: Sequence[DimLike]) -> None:
    """Refuse a shape for an input that the model declares with another number of axes."""
    if len(given) != len(declared):
        raise OptionError(
            f"input_shapes: {name}: expected {len(declared)} axes, found {len(given)}"
        )


def missing_shapes_text(names: Sequence[str]) -> str:
    """Return what to say of inputs that have no shape."""
    shapes: Shapes = {names[0]: (1, 3, 224, 224)}
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return (
        f"the {'shape' if len(names) == 1 else 'shapes'} of {shown} "
        f"{'is' if len(names) == 1 else 'are'} missing; "
        f"give --input-shape {names[0]}:1,3,224,224 or input_shapes={dict(shapes)}"
    )


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

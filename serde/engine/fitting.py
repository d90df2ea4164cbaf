"""What an engine is given: inputs by its own names, in the dtypes that its model declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import Array, dtype_name, numpy_dtype
from serde.errors import CheckError, OptionError

__all__ = ["bind_inputs", "cast_exactly", "fit_inputs", "match_names"]


def match_names(wanted: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Return for each wanted name the given one that stands for it, where there is one.

    Equal names belong together. The others go by their place among those that are left, if
    as many are left on both sides.
    """
    found = {name: name for name in wanted if name in given}
    left = [name for name in wanted if name not in found]
    others = [name for name in given if name not in found]
    if len(left) == len(others):
        found |= dict(zip(left, others, strict=True))
    return found


def bind_inputs(
    names: Sequence[str], args: Sequence[AnyValue], named: Mapping[str, AnyValue]
) -> dict[str, AnyValue]:
    """Return inputs by name that were given by position, by name, or as one mapping.

    Raises:
        OptionError: Some are missing, or too many.
    """
    if len(args) == 1 and isinstance(args[0], Mapping) and not named:
        return bind_inputs(names, (), args[0])
    free = [name for name in names if name not in named]
    given = {**dict(zip(free, args, strict=False)), **named}
    faults = {
        "missing": [name for name in names if name not in given],
        "unknown": [str(name) for name in named if name not in names],
        "found more:": [f"{len(args)} by position"] if len(args) > len(free) else [],
    }
    told = [f"{fault} {', '.join(found)}" for fault, found in faults.items() if found]
    if told:
        raise OptionError(f"expected inputs {', '.join(names) or 'none'}; {', '.join(told)}")
    return given


def fit_inputs(
    engine: str, declared: Mapping[str, str], given: Mapping[str, Array]
) -> dict[str, Array]:
    """Return values for the inputs that a model declares.

    Args:
        engine: Name of the engine, for messages.
        declared: dtype of each input by name, in order; empty where it is not known.
        given: Values by the names that the source of a check has for them.

    Raises:
        CheckError: An input has no value, or one that its dtype does not hold.
    """
    names = match_names(list(declared), list(given))
    missing = [name for name in declared if name not in names]
    if missing:
        known = ", ".join(given) or "none"
        raise CheckError(f"{engine}: the source has no input {missing[0]} (there are: {known})")
    found = {}
    for name, dtype in declared.items():
        value = given[names[name]]
        cast = value if not dtype else cast_exactly(value, dtype)
        if cast is None:
            raise CheckError(
                f"{engine}: input {name}: expected {dtype}, found values of "
                f"{dtype_name(value.dtype)} that {dtype} does not hold"
            )
        found[name] = cast
    return found


def cast_exactly(value: Array, dtype: str) -> Array | None:
    """Return an array in another dtype; None if that does not hold all of its values."""
    kind = numpy_dtype(dtype)
    if value.dtype == kind:
        return value
    with np.errstate(all="ignore"):
        cast = value.astype(kind)
        back = cast.astype(value.dtype)
        # Beyond the integers on either side, the way there and back may lead to the same number.
        if not (_fits_integers(value, kind) and _fits_integers(cast, value.dtype)):
            return None
        same = (back == value) | (np.isnan(back) & np.isnan(value))
    return cast if bool(np.all(same)) else None


def _fits_integers(value: Array, kind: np.dtype[AnyValue]) -> bool:
    """Whether all values are within a dtype, if it is one of integers."""
    if kind.kind not in "iu" or not value.size:
        return True
    limits = np.iinfo(kind)
    extremes = [each.item() for each in (value.min(), value.max())]
    return all(limits.min <= end <= limits.max for end in extremes)

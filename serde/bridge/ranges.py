"""Dynamic dimensions of which the least and the greatest length are known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core import shown
from serde.errors import OptionError
from serde.relay.ir import Any, TensorType, substitute

__all__ = ["BoundedName", "bounded_axes", "declared_ranges", "integers_of", "lengths_of"]

_FORM: Final = re.compile(r"(?:([^\W\d]\w*)=)?(\d{1,18})\.\.(\d{1,18})")
_UNBOUNDED: Final = 2**31
"""Upper ends from here on say that there is none."""

Ends = tuple[int, int]


class BoundedName(str):
    """The name of a dynamic dimension, and its least and greatest length as ``ends``."""

    ends: Ends

    @classmethod
    def read(cls, given: str | range, usual: str, where: str) -> BoundedName | int:
        """Return what ``"1..8"``, ``"N=1..8"`` or ``range(1, 9)`` says; one length is a number.

        Raises:
            OptionError: It is no range of lengths; `where` is what the message begins with.
        """
        found = None if isinstance(given, range) else _FORM.fullmatch(given.replace(" ", ""))
        low, high = (int(found[2]), int(found[3])) if found else (0, 0)
        if isinstance(given, range) and given.step == 1:
            low, high = given.start, given.stop - 1
        if not 1 <= low <= high:
            raise OptionError(
                f"{where}: expected the least and the greatest length, such as 1..8 or N=1..8, "
                f"found {shown(given)}"
            )
        name = cls((found and found[1]) or usual)
        name.ends = low, high
        return low if low == high else name


def bounded_axes(
    shapes: Mapping[str, Sequence[AnyValue]], others: Mapping[str, Ends] | None = None
) -> list[tuple[str, int, BoundedName]]:
    """Return the input, the axis and the name of each dimension with bounds.

    Raises:
        OptionError: One has two ranges, or another than `others` have.
    """
    known, found = dict(others or {}), []
    for key, shape in shapes.items():
        for axis, name in enumerate(shape):
            if isinstance(name, BoundedName):
                found.append((key, axis, name))
                low, high = known.setdefault(str(name), name.ends)
                if name.ends != (low, high):
                    what = f"{name} is both {low}..{high} and {name.ends[0]}..{name.ends[1]}"
                    raise OptionError(f"input_shapes: {key or 'the input'}: {what}")
    return found


def declared_ranges(extra: Mapping[str, str]) -> dict[str, tuple[int, int | None, int]]:
    """Return least, greatest and default length by dimension, of facts ``<symbol>.range``.

    None stands for no end. A default of 0 says that the bounds are those of a trace, and no sizes
    that anybody asked for.
    """
    found = {}
    for fact, text in extra.items():
        parts = integers_of(text, ":") if fact.endswith(".range") else ()
        if len(parts) == 3:
            least, greatest = max(parts[0], 1), parts[1] if 0 < parts[1] < _UNBOUNDED else None
            default = max(parts[2], least) if parts[2] else 0
            found[fact.removesuffix(".range")] = least, greatest, default
    return found


def integers_of(text: str, separator: str) -> tuple[int, ...]:
    """Return the integers in a fact about a model; none where it is another text."""
    try:
        return tuple(map(int, text.split(separator)))
    except ValueError:
        return ()


def lengths_of(name: str, type_: TensorType, shape: Sequence[int]) -> dict[str, int] | None:
    """Return the lengths that a shape gives the dimensions of an input; None if it does not fit.

    One without a name is called ``data[2]`` by its input and axis. Of a dimension that is computed
    of symbols, only one that they do not tell is taken.
    """
    if len(type_.shape) != len(shape):
        return None
    found: dict[str, int] = {}
    for axis, (dim, length) in enumerate(zip(type_.shape, shape, strict=True)):
        label = f"{name}[{axis}]" if isinstance(dim, Any) else getattr(dim, "name", None)
        if label is not None and found.setdefault(label, length) != length:
            return None
    pairs = [
        (substitute(dim, found), length) for dim, length in zip(type_.shape, shape, strict=True)
    ]
    return found if all(dim == length for dim, length in pairs if isinstance(dim, int)) else None

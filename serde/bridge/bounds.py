"""Dynamic dimensions of which a caller says the least and the greatest length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core import Report, replace, shown
from serde.errors import OptionError
from serde.relay.ir import RelayModel, SymDim, TensorType

__all__ = [
    "BoundedName",
    "Bounds",
    "bounds_by_name",
    "check_same_bounds",
    "known_bounds",
    "with_bounds",
]

_FORM: Final = re.compile(r"(?:(?P<name>[^\W\d]\w*)=)?(?P<lower>\d{1,18})\.\.(?P<upper>\d{1,18})")
_FACT: Final = re.compile(r"(\d{1,18}):(\d{1,9}):\d{1,18}")
"""The fact ``<symbol>.range`` of a length with two ends."""

Shapes = Mapping[str, Sequence[AnyValue]]
Bounds = tuple[int, int]


class BoundedName(str):
    """The name of a dynamic dimension with bounds; to whoever knows of none, its name.

    Attributes:
        bounds: Its least and its greatest length.
    """

    bounds: Bounds

    @classmethod
    def read(cls, given: str | range, usual: str, where: str) -> BoundedName | int:
        """Return what ``"1..8"``, ``"N=1..8"`` or ``range(1, 9)`` says; one length is a number.

        Args:
            given: The bounds.
            usual: The name of a dimension that has none.
            where: What a message begins with.

        Raises:
            OptionError: It is no range of lengths.
        """
        found = _FORM.fullmatch(given.replace(" ", "")) if isinstance(given, str) else None
        lower, upper = (0, 0) if isinstance(given, str) else (given.start, given.stop - 1)
        if found is not None:
            lower, upper = int(found["lower"]), int(found["upper"])
        if not 1 <= lower <= upper or (isinstance(given, range) and given.step != 1):
            raise OptionError(
                f"{where}: expected a range of lengths such as 1..8 or N=1..8, from the least, at "
                f"least 1, to the greatest, found {shown(given)}"
            )
        if lower == upper:
            return lower
        name = cls((found and found["name"]) or usual)
        name.bounds = lower, upper
        return name


def _bounded(shapes: Shapes) -> Iterator[tuple[str, int, BoundedName]]:
    """Yield the input, the axis and the name of each dimension with bounds."""
    for key, shape in shapes.items():
        yield from ((key, at, dim) for at, dim in enumerate(shape) if isinstance(dim, BoundedName))


def bounds_by_name(shapes: Shapes) -> dict[str, Bounds]:
    """Return the least and the greatest length of dimensions by name.

    Raises:
        OptionError: A dimension has two ranges.
    """
    found: dict[str, Bounds] = {}
    for key, _, name in _bounded(shapes):
        known = found.setdefault(str(name), name.bounds)
        check_same_bounds(f"input_shapes: {key or 'the input'}: {name}", name.bounds, known)
    return found


def check_same_bounds(where: str, one: Bounds, other: Bounds) -> None:
    """Refuse two ranges of a dimension that differ.

    Raises:
        OptionError: They do.
    """
    if one != other:
        raise OptionError(f"{where}: both {_text(one)} and {_text(other)} are given")


def _text(bounds: Bounds) -> str:
    return f"{bounds[0]}..{bounds[1]}"


def known_bounds(extra: Mapping[str, str]) -> dict[str, Bounds]:
    """Return the bounds that facts of a model tell, by the name of a dimension."""
    facts = {name: _FACT.fullmatch(text) for name, text in extra.items()}
    return {
        name.removesuffix(".range"): (int(each[1]), int(each[2]))
        for name, each in facts.items()
        if each is not None and name.endswith(".range")
    }


def with_bounds(model: RelayModel, shapes: Shapes, report: Report) -> RelayModel:
    """Return a model with facts ``<symbol>.range`` of the bounds that a caller gives.

    The default is the length that the source has, where it has one within the bounds.

    Args:
        model: The model, read with these shapes.
        shapes: Shapes by input, some dimensions of them with bounds.
        report: Gets a note.

    Raises:
        OptionError: The source has a narrower range, or fixes the length.
    """
    inputs = {each.name_hint: each.type for each in model.inputs()}
    own = model.meta.opened.lengths if model.meta.opened is not None else {}
    extra, before = dict(model.meta.extra), known_bounds(model.meta.extra)
    told: dict[str, str] = {}
    for key, axis, name in _bounded(shapes):
        input_ = key or next(iter(inputs), "")
        type_ = inputs.get(input_)
        dim = type_.shape[axis] if isinstance(type_, TensorType) else None
        if not isinstance(dim, SymDim) or dim.name is None:
            where = f"input_shapes: {input_}: axis {axis}"
            raise OptionError(f"{where} is {dim} here, found {_text(name.bounds)}")
        lower, upper = name.bounds
        known = before.get(f"{input_}_{axis}", before.get(dim.name, name.bounds))
        if lower < known[0] or upper > known[1]:
            raise OptionError(
                f"input_shapes: {input_}: axis {axis}: the source takes {_text(known)}, "
                f"found {_text(name.bounds)}"
            )
        default = own.get(dim.name, lower)
        default = default if lower <= default <= upper else lower
        extra[f"{dim.name}.range"] = f"{lower}:{upper}:{default}"
        told[dim.name] = f"{dim.name} is {lower} to {upper}"
    if told:
        report.notes.append(f"lengths as they were given: {'; '.join(told.values())}")
    return replace(model, meta=replace(model.meta, extra=extra)) if told else model

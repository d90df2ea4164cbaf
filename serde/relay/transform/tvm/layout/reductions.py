"""How reductions follow layouts."""

from __future__ import annotations

from collections.abc import Sequence

from serde.relay.ir.expr import Attrs
from serde.relay.ir.layout import Axis, TensorLayout
from serde.relay.ir.shapes import normalize_axis
from serde.relay.ir.types import Type
from serde.relay.transform.tvm.layout.inference import (
    InferCorrectLayoutOutput,
    Layouts,
    changed,
    rank_of,
    unknown,
)

__all__ = ["infer_reduction"]


def infer_reduction(
    attrs: Attrs, new: Layouts | None, old: Layouts, types: Sequence[Type | None]
) -> InferCorrectLayoutOutput:
    """Axes that are left keep their order; of blocks that are reduced, blocks of 1 are left.

    The operand beside the data, a mean, has the axes of the data, those reduced of length 1.
    """
    layout = old[0]
    rank = rank_of(types[0])
    if layout is None or rank != len(layout):
        return unknown(attrs, len(old))
    reduced = _reduced_axes(attrs, rank)
    letters = [layout[axis] for axis in reduced]
    target = new[0] if new is not None and reduced else layout
    if target is None or target == layout:
        return _result(attrs, layout, set(letters), len(old))
    partly = any(
        (axis.letter in letters) != (axis.letter.upper() in letters) for axis in layout.axes
    )
    if partly or not _keeps_positions(attrs, letters, target):
        return _result(attrs, layout, set(letters), len(old))
    wanted = {letter.upper() for letter in letters}
    exclude = attrs["exclude"]
    axes = tuple(place for place, each in enumerate(target) if (each.upper() in wanted) != exclude)
    both = wanted | {letter.lower() for letter in wanted}
    return _result(changed(attrs, axis=axes), target, both, len(old))


def _reduced_axes(attrs: Attrs, rank: int) -> list[int]:
    given = attrs["axis"]
    if given is None:
        return list(range(rank))
    axes = {normalize_axis(axis, rank) for axis in given}
    if attrs["exclude"]:
        axes = set(range(rank)) - axes
    return sorted(axes)


def _keeps_positions(attrs: Attrs, letters: Sequence[str], target: TensorLayout) -> bool:
    """Whether elements that are reduced keep their order, where the result is a position."""
    if "select_last_index" not in attrs:
        return True
    wanted = {letter.upper() for letter in letters}
    found: list[str] = []
    for letter in target:
        if letter.upper() in wanted and found[-1:] != [letter.upper()]:
            found.append(letter.upper())
    before: list[str] = []
    for letter in letters:
        if before[-1:] != [letter.upper()]:
            before.append(letter.upper())
    return found == before


def _result(
    attrs: Attrs, layout: TensorLayout, reduced: set[str], operands: int
) -> InferCorrectLayoutOutput:
    single = [
        Axis(axis.letter, 1) if not axis.whole and axis.letter in reduced else axis
        for axis in layout.axes
    ]
    left = single if attrs["keepdims"] else [a for a in single if a.letter not in reduced]
    if not left:
        return unknown(attrs, operands)
    inputs = (layout, TensorLayout(single))[:operands]
    return InferCorrectLayoutOutput(inputs, (TensorLayout(left),), attrs)

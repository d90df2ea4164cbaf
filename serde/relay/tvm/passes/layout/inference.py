"""Layouts of operands and results: what TVM calls the correct layouts of an operator.

An inference gets the attributes of a call, the layouts that its operands have come to have (None
where no operand has changed yet), those that they had, and the types of the operands as they were.
It says what layouts the operands must have, what the results then have, and the attributes that go
with them. Layouts of a tuple's fields stand one after another; a layout that is not known is None.

Source: ``infer_layout_utils`` and ``FInferCorrectLayout`` of TVM 0.18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue

from serde.core.records import dataclass
from serde.relay.ir import Attrs, TensorType, Type, normalize_axis
from serde.relay.ir.layout import SCALAR, Axis, TensorLayout

__all__ = [
    "InferCorrectLayoutOutput", "Inference", "Layouts", "New", "Output", "Types",
    "broadcast_layouts", "changed", "infer_broadcast", "infer_elementwise", "new_axes", "rank_of",
    "target_of", "unknown",
]  # fmt: skip

Layouts = Sequence[TensorLayout | None]
New = Layouts | None
Types = Sequence[Type | None]


@dataclass(frozen=True)
class InferCorrectLayoutOutput:
    """What an inference says.

    Attributes:
        input_layouts: Layouts that the operands must have.
        output_layouts: Layouts of the results.
        new_attrs: Attributes of the call in these layouts.
    """

    input_layouts: Layouts
    output_layouts: Layouts
    new_attrs: Mapping[str, AnyValue]


Output = InferCorrectLayoutOutput
Inference = Callable[[Attrs, New, Layouts, Types], Output]


def unknown(attrs: Attrs, operands: int, results: int = 1) -> InferCorrectLayoutOutput:
    """Say that no layout is known, so that the call stays as it was."""
    return InferCorrectLayoutOutput((None,) * operands, (None,) * results, attrs)


def changed(attrs: Attrs, **values: AnyValue) -> Attrs:
    """Return attributes with other values."""
    return Attrs({**attrs, **values})


def target_of(new: New) -> TensorLayout | None:
    """Return the layout that the first operand has come to have, None where there is none."""
    return new[0] if new else None


def new_axes(
    axes: Sequence[int], new: New, old: Layouts, type_: Type | None
) -> tuple[int, ...] | None:
    """Return where axes are in the new layout of the data; None if they are to stay."""
    before, target = old[0], target_of(new)
    if before is None or target is None or rank_of(type_) != len(before):
        return None
    letters = [before[normalize_axis(axis, len(before))] for axis in axes]
    if any(each.islower() or target.factor_of(each) > 0 for each in letters):
        return None
    places = tuple(target.index_of(each) for each in letters)
    return None if -1 in places else places


def rank_of(type_: Type | None) -> int:
    """Return the rank of a tensor, or -1."""
    return type_.rank if isinstance(type_, TensorType) else -1


def infer_elementwise(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """All operands and the result have the layout that comes in."""
    layout = new[0] if new is not None else next((each for each in old if each is not None), None)
    return InferCorrectLayoutOutput((layout,) * len(old), (layout,), attrs)


def infer_broadcast(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """The operand with fewer axes is changed as the other one is, so that they still broadcast."""
    inputs, result = broadcast_layouts(new, old[:2], types[:2])
    return InferCorrectLayoutOutput(inputs, (result,), attrs)


def broadcast_layouts(
    new: Layouts | None, old: Layouts, types: Sequence[Type | None]
) -> tuple[Layouts, TensorLayout | None]:
    """Return the layouts of two operands that broadcast, and of the result."""
    nothing: tuple[Layouts, None] = ((None, None), None)
    layouts = _complete_pair(old, types)
    larger = 0 if rank_of(types[0]) >= rank_of(types[1]) else 1
    if new is None:
        return nothing if layouts is None else (layouts, layouts[larger])
    first, second = new[:2]
    if layouts is None or first is None or second is None:
        return nothing
    large = 0 if first.rank >= second.rank else 1
    small = 1 - large
    moved = (first, second)[large]
    target = transform_like(layouts[small], layouts[large], moved)
    small_type = types[small]
    if target is None or not isinstance(small_type, TensorType):
        return nothing
    adjusted = _adjust_factors(target, layouts[small], small_type)
    pair = (moved, adjusted) if large == 0 else (adjusted, moved)
    return pair, (first, second)[larger]


def _complete_pair(
    old: Layouts, types: Sequence[Type | None]
) -> tuple[TensorLayout, TensorLayout] | None:
    """Return both layouts; one that is not known is the end of the other, if its rank allows."""
    first, second = old
    if first is not None and second is not None:
        return first, second
    known = first or second if first is not None else second
    if known is None:
        return None
    ranks = (rank_of(types[0]), rank_of(types[1]))
    have, want = ranks if first is not None else ranks[::-1]
    if want < 0 or have < want:
        return None
    rest = known.part(have - want, want)
    if rest is None:
        return None
    return (known, rest) if first is not None else (rest, known)


def _are_isomorphic(left: TensorLayout, right: TensorLayout) -> bool:
    """Whether two layouts differ in the names of their axes at most."""
    if len(left) != len(right):
        return False
    forward: dict[str, str] = {}
    back: dict[str, str] = {}
    for a, b in zip(left.axes, right.axes, strict=True):
        if a.whole != b.whole or a.factor != b.factor:
            return False
        if forward.setdefault(a.letter, b.letter) != b.letter:
            return False
        if back.setdefault(b.letter, a.letter) != a.letter:
            return False
    return True


def transform_like(
    layout: TensorLayout, reference: TensorLayout, target: TensorLayout
) -> TensorLayout | None:
    """Return what `layout` becomes if it changes as `reference` changes to `target`.

    The two broadcast: the shorter one is the end of the longer one, under names of its own. None
    where an axis of the rest goes into one of that end, so that there is no such change.
    """
    long, short = (reference, layout) if len(reference) > len(layout) else (layout, reference)
    end = long.part(len(long) - len(short), len(short))
    rest = long.part(0, len(long) - len(short))
    if end is None or rest is None or not _are_isomorphic(end, short):
        return None
    if any(axis.letter.upper() in end or axis.letter.lower() in end for axis in rest.axes):
        return None
    if len(layout) == 0:
        return layout
    names = _match_names(layout, reference)
    axes = []
    for axis in target.axes:
        name = names.get(axis.letter.upper())
        if name is None:
            return None
        axes.append(Axis(name if axis.whole else name.lower(), axis.factor))
    return TensorLayout(axes)


def _match_names(layout: TensorLayout, reference: TensorLayout) -> dict[str, str]:
    """Return for each letter of `reference` the one that `layout` has for it, or a free one."""
    pairs = zip(reversed(reference.axes), reversed(layout.axes), strict=False)
    names = {ours.letter.upper(): own.letter.upper() for ours, own in pairs}
    used = set(names.values()) | {axis.letter.upper() for axis in layout.axes}
    for axis in reversed(reference.axes):
        letter = axis.letter.upper()
        if letter in names:
            continue
        free = (each for each in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if each not in used)
        names[letter] = letter if letter not in used else next(free)
        used.add(names[letter])
    return names


def _adjust_factors(target: TensorLayout, layout: TensorLayout, type_: TensorType) -> TensorLayout:
    """Return `target` with blocks of 1 for axes of length 1, and for those that are added.

    An axis that was in blocks before keeps its blocks, whatever its length.
    """
    axes = []
    for axis in target.axes:
        if not axis.whole:
            place = layout.index_of(axis.letter.upper())
            single = place >= 0 and type_.shape[place] == 1 and axis.letter not in layout
            if place < 0 or single:
                axes.append(Axis(axis.letter, 1))
                continue
        axes.append(axis)
    return TensorLayout(axes) if axes else SCALAR

"""Ranges of operands, and parts that only some inputs reach, as declarations state them.

A rule gives, for a call of its operator, operands with the least and greatest value that they
may have. What must be so, :class:`~serde.relay.ir.traits.InRange` states: an index beyond its
table is an error, or reads what is not there. What :class:`~serde.relay.ir.traits.UsuallyInRange`
states is not an error otherwise, but not what such an input is in use: a mask of zeros and ones,
a length that positions are compared with.

A rule of :class:`~serde.relay.ir.traits.Cases` looks at a call's attributes, its operands and its
result, and yields each part with whether any element reached it. What only guards against numbers
that nothing reaches, such as a clip to the range of a dtype, is no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any as AnyValue

import numpy as np

from serde.relay.ir.dims import substitute
from serde.relay.ir.expr import Call, Constant, Expr, Op, Tuple
from serde.relay.ir.registry import trait_of
from serde.relay.ir.traits import CaseRule, Moves, Range, RangeRule
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import children

__all__ = [
    "COUNT", "UNBOUNDED", "advanced_indices", "along_axis", "along_operand", "bag_indices",
    "below_depth", "below_operand_depth", "boolean_mask", "boxes_suppressed", "cache_positions",
    "cast_to_bool", "class_labels", "clipped", "compared_lengths", "compared_truths",
    "condition", "coordinates", "either_operand", "flat_indices", "increasing_range",
    "integer_divisor", "integer_powers", "label_lengths", "mask_factor", "pooled_indices",
    "rows_suppressed", "scores_valid", "sequence_lengths", "sequence_position", "shape_of",
    "slice_ends", "truth_values", "within",
]  # fmt: skip

RangeConstraint = tuple[Expr, Range]

UNBOUNDED = 2**62
"""Beyond the range of what is drawn: no limit on that side."""

COUNT = (1, 8)
"""How large a number is that says how much is computed."""

_LARGE = 1e3
"""A factor or filler from here on blots out what a mask hides."""


def shape_of(node: Expr, lengths: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of an operand; a length that is not known counts as 1, the safe bound."""
    if not isinstance(node.type, TensorType):
        return ()
    dims = (substitute(dim, lengths) for dim in node.type.shape)
    return tuple(dim if isinstance(dim, int) else 1 for dim in dims)


def _is_integer(node: Expr) -> bool:
    return isinstance(node.type, TensorType) and "int" in node.type.dtype


def along_axis(operand: int, attribute: str, *, least: int = 0, below: bool = False) -> RangeRule:
    """Return a rule: `operand` counts along an axis of operand 0 that an attribute names.

    Args:
        operand: Which one.
        attribute: What names the axis; None for the flat tensor.
        least: 0 for indices, 1 for lengths.
        below: Whether indices below 0 count from the end.
    """

    def find(node: Call, lengths: Mapping[str, int]) -> list[RangeConstraint]:
        if operand >= len(node.args):
            return []
        shape = shape_of(node.args[0], lengths)
        axis = node.attrs[attribute]
        length = int(np.prod(shape)) if axis is None or not shape else shape[axis]
        low = -length if below else least
        return [(node.args[operand], (low, length if least else length - 1))]

    return find


def coordinates(*, batch: str | None, last: bool) -> RangeRule:
    """Return a rule: an axis of the indices counts axes of the data."""

    def find(node: Call, lengths: Mapping[str, int]) -> list[RangeConstraint]:
        shape, indices = (shape_of(each, lengths) for each in node.args[:2])
        first = node.attrs[batch] if batch is not None else 0
        count = (indices or (1,))[-1 if last else 0]
        length = min(shape[first : first + count], default=0)
        return [(node.args[1], (-length if last else 0, length - 1))] if length else []

    return find


def within(index: int, bounds: Range) -> RangeRule:
    """Return a rule: one operand, where it is given, has bounds that depend on nothing."""

    def find(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
        return [(node.args[index], bounds)] if index < len(node.args) else []

    return find


def along_operand(operand: int, table: int, axis: int, *, least: int = 0) -> RangeRule:
    """Return a rule: an operand counts along an axis of another one."""

    def find(node: Call, lengths: Mapping[str, int]) -> list[RangeConstraint]:
        shape = shape_of(node.args[table], lengths)
        if operand >= len(node.args) or not shape:
            return []
        length = shape[axis]
        return [(node.args[operand], (least, length if least else length - 1))]

    return find


def class_labels(node: Call, lengths: Mapping[str, int]) -> list[RangeConstraint]:
    """Of a loss: classes are the second axis of the scores, or the only one."""
    return [(node.args[1], (0, shape_of(node.args[0], lengths)[:2][-1] - 1))]


def below_depth(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    return [(node.args[0], (0, int(node.attrs["depth"]) - 1))]


def below_operand_depth(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    depth = node.args[3]
    known = int(depth.data.reshape(-1)[0]) if isinstance(depth, Constant) else COUNT[0]
    return [(node.args[0], (0, known - 1)), (depth, COUNT)]


def advanced_indices(node: Call, lengths: Mapping[str, int]) -> list[RangeConstraint]:
    fields = node.args[0].fields if isinstance(node.args[0], Tuple) else ()
    shape = shape_of(fields[0], lengths) if fields else ()
    return [(index, (-n, n - 1)) for index, n in zip(fields[1:], shape, strict=False)]


def flat_indices(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    shape = node.args[1]
    if not isinstance(shape, Constant):
        return []
    return [(node.args[0], (0, int(np.prod(shape.data)) - 1))]


def integer_divisor(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    """A division of integers by zero ends some engines."""
    return [(node.args[1], (1, UNBOUNDED))] if _is_integer(node.args[1]) else []


def cache_positions(node: Call, lengths: Mapping[str, int]) -> list[RangeConstraint]:
    if len(node.args) < 3:
        return []
    axis = node.attrs["axis"]
    whole, part = (shape_of(each, lengths)[axis] for each in node.args[:2])
    return [(node.args[2], (0, max(0, whole - part)))]


def sequence_lengths(node: Call, lengths: Mapping[str, int]) -> list[RangeConstraint]:
    time = shape_of(node.args[0], lengths)[node.attrs["layout"].index("T")]
    return [(node.args[4], (1, time))] if len(node.args) > 4 else []


def bag_indices(node: Call, lengths: Mapping[str, int]) -> list[RangeConstraint]:
    rows = shape_of(node.args[0], lengths)[0]
    count = shape_of(node.args[1], lengths)[0]
    found: list[RangeConstraint] = [(node.args[1], (0, rows - 1))]
    return [*found, (node.args[2], (0, count))] if len(node.args) > 2 else found


def label_lengths(node: Call, lengths: Mapping[str, int]) -> list[RangeConstraint]:
    """Of the loss of a sequence: data is (time, batch, classes), 0 or the last is no label."""
    time, _, classes = shape_of(node.args[0], lengths)
    labels = shape_of(node.args[1], lengths)[-1]
    bounds = [(1, max(1, classes - 2)), (1, time), (1, labels)]
    return list(zip(node.args[1:], bounds, strict=False))


def increasing_range(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    """An ``arange`` is to have elements, so it begins at less than it ends, or at more."""
    start, stop, step = node.args
    if isinstance(start, Constant):
        return [(stop, (1, 64)), (step, (1, 4))]
    less, more = (0, COUNT[1]), (COUNT[1] + 1, 64)
    if isinstance(step, Constant) and bool(np.all(step.data < 0)):
        less, more = more, less
    return [(start, less), (stop, more), (step, (1, 4))]


def pooled_indices(node: Call, lengths: Mapping[str, int]) -> list[RangeConstraint]:
    return [(node.args[1], (0, int(np.prod(shape_of(node, lengths))) - 1))]


def sequence_position(operand: int, *, end: bool = False) -> RangeRule:
    """Return a rule: an operand is a position in a sequence, or the one after its last."""

    def find(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
        given = node.args[0]
        count = 0 if end else 1
        if isinstance(given, Call) and getattr(given.op, "name", "") == "serde.sequence_construct":
            count = len(getattr(given.args[0], "fields", ())) or count
        return [(node.args[operand], (0, count if end else count - 1))]

    return find


def slice_ends(node: Call, lengths: Mapping[str, int]) -> list[RangeConstraint]:
    """Of a slice, neither nothing nor all: it begins in the first half and ends in the other."""
    begin, end, steps = node.args[1:4]
    if isinstance(steps, Constant) and bool(np.any(steps.data < 0)):
        return []
    shape, axes = shape_of(node.args[0], lengths), node.attrs["axes"]
    sliced = shape if axes is None else [shape[axis] for axis in axes]
    length = max(1, min(sliced, default=1))
    half = (length - 1) // 2
    is_size = node.attrs["slice_mode"] == "size"
    last = (1, length - half) if is_size else (half + 1, length)
    return [(begin, (0, half)), (end, last), (steps, (1, 2))]


def integer_powers(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    """Integers beyond their range are what each engine makes of them."""
    if not _is_integer(node.args[0]) or isinstance(node.args[1], Constant):
        return []
    return [(operand, (0, 7)) for operand in node.args]


def truth_values(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    return [(operand, (0, 1)) for operand in node.args]


def condition(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    return [(node.args[0], (0, 1))]


def cast_to_bool(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    return [(node.args[0], (0, 1))] if node.attrs["dtype"] == "bool" else []


def compared_lengths(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    """An order beside positions asks for a length."""
    found: list[RangeConstraint] = []
    for operand, other in (node.args, node.args[::-1]):
        positions = _positions(other)
        if positions is not None:
            found.append((operand, (positions[0] + 1, positions[1] + 1)))
    return found


def compared_truths(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    """An integer that is compared with 0 or 1 is a truth."""
    found: list[RangeConstraint] = []
    for operand, other in (node.args, node.args[::-1]):
        is_truth = isinstance(other, Constant) and set(np.unique(other.data).tolist()) <= {0, 1}
        if is_truth and _is_integer(operand):
            found.append((operand, (0, 1)))
    return found


def _positions(node: Expr) -> Range | None:
    """Return the ends of consecutive numbers, of a constant or an ``arange``."""
    while _rearranges(node):
        node = children(node)[0]
    if isinstance(node, Constant) and node.data.size > 1 and node.data.dtype.kind in "iuf":
        steps = np.diff(np.unique(node.data))
        if steps.size and bool(np.all(steps == 1)):
            return int(node.data.min()), int(node.data.max())
    if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "arange":
        ends = [each.data for each in node.args if isinstance(each, Constant)]
        if len(ends) == 3 and int(ends[2]) == 1 and ends[1] > ends[0] + 1:
            return int(ends[0]), int(ends[1]) - 1
    return None


def _rearranges(node: Expr) -> bool:
    """Whether a node has all values of its first operand, and no others, but for rounding."""
    moves = trait_of(node, Moves)
    return (moves is not None and moves.all) or (
        isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "cast"
    )


def mask_factor(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    """Return what is one less a mask, times a large number."""
    found: list[RangeConstraint] = []
    for operand, factor in (node.args, node.args[::-1]):
        large = isinstance(factor, Constant) and bool(np.all(np.abs(factor.data) >= _LARGE))
        if large and isinstance(operand, Call) and isinstance(operand.op, Op):
            first = operand.args[0] if operand.op.name == "subtract" else None
            if isinstance(first, Constant) and bool(np.all(first.data == 1)):
                found.append((operand, (0, 1)))
    return found


def boolean_mask(node: Call, _lengths: Mapping[str, int]) -> list[RangeConstraint]:
    mask = node.args[3] if len(node.args) > 3 else None
    is_truth = mask is not None and getattr(mask.type, "dtype", "") == "bool"
    return [(mask, (0, 1))] if mask is not None and is_truth else []


Attrs = Mapping[str, AnyValue]

_GUARD = 65504.0
"""The largest float16: a limit from here on guards a range."""


def clipped(
    low: str | float, high: str | float, factor: str = "", term: str | float = 0.0
) -> CaseRule:
    """Return a rule: floats are cut below `low` and above `high`, numbers or attributes.

    Args:
        low: The least value.
        high: The greatest value.
        factor: Attribute by which the operand is multiplied first.
        term: Number, or attribute, that is added then.
    """

    def rule(attrs: Attrs, args: AnyValue, _result: AnyValue) -> Iterator[tuple[str, bool]]:
        given = [attrs[each] if isinstance(each, str) else each for each in (low, high, term)]
        value = args[0]
        if value.dtype.kind == "f" and value.size:
            value = value * (attrs[factor] if factor else 1.0) + given[2]
            if abs(given[0]) < _GUARD:
                yield f"below {given[0]:g}", bool((value < given[0]).any())
            if abs(given[1]) < _GUARD:
                yield f"above {given[1]:g}", bool((value > given[1]).any())

    return rule


def either_operand(_attrs: Attrs, args: AnyValue, result: AnyValue) -> Iterator[tuple[str, bool]]:
    """Yield whether each of two operands gives some elements; one that guards is none."""
    first, second = args
    if result.dtype.kind != "f":
        return
    for index, (own, other) in enumerate(((first, second), (second, first))):
        if own.size and other.size and np.abs(own).min() < _GUARD > np.abs(other).min():
            taken = (own == result) & (own != other)
            yield f"operand {index}", bool(taken.any())


def scores_valid(_attrs: Attrs, args: AnyValue, result: AnyValue) -> Iterator[tuple[str, bool]]:
    """Yield whether some rows pass a threshold, and some do not."""
    yield "a row above the threshold", bool((result[0] > 0).any())
    yield "a row below the threshold", bool((result[0] < args[0].shape[1]).any())


def rows_suppressed(count: int | None = None) -> CaseRule:
    """Return a rule: some rows stay, and some of those that count are marked by -1.

    Args:
        count: Operand that tells how many rows of each image count; all of them if left out.
    """

    def rule(_attrs: Attrs, args: AnyValue, result: AnyValue) -> Iterator[tuple[str, bool]]:
        first = result[0] if isinstance(result, tuple) else result
        stays = first[..., 0] >= 0 if first.ndim > 2 else first >= 0
        rows = stays.size if count is None else int(args[count].sum())
        yield "a row that stays", bool(stays.any())
        yield "a row suppressed", int(stays.sum()) < rows

    return rule


def boxes_suppressed(_attrs: Attrs, args: AnyValue, result: AnyValue) -> Iterator[tuple[str, bool]]:
    """Yield whether scores lie on both sides of their threshold, and overlaps decide."""
    _boxes, scores, most, _overlap, least = args
    # What is left out is None, or an empty tuple.
    bound = np.max(least) if np.size(least) and least is not None else -np.inf
    limit = np.max(most) if np.size(most) and most is not None else 0
    above = (scores > bound).sum(-1)
    if limit > 0:
        above = np.minimum(above, limit)
    kept = int(result[-1].sum()) if isinstance(result, tuple) else len(result)
    if np.isfinite(bound):
        yield "a score below the threshold", bool((scores <= bound).any())
    yield "a box that stays", kept > 0
    yield "a box suppressed", kept < int(above.sum())

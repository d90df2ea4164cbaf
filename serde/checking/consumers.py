"""Operands that must lie in a range: indices, lengths, counts, divisors; and those that should.

A rule gives, for a call of its operator, operands with the least and greatest
value that they may have. What must be so is in `STRICT`: an index beyond its
table is an error, or reads what is not there. What is in `USUAL` is not an
error otherwise, but not what such an input is in use: a mask of zeros and
ones, a length that positions are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from serde.relay.ir.dims import substitute
from serde.relay.ir.expr import Call, Constant, Expr, Op, Tuple
from serde.relay.ir.types import TensorType

__all__ = ["STRICT", "UNBOUNDED", "USUAL", "Range", "Rule", "operands_of", "shape_of"]

Range = tuple[int, int]
Demand = tuple[Expr, Range]
Rule = Callable[[Call, Mapping[str, int]], Iterable[Demand]]

UNBOUNDED = 2**62
"""Beyond the range of what is drawn: no limit on that side."""

_COUNT = (1, 8)
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


def _along(operand: int, attribute: str, *, least: int = 0, below: bool = False) -> Rule:
    """Return a rule: `operand` counts along an axis of operand 0 that an attribute names.

    Args:
        operand: Which one.
        attribute: What names the axis; None for the flat tensor.
        least: 0 for indices, 1 for lengths.
        below: Whether indices below 0 count from the end.
    """

    def find(node: Call, lengths: Mapping[str, int]) -> list[Demand]:
        if operand >= len(node.args):
            return []
        shape = shape_of(node.args[0], lengths)
        axis = node.attrs[attribute]
        length = int(np.prod(shape)) if axis is None or not shape else shape[axis]
        low = -length if below else least
        return [(node.args[operand], (low, length if least else length - 1))]

    return find


def _coordinates(*, batch: str | None, last: bool) -> Rule:
    """Return a rule: an axis of the indices counts axes of the data."""

    def find(node: Call, lengths: Mapping[str, int]) -> list[Demand]:
        shape, indices = (shape_of(each, lengths) for each in node.args[:2])
        first = node.attrs[batch] if batch is not None else 0
        count = (indices or (1,))[-1 if last else 0]
        length = min(shape[first : first + count], default=0)
        return [(node.args[1], (-length if last else 0, length - 1))] if length else []

    return find


def _operand(index: int, bounds: Range) -> Rule:
    """Return a rule: one operand, where it is given, has bounds that depend on nothing."""

    def find(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
        return [(node.args[index], bounds)] if index < len(node.args) else []

    return find


def _rows(operand: int, table: int, axis: int, *, least: int = 0) -> Rule:
    """Return a rule: an operand counts along an axis of another one."""

    def find(node: Call, lengths: Mapping[str, int]) -> list[Demand]:
        shape = shape_of(node.args[table], lengths)
        if operand >= len(node.args) or not shape:
            return []
        length = shape[axis]
        return [(node.args[operand], (least, length if least else length - 1))]

    return find


def _classes(node: Call, lengths: Mapping[str, int]) -> list[Demand]:
    """Of a loss: classes are the second axis of the scores, or the only one."""
    return [(node.args[1], (0, shape_of(node.args[0], lengths)[:2][-1] - 1))]


def _one_hot(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    return [(node.args[0], (0, int(node.attrs["depth"]) - 1))]


def _dynamic_one_hot(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    depth = node.args[3]
    known = int(depth.data.reshape(-1)[0]) if isinstance(depth, Constant) else _COUNT[0]
    return [(node.args[0], (0, known - 1)), (depth, _COUNT)]


def _advanced(node: Call, lengths: Mapping[str, int]) -> list[Demand]:
    fields = node.args[0].fields if isinstance(node.args[0], Tuple) else ()
    shape = shape_of(fields[0], lengths) if fields else ()
    return [(index, (-n, n - 1)) for index, n in zip(fields[1:], shape, strict=False)]


def _unravel(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    shape = node.args[1]
    if not isinstance(shape, Constant):
        return []
    return [(node.args[0], (0, int(np.prod(shape.data)) - 1))]


def _divisor(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    """A division of integers by zero ends some engines."""
    return [(node.args[1], (1, UNBOUNDED))] if _is_integer(node.args[1]) else []


def _written(node: Call, lengths: Mapping[str, int]) -> list[Demand]:
    if len(node.args) < 3:
        return []
    axis = node.attrs["axis"]
    whole, part = (shape_of(each, lengths)[axis] for each in node.args[:2])
    return [(node.args[2], (0, max(0, whole - part)))]


def _sequence_lengths(node: Call, lengths: Mapping[str, int]) -> list[Demand]:
    time = shape_of(node.args[0], lengths)[node.attrs["layout"].index("T")]
    return [(node.args[4], (1, time))] if len(node.args) > 4 else []


def _bags(node: Call, lengths: Mapping[str, int]) -> list[Demand]:
    rows = shape_of(node.args[0], lengths)[0]
    count = shape_of(node.args[1], lengths)[0]
    demands: list[Demand] = [(node.args[1], (0, rows - 1))]
    return [*demands, (node.args[2], (0, count))] if len(node.args) > 2 else demands


def _loss_lengths(node: Call, lengths: Mapping[str, int]) -> list[Demand]:
    """Of the loss of a sequence: data is (time, batch, classes), 0 or the last is no label."""
    time, _, classes = shape_of(node.args[0], lengths)
    labels = shape_of(node.args[1], lengths)[-1]
    bounds = [(1, max(1, classes - 2)), (1, time), (1, labels)]
    return list(zip(node.args[1:], bounds, strict=False))


def _counted_up(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    """An ``arange`` is to have elements, so it begins at less than it ends, or at more."""
    start, stop, step = node.args
    if isinstance(start, Constant):
        return [(stop, (1, 64)), (step, (1, 4))]
    less, more = (0, _COUNT[1]), (_COUNT[1] + 1, 64)
    if isinstance(step, Constant) and bool(np.all(step.data < 0)):
        less, more = more, less
    return [(start, less), (stop, more), (step, (1, 4))]


def _unpooled(node: Call, lengths: Mapping[str, int]) -> list[Demand]:
    return [(node.args[1], (0, int(np.prod(shape_of(node, lengths))) - 1))]


def _element(operand: int, *, end: bool = False) -> Rule:
    """Return a rule: an operand is a position in a sequence, or the one after its last."""

    def find(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
        given = node.args[0]
        count = 0 if end else 1
        if isinstance(given, Call) and getattr(given.op, "name", "") == "serde.sequence_construct":
            count = len(getattr(given.args[0], "fields", ())) or count
        return [(node.args[operand], (0, count if end else count - 1))]

    return find


def _sliced(node: Call, lengths: Mapping[str, int]) -> list[Demand]:
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


def _power(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    """Integers beyond their range are what each engine makes of them."""
    if not _is_integer(node.args[0]) or isinstance(node.args[1], Constant):
        return []
    return [(operand, (0, 7)) for operand in node.args]


STRICT: Mapping[str, Rule] = {
    "adv_index": _advanced,
    "arange": _counted_up,
    "divide": _divisor,
    "dyn.full": _operand(1, _COUNT),
    "dyn.image.resize2d": _operand(1, (8, 64)),
    "dyn.nn.pad": _operand(1, (0, 3)),
    "dyn.one_hot": _dynamic_one_hot,
    "dyn.ones": _operand(0, _COUNT),
    "dyn.strided_slice": _sliced,
    "dyn.tile": _operand(1, (1, 3)),
    "dyn.topk": _along(1, "axis", least=1),
    "dyn.zeros": _operand(0, _COUNT),
    "floor_divide": _divisor,
    "floor_mod": _divisor,
    "gather": _along(1, "axis", below=True),
    "gather_nd": _coordinates(batch="batch_dims", last=False),
    "image.crop_and_resize": _rows(2, 0, 0),
    "left_shift": _operand(1, (0, 7)),
    "mod": _divisor,
    "nn.nll_loss": _classes,
    "one_hot": _one_hot,
    "power": _power,
    "reverse_sequence": _along(1, "seq_axis", least=1),
    "right_shift": _operand(1, (0, 7)),
    "scatter_elements": _along(1, "axis", below=True),
    "scatter_nd": _coordinates(batch=None, last=False),
    "sequence_mask": _along(1, "axis", least=1),
    "serde.ctc_loss": _loss_lengths,
    "serde.embedding_bag": _bags,
    "serde.gather_nd": _coordinates(batch="batch_dims", last=True),
    "serde.gru": _sequence_lengths,
    "serde.loop": _operand(0, _COUNT),
    "serde.lstm": _sequence_lengths,
    "serde.max_unpool": _unpooled,
    "serde.non_max_suppression": _operand(2, _COUNT),
    "serde.one_hot": _one_hot,
    "serde.rnn": _sequence_lengths,
    "serde.roi_align": _rows(2, 0, 0),
    "serde.rotary_embedding": _rows(3, 1, 0),
    "serde.sequence_at": _element(1),
    "serde.sequence_erase": _element(1),
    "serde.sequence_insert": _element(2, end=True),
    "serde.softmax_cross_entropy_loss": _classes,
    "serde.take": _along(1, "axis", below=True),
    "serde.tensor_scatter": _written,
    "take": _along(1, "axis"),
    "trunc_divide": _divisor,
    "trunc_mod": _divisor,
    "unravel_index": _unravel,
    "vision.all_class_non_max_suppression": _operand(2, _COUNT),
    "vision.non_max_suppression": _rows(1, 0, 1, least=1),
}
"""Operators with an operand that must lie in a range, and how that is found."""


def _truth(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    return [(operand, (0, 1)) for operand in node.args]


def _condition(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    return [(node.args[0], (0, 1))]


def _to_bool(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    return [(node.args[0], (0, 1))] if node.attrs["dtype"] == "bool" else []


def _compared(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    """An order beside positions asks for a length."""
    found: list[Demand] = []
    for operand, other in (node.args, node.args[::-1]):
        positions = _positions(other)
        if positions is not None:
            found.append((operand, (positions[0] + 1, positions[1] + 1)))
    return found


def _equated(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    """An integer that is compared with 0 or 1 is a truth."""
    found: list[Demand] = []
    for operand, other in (node.args, node.args[::-1]):
        is_truth = isinstance(other, Constant) and set(np.unique(other.data).tolist()) <= {0, 1}
        if is_truth and _is_integer(operand):
            found.append((operand, (0, 1)))
    return found


def _positions(node: Expr) -> Range | None:
    """Return the ends of consecutive numbers, of a constant or an ``arange``."""
    while isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in _REARRANGED:
        node = node.args[0]
    if isinstance(node, Constant) and node.data.size > 1 and node.data.dtype.kind in "iuf":
        steps = np.diff(np.unique(node.data))
        if steps.size and bool(np.all(steps == 1)):
            return int(node.data.min()), int(node.data.max())
    if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "arange":
        ends = [each.data for each in node.args if isinstance(each, Constant)]
        if len(ends) == 3 and int(ends[2]) == 1 and ends[1] > ends[0] + 1:
            return int(ends[0]), int(ends[1]) - 1
    return None


_REARRANGED = frozenset(["broadcast_to", "cast", "expand_dims", "reshape", "squeeze", "tile"])


def _hidden(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    """Return what is one less a mask, times a large number."""
    found: list[Demand] = []
    for operand, factor in (node.args, node.args[::-1]):
        large = isinstance(factor, Constant) and bool(np.all(np.abs(factor.data) >= _LARGE))
        if large and isinstance(operand, Call) and isinstance(operand.op, Op):
            first = operand.args[0] if operand.op.name == "subtract" else None
            if isinstance(first, Constant) and bool(np.all(first.data == 1)):
                found.append((operand, (0, 1)))
    return found


def _attention(node: Call, _lengths: Mapping[str, int]) -> list[Demand]:
    mask = node.args[3] if len(node.args) > 3 else None
    is_truth = mask is not None and getattr(mask.type, "dtype", "") == "bool"
    return [(mask, (0, 1))] if mask is not None and is_truth else []


USUAL: Mapping[str, Rule] = {
    "cast": _to_bool,
    "equal": _equated,
    "greater": _compared,
    "greater_equal": _compared,
    "less": _compared,
    "less_equal": _compared,
    "logical_and": _truth,
    "logical_not": _truth,
    "logical_or": _truth,
    "logical_xor": _truth,
    "multiply": _hidden,
    "not_equal": _equated,
    "serde.attention": _attention,
    "serde.compress": _operand(1, (0, 1)),
    "where": _condition,
}
"""Operators from which it shows what an input is in use."""


def operands_of(
    node: Expr, rules: Mapping[str, Rule], lengths: Mapping[str, int]
) -> Iterable[tuple[Expr, Range]]:
    """Yield the operands of a call that a table has a range for."""
    if not isinstance(node, Call) or not isinstance(node.op, Op):
        return
    rule = rules.get(node.op.name)
    if rule is None or any(operand.type is None for operand in node.args):
        return
    for operand, bounds in rule(node, lengths):
        if not (isinstance(operand, Tuple) and not operand.fields):  # One that is left out.
            yield operand, bounds

"""Objects in images: of boxes that overlap, the best stays."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.coreml.mlprogram.operators import HALVES
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Call, Constant, Expr, TensorType, Tuple, as_dtype, call, tensor_type
from serde.relay.op.vision.suppression import Suppression
from serde.walk.expansion.tensors import fixed_shape
from serde.walk.import_context import ImportContext as BaseContext
from serde.walk.takes import Takes, like

_FLOATS = ("float16", "float32")


def number(value: float, dtype: str) -> Expr:
    """Return a number as a constant."""
    return relay.Constant(np.array(value, numpy_dtype(dtype)))


def _corners(boxes: Expr) -> Expr:
    """Return boxes given by centre, width and height as two corners, x first."""
    x, y, width, height = relay.split(boxes, 4, axis=2)
    half = number(0.5, tensor_type(boxes).dtype)
    across, down = relay.multiply(width, half), relay.multiply(height, half)
    ends = [relay.subtract(x, across), relay.subtract(y, down)]
    ends += [relay.add(x, across), relay.add(y, down)]
    return relay.concatenate(ends, axis=2)


def suppress(
    ctx: BaseContext, boxes: Expr, scores: Expr,
    *, iou_threshold: float, score_threshold: float | None, max_boxes: int, per_class: bool,
) -> list[Expr]:  # fmt: skip
    """Return the boxes that stay, their scores, their indices, and how many there are.

    Boxes are (n, boxes, 4) and scores (n, boxes, classes). A box is of the class that it scores
    most for. Behind those that stay come zeros, and -1 among the indices.
    """
    (count,) = ctx.static_lengths(boxes, [1])
    wide = as_dtype(boxes, "float32")
    marks = as_dtype(scores, "float32")
    best = relay.max(marks, axis=(2,), keepdims=True)
    kind = relay.cast(relay.argmax(marks, axis=(2,), keepdims=True), "float32")
    line = allocation.arange(count, dtype=np.float32).reshape(1, count, 1)
    place = relay.add(relay.zeros_like(best), relay.Constant(line))
    # Suppression leaves out what does not score above zero: the scores that count are moved there.
    least = float(np.finfo(np.float32).min) if score_threshold is None else score_threshold
    taking = relay.greater_equal(best, number(least, "float32"))
    counted = relay.where(taking, best, number(np.inf, "float32"))
    low = relay.min(counted, axis=(1,), keepdims=True)
    lifted = relay.add(relay.subtract(best, low), number(1.0, "float32"))
    lifted = relay.where(taking, lifted, number(-1.0, "float32"))
    rows = relay.concatenate([kind, lifted, _corners(wide), place, wide, marks], axis=2)
    valid, sorted_rows, indices = relay.vision.get_valid_counts(
        rows, 0.0, id_index=0, score_index=1
    )
    above = float(np.nextafter(np.float32(iou_threshold), np.float32(np.inf)))
    kept = relay.vision.non_max_suppression(
        sorted_rows, valid, indices, max_boxes, above, force_suppress=not per_class,
        return_indices=False, invalid_to_bottom=True,
    )  # fmt: skip
    if count < max_boxes:
        widths = [(0, 0), (0, max_boxes - count), (0, 0)]
        kept = relay.nn.pad(kept, widths, number(-1.0, "float32"))
    elif count > max_boxes:
        kept = relay.strided_slice(kept, [0], [max_boxes], [1], axes=[1])
    _, head, body = relay.split(kept, [6, 7], axis=2)
    stays = relay.greater_equal(head, number(0.0, "float32"))
    body = relay.where(stays, body, number(0.0, "float32"))
    found, marked = relay.split(body, [4], axis=2)
    numbers = relay.cast(relay.squeeze(head, [2]), "int32")
    total = relay.sum(relay.cast(relay.squeeze(stays, [2]), "int32"), axis=(1,))
    dtypes = ctx.type(boxes).dtype, ctx.type(scores).dtype
    return [as_dtype(found, dtypes[0]), as_dtype(marked, dtypes[1]), numbers, total]


@OPS.imports("non_maximum_suppression")
def import_non_maximum_suppression_v1(
    ctx: Import, boxes: Expr, scores: Expr,
    *, iou_threshold: float, score_threshold: float, max_boxes: int,
    per_class_suppression: bool = False,
) -> list[Expr]:  # fmt: skip
    return suppress(
        ctx, boxes, scores, iou_threshold=iou_threshold, score_threshold=score_threshold,
        max_boxes=max_boxes, per_class=per_class_suppression,
    )  # fmt: skip


@OPS.imports("non_maximum_suppression", since=17)
def import_non_maximum_suppression(
    ctx: Import,
    boxes: Expr,
    scores: Expr,
    *,
    iou_threshold: float,
    max_boxes: int,
    per_class_suppression: bool = False,
) -> list[Expr]:
    """Boxes lie along the last axis, and no score is too small."""
    order = [0, 2, 1]
    found = suppress(
        ctx,
        relay.transpose(boxes, order),
        relay.transpose(scores, order),
        iou_threshold=iou_threshold,
        score_threshold=None,
        max_boxes=max_boxes,
        per_class=per_class_suppression,
    )
    return [relay.transpose(found[0], order), relay.transpose(found[1], order), found[2]]


def _scalar_of(x: Expr) -> float | None:
    """Return the number that an operand is; None if it is not one or absent."""
    if isinstance(x, Tuple) and not x.fields:
        return 0.0
    return float(x.data.reshape(())) if isinstance(x, Constant) and x.data.size == 1 else None


def _selects(node: Call) -> bool:
    """Whether MIL selects boxes so: of fixed numbers, up to a limit known beforehand."""
    fixed = all(tensor_type(each).concrete_shape is not None for each in node.args[:2])
    known = [_scalar_of(each) for each in node.args[2:4]]
    return fixed and None not in known and (known[0] or 0) >= 1


@OPS.exports(
    "serde.non_max_suppression", takes=Takes(boxes=HALVES, scores=like("boxes")), when=_selects
)
def export_non_max_suppression(
    ctx: Export, boxes: Value, scores: Value, limit: Value | None = None,
    overlap: Value | None = None, least: Value | None = None,
    *, center_point_box: bool,
) -> Value:  # fmt: skip
    """Every class of every image is a batch of its own; what is left over is dropped."""
    images, count, _ = ctx.static_shape(boxes, 3)
    classes = ctx.static_shape(scores)[1]
    dtype = ctx.type(boxes).dtype
    most = min(int(ctx.constant(limit).reshape(())), count) if limit is not None else 0
    bound = float(ctx.constant(overlap).reshape(())) if overlap is not None else 0.0

    def batches(x: Expr) -> Expr:
        x = x if center_point_box else _centres(x)
        return relay.repeat(x, classes, axis=0) if classes > 1 else x

    rows = ctx.spell(batches, boxes)
    marks = ctx.spell(lambda x: relay.reshape(x, [images * classes, count, 1]), scores)
    indices = _emit_suppression(ctx, rows, marks, bound, most, dtype)

    def pad_rows(found: Expr, given: Expr, *floor: Expr) -> Expr:
        whole = relay.maximum(found, number(0, "int32"))
        stays = relay.greater_equal(found, number(0, "int32"))
        for bar in floor:
            score = relay.gather(relay.squeeze(given, [2]), 1, whole)
            stays = relay.logical_and(
                stays, relay.greater(score, as_dtype(relay.reshape(bar, ()), dtype))
            )
        where = relay.transpose(relay.serde.nonzero(stays), [1, 0])
        batch, _ = relay.split(where, 2, axis=1)
        box = relay.serde.gather_nd(whole, where)
        per_image = number(classes, "int64")
        image = relay.floor_divide(batch, per_image)
        kind = relay.subtract(batch, relay.multiply(image, per_image))
        column = relay.expand_dims(relay.cast(box, "int64"), 1)
        return relay.concatenate([image, kind, column], axis=1)

    return ctx.spell(pad_rows, indices, marks, *([] if least is None else [least]))


def _centres(boxes: Expr) -> Expr:
    """Return boxes given by two corners, y first and in any order, by centre, width, height."""
    one, two, three, four = relay.split(boxes, 4, axis=2)
    half = number(0.5, tensor_type(boxes).dtype)
    sides = []
    for first, last in ((two, four), (one, three)):
        middle = relay.multiply(relay.add(first, last), half)
        sides.append((middle, relay.abs(relay.subtract(last, first))))
    (x, width), (y, height) = sides
    return relay.concatenate([x, y, width, height], axis=2)


def _emit_suppression(
    ctx: Export, rows: Value, marks: Value, bound: float, most: int, dtype: str
) -> Value:
    """Write the suppression itself and return indices, -1 behind those that stay."""
    batches = ctx.static_shape(rows)[0]
    threshold = ctx.const(bound, dtype)
    if ctx.version >= 17:
        types = [
            TensorType((batches, 4, most), dtype),
            TensorType((batches, 1, most), dtype),
            TensorType((batches, most), "int32"),
        ]
        turned = [
            ctx.spell(lambda x: relay.transpose(x, [0, 2, 1]), each) for each in (rows, marks)
        ]
        inputs: dict[str, AnyValue] = {"boxes": turned[0], "scores": turned[1]}
    else:
        types = [
            TensorType((batches, most, 4), dtype),
            TensorType((batches, most, 1), dtype),
            TensorType((batches, most), "int32"),
            TensorType((batches,), "int32"),
        ]
        lowest = ctx.const(float(np.finfo(numpy_dtype(dtype)).min), dtype)
        inputs = {"boxes": rows, "scores": marks, "score_threshold": lowest}
    return ctx.emit_tuple(
        "non_maximum_suppression",
        types,
        iou_threshold=threshold,
        max_boxes=most,
        per_class_suppression=False,
        **inputs,
    )[2]


def in_front(x: Expr, stays: Expr, fill: float) -> Expr:
    """Return the entries of axis 1 that stay in front, in their order, others filled."""
    (count,) = fixed_shape(stays, [1])
    line = relay.const(allocation.arange(count, dtype=np.int32)[None])
    gone = relay.cast(relay.logical_not(stays), "int32")
    keys = relay.add(relay.multiply(gone, number(count, "int32")), line)
    order = relay.argsort(keys, axis=1, dtype="int32")
    total = relay.sum(relay.cast(stays, "int32"), axis=(1,), keepdims=True)
    first = relay.less(line, total)
    dtype = tensor_type(x).dtype
    if tensor_type(x).rank == 3:
        width = fixed_shape(x, [2])[0]
        index = relay.repeat(relay.expand_dims(order, 2), width, axis=2)
        found, first = relay.gather(x, 1, index), relay.expand_dims(first, 2)
    else:
        found = relay.gather(x, 1, order)
    return relay.where(first, found, number(fill, dtype))


def _find_suppressed(kept: Expr, takes_part: Expr, limit: int | None) -> Expr:
    """Return which rows go: those that overlap, and all behind the last that may stay."""
    gone = relay.logical_and(takes_part, relay.logical_not(kept))
    if limit is None:
        return gone
    whole = relay.cast(kept, "int32")
    until = relay.subtract(relay.cumsum(whole, axis=1), whole)
    late = relay.greater_equal(until, number(limit, "int32"))
    return relay.logical_or(gone, late)


@OPS.expands("vision.non_max_suppression")
def expand_non_max_suppression(
    data: Expr,
    valid_count: Expr,
    indices: Expr,
    max_output_size: Expr,
    iou_threshold: Expr,
    *,
    nms: Suppression,
) -> Expr:
    """Boxes are sorted first; ranks in place of scores keep the order where scores are equal.

    Boxes of several classes are moved apart, one class from the next, so that none overlap.
    """
    most, bound = _scalar_of(max_output_size), _scalar_of(iou_threshold)
    if most is None or bound is None or bound <= 0:
        raise Unsupported("a limit or an overlap that is computed, or no overlap at all")
    images, boxes, width = fixed_shape(data)
    dtype = tensor_type(data).dtype
    line = relay.const(allocation.arange(boxes, dtype=np.int32)[None])
    counts = relay.expand_dims(relay.cast(valid_count, "int32"), 1)
    score = relay.take(data, number(nms.score_index, "int32"), axis=2)
    keys = relay.where(relay.less(line, counts), score, number(float(np.finfo(dtype).min), dtype))
    order = relay.argsort(relay.negative(keys), axis=1, dtype="int32")
    best = relay.minimum(counts, number(nms.top_k, "int32")) if nms.top_k > 0 else counts
    taken = relay.less(line, best)
    index = relay.repeat(relay.expand_dims(order, 2), width, axis=2)
    missing = number(-1, dtype)
    rows = relay.where(relay.expand_dims(taken, 2), relay.gather(data, 1, index), missing)
    score = relay.take(rows, number(nms.score_index, "int32"), axis=2)
    takes_part = relay.logical_and(taken, relay.greater(score, number(0, dtype)))
    corners = relay.strided_slice(rows, [nms.coord_start], [nms.coord_start + 4], [1], axes=[2])
    if nms.id_index >= 0 and not nms.force_suppress:
        kind = relay.strided_slice(rows, [nms.id_index], [nms.id_index + 1], [1], axes=[2])
        corners = _apart(corners, kind)
    ranks = relay.Constant(allocation.arange(boxes, 0, -1, dtype=numpy_dtype(dtype))[None])
    marks = relay.where(takes_part, ranks, number(0, dtype))
    overlap = np.float32(bound) * np.nextafter(np.float32(1), np.float32(0))
    listed = call(
        "serde.non_max_suppression",
        corners,
        relay.expand_dims(marks, 1),
        relay.Constant(np.array([boxes], np.int64)),
        relay.const(np.array([overlap], np.float32)),
        relay.const(np.array([0.5], np.float32)),
    )
    kept = _mark_boxes(listed, images, boxes)
    gone = _find_suppressed(kept, takes_part, None if most < 0 else int(most))
    rows = relay.where(relay.expand_dims(gone, 2), missing, rows)
    if not nms.return_indices:
        if not nms.invalid_to_bottom:
            return rows
        head = relay.take(rows, number(0, "int32"), axis=2)
        return in_front(rows, relay.greater_equal(head, number(0, dtype)), -1)
    found = relay.gather(relay.cast(indices, "int32"), 1, order)
    stays = relay.logical_and(taken, relay.logical_not(gone))
    found = relay.where(stays, found, number(-1, "int32"))
    stays = relay.greater_equal(found, number(0, "int32"))
    total = relay.sum(relay.cast(stays, "int32"), axis=(1,), keepdims=True)
    return Tuple([in_front(found, stays, -1), total])


def _apart(corners: Expr, kind: Expr) -> Expr:
    """Return boxes moved by their class, further than any box reaches."""
    dtype = tensor_type(corners).dtype
    every = (0, 1, 2)
    high = relay.max(corners, axis=every, keepdims=True)
    low = relay.min(corners, axis=every, keepdims=True)
    span = relay.add(relay.subtract(high, low), number(1, dtype))
    return relay.add(corners, relay.multiply(kind, span))


def _mark_boxes(listed: Expr, images: int, boxes: int) -> Expr:
    """Return which boxes a list of (image, class, box) names."""
    image, _, box = relay.split(listed, 3, axis=1)
    indices = relay.transpose(relay.concatenate([image, box], axis=1), [1, 0])
    zeros = relay.const(allocation.zeros((images, boxes), np.int32))
    ones = relay.ones_like(relay.cast(relay.squeeze(box, [1]), "int32"))
    marked = relay.scatter_nd(zeros, indices, ones, mode="update")
    return relay.greater(marked, number(0, "int32"))

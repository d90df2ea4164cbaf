"""Boxes compared, encoded and decoded."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.relay as relay
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir.expr import Expr

Form = Literal["corner", "center"]


def _halves(x: Expr) -> list[Expr]:
    """Return the first two and the last two of four numbers."""
    return list(relay.split(x, 2, axis=-1))


def _number(ctx: Import, value: float | list[float], like: Expr) -> Expr:
    """Return a constant; MXNet keeps its attributes as float32."""
    return relay.Constant(np.asarray(value, np.float32).astype(ctx.type(like).dtype))


def _ends(ctx: Import, boxes: Expr, form: str) -> tuple[Expr, Expr, Expr]:
    """Return low corners, high corners and sizes."""
    low, high = _halves(boxes)
    if form == "corner":
        return low, high, relay.subtract(high, low)
    reach = relay.multiply(high, _number(ctx, 0.5, boxes))
    return relay.subtract(low, reach), relay.add(low, reach), high


def _to_centres(ctx: Import, boxes: Expr) -> tuple[Expr, Expr]:
    """Return centres and sizes of boxes given by corners."""
    low, high = _halves(boxes)
    size = relay.subtract(high, low)
    return relay.add(low, relay.multiply(size, _number(ctx, 0.5, boxes))), size


@OPS.imports("_contrib_box_iou")
def import_box_iou(ctx: Import, lhs: Expr, rhs: Expr, *, format: Form = "corner") -> Expr:
    zero = _number(ctx, 0, lhs)
    sides = []
    for boxes, spread in ((lhs, ctx.type(rhs).rank - 1), (rhs, 0)):
        low, high, size = _ends(ctx, boxes, format)
        area = relay.prod(relay.maximum(size, zero), axis=(-1,))
        if spread:
            low, high = (relay.expand_dims(each, -2, spread) for each in (low, high))
            area = relay.expand_dims(area, -1, spread)
        sides.append((low, high, area))
    (low, high, area), (lows, highs, areas) = sides
    span = relay.subtract(relay.minimum(high, highs), relay.maximum(low, lows))
    common = relay.prod(relay.maximum(span, zero), axis=(-1,))
    some = relay.greater(common, zero)
    union = relay.subtract(relay.add(area, areas), common)
    union = relay.where(some, union, _number(ctx, 1, lhs))
    return relay.divide(common, union)


@OPS.imports("_contrib_box_decode")
def import_box_decode(
    ctx: Import, data: Expr, anchors: Expr,
    *, std0: float = 1.0, std1: float = 1.0, std2: float = 1.0, std3: float = 1.0,
    clip: float = -1.0, format: Form = "center",
) -> Expr:  # fmt: skip
    """The form is that of the anchors; the boxes come as corners."""
    centre, size = _to_centres(ctx, anchors) if format == "corner" else _halves(anchors)
    half = relay.multiply(size, _number(ctx, 0.5, data))
    scaled = relay.multiply(data, _number(ctx, [std0, std1, std2, std3], data))
    near, grown = _halves(scaled)
    middle = relay.add(relay.multiply(near, size), centre)
    if clip > 0:
        grown = relay.minimum(grown, _number(ctx, clip, data))
    reach = relay.multiply(relay.exp(grown), half)
    return relay.concatenate([relay.subtract(middle, reach), relay.add(middle, reach)], axis=2)


@OPS.imports("_contrib_box_encode")
def import_box_encode(
    ctx: Import, samples: Expr, matches: Expr, anchors: Expr, refs: Expr, means: Expr, stds: Expr
) -> list[Expr]:
    """A match that names no box is of a sample that is not positive, whose offsets are zero."""
    shown = relay.take(refs, relay.cast(matches, "int32"), 1, batch_dims=1)
    (centre, size), (middle, span) = _to_centres(ctx, anchors), _to_centres(ctx, shown)
    near = relay.divide(relay.subtract(middle, centre), size)
    grown = relay.log(relay.divide(span, size))
    offsets = relay.concatenate([near, grown], axis=2)
    offsets = relay.divide(relay.subtract(offsets, means), stds)
    positive = relay.greater(samples, _number(ctx, 0.5, samples))
    masks = relay.cast(relay.expand_dims(positive, 2), ctx.type(anchors).dtype)
    masks = relay.broadcast_to_like(masks, offsets)
    zero = _number(ctx, 0, anchors)
    return [relay.where(relay.greater(masks, zero), offsets, zero), masks]

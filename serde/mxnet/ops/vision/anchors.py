"""Anchors, and the boxes that networks make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.layout import tensor_type
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr


@OPS.imports("_contrib_MultiBoxPrior")
def import_multibox_prior(
    ctx: ImportContext,
    data: Expr,
    *,
    sizes: tuple[float, ...] = (1.0,),
    ratios: tuple[float, ...] = (1.0,),
    clip: bool = False,
    steps: tuple[float, ...] = (-1.0, -1.0),
    offsets: tuple[float, ...] = (0.5, 0.5),
) -> Expr:
    """Boxes of all sizes have the first ratio, in Relay they are square."""
    if not sizes or not ratios:
        raise Unsupported(f"sizes={sizes} and ratios={ratios} make no boxes")
    rest = (steps, offsets, clip)
    if ratios[0] == 1:
        return relay.vision.multibox_prior(data, sizes, ratios, *rest)
    first = relay.vision.multibox_prior(data, sizes[:1], (1.0, *ratios), *rest)
    first = relay.reshape(first, (1, -1, 1 + len(ratios), 4))
    parts = [relay.strided_slice(first, [1], [2], [1], axes=[2])]
    for size in sizes[1:]:
        both = relay.vision.multibox_prior(data, (size,), (1.0, ratios[0]), *rest)
        both = relay.reshape(both, (1, -1, 2, 4))
        parts.append(relay.strided_slice(both, [1], [2], [1], axes=[2]))
    parts.append(relay.strided_slice(first, [2], [1 + len(ratios)], [1], axes=[2]))
    return relay.reshape(relay.concatenate(parts[: None if ratios[1:] else -1], 2), (1, -1, 4))


@OPS.exports("vision.multibox_prior")
def export_multibox_prior(
    ctx: ExportContext,
    data: Value,
    *,
    sizes: tuple[float, ...],
    ratios: tuple[float, ...],
    steps: tuple[float, ...],
    offsets: tuple[float, ...],
    clip: bool,
) -> Value:
    """Boxes of all sizes are square, whatever the first ratio is, which MXNet gives them."""
    return ctx.emit(
        "_contrib_MultiBoxPrior", data, sizes=sizes, ratios=(1.0, *ratios[1:]), steps=steps,
        offsets=offsets, clip=clip,
    )  # fmt: skip


@OPS.exports("vision.multibox_transform_loc", when=lambda call: not call.attrs["keep_background"])
def export_multibox_transform_loc(
    ctx: ExportContext,
    cls_prob: Value,
    loc_pred: Value,
    anchor: Value,
    *,
    clip: bool,
    threshold: float,
    variances: tuple[float, ...],
    keep_background: bool,
) -> list[Value]:
    """Without a threshold of overlap MXNet's detection goes no further than this."""
    rows = ctx.emit(
        "_contrib_MultiBoxDetection", cls_prob, loc_pred, anchor, clip=clip, threshold=threshold,
        variances=variances, nms_threshold=-1.0,
    )  # fmt: skip
    classes = ctx.emit("slice_axis", rows, axis=2, begin=0, end=1)
    found = ctx.emit("sum", ctx.emit("_greater_equal_scalar", classes, scalar=0.0), axis=(1, 2))
    return [rows, ctx.emit("Cast", found, dtype="int32")]


@OPS.expands("vision.multibox_transform_loc")
def expand_multibox_transform_loc(
    cls_prob: Expr,
    loc_pred: Expr,
    anchor: Expr,
    *,
    clip: bool,
    threshold: float,
    variances: Sequence[float],
    keep_background: bool,
) -> AnyValue:
    """All anchors in their order, those of no object as class -1."""
    type_ = tensor_type(cls_prob)
    dtype, number = type_.dtype, type_.shape[2]
    objects = relay.strided_slice(cls_prob, [1], [2**31 - 1], [1], axes=[1])
    scores = relay.max(objects, axis=(1,), keepdims=True)
    best = relay.cast(relay.argmax(objects, axis=(1,), keepdims=True), dtype)
    least = relay.const(max(threshold, -1.0), dtype)
    shown = relay.greater_equal(scores, least)
    if threshold <= -1:
        shown = relay.greater(scores, least)
    classes = relay.where(shown, best, relay.full_like(best, relay.const(-1, dtype)))
    boxes = _decode(relay.reshape(loc_pred, (0, -1, 4)), anchor, variances, dtype)
    if clip:
        boxes = relay.clip(boxes, 0.0, 1.0)
    columns = [relay.transpose(each, (0, 2, 1)) for each in (classes, scores)]
    rows = relay.concatenate([*columns, boxes], axis=2)
    if not isinstance(number, int):
        raise Unsupported("an open number of anchors")
    ones = relay.ones_like(relay.squeeze(scores, [1]))
    counts = relay.cast(relay.sum(ones, axis=(1,)), "int32")
    return relay.Tuple([rows, counts])


def _decode(offsets: Expr, anchor: Expr, variances: Sequence[float], dtype: str) -> Expr:
    def pair(x: Expr, begin: int) -> Expr:
        return relay.strided_slice(x, [begin], [begin + 2], [1], axes=[2])

    def number(value: AnyValue) -> Expr:
        return relay.Constant(np.asarray(value, dtype))

    low, high = pair(anchor, 0), pair(anchor, 2)
    size = relay.subtract(high, low)
    centre = relay.multiply(relay.add(low, high), number(0.5))
    moved = relay.multiply(pair(offsets, 0), number(list(variances[:2])))
    middle = relay.add(relay.multiply(moved, size), centre)
    grown = relay.exp(relay.multiply(pair(offsets, 2), number(list(variances[2:]))))
    half = relay.multiply(relay.multiply(grown, size), number(0.5))
    return relay.concatenate([relay.subtract(middle, half), relay.add(middle, half)], axis=2)

"""Anchors, what a detector predicts relative to them, and suppression of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.layout import tensor_type
from serde.mxnet.ops.table import OPS
from serde.mxnet.ops.vision.suppression import NO_CLASS
from serde.relay.ir.expr import Call, Constant, Expr, TupleGetItem
from serde.relay.ir.registry import OpDef, call


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
    return ctx.emit(
        "_contrib_MultiBoxPrior", data, sizes=sizes, ratios=ratios, steps=steps, offsets=offsets,
        clip=clip,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Detection:
    """Attributes of a detection, in MXNet and in Relay; the defaults are those of MXNet."""

    clip: bool = True
    threshold: float = 0.01
    variances: tuple[float, ...] = (0.1, 0.1, 0.2, 0.2)
    nms_threshold: float = 0.5
    force_suppress: bool = False
    nms_topk: int = -1


@OPS.imports("_contrib_MultiBoxDetection")
def import_multibox_detection(
    ctx: ImportContext,
    cls_prob: Expr,
    loc_pred: Expr,
    anchor: Expr,
    *,
    detection: Detection,
    background_id: int = 0,
) -> Expr:
    """The background is class 0 whatever `background_id` says, which MXNet does not read."""
    if not 0 < detection.nms_threshold <= 1:
        return relay.vision.multibox_transform_loc(
            cls_prob, loc_pred, anchor, detection.clip, detection.threshold, detection.variances
        )[0]
    return call("serde.multibox_detection", cls_prob, loc_pred, anchor, **vars(detection))


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


@OPS.imports("_contrib_MultiBoxTarget")
def import_multibox_target(
    ctx: ImportContext,
    anchor: Expr,
    label: Expr,
    cls_pred: Expr,
    *,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1.0,
    negative_mining_ratio: float = -1.0,
    negative_mining_thresh: float = 0.5,
    minimum_negative_samples: int = 0,
    variances: tuple[float, ...] = (0.1, 0.1, 0.2, 0.2),
) -> list[Expr]:
    """MXNet does not read `minimum_negative_samples`, and fails if mining finds too few."""
    found = call(
        "serde.multibox_target", anchor, label, cls_pred, overlap_threshold=overlap_threshold,
        ignore_label=ignore_label, negative_mining_ratio=negative_mining_ratio,
        negative_mining_thresh=negative_mining_thresh, variances=variances,
    )  # fmt: skip
    return [TupleGetItem(found, index) for index in range(3)]


def _in_single_precision(call: Call) -> bool:
    return tensor_type(call.args[1]).dtype == "float32"


@OPS.exports("serde.multibox_target", when=_in_single_precision)
def export_multibox_target(
    ctx: ExportContext,
    anchor: Value,
    label: Value,
    cls_pred: Value,
    *,
    overlap_threshold: float,
    ignore_label: float,
    negative_mining_ratio: float,
    negative_mining_thresh: float,
    variances: tuple[float, ...],
) -> tuple[Value, ...]:
    return ctx.emit_tuple(
        "_contrib_MultiBoxTarget", anchor, label, cls_pred, outputs=3,
        overlap_threshold=overlap_threshold, ignore_label=ignore_label,
        negative_mining_ratio=negative_mining_ratio,
        negative_mining_thresh=negative_mining_thresh, variances=variances,
    )  # fmt: skip


@OPS.exports("vision.get_valid_counts")
def export_get_valid_counts(
    ctx: ExportContext, data: Value, score_threshold: Value, *, id_index: int, score_index: int
) -> AnyValue:
    """Rows are sorted by whether they count, and by their indices, which no two share."""
    batch, number, width = ctx.static_shape(data)
    dtype = ctx.type(data).dtype

    def build(rows: Expr, threshold: Expr) -> Expr:
        def column(index: int) -> Expr:
            part = relay.strided_slice(rows, [index], [index + 1], [1], axes=[2])
            return relay.reshape(part, (batch, number))

        valid = relay.greater(column(score_index), relay.cast(threshold, dtype))
        if id_index >= 0:
            classes = column(id_index)
            valid = relay.logical_and(valid, relay.greater_equal(classes, relay.const(0, dtype)))
        shown = relay.cast(valid, "float32")
        counts = relay.sum(shown, axis=(1,), keepdims=True)
        at = relay.const(np.arange(number, dtype=np.float32)[None])
        behind = relay.multiply(
            relay.subtract(relay.const(1.0), shown), relay.const(number, "float32")
        )
        order = relay.argsort(relay.add(behind, at), axis=1, dtype="int32")
        first = relay.less(relay.broadcast_to(at, (batch, number)), counts)
        lookup = relay.broadcast_to(relay.expand_dims(order, 2), (batch, number, width))
        inside = relay.expand_dims(first, 2)
        kept = relay.where(inside, relay.gather(rows, 1, lookup), relay.const(-1, dtype))
        indices = relay.where(first, order, relay.const(-1, "int32"))
        return relay.Tuple([relay.cast(relay.squeeze(counts, [1]), "int32"), kept, indices])

    return ctx.spell_tuple(build, data, score_threshold)


@OPS.expands("vision.non_max_suppression")
def expand_non_max_suppression(
    data: Expr,
    valid_count: Expr,
    indices: Expr,
    max_output_size: Expr,
    iou_threshold: Expr,
    *,
    force_suppress: bool,
    top_k: int,
    coord_start: int,
    score_index: int,
    id_index: int,
    return_indices: bool,
    invalid_to_bottom: bool,
) -> Expr:
    """MXNet has it where all rows in question are counted and have scores."""
    bound = _constant_of(iou_threshold)
    if bound is None or not bound > 0 or _constant_of(max_output_size) not in (-1.0, None):
        raise Unsupported("a threshold of overlap, or a limit, that MXNet has not")
    if _constant_of(max_output_size) is None or return_indices:
        raise Unsupported("places of the boxes that stay, or a limit that is computed")
    below = float(np.nextafter(np.float32(bound), np.float32(0)))
    boxes = _field_of(data, "vision.multibox_transform_loc", 0)
    if boxes is not None and _field_of(valid_count, "vision.multibox_transform_loc", 1) is boxes:
        usual = (coord_start, score_index, id_index, invalid_to_bottom) == (2, 1, 0, False)
        if usual and boxes.attrs["threshold"] > 0 and not boxes.attrs["keep_background"]:
            return _mark_suppressed(boxes, min(below, 1.0), force_suppress, top_k)
    rows = _field_of(data, "vision.get_valid_counts", 1)
    if rows is None or _field_of(valid_count, "vision.get_valid_counts", 0) is not rows:
        raise Unsupported("boxes that were not counted by get_valid_counts")
    least = _constant_of(rows.args[1])
    counted = (rows.attrs["score_index"], rows.attrs["id_index"])
    if least is None or least < 0 or counted != (score_index, -1) or not invalid_to_bottom:
        raise Unsupported("boxes that have no score, or no class, or keep their places")
    return call(
        "serde.box_nms", rows.args[0], iou_threshold=below, score_threshold=least, top_k=top_k,
        coord_start=coord_start, score_index=score_index, id_index=id_index,
        background_id=NO_CLASS, force_suppress=force_suppress,
    )  # fmt: skip


def _field_of(x: Expr, name: str, index: int) -> Call | None:
    """Return the call of an operator that `x` is a result of; None if it is not that one."""
    if not isinstance(x, TupleGetItem) or x.index != index:
        return None
    node = x.tuple_value
    named = isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name == name
    return node if named and isinstance(node, Call) else None


def _constant_of(x: Expr) -> float | None:
    """Return the number that a constant is, None for what is computed."""
    return float(x.data) if isinstance(x, Constant) and x.data.size == 1 else None


def _mark_suppressed(boxes: Call, bound: float, force_suppress: bool, top_k: int) -> Expr:
    """Return MXNet's detection with -1 in all columns of a box that goes."""
    names = ("clip", "threshold", "variances")
    found = call(
        "serde.multibox_detection", *boxes.args, **{name: boxes.attrs[name] for name in names},
        nms_threshold=bound, force_suppress=force_suppress, nms_topk=top_k,
    )  # fmt: skip
    dtype = tensor_type(found).dtype
    classes = relay.strided_slice(found, [0], [1], [1], axes=[2])
    stays = relay.cast(relay.greater_equal(classes, relay.const(0, dtype)), dtype)
    one = relay.const(1, dtype)
    return relay.subtract(relay.multiply(relay.add(found, one), stays), one)


@OPS.exports("serde.multibox_detection")
def export_multibox_detection(
    ctx: ExportContext,
    cls_prob: Value,
    loc_pred: Value,
    anchor: Value,
    *,
    detection: Detection,
) -> Value:
    return ctx.emit("_contrib_MultiBoxDetection", cls_prob, loc_pred, anchor, **vars(detection))

"""Boxes left out because better ones overlap them, and rows matched with columns."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import (
    Call,
    Constant,
    Expr,
    Function,
    Tuple,
    TupleGetItem,
    Var,
    is_call,
    tensor_type,
)
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.op.vision.boxes import BoxSuppression
from serde.relay.op.vision.suppression import Suppression

NO_CLASS = -(1 << 24)
"""A class that no box has, where MXNet would take -1 for the background."""


Form = Literal["corner", "center"]


@OPS.imports("_contrib_box_nms")
def import_box_nms(
    ctx: Import, data: Expr,
    *, overlap_thresh: float = 0.5, valid_thresh: float = 0.0, topk: int = -1, coord_start: int = 2,
    score_index: int = 1, id_index: int = -1, background_id: int = -1, force_suppress: bool = False,
    in_format: Form = "corner", out_format: Form = "corner",
) -> Expr:  # fmt: skip
    """Boxes of more axes are images of one axis; a `topk` of 0 leaves all as it is."""
    if topk == 0:
        return data
    rank = ctx.type(data).rank
    rows = relay.expand_dims(data, 0) if rank == 2 else data
    for _ in range(rank - 3):
        rows = relay.reshape(rows, (-3, -2))
    result = call(
        "serde.box_nms", rows, iou_threshold=overlap_thresh, score_threshold=valid_thresh,
        top_k=topk, coord_start=coord_start, score_index=score_index, id_index=id_index,
        background_id=background_id, force_suppress=force_suppress, in_format=in_format,
        out_format=out_format,
    )  # fmt: skip
    return result if rank == 3 else relay.reshape_like(result, data)


@OPS.exports("serde.box_nms")
def export_box_nms(ctx: Export, data: Value, *, nms: BoxSuppression) -> Value:
    return ctx.emit(
        "_contrib_box_nms", data, overlap_thresh=nms.iou_threshold,
        valid_thresh=nms.score_threshold, topk=nms.top_k, coord_start=nms.coord_start,
        score_index=nms.score_index, id_index=nms.id_index, background_id=nms.background_id,
        force_suppress=nms.force_suppress, in_format=nms.in_format, out_format=nms.out_format,
    )  # fmt: skip


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
    """MXNet has it where all rows in question are counted and have scores."""
    bound = _constant_of(iou_threshold)
    if bound is None or not bound > 0 or _constant_of(max_output_size) not in (-1.0, None):
        raise Unsupported("a threshold of overlap, or a limit, that MXNet has not")
    if _constant_of(max_output_size) is None or nms.return_indices:
        raise Unsupported("places of the boxes that stay, or a limit that is computed")
    below = float(np.nextafter(np.float32(bound), np.float32(0)))
    boxes = _field_of(data, "vision.multibox_transform_loc", 0)
    if boxes is not None and _field_of(valid_count, "vision.multibox_transform_loc", 1) is boxes:
        columns = nms.coord_start, nms.score_index, nms.id_index
        usual = columns == (2, 1, 0) and not nms.invalid_to_bottom
        if usual and boxes.attrs["threshold"] > 0 and not boxes.attrs["keep_background"]:
            return _mark_suppressed(boxes, min(below, 1.0), nms.force_suppress, nms.top_k)
    rows = _field_of(data, "vision.get_valid_counts", 1)
    if rows is None or _field_of(valid_count, "vision.get_valid_counts", 0) is not rows:
        raise Unsupported("boxes that were not counted by get_valid_counts")
    least = _constant_of(rows.args[1])
    counted = (rows.attrs["score_index"], rows.attrs["id_index"])
    if least is None or least < 0 or counted != (nms.score_index, -1) or not nms.invalid_to_bottom:
        raise Unsupported("boxes that have no score, or no class, or keep their places")
    return call(
        "serde.box_nms", rows.args[0], iou_threshold=below, score_threshold=least, top_k=nms.top_k,
        coord_start=nms.coord_start, score_index=nms.score_index, id_index=nms.id_index,
        background_id=NO_CLASS, force_suppress=nms.force_suppress,
    )  # fmt: skip


def _field_of(x: Expr, name: str, index: int) -> Call | None:
    """Return the call of an operator that `x` is a result of; None if it is not that one."""
    if not isinstance(x, TupleGetItem) or x.index != index:
        return None
    node = x.tuple_value
    return node if is_call(node, name) else None


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


@OPS.imports("_contrib_bipartite_matching")
def import_bipartite_matching(
    ctx: Import, data: Expr, *, is_ascend: bool = False, threshold: float, topk: int = -1
) -> list[Expr]:
    """The best pair is matched, then the best of what is left; `topk` matches and one more."""
    type_ = ctx.type(data)
    rank, dtype = type_.rank, type_.dtype
    number = min(ctx.static_lengths(data, (rank - 2, rank - 1)))
    scores = relay.expand_dims(data, 0) if rank == 2 else data
    for _ in range(rank - 3):
        scores = relay.reshape(scores, (-3, -2))
    scores, bound = (relay.negative(scores), -threshold) if is_ascend else (scores, threshold)
    state = [scores]
    for axis in (2, 1):
        line = relay.max(scores, axis=(axis,))
        state.append(relay.full_like(line, relay.const(-1, dtype)))
    limit = relay.Constant(np.array(number if topk <= 0 else min(number, topk + 1), np.int64))
    types = [ctx.type(each) for each in state]
    body = _matching(types, np.float32(bound).astype(dtype))
    last = call("serde.loop", limit, None, state, [], body=body)
    found = [TupleGetItem(last, index) for index in (1, 2)]
    if rank == 2:
        return [relay.squeeze(each, [0]) for each in found]
    if rank == 3:
        return list(found)
    shape = ctx.static_shape(data)
    ends = (shape[:-1], (*shape[:-2], shape[-1]))
    return [relay.reshape(each, end) for each, end in zip(found, ends, strict=True)]


def _matching(types: list[TensorType], bound: np.generic) -> Function:
    """Return what matches one more pair of each image: its best, if that is above a bound."""
    step = Var("step", TensorType((), "int64"))
    scores, rows, columns = (
        Var(name, type_) for name, type_ in zip(("scores", "rows", "columns"), types, strict=True)
    )
    height, width = (length for length in types[0].shape[1:] if isinstance(length, int))
    flat = relay.reshape(scores, (0, -1))
    best = relay.argmax(flat, axis=(1,), keepdims=True)
    good = relay.greater(relay.max(flat, axis=(1,), keepdims=True), relay.Constant(bound))
    count = relay.const(width, "int32")
    indices = (relay.floor_divide(best, count), relay.floor_mod(best, count))
    hits = [
        relay.logical_and(
            relay.equal(relay.const(allocation.arange(n, dtype=np.int32)), place), good
        )
        for n, place in zip((height, width), indices, strict=True)
    ]
    dtype = types[0].dtype
    marked = [
        relay.where(hit, relay.cast(other, dtype), line)
        for hit, other, line in zip(hits, indices[::-1], (rows, columns), strict=True)
    ]
    used = relay.logical_or(relay.expand_dims(hits[0], 2), relay.expand_dims(hits[1], 1))
    left = relay.where(used, relay.const(-np.inf, dtype), scores)
    going = relay.Constant(np.array(True))
    return Function([step, scores, rows, columns], Tuple([going, left, *marked]))

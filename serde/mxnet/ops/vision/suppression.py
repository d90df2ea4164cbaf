"""Suppression of overlapping boxes, and the matching of boxes with what they show."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType

__all__ = ["NO_CLASS"]

NO_CLASS = -(1 << 24)
"""A class that no box has, where MXNet would take -1 for the background."""

Form = Literal["corner", "center"]


@OPS.imports("_contrib_box_nms")
def import_box_nms(
    ctx: ImportContext,
    data: Expr,
    *,
    overlap_thresh: float = 0.5,
    valid_thresh: float = 0.0,
    topk: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = -1,
    background_id: int = -1,
    force_suppress: bool = False,
    in_format: Form = "corner",
    out_format: Form = "corner",
) -> Expr:
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
def export_box_nms(
    ctx: ExportContext,
    data: Value,
    *,
    iou_threshold: float,
    score_threshold: float,
    top_k: int,
    coord_start: int,
    score_index: int,
    id_index: int,
    background_id: int,
    force_suppress: bool,
    in_format: str,
    out_format: str,
) -> Value:
    return ctx.emit(
        "_contrib_box_nms", data, overlap_thresh=iou_threshold, valid_thresh=score_threshold,
        topk=top_k, coord_start=coord_start, score_index=score_index, id_index=id_index,
        background_id=background_id, force_suppress=force_suppress, in_format=in_format,
        out_format=out_format,
    )  # fmt: skip


@OPS.imports("_contrib_bipartite_matching")
def import_bipartite_matching(
    ctx: ImportContext, data: Expr, *, is_ascend: bool = False, threshold: float, topk: int = -1
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
        relay.logical_and(relay.equal(relay.const(np.arange(n, dtype=np.int32)), place), good)
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

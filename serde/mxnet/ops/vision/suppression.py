"""Suppression of overlapping boxes, and the matching of boxes with what they show."""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.converters import ImportContext as Ctx
from serde.mxnet.builder import Value
from serde.mxnet.exporter import ExportContext as Out
from serde.mxnet.ops.table import OPS
from serde.relay.expr import Expr
from serde.relay.registry import call

__all__ = ["NO_CLASS"]

NO_CLASS = -(1 << 24)
"""A class that no box has, where MXNet would take -1 for the background."""

Form = Literal["corner", "center"]


@OPS.imports("_contrib_box_nms", "_contrib_box_non_maximum_suppression")
def import_box_nms(
    ctx: Ctx,
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
    ctx: Out,
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

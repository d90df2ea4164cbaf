"""Boxes: of those that overlap, the best stays; and regions of images pooled."""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np

from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.onnx.ops.conv.windows import require_fixed
from serde.onnx.ops.elementwise.convert import as_dtype, cast, fill
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, call
from serde.relay.op.vision.aligned import AlignedRegions
from serde.relay.op.vision.boxes import BoxSuppression
from serde.relay.op.vision.regions import RoiAlign
from serde.walk.pairs import reads
from serde.walk.takes import Takes, between, dtypes


@OPS.exports("serde.box_nms", takes=Takes(iou_threshold=between(0, math.inf)))
def export_box_nms(ctx: Export, data: Value, *, nms: BoxSuppression) -> Value:
    """The scores of boxes that stay are scattered over nothing, then the rows sorted by them."""
    batch, number, width = ctx.type(data).shape
    if ctx.type(data).dtype != "float32":
        raise Unsupported(f"boxes of {ctx.type(data).dtype}; ONNX suppresses those of float32")
    score = _take_column(ctx, data, nms.score_index)
    if nms.id_index >= 0:
        named = ctx.emit(
            "Equal", _take_column(ctx, data, nms.id_index), ctx.const(nms.background_id, "float32")
        )
        score = ctx.emit("Where", named, ctx.const(-np.inf, np.float32), score)
    rows, most = data, ctx.shape([number])
    if nms.top_k > 0 and not (isinstance(number, int) and number <= nms.top_k):
        rows, score, most = _select_best(ctx, data, score, number, nms.top_k)
    one_class = nms.id_index < 0 or nms.force_suppress
    corners = _slice_columns(ctx, rows, nms.coord_start, nms.coord_start + 4)
    found = ctx.emit(
        "NonMaxSuppression",
        _to_corners(ctx, corners, nms.in_format),
        unsqueeze(ctx, score, [1]) if one_class
        else _spread_by_class(ctx, score, _take_column(ctx, rows, nms.id_index)),
        most,
        ctx.const([min(nms.iou_threshold, 1.0)], np.float32),
        ctx.const([nms.score_threshold], np.float32),
    )  # fmt: skip
    position = ctx.emit("Gather", found, ctx.ints([0, 2]), axis=1)
    if isinstance(batch, int) and isinstance(most.data, np.ndarray):
        shape = ctx.ints([batch, most.data.item()])
    else:
        shape = ctx.emit("Shape", score)
    nothing = fill(ctx, shape, -np.inf, "float32")
    marks = ctx.emit("ScatterND", nothing, position, ctx.emit("GatherND", score, position))
    marks, order = ctx.emit_tuple("TopK", marks, most, outputs=2, axis=1)
    stays = unsqueeze(
        ctx, ctx.emit("Greater", marks, ctx.const(nms.score_threshold, "float32")), [2]
    )
    minus = ctx.const(-1, np.float32)
    result = ctx.emit("Where", stays, _gather_rows(ctx, rows, order, width), minus)
    if rows is not data:
        result = _pad_rows(ctx, result, ctx.emit("Sub", ctx.shape([number]), most), minus)
    if nms.in_format != nms.out_format:
        result = _convert_format(ctx, result, nms.coord_start, nms.out_format)
    return result


def _gather_rows(ctx: Export, rows: Value, order: Value, width: Dim) -> Value:
    """Return rows ``(n, boxes, width)`` of each image at indices ``(n, k)``."""
    indices = unsqueeze(ctx, order, [2])
    if ctx.version >= 12:
        return ctx.emit("GatherND", rows, indices, batch_dims=1)
    spread = ctx.emit("Expand", indices, ctx.shape([1, 1, width]))
    return ctx.emit("GatherElements", rows, spread, axis=1)


def _pad_rows(ctx: Export, rows: Value, count: Value, value: Value) -> Value:
    """Return rows with some more behind them, all of one value."""
    sides = ctx.emit("Concat", ctx.ints([0] * 4), count, ctx.ints([0]), axis=0)
    return ctx.emit("Pad", rows, sides, value)


def _take_column(ctx: Export, rows: Value, index: int) -> Value:
    return ctx.emit("Gather", rows, ctx.const(index, np.int64), axis=2)


def _slice_columns(ctx: Export, rows: Value, begin: int, end: int) -> Value:
    return ctx.emit("Slice", rows, ctx.ints([begin]), ctx.ints([end]), ctx.ints([2]))


def _select_best(
    ctx: Export, data: Value, score: Value, number: Dim, top_k: int
) -> tuple[Value, Value, Value]:
    """Return the rows with the best scores, these scores, and how many they are."""
    most = ctx.ints([min(number, top_k)]) if isinstance(number, int) else ctx.shape([number])
    score, order = ctx.emit_tuple("TopK", score, most, outputs=2, axis=1)
    if not isinstance(number, int):
        bounds = (ctx.ints([0]), ctx.ints([top_k]), ctx.ints([1]))
        score, order = ctx.emit("Slice", score, *bounds), ctx.emit("Slice", order, *bounds)
        most = ctx.emit("Gather", ctx.emit("Shape", score), ctx.ints([1]), axis=0)
    return _gather_rows(ctx, data, order, ctx.type(data).shape[2]), score, most


def _split_corners(ctx: Export, boxes: Value) -> tuple[Value, Value]:
    return _slice_columns(ctx, boxes, 0, 2), _slice_columns(ctx, boxes, 2, 4)


def _to_corners(ctx: Export, boxes: Value, form: str) -> Value:
    """Return two corners each; ONNX puts corners that are swapped in order, here they are empty."""
    low, high = _split_corners(ctx, boxes)
    if form == "center":
        reach = ctx.emit("Mul", high, ctx.const(0.5, np.float32))
        low, high = ctx.emit("Sub", low, reach), ctx.emit("Add", low, reach)
    return ctx.emit("Concat", low, ctx.emit("Max", low, high), axis=2)


def _spread_by_class(ctx: Export, score: Value, class_: Value) -> Value:
    """Return scores of each class that occurs, none for boxes of others."""
    names = ctx.emit("Unique", class_)
    same = ctx.emit("Equal", unsqueeze(ctx, class_, [1]), unsqueeze(ctx, names, [1]))
    nothing = ctx.const(-np.inf, np.float32)
    return ctx.emit("Where", same, unsqueeze(ctx, score, [1]), nothing)


def _convert_format(ctx: Export, rows: Value, start: int, form: str) -> Value:
    """Return rows whose boxes are in another form, those with a negative first number as is."""
    low, high = _split_corners(ctx, _slice_columns(ctx, rows, start, start + 4))
    half = ctx.const(0.5, np.float32)
    if form == "center":
        middle = ctx.emit("Mul", ctx.emit("Add", low, high), half)
        parts = [middle, ctx.emit("Sub", high, low)]
    else:
        reach = ctx.emit("Mul", high, half)
        parts = [ctx.emit("Sub", low, reach), ctx.emit("Add", low, reach)]
    before = [_slice_columns(ctx, rows, 0, start)] if start else []
    after = _slice_columns(ctx, rows, start + 4, np.iinfo(np.int64).max)
    made = ctx.emit("Concat", *before, *parts, after, axis=2)
    first = _slice_columns(ctx, rows, start, start + 1)
    negative = ctx.emit("Less", first, ctx.const(0, np.float32))
    return ctx.emit("Where", negative, rows, made)


@OPS.exports("vision.roi_align", takes=Takes(mode="avg"))
def export_roi_align(ctx: Export, x: Value, rois: Value, *, roi: RoiAlign) -> Value:
    """ONNX has the images of the regions apart; from 16 on, the first centre is at one half.

    Its greatest is that of weighted neighbours, not of samples.
    """
    height, width = require_fixed(roi.pooled_size, "pooled_size")
    image = ctx.emit("Gather", rois, ctx.const(0, np.int64), axis=1)
    corners = ctx.emit("Slice", rois, ctx.ints([1]), ctx.ints([5]), ctx.ints([1]))
    return ctx.emit(
        "RoiAlign", x, corners, cast(ctx, image, np.int64),
        coordinate_transformation_mode="output_half_pixel" if ctx.version >= 16 else None,
        mode="avg", output_height=height, output_width=width,
        sampling_ratio=max(roi.sample_ratio, 0), spatial_scale=roi.spatial_scale,
    )  # fmt: skip


@OPS.exports("vision.roi_pool")
def export_roi_pool(
    ctx: Export, x: Value, rois: Value, *, pooled_size: tuple[Dim, ...], spatial_scale: float
) -> Value:
    return ctx.emit(
        "MaxRoiPool",
        x,
        rois,
        pooled_shape=require_fixed(pooled_size, "pooled_size"),
        spatial_scale=spatial_scale,
    )


OPS.pairs(
    reads(
        "MaxRoiPool", "vision.roi_pool", "pooled_shape", since=(1, 22), fixed={"layout": "NCHW"},
        renamed={"pooled_shape": "pooled_size"}, spatial_scale=1.0,
    ),
    reads("NonMaxSuppression", "serde.non_max_suppression", since=(10, 11), center_point_box=False),
)  # fmt: skip


@OPS.exports("serde.roi_align", takes=Takes(half_pixel=False))
@OPS.exports("serde.roi_align", since=16)
def export_serde_roi_align(
    ctx: Export, x: Value, rois: Value, images: Value, *, roi: AlignedRegions
) -> Value:
    centres = "half_pixel" if roi.half_pixel else "output_half_pixel"
    return ctx.emit(
        "RoiAlign", x, rois, as_dtype(ctx, images, "int64"),
        coordinate_transformation_mode=centres if ctx.version >= 16 else None, mode=roi.mode,
        output_height=roi.pooled_size[0], output_width=roi.pooled_size[1],
        sampling_ratio=max(roi.sample_ratio, 0), spatial_scale=roi.spatial_scale,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RoiAlignAttributes:
    """Attributes that the versions of RoiAlign share."""

    mode: Literal["avg", "max"] = "avg"
    output_height: int = 1
    output_width: int = 1
    sampling_ratio: int = 0
    spatial_scale: float = 1.0


@OPS.imports("RoiAlign", since=(16, 22))
def import_roi_align(
    ctx: Import,
    x: Expr,
    rois: Expr,
    batch_indices: Expr,
    *,
    coordinate_transformation_mode: Literal["half_pixel", "output_half_pixel"] = "half_pixel",
    align: RoiAlignAttributes,
) -> Expr:
    return call(
        "serde.roi_align", x, rois, batch_indices,
        pooled_size=(align.output_height, align.output_width), spatial_scale=align.spatial_scale,
        sample_ratio=align.sampling_ratio, mode=align.mode,
        half_pixel=coordinate_transformation_mode == "half_pixel",
    )  # fmt: skip


@OPS.imports("RoiAlign", since=10)
def import_roi_align_v10(
    ctx: Import, x: Expr, rois: Expr, batch_indices: Expr, *, align: RoiAlignAttributes
) -> Expr:
    mode: Final = "output_half_pixel"
    return import_roi_align(
        ctx, x, rois, batch_indices, coordinate_transformation_mode=mode, align=align
    )


_NARROW = dtypes("float16", "float32")


@OPS.exports("serde.non_max_suppression", takes=Takes(boxes=_NARROW, scores=_NARROW))
def export_serde_non_max_suppression(
    ctx: Export, boxes: Value, scores: Value, limit: Value | None, overlap: Value | None,
    least: Value | None,
    *, center_point_box: bool,
) -> Value:  # fmt: skip
    """All but the number of boxes are float32."""
    given = [
        None if limit is None else as_dtype(ctx, limit, "int64"),
        *(None if each is None else as_dtype(ctx, each, "float32") for each in (overlap, least)),
    ]
    while given and given[-1] is None:
        given.pop()
    return ctx.emit(
        "NonMaxSuppression",
        as_dtype(ctx, boxes, "float32"),
        as_dtype(ctx, scores, "float32"),
        *given,
        center_point_box=int(center_point_box) or None,
    )

"""Detection: anchors, regions of feature maps, and the suppression of overlapping boxes."""

from __future__ import annotations

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.conv.windows import fixed
from serde.onnx.ops.elementwise import cast, widened
from serde.onnx.ops.reduce import reduce
from serde.onnx.ops.shape import arranged, squeeze, unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim
from serde.relay.op.vision.anchors import prior_boxes
from serde.weights import numpy_dtype


@OPS.exports("vision.roi_align")
def export_roi_align(
    ctx: Ctx,
    x: Value,
    rois: Value,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
    sample_ratio: int,
    layout: str,
    mode: str,
) -> Value:
    """ONNX has the images of the regions apart; from 16 on, the first centre is at one half."""
    if mode != "avg":
        raise Unsupported(
            "the greatest of ONNX is that of weighted neighbours, not of samples",
            hint="use mode='avg'",
        )
    height, width = fixed(pooled_size, "pooled_size")
    image = ctx.emit("Gather", rois, ctx.const(0, np.int64), axis=1)
    corners = ctx.emit("Slice", rois, ctx.ints([1]), ctx.ints([5]), ctx.ints([1]))
    found = ctx.emit(
        "RoiAlign",
        arranged(ctx, x, layout, "NCHW"),
        corners,
        cast(ctx, image, np.int64),
        coordinate_transformation_mode="output_half_pixel" if ctx.version >= 16 else None,
        mode="avg",
        output_height=height,
        output_width=width,
        sampling_ratio=max(sample_ratio, 0),
        spatial_scale=spatial_scale,
    )
    return arranged(ctx, found, "NCHW", layout)


@OPS.exports("vision.roi_pool")
def export_roi_pool(
    ctx: Ctx,
    x: Value,
    rois: Value,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
    layout: str,
) -> Value:
    found = ctx.emit(
        "MaxRoiPool",
        arranged(ctx, x, layout, "NCHW"),
        rois,
        pooled_shape=fixed(pooled_size, "pooled_size"),
        spatial_scale=spatial_scale,
    )
    return arranged(ctx, found, "NCHW", layout)


@OPS.exports("vision.yolo_reorg")
def export_yolo_reorg(ctx: Ctx, x: Value, *, stride: int) -> Value:
    batch, channels, height, width = ctx.type(x).shape
    fewer = channels // (stride * stride)
    parts = ctx.emit("Reshape", x, ctx.shape([batch, fewer, height, stride, width, stride]))
    moved = ctx.emit("Transpose", parts, perm=[0, 3, 5, 1, 2, 4])
    return ctx.emit("Reshape", moved, ctx.shape(ctx.result_type().shape))


@OPS.exports("vision.multibox_prior")
def export_multibox_prior(
    ctx: Ctx,
    x: Value,
    *,
    sizes: tuple[float, ...],
    ratios: tuple[float, ...],
    steps: tuple[float, ...],
    offsets: tuple[float, ...],
    clip: bool,
) -> Value:
    """The boxes depend on the size of the map alone, so that they are a constant."""
    height, width = ctx.static_lengths(x, [2, 3])
    boxes = prior_boxes(height, width, sizes, ratios, steps, offsets, clip)
    return ctx.const(boxes, numpy_dtype(ctx.type(x).dtype))


def _compacted(ctx: Ctx, valid: Value, count: Value) -> tuple[Value, Value, Value]:
    """Return the order that puts what is valid first, where that ends, and how much it is.

    Args:
        ctx: Where nodes are written.
        valid: Truth values of two axes.
        count: Length of the second, as a vector.
    """
    gone = cast(ctx, ctx.emit("Not", valid), np.int64)
    end = squeeze(ctx, count, [0])
    places = ctx.emit("Range", ctx.const(0, np.int64), end, ctx.const(1, np.int64))
    keys = ctx.emit("Add", ctx.emit("Mul", gone, count), places)
    _, order = ctx.emit_tuple("TopK", keys, count, outputs=2, axis=1, largest=0)
    if ctx.version >= 13:
        total = ctx.emit("ReduceSum", cast(ctx, valid, np.int64), ctx.ints([1]), keepdims=1)
    else:
        total = ctx.emit("ReduceSum", cast(ctx, valid, np.int64), axes=[1], keepdims=1)
    return order, ctx.emit("Less", places, total), squeeze(ctx, total, [1])


def _moved(ctx: Ctx, rows: Value, order: Value, first: Value, width: Value, dtype: str) -> Value:
    """Return rows in another order, -1 behind the first ones.

    `width` is the length of the last axis, as a vector.
    """
    ones = ctx.emit("Concat", ctx.ints([1, 1]), width, axis=0)
    index = ctx.emit("Expand", unsqueeze(ctx, order, [2]), ones)
    found = ctx.emit("GatherElements", rows, index, axis=1)
    return ctx.emit("Where", unsqueeze(ctx, first, [2]), found, ctx.const(-1, numpy_dtype(dtype)))


@OPS.exports("vision.get_valid_counts")
def export_get_valid_counts(
    ctx: Ctx, x: Value, threshold: Value, *, id_index: int, score_index: int
) -> tuple[Value, Value, Value]:
    type_ = ctx.type(x)
    score = ctx.emit("Gather", x, ctx.const(score_index, np.int64), axis=2)
    valid = ctx.emit("Greater", score, widened(ctx, threshold, type_.dtype))
    if id_index >= 0:
        class_ = ctx.emit("Gather", x, ctx.const(id_index, np.int64), axis=2)
        negative = ctx.emit("Less", class_, ctx.scalar_like(x, 0))
        valid = ctx.emit("And", valid, ctx.emit("Not", negative))
    order, first, total = _compacted(ctx, valid, ctx.shape([type_.shape[1]]))
    rows = _moved(ctx, x, order, first, ctx.shape([type_.shape[2]]), type_.dtype)
    places = ctx.emit("Where", first, order, ctx.const(-1, np.int64))
    return cast(ctx, total, np.int32), rows, cast(ctx, places, np.int32)


@OPS.exports("vision.multibox_transform_loc")
def export_multibox_transform_loc(
    ctx: Ctx,
    scores: Value,
    offsets: Value,
    anchor: Value,
    *,
    clip: bool,
    threshold: float,
    variances: tuple[float, ...],
    keep_background: bool,
) -> tuple[Value, Value]:
    type_ = ctx.type(scores)
    dtype = type_.dtype
    end = ctx.ints([np.iinfo(np.int64).max])
    objects = ctx.emit("Slice", scores, ctx.ints([1]), end, ctx.ints([1]))
    best = reduce(ctx, "ReduceMax", objects, [1], False)
    class_ = cast(ctx, ctx.emit("ArgMax", objects, axis=1, keepdims=0), dtype)
    low = ctx.emit("Less", best, ctx.scalar_like(scores, threshold))
    some = ctx.emit("Greater", best, ctx.scalar_like(scores, -1))
    found = ctx.emit("And", some, ctx.emit("Not", low))
    class_ = ctx.emit("Where", found, class_, ctx.scalar_like(scores, -1))
    boxes = _decoded(ctx, offsets, anchor, variances, dtype)
    if clip:
        boxes = ctx.emit("Clip", boxes, ctx.scalar_like(scores, 0), ctx.scalar_like(scores, 1))
    parts = [unsqueeze(ctx, class_, [2]), unsqueeze(ctx, best, [2]), boxes]
    rows = ctx.emit("Concat", *parts, axis=2)
    if keep_background:
        found = ctx.emit("Or", found, ctx.emit("Not", found))
    order, first, total = _compacted(ctx, found, ctx.shape([type_.shape[2]]))
    return _moved(ctx, rows, order, first, ctx.ints([6]), dtype), cast(ctx, total, np.int32)


def _decoded(
    ctx: Ctx, offsets: Value, anchor: Value, variances: tuple[float, ...], dtype: str
) -> Value:
    def halves(x: Value) -> tuple[Value, ...]:
        if ctx.version >= 13:
            return ctx.emit_tuple("Split", x, ctx.ints([2, 2]), outputs=2, axis=2)
        return ctx.emit_tuple("Split", x, outputs=2, axis=2, split=[2, 2])

    low, high = halves(anchor)
    two = ctx.const(2, numpy_dtype(dtype))
    size = ctx.emit("Sub", high, low)
    centre = ctx.emit("Div", ctx.emit("Add", low, high), two)
    places, sizes = halves(ctx.emit("Reshape", offsets, ctx.ints([0, -1, 4])))
    near, wide = (ctx.const(v, numpy_dtype(dtype)) for v in (variances[:2], variances[2:]))
    moved = ctx.emit("Mul", ctx.emit("Mul", places, near), size)
    middle = ctx.emit("Add", moved, centre)
    grown = ctx.emit("Mul", ctx.emit("Exp", ctx.emit("Mul", sizes, wide)), size)
    half = ctx.emit("Div", grown, two)
    edges = [ctx.emit("Sub", middle, half), ctx.emit("Add", middle, half)]
    return ctx.emit("Concat", *edges, axis=2)


@OPS.exports("vision.all_class_non_max_suppression")
def export_all_class_non_max_suppression(
    ctx: Ctx,
    boxes: Value,
    scores: Value,
    limit: Value,
    iou: Value,
    threshold: Value,
    *,
    output_format: str,
) -> tuple[Value, Value]:
    """Relay drops a box at the threshold of overlap, ONNX above it: it gets the number before."""
    if output_format != "onnx":
        raise Unsupported(
            "the detections of all classes in one order", hint="use output_format='onnx'"
        )
    bound = np.float32(ctx.constant(iou).item())
    if not 0 < bound <= 1:
        raise Unsupported(f"iou_threshold {bound}: expected more than 0, and at most 1")
    most = int(ctx.constant(limit).item())
    batch, number = ctx.type(scores).shape[0], ctx.type(scores).shape[2]
    rows = batch * ctx.type(scores).shape[1] * number
    selected = ctx.emit(
        "NonMaxSuppression",
        widened(ctx, boxes, "float32"),
        widened(ctx, scores, "float32"),
        ctx.ints([most]) if most > 0 else ctx.shape([number]),
        ctx.const([np.nextafter(bound, np.float32(0))], np.float32),
        unsqueeze(ctx, widened(ctx, threshold, "float32"), [0]),
    )
    count = ctx.emit("Gather", ctx.emit("Shape", selected), ctx.ints([0]), axis=0)
    missing = ctx.emit("Sub", ctx.shape([rows]), count)
    widths = ctx.emit("Concat", ctx.ints([0, 0]), missing, ctx.ints([0]), axis=0)
    return ctx.emit("Pad", selected, widths, ctx.const(0, np.int64)), count

"""Regions of images pooled, and why boxes are not chosen.

A region is left, top, right and bottom in elements of the feature map; it lies in the image whose
number has its place in `batch_index`. The specification names the operands and has no formulas, so
these are the usual ones: a region that is pooled has its corners rounded to elements, which belong
to it, and bins as Fast R-CNN has them (https://arxiv.org/abs/1504.08083); one that is stretched
has samples at the places of ``multilinear_upsample``, and those outside the feature map take its
edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, Tuple

OPS.refuses_calls(
    "serde.box_nms", "serde.multibox_detection", "serde.non_max_suppression",
    "serde.scored_proposal", "vision.all_class_non_max_suppression", "vision.get_valid_counts",
    "vision.multibox_transform_loc", "vision.non_max_suppression", "vision.proposal",
    "vision.regular_non_max_suppression",
    reason="NNEF has no fragment that orders and suppresses boxes",
    hint="end the model before it (option outputs) and suppress boxes behind the network",
)  # fmt: skip


def _require_images(
    ctx: Import, input: Expr, rois: Expr, batch_index: Expr, *sizes: Sequence[int]
) -> None:
    """Refuse feature maps of other than two axes, and what are no regions."""
    if ctx.rank(input) != 4 or any(len(size) != 2 or min(size) < 1 for size in sizes):
        found = f"rank {ctx.rank(input)} and {', '.join(str(list(size)) for size in sizes)}"
        raise Unsupported(f"regions of two axes have a form, found {found}")
    regions, numbers = ctx.type(rois).shape, ctx.type(batch_index).shape
    counts = {each for each in (*regions[:1], *numbers) if isinstance(each, int)}
    if len(regions) != 2 or regions[1] != 4 or len(numbers) != 1 or len(counts) > 1:
        raise Unsupported(
            f"expected four numbers and an index a region, found {ctx.type(rois)!r} and "
            f"{ctx.type(batch_index)!r}"
        )


@OPS.imports("max_roi_pool")
def import_max_roi_pool(
    ctx: Import, input: Expr, rois: Expr, batch_index: Expr, *, output_size: tuple[int, ...]
) -> Expr:
    _require_images(ctx, input, rois, batch_index, output_size)
    numbers = relay.expand_dims(relay.cast(batch_index, ctx.type(rois).dtype), 1)
    regions = relay.concatenate(Tuple([numbers, rois]), 1)
    return relay.vision.roi_pool(input, regions, output_size, 1.0)


@OPS.exports("vision.roi_pool")
def export_roi_pool(
    ctx: Export, data: Value, rois: Value, *, pooled_size: tuple[Dim, ...], spatial_scale: float
) -> Value:
    """Relay's regions begin with the number of their image, and are scaled."""
    scale = ctx.const(spatial_scale, ctx.type(rois).dtype)
    numbers = ctx.spell(
        lambda x: relay.cast(
            relay.squeeze(relay.strided_slice(x, [0], [1], [1], axes=[1]), [1]), "int32"
        ),
        rois,
    )
    corners = ctx.spell(
        lambda x, factor: relay.multiply(relay.strided_slice(x, [1], [5], [1], axes=[1]), factor),
        rois,
        scale,
    )
    size = list(ctx.static_shape(Value("", ctx.result_type()))[2:])
    return ctx.emit("max_roi_pool", data, corners, numbers, output_size=size)


@OPS.imports("avg_roi_pool")
def import_avg_roi_pool(
    ctx: Import, input: Expr, rois: Expr, batch_index: Expr, *, output_size: tuple[int, ...]
) -> Expr:
    """The mean of each bin, 0 in one of no elements: sums by products with masks."""
    _require_images(ctx, input, rois, batch_index, output_size)
    shares = []
    for axis, bins in enumerate(output_size):
        first, last = (relay.round(each) for each in _corners(rois, axis))
        length = ctx.static_shape(input)[2 + axis]
        mask = _bin_masks(ctx, first, last, bins, length)
        count = relay.sum(mask, axis=(2,), keepdims=True)
        shares.append(relay.divide(mask, relay.maximum(count, ctx.const(1.0))))
    return _apply(ctx, input, batch_index, shares)


def _corners(rois: Expr, axis: int) -> list[Expr]:
    """Return the first and the last coordinate of each region along a spatial axis, as columns."""
    return [
        relay.strided_slice(rois, [column], [column + 1], [1], axes=[1])
        for column in (1 - axis, 3 - axis)
    ]


def _bin_masks(ctx: Import, first: Expr, last: Expr, bins: int, length: int) -> Expr:
    """Return 1 for the elements of each bin, of shape (regions, bins, length)."""
    one = ctx.const(1.0)
    span = relay.maximum(relay.add(relay.subtract(last, first), one), one)
    ends = []
    for shift, whole in ((0, relay.floor), (1, relay.ceil)):
        marks = relay.multiply(span, ctx.const(allocation.arange(bins)[None] + shift))
        edges = relay.add(whole(relay.divide(marks, ctx.const(float(bins)))), first)
        ends.append(relay.expand_dims(edges, 2))
    places = ctx.const(allocation.arange(length)[None, None])
    inside = relay.logical_and(relay.greater_equal(places, ends[0]), relay.less(places, ends[1]))
    return relay.cast(inside, ctx.scalar)


def _apply(ctx: Import, x: Expr, batch_index: Expr, matrices: Sequence[Expr]) -> Expr:
    """Return rows and columns of each region's image, put together by matrices.

    Args:
        ctx: The context.
        x: The images.
        batch_index: The image of each region.
        matrices: For rows and for columns, of shape (regions, results, length).
    """
    _, channels, height, width = ctx.static_shape(x, 4)
    (regions,) = ctx.static_shape(batch_index, 1)
    rows, columns = (ctx.static_shape(each)[1] for each in matrices)
    images = relay.take(x, batch_index, 0, mode="fast")
    lines = relay.reshape(images, [regions, channels * height, width])
    lines = relay.nn.batch_matmul(lines, matrices[1])
    lines = relay.transpose(
        relay.reshape(lines, [regions, channels, height, columns]), [0, 1, 3, 2]
    )
    lines = relay.reshape(lines, [regions, channels * columns, height])
    found = relay.reshape(
        relay.nn.batch_matmul(lines, matrices[0]), [regions, channels, columns, rows]
    )
    return relay.transpose(found, [0, 1, 3, 2])


@OPS.imports("roi_resample")
def import_roi_resample(
    ctx: Import,
    input: Expr,
    rois: Expr,
    batch_index: Expr,
    *,
    output_size: tuple[int, ...],
    method: str = "symmetric",
) -> Expr:
    """Each sample is a mean of neighbours, which weigh as they are near to it."""
    _require_images(ctx, input, rois, batch_index, output_size)
    weights = []
    for axis, count in enumerate(output_size):
        first, last = _corners(rois, axis)
        length = ctx.static_shape(input)[2 + axis]
        places = _sample_places(ctx, first, last, count, method)
        places = relay.clip(places, 0.0, float(length - 1))
        apart = relay.subtract(
            relay.expand_dims(places, 2), ctx.const(allocation.arange(length)[None, None])
        )
        near = relay.subtract(ctx.const(1.0), relay.abs(apart))
        weights.append(relay.maximum(near, ctx.const(0.0)))
    return _apply(ctx, input, batch_index, weights)


def _sample_places(ctx: Import, first: Expr, last: Expr, count: int, method: str) -> Expr:
    """Return where samples of regions lie along an axis, of shape (regions, count)."""
    span, steps = relay.subtract(last, first), allocation.arange(count, dtype=np.float64)[None]
    if method == "symmetric":
        parts, shift = (steps + 0.5) / count, -0.5
    elif method == "asymmetric":
        parts, shift = steps / count, 0.0
    elif method == "aligned":
        parts, shift = steps / max(count - 1, 1), 0.0
    else:
        raise Unsupported(f"no method {method!r} of sampling")
    places = relay.add(first, relay.multiply(span, ctx.const(parts)))
    return relay.add(places, ctx.const(shift)) if shift else places


def _import_align(pool: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return the importer of a fragment that pools the samples of a region.

    The body that the specification gives names the spatial axes alone as the window of the
    pooling; the others are of one element.
    """

    def import_align(
        ctx: Import, input: Expr, rois: Expr, batch_index: Expr,
        *, output_size: tuple[int, ...], sampling_rate: tuple[int, ...],
        resize_method: str = "symmetric",
    ) -> Expr:  # fmt: skip
        _require_images(ctx, input, rois, batch_index, output_size, sampling_rate)
        size = tuple(n * rate for n, rate in zip(output_size, sampling_rate, strict=True))
        samples = import_roi_resample(
            ctx, input, rois, batch_index, output_size=size, method=resize_method
        )
        return pool(samples, pool_size=sampling_rate, strides=sampling_rate)

    return import_align


OPS.imports("avg_roi_align")(_import_align(relay.nn.avg_pool2d))
OPS.imports("max_roi_align")(_import_align(relay.nn.max_pool2d))

"""Images: resizing, cropping, borders, and blocks of pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue, Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.coreml.neuralnetwork.import_context import images, number
from serde.coreml.neuralnetwork.message_view import MessageView
from serde.coreml.neuralnetwork.ops.conv import border_amounts, borders
from serde.coreml.neuralnetwork.ops.table import LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType, call

Upsampling = Literal["NN", "BILINEAR"]
Grid = Literal["asymmetric", "align_corners", "half_pixel"]
Corners = Literal["DEFAULT", "ALIGN_CORNERS_TRUE", "ALIGN_CORNERS_FALSE"]
Blocks = Literal["SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "PIXEL_SHUFFLE"]

GRIDS: Mapping[str, Grid] = {
    "DEFAULT": "asymmetric",
    "ALIGN_CORNERS_TRUE": "align_corners",
    "ALIGN_CORNERS_FALSE": "half_pixel",
}
"""How bilinear upsampling finds the places between pixels, as ONNX's Resize calls it."""

SAMPLING = (
    "STRICT_ALIGN_ENDPOINTS_MODE",
    "ALIGN_ENDPOINTS_MODE",
    "UPSAMPLE_MODE",
    "ROI_ALIGN_MODE",
)


def sampling(mode: MessageView | None) -> str:
    """Return the name of a way to find the places between pixels."""
    index = 0 if mode is None else int(mode.message.samplingMethod)
    if not 0 <= index < len(SAMPLING):
        raise Unsupported(f"sampling method {index}")
    return SAMPLING[index]


@LAYERS.imports("upsample")
def import_upsample(
    ctx: Import,
    x: Expr,
    *,
    scaling_factor: tuple[int, ...] = (1, 1),
    fractional_scaling_factor: tuple[float, ...] = (),
    mode: Upsampling = "NN",
    linear_upsample_mode: Corners = "DEFAULT",
) -> Expr:
    """The places follow from the lengths; a factor that is no integer gives these rounded down."""
    axes = tuple(range(len(ctx.at_least(x, 3)) - 2, ctx.type(x).rank))
    how: dict[str, AnyValue] = {"method": "nearest", "mode": "asymmetric", "rounding": "floor"}
    if mode == "BILINEAR":
        how = {"method": "linear", "mode": GRIDS[linear_upsample_mode]}
    if not fractional_scaling_factor:
        factors = tuple(map(float, scaling_factor))
        return relay.serde.resize(x, None, None, None, scale=factors, axes=axes, **how)
    if not np.isfinite(fractional_scaling_factor).all():
        raise Unsupported(f"factors {list(fractional_scaling_factor)}")
    lengths = ctx.static_lengths(x, axes)
    pairs = zip(lengths, fractional_scaling_factor, strict=True)
    size = tuple(int(length * factor) for length, factor in pairs)
    return relay.serde.resize(x, None, None, None, size=size, axes=axes, **how)


@LAYERS.imports("resizeBilinear")
def import_resize_bilinear(
    ctx: Import, x: Expr, *, target_size: tuple[int, ...] = (1, 1), mode: MessageView | None = None
) -> Expr:
    """Modes differ in where the pixels of the result lie."""
    axes = tuple(range(len(ctx.at_least(x, 3)) - 2, ctx.type(x).rank))
    method = sampling(mode)
    if method == "UPSAMPLE_MODE" or method == SAMPLING[0]:
        grid: Grid = "asymmetric" if method == "UPSAMPLE_MODE" else "align_corners"
        return relay.serde.resize(
            x, None, None, None, size=target_size, axes=axes, method="linear", mode=grid
        )
    inset = (0.0, 0.0)
    if method == "ROI_ALIGN_MODE":
        inset = (0.5 / target_size[0], 0.5 / target_size[1])
    region = (*inset, 1 - inset[0], 1 - inset[1])
    return relay.serde.resize(
        x, None, None, None, size=target_size, region=region, axes=axes,
        method="linear", mode="tf_crop_and_resize",
    )  # fmt: skip


@LAYERS.imports("crop")
def import_crop(
    ctx: Import,
    x: Expr,
    like: Expr | None = None,
    *,
    crop_amounts: MessageView | None = None,
    offset: tuple[int, ...] = (0, 0),
) -> Expr:
    rank = len(ctx.at_least(x, 3))
    axes = (rank - 2, rank - 1)
    end = 2**31 - 1
    if like is not None:
        rest = relay.strided_slice(x, begin=offset, end=(end, end), axes=axes)
        return relay.slice_like(rest, like, axes=axes)
    top, bottom, left, right = borders(crop_amounts)
    ends = tuple(-each if each else end for each in (bottom, right))
    return relay.strided_slice(x, begin=(top, left), end=ends, axes=axes)


@LAYERS.imports("padding")
def import_padding(
    ctx: Import,
    x: Expr,
    *,
    constant: MessageView | None = None,
    reflection: MessageView | None = None,
    replication: MessageView | None = None,
    padding_amounts: MessageView | None = None,
) -> Expr:
    rank = len(ctx.at_least(x, 3))
    top, bottom, left, right = borders(padding_amounts)
    width = (*((0, 0),) * (rank - 2), (top, bottom), (left, right))
    if reflection is not None:
        return relay.nn.mirror_pad(x, width, mode="REFLECT")
    if replication is not None:
        return relay.nn.pad(x, width, pad_mode="edge")
    value = 0.0 if constant is None else float(constant.message.value)
    return relay.nn.pad(x, width, number(value))


@LAYERS.imports("constantPad")
def import_constant_pad(
    ctx: Import,
    x: Expr,
    amounts: Expr | None = None,
    *,
    value: float = 0.0,
    pad_amounts: tuple[int, ...] = (),
    pad_to_given_output_size_mode: bool = False,
) -> Expr:
    """Where the amounts are lengths of the result, each pair holds where its axis grows."""
    rank = ctx.type(x).rank
    if amounts is not None and not ctx.is_constant(amounts) and not pad_to_given_output_size_mode:
        pairs_ = relay.reshape(ctx.integers(amounts), (rank, 2))
        return call("dyn.nn.pad", x, pairs_, number(value), pad_mode="constant")
    given = pad_amounts if amounts is None else ctx.whole(amounts)
    if len(given) != 2 * rank:
        raise Unsupported(f"{len(given)} amounts for {rank} axes")
    pairs = list(zip(given[0::2], given[1::2], strict=True))
    if pad_to_given_output_size_mode:
        lengths = ctx.static_shape(x)
        pairs = [_to_length(pair, length) for pair, length in zip(pairs, lengths, strict=True)]
    return relay.nn.pad(x, tuple(pairs), number(value))


def _to_length(pair: tuple[int, int], length: int) -> tuple[int, int]:
    before, after = pair
    if before and after:
        raise Unsupported("lengths of the result at both ends of an axis")
    if before:
        return before - length, 0
    return 0, after - length if after else 0


@LAYERS.exports("pad")
def export_pad(ctx: Export, x: Value, pad: Value, *, mode: str, constant_val: float = 0.0) -> Value:
    """What continues a tensor goes along its last two axes, of which there are three at least."""
    if mode == "constant" and pad.data is None:
        return ctx.layer("constantPad", x, pad, value=constant_val)
    widths = [int(each) for each in ctx.constant(pad)]
    widths = [*[0] * (2 * x.type.rank - len(widths)), *widths]
    if mode == "constant":
        return ctx.layer("constantPad", x, value=constant_val, pad_amounts=widths)
    fields = {"reflect": "reflection", "replicate": "replication"}
    ends = widths[-4:] if x.type.rank > 1 else [0, 0, *widths]
    amounts: dict[str, AnyValue] = {fields[mode]: {}, "padding_amounts": border_amounts(ends)}
    rank = x.type.rank
    if rank >= 3:
        return ctx.layer("padding", x, **amounts)
    front = list(range(3 - rank))
    wide = [
        TensorType((*[1] * (3 - rank), *each.shape), each.dtype)
        for each in (x.type, ctx.result_type())
    ]
    raised = ctx.layer("expandDims", x, of=wide[0], axes=front)
    return ctx.layer("squeeze", ctx.layer("padding", raised, of=wide[1], **amounts), axes=front)


@LAYERS.imports("reorganizeData")
def import_reorganize_data(
    ctx: Import, x: Expr, *, mode: Blocks = "SPACE_TO_DEPTH", block_size: int = 0
) -> Expr:
    """A pixel shuffle keeps the channels apart; the other two have the block's place first."""
    data, restore = images(ctx, x)
    if block_size < 2:
        raise Unsupported(f"blocks of {block_size}")
    if mode == "SPACE_TO_DEPTH":
        return restore(relay.nn.space_to_depth(data, block_size))
    order: Literal["CRD", "DCR"] = "CRD" if mode == "PIXEL_SHUFFLE" else "DCR"
    return restore(relay.nn.depth_to_space(data, block_size, mode=order))


BOXES = (
    "CORNERS_HEIGHT_FIRST",
    "CORNERS_WIDTH_FIRST",
    "CENTER_SIZE_HEIGHT_FIRST",
    "CENTER_SIZE_WIDTH_FIRST",
)


@LAYERS.imports("cropResize")
def import_crop_resize(
    ctx: Import, x: Expr, boxes: Expr,
    *, target_size: tuple[int, ...] = (1, 1), normalized_coordinates: bool = False,
    mode: MessageView | None = None, box_indices_mode: MessageView | None = None,
    spatial_scale: float = 1.0,
) -> Expr:  # fmt: skip
    """A box without the number of its image is cut out of all of them."""
    batch, _, height, width = ctx.static_lengths(x, range(1, 5))
    count = ctx.static_lengths(boxes, [2])[0]
    if count not in (4, 5):
        raise Unsupported(f"boxes of {count} numbers")
    rows = relay.reshape(boxes, (-1, count))
    columns = [relay.strided_slice(rows, begin=(i,), end=(i + 1,), axes=(1,)) for i in range(count)]
    order = BOXES[0 if box_indices_mode is None else int(box_indices_mode.message.boxMode)]
    first, second, third, fourth = columns[-4:]
    if order.endswith("WIDTH_FIRST"):
        first, second, third, fourth = second, first, fourth, third
    spans = [(first, third), (second, fourth)]
    if order.startswith("CENTER"):
        halves = [relay.multiply(size, number(0.5)) for _, size in spans]
        spans = [
            (relay.subtract(middle, half), relay.add(middle, half))
            for (middle, _), half in zip(spans, halves, strict=True)
        ]
    ends = []
    for (start, stop), length, size in zip(spans, (height, width), target_size, strict=True):
        unit = spatial_scale if normalized_coordinates else spatial_scale / max(1, length - 1)
        span = relay.multiply(start, number(unit)), relay.multiply(stop, number(unit))
        least = 1 / max(1, length - 1)
        ends.append(_sampled_span(span, size, least, sampling(mode)))
    found = relay.concatenate([ends[0][0], ends[1][0], ends[0][1], ends[1][1]], axis=1)
    index = columns[0] if count == 5 else relay.zeros_like(columns[0])
    if count == 4:
        numbers = relay.const(allocation.arange(batch, dtype=np.float32).reshape(1, -1))
        index = relay.add(index, numbers)
        found = relay.repeat(found, batch, axis=0)
    pictures = relay.squeeze(x, axis=[0])
    indices = relay.cast(relay.reshape(index, (-1,)), "int32")
    cut = relay.image.crop_and_resize(pictures, found, indices, target_size, "NCHW")
    return relay.reshape(cut, (-4, -1, batch if count == 4 else 1, -2))


def _sampled_span(
    span: tuple[Expr, Expr], size: int, least: float, method: str
) -> tuple[Expr, Expr]:
    """Return the first and the last place that an axis of a box is read at."""
    start, stop = span
    if method == "ALIGN_ENDPOINTS_MODE":
        return start, stop
    if method == "STRICT_ALIGN_ENDPOINTS_MODE":
        return start, start if size == 1 else stop
    if method != "ROI_ALIGN_MODE":
        raise Unsupported(f"boxes sampled in {method}")
    length = relay.maximum(relay.subtract(stop, start), number(least))
    first = relay.add(start, relay.multiply(length, number(0.5 / size)))
    return first, relay.add(first, relay.multiply(length, number((size - 1) / size)))


@LAYERS.exports("depth_to_space")
def export_depth_to_space(ctx: Export, x: Value, *, block_size: int) -> Value:
    return ctx.layer("reorganizeData", x, mode="DEPTH_TO_SPACE", block_size=block_size)


@LAYERS.exports("space_to_depth")
def export_space_to_depth(ctx: Export, x: Value, *, block_size: int) -> Value:
    return ctx.layer("reorganizeData", x, mode="SPACE_TO_DEPTH", block_size=block_size)


@LAYERS.exports("pixel_shuffle", since=14)
def export_pixel_shuffle(ctx: Export, x: Value, *, upscale_factor: int) -> Value:
    return ctx.layer("reorganizeData", x, mode="PIXEL_SHUFFLE", block_size=upscale_factor)


METHODS = {
    "ALIGN_CORNERS": "ALIGN_ENDPOINTS_MODE",
    "DEFAULT": "UPSAMPLE_MODE",
    "OFFSET_CORNERS": "ROI_ALIGN_MODE",
    "STRICT_ALIGN_CORNERS": "STRICT_ALIGN_ENDPOINTS_MODE",
}
"""Sampling modes of MIL, and those of layers; halves of pixels are upsampling's alone."""


@LAYERS.exports("resize_bilinear")
def export_resize_bilinear(
    ctx: Export,
    x: Value,
    *,
    target_size_height: int,
    target_size_width: int,
    sampling_mode: str = "DEFAULT",
) -> Value:
    size = target_size_height, target_size_width
    if sampling_mode in METHODS:
        mode = {"sampling_method": METHODS[sampling_mode]}
        return ctx.layer("resizeBilinear", x, target_size=list(size), mode=mode)
    lengths = ctx.static_lengths(x, (2, 3))
    factors = [after // before for before, after in zip(lengths, size, strict=True)]
    if any(f * before != after for f, before, after in zip(factors, lengths, size, strict=True)):
        raise Unsupported(f"a resizing from {lengths} to {size} by the centres of pixels")
    ctx.since(14, "upsampling by the centres of pixels")
    grid = "ALIGN_CORNERS_FALSE"
    return ctx.layer(
        "upsample", x, scaling_factor=factors, mode="BILINEAR", linear_upsample_mode=grid
    )


@LAYERS.exports("upsample_bilinear")
def export_upsample_bilinear(
    ctx: Export,
    x: Value,
    *,
    scale_factor_height: float,
    scale_factor_width: float,
    align_corners: bool = True,
) -> Value:
    ctx.since(14, "upsampling with corners aligned")
    mode = "ALIGN_CORNERS_TRUE" if align_corners else "ALIGN_CORNERS_FALSE"
    factors = [int(scale_factor_height), int(scale_factor_width)]
    return ctx.layer(
        "upsample", x, scaling_factor=factors, mode="BILINEAR", linear_upsample_mode=mode
    )


@LAYERS.exports("upsample_nearest_neighbor")
def export_upsample_nearest_neighbor(
    ctx: Export, x: Value, *, scale_factor_height: float, scale_factor_width: float
) -> Value:
    factors = [scale_factor_height, scale_factor_width]
    if all(factor == int(factor) for factor in factors):
        return ctx.layer("upsample", x, scaling_factor=[int(each) for each in factors], mode="NN")
    ctx.since(14, "upsampling by fractions")
    return ctx.layer("upsample", x, fractional_scaling_factor=factors, mode="NN")


@LAYERS.exports("crop_resize")
def export_crop_resize(
    ctx: Export, x: Value, roi: Value,
    *, target_height: int, target_width: int, normalized_coordinates: bool, spatial_scale: float,
    box_coordinate_mode: str, sampling_mode: str,
) -> Value:  # fmt: skip
    """Images have five axes here."""
    shape = TensorType((1, *x.type.shape), x.type.dtype)
    return ctx.layer(
        "cropResize",
        ctx.layer("expandDims", x, of=shape, axes=[0]),
        roi,
        target_size=[target_height, target_width],
        normalized_coordinates=normalized_coordinates,
        mode={"sampling_method": METHODS[sampling_mode]},
        box_indices_mode={"box_mode": box_coordinate_mode},
        spatial_scale=spatial_scale,
    )

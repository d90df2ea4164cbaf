"""Images: resizing, cropping, borders, and blocks of pixels."""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.coreml.layers.conv import borders
from serde.coreml.layers.table import LAYERS
from serde.coreml.networks import LayerContext as Ctx
from serde.coreml.networks import images, number
from serde.coreml.parts import Part
from serde.errors import Unsupported
from serde.relay.expr import Expr

Upsampling = Literal["NN", "BILINEAR"]
Corners = Literal["DEFAULT", "ALIGN_CORNERS_TRUE", "ALIGN_CORNERS_FALSE"]
Blocks = Literal["SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "PIXEL_SHUFFLE"]

GRIDS = {
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


def sampling(mode: Part | None) -> str:
    """Return the name of a way to find the places between pixels.

    Raises:
        Unsupported: It is unknown.
    """
    index = 0 if mode is None else int(mode.message.samplingMethod)
    if not 0 <= index < len(SAMPLING):
        raise Unsupported(f"sampling method {index}")
    return SAMPLING[index]


@LAYERS.imports("upsample")
def import_upsample(
    ctx: Ctx,
    x: Expr,
    *,
    scaling_factor: tuple[int, ...] = (1, 1),
    fractional_scaling_factor: tuple[float, ...] = (),
    mode: Upsampling = "NN",
    linear_upsample_mode: Corners = "DEFAULT",
) -> Expr:
    """The places follow from the lengths; a factor that is no integer gives these rounded down."""
    axes = tuple(range(len(ctx.at_least(x, 3)) - 2, ctx.type(x).rank))
    how = {"method": "nearest", "mode": "asymmetric", "rounding": "floor"}
    if mode == "BILINEAR":
        how = {"method": "linear", "mode": GRIDS[linear_upsample_mode]}
    if not fractional_scaling_factor:
        factors = tuple(map(float, scaling_factor))
        return relay.serde.resize(x, None, None, None, scale=factors, axes=axes, **how)
    lengths = ctx.static_lengths(x, axes)
    pairs = zip(lengths, fractional_scaling_factor, strict=True)
    size = tuple(int(length * factor) for length, factor in pairs)
    return relay.serde.resize(x, None, None, None, size=size, axes=axes, **how)


@LAYERS.imports("resizeBilinear")
def import_resize_bilinear(
    ctx: Ctx, x: Expr, *, target_size: tuple[int, ...] = (1, 1), mode: Part | None = None
) -> Expr:
    axes = tuple(range(len(ctx.at_least(x, 3)) - 2, ctx.type(x).rank))
    method = sampling(mode)
    if method == "UPSAMPLE_MODE" or method == SAMPLING[0]:
        grid = "asymmetric" if method == "UPSAMPLE_MODE" else "align_corners"
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
    ctx: Ctx,
    x: Expr,
    like: Expr | None = None,
    *,
    crop_amounts: Part | None = None,
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
    ctx: Ctx,
    x: Expr,
    *,
    constant: Part | None = None,
    reflection: Part | None = None,
    replication: Part | None = None,
    padding_amounts: Part | None = None,
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


@LAYERS.imports("reorganizeData")
def import_reorganize_data(
    ctx: Ctx, x: Expr, *, mode: Blocks = "SPACE_TO_DEPTH", block_size: int = 0
) -> Expr:
    """A pixel shuffle keeps the channels apart; the other two have the block's place first."""
    data, restore = images(ctx, x)
    if block_size < 2:
        raise Unsupported(f"blocks of {block_size}")
    if mode == "SPACE_TO_DEPTH":
        return restore(relay.nn.space_to_depth(data, block_size))
    order = "CRD" if mode == "PIXEL_SHUFFLE" else "DCR"
    return restore(relay.nn.depth_to_space(data, block_size, mode=order))

"""Resampling of images, with height and width last."""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.converters import ImportContext as Ctx
from serde.errors import Unsupported
from serde.mxnet.ops.conv import transposed
from serde.mxnet.ops.table import OPS
from serde.relay.dims import Dim
from serde.relay.expr import Expr


@OPS.imports("UpSampling", ignored=("workspace",))
def import_up_sampling(
    ctx: Ctx,
    *data: Expr,
    scale: int,
    sample_type: Literal["bilinear", "nearest"],
    num_filter: int = 0,
    multi_input_mode: Literal["concat", "sum"] = "concat",
    num_args: int = 1,
) -> Expr:
    """Bilinear is a grouped transposed convolution whose weight is the second input."""
    if sample_type == "bilinear":
        if len(data) != 2:
            raise Unsupported(f"bilinear: expected data and weight, found {len(data)} inputs")
        return _bilinear(ctx, data[0], data[1], scale, num_filter)
    if len(data) == 1:
        return relay.nn.upsampling(data[0], float(scale), float(scale))
    lengths = [length * scale for length in ctx.static_lengths(data[0], (2, 3))]
    parts = []
    for each in data:
        own = ctx.static_lengths(each, (2, 3))
        if any(wanted % length for wanted, length in zip(lengths, own, strict=True)):
            raise Unsupported(f"{own} is no whole fraction of {lengths}")
        parts.append(relay.nn.upsampling(each, lengths[0] / own[0], lengths[1] / own[1]))
    if multi_input_mode == "concat":
        return relay.concatenate(parts, axis=1)
    total = parts[0]
    for part in parts[1:]:
        total = relay.add(total, part)
    return total


def _bilinear(ctx: Ctx, data: Expr, weight: Expr, scale: int, num_filter: int) -> Expr:
    kernel = 2 * scale - scale % 2
    pad = scale // 2
    channels = num_filter or ctx.static_shape(weight)[0]
    return transposed(
        2, data, weight, channels, (kernel,) * 2, (scale,) * 2, (pad,) * 2, (0, 0), (1, 1), channels
    )


@OPS.imports("_contrib_BilinearResize2D")
def import_bilinear_resize(
    ctx: Ctx,
    data: Expr,
    like: Expr | None = None,
    *,
    height: int = 1,
    width: int = 1,
    scale_height: float | None = None,
    scale_width: float | None = None,
    mode: Literal[
        "size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"
    ] = "size",
    align_corners: bool = True,
) -> Expr:
    lengths = ctx.type(data).shape[2:]
    scales = (scale_height, scale_width)
    if mode == "like":
        if like is None:
            raise Unsupported("mode='like' needs a second input")
        size: tuple[Dim, ...] = ctx.type(like).shape[2:]
    elif mode == "size" and scale_height is None:
        size = (height, width)
    else:
        size = tuple(
            _resized(mode, length, scale) for length, scale in zip(lengths, scales, strict=True)
        )
    return relay.image.resize2d(
        data,
        size,
        method="linear",
        coordinate_transformation_mode="align_corners" if align_corners else "half_pixel",
        rounding_method="",
    )


def _resized(mode: str, length: Dim, scale: float | None) -> Dim:
    """Return the new length of an axis; a truncated product where a scale is given."""
    even_down = length // 2 * 2
    if mode == "to_even_down":
        return even_down
    if mode == "to_even_up":
        return (length + 1) // 2 * 2
    if mode == "to_odd_down":
        return (length + 1) // 2 * 2 - 1
    if mode == "to_odd_up":
        return even_down + 1
    if scale is None:
        raise Unsupported(f"mode={mode!r} needs scale_height and scale_width")
    if isinstance(length, int):
        odd = mode == "odd_scale" and length % 2 == 1
        return int((length - 1) * scale) + 1 if odd else int(length * scale)
    if mode == "size" and scale == int(scale):
        return length * int(scale)
    raise Unsupported(f"mode={mode!r} with a scale of {scale} needs fixed heights and widths")

"""Resampling of images, with height and width last."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.converters import ImportContext as Ctx
from serde.errors import Unsupported
from serde.mxnet.ops.conv import transposed
from serde.mxnet.ops.table import OPS
from serde.relay.dims import Any, Dim
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
    wanted = [length * scale for length in ctx.type(data[0]).shape[2:]]
    parts = [relay.nn.upsampling(data[0], float(scale), float(scale))]
    parts += [_grown(each, ctx.type(each).shape[2:], wanted) for each in data[1:]]
    if len(parts) > 1 and multi_input_mode == "concat":
        return relay.concatenate(parts, axis=1)
    total = parts[0]
    for part in parts[1:]:
        total = relay.add(total, part)
    return total


def _grown(data: Expr, lengths: Sequence[Dim], wanted: Sequence[Dim]) -> Expr:
    """Repeat rows and columns up to lengths of which those of `data` are whole fractions."""
    factors = []
    for length, target in zip(lengths, wanted, strict=True):
        if isinstance(length, int) and isinstance(target, int):
            if target % length:
                raise Unsupported(f"{list(lengths)} is no whole fraction of {list(wanted)}")
            factors.append(target // length)
    if len(factors) == len(lengths):
        return relay.nn.upsampling(data, *map(float, factors))
    return relay.image.resize2d(
        data,
        tuple(wanted),
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    )


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
    if mode == "like":
        if like is None:
            raise Unsupported("mode='like' needs a second input")
        size: AnyValue = ctx.type(like).shape[2:]
    elif mode == "size" and scale_height is None:
        size = (height, width)
    elif mode in ("size", "odd_scale"):
        if scale_height is None or scale_width is None:
            raise Unsupported(f"mode={mode!r} needs scale_height and scale_width")
        size = _scaled(data, lengths, (scale_height, scale_width), odd=mode == "odd_scale")
    else:
        size = tuple(_made(mode, length) for length in lengths)
    return relay.image.resize2d(
        data,
        size,
        method="linear",
        coordinate_transformation_mode="align_corners" if align_corners else "half_pixel",
        rounding_method="",
    )


def _made(mode: str, length: Dim) -> Dim:
    """Return the even or odd length that `mode` makes of one."""
    even_down = length // 2 * 2
    if mode == "to_even_down":
        return even_down
    if mode == "to_even_up":
        return (length + 1) // 2 * 2
    if mode == "to_odd_down":
        return (length + 1) // 2 * 2 - 1
    return even_down + 1


EXACT_FACTOR = 1 << 10
"""A product of such a factor and a length below 16384 is exact in float32."""


def _scaled(data: Expr, lengths: Sequence[Dim], scales: Sequence[float], *, odd: bool) -> AnyValue:
    """Return truncated products of lengths and scales, which MXNet computes in float32.

    With `odd`, an odd length is scaled without its last element, which is added again.
    They are an expression where a length is a symbol and its scale no short fraction.
    """
    size: list[Dim] = []
    for length, scale in zip(lengths, scales, strict=True):
        ratio = Fraction(float(np.float32(scale)))
        if isinstance(length, int):
            rest = length % 2 if odd else 0
            size.append(int(np.float32(length - rest) * np.float32(scale)) + rest)
        elif ratio.numerator > EXACT_FACTOR or isinstance(length, Any):
            return _scaled_at_run_time(data, scales, odd=odd)
        else:
            kept = length // 2 * 2 if odd else length
            size.append(kept * ratio.numerator // ratio.denominator + (length - kept))
    return tuple(size)


def _scaled_at_run_time(data: Expr, scales: Sequence[float], *, odd: bool) -> Expr:
    lengths = relay.strided_slice(relay.shape_of(data, "int64"), [2], [4])
    two = relay.const(2, "int64")
    rest = relay.floor_mod(lengths, two) if odd else relay.zeros_like(lengths)
    real = relay.cast(relay.subtract(lengths, rest), "float32")
    grown = relay.multiply(real, relay.const(np.array(scales, np.float32)))
    return relay.add(relay.cast(grown, "int64"), rest)

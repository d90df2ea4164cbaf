"""Resampling of images, with height and width last, also by factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.mxnet.ops.conv.transposed import conv_transpose
from serde.mxnet.ops.table import COMPUTED, FLOATS, OPS, Export, Import, Value
from serde.relay.ir import Any, Call, Dim, Expr, TensorType, as_dtype, tensor_type
from serde.relay.ir.schema import gather
from serde.relay.op.image.interpolation import Interpolation
from serde.relay.op.image.resize import ImageResize
from serde.relay.op.image.upsampling import Upsampling
from serde.walk import Takes, like, one_of
from serde.walk.expansion.resizing import image_expansion, interpolation


@OPS.imports("_contrib_BilinearResize2D")
def import_bilinear_resize(
    ctx: Import,
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
    """`mode` tells where the lengths come from; an empty result is made here."""
    lengths = ctx.ranked(data, 4).shape[2:]
    if mode == "like":
        if like is None:
            raise Unsupported("mode='like' needs a second input")
        size: AnyValue = ctx.type(like).shape[2:]
    elif mode == "size" and scale_height is None:
        size = (height, width)
    elif mode in ("size", "odd_scale"):
        if scale_height is None or scale_width is None:
            raise Unsupported(f"mode={mode!r} needs scale_height and scale_width")
        size = _scaled_lengths(data, lengths, (scale_height, scale_width), odd=mode == "odd_scale")
    else:
        size = tuple(_round_length(mode, length) for length in lengths)
    if isinstance(size, tuple) and 0 in size:
        empty = (*ctx.type(data).shape[:2], *size)
        return relay.full(relay.const(0, ctx.type(data).dtype), empty)
    return relay.image.resize2d(
        data,
        size,
        method="linear",
        coordinate_transformation_mode="align_corners" if align_corners else "half_pixel",
        rounding_method="",
    )


def _round_length(mode: str, length: Dim) -> Dim:
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


def _scaled_lengths(
    data: Expr, lengths: Sequence[Dim], scales: Sequence[float], *, odd: bool
) -> AnyValue:
    """Return truncated products of lengths and scales, which MXNet computes in float32.

    With `odd`, an odd length is scaled without its last element, which is added again.
    They are an expression where a length is a symbol and its scale no short fraction.
    """
    size: list[Dim] = []
    if not all(map(math.isfinite, scales)):
        raise Unsupported(f"scales {list(scales)}")
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


_LINEAR = Takes(
    data=COMPUTED,
    method="linear",
    coordinate_transformation_mode=one_of("align_corners", "half_pixel"),
    out_dtype=like("data"),
)


def _has_size(call: Call) -> bool:
    """Whether MXNet resizes to a size of known lengths, or by known factors."""
    return _lengths(call.attrs["size"]) is not None or _factors(call) is not None


def _lengths(size: Sequence[Dim]) -> tuple[int, ...] | None:
    return TensorType(size, "int32").concrete_shape


def _factors(call: Call) -> tuple[int, ...] | None:
    """Return the whole numbers by which lengths are multiplied; None if they are not."""
    data = tensor_type(call.args[0])
    found = [_factor(*pair) for pair in zip(data.shape[2:], call.attrs["size"], strict=True)]
    factors = tuple(factor for factor in found if factor is not None)
    return factors if len(factors) == len(found) else None


_MOST = 65
"""Factors of open lengths are looked for below this."""


@OPS.exports("image.resize2d", takes=_LINEAR, when=_has_size)
def export_resize2d(
    ctx: Export, data: Value, *, size: tuple[Dim, ...], roi: AnyValue, resize: ImageResize
) -> Value:
    """Lengths that are open are told by their factors."""
    corners = resize.coordinate_transformation_mode == "align_corners"
    lengths = _lengths(size)
    if lengths is not None:
        return ctx.emit(
            "_contrib_BilinearResize2D", data, height=lengths[0], width=lengths[1],
            align_corners=corners,
        )  # fmt: skip
    have = ctx.type(data).shape[2:]
    factors = [
        next(float(factor) for factor in range(1, _MOST) if length * factor == wanted)
        for length, wanted in zip(have, size, strict=True)
    ]
    return ctx.emit(
        "_contrib_BilinearResize2D", data, mode="size", scale_height=factors[0],
        scale_width=factors[1], align_corners=corners,
    )  # fmt: skip


def _resize_expansion(ndim: int) -> Callable[..., Expr]:
    """Return what a resize of so many axes is made of."""
    expand = gather(image_expansion(ndim, half="float32", repeats=True))

    def expand_resize(data: Expr, *, size: tuple[Dim, ...], **attrs: AnyValue) -> Expr:
        """Of open lengths, pixels may be repeated."""
        if _lengths(size) is None:
            dtype = attrs["out_dtype"]
            repeated = _repeat_open_lengths(data, size, interpolation(attrs))
            if repeated is not None:
                return repeated if dtype is None else as_dtype(repeated, dtype_name(dtype))
        return expand(data, size=size, **attrs)

    return expand_resize


for _ndim in (1, 2, 3):
    OPS.expands(f"image.resize{_ndim}d")(_resize_expansion(_ndim))


def _repeat_open_lengths(data: Expr, size: Sequence[Dim], how: Interpolation) -> Expr | None:
    """Return open lengths times whole numbers where the nearest pixels are repeated ones.

    The positions of pixels then repeat from one pixel to the next, so that those of a few tell all.
    """
    if how.method != "nearest_neighbor" or how.mode not in ("asymmetric", "half_pixel"):
        return None
    shape = tensor_type(data).shape
    factors = [_factor(*pair) for pair in zip(shape[2:], size, strict=True)]
    probe = 4
    for factor in factors:
        if factor is None or factor == 1:
            continue
        indices = how.positions(probe, probe * factor, 0.0, 0.0)
        (index, weight), *others = how.taps(indices, probe)
        if others or weight is not None or list(index) != [i // factor for i in range(len(index))]:
            return None
    whole = [factor for factor in factors if factor is not None]
    if len(whole) < len(factors):
        return None
    repeats = tensor_type(data).dtype in FLOATS and len(shape) == 4
    if repeats and len(set(whole)) == 1:
        return relay.nn.upsampling(data, float(whole[0]), float(whole[0]))
    for axis, factor in enumerate(whole, start=2):
        data = relay.repeat(data, factor, axis) if factor != 1 else data
    return data


def _factor(length: Dim, wanted: Dim) -> int | None:
    return next((factor for factor in range(1, _MOST) if length * factor == wanted), None)


@OPS.imports("UpSampling", ignored=("workspace",))
def import_up_sampling(
    ctx: Import,
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
    wanted = [length * scale for length in ctx.type(ctx.first(data)).shape[2:]]
    parts = [relay.nn.upsampling(data[0], float(scale), float(scale))]
    parts += [_repeat_up_to(each, ctx.type(each).shape[2:], wanted) for each in data[1:]]
    if len(parts) > 1 and multi_input_mode == "concat":
        return relay.concatenate(parts, axis=1)
    total = parts[0]
    for part in parts[1:]:
        total = relay.add(total, part)
    return total


def _repeat_up_to(data: Expr, lengths: Sequence[Dim], wanted: Sequence[Dim]) -> Expr:
    """Repeat rows and columns up to lengths of which those of `data` are whole fractions."""
    factors = []
    if len(lengths) != len(wanted):
        raise Unsupported(f"{list(lengths)} and {list(wanted)} are lengths of other axes")
    for length, target in zip(lengths, wanted, strict=True):
        if isinstance(length, int) and isinstance(target, int):
            if not length or target % length:
                raise Unsupported(f"{list(lengths)} is no whole fraction of {list(wanted)}")
            factors.append(target // length)
    if len(factors) == len(lengths):
        height, width = map(float, factors)
        return relay.nn.upsampling(data, height, width)
    return relay.image.resize2d(
        data,
        tuple(wanted),
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    )


def _bilinear(ctx: Import, data: Expr, weight: Expr, scale: int, num_filter: int) -> Expr:
    kernel = 2 * scale - scale % 2
    channels = num_filter or ctx.static_shape(weight)[0]
    return conv_transpose(
        data, weight, (scale // 2,) * 2, (0, 0), channels=channels, kernel_size=(kernel,) * 2,
        strides=(scale,) * 2, dilation=(1, 1), groups=channels,
    )  # fmt: skip


_NEAREST = Takes(data=COMPUTED, method="nearest_neighbor", align_corners=False)


def _is_repeated(call: Call) -> bool:
    """Whether each pixel is repeated as often in both directions."""
    scale = call.attrs["scale_h"]
    return bool(scale == call.attrs["scale_w"] == int(scale))


@OPS.exports("nn.upsampling", takes=_NEAREST, when=_is_repeated)
def export_upsampling(
    ctx: Export, data: Value, *, scale_h: float, scale_w: float, upsampling: Upsampling
) -> Value:
    return ctx.emit("UpSampling", data, scale=int(scale_h), sample_type="nearest", num_args=1)

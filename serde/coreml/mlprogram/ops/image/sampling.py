"""Images read at the points of a grid, and scaled by factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.core import Array, dataclass
from serde.coreml.mlprogram.operators import HALVES
from serde.coreml.mlprogram.ops.elementwise import like
from serde.coreml.mlprogram.ops.image.resize import last_lengths, resize_last_axes
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, as_dtype, tensor_type
from serde.relay.lowering.regions import reads_between
from serde.relay.op.image.sampling import Method
from serde.relay.op.image.upsampling import Upsampling
from serde.walk import Takes, one_of, ranks

Fill = Literal["constant", "border", "reflection", "symmetric"]
Coordinates = Literal["unnormalized", "normalized_minus_one_to_one", "normalized_zero_to_one"]

_FILLS = {"constant": "zeros", "border": "border", "reflection": "reflection"}
_FILLS["symmetric"] = "reflection"


@OPS.imports("resample", since=(1, 16, 17))
def import_resample(
    ctx: Import, x: Expr, coordinates: Expr,
    *, sampling_mode: Literal["bilinear", "nearest"], padding_mode: Fill, padding_value: float,
    coordinates_mode: Coordinates, align_corners: bool,
) -> Expr:  # fmt: skip
    """Relay reflects at centres of pixels if corners are aligned, at their edges if not.

    Its nearest pixel is that before the reflection, so coordinates are reflected beforehand.
    """
    grid = as_dtype(coordinates, "float32")
    aligned = {"reflection": True, "symmetric": False}.get(padding_mode, align_corners)
    fill = _FILLS[padding_mode]
    folds = sampling_mode == "nearest" and fill == "reflection"
    if folds or coordinates_mode == "unnormalized" or aligned != align_corners:
        lengths = _lengths(ctx, x)
        pixels = _pixels(grid, lengths, coordinates_mode, align_corners)
        if folds:
            pixels, fill = _reflect(pixels, lengths, aligned), "border"
        grid = _normalize(pixels, lengths, aligned)
    elif coordinates_mode == "normalized_zero_to_one":
        grid = relay.subtract(relay.multiply(grid, _number(2)), _number(1))
    method: Method = "linear" if sampling_mode == "bilinear" else "nearest"
    options: dict[str, AnyValue] = {
        "method": method,
        "padding_mode": fill,
        "align_corners": aligned,
    }
    if fill != "zeros" or padding_value == 0:
        return relay.serde.grid_sample(x, grid, **options)
    shifted = relay.subtract(x, like(ctx, x, padding_value))
    found = relay.serde.grid_sample(shifted, grid, **options)
    return relay.add(found, like(ctx, x, padding_value))


def _lengths(ctx: Import, x: Expr) -> Array:
    """Return width and height of an image, as coordinates have them."""
    height, width = ctx.static_lengths(x, (2, 3))
    return np.array([width, height], np.float32)


def _number(value: Array | float) -> Expr:
    return relay.const(np.asarray(value, np.float32))


def _pixels(grid: Expr, lengths: Array, mode: Coordinates, align_corners: bool) -> Expr:
    """Return coordinates in pixels."""
    if mode == "unnormalized":
        return grid
    low = -1.0 if mode == "normalized_minus_one_to_one" else 0.0
    part = relay.multiply(relay.subtract(grid, _number(low)), _number(1 / (1 - low)))
    pixels = relay.multiply(part, _number(lengths - 1 if align_corners else lengths))
    return pixels if align_corners else relay.subtract(pixels, _number(0.5))


def _reflect(pixels: Expr, lengths: Array, aligned: bool) -> Expr:
    """Return the whole pixels nearest to coordinates that are reflected into the image."""
    start = 0.0 if aligned else -0.5
    span = np.maximum(lengths - 1, 1) if aligned else lengths
    distance = relay.abs(relay.subtract(pixels, _number(start)))
    turns = relay.floor(relay.multiply(distance, _number(0.5 / span)))
    rest = relay.subtract(distance, relay.multiply(turns, _number(2 * span)))
    back = relay.minimum(rest, relay.subtract(_number(2 * span), rest))
    inside = relay.maximum(relay.add(back, _number(start)), _number(0))
    return relay.serde.round_even(relay.minimum(inside, _number(lengths - 1)))


def _normalize(pixels: Expr, lengths: Array, aligned: bool) -> Expr:
    """Return pixels as coordinates between -1 and 1, the centres of pixels or their edges."""
    shift, span = (0.0, np.maximum(lengths - 1, 1)) if aligned else (0.5, lengths)
    moved = relay.multiply(relay.add(pixels, _number(shift)), _number(2 / span))
    return relay.subtract(moved, _number(1))


@OPS.imports("affine")
def import_affine(
    ctx: Import, x: Expr, transform_matrix: Expr,
    *, output_height: int, output_width: int, sampling_mode: str, padding_mode: str,
    padding_value: float, coordinates_mode: str, align_corners: bool,
) -> Expr:  # fmt: skip
    """One matrix serves all images; MIL has one way of sampling yet."""
    found = (sampling_mode.lower(), padding_mode.lower(), coordinates_mode.lower(), padding_value)
    if found != ("bilinear", "constant", "normalized_minus_one_to_one", 0):
        raise Unsupported(f"{', '.join(map(str, found))}: MIL does not tell what they mean here")
    theta = relay.reshape(transform_matrix, [-1, 2, 3])
    grid = relay.serde.affine_grid(
        theta, None, size=(output_height, output_width), align_corners=align_corners
    )
    images, matrices = ctx.type(x).shape[0], ctx.type(transform_matrix).shape[0]
    if images != matrices:
        (count,) = ctx.static_lengths(x, [0])
        grid = relay.repeat(grid, count, axis=0)
    return relay.serde.grid_sample(
        x, grid, method="linear", padding_mode="zeros", align_corners=align_corners
    )


@dataclass(frozen=True, kw_only=True)
class RelaySample:
    """Attributes of Relay's operators that read images along a grid."""

    method: str
    padding_mode: str
    align_corners: bool

    def emit(self, ctx: Export, data: Value, grid: Value) -> Value:
        """Append MIL's operation."""
        fill = {"zeros": "constant", "border": "border"}.get(self.padding_mode)
        if fill is None:
            fill = "reflection" if self.align_corners else "symmetric"
        if ctx.type(grid).dtype != "float32":
            grid = ctx.cast(grid, "float32")
        return ctx.emit(
            "resample",
            x=data,
            coordinates=grid,
            sampling_mode="nearest" if self.method == "nearest" else "bilinear",
            padding_mode=fill,
            padding_value=ctx.const(0.0, ctx.type(data).dtype),
            coordinates_mode="normalized_minus_one_to_one",
            align_corners=self.align_corners,
        )


_IMAGES = Takes(data=(HALVES, ranks(4)), method=one_of("linear", "bilinear", "nearest"))


@OPS.exports("serde.grid_sample", takes=_IMAGES)
def export_serde_grid_sample(
    ctx: Export, data: Value, grid: Value, *, sample: RelaySample
) -> Value:
    return sample.emit(ctx, data, grid)


@OPS.exports("image.grid_sample", takes=_IMAGES)
def export_grid_sample(ctx: Export, data: Value, grid: Value, *, sample: RelaySample) -> Value:
    """Coordinates lie on the last axis."""
    return sample.emit(ctx, data, ctx.spell(lambda x: relay.transpose(x, [0, 2, 3, 1]), grid))


# Places in float32: programs hold nothing wider.
for _name, _rule in reads_between("float32", "int32").items():
    OPS.expands(_name)(_rule)


def _upsample(ctx: Import, x: Expr, scales: Sequence[float], method: str, mode: str) -> Expr:
    """Return an image scaled; open lengths by whole factors only."""
    rank = ctx.type(x).rank
    last = ctx.type(x).shape[rank - 2 :]
    if all(isinstance(length, int) for length in last):
        size = [
            math.floor(n * scale) for n, scale in zip(last_lengths(ctx, x, 2), scales, strict=True)
        ]
        return resize_last_axes(ctx, x, size, method, mode)
    if any(scale != int(scale) for scale in scales):
        raise Unsupported(f"open lengths of {ctx.type(x)!r} scaled by {list(scales)} ({mode})")
    if rank != 4 or mode == "half_pixel":
        how: dict[str, AnyValue] = {"method": "linear", "mode": mode}
        if method == "nearest_neighbor":
            how = {"method": "nearest", "mode": mode, "rounding": "floor"}
        ratios, axes = tuple(map(float, scales)), (rank - 2, rank - 1)
        return relay.serde.resize(x, None, None, None, scale=ratios, axes=axes, **how)
    name = "nearest_neighbor" if method == "nearest_neighbor" else "bilinear"
    align = mode == "align_corners"
    height, width = scales
    return relay.nn.upsampling(x, height, width, method=name, align_corners=align)


@OPS.imports("upsample_nearest_neighbor")
def import_upsample_nearest_neighbor(
    ctx: Import, x: Expr, *, scale_factor_height: float = 1, scale_factor_width: float = 1
) -> Expr:
    """Lengths are rounded down, and the places are those of the ratio of lengths."""
    scales = (scale_factor_height, scale_factor_width)
    return _upsample(ctx, x, scales, "nearest_neighbor", "asymmetric")


@OPS.imports("upsample_bilinear", since=(1, 16))
def import_upsample_bilinear(
    ctx: Import,
    x: Expr,
    *,
    scale_factor_height: float = 1,
    scale_factor_width: float = 1,
    align_corners: bool = True,
    half_pixel_centers: bool | None = None,
) -> Expr:
    centres = not align_corners if half_pixel_centers is None else half_pixel_centers
    if align_corners and centres:
        raise Unsupported("corners aligned and centres of half a pixel at once")
    mode = "align_corners" if align_corners else "half_pixel" if centres else "asymmetric"
    return _upsample(ctx, x, (scale_factor_height, scale_factor_width), "linear", mode)


def _open_and_whole(node: Call) -> bool:
    """Whether open lengths are scaled by whole factors, which MIL does without knowing them."""
    attrs = node.attrs
    factors = (attrs["scale_h"], attrs["scale_w"])
    fixed = all(isinstance(length, int) for length in tensor_type(node.args[0]).shape[2:])
    whole = all(factor == int(factor) for factor in factors)
    plain = attrs["method"] == "nearest_neighbor" and not attrs["align_corners"]
    linear = attrs["method"] == "bilinear" and attrs["align_corners"]
    return not fixed and whole and (plain or linear)


@OPS.exports("nn.upsampling", takes=Takes(data=HALVES), when=_open_and_whole)
def export_upsampling(
    ctx: Export, data: Value, *, scale_h: float, scale_w: float, upsampling: Upsampling
) -> Value:
    factors = {
        "scale_factor_height": ctx.const(int(scale_h), "int32"),
        "scale_factor_width": ctx.const(int(scale_w), "int32"),
    }
    if upsampling.method == "nearest_neighbor":
        return ctx.emit("upsample_nearest_neighbor", x=data, **factors)
    return ctx.emit("upsample_bilinear", x=data, align_corners=True, **factors)

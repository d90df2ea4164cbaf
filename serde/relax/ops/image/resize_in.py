"""Importers of what resamples images."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext, Shape
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.op.image.grid import GridSample
from serde.weights import Array

__all__: list[str] = []


@OPS.imports("relax.image.resize2d", "relax.image.resize3d")
def import_resize(
    ctx: ImportContext,
    data: Expr,
    *,
    size: Shape,
    roi: AnyValue,
    layout: str,
    method: str,
    coordinate_transformation_mode: str,
    rounding_method: str,
    cubic_alpha: float,
    cubic_exclude: int,
    extrapolation_value: float,
    out_dtype: str | None,
) -> Expr:
    rounds = rounding_method or ("round" if _aligns(coordinate_transformation_mode) else "floor")
    if method == "nearest_neighbor" and rounds == "round":
        return _resize_to_even(ctx, data, size, layout, coordinate_transformation_mode)
    build: AnyValue = relay.image.resize2d if len(size.dims) == 2 else relay.image.resize3d
    known = ctx.dims_of(size)
    target: AnyValue = ctx.shape_tensor(size) if known is None else known
    return build(
        data,
        target,
        roi=tuple(map(float, roi)) if roi else None,
        layout=layout,
        method=method,
        coordinate_transformation_mode=coordinate_transformation_mode,
        rounding_method=rounding_method,
        cubic_alpha=cubic_alpha,
        cubic_exclude=cubic_exclude,
        extrapolation_value=extrapolation_value,
        out_dtype=out_dtype,
    )


def _aligns(mode: str) -> bool:
    return mode == "align_corners"


def _resize_to_even(ctx: ImportContext, x: Expr, size: Shape, layout: str, mode: str) -> Expr:
    """Return the nearest elements; TVM takes the even one of two as near, Relay the latter."""
    axes = [layout.index(letter) for letter in "DHW" if letter in layout]
    lengths, wanted = ctx.static_lengths(x, axes), ctx.known_dims(size)
    for axis, length, target in zip(axes, lengths, wanted, strict=True):
        if not isinstance(target, int):
            raise Unsupported("the nearest elements need a size that is fixed")
        places = np.rint(_places(mode, length, target)).clip(0, length - 1)
        x = relay.take(x, ctx.const(places, "int64"), axis=axis, mode="clip")
    return x


def _places(mode: str, length: int, target: int) -> Array:
    """Return where the elements of a resized axis are, in float32 as TVM has it."""
    steps = allocation.arange(target, dtype=np.float32)
    scale = np.float32(length) / np.float32(target)
    if mode == "align_corners":
        return steps * (np.float32(length - 1) / np.float32(target - 1)) if target > 1 else steps
    if mode == "asymmetric":
        return steps * scale
    if mode == "tf_half_pixel_for_nn":
        return (steps + np.float32(0.5)) * scale
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and target > 1):
        return (steps + np.float32(0.5)) * scale - np.float32(0.5)
    if mode == "pytorch_half_pixel":
        return steps
    raise Unsupported(f"coordinate_transformation_mode={mode!r} of nearest elements")


@OPS.imports("relax.image.grid_sample")
def import_grid_sample(ctx: ImportContext, data: Expr, grid: Expr, *, sampling: GridSample) -> Expr:
    """Of two elements as near TVM takes the even one, Relay not."""
    if sampling.method == "nearest":
        if sampling.layout not in ("NCHW", "NCDHW"):
            raise Unsupported(f"layout={sampling.layout!r} of nearest elements has no counterpart")
        places = relay.transpose(grid, axes=[0, *range(2, ctx.rank(grid)), 1])
        return call(
            "serde.grid_sample", data, places, method="nearest",
            padding_mode=sampling.padding_mode, align_corners=sampling.align_corners,
        )  # fmt: skip
    return relay.image.grid_sample(data, grid, **vars(sampling))


@OPS.imports("relax.image.affine_grid")
def import_affine_grid(
    ctx: ImportContext, data: Expr, *, size: Shape, align_corners: bool = True
) -> Expr:
    """The coordinates are on axis 1."""
    target = ctx.known_dims(size)
    lengths = tuple(each for each in target if isinstance(each, int))
    if len(lengths) < len(target):
        raise Unsupported("needs a size that is fixed")
    if align_corners:
        return relay.image.affine_grid(data, lengths)
    grid = call("serde.affine_grid", data, None, size=lengths, align_corners=False)
    return relay.transpose(grid, [0, 3, 1, 2])


@OPS.imports("relax.nn.pixel_shuffle")
def import_pixel_shuffle(ctx: ImportContext, data: Expr, *, upscale_factor: int) -> Expr:
    """What leads the last three axes are samples."""
    shape = ctx.type(data).shape
    x = data if len(shape) == 4 else relay.reshape(data, (-1, *shape[-3:]))
    found = relay.nn.depth_to_space(x, upscale_factor, mode="CRD")
    if len(shape) == 4:
        return found
    return relay.reshape(found, (*shape[:-3], *ctx.type(found).shape[-3:]))

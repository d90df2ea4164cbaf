"""Images read at the places of a grid, and such grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.ops.conv.windows import arrange, cast, sum_dtype
from serde.relax.ops.image.interpolation import (
    as_float,
    cubic_weights,
    linear_weights,
    round_even,
)
from serde.relax.ops.table import OPS
from serde.walk.expansion.resizing import expand_affine_grid

__all__: list[str] = []

OPS.expands("image.affine_grid")(expand_affine_grid)

_CUBIC_ALPHA = -0.75

Fold = Callable[[AnyValue, AnyValue], AnyValue]


def _fold(framework: Framework, padding_mode: str, align_corners: bool) -> Fold | None:
    """Return what brings places back into an axis, None where those outside read zero."""
    tir = framework.tir
    zero, half, two = (tir.const(value, "float64") for value in (0.0, 0.5, 2.0))

    def clip(place: AnyValue, length: AnyValue) -> AnyValue:
        return tir.max(tir.min(place, as_float(framework, length - 1)), zero)

    def reflect(place: AnyValue, length: AnyValue) -> AnyValue:
        span = as_float(framework, length - 1 if align_corners else length)
        start = zero if align_corners else -half
        safe = tir.Select(span == zero, two, span)
        distance = tir.abs(place - start)
        turns = tir.floor(distance / safe)
        rest = distance - turns * safe
        pairs = turns / two
        folded = tir.Select(tir.floor(pairs) == pairs, rest, safe - rest) + start
        return tir.Select(span == zero, zero, clip(folded, length))

    return {"reflection": reflect, "border": clip}.get(padding_mode)


def _nearest(framework: Framework, place: AnyValue) -> AnyValue:
    """Return the nearest whole number, halves away from zero."""
    tir = framework.tir
    zero, half = tir.const(0.0, "float64"), tir.const(0.5, "float64")
    return tir.Select(place < zero, zero - tir.floor(half - place), tir.floor(place + half))


def read_pixel(
    framework: Framework,
    image: AnyValue,
    before: Sequence[AnyValue],
    corner: Sequence[AnyValue],
) -> AnyValue:
    """Return a pixel at whole places in float64, zero outside the image.

    Args:
        framework: TVM.
        image: Its spatial axes are the last.
        before: Indices of the other axes.
        corner: Where along the spatial axes.
    """
    tir = framework.tir
    zero = tir.const(0.0, "float64")
    index, inside = [], []
    for place, length in zip(corner, image.shape[len(before) :], strict=True):
        last = as_float(framework, length - 1)
        inside += [place >= zero, place <= last]
        index.append(tir.max(tir.min(place, last), zero).astype("int64"))
    nothing = tir.const(0.0, str(image.dtype))
    return tir.if_then_else(tir.all(*inside), image[(*before, *index)], nothing)


def _sample(
    framework: Framework,
    method: str,
    padding_mode: str,
    align_corners: bool,
    *,
    coordinate_axis: int,
    even: bool,
) -> Callable[..., AnyValue]:
    """Return what reads images, channels first, at a grid.

    Args:
        framework: TVM.
        method: How.
        padding_mode: What lies outside.
        align_corners: Whether -1 and 1 are the centres of the end pixels.
        coordinate_axis: That of the grid which has x, y (and z).
        even: Whether the nearest of two pixels as near is the even one.
    """
    te, tir = framework.te, framework.tir
    fold = _fold(framework, padding_mode, align_corners)
    one, two = tir.const(1.0, "float64"), tir.const(2.0, "float64")

    def places(grid: AnyValue, axis: int, length: AnyValue) -> AnyValue:
        rank = len(grid.shape) - 2
        shape = [dim for i, dim in enumerate(grid.shape) if i != coordinate_axis]

        def place(*at: AnyValue) -> AnyValue:
            which = (*at[:coordinate_axis], rank - 1 - axis, *at[coordinate_axis:])
            point = grid[which].astype("float64") + one
            n = as_float(framework, length)
            found = point * (n - one) / two if align_corners else (point * n - one) / two
            if even:
                found = round_even(framework, found)
            return found if fold is None or method == "cubic" else fold(found, length)

        return te.compute(shape, place, name="places")

    def grid_sample(image: AnyValue, grid: AnyValue) -> AnyValue:
        space = image.shape[2:]
        found = [places(grid, axis, length) for axis, length in enumerate(space)]
        dtype = str(image.dtype)
        shape = (found[0].shape[0], image.shape[1], *found[0].shape[1:])
        weigh = linear_weights(framework)
        offsets: tuple[int, ...] = (0, 1)
        if method == "cubic":
            weigh, offsets = cubic_weights(framework, _CUBIC_ALPHA), (-1, 0, 1, 2)

        def read(n: AnyValue, c: AnyValue, *at: AnyValue) -> AnyValue:
            where = [each[(n, *at)] for each in found]
            if method == "nearest":
                corner = [_nearest(framework, each) for each in where]
                return read_pixel(framework, image, (n, c), corner)
            floors = [tir.floor(each) for each in where]
            total = None
            for choice in product(offsets, repeat=len(space)):
                corner, factor = [], one
                for place, floor, offset, length in zip(where, floors, choice, space, strict=True):
                    moved = floor + tir.const(float(offset), "float64")
                    folded = fold is not None and method == "cubic"
                    corner.append(fold(moved, length) if folded and fold else moved)
                    weight = weigh(offset, place - floor)
                    factor = factor * weight
                part = read_pixel(framework, image, (n, c), corner) * factor.astype(dtype)
                total = part if total is None else total + part
            return total

        return te.compute(shape, read, name="grid_sample")

    return grid_sample


@OPS.exports("image.grid_sample")
def export_grid_sample(
    ctx: ExportContext,
    data: Value,
    grid: Value,
    *,
    method: str,
    layout: str,
    padding_mode: str,
    align_corners: bool,
) -> Value:
    dtype, plain = ctx.type(data).dtype, "NCHW" if len(layout) == 4 else "NCDHW"
    wide = sum_dtype(dtype, None)
    x = arrange(ctx, cast(ctx, data, dtype, wide), layout, plain)
    how = {"bilinear": "linear", "bicubic": "cubic"}.get(method, method)
    compute = _sample(
        ctx.framework, how, padding_mode, align_corners, coordinate_axis=1, even=False
    )
    made = cast(ctx, ctx.emit_te(compute, x, grid), wide, dtype)
    return arrange(ctx, made, plain, layout)


@OPS.exports("serde.grid_sample")
def export_serde_grid_sample(
    ctx: ExportContext,
    data: Value,
    grid: Value,
    *,
    method: str,
    padding_mode: str,
    align_corners: bool,
) -> Value:
    dtype, rank = ctx.type(data).dtype, ctx.type(data).rank
    wide = sum_dtype(dtype, None)
    compute = _sample(
        ctx.framework,
        method,
        padding_mode,
        align_corners,
        coordinate_axis=rank - 1,
        even=method == "nearest",
    )
    return cast(ctx, ctx.emit_te(compute, cast(ctx, data, dtype, wide), grid), wide, dtype)

"""Images sampled at the points of a grid, and greatest sums over windows of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product
from math import prod
from typing import Literal

import numpy as np

from serde.core import iterations, numpy_dtype
from serde.onnx.ops.conv.windows import to_onnx_pads
from serde.onnx.ops.elementwise.convert import as_dtype, cast
from serde.onnx.ops.image.sampling import (
    CUBIC,
    LINEAR,
    clamp,
    emit_arange,
    flatten_pixels,
    length_as_float64,
    round_half_away,
    sample,
)
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, call, is_float, lowest
from serde.relay.op.image.grid import GridSample
from serde.walk.takes import Takes, ranks

Fold = Callable[[Value, Value], Value]

MODES = {"bilinear": "linear", "bicubic": "cubic"}


@OPS.exports("image.grid_sample")
def export_grid_sample(ctx: Export, x: Value, grid: Value, *, sampling: GridSample) -> Value:
    """GridSample keeps coordinates last, takes volumes from 20 on, and rounds halves to even."""
    rank = ctx.type(x).rank
    transposed = ctx.emit("Transpose", grid, perm=[0, *range(2, rank), 1])
    if sampling.method != "nearest" and ctx.version >= (16 if rank == 4 else 20):
        return ctx.emit(
            "GridSample",
            x,
            transposed,
            mode=MODES[sampling.method] if ctx.version >= 20 else sampling.method,
            padding_mode=sampling.padding_mode,
            align_corners=int(sampling.align_corners),
        )
    shape = ctx.type(x).shape
    dtype = "float64" if ctx.type(x).dtype == "float64" else "float32"
    table = flatten_pixels(ctx, as_dtype(ctx, x, dtype), shape)
    values = _sample_grid(
        ctx,
        table,
        transposed,
        shape,
        (sampling.method, sampling.padding_mode, sampling.align_corners),
        dtype,
    )
    result = ctx.emit("Transpose", values, perm=[0, rank - 1, *range(1, rank - 1)])
    return result if ctx.type(x).dtype == dtype else cast(ctx, result, ctx.type(x).dtype)


def _sample_grid(
    ctx: Export,
    table: Value,
    grid: Value,
    shape: Sequence[Dim],
    how: tuple[str, str, bool],
    dtype: str,
) -> Value:
    """Return ``(n, *space, channels)`` of the images in a table of pixels, read at a grid."""
    method, padding_mode, align_corners = how
    rank = len(shape)
    points = cast(ctx, grid, np.float64)
    lengths = [length_as_float64(ctx, length) for length in shape[2:]]
    folds: dict[str, Fold] = {
        "border": partial(clamp, ctx),
        "reflection": partial(_reflect, ctx, align_corners),
    }
    fold = folds.get(padding_mode)
    indices = []
    for axis, length in enumerate(lengths):
        number = ctx.const(rank - 3 - axis, np.int64)
        position = _to_pixels(
            ctx, ctx.emit("Gather", points, number, axis=rank - 1), length, align_corners
        )
        if fold is not None and method != "bicubic":
            position = fold(position, ctx.emit("Sub", length, ctx.const([1], np.float64)))
        indices.append(round_half_away(ctx, position) if method == "nearest" else position)
    images = emit_arange(ctx, shape[0], rank - 1)
    taps = {"nearest": None, "bilinear": LINEAR, "bicubic": CUBIC}[method]
    return sample(
        ctx, table, images, indices, rank - 1, lengths, taps, dtype,
        fold=fold if method == "bicubic" else None, zeros=padding_mode == "zeros",
    )  # fmt: skip


def _to_pixels(ctx: Export, position: Value, length: Value, align_corners: bool) -> Value:
    """Return coordinates of -1 to 1 as pixels."""
    one, two = (ctx.const([value], np.float64) for value in (1, 2))
    moved = ctx.emit("Add", position, one)
    if align_corners:
        wide = ctx.emit("Mul", moved, ctx.emit("Sub", length, one))
    else:
        wide = ctx.emit("Sub", ctx.emit("Mul", moved, length), one)
    return ctx.emit("Div", wide, two)


def _reflect(ctx: Export, align_corners: bool, position: Value, last: Value) -> Value:
    """Fold positions back at the centres or the edges of the end pixels, then limit them.

    An axis of one pixel, which has no length between its centres, is limited alone.
    """
    one, two = (ctx.const([value], np.float64) for value in (1, 2))
    start = ctx.const([0.0 if align_corners else -0.5], np.float64)
    span = ctx.emit("Max", last if align_corners else ctx.emit("Add", last, one), one)
    distance = ctx.emit("Abs", ctx.emit("Sub", position, start))
    periods = ctx.emit("Floor", ctx.emit("Div", distance, span))
    rest = ctx.emit("Sub", distance, ctx.emit("Mul", periods, span))
    half = ctx.emit("Floor", ctx.emit("Div", periods, two))
    even = ctx.emit("Equal", periods, ctx.emit("Mul", half, two))
    back = ctx.emit("Where", even, rest, ctx.emit("Sub", span, rest))
    return clamp(ctx, ctx.emit("Add", back, start), last)


@OPS.exports("serde.grid_sample", since=16, takes=Takes(data=ranks(4)))
@OPS.exports("serde.grid_sample", since=20)
def export_serde_grid_sample(
    ctx: Export, x: Value, grid: Value, *, method: str, padding_mode: str, align_corners: bool
) -> Value:
    """From 20 on methods have the names of those for any number of axes."""
    names = {"linear": "bilinear", "cubic": "bicubic"}
    return ctx.emit(
        "GridSample",
        x,
        grid,
        mode=method if ctx.version >= 20 else names.get(method, method),
        padding_mode=padding_mode,
        align_corners=int(align_corners),
    )


@OPS.imports("GridSample", since=(16, 20, 22))
def import_grid_sample(
    ctx: Import,
    x: Expr,
    grid: Expr,
    *,
    align_corners: bool = False,
    mode: Literal["linear", "nearest", "cubic", "bilinear", "bicubic"] = "linear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
) -> Expr:
    method = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return call(
        "serde.grid_sample",
        x,
        grid,
        method=method,
        padding_mode=padding_mode,
        align_corners=align_corners,
    )


@OPS.exports("serde.affine_grid", since=20)
def export_serde_affine_grid(
    ctx: Export,
    theta: Value,
    shape: Value | None,
    *,
    size: tuple[int, ...] | None,
    align_corners: bool,
) -> Value:
    given = shape if size is None else ctx.shape([ctx.type(theta).shape[0], 1, *size])
    return ctx.emit("AffineGrid", theta, given, align_corners=int(align_corners))


@OPS.imports("AffineGrid", since=20)
def import_affine_grid(
    ctx: Import, theta: Expr, size: Expr, *, align_corners: bool = False
) -> Expr:
    if not ctx.is_constant(size):
        return call("serde.affine_grid", theta, size, align_corners=align_corners)
    lengths = ctx.ints(size)[2:]
    return call("serde.affine_grid", theta, None, size=lengths, align_corners=align_corners)


@OPS.exports("image.dilation2d", ignored=("out_dtype",))
def export_dilation2d(
    ctx: Export,
    x: Value,
    weight: Value,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilations: tuple[int, ...],
) -> Value:
    """``y[i, j] = max(x[i + di, j + dj] + w[di, dj])``, a slice of the image for each (di, dj)."""
    dtype = ctx.result_type().dtype
    kernel, counts = ctx.static_lengths(weight, [1, 2]), ctx.result_type().shape[2:]
    image, sides = x, to_onnx_pads(padding, 2)
    if any(sides):
        least = ctx.const(lowest(numpy_dtype(ctx.type(x).dtype)))
        image = ctx.emit("Pad", image, ctx.ints([0, 0, *sides[:2], 0, 0, *sides[2:]]), least)
    window = ctx.emit("Transpose", weight, perm=[1, 2, 0])
    if ctx.type(x).dtype != dtype:
        image, window = cast(ctx, image, dtype), cast(ctx, window, dtype)
    iterations(prod(kernel), f"a window of {list(kernel)}")
    sums = []
    for position in product(*map(range, kernel)):
        starts = [at * step for at, step in zip(position, dilations, strict=True)]
        ends = [s + (n - 1) * by + 1 for s, n, by in zip(starts, counts, strides, strict=True)]
        region = ctx.emit(
            "Slice", image, ctx.ints(starts), ctx.shape(ends), ctx.ints([2, 3]), ctx.ints(strides)
        )
        element = ctx.emit("GatherND", window, ctx.ints(position))
        sums.append(ctx.emit("Add", region, unsqueeze(ctx, element, [1, 2])))
    if ctx.version >= 12 or is_float(dtype):
        return ctx.emit("Max", *sums)
    return reduce(partial(_emit_max, ctx), sums)


def _emit_max(ctx: Export, a: Value, b: Value) -> Value:
    """Before 12, Max takes no integers."""
    return ctx.emit("Where", ctx.emit("Greater", a, b), a, b)

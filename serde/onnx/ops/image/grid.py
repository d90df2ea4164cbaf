"""Images sampled at the points of a grid, and greatest sums over windows of images."""

from __future__ import annotations

from functools import partial, reduce
from itertools import product
from math import prod
from typing import Literal

from serde.core import iterations, numpy_dtype
from serde.onnx.ops.conv.windows import to_onnx_pads
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, call, is_float, lowest
from serde.relay.op.image.grid import GridSample
from serde.walk import Takes, one_of, ranks

MODES = {"bilinear": "linear", "bicubic": "cubic"}


def _write_grid_sample(ctx: Export, x: Value, grid: Value, *, sampling: GridSample) -> Value:
    """GridSample keeps coordinates last, and rounds halves to even."""
    rank = ctx.type(x).rank
    return ctx.emit(
        "GridSample",
        x,
        ctx.emit("Transpose", grid, perm=[0, *range(2, rank), 1]),
        mode=MODES[sampling.method] if ctx.version >= 20 else sampling.method,
        padding_mode=sampling.padding_mode,
        align_corners=int(sampling.align_corners),
    )


_METHODS = one_of("bilinear", "bicubic")
OPS.exports("image.grid_sample", since=16, takes=Takes(data=ranks(4), method=_METHODS))(
    _write_grid_sample
)
OPS.exports("image.grid_sample", since=20, takes=Takes(method=_METHODS))(_write_grid_sample)


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

"""Pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.conv import SPATIAL, fixed, pads
from serde.onnx.ops.shape import arranged
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim
from serde.relay.shapes import is_float, pool_dim


def _max_pool(ndim: int) -> Callable[..., Value]:
    def export_max_pool(
        ctx: Ctx,
        x: Value,
        *,
        pool_size: tuple[Dim, ...],
        strides: tuple[Dim, ...],
        dilation: tuple[Dim, ...],
        padding: tuple[Dim, ...],
        layout: str,
        out_layout: str,
        ceil_mode: bool,
    ) -> Value:
        if ctx.version < 12 and not is_float(ctx.type(x).dtype):
            raise Unsupported("the maximum of integers needs version 12")
        result = ctx.emit(
            "MaxPool",
            arranged(ctx, x, layout, "NC" + SPATIAL[ndim]),
            kernel_shape=fixed(pool_size, "pool_size"),
            strides=fixed(strides, "strides"),
            dilations=fixed(dilation, "dilation"),
            pads=pads(padding, ndim),
            ceil_mode=int(ceil_mode),
        )
        return arranged(ctx, result, "NC" + SPATIAL[ndim], out_layout or layout)

    return export_max_pool


def _avg_pool(ndim: int) -> Callable[..., Value]:
    def export_avg_pool(
        ctx: Ctx,
        x: Value,
        *,
        pool_size: tuple[Dim, ...],
        strides: tuple[Dim, ...],
        dilation: tuple[Dim, ...],
        padding: tuple[Dim, ...],
        layout: str,
        out_layout: str,
        ceil_mode: bool,
        count_include_pad: bool,
    ) -> Value:
        """Dilation came with 19. What a window past the padding counts is left open by ONNX."""
        if not is_float(ctx.type(x).dtype):
            raise Unsupported("an average of integers")
        dilations = fixed(dilation, "dilation")
        if any(each != 1 for each in dilations) and ctx.version < 19:
            raise Unsupported("dilation of an average needs version 19")
        around = pads(padding, ndim)
        if (
            ceil_mode
            and count_include_pad
            and not _even(
                ctx, x, layout, fixed(pool_size, "pool_size"), fixed(strides, "strides"), around
            )
        ):
            raise Unsupported("a padded average over windows that reach past the padding")
        result = ctx.emit(
            "AveragePool",
            arranged(ctx, x, layout, "NC" + SPATIAL[ndim]),
            kernel_shape=fixed(pool_size, "pool_size"),
            strides=fixed(strides, "strides"),
            dilations=dilations if ctx.version >= 19 else None,
            pads=around,
            ceil_mode=int(ceil_mode),
            count_include_pad=int(count_include_pad),
        )
        return arranged(ctx, result, "NC" + SPATIAL[ndim], out_layout or layout)

    return export_avg_pool


def _even(
    ctx: Ctx, x: Value, layout: str, size: list[int], strides: list[int], around: list[int]
) -> bool:
    """Whether the windows end where the padding ends."""
    ndim = len(size)
    for i, letter in enumerate(SPATIAL[ndim]):
        length = ctx.type(x).shape[layout.index(letter)]
        padding = around[i] + around[i + ndim]
        down, up = (
            pool_dim(length, size[i], strides[i], padding, 1, ceil_mode=mode)
            for mode in (False, True)
        )
        if down != up:
            return False
    return True


for _ndim in SPATIAL:
    OPS.exports(f"nn.max_pool{_ndim}d")(_max_pool(_ndim))
    OPS.exports(f"nn.avg_pool{_ndim}d")(_avg_pool(_ndim))


def _global(op: str) -> Callable[..., Value]:
    def export_global(ctx: Ctx, x: Value, *, layout: str, out_layout: str) -> Value:
        result = ctx.emit(op, arranged(ctx, x, layout, "NCHW"))
        return arranged(ctx, result, "NCHW", out_layout or layout)

    return export_global


OPS.exports("nn.global_max_pool2d")(_global("GlobalMaxPool"))
OPS.exports("nn.global_avg_pool2d")(_global("GlobalAveragePool"))


@OPS.exports("serde.lp_pool")
def export_lp_pool(
    ctx: Ctx,
    x: Value,
    *,
    p: int,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    ceil_mode: bool,
    layout: str,
) -> Value:
    """``ceil_mode`` and dilation came with 18."""
    late = ceil_mode or any(each != 1 for each in dilation)
    if late and ctx.version < 18:
        raise Unsupported("ceil_mode and dilation of an lp pooling need version 18")
    ndim = len(pool_size)
    steps, gaps = (each * ndim if len(each) == 1 else each for each in (strides, dilation))
    result = ctx.emit(
        "LpPool",
        arranged(ctx, x, layout, "NC" + SPATIAL[ndim]),
        p=p,
        kernel_shape=list(pool_size),
        strides=list(steps),
        pads=pads(padding, ndim),
        dilations=list(gaps) if late else None,
        ceil_mode=int(ceil_mode) if late else None,
    )
    return arranged(ctx, result, "NC" + SPATIAL[ndim], layout)


@OPS.exports("nn.adaptive_avg_pool2d")
def export_adaptive_avg_pool(
    ctx: Ctx,
    x: Value,
    *,
    output_size: tuple[Dim, ...] | None,
    layout: str,
    out_layout: str,
) -> Value:
    """Windows of one size are a pooling; others are means as two products with fixed matrices."""
    moved = arranged(ctx, x, layout, "NCHW")
    lengths = ctx.static_lengths(x, [layout.index(letter) for letter in "HW"])
    wanted = fixed(
        [ctx.result_type().shape[(out_layout or layout).index(letter)] for letter in "HW"],
        "output_size",
    )
    if wanted == [1, 1]:
        result = ctx.emit("GlobalAveragePool", moved)
    elif all(length % out == 0 for length, out in zip(lengths, wanted, strict=True)):
        window = [length // out for length, out in zip(lengths, wanted, strict=True)]
        result = ctx.emit("AveragePool", moved, kernel_shape=window, strides=window)
    else:
        rows, columns = (_means(length, out) for length, out in zip(lengths, wanted, strict=True))
        dtype = ctx.type(x).dtype
        tall = ctx.emit("MatMul", ctx.const(rows, dtype), moved)
        result = ctx.emit("MatMul", tall, ctx.const(columns.T, dtype))
    return arranged(ctx, result, "NCHW", out_layout or layout)


def _means(length: int, out: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the matrix that takes the mean of each of `out` windows over `length` values."""
    matrix = np.zeros((out, length))
    for i, (start, stop) in enumerate(_windows(length, out)):
        matrix[i, start:stop] = 1 / (stop - start)
    return matrix


def _windows(length: int, out: int) -> Sequence[tuple[int, int]]:
    return [(i * length // out, -(-(i + 1) * length // out)) for i in range(out)]

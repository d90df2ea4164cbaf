"""Maximum and mean over all positions, or over parts of each axis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.core.allocation import arange, repeat
from serde.onnx.ops.conv.windows import SPATIAL, require_fixed
from serde.onnx.ops.elementwise.convert import cast, comparison_dtype, compute_dtype
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, is_float


def _make_adaptive_exporter(kind: Literal["Max", "Average"]) -> Callable[..., Value]:
    def export_adaptive_pool(ctx: Export, x: Value, *, output_size: tuple[int, ...]) -> Value:
        """Parts of one size are a pooling; others are read and reduced axis by axis."""
        dtype = ctx.type(x).dtype
        lengths, wanted = ctx.type(x).shape[2:], ctx.result_type().shape[2:]
        if lengths == wanted:
            return x
        pooled = _emit_pool(ctx, x, kind, lengths, wanted) if is_float(dtype) else None
        return pooled or _reduce_parts(ctx, x, kind, dtype, lengths, wanted)

    return export_adaptive_pool


for _ndim in SPATIAL:
    OPS.exports(f"nn.adaptive_max_pool{_ndim}d")(_make_adaptive_exporter("Max"))
    OPS.exports(f"nn.adaptive_avg_pool{_ndim}d")(_make_adaptive_exporter("Average"))


def _emit_pool(
    ctx: Export, x: Value, kind: str, lengths: Sequence[Dim], wanted: Sequence[Dim]
) -> Value | None:
    """Return one pooling, where all parts of an axis have one size."""
    if all(each == 1 for each in wanted):
        return ctx.emit(f"Global{kind}Pool", x)
    window = [
        length // out
        for length, out in zip(lengths, wanted, strict=True)
        if isinstance(length, int) and isinstance(out, int) and length % out == 0
    ]
    if len(window) < len(lengths):
        return None
    return ctx.emit(f"{kind}Pool", x, kernel_shape=window, strides=window)


def _reduce_parts(
    ctx: Export, x: Value, kind: str, dtype: str, lengths: Sequence[Dim], wanted: Sequence[Dim]
) -> Value:
    """Return a reduction of each part of each axis, in a dtype in which it is exact."""
    sums = compute_dtype(dtype) if is_float(dtype) else "int64"
    work = comparison_dtype(dtype) if kind == "Max" else sums
    result = x if work == dtype else cast(ctx, x, work)
    sizes: list[Value] = []
    for index, (length, out) in enumerate(zip(lengths, wanted, strict=True)):
        if length == out:
            continue
        indices, inside, count = _find_parts(ctx, length, require_fixed([out], "output_size")[0])
        result = ctx.emit("Gather", result, indices, axis=2 + index)
        behind = len(lengths) - 1 - index
        if kind == "Max":
            result = emit_reduce(ctx, "ReduceMax", result, [3 + index], False)
            continue
        mask = unsqueeze(ctx, inside, range(2, 2 + behind)) if behind else inside
        result = ctx.emit("Where", mask, result, ctx.const(0, work))
        result = emit_reduce(ctx, "ReduceSum", result, [3 + index], False)
        size = cast(ctx, count, work)
        size = unsqueeze(ctx, size, range(1, 1 + behind)) if behind else size
        if work == "int64":
            sizes.append(size)
        else:
            result = ctx.emit("Div", result, size)
    if sizes:
        result = ctx.emit("Div", result, functools.reduce(partial(ctx.emit, "Mul"), sizes))
    return result if work == dtype else cast(ctx, result, dtype)


def _find_parts(ctx: Export, length: Dim, out: int) -> tuple[Value, Value, Value]:
    """Return the indices of each part, repeated up to one number, which are its own, and how many.

    They are ``(out, most)``, ``(out, most)`` and ``(out,)``.
    """
    if isinstance(length, int):
        number = arange(out)
        starts = number * length // out
        stops = -(-(number + 1) * length // out)
        longest = int((stops - starts).max())
        indices = repeat(starts[:, None], longest, axis=1) + arange(longest)
        inside = indices < stops[:, None]
        own = np.minimum(indices, stops[:, None] - 1)
        return ctx.const(own, np.int64), ctx.const(inside), ctx.const(stops - starts, np.int64)
    total, parts = ctx.shape([length]), ctx.ints([out])
    first = ctx.emit("Div", ctx.emit("Mul", ctx.const(arange(out)), total), parts)
    reach = ctx.emit("Mul", ctx.const(arange(1, out + 1)), total)
    stop = ctx.emit("Div", ctx.emit("Add", reach, ctx.ints([out - 1])), parts)
    count = ctx.emit("Sub", stop, first)
    most = emit_reduce(ctx, "ReduceMax", count, [0], False)
    steps = ctx.emit("Range", ctx.const(0, np.int64), most, ctx.const(1, np.int64))
    reads = ctx.emit("Add", unsqueeze(ctx, first, [1]), steps)
    end = unsqueeze(ctx, stop, [1])
    inside_ = ctx.emit("Less", reads, end)
    last = ctx.emit("Sub", end, ctx.ints([1]))
    return ctx.emit("Where", inside_, reads, last), inside_, count


def _make_exporter(op: str, reduction: str) -> Callable[..., Value]:
    def export_global(ctx: Export, x: Value) -> Value:
        """Of integers ONNX has the reduction only."""
        if ctx.takes(op, ctx.type(x).dtype):
            return ctx.emit(op, x)
        return emit_reduce(ctx, reduction, x, [2, 3], keepdims=True)

    return export_global


OPS.exports("nn.global_max_pool2d")(_make_exporter("GlobalMaxPool", "ReduceMax"))

OPS.exports("nn.global_avg_pool2d")(_make_exporter("GlobalAveragePool", "ReduceMean"))


def _make_importer(name: str, fold: Callable[..., Expr]) -> Callable[..., Expr]:
    def import_global(ctx: Import, x: Expr) -> Expr:
        """Over other than two axes it is a reduction."""
        rank = ctx.type(x).rank
        if rank == 4:
            return getattr(relay.nn, name)(x)
        return fold(x, axis=tuple(range(2, rank)), keepdims=True)

    return import_global


OPS.imports("GlobalMaxPool", since=(1, 22))(_make_importer("global_max_pool2d", relay.max))

OPS.imports("GlobalAveragePool", since=(1, 22))(_make_importer("global_avg_pool2d", relay.mean))

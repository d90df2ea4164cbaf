"""Elements placed or accumulated by index.

Where updates meet, Relay keeps the last; ONNX leaves that open and its runtimes do the same.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import (
    as_dtype,
    cast,
    comparison_dtype,
    compute_dtype,
    fill,
    to_int64,
)
from serde.onnx.ops.index.scan import ScanInput, Step, emit_scan
from serde.onnx.ops.index.slicing import END
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir.expr import Expr
from serde.walk.pairs import pair, reads

SINCE = {"add": 16, "mul": 16, "max": 18, "min": 18}
"""Version of the operator set from which on ScatterElements and ScatterND reduce."""


def _reduction_steps(how: str) -> list[Step]:
    """Return the steps that join what is there with an update."""
    if how in ("add", "mul"):
        return [Step("Add" if how == "add" else "Mul", ("there", "update"), "new")]
    pair = ("there", "update") if how == "max" else ("update", "there")
    return [Step("Less", pair, "replaces"), Step("Where", ("replaces", "update", "there"), "new")]


def _scatter_reduce(
    ctx: Export, x: Value, indices: Value, updates: Value, axis: int, how: str, dtype: str
) -> Value:
    """Accumulate along an axis, in `dtype`; before the version that does, one index at a time."""
    if ctx.version >= SINCE[how]:
        return ctx.emit("ScatterElements", x, indices, updates, axis=axis, reduction=how)
    items = [
        ScanInput("index", unsqueeze(ctx, indices, [axis + 1]), "int64", axis),
        ScanInput("update", unsqueeze(ctx, updates, [axis + 1]), dtype, axis),
    ]
    steps = [
        Step("GatherElements", ("before", "index"), "there", {"axis": axis}),
        *_reduction_steps(how),
        Step("ScatterElements", ("before", "index", "new"), "after", {"axis": axis}),
    ]
    return emit_scan(ctx, ScanInput("before", x, dtype), items, steps, after="after")


@OPS.exports("scatter_elements")
def export_scatter_elements(
    ctx: Export,
    x: Value,
    indices: Value,
    updates: Value,
    *,
    axis: int,
    reduction: Literal["update", "add", "mul", "mean", "min", "max"],
) -> Value:
    """ONNX has no mean: the sum of all, in float64, over how many they are."""
    type_ = ctx.type(x)
    position = axis % type_.rank
    if reduction == "update":
        return ctx.emit("ScatterElements", x, indices, updates, axis=position)
    positions = to_int64(ctx, indices)
    if reduction != "mean":
        work = (comparison_dtype if reduction in ("min", "max") else compute_dtype)(type_.dtype)
        operands = as_dtype(ctx, x, work), positions, as_dtype(ctx, updates, work)
        result = _scatter_reduce(ctx, *operands, position, reduction, work)
        return result if work == type_.dtype else cast(ctx, result, type_.dtype)
    real = "float64"
    operands = as_dtype(ctx, x, real), positions, as_dtype(ctx, updates, real)
    total = _scatter_reduce(ctx, *operands, position, "add", real)
    ones = [fill(ctx, ctx.emit("Shape", each), 1, real) for each in (x, updates)]
    count = _scatter_reduce(ctx, ones[0], positions, ones[1], position, "add", real)
    return cast(ctx, ctx.emit("Div", total, count), type_.dtype)


@OPS.imports("ScatterElements", since=(16, 18))
def import_scatter_elements(
    ctx: Import,
    data: Expr,
    indices: Expr,
    updates: Expr,
    *,
    axis: int = 0,
    reduction: Literal["none", "add", "mul", "min", "max"] = "none",
) -> Expr:
    _require_version(ctx, reduction)
    how = "update" if reduction == "none" else reduction
    return relay.scatter_elements(data, indices, updates, axis, how)


@OPS.exports("scatter_nd")
def export_scatter_nd(
    ctx: Export,
    x: Value,
    indices: Value,
    updates: Value,
    *,
    mode: Literal["update", "add", "mul", "min", "max"],
) -> Value:
    """Relay keeps the tuple of an index in the first axis, ONNX in the last."""
    rank, dtype = ctx.type(indices).rank, ctx.type(x).dtype
    rows = to_int64(ctx, indices)
    if rank > 1:
        perm = [*range(1, rank), 0]
        known = rows.data
        rows = (
            ctx.emit("Transpose", rows, perm=perm)
            if known is None
            else ctx.const(known.transpose(perm))
        )
    if mode == "update":
        return ctx.emit("ScatterND", x, rows, updates)
    work = (comparison_dtype if mode in ("min", "max") else compute_dtype)(dtype)
    operands = as_dtype(ctx, x, work), rows, as_dtype(ctx, updates, work)
    if ctx.version >= SINCE[mode]:
        result = ctx.emit("ScatterND", *operands, reduction=mode)
    else:
        depth = ctx.static_lengths(indices, [0])[0]
        result = _scatter_nd_reduce(ctx, operands, mode, work, depth)
    return result if work == dtype else cast(ctx, result, dtype)


@OPS.imports("ScatterND", since=(11, 13, 16, 18))
def import_scatter_nd(
    ctx: Import,
    data: Expr,
    indices: Expr,
    updates: Expr,
    *,
    reduction: Literal["none", "add", "mul", "min", "max"] = "none",
) -> Expr:
    """Relay keeps the tuple of an index in the first axis, ONNX in the last."""
    _require_version(ctx, reduction)
    rank = ctx.type(indices).rank
    positions = _normalize_indices(ctx, indices, data)
    if rank > 1:
        positions = relay.transpose(positions, axes=[rank - 1, *range(rank - 1)])
    return relay.scatter_nd(
        data, positions, updates, "update" if reduction == "none" else reduction
    )


def _require_version(ctx: Import, reduction: str) -> None:
    if reduction != "none" and ctx.version < SINCE[reduction]:
        raise Unsupported(f"reduction={reduction!r} before version {SINCE[reduction]}")


def _normalize_indices(ctx: Import, indices: Expr, data: Expr) -> Expr:
    """Return known indices, tuples along the last axis, without negative ones."""
    known = ctx.known(indices)
    if known is None or not known.ndim:
        return indices
    shape = ctx.type(data).shape[: known.shape[-1]]
    lengths = np.array([each for each in shape if isinstance(each, int)], np.int64)
    if len(lengths) < known.shape[-1]:
        return indices
    if ((known < -lengths) | (known >= lengths)).any():
        raise Unsupported(f"an index outside a shape of {lengths.tolist()}")
    return relay.Constant(np.where(known < 0, known + lengths, known).astype(known.dtype))


def _scatter_nd_reduce(
    ctx: Export, operands: tuple[Value, Value, Value], mode: str, dtype: str, depth: int
) -> Value:
    """Accumulate the updates of a ScatterND one after another."""
    x, rows, updates = operands
    shape = ctx.emit("Shape", x)
    tail = ctx.emit("Slice", shape, ctx.ints([depth]), ctx.ints([END]), ctx.ints([0]))
    single = ctx.emit("Concat", ctx.ints([-1, 1]), tail, axis=0)
    items = [
        ScanInput("index", ctx.emit("Reshape", rows, ctx.ints([-1, 1, depth])), "int64"),
        ScanInput("update", ctx.emit("Reshape", updates, single), dtype),
    ]
    steps = [
        Step("GatherND", ("before", "index"), "there"),
        *_reduction_steps(mode),
        Step("ScatterND", ("before", "index", "new"), "after"),
    ]
    return emit_scan(ctx, ScanInput("before", x, dtype), items, steps, after="after")


OPS.pairs(
    pair("TensorScatter", "serde.tensor_scatter", since=24, axis=-2, mode="linear"),
    reads("Scatter", "scatter_elements", since=9, axis=0),
    reads("ScatterElements", "scatter_elements", since=(11, 13), axis=0),
)

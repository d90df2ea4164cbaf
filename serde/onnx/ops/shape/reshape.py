"""Reshaping, transposition, and axes of length 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import cast, filled
from serde.onnx.ops.table import OPS
from serde.relay.dims import Any, Dim, product


def unsqueeze(ctx: Ctx, x: Value, axes: Sequence[int]) -> Value:
    """Insert axes of length 1; their places are an attribute before 13."""
    if ctx.version >= 13:
        return ctx.emit("Unsqueeze", x, ctx.ints(axes))
    return ctx.emit("Unsqueeze", x, axes=list(axes))


def squeeze(ctx: Ctx, x: Value, axes: Sequence[int]) -> Value:
    """Drop axes of length 1; their places are an attribute before 13."""
    if ctx.version >= 13:
        return ctx.emit("Squeeze", x, ctx.ints(axes))
    return ctx.emit("Squeeze", x, axes=list(axes))


def lengths(ctx: Ctx, x: Value, axes: Sequence[int]) -> Value:
    """Return the lengths of some axes of a value as a vector of int64, at run time if need be."""
    fixed = [ctx.type(x).shape[axis] for axis in axes]
    if all(isinstance(each, int) for each in fixed):
        return ctx.ints(each for each in fixed if isinstance(each, int))
    rank = ctx.type(x).rank
    places = ctx.ints(axis % rank for axis in axes)
    return ctx.emit("Gather", ctx.emit("Shape", x), places, axis=0)


def counting(ctx: Ctx, count: Value) -> Value:
    """Return the numbers from 0 to before `count`, a vector of one int64."""
    end = ctx.emit("Reshape", count, ctx.ints([]))
    return ctx.emit("Range", ctx.const(0, np.int64), end, ctx.const(1, np.int64))


def along(ctx: Ctx, x: Value, axis: int, rank: int) -> Value:
    """Return a vector as a tensor of `rank` whose only long axis is `axis`."""
    return ctx.emit("Reshape", x, ctx.ints([-1 if each == axis else 1 for each in range(rank)]))


def reshaped(ctx: Ctx, x: Value, dims: Sequence[Dim]) -> Value:
    """Return `x` with the shape `dims`, spelled with as little shape arithmetic as possible.

    Before 14 a Reshape has no way to say a length of 0; the result has no elements then.
    """
    if any(type(dim) is int and dim == 0 for dim in dims):
        if ctx.version < 14:
            return filled(ctx, ctx.shape(dims), 0, ctx.type(x).dtype)
        return ctx.emit("Reshape", x, ctx.shape(dims), allowzero=1)
    codes = _codes(ctx.type(x).shape, dims)
    if codes is not None:
        return ctx.emit("Reshape", x, ctx.ints(codes))
    return ctx.emit("Reshape", x, ctx.shape(dims))


def _codes(source: Sequence[Dim], dims: Sequence[Dim]) -> list[int] | None:
    """Return the shape in ONNX's codes, 0 for a length kept, -1 for one inferred, if possible."""
    codes: list[int] = []
    for axis, dim in enumerate(dims):
        if isinstance(dim, int):
            codes.append(dim)
        elif axis < len(source) and source[axis] == dim and not isinstance(dim, Any):
            codes.append(0)
        else:
            codes.append(-1)
    if codes.count(-1) > 1:
        return None
    if -1 in codes:
        others = [dim for dim, code in zip(dims, codes, strict=True) if code != -1]
        known = product(others)
        inferred = dims[codes.index(-1)]
        exact = isinstance(inferred, Any) or product(source) == known * inferred
        return codes if exact else None
    return codes


@OPS.exports("reshape")
def export_reshape(ctx: Ctx, x: Value, *, newshape: tuple[int, ...], allowzero: bool) -> Value:
    return reshaped(ctx, x, ctx.result_type().shape)


@OPS.exports("contrib_reverse_reshape")
def export_reverse_reshape(
    ctx: Ctx, x: Value, *, newshape: tuple[int, ...], allowzero: bool
) -> Value:
    return reshaped(ctx, x, ctx.result_type().shape)


@OPS.exports("reshape_like")
def export_reshape_like(
    ctx: Ctx,
    x: Value,
    like: Value,
    *,
    lhs_begin: int,
    lhs_end: int | None,
    rhs_begin: int,
    rhs_end: int | None,
) -> Value:
    whole = (lhs_begin, lhs_end, rhs_begin, rhs_end) == (0, None, 0, None)
    if whole and any(isinstance(dim, Any) for dim in ctx.result_type().shape):
        return ctx.emit("Reshape", x, ctx.emit("Shape", like))
    return reshaped(ctx, x, ctx.result_type().shape)


@OPS.exports("nn.batch_flatten")
def export_batch_flatten(ctx: Ctx, x: Value) -> Value:
    return ctx.emit("Flatten", x, axis=1)


@OPS.exports("transpose")
def export_transpose(ctx: Ctx, x: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(x).rank
    order = range(rank - 1, -1, -1) if axes is None else (axis % rank for axis in axes)
    return ctx.emit("Transpose", x, perm=list(order))


@OPS.exports("expand_dims")
def export_expand_dims(ctx: Ctx, x: Value, *, axis: int, num_newaxis: int) -> Value:
    first = axis if axis >= 0 else ctx.type(x).rank + 1 + axis
    return unsqueeze(ctx, x, range(first, first + num_newaxis)) if num_newaxis else x


@OPS.exports("squeeze")
def export_squeeze(ctx: Ctx, x: Value, *, axis: tuple[int, ...] | None) -> Value:
    shape = ctx.type(x).shape
    if axis is None:
        axes = [i for i, dim in enumerate(shape) if dim == 1]
    else:
        axes = sorted(each % len(shape) for each in axis)
    return squeeze(ctx, x, axes) if axes else x


def integers(ctx: Ctx, x: Value) -> Value:
    """Return a tensor of integers as int64, which ONNX takes for shapes."""
    return x if ctx.type(x).dtype == "int64" else cast(ctx, x, np.int64)

"""Other shapes of the same elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import cast
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


def reshape(ctx: Ctx, x: Value, dims: Sequence[Dim]) -> Value:
    """Return `x` with the shape `dims`, spelled with as little shape arithmetic as possible."""
    if any(type(dim) is int and dim == 0 for dim in dims):
        if ctx.version < 14:
            raise Unsupported("a shape with a length of 0 needs version 14")
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
    return reshape(ctx, x, ctx.result_type().shape)


@OPS.exports("contrib_reverse_reshape")
def export_reverse_reshape(
    ctx: Ctx, x: Value, *, newshape: tuple[int, ...], allowzero: bool
) -> Value:
    return reshape(ctx, x, ctx.result_type().shape)


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
    return reshape(ctx, x, ctx.result_type().shape)


@OPS.exports("nn.batch_flatten")
def export_batch_flatten(ctx: Ctx, x: Value) -> Value:
    return ctx.emit("Flatten", x, axis=1)


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

"""Dense layers and matrix products."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import cast
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim
from serde.relay.shapes import is_float


@OPS.exports("nn.dense")
def export_dense(
    ctx: Ctx,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    units: Dim | None,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    if not is_float(ctx.type(x).dtype):
        result = integer_product(ctx, x, weight, turn_y=True)
        return result if bias is None else ctx.emit("Add", result, bias)
    _require_plain(ctx, x)
    if ctx.type(x).rank != 2:
        transposed = ctx.emit("Transpose", weight, perm=[1, 0])
        return ctx.emit("MatMul", x, transposed)
    return ctx.emit("Gemm", x, weight, bias, transB=1)


def _require_plain(ctx: Ctx, x: Value) -> None:
    dtype = ctx.type(x).dtype
    if ctx.result_type().dtype != dtype:
        raise Unsupported(f"a product of {dtype} summed in {ctx.result_type().dtype}")


BYTES = ("int8", "uint8")
"""What the integer products of ONNX take; they sum in int32."""


def integer_product(
    ctx: Ctx,
    x: Value,
    y: Value,
    zero_points: tuple[Value, Value] | None = None,
    *,
    turn_x: bool = False,
    turn_y: bool = False,
) -> Value:
    """Return the matrix product of integers, each without its zero point, in the result's dtype.

    MatMulInteger takes bytes and gives int32; everything else is a MatMul of wider integers.

    Args:
        ctx: The context.
        x: Left side.
        y: Right side.
        zero_points: Those of both sides, scalars or, of the right side, one for each column.
        turn_x: Whether the last two axes of `x` are exchanged.
        turn_y: Whether those of `y` are.
    """
    dtype = ctx.result_type().dtype
    left, right = _turned(ctx, x, turn_x), _turned(ctx, y, turn_y)
    sides = [ctx.type(x).dtype, ctx.type(y).dtype]
    narrow = all(side in BYTES for side in sides) and dtype == "int32"
    if narrow and (zero_points is None or all(map(_fits, zero_points, sides))):
        points = [
            None if not zero.any() else ctx.const(zero, side)
            for zero, side in zip(map(ctx.constant, zero_points or ()), sides, strict=False)
        ]
        return ctx.emit("MatMulInteger", left, right, *points)
    wide = "int64" if dtype == "int64" else "int32"
    parts = [cast(ctx, left, wide), cast(ctx, right, wide)]
    if zero_points is not None:
        parts = [
            ctx.emit("Sub", part, cast(ctx, zero, wide))
            for part, zero in zip(parts, zero_points, strict=True)
        ]
    total = ctx.emit("MatMul", *parts)
    return total if dtype == wide else cast(ctx, total, dtype)


def _fits(zero_point: Value, dtype: str) -> bool:
    """Whether a zero point is constant and a number of `dtype`."""
    if zero_point.data is None:
        return False
    limits = np.iinfo(dtype)
    return bool(((zero_point.data >= limits.min) & (zero_point.data <= limits.max)).all())


@OPS.exports("nn.matmul")
def export_matmul(
    ctx: Ctx,
    x: Value,
    y: Value,
    *,
    units: Dim | None,
    out_dtype: np.dtype[AnyValue] | None,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    if not is_float(ctx.type(x).dtype):
        return integer_product(ctx, x, y, turn_x=transpose_a, turn_y=transpose_b)
    _require_plain(ctx, x)
    return ctx.emit("MatMul", _turned(ctx, x, transpose_a), _turned(ctx, y, transpose_b))


@OPS.exports("nn.batch_matmul")
def export_batch_matmul(
    ctx: Ctx,
    x: Value,
    y: Value,
    *,
    out_dtype: np.dtype[AnyValue] | None,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    if not is_float(ctx.type(x).dtype):
        return integer_product(ctx, x, y, turn_x=transpose_a, turn_y=transpose_b)
    _require_plain(ctx, x)
    return ctx.emit("MatMul", _turned(ctx, x, transpose_a), _turned(ctx, y, transpose_b))


def _turned(ctx: Ctx, x: Value, transpose: bool) -> Value:
    """Return `x` with its last two axes exchanged, if asked."""
    if not transpose:
        return x
    rank = ctx.type(x).rank
    return ctx.emit("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


@OPS.exports("nn.bias_add")
def export_bias_add(ctx: Ctx, x: Value, bias: Value, *, axis: int) -> Value:
    rank = ctx.type(x).rank
    following = rank - 1 - axis % rank
    return ctx.emit("Add", x, ctx.view(bias, (*ctx.type(bias).shape, *(1,) * following)))


@OPS.exports("einsum", since=12)
def export_einsum(ctx: Ctx, data: tuple[Value, ...], *, equation: str) -> Value:
    return ctx.emit("Einsum", *data, equation=equation)

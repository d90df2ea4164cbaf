"""Dense layers and matrix products."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim


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
    _require_plain(ctx, x)
    if ctx.type(x).rank != 2:
        transposed = ctx.emit("Transpose", weight, perm=[1, 0])
        return ctx.emit("MatMul", x, transposed)
    return ctx.emit("Gemm", x, weight, bias, transB=1)


def _require_plain(ctx: Ctx, x: Value) -> None:
    dtype = ctx.type(x).dtype
    if ctx.result_type().dtype != dtype:
        raise Unsupported(f"a product of {dtype} summed in {ctx.result_type().dtype}")


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

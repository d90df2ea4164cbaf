"""Products of quantised matrices whose results are floats, and linear quantisation."""

from __future__ import annotations

import serde.relay as relay
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.qnn.integer import integer_matmul, requantized, row_zero_point
from serde.onnx.ops.qnn.linear import import_dequantize_linear, quantized
from serde.onnx.ops.table import MICROSOFT
from serde.relay.ir.expr import Expr, TupleGetItem
from serde.relay.ir.registry import call

__all__ = ["real_product"]


@MICROSOFT.imports("QuantizeLinear")
def import_microsoft_quantize_linear(
    ctx: ImportContext, x: Expr, scale: Expr, zero_point: Expr | None = None, *, axis: int = 1
) -> Expr:
    return quantized(ctx, x, scale, zero_point, axis=axis)


@MICROSOFT.imports("DequantizeLinear")
def import_microsoft_dequantize_linear(
    ctx: ImportContext, x: Expr, scale: Expr, zero_point: Expr | None = None, *, axis: int = 1
) -> Expr:
    return import_dequantize_linear(ctx, x, scale, zero_point, axis=axis)


def real_product(
    ctx: ImportContext,
    a: Expr,
    b: Expr,
    factor: Expr,
    a_zero_point: Expr | None,
    b_zero_point: Expr | None,
    bias: Expr | None = None,
) -> Expr:
    """Return a product of bytes less their zero points, times a factor, in its dtype."""
    total = integer_matmul(ctx, a, b, a_zero_point, b_zero_point)
    real = relay.multiply(relay.cast(total, ctx.type(factor).dtype), factor)
    return real if bias is None else relay.add(real, bias)


@MICROSOFT.imports("MatMulIntegerToFloat")
def import_matmul_integer_to_float(
    ctx: ImportContext,
    a: Expr,
    b: Expr,
    a_scale: Expr,
    b_scale: Expr,
    a_zero_point: Expr | None = None,
    b_zero_point: Expr | None = None,
    bias: Expr | None = None,
) -> Expr:
    factor = relay.multiply(a_scale, b_scale)
    return real_product(ctx, a, b, factor, row_zero_point(ctx, a_zero_point), b_zero_point, bias)


@MICROSOFT.imports("DynamicQuantizeMatMul")
def import_dynamic_quantize_matmul(
    ctx: ImportContext,
    a: Expr,
    b: Expr,
    b_scale: Expr,
    b_zero_point: Expr | None = None,
    bias: Expr | None = None,
) -> Expr:
    levels = call("serde.dynamic_quantize_linear", a)
    data, scale, point = (TupleGetItem(levels, index) for index in range(3))
    return real_product(ctx, data, b, relay.multiply(scale, b_scale), point, b_zero_point, bias)


@MICROSOFT.imports("QGemm")
def import_qgemm(
    ctx: ImportContext,
    a: Expr,
    a_scale: Expr,
    a_zero_point: Expr,
    b: Expr,
    b_scale: Expr,
    b_zero_point: Expr,
    c: Expr | None = None,
    y_scale: Expr | None = None,
    y_zero_point: Expr | None = None,
    *,
    alpha: float = 1.0,
    transA: bool = False,  # noqa: N803
    transB: bool = False,  # noqa: N803
) -> Expr:
    """The bias is of int32, in the scale of the product; without a scale the result is real."""
    left = relay.transpose(a, axes=[1, 0]) if transA else a
    right = relay.transpose(b, axes=[1, 0]) if transB else b
    total = integer_matmul(ctx, left, right, a_zero_point, b_zero_point)
    if c is not None:
        total = relay.add(total, c)
    factor = relay.multiply(relay.multiply(a_scale, b_scale), scalar_like(ctx, a_scale, alpha))
    if y_scale is None:
        return relay.multiply(relay.cast(total, "float32"), factor)
    dtype = ctx.type(a if y_zero_point is None else y_zero_point).dtype
    factor = relay.divide(factor, y_scale)
    return requantized(ctx, total, factor, y_zero_point, dtype)

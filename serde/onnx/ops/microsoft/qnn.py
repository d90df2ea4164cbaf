"""Layers of quantised tensors; most are dequantised, computed in float32, and quantised again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.activation import apply_to_rows
from serde.onnx.ops.conv.windows import ConvAttributes
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.linalg.product import build_matmul
from serde.onnx.ops.microsoft.conv import to_channels_first, to_channels_last
from serde.onnx.ops.pool.geometry import DilatedPoolAttributes, PoolAttributes
from serde.onnx.ops.pool.window import import_average_pool
from serde.onnx.ops.qnn.conv import import_qlinear_conv
from serde.onnx.ops.qnn.linear import import_dequantize_linear, import_quantize_linear
from serde.onnx.ops.qnn.product import build_integer_matmul, requantize, to_row
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir import Expr, TupleGetItem, call


@MICROSOFT.imports("QuantizeLinear")
def import_microsoft_quantize_linear(
    ctx: Import, x: Expr, scale: Expr, zero_point: Expr | None = None, *, axis: int = 1
) -> Expr:
    return import_quantize_linear(ctx, x, scale, zero_point, axis=axis)


@MICROSOFT.imports("DequantizeLinear")
def import_microsoft_dequantize_linear(
    ctx: Import, x: Expr, scale: Expr, zero_point: Expr | None = None, *, axis: int = 1
) -> Expr:
    return import_dequantize_linear(ctx, x, scale, zero_point, axis=axis)


def build_real_matmul(
    ctx: Import, a: Expr, b: Expr, factor: Expr, a_zero_point: Expr | None,
    b_zero_point: Expr | None, bias: Expr | None = None,
) -> Expr:  # fmt: skip
    """Return a product of bytes less their zero points, times a factor, in its dtype."""
    total = build_integer_matmul(ctx, a, b, a_zero_point, b_zero_point)
    real = relay.multiply(relay.cast(total, ctx.type(factor).dtype), factor)
    return real if bias is None else relay.add(real, bias)


@MICROSOFT.imports("MatMulIntegerToFloat")
def import_matmul_integer_to_float(
    ctx: Import, a: Expr, b: Expr, a_scale: Expr, b_scale: Expr, a_zero_point: Expr | None = None,
    b_zero_point: Expr | None = None, bias: Expr | None = None,
) -> Expr:  # fmt: skip
    factor = relay.multiply(a_scale, b_scale)
    return build_real_matmul(ctx, a, b, factor, to_row(ctx, a_zero_point), b_zero_point, bias)


@MICROSOFT.imports("MatMulInteger16")
def import_matmul_integer16(ctx: Import, a: Expr, b: Expr) -> Expr:
    """The product is summed in 32 bits, unsigned where both sides are."""
    dtype = "uint32" if {ctx.type(x).dtype for x in (a, b)} == {"uint16"} else "int32"
    return build_matmul(ctx, relay.cast(a, dtype), relay.cast(b, dtype))


@MICROSOFT.imports("DynamicQuantizeMatMul")
def import_dynamic_quantize_matmul(
    ctx: Import,
    a: Expr,
    b: Expr,
    b_scale: Expr,
    b_zero_point: Expr | None = None,
    bias: Expr | None = None,
) -> Expr:
    levels = call("serde.dynamic_quantize_linear", a)
    data, scale, point = (TupleGetItem(levels, index) for index in range(3))
    return build_real_matmul(
        ctx, data, b, relay.multiply(scale, b_scale), point, b_zero_point, bias
    )


@MICROSOFT.imports("QGemm")
def import_qgemm(
    ctx: Import,
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
    total = build_integer_matmul(ctx, left, right, a_zero_point, b_zero_point)
    if c is not None:
        total = relay.add(total, c)
    factor = relay.multiply(relay.multiply(a_scale, b_scale), scalar_like(ctx, a_scale, alpha))
    if y_scale is None:
        return relay.multiply(relay.cast(total, "float32"), factor)
    dtype = ctx.type(a if y_zero_point is None else y_zero_point).dtype
    factor = relay.divide(factor, y_scale)
    return requantize(ctx, total, factor, y_zero_point, dtype)


@MICROSOFT.imports("QLinearConv")
def import_microsoft_qlinear_conv(
    ctx: Import, x: Expr, x_scale: Expr, x_zero_point: Expr, w: Expr, w_scale: Expr,
    w_zero_point: Expr, y_scale: Expr, y_zero_point: Expr, b: Expr | None = None,
    *, channels_last: bool = False, conv: ConvAttributes,
) -> Expr:  # fmt: skip
    """The data may have its channels behind; the weight is as in ONNX."""
    found = import_qlinear_conv(
        ctx, to_channels_first(ctx, x) if channels_last else x, x_scale, x_zero_point, w, w_scale,
        w_zero_point, y_scale, y_zero_point, b, conv=conv,
    )  # fmt: skip
    return to_channels_last(ctx, found) if channels_last else found


def _dequantize(ctx: Import, x: Expr, scale: Expr, zero_point: Expr | None) -> Expr:
    return import_dequantize_linear(ctx, x, scale, zero_point)


def _quantize(ctx: Import, x: Expr, scale: Expr, zero_point: Expr | None, dtype: str) -> Expr:
    """Return numbers quantised; without a zero point in the dtype that came in."""
    point = relay.const(0, dtype) if zero_point is None else zero_point
    return import_quantize_linear(ctx, x, scale, point)


def _make_binary_importer(build: Callable[[Expr, Expr], Expr]) -> Callable[..., Expr]:
    def import_binary(
        ctx: Import, a: Expr, a_scale: Expr, a_zero_point: Expr | None, b: Expr, b_scale: Expr,
        b_zero_point: Expr | None, c_scale: Expr, c_zero_point: Expr | None = None,
    ) -> Expr:  # fmt: skip
        left, right = (
            _dequantize(ctx, a, a_scale, a_zero_point),
            _dequantize(ctx, b, b_scale, b_zero_point),
        )
        return _quantize(ctx, build(left, right), c_scale, c_zero_point, ctx.type(a).dtype)

    return import_binary


MICROSOFT.imports("QLinearAdd")(_make_binary_importer(relay.add))


MICROSOFT.imports("QLinearMul")(_make_binary_importer(relay.multiply))


@MICROSOFT.imports("QLinearWhere")
def import_qlinear_where(
    ctx: Import, condition: Expr, x: Expr, x_scale: Expr, x_zero_point: Expr, y: Expr,
    y_scale: Expr, y_zero_point: Expr, z_scale: Expr, z_zero_point: Expr,
) -> Expr:  # fmt: skip
    left, right = (
        _dequantize(ctx, x, x_scale, x_zero_point),
        _dequantize(ctx, y, y_scale, y_zero_point),
    )
    return import_quantize_linear(ctx, relay.where(condition, left, right), z_scale, z_zero_point)


@MICROSOFT.imports("QLinearConcat")
def import_qlinear_concat(
    ctx: Import, y_scale: Expr, y_zero_point: Expr, *inputs: Expr, axis: int
) -> Expr:
    if len(inputs) % 3:
        raise Unsupported(f"{len(inputs)} inputs: expected three for each tensor")
    parts = [
        import_quantize_linear(
            ctx, _dequantize(ctx, *inputs[position : position + 3]), y_scale, y_zero_point
        )
        for position in range(0, len(inputs), 3)
    ]
    return relay.concatenate(parts, axis=axis)


@MICROSOFT.imports("QLinearSigmoid")
def import_qlinear_sigmoid(
    ctx: Import,
    x: Expr,
    x_scale: Expr,
    x_zero_point: Expr | None,
    y_scale: Expr,
    y_zero_point: Expr | None = None,
) -> Expr:
    found = relay.sigmoid(_dequantize(ctx, x, x_scale, x_zero_point))
    return _quantize(ctx, found, y_scale, y_zero_point, ctx.type(x).dtype)


@MICROSOFT.imports("QLinearLeakyRelu")
def import_qlinear_leaky_relu(
    ctx: Import, x: Expr, x_scale: Expr, x_zero_point: Expr | None, y_scale: Expr,
    y_zero_point: Expr | None = None,
    *, alpha: float = 0.01,
) -> Expr:  # fmt: skip
    found = relay.nn.leaky_relu(_dequantize(ctx, x, x_scale, x_zero_point), alpha=alpha)
    return _quantize(ctx, found, y_scale, y_zero_point, ctx.type(x).dtype)


@MICROSOFT.imports("QLinearSoftmax")
def import_qlinear_softmax(
    ctx: Import, x: Expr, x_scale: Expr, x_zero_point: Expr | None, y_scale: Expr,
    y_zero_point: Expr,
    *, axis: int = -1, opset: int,
) -> Expr:  # fmt: skip
    """Before opset 13, all axes from `axis` on form one row."""
    real = _dequantize(ctx, x, x_scale, x_zero_point)
    if opset < 13:
        found = apply_to_rows(ctx, real, axis, relay.nn.softmax)
    else:
        found = relay.nn.softmax(real, axis=axis)
    return import_quantize_linear(ctx, found, y_scale, y_zero_point)


@MICROSOFT.imports("QLinearAveragePool")
def import_qlinear_average_pool(
    ctx: Import, x: Expr, x_scale: Expr, x_zero_point: Expr | None, y_scale: Expr,
    y_zero_point: Expr | None = None,
    *, channels_last: bool = False, count_include_pad: bool = False, pool: PoolAttributes,
) -> Expr:  # fmt: skip
    """The zero point is added before rounding, unlike everywhere else."""
    real = _dequantize(ctx, x, x_scale, x_zero_point)
    found = import_average_pool(
        ctx,
        to_channels_first(ctx, real) if channels_last else real,
        pool=DilatedPoolAttributes(**vars(pool)),
        count_include_pad=count_include_pad,
    )
    found = to_channels_last(ctx, found) if channels_last else found
    dtype = ctx.type(x).dtype
    level = relay.divide(found, y_scale)
    if y_zero_point is not None:
        level = relay.add(level, relay.cast(y_zero_point, "float32"))
    return _quantize(ctx, level, relay.const(np.float32(1)), None, dtype)


@MICROSOFT.imports("QLinearGlobalAveragePool")
def import_qlinear_global_average_pool(
    ctx: Import, x: Expr, x_scale: Expr, x_zero_point: Expr, y_scale: Expr, y_zero_point: Expr,
    *, channels_last: bool = False,
) -> Expr:  # fmt: skip
    real = _dequantize(ctx, x, x_scale, x_zero_point)
    rank = ctx.type(x).rank
    axes = tuple(range(1, rank - 1)) if channels_last else tuple(range(2, rank))
    found = relay.mean(real, axis=axes, keepdims=True)
    return import_quantize_linear(ctx, found, y_scale, y_zero_point)

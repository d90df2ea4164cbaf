"""Quantised products in one step."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.conv.windows import pads
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Call, Constant, Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import split_padding
from serde.relay.ir.types import TensorType


def _runs(node: Call) -> bool:
    """ONNX Runtime wants one dtype before and after, and signed weights for signed data."""
    data, weight = (argument.type for argument in node.args[:2])
    if not isinstance(data, TensorType) or not isinstance(weight, TensorType):
        return False
    signed = data.dtype == "uint8" or weight.dtype == "int8"
    return signed and node.attrs["out_dtype"].name == data.dtype


@OPS.exports("serde.qlinear_conv2d", when=_runs)
def export_qlinear_conv2d(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    bias: Value | None,
    data_scale: Value,
    data_zero: Value,
    weight_scale: Value,
    weight_zero: Value,
    out_scale: Value,
    out_zero: Value,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    out_dtype: np.dtype[AnyValue],
) -> Value:
    return ctx.emit(
        "QLinearConv",
        data,
        data_scale,
        data_zero,
        weight,
        weight_scale,
        weight_zero,
        out_scale,
        out_zero,
        bias,
        strides=list(strides),
        pads=pads(padding, 2),
        dilations=list(dilation),
        group=groups,
    )


def _is_zero(x: Expr) -> bool:
    return isinstance(x, Constant) and not x.data.any()


@OPS.expands("serde.qlinear_conv2d")
def expand_qlinear_conv2d(
    data: Expr,
    weight: Expr,
    bias: Expr | None,
    data_scale: Expr,
    data_zero: Expr,
    weight_scale: Expr,
    weight_zero: Expr,
    out_scale: Expr,
    out_zero: Expr,
    *,
    out_dtype: np.dtype[AnyValue],
    **window: AnyValue,
) -> Expr:
    """The sums stay integers where ONNX Runtime has no operator for the whole."""
    padding = split_padding(window["padding"], 2)
    window["padding"] = (*padding[0], *padding[1])
    zeros = (None if _is_zero(each) else each for each in (data_zero, weight_zero))
    total: Expr = call("serde.conv_integer", data, weight, *zeros, **window)
    if bias is not None:
        total = relay.nn.bias_add(total, bias, axis=1)
    joint = relay.multiply(data_scale, weight_scale)
    real = call("serde.dequantize_linear", total, joint, None, axis=1)
    return call("serde.quantize_linear", real, out_scale, out_zero, axis=1, out_dtype=out_dtype)


@OPS.exports("serde.qlinear_matmul", when=_runs)
def export_qlinear_matmul(
    ctx: ExportContext,
    lhs: Value,
    rhs: Value,
    lhs_scale: Value,
    lhs_zero: Value,
    rhs_scale: Value,
    rhs_zero: Value,
    out_scale: Value,
    out_zero: Value,
    *,
    out_dtype: np.dtype[AnyValue],
) -> Value:
    return ctx.emit(
        "QLinearMatMul", lhs, lhs_scale, lhs_zero, rhs, rhs_scale, rhs_zero, out_scale, out_zero
    )

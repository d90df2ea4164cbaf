"""Quantised products in one step."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.conv.windows import pads
from serde.onnx.ops.table import OPS
from serde.relay.expr import Call
from serde.relay.types import TensorType


def _runs(node: Call) -> bool:
    """ONNX Runtime wants one dtype before and after, and signed weights for signed data."""
    data, weight = (argument.type for argument in node.args[:2])
    if not isinstance(data, TensorType) or not isinstance(weight, TensorType):
        return False
    signed = data.dtype == "uint8" or weight.dtype == "int8"
    return signed and node.attrs["out_dtype"].name == data.dtype


@OPS.exports("serde.qlinear_conv2d", when=_runs)
def export_qlinear_conv2d(
    ctx: Ctx,
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


@OPS.exports("serde.qlinear_matmul", when=_runs)
def export_qlinear_matmul(
    ctx: Ctx,
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

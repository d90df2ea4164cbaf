"""Products of quantised matrices. ONNX keeps a zero point in the dtype of its data."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.linalg import integer_product
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim


@OPS.exports("qnn.dense")
def export_dense(
    ctx: ExportContext,
    x: Value,
    weight: Value,
    input_zero_point: Value,
    weight_zero_point: Value,
    input_scale: Value,
    weight_scale: Value,
    *,
    units: Dim | None,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    """The scales tell what the sums mean and do not enter them."""
    return integer_product(ctx, x, weight, (input_zero_point, weight_zero_point), turn_y=True)


@OPS.exports("qnn.batch_matmul")
def export_batch_matmul(
    ctx: ExportContext,
    x: Value,
    y: Value,
    x_zero_point: Value,
    y_zero_point: Value,
    x_scale: Value,
    y_scale: Value,
    *,
    out_dtype: np.dtype[AnyValue] | None,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    """The scales tell what the sums mean and do not enter them."""
    points = (x_zero_point, y_zero_point)
    return integer_product(ctx, x, y, points, turn_x=transpose_a, turn_y=transpose_b)


def zero_point_like(ctx: ExportContext, zero_point: Value, like: Value) -> Value:
    """Return a constant zero point in the dtype of what it belongs to.

    Raises:
        Unsupported: It is computed at run time, or no number of that dtype.
    """
    dtype = ctx.type(like).dtype
    data = ctx.constant(zero_point)
    limits = np.iinfo(dtype)
    if (data < limits.min).any() or (data > limits.max).any():
        raise Unsupported(f"a zero point of {data.tolist()} is outside {dtype}")
    return ctx.const(data.reshape(()) if data.size == 1 else data, dtype)

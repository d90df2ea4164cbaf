"""Quantisation with halves that go away from zero. Zero points of Relay are int32."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr, const, tensor_type
from serde.relay.ir.registry import call
from serde.relay.op.qnn.parameters import narrow_zero_point, spread
from serde.relay.op.qnn.rescale import quantize_body


@OPS.expands("qnn.quantize")
def expand_quantize(
    data: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int,
) -> Expr:
    """Relay rounds a half away from zero and ONNX to even, so the quotient is rounded first.

    QuantizeLinear then adds the zero point and saturates, where ONNX has the dtype; its scale
    is one.
    """
    zero = narrow_zero_point(output_zero_point, out_dtype.name)
    if zero is None or zero.data.ndim or out_dtype.itemsize > 1:
        return quantize_body(data, output_scale, output_zero_point, out_dtype=out_dtype, axis=axis)
    quotient = call("divide", data, spread(output_scale, tensor_type(data).rank, axis))
    one = const(1.0)
    return call("serde.quantize_linear", call("round", quotient), one, zero, out_dtype=out_dtype)

"""Builders below ``relay.qnn.op``; generated from the declarations."""

from collections.abc import Sequence
from typing import Literal

from serde.relay._builders._types import DType
from serde.relay.ir.dims import DimLike
from serde.relay.ir.expr import Expr, TupleWrapper

def abs(
    x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
) -> Expr:
    """Build ``qnn.abs``."""

def add(
    lhs: Expr,
    rhs: Expr,
    lhs_scale: Expr,
    lhs_zero_point: Expr,
    rhs_scale: Expr,
    rhs_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> Expr:
    """``y = lhs + rhs`` of real numbers, each requantized to the result's scale."""

def avg_pool2d(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NHWC",
    out_layout: str = "",
) -> Expr:
    """``y = trunc(nn.avg_pool2d(q))``, where q is the input requantized, as int32."""

def batch_matmul(
    x: Expr,
    y: Expr,
    x_zero_point: Expr,
    y_zero_point: Expr,
    x_scale: Expr,
    y_scale: Expr,
    out_dtype: DType = "int32",
) -> Expr:
    """Build ``qnn.batch_matmul`` with the right side transposed, the only form TVM builds."""

def concatenate(
    data: Expr | TupleWrapper | Sequence[Expr],
    input_scales: Expr | TupleWrapper | Sequence[Expr],
    input_zero_points: Expr | TupleWrapper | Sequence[Expr],
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int,
) -> Expr:
    """Build ``qnn.concatenate`` of a tuple or several expressions."""

def contrib_dense_pack(
    data: Expr,
    weight: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    kernel_layout: str = "NC",
    units: DimLike | None = None,
    out_dtype: DType | None = "int32",
) -> Expr:
    """As ``qnn.dense``, of a weight kept in blocks such as those of NC32n4c."""

def conv2d(
    data: Expr,
    kernel: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    kernel_size: int | Sequence[int] | None,
    channels: DimLike | None,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: DType | None = "int32",
) -> Expr:
    """``nn.conv2d(data - input_zero_point, weight - weight_zero_point)`` in integers."""

def conv2d_transpose(
    data: Expr,
    weight: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: DimLike | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: int | Sequence[int] = (0, 0),
    out_dtype: DType | None = "int32",
) -> Expr:
    """``nn.conv2d_transpose(data - input_zero_point, weight - weight_zero_point)`` in integers."""

def dense(
    data: Expr,
    weight: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    units: DimLike | None,
    out_dtype: DType | None = "int32",
) -> Expr:
    """``y = (data - input_zero_point) @ (weight - weight_zero_point).T`` in integers."""

def dequantize(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    axis: int = -1,
    out_dtype: DType = "float32",
) -> Expr:
    """``y = (x - zero_point) * scale`` in float32; float16 saturates at its largest numbers."""

def erf(
    x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
) -> Expr:
    """Build ``qnn.erf``."""

def exp(
    x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
) -> Expr:
    """Build ``qnn.exp``."""

def hardswish(
    x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
) -> Expr:
    """Build ``qnn.hardswish``."""

def leaky_relu(
    x: Expr,
    alpha: float,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
) -> Expr:
    """Build ``qnn.leaky_relu``; the slope comes second, as in TVM."""

def log(
    x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
) -> Expr:
    """Build ``qnn.log``."""

def mul(
    lhs: Expr,
    rhs: Expr,
    lhs_scale: Expr,
    lhs_zero_point: Expr,
    rhs_scale: Expr,
    rhs_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> Expr:
    """``requantize((lhs - lhs_zero_point) * (rhs - rhs_zero_point), lhs_scale * rhs_scale)``."""

def quantize(
    data: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
    out_dtype: DType = "int8",
) -> Expr:
    """``y = saturate(round(x / scale) + zero_point)``; halves are rounded away from zero."""

def requantize(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
    rounding: Literal["None", "UPWARD", "TONEAREST"] = "None",
    compute_dtype: Literal["None", "int64", "float32", "float64"] = "None",
    out_dtype: DType | None = "int8",
) -> Expr:
    """``y = saturate(round((x - input_zero) * input_scale / output_scale) + output_zero)``."""

def rsqrt(
    x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
) -> Expr:
    """Build ``qnn.rsqrt``."""

def sigmoid(
    x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
) -> Expr:
    """Build ``qnn.sigmoid``."""

def simulated_dequantize(
    data: Expr, input_scale: Expr, input_zero_point: Expr, axis: int = -1, in_dtype: DType = "int8"
) -> Expr:
    """Build ``qnn.simulated_dequantize``; the dtype is a name or an expression of its number."""

def simulated_quantize(
    data: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
    out_dtype: DType = "int8",
) -> Expr:
    """Build ``qnn.simulated_quantize``; the dtype is a name or an expression of its number."""

def softmax(
    x: Expr,
    scale: Expr,
    zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
) -> Expr:
    """``y = exp(x) / sum(exp(x))`` along `axis`, by shifts and integers alone."""

def sqrt(
    x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
) -> Expr:
    """Build ``qnn.sqrt``."""

def subtract(
    lhs: Expr,
    rhs: Expr,
    lhs_scale: Expr,
    lhs_zero_point: Expr,
    rhs_scale: Expr,
    rhs_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> Expr:
    """``y = lhs - rhs`` of real numbers, each requantized to the result's scale."""

def tanh(
    x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
) -> Expr:
    """Build ``qnn.tanh``."""

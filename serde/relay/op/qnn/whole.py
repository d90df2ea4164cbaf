"""Quantised products that end in quantised numbers, as runtimes compute them in one step."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Expr, TensorType, call, get, join_dim, relay_op, sample, tensor
from serde.relay.ir.traits import Quantized

DType = np.dtype[AnyValue]
_BYTES = ("int8", "uint8")


def _require_bytes(**operands: TensorType) -> None:
    for name, type_ in operands.items():
        if type_.dtype not in _BYTES:
            raise TypeInferenceError(f"operand {name}: expected int8 or uint8, found {type_!r}")


def _require_parameters(data: TensorType, scale: TensorType, zero: TensorType, axis: int) -> None:
    """Check the scale and zero point of an operand: one, or one for each index of `axis`."""
    if scale.dtype != "float32" or zero.dtype != data.dtype or scale.rank != zero.rank:
        raise TypeInferenceError(f"{scale!r} and {zero!r} do not quantise {data!r}")
    if scale.rank > 1:
        raise TypeInferenceError(f"expected a scale of rank 0 or 1, found {scale!r}")
    for each in (scale, zero) if scale.rank else ():
        join_dim(each.shape[0], data.shape[axis])


def _require_scalar(scale: TensorType, zero: TensorType, dtype: str) -> None:
    if scale != TensorType((), "float32") or zero != TensorType((), dtype):
        raise TypeInferenceError(f"expected scalars for {dtype}, found {scale!r} and {zero!r}")


def _requantize(sums: Array, factor: Array, zero: Array, dtype: DType) -> Array:
    """Round half to even and cut to the range; `factor` is float32."""
    limits = np.iinfo(dtype)
    steps = np.rint(sums.astype(np.float32) * factor) + zero.astype(np.float32)
    return np.clip(steps, limits.min, limits.max).astype(dtype)


def _conv_type(
    data: TensorType,
    weight: TensorType,
    bias: TensorType | None,
    *parameters: TensorType,
    out_dtype: DType,
    **window: AnyValue,
) -> TensorType:
    """The weight may have a scale for each output; all other parameters are scalars."""
    data_scale, data_zero, weight_scale, weight_zero, out_scale, out_zero = parameters
    _require_bytes(data=data, weight=weight)
    _require_scalar(data_scale, data_zero, data.dtype)
    _require_parameters(weight, weight_scale, weight_zero, 0)
    _require_scalar(out_scale, out_zero, out_dtype.name)
    if bias is not None:
        if bias.rank != 1 or bias.dtype != "int32":
            raise TypeInferenceError(f"expected a bias of int32 for each channel, found {bias!r}")
        join_dim(bias.shape[0], weight.shape[0])
    floats = (TensorType(each.shape) for each in (data, weight))
    conv = get("nn.conv2d")
    found = conv.infer(*floats, **conv.bind(window))
    join_dim(found.shape[1], weight.shape[0])  # No filters of each channel, as Relay's has.
    return TensorType(found.shape, out_dtype)


def _decompose_conv(
    data: Expr,
    weight: Expr,
    bias: Expr | None,
    *parameters: Expr,
    out_dtype: DType,
    **window: AnyValue,
) -> Expr:
    """Real numbers are convolved in float32, then quantised."""
    data_scale, data_zero, weight_scale, weight_zero, out_scale, out_zero = parameters
    x = call("serde.dequantize_linear", data, data_scale, data_zero, axis=1)
    w = call("serde.dequantize_linear", weight, weight_scale, weight_zero, axis=0)
    real: Expr = call("nn.conv2d", x, w, **window)
    if bias is not None:
        joint = call("multiply", data_scale, weight_scale)
        term = call("multiply", call("cast", bias, dtype="float32"), joint)
        real = call("nn.bias_add", real, term, axis=1)
    return call("serde.quantize_linear", real, out_scale, out_zero, axis=1, out_dtype=out_dtype)


def _scalar(value: AnyValue, dtype: str) -> Array:
    return np.array(value, dtype)


_U8 = {"low": 0, "high": 255}
_S8 = {"low": -128, "high": 127}


@relay_op(
    "serde.qlinear_conv2d",
    traits=(Quantized,),
    infer=_conv_type,
    decompose=_decompose_conv,
    samples=[
        sample(
            tensor((2, 4, 5, 6), "uint8", **_U8),
            tensor((6, 4, 3, 3), "int8", **_S8),
            tensor((6,), "int32", low=-900, high=900),
            _scalar(0.05, "float32"),
            _scalar(120, "uint8"),
            np.linspace(0.01, 0.02, 6).astype(np.float32),
            np.zeros(6, np.int8),
            _scalar(0.9, "float32"),
            _scalar(100, "uint8"),
            padding=(1, 1),
            strides=(2, 1),
        ),
        sample(
            tensor((1, 4, 5, 5), "int8", **_S8),
            tensor((4, 1, 2, 2), "int8", **_S8),
            None,
            _scalar(0.05, "float32"),
            _scalar(-3, "int8"),
            _scalar(0.02, "float32"),
            _scalar(0, "int8"),
            _scalar(0.3, "float32"),
            _scalar(5, "int8"),
            groups=4,
            dilation=(2, 2),
            out_dtype="int8",
        ),
    ],
)
def qlinear_conv2d(
    data: Array, weight: Array, bias: Array | None, data_scale: Array, data_zero: Array,
    weight_scale: Array, weight_zero: Array, out_scale: Array, out_zero: Array,
    *, strides: tuple[int, ...] = (1, 1), padding: tuple[int, ...] = (0, 0),
    dilation: tuple[int, ...] = (1, 1), groups: int = 1, out_dtype: DType = np.dtype("uint8"),
) -> Array:  # fmt: skip
    """``y = saturate(rint(sums * data_scale * weight_scale / out_scale) + out_zero)``.

    ``sums = nn.conv2d(data - data_zero, weight - weight_zero) + bias``, halves round to even.

    Source: QLinearConv of ONNX 10. The decomposition sums in float32, so that it may differ by
    one step.

    Args:
        data: int8 or uint8, laid out as NCHW.
        weight: int8 or uint8, laid out as OIHW.
        bias: int32, in steps of the product of both scales, one for each output channel.
        data_scale: What one step of `data` stands for, a scalar of float32.
        data_zero: What of `data` stands for 0, a scalar of its dtype.
        weight_scale: The same of `weight`: a scalar, or one for each output channel.
        weight_zero: Likewise.
        out_scale: The same of the result, a scalar.
        out_zero: Likewise.
        strides: As those of ``nn.conv2d``, like all that follow.
        padding: Of elements that stand for 0.
        dilation: Steps between elements of the window.
        groups: Parts of the channels that do not see each other.
        out_dtype: int8 or uint8.
    """
    window = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    x = data.astype(np.float64) - data_zero
    w = weight.astype(np.float64) - weight_zero.reshape(-1, 1, 1, 1)
    conv = get("nn.conv2d")
    sums = conv.kernel(x, w, **conv.bind(window))
    factor = data_scale * weight_scale.reshape(-1, 1, 1) / out_scale
    if bias is not None:
        sums = sums + bias.reshape(-1, 1, 1)
    return _requantize(sums, factor, out_zero, out_dtype)


def _matmul_type(
    lhs: TensorType, rhs: TensorType, *parameters: TensorType, out_dtype: DType
) -> TensorType:
    """The right side may have a scale for each column; all other parameters are scalars."""
    lhs_scale, lhs_zero, rhs_scale, rhs_zero, out_scale, out_zero = parameters
    _require_bytes(lhs=lhs, rhs=rhs)
    if lhs.rank != rhs.rank or lhs.rank not in (2, 3):
        raise TypeInferenceError(f"expected two operands of rank 2 or 3: {lhs!r} and {rhs!r}")
    _require_scalar(lhs_scale, lhs_zero, lhs.dtype)
    _require_parameters(rhs, rhs_scale, rhs_zero, -1)
    if rhs_scale.rank and rhs.rank > 2:
        raise TypeInferenceError("a scale for each column needs operands of rank 2")
    _require_scalar(out_scale, out_zero, out_dtype.name)
    join_dim(lhs.shape[-1], rhs.shape[-2])
    batch = [join_dim(a, b) for a, b in zip(lhs.shape[:-2], rhs.shape[:-2], strict=True)]
    return TensorType((*batch, lhs.shape[-2], rhs.shape[-1]), out_dtype)


def _decompose_matmul(lhs: Expr, rhs: Expr, *parameters: Expr, out_dtype: DType) -> Expr:
    lhs_scale, lhs_zero, rhs_scale, rhs_zero, out_scale, out_zero = parameters
    rank = rhs.type.rank if isinstance(rhs.type, TensorType) else 2
    a = call("serde.dequantize_linear", lhs, lhs_scale, lhs_zero, axis=0)
    b = call("serde.dequantize_linear", rhs, rhs_scale, rhs_zero, axis=rank - 1)
    if rank == 2:
        real = call("nn.matmul", a, b, units=None)
    else:
        real = call("nn.batch_matmul", a, b, transpose_b=False)
    return call("serde.quantize_linear", real, out_scale, out_zero, axis=0, out_dtype=out_dtype)


@relay_op(
    "serde.qlinear_matmul",
    traits=(Quantized,),
    infer=_matmul_type,
    decompose=_decompose_matmul,
    samples=[
        sample(
            tensor((3, 5), "uint8", **_U8),
            tensor((5, 4), "int8", **_S8),
            _scalar(0.05, "float32"),
            _scalar(120, "uint8"),
            np.linspace(0.01, 0.02, 4).astype(np.float32),
            np.zeros(4, np.int8),
            _scalar(0.3, "float32"),
            _scalar(100, "uint8"),
        ),
        sample(
            tensor((2, 3, 5), "int8", **_S8),
            tensor((2, 5, 4), "int8", **_S8),
            _scalar(0.05, "float32"),
            _scalar(-3, "int8"),
            _scalar(0.02, "float32"),
            _scalar(7, "int8"),
            _scalar(0.3, "float32"),
            _scalar(5, "int8"),
            out_dtype="int8",
        ),
    ],
)
def qlinear_matmul(
    lhs: Array, rhs: Array, lhs_scale: Array, lhs_zero: Array, rhs_scale: Array, rhs_zero: Array,
    out_scale: Array, out_zero: Array,
    *, out_dtype: DType = np.dtype("uint8"),
) -> Array:  # fmt: skip
    """``y = saturate(rint(sums * lhs_scale * rhs_scale / out_scale) + out_zero)``.

    ``sums = (lhs - lhs_zero) @ (rhs - rhs_zero)``, halves round to even.

    Source: QLinearMatMul of ONNX 10. The decomposition sums in float32, so that it may differ by
    one step.

    Args:
        lhs: int8 or uint8, (rows, width), or with a batch before them.
        rhs: int8 or uint8, (width, columns), likewise.
        lhs_scale: What one step of `lhs` stands for, a scalar of float32.
        lhs_zero: What of `lhs` stands for 0, a scalar of its dtype.
        rhs_scale: The same of `rhs`: a scalar, or without a batch one for each column.
        rhs_zero: Likewise.
        out_scale: The same of the result, a scalar.
        out_zero: Likewise.
        out_dtype: int8 or uint8.
    """
    sums = (lhs.astype(np.float64) - lhs_zero) @ (rhs.astype(np.float64) - rhs_zero)
    return _requantize(sums, lhs_scale * rhs_scale / out_scale, out_zero, out_dtype)

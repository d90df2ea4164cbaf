"""Quantisation acted out in floating point, to a dtype that is told by a number."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.core.weights import numpy_dtype
from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Discontinuous, Expr, SameAxes, TensorType, const, tensor_type
from serde.relay.ir.registry import Array, builder, call, relay_op, sample
from serde.relay.ir.shapes import join_dim, normalize_axis, require_float
from serde.relay.op.qnn.parameters import along_axis, round_away

__all__ = ["CODES"]

CODES = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}
"""What TVM calls the dtypes; with 0, and with any other number, the data passes as it is."""


def _simulated_type(
    data: TensorType, code: TensorType, scale: TensorType, zero_point: TensorType, axis: int
) -> TensorType:
    require_float(data)
    if code.rank or code.dtype != "int32":
        raise TypeInferenceError(f"expected a dtype told by a scalar int32, found {code!r}")
    length: Dim = 1 if data.rank == 0 else data.shape[normalize_axis(axis, data.rank)]
    for type_ in (scale, zero_point):
        if type_.rank != 1:
            raise TypeInferenceError(f"expected a vector of scales or zero points, found {type_!r}")
        if type_.shape[0] != 1:
            join_dim(type_.shape[0], length)
    return data


def _quantize_type(
    data: TensorType,
    out_dtype: TensorType,
    output_scale: TensorType,
    output_zero_point: TensorType,
    *,
    axis: int,
) -> TensorType:
    return _simulated_type(data, out_dtype, output_scale, output_zero_point, axis)


def _as_quantize(
    data: Expr, out_dtype: Expr, output_scale: Expr, output_zero_point: Expr, *, axis: int
) -> Expr:
    scale = _broadcast_parameter(data, output_scale, axis)
    zero_point = _broadcast_parameter(data, output_zero_point, axis)
    whole = call("add", call("round", call("divide", data, scale)), zero_point)
    result = data
    for name, code in CODES.items():
        if code:
            low, high = _limits(name, np.dtype(numpy_dtype(tensor_type(data).dtype)))
            cut = call("clip", whole, a_min=float(low), a_max=float(high))
            chosen = call("equal", out_dtype, const(code, "int32"))
            result = call("where", chosen, cut, result)
    return result


def _broadcast_parameter(data: Expr, values: Expr, axis: int) -> Expr:
    """Return a vector of scales or zero points as data of the right dtype that broadcasts."""
    rank = tensor_type(data).rank
    if tensor_type(values).dtype != tensor_type(data).dtype:
        values = call("cast", values, dtype=tensor_type(data).dtype)
    if rank == 0:
        return call("reshape", values, newshape=())
    following = rank - 1 - axis % rank
    if following == 0:
        return values
    return call("expand_dims", values, axis=1, num_newaxis=following)


def _limits(name: str, dtype: np.dtype[AnyValue]) -> tuple[AnyValue, AnyValue]:
    """Return the ends of an integer dtype as floating-point numbers."""
    info = np.iinfo(name)
    with np.errstate(over="ignore"):
        return dtype.type(info.min), dtype.type(info.max)


_SCALES = np.array([0.5, 0.03, 0.2], np.float32)
_ZEROS = np.array([3, 0, 7], np.int32)


@relay_op(
    "qnn.simulated_quantize",
    traits=(SameAxes(("axis",)), Discontinuous),
    infer=_quantize_type,
    decompose=_as_quantize,
    samples=[sample((2, 3), np.array(code, np.int32), _SCALES, _ZEROS) for code in CODES.values()]
    + [sample((3, 2), np.array(2, np.int32), _SCALES, _ZEROS[:1].astype(np.float32), axis=0)],
)
def simulated_quantize(
    data: Array, out_dtype: Array, output_scale: Array, output_zero_point: Array, *, axis: int = -1
) -> Array:
    """``y = saturate(round(x / scale) + zero_point)`` in the dtype of the data.

    `out_dtype` is 1 for int8, 2 for uint8, 3 for int32; otherwise the data stays as it is.
    """
    name = {code: name for name, code in CODES.items() if code}.get(int(out_dtype))
    if name is None:
        return data.copy()
    scale = along_axis(output_scale.astype(data.dtype), data.ndim, axis)
    zero_point = along_axis(output_zero_point.astype(data.dtype), data.ndim, axis)
    with np.errstate(all="ignore"):
        whole = round_away(np.asarray(data / scale)) + zero_point
    return np.asarray(np.clip(whole, *_limits(name, data.dtype)))


@builder("qnn.op.simulated_quantize")
def build_simulated_quantize(
    data: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
    out_dtype: AnyValue = "int8",
) -> Expr:
    """Build ``qnn.simulated_quantize``; the dtype is a name or an expression of its number."""
    code = _code(out_dtype)
    scale, zero_point = _vector(output_scale), _vector(output_zero_point)
    return call("qnn.simulated_quantize", data, code, scale, zero_point, axis=axis)


def _code(dtype: AnyValue) -> Expr:
    if isinstance(dtype, Expr):
        return dtype
    if dtype not in CODES:
        raise TypeInferenceError(f"expected {', '.join(CODES)}, found {dtype!r}")
    return const(CODES[dtype], "int32")


def _vector(values: Expr) -> Expr:
    return call("reshape", values, newshape=(-1,))


def _dequantize_type(
    data: TensorType,
    in_dtype: TensorType,
    input_scale: TensorType,
    input_zero_point: TensorType,
    *,
    out_dtype: np.dtype[AnyValue] | None,
    axis: int,
) -> TensorType:
    if out_dtype is not None and out_dtype != numpy_dtype(data.dtype):
        raise TypeInferenceError(f"out_dtype: expected {data.dtype}, found {out_dtype}")
    return _simulated_type(data, in_dtype, input_scale, input_zero_point, axis)


def _as_dequantize(
    data: Expr,
    in_dtype: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    *,
    out_dtype: np.dtype[AnyValue] | None,
    axis: int,
) -> Expr:
    shifted = call("subtract", data, _broadcast_parameter(data, input_zero_point, axis))
    real = call("multiply", shifted, _broadcast_parameter(data, input_scale, axis))
    low = call("greater_equal", in_dtype, const(1, "int32"))
    high = call("less_equal", in_dtype, const(3, "int32"))
    return call("where", call("logical_and", low, high), real, data)


@relay_op(
    "qnn.simulated_dequantize",
    traits=(SameAxes(("axis",)),),
    infer=_dequantize_type,
    decompose=_as_dequantize,
    samples=[
        sample((2, 3), np.array(1, np.int32), _SCALES, _ZEROS, out_dtype=None),
        sample((3, 2), np.array(3, np.int32), _SCALES[:1], _ZEROS, out_dtype="float32", axis=0),
        sample((2, 3), np.array(0, np.int32), _SCALES, _ZEROS, out_dtype=None),
    ],
)
def simulated_dequantize(
    data: Array,
    in_dtype: Array,
    input_scale: Array,
    input_zero_point: Array,
    *,
    out_dtype: np.dtype[AnyValue] | None,
    axis: int = -1,
) -> Array:
    """``y = (x - zero_point) * scale`` in the dtype of the data, or x where `in_dtype` is 0.

    `out_dtype` comes with TVM's attribute class and can name the dtype of the data only.
    """
    if int(in_dtype) not in (1, 2, 3):
        return data.copy()
    scale = along_axis(input_scale.astype(data.dtype), data.ndim, axis)
    return np.asarray(
        (data - along_axis(input_zero_point.astype(data.dtype), data.ndim, axis)) * scale
    )


@builder("qnn.op.simulated_dequantize")
def build_simulated_dequantize(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    axis: int = -1,
    in_dtype: AnyValue = "int8",
) -> Expr:
    """Build ``qnn.simulated_dequantize``; the dtype is a name or an expression of its number."""
    operands = (data, _code(in_dtype), _vector(input_scale), _vector(input_zero_point))
    return call("qnn.simulated_dequantize", *operands, out_dtype=None, axis=axis)

"""Linear quantisation as ONNX defines it: halves go to even, in one granularity of three.

Scale and zero point have one shape: none (for the whole tensor), a vector along
`axis`, or the shape of the data with blocks of `block_size` along `axis`.
"""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.core.weights import dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Decompresses, Expr, TensorType, Tuple, as_dtype, const, tensor_type
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import is_float, join_dim, normalize_axis, require_float
from serde.relay.ir.traits import Quantized
from serde.relay.op.elementwise.rounding import round_even_of
from serde.relay.op.qnn.parameters import spread

DType = np.dtype[AnyValue]

_UINT8 = np.dtype(np.uint8)
_INTEGERS = {
    name: (low, high)
    for bits in (2, 4, 8, 16)
    for name, low, high in (
        (f"int{bits}", -(1 << bits - 1), (1 << bits - 1) - 1),
        (f"uint{bits}", 0, (1 << bits) - 1),
    )
}
"""Integers that hold quantised data, with their least and greatest number."""
_NARROW = ("float4", "float6", "float8")


def _require_quantized(dtype: str) -> None:
    if dtype not in _INTEGERS and not dtype.startswith(_NARROW):
        raise TypeInferenceError(f"{dtype} is no type of quantised data")


def _require_granularity(data: TensorType, scale: TensorType, axis: int, block_size: int) -> None:
    """Refuse a scale that has none of the three shapes."""
    if block_size < 0:
        raise TypeInferenceError(f"block_size: expected no negative number, found {block_size}")
    if block_size == 0 and (scale.rank == 0 or scale.shape == (1,)):
        return
    place = normalize_axis(axis, data.rank)
    wanted = [data.shape[place]]
    if block_size:
        blocks = (data.shape[place] + (block_size - 1)) // block_size
        wanted = [*data.shape[:place], blocks, *data.shape[place + 1 :]]
    if scale.rank != len(wanted):
        raise TypeInferenceError(f"expected a scale of rank {len(wanted)}, found {scale!r}")
    for length, found in zip(wanted, scale.shape, strict=True):
        join_dim(length, found)


def _require_zero_point(scale: TensorType, zero_point: TensorType | None, dtype: str) -> None:
    if zero_point is None:
        return
    if zero_point.dtype != dtype or zero_point.rank != scale.rank:
        raise TypeInferenceError(
            f"expected a zero point of {dtype} in the shape of {scale!r}, found {zero_point!r}"
        )
    for length, found in zip(scale.shape, zero_point.shape, strict=True):
        join_dim(length, found)


def _broadcast_parameter(values: Array, data: Array, axis: int, block_size: int) -> Array:
    """Return a scale or zero point in a shape that broadcasts with `data`."""
    if block_size:
        return values.repeat(block_size, axis).take(range(data.shape[axis]), axis)
    if values.size == 1:
        return values.reshape(())
    return values.reshape(-1, *[1] * (data.ndim - 1 - axis % data.ndim))


def _broadcast_parameter_expr(values: Expr, data: Expr, axis: int, block_size: int) -> Expr:
    """Return the call that :func:`_broadcast_parameter` makes, on expressions."""
    like = tensor_type(data)
    if block_size:
        place = axis % max(1, like.rank)
        rows = call("repeat", values, repeats=block_size, axis=place)
        return call("slice_like", rows, data, axes=(place,))
    return spread(values, like.rank, axis)


def _quantize_type(
    data: TensorType, scale: TensorType, zero_point: TensorType | None,
    *, axis: int, block_size: int, out_dtype: DType, saturate: bool, precision: DType | None,
) -> TensorType:  # fmt: skip
    if data.dtype != "int32":
        require_float(data)
    require_float(scale)
    if precision is not None and not is_float(dtype_name(precision)):
        raise TypeInferenceError(f"precision: expected a floating-point type, found {precision}")
    dtype = dtype_name(out_dtype)
    _require_quantized(dtype)
    _require_granularity(data, scale, axis, block_size)
    _require_zero_point(scale, zero_point, dtype)
    return TensorType(data.shape, dtype)


def _decompose_quantize(
    data: Expr, scale: Expr, zero_point: Expr | None,
    *, axis: int, block_size: int, out_dtype: DType, saturate: bool, precision: DType | None,
) -> Expr:  # fmt: skip
    """The zero point is added in float32 or wider, where every sum within range is exact."""
    narrow = tensor_type(scale).dtype if precision is None else dtype_name(precision)
    spread = _broadcast_parameter_expr(as_dtype(scale, narrow), data, axis, block_size)
    quotient = call("divide", as_dtype(data, narrow), spread)
    dtype = dtype_name(out_dtype)
    if dtype not in _INTEGERS:
        limit = _greatest(out_dtype)
        if saturate or dtype.startswith(("float4", "float6")):
            quotient = call("clip", as_dtype(quotient, "float32"), a_min=-limit, a_max=limit)
        return call("cast", quotient, dtype=dtype)
    wide = "float64" if narrow == "float64" else "float32"
    level = as_dtype(round_even_of(quotient), wide)
    if zero_point is not None:
        shift = _broadcast_parameter_expr(as_dtype(zero_point, wide), data, axis, block_size)
        level = call("add", level, shift)
    low, high = _INTEGERS[dtype]
    return call("cast", call("clip", level, a_min=float(low), a_max=float(high)), dtype=dtype)


def _greatest(dtype: DType) -> float:
    import ml_dtypes

    finfo: AnyValue = ml_dtypes.finfo
    return float(finfo(dtype).max)


_SCALES = np.array([0.25, 0.5, 0.125], np.float32)
_HALVES = np.array([[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 300, -300]], np.float32)


@relay_op(
    "serde.quantize_linear",
    traits=(Quantized,),
    infer=_quantize_type,
    decompose=_decompose_quantize,
    samples=[
        sample(_HALVES, np.float32(1), np.uint8(3)),
        sample((2, 3, 4), _SCALES, np.array([0, -3, 5], np.int8), out_dtype="int8"),
        sample((2, 5), np.full((2, 3), 0.25, np.float32), block_size=2),
        sample((3, 4), _SCALES, axis=0, out_dtype="int16"),
        sample(tensor((2, 3), "int32", low=-900, high=900), np.float32(8), np.uint8(128)),
        sample((4, 6), np.float32(0.125), out_dtype="float8_e4m3fn"),
        sample((4, 6), np.float32(2e-5), out_dtype="float8_e5m2", saturate=False),
        sample((4, 6), np.float32(0.25), out_dtype="int4"),
        sample((4, 6), np.float32(0.5), np.array(2).astype("int8"), out_dtype="int8", axis=0),
    ],
)
def quantize_linear(
    data: Array, scale: Array, zero_point: Array | None,
    *, axis: int = 1, block_size: int = 0, out_dtype: DType = _UINT8, saturate: bool = True,
    precision: DType | None = None,
) -> Array:  # fmt: skip
    """``y = saturate(rint(x / scale) + zero_point)``.

    Halves are rounded to even. The division is of the precision of `scale` unless `precision`
    says otherwise. The result may be an integer of 2 to 16 bits, or a float of 4 to 8 bits, whose
    zero point is none; without `saturate` a float of 8 bits overflows to infinity or to NaN.
    """
    narrow = scale.dtype if precision is None else precision
    spread = _broadcast_parameter(scale, data, axis, block_size).astype(narrow)
    with np.errstate(all="ignore"):
        quotient = data.astype(narrow) / spread
        name = dtype_name(out_dtype)
        if name not in _INTEGERS:
            limit = _greatest(out_dtype)
            if saturate or name.startswith(("float4", "float6")):
                quotient = np.clip(quotient.astype(np.float32), -limit, limit)
            return np.asarray(quotient).astype(out_dtype)
        level = np.rint(quotient.astype(np.float64))
        if zero_point is not None:
            level = level + _broadcast_parameter(zero_point, data, axis, block_size).astype(
                np.float64
            )
        whole = np.nan_to_num(np.clip(level, *_INTEGERS[name])).astype(np.int32)
    return whole.astype(out_dtype)


def _dequantize_type(
    data: TensorType,
    scale: TensorType,
    zero_point: TensorType | None,
    *,
    axis: int,
    block_size: int,
    out_dtype: DType | None,
) -> TensorType:
    if data.dtype != "int32":
        _require_quantized(data.dtype)
    require_float(scale)
    dtype = scale.dtype if out_dtype is None else dtype_name(out_dtype)
    if not is_float(dtype):
        raise TypeInferenceError(f"out_dtype: expected a floating-point type, found {dtype}")
    _require_granularity(data, scale, axis, block_size)
    _require_zero_point(scale, zero_point, data.dtype)
    return TensorType(data.shape, dtype)


def _decompose_dequantize(
    data: Expr,
    scale: Expr,
    zero_point: Expr | None,
    *,
    axis: int,
    block_size: int,
    out_dtype: DType | None,
) -> Expr:
    dtype = tensor_type(scale).dtype if out_dtype is None else dtype_name(out_dtype)
    level = data
    if zero_point is not None and not is_float(tensor_type(data).dtype):
        shift = _broadcast_parameter_expr(as_dtype(zero_point, "int32"), data, axis, block_size)
        level = call("subtract", as_dtype(data, "int32"), shift)
    factor = _broadcast_parameter_expr(as_dtype(scale, "float32"), data, axis, block_size)
    return as_dtype(call("multiply", as_dtype(level, "float32"), factor), dtype)


_BYTES = tensor((2, 3, 4), "int8", low=-128, high=127)


@relay_op(
    "serde.dequantize_linear", traits=(Decompresses, Quantized),
    infer=_dequantize_type,
    decompose=_decompose_dequantize,
    samples=[
        sample(tensor((2, 3), "uint8", low=0, high=255), np.float32(0.25), np.uint8(128)),
        sample(_BYTES, _SCALES, np.array([0, -3, 5], np.int8)),
        sample(tensor((2, 5), "int8", low=-9, high=9), np.full((2, 3), 0.25, np.float32),
               np.arange(6, dtype=np.int8).reshape(2, 3), block_size=2),
        sample(tensor((3, 4), "uint16", low=0, high=9999), _SCALES, axis=0),
        sample(tensor((3, 4), "int32", low=-9999, high=9999), np.float32(0.5)),
        sample(tensor((4, 6), "float8_e4m3fn"), np.float32(0.5)),
        sample(tensor((4, 6), "uint4", low=0, high=15), np.float32(0.5), axis=0),
    ],
)  # fmt: skip
def dequantize_linear(
    data: Array,
    scale: Array,
    zero_point: Array | None,
    *,
    axis: int = 1,
    block_size: int = 0,
    out_dtype: DType | None = None,
) -> Array:
    """``y = (x - zero_point) * scale`` in `out_dtype` or else the dtype of `scale`.

    The product is taken in float32 and rounded once.
    """
    level = data
    if zero_point is not None and not is_float(data.dtype.name):
        shift = _broadcast_parameter(zero_point, data, axis, block_size).astype(np.int32)
        level = data.astype(np.int32) - shift
    factor = _broadcast_parameter(scale, data, axis, block_size).astype(np.float32)
    with np.errstate(over="ignore"):
        return (level.astype(np.float32) * factor).astype(out_dtype or scale.dtype)


def _dynamic_type(data: TensorType) -> tuple[TensorType, TensorType, TensorType]:
    if data.dtype != "float32":
        raise TypeInferenceError(f"expected a float32 tensor, found {data!r}")
    if data.size == 0:
        raise TypeInferenceError(f"{data!r} has no elements to take a range from")
    return TensorType(data.shape, "uint8"), TensorType((), "float32"), TensorType((), "uint8")


def _decompose_dynamic(data: Expr) -> Expr:
    zero, one = const(0.0), const(1.0)
    low = call("minimum", call("min", data), zero)
    spread = call("subtract", call("maximum", call("max", data), zero), low)
    step = call("divide", spread, const(255.0))
    scale = call("where", call("equal", spread, zero), one, step)
    origin = call("clip", call("negative", call("divide", low, scale)), a_min=0.0, a_max=255.0)
    zero_point = call("cast", round_even_of(origin), dtype="uint8")
    level = as_dtype(round_even_of(call("divide", data, scale)), "float32")
    shifted = call("add", level, call("cast", zero_point, dtype="float32"))
    result = call("cast", call("clip", shifted, a_min=0.0, a_max=255.0), dtype="uint8")
    return Tuple([result, scale, zero_point])


@relay_op(
    "serde.dynamic_quantize_linear",
    traits=(Quantized,),
    infer=_dynamic_type,
    decompose=_decompose_dynamic,
    samples=[
        sample((2, 3, 4)),
        sample(tensor((5,), low=1.0, high=3.0)),
        sample(np.array([-3, -1.5, -1], np.float32)),
        sample(np.zeros((2, 2), np.float32)),
    ],
)
def dynamic_quantize_linear(data: Array) -> tuple[Array, Array, Array]:
    """``y = saturate(rint(x / scale) + zero_point)`` as uint8; scale; zero point.

    ``scale = (max(x, 0) - min(x, 0)) / 255``, ``zero_point = saturate(rint(-min(x, 0) / scale))``.
    The scale is one where all is zero.
    """
    low = np.minimum(data.min(), np.float32(0))
    spread = np.maximum(data.max(), np.float32(0)) - low
    scale = np.float32(1) if spread == 0 else spread / np.float32(255)
    zero_point = np.asarray(np.rint(np.clip(-low / scale, 0, 255)), np.uint8)
    step = np.asarray(scale, np.float32)
    return quantize_linear(data, step, zero_point), step, zero_point

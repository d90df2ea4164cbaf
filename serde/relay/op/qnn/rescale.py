"""Into quantised numbers, out of them, and from one scale to another; how these are rounded."""

from __future__ import annotations

import threading
from typing import Any as AnyValue, Final, Literal

import numpy as np

from serde.core import dataclass, dtype_name
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir import Constant, Expr, TensorType, as_dtype, const, normalize_axis, tensor_type
from serde.relay.ir.registry import Arguments, Array, call, relay_op, sample, tensor
from serde.relay.ir.traits import Quantized, Rescales, SameAxes
from serde.relay.op.elementwise.fixed_point import scale_fixed_point
from serde.relay.op.qnn.parameters import (
    along_axis,
    fixed_point,
    is_zero,
    measure_fraction,
    narrow_zero_point,
    parameter_axis,
    require_dtype,
    require_parameters,
    require_scalars,
    round_away,
    saturate,
    saturate_expr,
    spread,
    without_zero_point,
)

__all__ = [
    "DTYPES", "RequantizeConfig", "Rounding", "current_requantize_config", "dequantize",
    "multiply_by_ratio", "quantize", "quantize_body", "requantize", "requantize_config",
]  # fmt: skip

_ROUNDINGS: Final = ("UPWARD", "TONEAREST")
_COMPUTE_DTYPES: Final = ("int64", "float32", "float64")


@dataclass(frozen=True)
class RequantizeConfig:
    """Rounding and arithmetic of ``qnn.requantize``; ``with requantize_config(...): ...``.

    Each thread has configurations of its own.

    Args:
        rounding: Halves go up (``UPWARD``) or away from zero (``TONEAREST``).
        compute_dtype: ``int64`` for fixed-point arithmetic, ``float32`` or ``float64``.

    Raises:
        RelayError: One is another.
    """

    rounding: Literal["UPWARD", "TONEAREST"] = "UPWARD"
    compute_dtype: Literal["int64", "float32", "float64"] = "int64"

    def __post_init__(self) -> None:
        if self.rounding not in _ROUNDINGS:
            raise RelayError(f"rounding: expected {', '.join(_ROUNDINGS)}, found {self.rounding!r}")
        if self.compute_dtype not in _COMPUTE_DTYPES:
            wanted = ", ".join(_COMPUTE_DTYPES)
            raise RelayError(f"compute_dtype: expected {wanted}, found {self.compute_dtype!r}")

    def __enter__(self) -> RequantizeConfig:
        _ENTERED.stack.append(self)
        return self

    def __exit__(self, *_error: object) -> None:
        _ENTERED.stack.pop()


class _Entered(threading.local):
    def __init__(self) -> None:
        self.stack: list[RequantizeConfig] = []


_ENTERED = _Entered()


def current_requantize_config() -> RequantizeConfig:
    """Return the innermost configuration of this thread, or the defaults."""
    return _ENTERED.stack[-1] if _ENTERED.stack else RequantizeConfig()


requantize_config = RequantizeConfig


DTYPES = ("int8", "uint8", "int16", "uint16", "int32")
"""What a real number may be quantised to."""

Rounding = Literal["None", "UPWARD", "TONEAREST"]
ComputeDtype = Literal["None", "int64", "float32", "float64"]

_BYTES = tensor((2, 3), "uint8", low=0, high=255)
_SUMS = tensor((2, 3), "int32", low=-2000, high=2000)


def _scalar(value: float) -> Array:
    return np.array(value, np.float32)


def _zero(value: int) -> Array:
    return np.array(value, np.int32)


_SCALES = np.array([0.5, 0.03, 2.0], np.float32)
_ZEROS = np.array([3, 0, 7], np.int32)


def _quantize_type(
    data: TensorType,
    output_scale: TensorType,
    output_zero_point: TensorType,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int,
) -> TensorType:
    require_dtype(data, ("float32",), "data")
    dtype = dtype_name(out_dtype)
    if dtype not in DTYPES:
        raise TypeInferenceError(f"out_dtype: expected {', '.join(DTYPES)}, found {dtype}")
    length = parameter_axis(data, axis, output_scale, output_zero_point)
    require_parameters(output_scale, output_zero_point, length, "output_")
    return TensorType(data.shape, dtype)


def quantize_body(
    data: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int,
) -> Expr:
    rank = tensor_type(data).rank
    whole: Expr = call("round", call("divide", data, spread(output_scale, rank, axis)))
    whole = _add(whole, spread(output_zero_point, rank, axis), "float32")
    whole = call("where", call("isnan", whole), const(0.0), whole)
    return saturate_expr(whole, dtype_name(out_dtype))


def _add(level: Expr, zero_point: Expr, dtype: str) -> Expr:
    if is_zero(zero_point):
        return level
    return call("add", level, as_dtype(zero_point, dtype))


@relay_op(
    "qnn.quantize", traits=(SameAxes(("axis",)), Quantized),
    infer=_quantize_type,
    decompose=quantize_body,
    samples=[
        sample((2, 3), _scalar(0.02), _zero(3), out_dtype="uint8"),
        sample((2, 3), _SCALES, _ZEROS, out_dtype="int8"),
        sample((3, 2), _SCALES, _zero(1), out_dtype="int16", axis=0),
        sample((2, 3), _scalar(1e-6), _ZEROS, out_dtype="int32"),
        sample(np.array([-1.25, -0.75, -0.25, 0.25, 0.75, 1.25, 80.0], np.float32),
               _scalar(0.5), _zero(-1), out_dtype="int8"),
        sample((), _scalar(0.1), _zero(0), out_dtype="uint16"),
    ],
    arguments=Arguments(order=("axis",), defaults={"out_dtype": "int8"}),
)  # fmt: skip
def quantize(
    data: Array,
    output_scale: Array,
    output_zero_point: Array,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int = -1,
) -> Array:
    """``y = saturate(round(x / scale) + zero_point)``; halves are rounded away from zero."""
    scale = along_axis(output_scale, data.ndim, axis)
    zero_point = along_axis(output_zero_point, data.ndim, axis).astype(np.float32)
    with np.errstate(all="ignore"):
        whole = round_away(np.asarray(data / scale)) + zero_point
    # What is not a number counts as zero: a cast of it means nothing.
    return saturate(np.asarray(np.where(np.isnan(whole), np.float32(0), whole)), out_dtype)


def _dequantize_type(
    data: TensorType,
    input_scale: TensorType,
    input_zero_point: TensorType,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int,
) -> TensorType:
    require_dtype(data, DTYPES, "data")
    dtype = dtype_name(out_dtype)
    if dtype not in ("float16", "float32"):
        raise TypeInferenceError(f"out_dtype: expected float16 or float32, found {dtype}")
    length = parameter_axis(data, axis, input_scale, input_zero_point)
    require_parameters(input_scale, input_zero_point, length, "input_")
    return TensorType(data.shape, dtype)


def _decompose_dequantize(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int,
) -> Expr:
    """As a linear operator, which targets have, where the zero point is one of the numbers."""
    zero = narrow_zero_point(input_zero_point, tensor_type(data).dtype)
    if zero is None or (tensor_type(data).dtype == "int32" and not is_zero(zero)):
        level = call("cast", without_zero_point(data, input_zero_point, axis), dtype="float32")
        real: Expr = call("multiply", level, spread(input_scale, tensor_type(data).rank, axis))
    else:
        real = _dequantize_linear(data, input_scale, zero, axis)
    if out_dtype == np.float32:
        return real
    limit = float(np.finfo(out_dtype).max)
    return call("cast", call("clip", real, a_min=-limit, a_max=limit), dtype=out_dtype)


def _dequantize_linear(data: Expr, scale: Expr, zero_point: Constant, axis: int) -> Expr:
    """Return the linear operator, both parameters in the shape of the longer one."""
    zero: Expr | None = None if is_zero(zero_point) else zero_point
    if tensor_type(scale).shape == (1,):
        scale = call("squeeze", scale, axis=(0,))
    shape = zero_point.data.shape or tensor_type(scale).shape
    if zero is not None and shape and not tensor_type(scale).rank:
        scale = call("broadcast_to", scale, shape=shape)
    elif zero is not None and not zero_point.data.shape and shape:
        zero = call("broadcast_to", zero, shape=shape)
    return call("serde.dequantize_linear", data, scale, zero, axis=axis)


@relay_op(
    "qnn.dequantize", traits=(SameAxes(("axis",)), Quantized),
    infer=_dequantize_type,
    decompose=_decompose_dequantize,
    samples=[
        sample(_BYTES, _scalar(0.5), _zero(3), out_dtype="float32"),
        sample(_BYTES, _SCALES, _ZEROS, out_dtype="float32"),
        sample(tensor((3, 2), "int8", low=-128, high=127), _SCALES, _zero(-128),
               out_dtype="float16", axis=0),
        sample(_SUMS, _SCALES, _zero(0), out_dtype="float32"),
        sample(_SUMS, _scalar(0.1), _zero(-40), out_dtype="float32"),
        sample(tensor((4,), "int16", low=-9000, high=9000), _scalar(100.0), _zero(1),
               out_dtype="float16"),
    ],
    arguments=Arguments(order=("axis",), defaults={"out_dtype": "float32"}),
)  # fmt: skip
def dequantize(
    data: Array,
    input_scale: Array,
    input_zero_point: Array,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int = -1,
) -> Array:
    """``y = (x - zero_point) * scale`` in float32; float16 saturates at its largest numbers."""
    scale = along_axis(input_scale, data.ndim, axis)
    shifted = data.astype(np.int32) - along_axis(input_zero_point, data.ndim, axis)
    real = np.asarray(shifted.astype(np.float32) * scale)
    if out_dtype == np.float32:
        return real
    limit = np.float32(np.finfo(out_dtype).max)
    return np.asarray(np.clip(real, -limit, limit)).astype(out_dtype)


def _requantize_type(
    data: TensorType, input_scale: TensorType, input_zero_point: TensorType,
    output_scale: TensorType, output_zero_point: TensorType,
    *, axis: int, out_dtype: np.dtype[AnyValue] | None, **_: AnyValue,
) -> TensorType:  # fmt: skip
    """Input parameters may be vectors along `axis`, output parameters are scalars."""
    require_dtype(data, ("int8", "uint8", "int16", "int32", "int64"), "data")
    if out_dtype is None or dtype_name(out_dtype) not in ("int8", "uint8", "int16", "int32"):
        raise TypeInferenceError(
            f"out_dtype: expected int8, uint8, int16 or int32, found {out_dtype}"
        )
    if data.rank:
        normalize_axis(axis, data.rank)
    length = parameter_axis(data, axis, input_scale, input_zero_point)
    require_parameters(input_scale, input_zero_point, length, "input_")
    require_scalars((output_scale, output_zero_point))
    return TensorType(data.shape, out_dtype)


def _decompose_requantize(
    data: Expr, input_scale: Expr, input_zero_point: Expr, output_scale: Expr,
    output_zero_point: Expr,
    *, axis: int, rounding: Rounding, compute_dtype: ComputeDtype, out_dtype: np.dtype[AnyValue],
) -> Expr:  # fmt: skip
    """The ratio of constant scales is a constant, in whatever form it enters."""
    config = current_requantize_config()
    away = (config.rounding if rounding == "None" else rounding) == "TONEAREST"
    work = config.compute_dtype if compute_dtype == "None" else compute_dtype
    dtype = dtype_name(out_dtype)
    scales = (call("cast", each, dtype="float64") for each in (input_scale, output_scale))
    ratio = spread(call("divide", *scales), tensor_type(data).rank, axis)
    narrow = as_dtype(data, "int32")
    if work in ("float32", "float64"):
        level = without_zero_point(narrow, input_zero_point, axis, work)
        scaled = call("multiply", level, call("cast", ratio, dtype=work))
        real = _add(scaled, output_zero_point, work)
        up = real if away else call("add", real, const(0.5, work))
        return saturate_expr(call("round" if away else "floor", up), dtype)
    level = without_zero_point(narrow, input_zero_point, axis)
    level = scale_fixed_point(level, *measure_fraction(ratio), away=away)
    return saturate_expr(_add(level, output_zero_point, "int32"), dtype)


@relay_op(
    "qnn.requantize", traits=(SameAxes(("axis",)), Rescales, Quantized),
    infer=_requantize_type,
    decompose=_decompose_requantize,
    samples=[
        sample(_SUMS, _scalar(0.03), _zero(0), _scalar(0.7), _zero(1), out_dtype="int8"),
        sample(_SUMS, _scalar(0.5), _zero(10), _scalar(1.0), _zero(3), rounding="TONEAREST",
               out_dtype="uint8"),
        sample(_SUMS, _SCALES, _ZEROS, _scalar(0.25), _zero(-5), rounding="UPWARD",
               out_dtype="int32"),
        sample(tensor((3, 4), "int16", low=-99, high=99), _SCALES, _zero(1), _scalar(4.0),
               _zero(0), axis=0, rounding="TONEAREST", out_dtype="int16"),
        sample(_SUMS, _scalar(0.5), _zero(1), _scalar(1.0), _zero(2), rounding="UPWARD",
               compute_dtype="float32", out_dtype="int8"),
        sample(_SUMS, _SCALES, _zero(0), _scalar(4.0), _zero(0), rounding="TONEAREST",
               compute_dtype="float64", out_dtype="int16"),
        sample(tensor((3,), "int64", low=-999, high=999), _scalar(3.0), _zero(0), _scalar(0.9),
               _zero(0), compute_dtype="int64", out_dtype="int32"),
        sample(_BYTES, _scalar(0.1), _zero(128), _scalar(0.1), _zero(0), out_dtype="int8"),
    ],
    arguments=Arguments(defaults={"out_dtype": "int8"}),
)  # fmt: skip
def requantize(
    data: Array, input_scale: Array, input_zero_point: Array, output_scale: Array,
    output_zero_point: Array,
    *, axis: int = -1, rounding: Rounding = "None", compute_dtype: ComputeDtype = "None",
    out_dtype: np.dtype[AnyValue] | None = None,
) -> Array:  # fmt: skip
    """``y = saturate(round((x - input_zero) * input_scale / output_scale) + output_zero)``.

    The ratio of the scales is a Q31 mantissa and a power of two, products are int64, halves
    go up or away from zero. A floating `compute_dtype` multiplies in it and rounds after the
    zero point is added. ``"None"`` is what ``requantize_config`` says where this runs:
    ``"UPWARD"`` and ``"int64"`` by default.
    """
    config = current_requantize_config()
    rounding = config.rounding if rounding == "None" else rounding
    compute_dtype = config.compute_dtype if compute_dtype == "None" else compute_dtype
    zero_point = along_axis(input_zero_point, data.ndim, axis)
    ratio = along_axis(input_scale, data.ndim, axis).astype(np.float64) / np.float64(output_scale)
    away = rounding == "TONEAREST"
    if compute_dtype in ("float32", "float64"):
        wide = np.dtype(compute_dtype)
        shifted = data.astype(np.int32).astype(wide) - zero_point.astype(wide)
        real = np.asarray(shifted * ratio.astype(wide) + output_zero_point.astype(wide))
        whole = round_away(real) if away else np.floor(real + wide.type(0.5))
        result = saturate(whole, np.int32)
    else:
        level = data.astype(np.int32) - zero_point
        result = multiply_by_ratio(np.asarray(level), ratio, away=away) + output_zero_point
    return np.asarray(result) if out_dtype == np.int32 else saturate(result, out_dtype)


def multiply_by_ratio(data: Array, ratio: AnyValue, *, away: bool = False) -> Array:
    """Return int32 `data` times `ratio` by fixed-point arithmetic, rounded to the nearest.

    Args:
        data: Integers.
        ratio: One number, or an array that broadcasts with `data`.
        away: Whether halves go away from zero instead of up.
    """
    mantissa, exponent = fixed_point(ratio)
    with np.errstate(over="ignore"):
        product = (data.astype(np.int64) << np.maximum(exponent, 0)) * mantissa
    right = 31 + np.maximum(-exponent, 0)
    half = np.int64(1) << (right - 1)
    if away:
        half = np.where(product < 0, half - 1, half)
    return np.asarray((product + half) >> right).astype(np.int32)

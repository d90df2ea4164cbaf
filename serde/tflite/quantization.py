"""Codes of quantised tensors, the numbers that they stand for, and arithmetic on codes.

A number is ``(code - zero_point) * scale``. Sums of products of codes have the product of the
scales; the reference kernels bring them to the scale of the result by a mantissa of 31 bits and a
shift, which is what Relay's ``qnn.requantize`` does. Ties go up or away from zero by operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.core import Array, numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, TensorType, tensor_type
from serde.tflite.model import Quantization, Tensor

__all__ = [
    "activation_limits", "is_quantized", "limited", "one_scale", "parameters",
    "rescaled", "rounded_twice", "scale_product", "to_codes", "to_numbers",
    "with_bias_scale", "zero_point",
]  # fmt: skip

_CODES = frozenset(("int4", "int8", "uint8", "int16", "int32"))
_LIMITS = {1: (0.0, np.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
"""What fused activations limit numbers to."""


def activation_limits(function: int) -> tuple[float, float]:
    """Return what a fused activation limits numbers to.

    Raises:
        Unsupported: It is one that engines leave out without a word, or none.
    """
    if function not in _LIMITS:
        raise Unsupported(f"the fused activation {function}, which LiteRT's kernels leave out")
    return _LIMITS[function]


def is_quantized(tensor: Tensor | None) -> bool:
    """Whether the elements of a tensor are codes."""
    if tensor is None or tensor.quantization is None:
        return False
    return tensor.dtype in ("int4", "int8", "uint8", "int16")


def parameters(tensor: Tensor) -> Quantization:
    """Return how codes of a tensor stand for numbers.

    Raises:
        Unsupported: It does not say so, or by blocks.
    """
    found = tensor.quantization
    if found is None:
        raise Unsupported(f"{tensor.name} is not quantised")
    if found.block is not None:
        raise Unsupported(f"{tensor.name} is quantised by blocks")
    return found


def one_scale(tensor: Tensor) -> tuple[float, int]:
    """Return the only scale of a tensor and its zero point.

    Raises:
        Unsupported: There are several.
    """
    found = parameters(tensor)
    if len(found.scales) != 1:
        raise Unsupported(f"{tensor.name} has {len(found.scales)} scales")
    return float(found.scales[0]), int(found.zero_points[0])


def zero_point(tensor: Tensor) -> Expr:
    """Return the zero point of a tensor.

    Raises:
        Unsupported: There are several.
    """
    zeros = np.unique(parameters(tensor).zero_points)
    if len(zeros) != 1:
        raise Unsupported(f"{tensor.name} has several zero points")
    return Constant(zeros.astype(np.int32).reshape(()))


def scale_product(*tensors: Tensor) -> Array:
    """Return the product of the scales of tensors, of which one may have several."""
    return np.prod(np.broadcast_arrays(*(parameters(x).scales.astype("f8") for x in tensors)), 0)


def to_numbers(x: Expr, tensor: Tensor | None, *, stay_codes: bool = False) -> Expr:
    """Return what the codes of a tensor stand for, as float32; of weights they may stay codes."""
    if tensor is None or tensor.quantization is None or tensor.dtype not in _CODES | {"int64"}:
        return x
    if tensor.quantization.block is not None and tensor_type(x).dtype == "float32":
        return x  # The blocks were widened where the tensor was read.
    scale, zero, axis = _constants(tensor)
    if tensor.dtype == "int64":  # A bias of data of 16 bits, which has no zero point.
        return relay.multiply(relay.cast(x, "float32"), scale)
    if stay_codes and tensor.values is not None and isinstance(zero, Constant):
        points = Constant(zero.data.astype(numpy_dtype(tensor.dtype)))
        return relay.serde.dequantize_linear(x, scale, points, axis=max(axis, 0))
    return relay.qnn.op.dequantize(x, scale, zero, axis)


def with_bias_scale(given: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
    """Return operands; a bias has the scale of the products it is added to, whatever it says."""
    factors = [x for x in given if x is not None and is_quantized(x)]
    bias = given[-1] if len(given) > 2 and len(factors) == 2 else None
    if bias is None or bias.dtype not in ("int32", "int64") or bias.values is None:
        return given
    scale = scale_product(*factors).astype(np.float32)
    points = np.zeros(scale.shape, np.int64)
    return [*given[:-1], replace(bias, quantization=Quantization(scale, points))]


def to_codes(x: Expr, tensor: Tensor) -> Expr:
    """Return the codes of numbers.

    Raises:
        Unsupported: The tensor's elements are none.
    """
    if tensor.dtype not in _CODES - {"int4"}:
        raise Unsupported(
            f"{tensor.name} has a scale, and codes are int8, uint8, int16 or int32; "
            f"found {tensor.dtype}"
        )
    scale, zero, axis = _constants(tensor)
    return relay.qnn.op.quantize(x, scale, zero, axis, tensor.dtype)


def _constants(tensor: Tensor) -> tuple[Expr, Expr, int]:
    """Return scales, zero points and the axis that they belong to."""
    found = parameters(tensor)
    if len(found.scales) == 1:
        zero = found.zero_points[:1].astype(np.int32).reshape(())
        return Constant(found.scales.reshape(())), Constant(zero), -1
    zeros = np.broadcast_to(found.zero_points.astype(np.int32), found.scales.shape)
    axis = found.axis if found.axis < len(tensor.shape) else len(tensor.shape) - 1
    return Constant(found.scales), Constant(np.array(zeros)), axis


def rescaled(
    x: Expr,
    scale: Array,
    made: Tensor,
    function: int = 0,
    *,
    twice: bool = False,
    by_ratio: bool = False,
) -> Expr:
    """Return integers of a scale as the codes of a tensor, limited by a fused activation.

    Args:
        x: The integers, of zero point 0.
        scale: Their scale, or one for each entry of the last axis.
        made: The tensor.
        function: The activation.
        twice: Whether it is rounded behind the mantissa and again behind the shift.
        by_ratio: Whether `scale` is divided by that of the tensor already.

    Raises:
        Unsupported: The tensor has several scales.
    """
    to_scale, to_zero = one_scale(made)
    to_scale = 1.0 if by_ratio else to_scale
    if isinstance(x.type, TensorType) and x.type.dtype == "int64":
        found = _rescaled_wide(x, scale / to_scale, to_zero, made.dtype)
    elif twice:
        found = rounded_twice(x, scale, to_scale, to_zero, made.dtype)
    else:
        found = _requantized(x, scale, to_scale, to_zero, made.dtype, "UPWARD")
    return limited(found, made, function)


def rounded_twice(
    x: Expr, scale: Array, to_scale: float, to_zero: int = 0, dtype: str = "int32"
) -> Expr:
    """Return integers of a scale at another: a mantissa, ties up, then a shift, ties away."""
    _, exponent = np.frexp(np.asarray(scale, np.float64) / to_scale)
    right = np.exp2(np.maximum(-exponent, 0))
    found = _requantized(x, scale * right, to_scale, 0, "int32", "UPWARD")
    return _requantized(found, 1 / right, 1.0, to_zero, dtype, "TONEAREST")


def _requantized(
    x: Expr,
    scale: Array,
    to_scale: float,
    to_zero: int,
    dtype: str,
    rounding: Literal["UPWARD", "TONEAREST"],
) -> Expr:
    factors = np.asarray(scale, np.float32)
    return relay.qnn.op.requantize(
        x, Constant(factors if factors.size > 1 else factors.reshape(())),
        Constant(np.zeros((), np.int32)), Constant(np.array(to_scale, np.float32)),
        Constant(np.array(to_zero, np.int32)), axis=-1, rounding=rounding, compute_dtype="int64",
        out_dtype=dtype,
    )  # fmt: skip


def _rescaled_wide(x: Expr, ratio: Array, zero: int, dtype: str) -> Expr:
    """Return integers of 64 bits times a ratio: by a mantissa of 15 bits and a shift, ties up."""
    mantissa, exponent = np.frexp(np.asarray(ratio, np.float64).reshape(-1))
    whole = np.floor(mantissa * 2**31 + 0.5).astype(np.int64)
    exponent = np.where(whole == 2**31, exponent + 1, exponent).astype(np.int64)
    whole = np.where(whole == 2**31, 2**30, whole)
    factor = np.where(whole < 0x7FFF0000, (whole + 2**15) >> 16, 0x7FFF)
    shift = 15 - exponent
    half = Constant(np.int64(1) << (shift - 1))
    product = relay.add(relay.multiply(x, Constant(factor)), half)
    found = relay.add(relay.right_shift(product, Constant(shift)), Constant(np.array([zero])))
    kind = np.iinfo(dtype)
    return relay.cast(relay.clip(found, float(kind.min), float(kind.max)), dtype)


def limited(x: Expr, made: Tensor, function: int) -> Expr:
    """Return codes that a fused activation limits.

    Raises:
        Unsupported: The activation is one that engines leave out without a word.
    """
    if function == 0:
        return x
    low, high = activation_limits(function)
    scale, zero = one_scale(made)
    kind = np.iinfo(made.dtype)
    least = max(kind.min, zero + _rounded(low / scale))
    most = kind.max if high == np.inf else min(kind.max, zero + _rounded(high / scale))
    if (least, most) == (kind.min, kind.max):
        return x
    return relay.clip(x, float(least), float(most))


def _rounded(x: float) -> int:
    """Return the nearest integer, of a tie the one away from zero."""
    return int(np.copysign(np.floor(abs(x) + 0.5), x))

"""The leaky rectifier and softmax in integers."""

from __future__ import annotations

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Constant, Expr, TensorType, const, normalize_axis, tensor_type
from serde.relay.ir.registry import Arguments, Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.traits import Elementwise, Fusion, FusionPattern, Quantized, Rescales, SameAxes
from serde.relay.op.qnn.arithmetic import requantize_expr
from serde.relay.op.qnn.parameters import (
    fixed_point,
    require_dtype,
    require_scalars,
    round_away,
    saturate,
    saturate_expr,
)
from serde.relay.op.qnn.rescale import multiply_by_ratio, requantize

_INT32 = np.dtype(np.int32)
SOFTMAX_BITS = 7
"""The result of softmax before it is requantized counts in 1 / 2**7."""


def _pair(scale: float, zero_point: int) -> tuple[Array, Array]:
    return np.array(scale, np.float32), np.array(zero_point, np.int32)


def _leaky_relu_type(data: TensorType, *parameters: TensorType, alpha: float) -> TensorType:
    input_scale, input_zero_point, output_scale, output_zero_point = parameters
    require_dtype(data, ("int8", "uint8"), "data")
    require_scalars((input_scale, input_zero_point), (output_scale, output_zero_point))
    return data


def _as_leaky_relu(data: Expr, *parameters: Expr, alpha: float) -> Expr:
    input_scale, input_zero_point, output_scale, output_zero_point = parameters
    target = (output_scale, output_zero_point)
    wide = call("cast", data, dtype="int32")
    level = requantize_expr(wide, input_scale, input_zero_point, *target)
    below = call("add", _times(level, alpha), _times(output_zero_point, 1 - alpha))
    result = call("where", call("less", wide, input_zero_point), below, level)
    return saturate_expr(result, tensor_type(data).dtype)


def _times(x: Expr, ratio: float) -> Expr:
    mantissa, exponent = fixed_point(ratio)
    return call("fixed_point_multiply", x, multiplier=int(mantissa), shift=int(exponent))


@relay_op(
    "qnn.leaky_relu", traits=(Elementwise, Fusion(FusionPattern.OPAQUE), Rescales, Quantized),
    infer=_leaky_relu_type,
    decompose=_as_leaky_relu,
    samples=[
        sample(tensor((3, 9), "uint8", low=0, high=255), *_pair(0.1, 120), *_pair(0.07, 33)),
        sample(tensor((3, 9), "int8", low=-128, high=127), *_pair(0.1, 5), *_pair(0.1, 5),
               alpha=0.1),
    ],
)  # fmt: skip
def leaky_relu(
    data: Array,
    input_scale: Array,
    input_zero_point: Array,
    output_scale: Array,
    output_zero_point: Array,
    *,
    alpha: float = 0.25,
) -> Array:
    """``y = q if x >= input_zero_point else alpha * q + (1 - alpha) * output_zero_point``.

    Here q is the input requantized. The slope is a Q31 number; each term is rounded, halves
    upwards.
    """
    target = (output_scale, output_zero_point)
    level = requantize(data, input_scale, input_zero_point, *target, out_dtype=_INT32)
    below = multiply_by_ratio(level, alpha) + multiply_by_ratio(output_zero_point, 1 - alpha)
    result = np.where(data.astype(np.int32) < input_zero_point, below, level)
    return saturate(result, data.dtype)


@builder("qnn.op.leaky_relu")
def build_leaky_relu(
    x: Expr,
    alpha: float,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
) -> Expr:
    """Build ``qnn.leaky_relu``; the slope comes second, as in TVM."""
    parameters = (input_scale, input_zero_point, output_scale, output_zero_point)
    return call("qnn.leaky_relu", x, *parameters, alpha=alpha)


def _softmax_type(data: TensorType, *parameters: TensorType, axis: int) -> TensorType:
    scale, zero_point, output_scale, output_zero_point = parameters
    require_dtype(data, ("int8",), "data")
    require_scalars((scale, zero_point), (output_scale, output_zero_point))
    normalize_axis(axis, data.rank)
    return data


def _as_softmax(data: Expr, *parameters: Expr, axis: int) -> Expr:
    """Spell the shifts of :func:`softmax` as divisions and products by powers of two."""
    scale, zero_point, output_scale, output_zero_point = parameters
    if not isinstance(scale, Constant) or float(scale.data) > 1:
        raise TypeInferenceError("the scale must be a constant of at most 1")

    def of(value: int) -> Expr:
        return const(value, "int32")

    def down(x: Expr, bits: int) -> Expr:
        return call("floor_divide", x, of(1 << bits))

    def reduced(name: str, x: Expr) -> Expr:
        return call(name, x, axis=(axis,), keepdims=True)

    unit = int(_softmax_unit(scale.data))
    level = call("subtract", call("cast", data, dtype="int32"), zero_point)
    x = call("subtract", level, reduced("max", level))
    exponent = call("subtract", call("add", x, down(x, 1)), down(x, 4))
    whole = call("clip", call("divide", exponent, of(-unit)), a_min=0.0, a_max=20.0)
    rest = call("add", down(call("add", exponent, call("multiply", whole, of(unit))), 1), of(unit))
    shift = call("subtract", reduced("max", whole), whole)
    powers = Constant(np.left_shift(np.int32(1), np.arange(21, dtype=np.int32)))
    power = call("multiply", rest, call("take", powers, shift, axis=0, mode="fast"))
    inverse = call("divide", of(1 << 30), reduced("sum", power))
    share = down(call("multiply", inverse, power), 30 - SOFTMAX_BITS)
    rescaling = (const(2.0**-SOFTMAX_BITS, "float32"), of(0), output_scale, output_zero_point)
    return call("qnn.requantize", share, *rescaling, axis=0, out_dtype="int8")


def _softmax_unit(scale: Array) -> Array:
    """Return how many steps of the input make 1, at least one."""
    return np.maximum(saturate(round_away(np.float32(1) / scale), np.int32), np.int32(1))


@relay_op(
    "qnn.softmax", traits=(SameAxes(("axis",)), Rescales, Quantized),
    infer=_softmax_type,
    decompose=_as_softmax,
    samples=[
        sample(tensor((3, 10), "int8", low=-128, high=127), *_pair(0.05, 3), *_pair(1 / 256, -128)),
        sample(tensor((2, 5, 3), "int8", low=-20, high=20), *_pair(0.3, 0), *_pair(0.01, 0),
               axis=1),
    ],
    arguments=Arguments(names={"data": "x"}),
)  # fmt: skip
def softmax(
    data: Array,
    scale: Array,
    zero_point: Array,
    output_scale: Array,
    output_zero_point: Array,
    *,
    axis: int = -1,
) -> Array:
    """``y = exp(x) / sum(exp(x))`` along `axis`, by shifts and integers alone.

    The method is algorithm 1 of https://arxiv.org/abs/2207.01405; the scale must not exceed 1.
    """
    unit = _softmax_unit(scale)
    level = data.astype(np.int32) - zero_point
    x = level - level.max(axis, keepdims=True)
    exponent = x + (x >> 1) - (x >> 4)
    whole = np.minimum(-exponent // unit, 20)
    rest = ((exponent + whole * unit) >> 1) + unit
    power = rest << (whole.max(axis, keepdims=True) - whole)
    total = power.sum(axis, keepdims=True, dtype=np.int32)
    quotient = np.abs(np.int32(1 << 30)) // np.abs(total) * np.sign(total)
    share = (quotient.astype(np.int32) * power) >> (30 - SOFTMAX_BITS)
    parameters = (*_pair(2.0**-SOFTMAX_BITS, 0), output_scale, output_zero_point)
    return requantize(share, *parameters, axis=0, out_dtype=np.dtype(np.int8))

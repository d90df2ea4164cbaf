"""Functions of quantised numbers: on integers where these suffice, else on what they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call
from serde.torch.ops.qnn.parameters import dequantize, quantize, quantize_number
from serde.torch.ops.table import OPS, Import, Scalar
from serde.torch.quantization import Quantization


def _clip(ctx: Import, x: Expr, low: float, high: float) -> Expr:
    """Return a tensor whose values are bounded, in its own scale."""
    given, dtype = ctx.quantization(x), ctx.dtype(x)
    bounds = [quantize_number(each, given, dtype) for each in (low, high)]
    found = x
    if not math.isinf(low):
        found = relay.maximum(found, ctx.scalar(bounds[0], dtype))
    if not math.isinf(high):
        found = relay.minimum(found, ctx.scalar(bounds[1], dtype))
    return ctx.quantized(relay.copy(x) if found is x else found, given)


@OPS.imports("quantized_tensor::relu")
def import_relu(ctx: Import, self: Expr) -> Expr:
    return _clip(ctx, self, 0.0, math.inf)


@OPS.imports("quantized_tensor::relu6")
def import_relu6(ctx: Import, self: Expr) -> Expr:
    return _clip(ctx, self, 0.0, 6.0)


@OPS.imports("quantized::relu6", ignored=("inplace",))
def import_quantized_relu6(ctx: Import, qx: Expr) -> Expr:
    return _clip(ctx, qx, 0.0, 6.0)


@OPS.imports("quantized_tensor::hardtanh")
def import_hardtanh(ctx: Import, self: Expr, *, min_val: Scalar = -1, max_val: Scalar = 1) -> Expr:
    return _clip(ctx, self, _number(min_val, 0), _number(max_val, 0))


@OPS.imports("quantized_tensor::clamp", "quantized_tensor::clip")
def import_clamp(
    ctx: Import, self: Expr, *, min: Scalar | None = None, max: Scalar | None = None
) -> Expr:
    return _clip(ctx, self, _number(min, -math.inf), _number(max, math.inf))


@OPS.imports("quantized::clamp")
def import_quantized_clamp(
    ctx: Import, qx: Expr, *, min: Scalar | None = None, max: Scalar | None = None
) -> Expr:
    return _clip(ctx, qx, _number(min, -math.inf), _number(max, math.inf))


def _number(value: Scalar | None, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, (Expr, complex)):
        raise Unsupported("a bound of a quantised tensor that is computed")
    return float(value)


@OPS.imports("quantized::threshold")
def import_threshold(ctx: Import, qx: Expr, *, threshold: Scalar, value: Scalar) -> Expr:
    given, dtype = ctx.quantization(qx), ctx.dtype(qx)
    real = dequantize(ctx, qx)
    above = relay.greater(real, ctx.scalar(_number(threshold, 0), "float32"))
    rest = ctx.scalar(quantize_number(_number(value, 0), given, dtype), dtype)
    return ctx.quantized(relay.where(above, qx, rest), given)


# Functions whose result has a scale of its own.


def _apply(
    ctx: Import, x: Expr, function: Callable[[Expr], Expr], scale: float, zero_point: int
) -> Expr:
    result = Quantization(scale, zero_point)
    return quantize(ctx, function(dequantize(ctx, x)), result, ctx.dtype(x), "after")


def hard_sigmoid(x: Expr) -> Expr:
    """Return ``min(max(x + 3, 0), 6) / 6``."""
    moved = relay.add(x, relay.const(np.float32(3)))
    return relay.divide(relay.clip(moved, 0.0, 6.0), relay.const(np.float32(6)))


def hard_swish(x: Expr) -> Expr:
    """Return ``x * min(max(x + 3, 0), 6) / 6``."""
    moved = relay.add(x, relay.const(np.float32(3)))
    product = relay.multiply(x, relay.clip(moved, 0.0, 6.0))
    return relay.divide(product, relay.const(np.float32(6)))


def _leaky_relu(x: Expr, slope: float) -> Expr:
    return relay.nn.leaky_relu(x, alpha=slope)


def _make_scaled(function: Callable[[Expr], Expr], name: str) -> Callable[..., Expr]:
    """The operand has another name in the schema of each operator."""

    def import_of_input(
        ctx: Import, input: Expr, *, output_scale: float, output_zero_point: int
    ) -> Expr:
        return _apply(ctx, input, function, output_scale, output_zero_point)

    def import_of_qx(ctx: Import, qx: Expr, *, output_scale: float, output_zero_point: int) -> Expr:
        return _apply(ctx, qx, function, output_scale, output_zero_point)

    return import_of_input if name == "input" else import_of_qx


OPS.imports("quantized::hardswish")(_make_scaled(hard_swish, "input"))
OPS.imports("quantized::sigmoid")(_make_scaled(relay.sigmoid, "qx"))


@OPS.imports("quantized::leaky_relu", ignored=("inplace",))
def import_leaky_relu(
    ctx: Import, qx: Expr, *, negative_slope: Scalar, output_scale: float, output_zero_point: int
) -> Expr:
    function = partial(_leaky_relu, slope=_number(negative_slope, 0))
    return _apply(ctx, qx, function, output_scale, output_zero_point)


@OPS.imports("quantized_tensor::leaky_relu")
def import_leaky_relu_of_tensor(ctx: Import, self: Expr, *, negative_slope: Scalar = 0.01) -> Expr:
    function = partial(_leaky_relu, slope=_number(negative_slope, 0))
    given = ctx.quantization(self)
    return quantize(ctx, function(dequantize(ctx, self)), given, ctx.dtype(self), "after")


@OPS.imports("quantized::elu")
def import_elu(
    ctx: Import,
    self: Expr,
    *,
    output_scale: float,
    output_zero_point: int,
    alpha: Scalar = 1,
    scale: Scalar = 1,
    input_scale: Scalar = 1,
) -> Expr:
    a, s, i = (_number(each, 1) for each in (alpha, scale, input_scale))

    def function(x: Expr) -> Expr:
        if s == i == 1:
            return call("serde.elu", x, alpha=a)
        below: Expr = call("serde.expm1", relay.multiply(x, ctx.scalar(i, "float32")))
        below = relay.multiply(below, ctx.scalar(a * s, "float32"))
        above = relay.multiply(x, ctx.scalar(s, "float32"))
        return relay.where(relay.less(x, ctx.scalar(0, "float32")), below, above)

    return _apply(ctx, self, function, output_scale, output_zero_point)


@OPS.imports("quantized::celu")
def import_celu(
    ctx: Import, self: Expr, *, output_scale: float, output_zero_point: int, alpha: Scalar = 1
) -> Expr:
    function = partial(_celu, alpha=_number(alpha, 1))
    return _apply(ctx, self, function, output_scale, output_zero_point)


def _celu(x: Expr, alpha: float) -> Expr:
    return call("serde.celu", x, alpha=alpha)


@OPS.imports("quantized::prelu")
def import_prelu(
    ctx: Import, qx: Expr, weight: Expr, *, output_scale: float, output_zero_point: int
) -> Expr:
    slope = dequantize(ctx, weight) if ctx.is_quantized(weight) else weight
    real = dequantize(ctx, qx)
    (count,) = ctx.static_lengths(slope, [0])
    behind = ctx.type(qx).rank - 2
    if count > 1 and behind > 0:
        slope = relay.expand_dims(slope, axis=1, num_newaxis=behind)
    below = relay.multiply(real, slope)
    found = relay.where(relay.greater(real, ctx.scalar(0, "float32")), real, below)
    result = Quantization(output_scale, output_zero_point)
    return quantize(ctx, found, result, ctx.dtype(qx), "after")


@OPS.imports("quantized::softmax")
def import_softmax(
    ctx: Import, qx: Expr, *, dim: int, output_scale: float, output_zero_point: int
) -> Expr:
    function = partial(relay.nn.softmax, axis=ctx.axis(qx, dim))
    return _apply(ctx, qx, function, output_scale, output_zero_point)


@OPS.imports("quantized::dropout", ignored=("output_scale", "output_zero_point", "p"))
def import_dropout(ctx: Import, self: Expr, *, training: bool = False) -> Expr:
    if training:
        raise Unsupported("dropout of a module in training", hint="call its eval() before")
    return self


# Functions whose result always has one scale.


def _register_fixed(
    name: str, function: Callable[[Expr], Expr], scale: float, zeros: dict[str, int]
) -> None:
    """Register a function whose result has a scale and, for each dtype, a zero point."""

    def import_fixed(ctx: Import, self: Expr) -> Expr:
        dtype = ctx.dtype(self)
        if dtype not in zeros:
            raise Unsupported(f"{name} of quantised {dtype}")
        return _apply(ctx, self, function, scale, zeros[dtype])

    OPS.imports(f"quantized_tensor::{name}")(import_fixed)


_register_fixed("sigmoid", relay.sigmoid, 1 / 256, {"uint8": 0, "int8": -128})
_register_fixed("hardsigmoid", hard_sigmoid, 1 / 256, {"uint8": 0, "int8": -128})
_register_fixed("tanh", relay.tanh, 2 / 256, {"uint8": 128, "int8": 0})


def _make_comparison(build: Callable[..., Expr]) -> Callable[..., Expr]:
    def compare(ctx: Import, self: Expr, other: Expr) -> Expr:
        operands = [
            dequantize(ctx, x) if ctx.is_quantized(x) else ctx.cast(x, "float32")
            for x in (self, other)
        ]
        found: Expr = build(*operands)
        return found

    return compare


_COMPARISONS: dict[str, AnyValue] = {
    "eq": relay.equal,
    "ne": relay.not_equal,
    "lt": relay.less,
    "le": relay.less_equal,
    "gt": relay.greater,
    "ge": relay.greater_equal,
}
for _name, _build in _COMPARISONS.items():
    OPS.imports(f"quantized_tensor::{_name}")(_make_comparison(_build))

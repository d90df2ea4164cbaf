"""Functions of quantised numbers: on integers where these suffice, else on what they stand for."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call
from serde.torch.ops.activation import import_celu, import_leaky_relu, import_prelu, import_softmax
from serde.torch.ops.elementwise.convert import as_float
from serde.torch.ops.qnn.parameters import (
    Function,
    dequantize,
    fixed_number,
    of_reals,
    quantize,
    quantize_number,
)
from serde.torch.ops.table import OPS, Import, Scalar
from serde.torch.quantization import Quantization


def _import_clamp(
    ctx: Import, self: Expr, *, min: Scalar | None = None, max: Scalar | None = None
) -> Expr:
    """The scale stays."""
    given, dtype = ctx.quantization(self), ctx.dtype(self)
    found = self
    for bound, limit in ((min, relay.maximum), (max, relay.minimum)):
        number = math.inf if bound is None else fixed_number(ctx, bound)
        level = quantize_number(number, given, dtype)
        found = found if math.isinf(number) else limit(found, ctx.scalar(level, dtype))
    return ctx.quantized(relay.copy(self) if found is self else found, given)


_QX: Final = {"qx": "self"}
_relu6 = partial(_import_clamp, min=0.0, max=6.0)
OPS.imports("quantized_tensor::clamp", "quantized_tensor::clip")(_import_clamp)
OPS.imports("quantized::clamp", renamed=_QX)(_import_clamp)
OPS.imports("quantized_tensor::relu")(partial(_import_clamp, min=0.0, max=None))
OPS.imports("quantized_tensor::relu6")(_relu6)
OPS.imports("quantized::relu6", ignored=("inplace",), renamed=_QX)(_relu6)


@OPS.imports("quantized_tensor::hardtanh")
def import_hardtanh(ctx: Import, self: Expr, *, min_val: Scalar = -1, max_val: Scalar = 1) -> Expr:
    return _import_clamp(ctx, self, min=min_val, max=max_val)


@OPS.imports("quantized::threshold")
def import_threshold(ctx: Import, qx: Expr, *, threshold: Scalar, value: Scalar) -> Expr:
    given, dtype = ctx.quantization(qx), ctx.dtype(qx)
    real = dequantize(ctx, qx)
    above = relay.greater(real, ctx.scalar(fixed_number(ctx, threshold), "float32"))
    rest = ctx.scalar(quantize_number(fixed_number(ctx, value), given, dtype), dtype)
    return ctx.quantized(relay.where(above, qx, rest), given)


# Functions whose result has a scale of its own.


def import_sigmoid(ctx: Import, self: Expr) -> Expr:
    return relay.sigmoid(self)


def import_tanh(ctx: Import, self: Expr) -> Expr:
    return relay.tanh(self)


def import_hard_sigmoid(ctx: Import, self: Expr) -> Expr:
    """``min(max(x + 3, 0), 6) / 6``."""
    return relay.divide(_clip_moved(self), relay.const(np.float32(6)))


def import_hard_swish(ctx: Import, self: Expr) -> Expr:
    """``x * min(max(x + 3, 0), 6) / 6``."""
    return relay.divide(relay.multiply(self, _clip_moved(self)), relay.const(np.float32(6)))


def _clip_moved(x: Expr) -> Expr:
    return relay.clip(relay.add(x, relay.const(np.float32(3))), 0.0, 6.0)


def import_elu(
    ctx: Import, self: Expr, *, alpha: Scalar = 1, scale: Scalar = 1, input_scale: Scalar = 1
) -> Expr:
    """The factors are multiplied before the data are."""
    a, s, i = map(as_float, (alpha, scale, input_scale))
    if s == i == 1:
        return call("serde.elu", self, alpha=a)
    below: Expr = call("serde.expm1", relay.multiply(self, ctx.scalar(i, "float32")))
    below = relay.multiply(below, ctx.scalar(a * s, "float32"))
    above = relay.multiply(self, ctx.scalar(s, "float32"))
    return relay.where(relay.less(self, ctx.scalar(0, "float32")), below, above)


OPS.imports("quantized::hardswish", renamed={"input": "self"})(of_reals(import_hard_swish))
OPS.imports("quantized::sigmoid", renamed=_QX)(of_reals(import_sigmoid))
OPS.imports("quantized::leaky_relu", ignored=("inplace",), renamed=_QX)(of_reals(import_leaky_relu))
OPS.imports("quantized::elu")(of_reals(import_elu))
OPS.imports("quantized::celu")(of_reals(import_celu))
OPS.imports("quantized::prelu", renamed=_QX)(of_reals(import_prelu))
OPS.imports("quantized::softmax", renamed=_QX)(of_reals(import_softmax))


@OPS.imports("quantized_tensor::leaky_relu")
def import_leaky_relu_of_tensor(ctx: Import, self: Expr, *, negative_slope: Scalar = 0.01) -> Expr:
    """The scale stays."""
    real = import_leaky_relu(ctx, dequantize(ctx, self), negative_slope=negative_slope)
    return quantize(ctx, real, ctx.quantization(self), ctx.dtype(self), "after")


@OPS.imports("quantized::dropout", ignored=("output_scale", "output_zero_point", "p"))
def import_dropout(ctx: Import, self: Expr, *, training: bool = False) -> Expr:
    if training:
        raise Unsupported("dropout of a module in training", hint="call its eval() before")
    return self


# Functions whose result always has one scale, and for each dtype a zero point.

_FIXED: Final[dict[str, tuple[Function, float, dict[str, int]]]] = {
    "sigmoid": (import_sigmoid, 1 / 256, {"uint8": 0, "int8": -128}),
    "hardsigmoid": (import_hard_sigmoid, 1 / 256, {"uint8": 0, "int8": -128}),
    "tanh": (import_tanh, 2 / 256, {"uint8": 128, "int8": 0}),
}


def _import_fixed(ctx: Import, self: Expr, *, name: str) -> Expr:
    (function, scale, zeros), dtype = _FIXED[name], ctx.dtype(self)
    if dtype not in zeros:
        raise Unsupported(f"{name} of quantised {dtype}")
    result = Quantization(scale, zeros[dtype])
    return quantize(ctx, function(ctx, dequantize(ctx, self)), result, dtype, "after")


for _name in _FIXED:
    OPS.imports(f"quantized_tensor::{_name}")(partial(_import_fixed, name=_name))


def _import_comparison(ctx: Import, self: Expr, other: Expr, *, build: Function) -> Expr:
    operands = [
        dequantize(ctx, x) if ctx.is_quantized(x) else ctx.cast(x, "float32") for x in (self, other)
    ]
    return build(*operands)


for _name, _build in {
    "eq": relay.equal,
    "ne": relay.not_equal,
    "lt": relay.less,
    "le": relay.less_equal,
    "gt": relay.greater,
    "ge": relay.greater_equal,
}.items():
    OPS.imports(f"quantized_tensor::{_name}")(partial(_import_comparison, build=_build))

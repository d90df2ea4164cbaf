"""Arithmetic on codes, as the reference kernels have it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr
from serde.tflite.model import Tensor
from serde.tflite.ops.pool import PoolOptions
from serde.tflite.ops.shape import pairs_of
from serde.tflite.ops.table import INTEGERS, Import
from serde.tflite.quantization import (
    limited,
    one_scale,
    rescaled,
    rounded_twice,
    scale_product,
    zero_point,
)
from serde.walk import reads

_SHIFTS = {"int8": 20, "uint8": 20, "int16": 15}
"""By how many bits codes are shifted before they are added."""


def _level(x: Expr, tensor: Tensor) -> Expr:
    """Return codes as int32 without their zero point."""
    return relay.subtract(relay.cast(x, "int32"), zero_point(tensor))


def _sum_reader(combine: Callable[[Expr, Expr], Expr]) -> Callable[..., Expr]:
    def read(ctx: Import, x: Expr, y: Expr, *, fused_activation_function: int = 0) -> Expr:
        """Both are brought to twice the larger scale, shifted left, and added."""
        made = ctx.result()
        shift = _SHIFTS.get(made.dtype)
        if shift is None:
            raise Unsupported(f"sums of codes of {made.dtype}")
        tensors = ctx.tensor(0), ctx.tensor(1)
        most = 2 * max(one_scale(each)[0] for each in tensors)
        bits = Constant(np.array(shift, np.int32))
        terms = [
            rounded_twice(
                relay.left_shift(_level(value, each), bits), np.array([one_scale(each)[0]]), most
            )
            for value, each in zip((x, y), tensors, strict=True)
        ]
        scale = np.array([most / 2**shift])
        total = combine(*terms)
        return rescaled(total, scale, made, fused_activation_function, twice=True)

    return read


INTEGERS.imports("ADD", ignored=("pot_scale_int16",))(_sum_reader(relay.add))
INTEGERS.imports("SUB", ignored=("pot_scale_int16",))(_sum_reader(relay.subtract))


@INTEGERS.imports("MUL")
def import_integer_mul(
    ctx: Import, x: Expr, y: Expr, *, fused_activation_function: int = 0
) -> Expr:
    found = relay.multiply(_level(x, ctx.tensor(0)), _level(y, ctx.tensor(1)))
    scale = scale_product(ctx.tensor(0), ctx.tensor(1))
    return rescaled(found, scale, ctx.result(), fused_activation_function)


@INTEGERS.imports("AVERAGE_POOL_2D")
def import_integer_average_pool_2d(ctx: Import, x: Expr, *, pool: PoolOptions) -> Expr:
    """Codes are averaged as they are, ties away from zero."""
    made = ctx.result()
    mean = relay.nn.avg_pool2d(relay.cast(x, "float32"), **pool.window(ctx, x))
    found = relay.cast(relay.round(mean), made.dtype)
    return limited(found, made, pool.fused_activation_function)


@INTEGERS.imports("QUANTIZE")
def import_integer_quantize(ctx: Import, x: Expr) -> Expr:
    given = ctx.tensor(0)
    return rescaled(_level(x, given), scale_product(given), ctx.result(), twice=True)


@INTEGERS.imports("PAD")
def import_integer_pad(ctx: Import, x: Expr, paddings: Expr) -> Expr:
    """The border is zero, the zero point in codes."""
    value = Constant(np.array(one_scale(ctx.result())[1], ctx.type(x).dtype))
    return relay.nn.pad(x, pairs_of(ctx, paddings), value)


@INTEGERS.imports("CONCATENATION")
def import_integer_concatenation(
    ctx: Import, *values: Expr, axis: int = 0, fused_activation_function: int = 0
) -> Expr:
    made = ctx.result()
    parts = [_as(ctx, each, ctx.tensor(i), made) for i, each in enumerate(values)]
    return limited(relay.concatenate(parts, axis=axis), made, fused_activation_function)


def _as(ctx: Import, x: Expr, given: Tensor, made: Tensor) -> Expr:
    """Return codes of a tensor as those of another."""
    if one_scale(given) == one_scale(made):
        return x
    return rescaled(_level(x, given), scale_product(given), made)


# Codes are compared as they are, whatever the scales say.
INTEGERS.pairs(reads("MAXIMUM", "maximum"), reads("MINIMUM", "minimum"))


@INTEGERS.imports("LEAKY_RELU")
def import_integer_leaky_relu(ctx: Import, x: Expr, *, alpha: float = 0.0) -> Expr:
    """Each side has a scale of its own."""
    given, made = ctx.tensor(0), ctx.result()
    level, zero = _level(x, given), Constant(np.zeros((), np.int32))
    ratio = np.float32(one_scale(given)[0]) / np.float32(one_scale(made)[0])
    slope = np.float32(one_scale(given)[0]) * np.float32(alpha) / np.float32(one_scale(made)[0])
    above = rescaled(level, np.array([ratio]), made, by_ratio=True, twice=True)
    below = rescaled(level, np.array([slope]), made, by_ratio=True, twice=True)
    return relay.where(relay.greater_equal(level, zero), above, below)

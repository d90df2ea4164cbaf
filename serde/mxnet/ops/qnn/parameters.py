"""Ranges of quantised tensors: MXNet sends two of them along with each, ONNX a scale.

A range that is known when the graph is read becomes a constant scale; zero is always level 0.
"""

from __future__ import annotations

from typing import Final

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call, is_call
from serde.relay.transform import EvaluateConstants

__all__ = [
    "LEVELS", "ONE", "WHOLE", "known", "levels_in", "levels_within", "magnitude", "number",
    "product_range", "real_of", "scalar", "step", "symmetric", "whole",
]  # fmt: skip

LEVELS: Final = {"int8": 127.5, "uint8": 255.5}
"""Levels to the end of a range, as oneDNN's operators count them: half a level more than fit."""

WHOLE: Final = {"int8": 127.0, "uint8": 255.0, "int32": 2147483648.0}
"""Levels to the end of a range, as the other operators count them."""

ONE: Final = relay.const(np.float32(1))

_FOLD: Final = EvaluateConstants()


def known(node: Expr) -> Expr:
    """Return the value of a call of constants, any other call as it is."""
    return _FOLD.fold(node)


def number(value: float) -> Expr:
    """Return one end of a range as MXNet has it, a vector of one element."""
    return relay.const(np.array([value], np.float32))


def scalar(value: float) -> Expr:
    """Return a constant of float32."""
    return relay.const(np.float32(value))


def magnitude(low: Expr, high: Expr) -> Expr:
    """Return the greater magnitude of the ends of a range; of one about zero, of either."""
    if is_call(low, "negative") and low.args[0] is high:
        return relay.abs(high)
    return known(relay.maximum(known(relay.abs(low)), known(relay.abs(high))))


def symmetric(end: Expr) -> tuple[Expr, Expr]:
    """Return the range from minus `end` to `end`."""
    return known(relay.negative(end)), end


def step(end: Expr, levels: float) -> Expr:
    """Return what one level stands for, a scalar: the end of a range over its levels.

    MXNet multiplies by levels over end, and ONNX divides by the step. Of the steps nearest to
    the quotient this is one that takes the end of the range to the same side of a half.
    """
    if not isinstance(end, Constant):
        return relay.squeeze(relay.divide(end, scalar(levels)), axis=[0])
    value = np.float32(end.data.item())
    if not value:
        raise Unsupported("a range from zero to zero, which MXNet divides by")
    wanted = np.rint(value * (np.float32(levels) / value))
    nearest = value / np.float32(levels)
    near = (nearest, *(np.nextafter(nearest, np.float32(side)) for side in (0, np.inf)))
    return scalar(float(next((each for each in near if np.rint(value / each) == wanted), nearest)))


def levels_in(x: Expr, scale: Expr, dtype: str, *, axis: int = 0) -> Expr:
    """Return real numbers in steps of `scale`, rounded half to even and cut to the range."""
    zero = relay.Constant(np.zeros((), dtype))
    return call("serde.quantize_linear", x, scale, zero, axis=axis, out_dtype=dtype)


def levels_within(x: Expr, end: Expr, levels: float, dtype: str) -> Expr:
    """Return real numbers quantised by the end of a range.

    One that is computed when the model runs is often that of an element, which then lies on
    a half: there the product is taken as MXNet does.
    """
    if isinstance(end, Constant):
        return levels_in(x, step(end, levels), dtype)
    factor = relay.squeeze(relay.divide(scalar(levels), end), axis=[0])
    return levels_in(relay.multiply(x, factor), ONE, dtype)


def real_of(x: Expr, scale: Expr, *, axis: int = 0) -> Expr:
    """Return the real numbers that levels stand for."""
    return call("serde.dequantize_linear", x, scale, None, axis=axis)


def whole(x: Expr, dtype: str = "int32") -> Expr:
    """Return real numbers rounded half to even."""
    return relay.cast(relay.serde.round_even(x), dtype)


def product_range(left: Expr, right: Expr, dtypes: tuple[str, str]) -> tuple[Expr, Expr]:
    """Return the range of int32 that sums of products of two quantised tensors have.

    Args:
        left: End of the range of one tensor.
        right: End of the range of the other.
        dtypes: What MXNet takes their dtypes for.
    """
    steps = [
        known(relay.divide(end, scalar(WHOLE[dtype])))
        for end, dtype in zip((left, right), dtypes, strict=True)
    ]
    return symmetric(known(relay.multiply(known(relay.multiply(*steps)), scalar(WHOLE["int32"]))))

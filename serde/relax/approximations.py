"""Exponentials and their like in arithmetic, which vectors do.

TVM asks the C library for every single number. What is here, of float32, agrees with that but for
roundings: an exponential to a unit in the last place, a tangent or an error function to five.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import factorial, log
from typing import Any as AnyValue, Final

import numpy as np

from serde.relax.framework import Framework
from serde.relax.reflection import dtype_of

__all__ = ["approximate"]

_TERMS: Final = 8
"""Of the series of an exponential, within half a doubling of its middle."""

_RANGE: Final = (-104.0, 89.0)
"""Beyond which an exponential is zero, or infinite."""

_ROUNDING: Final = 1.5 * 2**23

_LOG_2: Final = (0.693359375, log(2) - 0.693359375)
"""Its first bits, and the rest: a small number times the first is exact."""

_QUOTIENTS: Final = {
    "tanh": (
        8.6,
        (1.0, 0.14114263, 4.44605173e-3, 4.27954586e-5, 1.14215282e-7, 3.86857851e-11),
        (1.0, 0.474475963, 2.92713732e-2, 5.04711718e-4, 2.65262838e-6, 3.06503191e-9),
    ),
    "erf": (
        3.92,
        (1.12837915, 0.190402982, 5.27482617e-2, 3.76546599e-3, 2.8487913e-4, 2.05011237e-6),
        (1.0, 0.502072991, 0.11410767, 1.49689163e-2, 1.16249841e-3, 3.80917848e-5),
    ),
}
"""Where a function is one, and the polynomials of squares whose quotient it is, times its argument.

Their relative error is the least that polynomials of this degree can have.
"""


def approximate(framework: Framework, function: AnyValue) -> AnyValue:
    """Return a function of TIR in which exponentials are arithmetic."""
    tir = framework.tir

    def change(node: AnyValue) -> AnyValue:
        name = str(getattr(getattr(node, "op", None), "name", "")).rpartition(".")[2]
        if name not in ("exp", "sigmoid", *_QUOTIENTS) or dtype_of(node) != "float32":
            return node
        (x,) = node.args
        if name in _QUOTIENTS:
            return _quotient(tir, x, *_QUOTIENTS[name])
        return _exp(tir, x) if name == "exp" else 1.0 / (1.0 + _exp(tir, -x))

    return function.with_body(framework.change_nodes(function.body, change))


def _polynomial(tir: AnyValue, x: AnyValue, factors: Sequence[float]) -> AnyValue:
    last = tir.const(factors[-1], "float32")
    return reduce(lambda sum_, each: sum_ * x + each, reversed(factors[:-1]), last)


def _within(tir: AnyValue, x: AnyValue, least: float, most: float) -> AnyValue:
    """Return a number between two others, or what is no number as it is."""
    low, high = (tir.const(each, "float32") for each in (least, most))
    return tir.Select(x < low, low, tir.Select(x > high, high, x))


def _quotient(
    tir: AnyValue, given: AnyValue, most: float, above: Sequence[float], below: Sequence[float]
) -> AnyValue:
    """Return a function that goes from -1 to 1, which it is where its polynomials end."""
    x, y = (tir.Var(name, "float32") for name in "xy")
    one, other = (_polynomial(tir, x * x, each) for each in (above, below))
    low, high = (tir.const(each, "float32") for each in (-1.0, 1.0))
    found = tir.Select(x < -most, low, tir.Select(x > most, high, _within(tir, y, -1.0, 1.0)))
    return tir.Let(x, given, tir.Let(y, x * one / other, found))


def _exp(tir: AnyValue, given: AnyValue) -> AnyValue:
    """Return a power of two, by its bits and in two factors, times what is left of the number."""
    x, near, rest = (tir.Var(name, "float32") for name in ("x", "near", "rest"))
    power = tir.reinterpret("int32", near) - int(np.float32(_ROUNDING).view(np.int32))
    half, whole = power >> tir.const(1, "int32"), near - _ROUNDING
    one, other = (
        tir.reinterpret("float32", (each + 127) << tir.const(23, "int32"))
        for each in (half, power - half)
    )
    series = [1 / factorial(each) for each in range(_TERMS)]
    found = _polynomial(tir, rest, series) * one * other
    found = tir.Let(rest, x - whole * _LOG_2[0] - whole * _LOG_2[1], found)
    # Behind so large a number there is no room for a fraction: it is rounded.
    found = tir.Let(near, x * (1 / log(2)) + _ROUNDING, found)
    return tir.Let(x, _within(tir, given, *_RANGE), found)

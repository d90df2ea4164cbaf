"""Functions that have no name in Relay and are spelled out: Bessel's, and the digamma function.

Modified Bessel functions are their power series up to 20, whose terms have one sign, and Hankel's
expansion beyond (DLMF 10.25.2 and 10.40.1). The digamma function is its expansion (DLMF 5.11.2) of
arguments that are moved beyond 10 by its recurrence. All work in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Constant, Expr
from serde.torch.ops.table import OPS, Import

BOUND = 20.0
"""Where the power series ends and the expansion begins."""


def _series(order: int) -> list[float]:
    """Return coefficients of the powers of x**2 / 4, without the factor (x / 2)**order."""
    return [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(64)]


def _expansion(order: int) -> list[float]:
    """Return coefficients of the powers of 1 / x."""
    found = [1.0]
    for k in range(1, 20):
        found.append(-found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (k * 8))
    return found


def _polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Return a polynomial, lowest degree first."""
    degrees = Constant(allocation.arange(len(coefficients), dtype=np.float64))
    powers = relay.power(relay.expand_dims(x, -1), degrees)
    return relay.sum(relay.multiply(powers, Constant(np.array(coefficients))), axis=[-1])


def _bessel(ctx: Import, x: Expr, order: int, scaled: bool) -> Expr:
    """Return a modified Bessel function of the first kind, times ``exp(-abs(x))`` if scaled."""
    bound = ctx.scalar(BOUND, "float64")
    size = relay.abs(x)
    near = relay.minimum(size, bound)
    half = relay.multiply(near, ctx.scalar(0.5, "float64"))
    small = _polynomial(relay.multiply(half, half), _series(order))
    if order:
        small = relay.multiply(small, half)
    far = relay.maximum(size, bound)
    decay = relay.sqrt(relay.multiply(far, ctx.scalar(2 * math.pi, "float64")))
    great = _polynomial(relay.divide(ctx.scalar(1, "float64"), far), _expansion(order))
    great = relay.divide(great, decay)
    if scaled:
        small = relay.multiply(small, relay.exp(relay.negative(near)))
    else:
        great = relay.multiply(great, relay.exp(far))
    found = relay.where(relay.less(size, bound), small, great)
    return relay.multiply(found, relay.sign(x)) if order else found


_BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""Coefficients of the expansion of the digamma function, by powers of ``x**-2``."""


def _digamma(ctx: Import, x: Expr) -> Expr:
    """Below 1/2 it is reflected; at the negative integers it is no number, at 0 infinite."""
    one, zero = ctx.scalar(1, "float64"), ctx.scalar(0, "float64")
    left = relay.less(x, ctx.scalar(0.5, "float64"))
    place = relay.where(left, relay.subtract(one, x), x)
    steps = Constant(np.arange(10.0))
    inverse = relay.divide(one, relay.add(relay.expand_dims(place, -1), steps))
    moved = relay.add(place, ctx.scalar(10, "float64"))
    square = relay.divide(one, relay.multiply(moved, moved))
    tail = relay.multiply(square, _polynomial(square, _BERNOULLI))
    half = relay.divide(ctx.scalar(0.5, "float64"), moved)
    found = relay.subtract(relay.subtract(relay.log(moved), half), tail)
    found = relay.subtract(found, relay.sum(inverse, axis=[-1]))
    rest = relay.subtract(x, relay.floor(x))
    slope = relay.tan(relay.multiply(rest, ctx.scalar(math.pi, "float64")))
    mirrored = relay.subtract(found, relay.divide(ctx.scalar(math.pi, "float64"), slope))
    nothing = relay.logical_and(left, relay.equal(rest, zero))
    mirrored = relay.where(nothing, ctx.scalar(math.nan, "float64"), mirrored)
    pole = relay.negative(relay.divide(one, x))
    mirrored = relay.where(relay.equal(x, zero), pole, mirrored)
    return relay.where(left, mirrored, found)


def _in_float64(ctx: Import, function: Callable[[Import, Expr], Expr], x: Expr) -> Expr:
    (given,) = ctx.promote_to_float(x)
    return ctx.cast(function(ctx, ctx.cast(given, "float64")), ctx.dtype(given))


def _register(op: str, order: int, scaled: bool) -> None:
    @OPS.imports(f"aten::{op}")
    def import_bessel(ctx: Import, self: Expr) -> Expr:
        return _in_float64(ctx, lambda ctx, x: _bessel(ctx, x, order, scaled), self)


_register("i0", 0, scaled=False)
_register("special_i0", 0, scaled=False)
_register("special_i0e", 0, scaled=True)
_register("special_i1", 1, scaled=False)
_register("special_i1e", 1, scaled=True)
_register("special_modified_bessel_i0", 0, scaled=False)
_register("special_modified_bessel_i1", 1, scaled=False)


@OPS.imports("aten::digamma", "aten::special_digamma", "aten::special_psi")
def import_digamma(ctx: Import, self: Expr) -> Expr:
    return _in_float64(ctx, _digamma, self)


@OPS.imports("aten::polygamma", "aten::special_polygamma")
def import_polygamma(ctx: Import, self: Expr, *, n: int) -> Expr:
    if n != 0:
        raise Unsupported(f"the polygamma function of order {n}")
    return import_digamma(ctx, self)

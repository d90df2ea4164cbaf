"""Densities of distributions, or their logarithms, at samples.

The parameters have the leading axes of the samples; each holds for all samples on the others.
Nothing outside the range of a distribution is looked for: there the formula goes on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir import Expr, call, require_float

Density = Callable[..., Expr]


def _number(value: float, like: str) -> Expr:
    return relay.const(value, like)


def _lgamma(x: Expr) -> Expr:
    return call("serde.lgamma", x)


def _after(x: Expr, dtype: str) -> Expr:
    return relay.add(x, _number(1.0, dtype))


def _uniform(dtype: str, x: Expr, low: Expr, high: Expr) -> Expr:
    flat = relay.negative(relay.log(relay.subtract(high, low)))
    return relay.add(flat, relay.zeros_like(x))


def _normal(dtype: str, x: Expr, mu: Expr, sigma: Expr) -> Expr:
    distance = relay.divide(relay.subtract(x, mu), sigma)
    square = relay.multiply(relay.multiply(distance, distance), _number(-0.5, dtype))
    scale = relay.log(relay.multiply(sigma, _number(np.sqrt(2 * np.pi), dtype)))
    return relay.subtract(square, scale)


def _exponential(dtype: str, x: Expr, lam: Expr) -> Expr:
    return relay.subtract(relay.log(lam), relay.multiply(lam, x))


def _gamma(dtype: str, x: Expr, alpha: Expr, beta: Expr) -> Expr:
    """Of rate `beta`; where numbers are drawn, `beta` is a scale."""
    power = relay.multiply(relay.subtract(alpha, _number(1.0, dtype)), relay.log(x))
    front = relay.subtract(relay.multiply(alpha, relay.log(beta)), _lgamma(alpha))
    return relay.add(front, relay.subtract(power, relay.multiply(beta, x)))


def _poisson(dtype: str, x: Expr, lam: Expr) -> Expr:
    power = relay.multiply(x, relay.log(lam))
    return relay.subtract(relay.subtract(power, _lgamma(_after(x, dtype))), lam)


def _negative_binomial(dtype: str, x: Expr, k: Expr, p: Expr) -> Expr:
    ways = relay.subtract(_lgamma(relay.add(x, k)), _lgamma(_after(x, dtype)))
    ways = relay.subtract(ways, _lgamma(k))
    rest = relay.log(relay.subtract(_number(1.0, dtype), p))
    odds = relay.add(relay.multiply(k, relay.log(p)), relay.multiply(x, rest))
    return relay.add(ways, odds)


def _generalized_negative_binomial(dtype: str, x: Expr, mu: Expr, alpha: Expr) -> Expr:
    one = _number(1.0, dtype)
    odds = relay.divide(one, _after(relay.multiply(mu, alpha), dtype))
    return _negative_binomial(dtype, x, relay.divide(one, alpha), odds)


DENSITIES: dict[str, tuple[Density, int]] = {
    "uniform": (_uniform, 2),
    "normal": (_normal, 2),
    "exponential": (_exponential, 1),
    "gamma": (_gamma, 2),
    "poisson": (_poisson, 1),
    "negative_binomial": (_negative_binomial, 2),
    "generalized_negative_binomial": (_generalized_negative_binomial, 2),
}
"""Logarithms of densities, and how many parameters they have."""


def _expand_to_rank(ctx: Import, param: Expr, rank: int) -> Expr:
    """Return a parameter with axes behind its own, of length 1, up to a rank."""
    missing = rank - ctx.type(param).rank
    if missing < 0:
        raise Unsupported(f"parameters of shape {ctx.type(param).shape} for samples of rank {rank}")
    return relay.expand_dims(param, axis=-1, num_newaxis=missing) if missing else param


def _evaluate(
    ctx: Import, density: Density, sample: Expr, params: list[Expr], is_log: bool
) -> Expr:
    type_ = ctx.type(sample)
    require_float(type_)
    wide = "float64" if type_.dtype == "float64" else "float32"
    spread = [relay.cast(_expand_to_rank(ctx, param, type_.rank), wide) for param in params]
    found = density(wide, relay.cast(sample, wide), *spread)
    return relay.cast(found if is_log else relay.exp(found), type_.dtype)


def _register(name: str, density: Density, count: int) -> None:
    def import_one(ctx: Import, sample: Expr, param: Expr, *, is_log: bool = False) -> Expr:
        return _evaluate(ctx, density, sample, [param], is_log)

    def import_two(
        ctx: Import, sample: Expr, first: Expr, second: Expr, *, is_log: bool = False
    ) -> Expr:
        return _evaluate(ctx, density, sample, [first, second], is_log)

    OPS.imports(f"_random_pdf_{name}")(import_one if count == 1 else import_two)


for _name, (_density, _count) in DENSITIES.items():
    _register(_name, _density, _count)


@OPS.imports("_random_pdf_dirichlet")
def import_random_pdf_dirichlet(
    ctx: Import, sample: Expr, alpha: Expr, *, is_log: bool = False
) -> Expr:
    """The last axis is the distribution's; a single sample gives one element, not a scalar."""
    type_ = ctx.type(sample)
    require_float(type_)
    missing = type_.rank - ctx.type(alpha).rank
    if missing:
        alpha = relay.expand_dims(alpha, axis=-2, num_newaxis=missing)
    wide = "float64" if type_.dtype == "float64" else "float32"
    x, a = relay.cast(sample, wide), relay.cast(alpha, wide)
    keep = type_.rank == 1
    powers = relay.multiply(relay.subtract(a, _number(1.0, wide)), relay.log(x))
    found = relay.sum(relay.subtract(powers, _lgamma(a)), axis=-1, keepdims=keep)
    found = relay.add(found, _lgamma(relay.sum(a, axis=-1, keepdims=keep)))
    return relay.cast(found if is_log else relay.exp(found), type_.dtype)

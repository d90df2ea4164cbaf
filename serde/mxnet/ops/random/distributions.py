"""Distributions, by what uniform, normal, gamma and Poisson numbers become.

No seed is noted: MXNet keeps one for the whole process, and each run draws anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import serde.relay as relay
from serde.core import dataclass, numpy_dtype
from serde.relay.ir import Expr, TensorType, call, is_float

__all__ = [
    "Distribution", "Sample", "exponential", "gamma", "generalized_negative_binomial", "gumbel",
    "logistic", "negative_binomial", "normal", "pareto", "poisson", "power", "rayleigh",
    "scaled_exponential", "uniform", "weibull",
]  # fmt: skip

Parameter = float | Expr
"""A number, or a tensor that broadcasts to what is drawn."""

Distribution = Callable[..., Expr]


@dataclass(frozen=True)
class Sample:
    """What is drawn: how many numbers, and of which type.

    Attributes:
        dtype: Of the result.
        shape: Its shape where that is fixed, else None.
        like: Else a tensor of that shape.
    """

    dtype: str
    shape: tuple[int, ...] | None = None
    like: Expr | None = None

    @property
    def wide(self) -> str:
        """The dtype to compute in, from which narrower results are rounded."""
        return "float64" if self.dtype == "float64" else "float32"

    def value(self, parameter: Parameter) -> Expr:
        """Return a parameter as a tensor of the dtype to compute in."""
        if isinstance(parameter, Expr):
            return relay.cast(parameter, self.wide)
        return relay.const(parameter, self.wide)

    def draw(self, kind: str, **spread: AnyValue) -> Expr:
        """Return numbers of one of Relay's distributions, of the dtype to compute in."""
        given = [] if self.like is None else [self.like]
        return call(kind, *given, shape=self.shape, dtype=numpy_dtype(self.wide), **spread)

    def unit(self) -> Expr:
        """Return uniform numbers between 0 and 1, neither of which is reached.

        A logarithm of them, or of what they lack of 1, is a number.
        """
        step = 2.0**-53 if self.wide == "float64" else 2.0**-24
        return self.draw("serde.random_uniform", low=step, high=1 - step)

    def fill(self, parameter: Expr) -> Expr:
        """Return a parameter for each number."""
        if self.like is None:
            return relay.broadcast_to(parameter, self.shape)
        zeros = relay.zeros_like(relay.cast(self.like, self.wide))
        return relay.add(parameter, zeros)

    def draw_each(self, kind: str, rate: Expr) -> Expr:
        """Return numbers of which each has its own parameter of the distribution."""
        if self.like is None:
            return call(kind, rate, shape=self.shape)
        return call(kind, self.fill(rate))

    def finish(self, drawn: Expr) -> Expr:
        """Return what is drawn in the dtype of the result."""
        return drawn if self.dtype == self.wide else relay.cast(drawn, self.dtype)


def uniform(sample: Sample, low: Parameter, high: Parameter) -> Expr:
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return sample.finish(sample.draw("serde.random_uniform", low=low, high=high))
    unit = sample.draw("serde.random_uniform")
    first = sample.value(low)
    width = relay.subtract(sample.value(high), first)
    return sample.finish(relay.add(relay.multiply(unit, width), first))


def normal(sample: Sample, loc: Parameter, scale: Parameter) -> Expr:
    if isinstance(loc, (int, float)) and isinstance(scale, (int, float)):
        return sample.finish(sample.draw("serde.random_normal", mean=loc, scale=scale))
    drawn = sample.draw("serde.random_normal")
    return sample.finish(relay.add(relay.multiply(drawn, sample.value(scale)), sample.value(loc)))


def _waiting(sample: Sample) -> Expr:
    """Return exponential numbers of rate 1."""
    return relay.negative(relay.log(sample.unit()))


def exponential(sample: Sample, lam: Parameter) -> Expr:
    return sample.finish(relay.divide(_waiting(sample), sample.value(lam)))


def scaled_exponential(sample: Sample, scale: Parameter) -> Expr:
    return sample.finish(relay.multiply(_waiting(sample), sample.value(scale)))


def gamma(sample: Sample, alpha: Parameter, scale: Parameter) -> Expr:
    drawn = sample.draw_each("serde.random_gamma", sample.value(alpha))
    return sample.finish(relay.multiply(drawn, sample.value(scale)))


def poisson(sample: Sample, lam: Parameter) -> Expr:
    return sample.finish(sample.draw_each("serde.random_poisson", sample.value(lam)))


def negative_binomial(sample: Sample, k: Parameter, p: Parameter) -> Expr:
    """Failures before success `k`: Poisson numbers whose rate is a gamma number."""
    odds = sample.value(p)
    scale = relay.divide(relay.subtract(relay.const(1.0, sample.wide), odds), odds)
    rate = relay.multiply(sample.draw_each("serde.random_gamma", sample.value(k)), scale)
    return poisson(sample, rate)


def generalized_negative_binomial(sample: Sample, mu: Parameter, alpha: Parameter) -> Expr:
    """Of mean `mu` and dispersion `alpha`; without dispersion, Poisson numbers."""
    if alpha == 0:
        return poisson(sample, mu)
    mean, spread = sample.value(mu), sample.value(alpha)
    one, zero = (relay.const(number, sample.wide) for number in (1.0, 0.0))
    if isinstance(alpha, (int, float)):
        found = sample.draw_each("serde.random_gamma", relay.const(1 / alpha, sample.wide))
        return poisson(sample, relay.multiply(found, relay.multiply(spread, mean)))
    none = relay.equal(spread, zero)
    shape = relay.divide(one, relay.where(none, one, spread))
    found = sample.draw_each("serde.random_gamma", shape)
    rate = relay.where(none, one, relay.multiply(found, spread))
    return poisson(sample, relay.multiply(rate, mean))


def gumbel(sample: Sample, loc: Parameter, scale: Parameter) -> Expr:
    drawn = relay.multiply(relay.log(_waiting(sample)), sample.value(scale))
    return sample.finish(relay.subtract(sample.value(loc), drawn))


def logistic(sample: Sample, loc: Parameter, scale: Parameter) -> Expr:
    unit = sample.unit()
    rest = relay.subtract(relay.const(1.0, sample.wide), unit)
    drawn = relay.multiply(relay.log(relay.divide(unit, rest)), sample.value(scale))
    return sample.finish(relay.add(sample.value(loc), drawn))


def rayleigh(sample: Sample, scale: Parameter) -> Expr:
    root = relay.sqrt(relay.multiply(_waiting(sample), relay.const(2.0, sample.wide)))
    return sample.finish(relay.multiply(root, sample.value(scale)))


def _exponent(sample: Sample, a: Parameter) -> Expr:
    """Return 1 / a, which MXNet takes in whole numbers where `a` is a tensor of them."""
    if isinstance(a, Expr) and isinstance(a.type, TensorType) and not is_float(a.type.dtype):
        return relay.cast(relay.divide(relay.const(1, a.type.dtype), a), sample.wide)
    return relay.divide(relay.const(1.0, sample.wide), sample.value(a))


def weibull(sample: Sample, a: Parameter) -> Expr:
    return sample.finish(relay.power(_waiting(sample), _exponent(sample, a)))


def power(sample: Sample, a: Parameter) -> Expr:
    return sample.finish(relay.power(sample.unit(), _exponent(sample, a)))


def pareto(sample: Sample, a: Parameter) -> Expr:
    """Less one: what NumPy draws is the distribution of Lomax."""
    drawn = relay.exp(relay.divide(_waiting(sample), sample.value(a)))
    return sample.finish(relay.subtract(drawn, relay.const(1.0, sample.wide)))

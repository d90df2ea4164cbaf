"""Distributions, by what uniform, normal, gamma and Poisson numbers become.

No seed is noted: MXNet keeps one for the whole process, and each run draws anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any as AnyValue

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType
from serde.weights import numpy_dtype

__all__ = [
    "Distribution",
    "Room",
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "gumbel",
    "logistic",
    "negative_binomial",
    "normal",
    "pareto",
    "poisson",
    "power",
    "rayleigh",
    "scaled_exponential",
    "uniform",
    "weibull",
]

Parameter = float | Expr
"""A number, or a tensor that broadcasts to what is drawn."""

Distribution = Callable[..., Expr]


@dataclass(frozen=True)
class Room:
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

    def filled(self, parameter: Expr) -> Expr:
        """Return a parameter for each number."""
        if self.like is None:
            return relay.broadcast_to(parameter, self.shape)
        zeros = relay.zeros_like(relay.cast(self.like, self.wide))
        return relay.add(parameter, zeros)

    def rated(self, kind: str, rate: Expr) -> Expr:
        """Return numbers of which each has its own parameter of the distribution."""
        if self.like is None:
            return call(kind, rate, shape=self.shape)
        return call(kind, self.filled(rate))

    def finish(self, drawn: Expr) -> Expr:
        """Return what is drawn in the dtype of the result."""
        return drawn if self.dtype == self.wide else relay.cast(drawn, self.dtype)


def uniform(room: Room, low: Parameter, high: Parameter) -> Expr:
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return room.finish(room.draw("serde.random_uniform", low=low, high=high))
    unit = room.draw("serde.random_uniform")
    first = room.value(low)
    width = relay.subtract(room.value(high), first)
    return room.finish(relay.add(relay.multiply(unit, width), first))


def normal(room: Room, loc: Parameter, scale: Parameter) -> Expr:
    if isinstance(loc, (int, float)) and isinstance(scale, (int, float)):
        return room.finish(room.draw("serde.random_normal", mean=loc, scale=scale))
    drawn = room.draw("serde.random_normal")
    return room.finish(relay.add(relay.multiply(drawn, room.value(scale)), room.value(loc)))


def _waiting(room: Room) -> Expr:
    """Return exponential numbers of rate 1."""
    return relay.negative(relay.log(room.unit()))


def exponential(room: Room, lam: Parameter) -> Expr:
    return room.finish(relay.divide(_waiting(room), room.value(lam)))


def scaled_exponential(room: Room, scale: Parameter) -> Expr:
    return room.finish(relay.multiply(_waiting(room), room.value(scale)))


def gamma(room: Room, alpha: Parameter, scale: Parameter) -> Expr:
    drawn = room.rated("serde.random_gamma", room.value(alpha))
    return room.finish(relay.multiply(drawn, room.value(scale)))


def poisson(room: Room, lam: Parameter) -> Expr:
    return room.finish(room.rated("serde.random_poisson", room.value(lam)))


def negative_binomial(room: Room, k: Parameter, p: Parameter) -> Expr:
    """Failures before success `k`: Poisson numbers whose rate is a gamma number."""
    odds = room.value(p)
    scale = relay.divide(relay.subtract(relay.const(1.0, room.wide), odds), odds)
    rate = relay.multiply(room.rated("serde.random_gamma", room.value(k)), scale)
    return poisson(room, rate)


def generalized_negative_binomial(room: Room, mu: Parameter, alpha: Parameter) -> Expr:
    """Of mean `mu` and dispersion `alpha`; without dispersion, Poisson numbers."""
    if alpha == 0:
        return poisson(room, mu)
    mean, spread = room.value(mu), room.value(alpha)
    one, zero = (relay.const(number, room.wide) for number in (1.0, 0.0))
    if isinstance(alpha, (int, float)):
        found = room.rated("serde.random_gamma", relay.const(1 / alpha, room.wide))
        return poisson(room, relay.multiply(found, relay.multiply(spread, mean)))
    none = relay.equal(spread, zero)
    shape = relay.divide(one, relay.where(none, one, spread))
    found = room.rated("serde.random_gamma", shape)
    rate = relay.where(none, one, relay.multiply(found, spread))
    return poisson(room, relay.multiply(rate, mean))


def gumbel(room: Room, loc: Parameter, scale: Parameter) -> Expr:
    drawn = relay.multiply(relay.log(_waiting(room)), room.value(scale))
    return room.finish(relay.subtract(room.value(loc), drawn))


def logistic(room: Room, loc: Parameter, scale: Parameter) -> Expr:
    unit = room.unit()
    rest = relay.subtract(relay.const(1.0, room.wide), unit)
    drawn = relay.multiply(relay.log(relay.divide(unit, rest)), room.value(scale))
    return room.finish(relay.add(room.value(loc), drawn))


def rayleigh(room: Room, scale: Parameter) -> Expr:
    root = relay.sqrt(relay.multiply(_waiting(room), relay.const(2.0, room.wide)))
    return room.finish(relay.multiply(root, room.value(scale)))


def _exponent(room: Room, a: Parameter) -> Expr:
    """Return 1 / a, which MXNet takes in whole numbers where `a` is a tensor of them."""
    if isinstance(a, Expr) and isinstance(a.type, TensorType) and not is_float(a.type.dtype):
        return relay.cast(relay.divide(relay.const(1, a.type.dtype), a), room.wide)
    return relay.divide(relay.const(1.0, room.wide), room.value(a))


def weibull(room: Room, a: Parameter) -> Expr:
    return room.finish(relay.power(_waiting(room), _exponent(room, a)))


def power(room: Room, a: Parameter) -> Expr:
    return room.finish(relay.power(room.unit(), _exponent(room, a)))


def pareto(room: Room, a: Parameter) -> Expr:
    """Less one: what NumPy draws is the distribution of Lomax."""
    drawn = relay.exp(relay.divide(_waiting(room), room.value(a)))
    return room.finish(relay.subtract(drawn, relay.const(1.0, room.wide)))

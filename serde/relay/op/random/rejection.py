"""Gamma and Poisson numbers: many candidates are drawn at once, the first that is accepted counts.

Acceptance is so likely that all candidates of a number are rejected less often than a float64
can tell from never. Seeds are as those of ``serde.random_uniform``. What a candidate is made of is
drawn at once too: two draws of an executor may be correlated, as those of ONNX Runtime are, whose
seeds are neighbours and whose generator multiplies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any as AnyValue, Final

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Constant, Dim, Expr, TensorType, TupleWrapper, const, tensor_type
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import broadcast, join_dim, require_float
from serde.relay.ir.traits import BitLevel, Random
from serde.relay.op.random.seeded import RandomUniform, random_uniform
from serde.relay.op.random.threefry import sizes

_GAMMA_ROWS: Final = (12, 12, 12, 1)
"""What is drawn for each number: for its candidates, of which at least 95 of 100 are accepted, one
that decides and two that make a normal one; and one for a rate below 1."""

_POISSON_ROWS: Final = (24, 24)
"""Two for each candidate, of which at least 75 of 100 are accepted."""

TABLE_END: Final = 10.0
"""Rate below which the distribution function is looked up; from it on Hörmann's method holds."""

_DOUBLE = np.dtype(np.float64)


def _rate_type(
    rate: TensorType, *, shape: tuple[int, ...] | None, seed: float | None
) -> TensorType:
    require_float(rate)
    if shape is None:
        return rate
    spread: tuple[Dim, ...] = broadcast(rate.shape, sizes(shape))
    if len(spread) != len(shape):
        raise TypeInferenceError(f"{rate!r} does not fit the shape {list(shape)}")
    for found, given in zip(spread, shape, strict=True):
        join_dim(found, given)
    return TensorType(shape, rate.dtype)


def _seed_of_table(seed: float | None) -> float | None:
    """Return another seed, whose numbers have nothing to do with those of the one given."""
    if seed is None:
        return None
    bits = int(np.array(seed, np.float32).view(np.uint32))
    return float(np.random.SeedSequence([bits, 1]).generate_state(1)[0] >> 8)


def _draw_rows(
    rate: Expr, shape: tuple[int, ...] | None, counts: Sequence[int], seed: float | None
) -> list[Expr]:
    """Return parts of one draw of uniform numbers of float64, each of `counts` rows for the rate.

    Rows lie on an axis in front, which a part of one row is without.
    """
    whole = tensor_type(rate).concrete_shape if shape is None else shape
    if whole is not None:
        lengths = (sum(counts), *whole)
        drawn = call("serde.random_uniform", shape=lengths, dtype=_DOUBLE, seed=seed)
    else:
        rows = Constant(np.zeros((sum(counts), *[1] * tensor_type(rate).rank)))
        like = call("expand_dims", rate, axis=0) + rows
        drawn = call("serde.random_uniform", like, dtype=_DOUBLE, seed=seed)
    ends = tuple(int(end) for end in np.cumsum(counts)[:-1])
    parts = (
        TupleWrapper(call("split", drawn, indices_or_sections=ends), len(counts))
        if ends
        else [drawn]
    )
    return [
        call("squeeze", part, axis=[0]) if count == 1 else part
        for part, count in zip(parts, counts, strict=True)
    ]


def _draw_arrays(shape: Sequence[int], counts: Sequence[int], seed: float | None) -> list[Array]:
    random = RandomUniform(shape=(sum(counts), *shape), dtype=_DOUBLE, seed=seed)
    drawn = random_uniform(None, random=random)
    parts = np.split(drawn, np.cumsum(counts)[:-1])
    return [part[0] if count == 1 else part for part, count in zip(parts, counts, strict=True)]


def _float64(value: float) -> Expr:
    return const(value, "float64")


def _first(accepted: Expr, values: Expr) -> Expr:
    """Return of the values along the first axis the first that is accepted."""
    place = call("argmax", call("cast", accepted, dtype="int32"), axis=[0], keepdims=True)
    return call("squeeze", call("gather", values, place, axis=0), axis=[0])


def _first_of(accepted: Array, values: Array) -> Array:
    place = accepted.argmax(0)
    return np.asarray(np.take_along_axis(values, place[None], 0)[0])


def _is_above(rate: Expr, least: float) -> bool:
    """Whether a rate is known to be nowhere below a number."""
    return isinstance(rate, Constant) and bool((rate.data >= least).all())


def _decompose_gamma(alpha: Expr, *, shape: tuple[int, ...] | None, seed: float | None) -> Expr:
    a = call("cast", alpha, dtype="float64")
    small = a < _float64(1.0)
    raised = not _is_above(alpha, 1.0)
    d = (call("where", small, a + _float64(1.0), a) if raised else a) - _float64(1 / 3)
    u, radius, angle, unit = _draw_rows(a, shape, _GAMMA_ROWS, seed)
    length = call("sqrt", _float64(-2.0) * call("log", radius))
    x = length * call("cos", _float64(2 * math.pi) * angle)
    root = x / call("sqrt", _float64(9.0) * d) + _float64(1.0)
    v = root * root * root
    bound = x * x * _float64(0.5) + d * (call("log", v) - v + _float64(1.0))
    drawn = _first(call("log", u) < bound, d * v)
    if raised:
        power = call("where", small, _float64(1.0) / a, _float64(0.0))
        drawn = drawn * call("power", unit, power)
    return call("cast", drawn, dtype=tensor_type(alpha).dtype)


@relay_op(
    "serde.random_gamma",
    traits=(Random, BitLevel),
    infer=_rate_type,
    decompose=_decompose_gamma,
    samples=[
        sample(tensor((3, 4), low=0.2, high=9.0), seed=1.0),
        sample(tensor((), "float64", low=2.0, high=3.0), shape=[2, 3], seed=2.0),
        sample(tensor((), "float16", low=1.0, high=3.0), shape=[2, 4], seed=3.0),
    ],
)
def random_gamma(
    alpha: Array, *, shape: tuple[int, ...] | None = None, seed: float | None = None
) -> Array:
    """Gamma numbers of shape `alpha` and scale 1, of the dtype of `alpha`.

    The method of Marsaglia and Tsang ("A simple method for generating gamma variables", 2000);
    below 1 a number for `alpha` + 1 is multiplied by a power of a uniform one. Normal numbers are
    those of Box and Muller ("A note on the generation of random normal deviates", 1958).
    """
    whole = alpha.shape if shape is None else shape
    a = alpha.astype(np.float64)
    d = np.where(a < 1, a + 1, a) - 1 / 3
    u, radius, angle, unit = _draw_arrays(whole, _GAMMA_ROWS, seed)
    with np.errstate(all="ignore"):
        x = np.sqrt(-2 * np.log(radius)) * np.cos(2 * math.pi * angle)
        v = (1 + x / np.sqrt(9 * d)) ** 3
        accepted = np.log(u) < 0.5 * x * x + d * (np.log(v) - v + 1)
        power = np.where(a < 1, 1 / a, 0)
        return np.asarray(_first_of(accepted, d * v) * unit**power).astype(alpha.dtype)


def _terms(rate: Expr) -> int:
    """Return how many values are looked up: the rest is rarer than a float64 can tell."""
    most = TABLE_END
    if isinstance(rate, Constant) and rate.data.size:
        most = min(most, float(rate.data.max()))
    count, odds = 1, math.exp(-most)
    while odds > 1e-18 or count < most:
        odds *= most / count
        count += 1
    return count


def _look_up(rate: Expr, shape: tuple[int, ...] | None, seed: float | None, count: int) -> Expr:
    """Return how many values of the distribution function a uniform number is not below."""
    (unit,) = _draw_rows(rate, shape, [1], _seed_of_table(seed))
    scale = np.array([1 / math.factorial(index) for index in range(count)])
    above = call("expand_dims", rate, axis=-1)
    odds = call("power", above, Constant(np.arange(float(count)))) * Constant(scale)
    reach = call("cumsum", odds * call("exp", -above), axis=-1)
    passed = call("greater_equal", call("expand_dims", unit, axis=-1), reach)
    return call("sum", call("cast", passed, dtype="float64"), axis=[-1])


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def _log_factorial(
    k: AnyValue, number: Callable[[float], AnyValue], log: Callable[[AnyValue], AnyValue]
) -> AnyValue:
    """Return log(k!) of numbers from 0 on, of arrays or of expressions, to 1e-10.

    Stirling's series four numbers further on, less the logarithm of the four that lie between.
    """
    outer = k * (k + number(5.0)) + number(4.0)
    between = outer * (outer + number(2.0))
    z = k + number(5.0)
    small = number(1.0) / (z * z)
    series = number(_STIRLING[-1])
    for term in reversed(_STIRLING[:-1]):
        series = series * small + number(term)
    whole = (z - number(0.5)) * log(z) - z + number(0.5 * math.log(2 * math.pi))
    return whole + series / z - log(between)


def _draw_poisson(rate: Expr, shape: tuple[int, ...] | None, seed: float | None) -> Expr:
    u, v = _draw_rows(rate, shape, _POISSON_ROWS, seed)
    width = call("sqrt", rate) * _float64(2.53) + _float64(0.931)
    slope = width * _float64(0.02483) - _float64(0.059)
    share = _float64(1.1328) / (width - _float64(3.4)) + _float64(1.1239)
    u = u - _float64(0.5)
    rest = _float64(0.5) - call("abs", u)
    k = call("floor", (slope * _float64(2.0) / rest + width) * u + rate + _float64(0.43))
    left = call("log", v * share / (slope / (rest * rest) + width))
    kept = call("maximum", k, _float64(0.0))
    odds = kept * call("log", rate) - rate - _log_factorial(kept, _float64, partial(call, "log"))
    accepted = call("logical_and", call("less_equal", left, odds),
                    call("greater_equal", k, _float64(0.0)))  # fmt: skip
    return _first(accepted, kept)


def _decompose_poisson(lam: Expr, *, shape: tuple[int, ...] | None, seed: float | None) -> Expr:
    rate = call("cast", lam, dtype="float64")
    if _is_above(lam, TABLE_END):
        drawn = _draw_poisson(rate, shape, seed)
    elif isinstance(lam, Constant) and bool((lam.data < TABLE_END).all()):
        drawn = _look_up(rate, shape, seed, _terms(lam))
    else:
        low = call("minimum", rate, _float64(TABLE_END))
        high = call("maximum", rate, _float64(TABLE_END))
        drawn = call("where", rate < _float64(TABLE_END),
                     _look_up(low, shape, seed, _terms(lam)),
                     _draw_poisson(high, shape, seed))  # fmt: skip
    return call("cast", drawn, dtype=tensor_type(lam).dtype)


@relay_op(
    "serde.random_poisson",
    traits=(Random, BitLevel),
    infer=_rate_type,
    decompose=_decompose_poisson,
    samples=[
        sample(tensor((3, 4), low=0.0, high=40.0), seed=1.0),
        sample(tensor((), "float64", low=2.0, high=3.0), shape=[2, 3], seed=2.0),
        sample(tensor((), "float16", low=20.0, high=30.0), shape=[2, 4], seed=3.0),
    ],
)
def random_poisson(
    lam: Array, *, shape: tuple[int, ...] | None = None, seed: float | None = None
) -> Array:
    """Poisson numbers of rate `lam`, of its dtype.

    By the distribution function below a rate of 10; from it on by transformed rejection
    (Hörmann, "The transformed rejection method for generating Poisson random variables", 1993).
    """
    whole = lam.shape if shape is None else shape
    rate = lam.astype(np.float64)
    (unit,) = _draw_arrays(whole, [1], _seed_of_table(seed))
    u, v = _draw_arrays(whole, _POISSON_ROWS, seed)
    places = np.arange(_terms(const(TABLE_END, "float32")))
    scale = np.array([1 / math.factorial(place) for place in places])
    low, high = np.minimum(rate, TABLE_END)[..., None], np.maximum(rate, TABLE_END)
    with np.errstate(all="ignore"):
        reach = np.cumsum(low**places * scale * np.exp(-low), -1)
        looked_up = (unit[..., None] >= reach).sum(-1)
        width = 0.931 + 2.53 * np.sqrt(high)
        slope = 0.02483 * width - 0.059
        share = 1.1239 + 1.1328 / (width - 3.4)
        rest = 0.5 - np.abs(u - 0.5)
        k = np.floor((2 * slope / rest + width) * (u - 0.5) + high + 0.43)
        left = np.log(v * share / (slope / (rest * rest) + width))
        kept = np.maximum(k, 0)
        odds = kept * np.log(high) - high - _log_factorial(kept, float, np.log)
        accepted = (left <= odds) & (k >= 0)
        drawn = np.where(rate < TABLE_END, looked_up, _first_of(accepted, kept))
    return np.asarray(drawn).astype(lam.dtype)

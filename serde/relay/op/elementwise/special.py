"""Functions that lose their digits, or have no name, in plain Relay: special and shifted ones.

The bodies in plain Relay work in float64 where the result needs it. The
logarithm of the gamma function is Lanczos' series (SIAM J. Numer. Anal. B 1,
1964) and Euler's reflection; the inverse error function is read from a table
of polynomials in the root of -log(1 - x**2), along which it is smooth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from serde.relay.ir import Constant, Expr, const, tensor_type, widen
from serde.relay.ir.registry import Array, Sample, call, relay_op, sample, tensor
from serde.relay.ir.shapes import float_type
from serde.relay.ir.traits import Elementwise, SameType

_LANCZOS_SHIFT = 7.0
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
)  # fmt: skip
"""Coefficients of Lanczos' series of 9 terms for a shift of 7; relative error below 1e-14."""

_INVERSE_END = 6.5
"""Root of -log(1 - x**2) above that of every float64 below 1."""
_INVERSE_PARTS = 52
_INVERSE_DEGREE = 8


def _in_float64(function: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """Return a body that works in float64 and gives the dtype of its operand back."""

    def body(data: Expr) -> Expr:
        dtype = tensor_type(data).dtype
        if dtype == "float64":
            return function(data)
        return call("cast", function(call("cast", data, dtype="float64")), dtype=dtype)

    return body


def _float64(value: float) -> Expr:
    return const(value, "float64")


def _log1p_of(data: Expr) -> Expr:
    """Add back what was lost by adding 1, to first order."""
    one = const(1.0, tensor_type(data).dtype)
    above = call("add", data, one)
    kept = call("subtract", above, one)
    rest = call("divide", call("subtract", data, kept), above)
    plain = call("log", above)
    return call("where", call("equal", kept, data), plain, call("add", plain, rest))


def _expm1_of(data: Expr) -> Expr:
    """Return tanh(x / 2) * (exp(x) + 1), whose factors keep their digits near 0."""
    dtype = tensor_type(data).dtype
    half = call("tanh", call("multiply", data, const(0.5, dtype)))
    return call("multiply", half, call("add", call("exp", data), const(1.0, dtype)))


def _lanczos(x: Expr) -> Expr:
    """Return log(gamma(x)) for x from 1/2 on."""
    terms = Constant(np.array(_LANCZOS[1:]))
    places = call("add", call("expand_dims", x, axis=-1), Constant(np.arange(8.0)))
    series = call("sum", call("divide", terms, places), axis=[-1])
    series = call("add", series, _float64(_LANCZOS[0]))
    before = call("subtract", x, _float64(0.5))
    scale = call("log", call("add", before, _float64(_LANCZOS_SHIFT)))
    power = call("multiply", before, call("subtract", scale, _float64(1.0)))
    rest = call("add", call("log", series), _float64(0.5 * math.log(2 * math.pi) - _LANCZOS_SHIFT))
    return call("add", power, rest)


def _reflect(x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Return the parts of Euler's reflection.

    Whether `x` is reflected; the logarithm of the gamma function of where it goes then; the whole
    number next to `x`; and sin(pi * x), but for the sign that it has where that number is odd.
    """
    left = call("less", x, _float64(0.5))
    logarithm = _lanczos(call("where", left, call("subtract", _float64(1.0), x), x))
    whole = call("serde.round_even", x)
    sine = call("sin", call("multiply", call("subtract", x, whole), _float64(math.pi)))
    return left, logarithm, whole, sine


@_in_float64
def _lgamma_of(x: Expr) -> Expr:
    left, logarithm, _, sine = _reflect(x)
    ratio = call("log", call("divide", _float64(math.pi), call("abs", sine)))
    found = call("where", left, call("subtract", ratio, logarithm), logarithm)
    return call("where", call("isinf", x), call("abs", x), found)


@_in_float64
def _tgamma_of(x: Expr) -> Expr:
    """No number at the negative integers; infinite, with the sign of the zero, at zero."""
    left, logarithm, whole, sine = _reflect(x)
    size = call("exp", logarithm)
    half = call("multiply", whole, _float64(0.5))
    odd = call("not_equal", call("floor", half), half)
    sine = call("where", odd, call("negative", sine), sine)
    mirrored = call("divide", _float64(math.pi), call("multiply", sine, size))
    pole = call("equal", sine, _float64(0.0))
    at_pole = call("where", call("equal", x, _float64(0.0)), call("divide", _float64(1.0), x),
                   _float64(math.nan))  # fmt: skip
    mirrored = call("where", pole, at_pole, mirrored)
    return call("where", left, mirrored, size)


def _erfc_inverse(complement: float) -> float:
    """Return where the complementary error function is `complement`, which is at most 1."""
    if complement <= 0:
        return math.inf if complement == 0 else math.nan
    tail = math.log(complement)
    x = math.sqrt(max(-tail - 0.5 * math.log1p(max(-tail, 0.0)), 0.0))
    for _ in range(60):
        # Newton's step for log(erfc), which is concave: it cannot leave the positive side for long.
        value = math.erfc(x)
        slope = 2.0 / math.sqrt(math.pi) * math.exp(-x * x)
        step = (math.log(value) - tail) * value / slope
        x = x + step
        if abs(step) <= 1e-16 * abs(x):
            break
    return x


def _erf_inverse(x: float) -> float:
    size = abs(x)
    if size < 0.5:
        found = 0.5 * math.sqrt(math.pi) * size
        for _ in range(60):
            slope = 2.0 / math.sqrt(math.pi) * math.exp(-found * found)
            step = (size - math.erf(found)) / slope
            found += step
            if abs(step) <= 1e-17 * size:
                break
    else:
        found = _erfc_inverse(1.0 - size) if size <= 1 else math.nan
    return math.copysign(found, x)


@cache
def _inverse_table() -> Array:
    """Return polynomials of erfinv(x) / x, one row a part of the axis, lowest degree first."""
    nodes = np.cos(np.pi * (np.arange(_INVERSE_DEGREE + 1) + 0.5) / (_INVERSE_DEGREE + 1))
    rows = []
    for part in range(_INVERSE_PARTS):
        roots = (part + 0.5 + 0.5 * nodes) * (_INVERSE_END / _INVERSE_PARTS)
        values = [_inverse_ratio(float(root)) for root in roots]
        rows.append(np.linalg.solve(np.vander(nodes, increasing=True), values))
    return np.array(rows)


def _inverse_ratio(root: float) -> float:
    """Return erfinv(x) / x where `root` is the root of -log(1 - x**2)."""
    x = math.sqrt(-math.expm1(-root * root))
    if x < 0.5:
        return _erf_inverse(x) / x
    return _erfc_inverse(math.exp(-root * root) / (1.0 + x)) / x


@_in_float64
def _erfinv_of(x: Expr) -> Expr:
    one = _float64(1.0)
    square = call("multiply", call("subtract", one, x), call("add", one, x))
    root = call("sqrt", call("negative", call("log", square)))
    width = _INVERSE_END / _INVERSE_PARTS
    scaled = call("multiply", root, _float64(1.0 / width))
    inside = call("less", root, _float64(_INVERSE_END))
    scaled = call("where", inside, scaled, _float64(0.0))
    part = call("floor", scaled)
    rows = call("take", Constant(_inverse_table()), call("cast", part, dtype="int64"), axis=0,
                mode="clip")  # fmt: skip
    place = call("multiply", call("subtract", call("subtract", scaled, part), _float64(0.5)),
                 _float64(2.0))  # fmt: skip
    degrees = Constant(np.arange(_INVERSE_DEGREE + 1.0))
    powers = call("power", call("expand_dims", place, axis=-1), degrees)
    ratio = call("sum", call("multiply", rows, powers), axis=[-1])
    return call("multiply", x, call("where", inside, ratio, root))


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Return `function` for every element, computed in float64."""
    spread = np.frompyfunc(function, 1, 1)

    def kernel(data: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(spread(data.astype(np.float64)), np.float64).astype(data.dtype)

    return kernel


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def _tgamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    if x < 0 and (math.isinf(x) or x == math.floor(x)):
        return math.nan
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf


def _narrow(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def kernel(data: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(widen(data)).astype(data.dtype))

    return kernel


def _declare(
    name: str,
    kernel: Callable[[Array], Array],
    decompose: Callable[[Expr], Expr],
    doc: str,
    samples: list[Sample],
) -> None:
    kernel.__doc__ = doc
    traits = (Elementwise, SameType)
    relay_op(name, infer=float_type, decompose=decompose, samples=samples, traits=traits)(kernel)


_SMALL = np.array([1e-7, -3e-5, 0.0, -0.5, 4.0, 80.0])
_POLES = np.array([0.5, -0.5, -1.5, 2.0, 34.5, -2.25, 1e-6, 3.7])
_INSIDE = np.array([0.0, 1e-10, 0.3, -0.9999, 0.99999, 1.0, -1.0])

_HALF = sample(tensor((), "float16", low=0.1, high=0.9))

_declare("serde.log1p", _narrow(np.log1p), _log1p_of, "``y = log(1 + x)``.",
         [sample(_SMALL.astype(np.float32)), sample(tensor((2, 3), "float64", low=-0.9))],
)  # fmt: skip
_declare("serde.expm1", _narrow(np.expm1), _expm1_of, "``y = exp(x) - 1``.",
         [sample(_SMALL.astype(np.float32)), sample(tensor((2, 3), "float64"))])  # fmt: skip
_declare("serde.lgamma", _each(_lgamma), _lgamma_of,
         "``y = log(abs(gamma(x)))``; infinite at the poles.",
         [sample(_POLES.astype(np.float32)), sample(_POLES), _HALF])  # fmt: skip
_declare("serde.tgamma", _each(_tgamma), _tgamma_of,
         "``y = gamma(x)``; NaN at the negative integers, infinite at zero.",
         [sample(_POLES.astype(np.float32)), sample(_POLES), _HALF])  # fmt: skip
_declare("serde.erfinv", _each(_erf_inverse), _erfinv_of,
         "``x = erf(y)``; NaN beyond -1 and 1.",
         [sample(_INSIDE.astype(np.float32)), sample(_INSIDE), _HALF])  # fmt: skip

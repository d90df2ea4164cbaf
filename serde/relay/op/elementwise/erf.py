"""The error function to float64 precision, on whole arrays.

The function is expanded in Taylor series about evenly spaced centres. Its
derivatives are Hermite polynomials times a Gaussian (DLMF 7.10.1), so the
coefficients follow from the recurrence of the polynomials and need no table.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from serde.core.weights import Array

__all__ = ["erf"]


_CENTRES_PER_UNIT = 128
_END = 6.0
"""From here on the function is 1 in float64."""
_DEGREE = 7
"""The first term left out is below 1e-17 at half the distance between centres."""
_BLOCK = 16384
"""Elements at a time, so that intermediate values stay in the cache."""


@cache
def _coefficients() -> Array:
    """Return the Taylor coefficients: row n holds those of degree n, one for each centre."""
    count = int(_END * _CENTRES_PER_UNIT) + 1
    centres = np.arange(count) / _CENTRES_PER_UNIT
    table = np.empty((_DEGREE + 1, count))
    table[0] = [math.erf(x) for x in centres]
    gaussian = 2.0 / math.sqrt(math.pi) * np.exp(-centres * centres)
    before, hermite = np.zeros(count), np.ones(count)
    for n in range(_DEGREE):
        table[n + 1] = (-1.0) ** n * hermite * gaussian / math.factorial(n + 1)
        before, hermite = hermite, 2.0 * centres * hermite - 2.0 * n * before
    return table


def erf(data: Array) -> Array:
    """Return the error function of `data`, in its dtype; the error is below 1e-15."""
    flat = data.reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        result[block] = _erf(flat[block].astype(np.float64))
    return result.reshape(data.shape)


def _erf(x: Array) -> Array:
    size = np.minimum(np.abs(x), _END)
    nearest = np.rint(np.where(np.isnan(size), 0.0, size) * _CENTRES_PER_UNIT)
    index = nearest.astype(np.intp)
    step = size - nearest / _CENTRES_PER_UNIT
    table = _coefficients()
    value = table[_DEGREE][index]
    for row in table[_DEGREE - 1 :: -1]:
        value = value * step + row[index]
    return np.asarray(np.copysign(value, x))

"""How far an output is from another one, in the unit of its own deviation."""

from __future__ import annotations

import math

import numpy as np

from serde.core import Array, dataclass, dtype_name

__all__ = [
    "Distance", "cosine", "deviation", "difference", "distance", "epsilon", "ratio", "same",
    "smallest",
]  # fmt: skip

_EPSILONS = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
_SMALLEST = {"bfloat16": 2.0**-133, "float16": 2.0**-24, "float32": 2.0**-149}


@dataclass(frozen=True, slots=True)
class Distance:
    """Differences of an output, not yet divided by anything.

    Attributes:
        mean: Their root mean square: a few roundings more do not change it, a fault does.
        most: The largest one: a fault at a border or in one row shows here.
    """

    mean: float = 0.0
    most: float = 0.0

    def or_more(self, other: Distance) -> Distance:
        """Return the larger of both, norm by norm."""
        return Distance(max(self.mean, other.mean), max(self.most, other.most))

    def scaled(self, factor: float) -> Distance:
        """Return it times a number."""
        return Distance(self.mean * factor, self.most * factor)


def distance(value: Array, exact: Array, where: Array | None = None) -> Distance:
    """Return how far two arrays of one shape are apart, for elements that `where` names."""
    apart = difference(value, exact)
    if where is not None:
        apart = apart[where]
    if not apart.size:
        return Distance()
    most = float(apart.max())
    if most == 0.0 or math.isinf(most):
        return Distance(most, most)
    return Distance(most * math.sqrt(float(np.mean(np.square(apart / most)))), most)


def difference(reference: Array, candidate: Array) -> Array:
    """Return absolute differences: 0 for like infinities and NaNs, infinite for unlike ones."""
    left, right = _as_float64(reference), _as_float64(candidate)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(right - left)
    alike = same(reference, candidate)
    if _is_whole(reference) and _is_whole(candidate):
        # Integers beyond 2**53 may differ and yet be one float64.
        apart = np.maximum(apart, 1.0)
    return np.where(alike, 0.0, np.where(np.isnan(apart), np.inf, apart))


def same(left: Array, right: Array) -> Array:
    """Return where two arrays hold the same number, or both NaN."""
    if _is_whole(left) and _is_whole(right):
        return np.asarray(left == right)
    a, b = _as_float64(left), _as_float64(right)
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def deviation(value: Array) -> float:
    """Return the standard deviation of an output; of a constant one, its magnitude.

    What all elements have in common says nothing about the input: an output of a mean of 1000
    and a deviation of 1 is known if it is known to a part of 1.
    """
    finite = _as_float64(value)
    finite = finite[np.isfinite(finite)]
    largest = float(np.abs(finite).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    scaled = finite / largest
    spread = float(scaled.std())
    return largest * (spread if spread > 0.0 else math.sqrt(float(np.mean(np.square(scaled)))))


def epsilon(dtype: str) -> float:
    """Return the distance of 1 from the next number of a floating-point dtype; 0 for others."""
    if dtype in _EPSILONS:
        return _EPSILONS[dtype]
    return float(np.finfo(dtype).eps) if dtype in ("float32", "float64") else 0.0


def smallest(dtype: str) -> float:
    """Return the least magnitude above zero, the step of all numbers below the normal ones."""
    return _SMALLEST.get(dtype, 0.0)


def ratio(part: float, whole: float) -> float:
    """Return a quotient; 0 of nothing, infinite of nothing's part."""
    if part == 0.0:
        return 0.0
    return part / whole if whole > 0.0 else math.inf


def cosine(left: Array, right: Array) -> float:
    """Return the cosine of two arrays as flat vectors, where both are finite.

    It is 1 if both are zero or empty, 0 if one is zero, NaN if nothing is finite.
    """
    a, b = _as_float64(left).ravel(), _as_float64(right).ravel()
    both = np.isfinite(a) & np.isfinite(b)
    if a.size and not both.any():
        return math.nan
    a, b = a[both], b[both]
    scales = [float(np.abs(side).max(initial=0.0)) for side in (a, b)]
    if 0.0 in scales:
        return float(scales[0] == scales[1])
    a, b = a / scales[0], b / scales[1]
    norms = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    return max(-1.0, min(1.0, float(a @ b) / norms))


def _is_whole(value: Array) -> bool:
    return value.dtype.kind in "iub" or dtype_name(value.dtype).lstrip("u").startswith("int")


def _as_float64(value: Array) -> Array:
    return np.asarray(value, dtype=np.float64)

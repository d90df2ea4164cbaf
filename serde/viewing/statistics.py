"""Statistics and histograms of weights, read once in bounded pieces.

Bins are as wide as a power of two and lie at multiples of that, so bins of one piece and of the
next become bins twice as wide without a look back, whatever range is found later.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from serde.core import Array, Weight, dataclass, field, numpy_dtype
from serde.errors import SerdeError

__all__ = ["Histogram", "Statistics", "measure", "measure_weights"]

MOST_BINS: Final = 48
_SAMPLE: Final = 2**20
"""Bytes that are read of a weight once the time is up."""

_PIECE: Final = 2**21
"""Bytes that are taken into account at a time, so that a copy in float64 stays small."""

_LOWEST, _HIGHEST = -1074, 1023


@dataclass(slots=True)
class Histogram:
    """Counts of values in bins of equal width.

    Attributes:
        exponent: The width of a bin is two to this power.
        first: The first bin begins at this multiple of the width.
        counts: How many values lie in each.
    """

    exponent: int = _LOWEST
    first: int = 0
    counts: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, values: Array, low: float, high: float) -> None:
        """Count finite values that lie between two of them."""
        exponent = _exponent(low, high)
        if self.counts.size:
            exponent = max(exponent, self.exponent)
        while True:
            start, stop = _floor(low, exponent), _floor(high, exponent) + 1
            if self.counts.size:
                begin, end = self._range(exponent)
                start, stop = min(start, begin), max(stop, end)
            if stop - start <= MOST_BINS or exponent >= _HIGHEST:
                break
            exponent += 1
        places = np.floor(np.ldexp(values, -exponent)).astype(np.int64) - start
        fresh = np.bincount(places, minlength=stop - start).astype(np.int64)
        if self.counts.size:
            bins = (
                (np.arange(self.counts.size) + self.first) >> (exponent - self.exponent)
            ) - start
            np.add.at(fresh, bins, self.counts)
        self.exponent, self.first, self.counts = exponent, start, fresh

    def _range(self, exponent: int) -> tuple[int, int]:
        shift = exponent - self.exponent
        return self.first >> shift, ((self.first + self.counts.size - 1) >> shift) + 1

    @property
    def edges(self) -> tuple[float, float]:
        """Where the first bin begins and the last one ends."""
        last = self.first + self.counts.size
        return _scaled(self.first, self.exponent), _scaled(last, self.exponent)


def _scaled(number: int, exponent: int) -> float:
    """Return a number times a power of two, the last that there is where it lies beyond."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.copysign(sys.float_info.max, number)


def _exponent(low: float, high: float) -> int:
    """Return the power of two that cuts a range into no more bins than there may be."""
    width = max(high / MOST_BINS - low / MOST_BINS, math.ulp(max(abs(low), abs(high))))
    return min(max(math.frexp(width)[1] - 1, _LOWEST), _HIGHEST)


def _floor(value: float, exponent: int) -> int:
    mantissa, own = math.frexp(value)
    shift = own - 53 - exponent
    number = int(math.ldexp(mantissa, 53))
    return number << shift if shift >= 0 else number >> -shift


@dataclass(slots=True)
class Statistics:
    """What is known of the values of a weight.

    Attributes:
        count: Number of values that were read.
        zeros: How many of them are zero.
        nan: How many are no number.
        infinite: How many are infinite.
        low: The least finite value; infinite where there is none.
        high: The greatest, likewise.
        mean: Mean of the finite values.
        spread: Sum of the squares of their distances from that mean.
        histogram: Counts of the finite values.
        sampled: Whether only a part of the weight was read.
    """

    count: int = 0
    zeros: int = 0
    nan: int = 0
    infinite: int = 0
    low: float = math.inf
    high: float = -math.inf
    mean: float = 0.0
    spread: float = 0.0
    histogram: Histogram = field(default_factory=Histogram)
    sampled: bool = False

    @property
    def finite(self) -> int:
        """How many values are finite."""
        return self.count - self.nan - self.infinite

    @property
    def deviation(self) -> float:
        """Standard deviation of the finite values."""
        return math.sqrt(self.spread / self.finite) if self.finite else 0.0

    def add(self, piece: Array) -> None:
        """Take some values into account."""
        values = _as_float(piece)
        self.count += values.size
        self.zeros += int(values.size - np.count_nonzero(values))
        if not np.isfinite(values).all():
            self.nan += int(np.count_nonzero(np.isnan(values)))
            self.infinite += int(np.count_nonzero(np.isinf(values)))
            values = values[np.isfinite(values)]
        if not values.size:
            return
        low, high = float(values.min()), float(values.max())
        before = self.finite - values.size
        with np.errstate(over="ignore"):
            mean = float(np.mean(values))
            spread = float(np.square(values - mean).sum())
        # As Chan, Golub and LeVeque (1979) join two groups without a loss of digits.
        gap = mean - self.mean
        self.mean += gap * values.size / self.finite
        self.spread += spread + gap * gap * before * values.size / self.finite
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.histogram.add(values, low, high)


def _as_float(piece: Array) -> Array:
    """Return values as float64; of complex ones the magnitudes."""
    if piece.dtype.kind == "c":
        piece = np.abs(piece)
    return piece.astype(np.float64)


def measure(weight: Weight, until: float = math.inf) -> Statistics | None:
    """Return the statistics of a weight, of a part of it once the time is up.

    Args:
        weight: The weight.
        until: When that is, by ``time.monotonic()``.

    Returns:
        None where nothing can be read in bounded time, as of what is computed.
    """
    found = Statistics()
    if time.monotonic() >= until:
        return _sample(weight)
    for piece in _pieces(weight):
        found.add(piece)
        if time.monotonic() >= until and found.count < weight.size:
            found.sampled = True
            break
    return found


def _pieces(weight: Weight) -> Iterator[Array]:
    dtype = numpy_dtype(weight.dtype)
    step = _PIECE // dtype.itemsize
    for chunk in weight.chunks():
        values = np.frombuffer(chunk, dtype)
        for start in range(0, values.size, step):
            yield values[start : start + step]


def _sample(weight: Weight) -> Statistics | None:
    """Return the statistics of some rows in the middle of a weight."""
    row = weight.nbytes // max(1, weight.shape[0] if weight.shape else 1)
    if not weight.held or row > _SAMPLE or not weight.size:
        return None
    rows = max(1, _SAMPLE // max(1, row))
    length = weight.shape[0] if weight.shape else 1
    start = max(0, (length - rows) // 2)
    found = Statistics(sampled=rows < length)
    found.add(weight.rows(start, min(start + rows, length)).reshape(-1))
    return found


def measure_weights(
    weights: Mapping[str, Weight], seconds: float
) -> tuple[dict[str, Statistics], dict[str, str]]:
    """Return the statistics of weights by name, and why there are none of some.

    Small ones come first, so that as many as can be are read whole.

    Args:
        weights: The weights.
        seconds: Time for all of it; what is left then is sampled.
    """
    until = time.monotonic() + seconds
    found: dict[str, Statistics] = {}
    failed: dict[str, str] = {}
    for name, weight in sorted(weights.items(), key=lambda item: item[1].nbytes):
        late = time.monotonic() >= until + max(1.0, seconds)
        try:
            statistics = None if late else measure(weight, until)
        except SerdeError as error:
            failed[name] = str(error)
            continue
        if statistics is None:
            failed[name] = "not read: the time was up"
        else:
            found[name] = statistics
    return found, failed

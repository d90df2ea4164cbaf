"""Images read between their elements along one axis after the other, as tensor expressions.

Places are computed in float64 and in the order in which Relay's kernels compute them, so that the
nearest element of two as near is the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from serde.core.records import dataclass
from serde.relax.framework import Framework
from serde.relay.ir.shapes import is_float

__all__ = [
    "AxisReading", "as_float", "cubic_weights", "interpolate", "linear_weights", "number_of",
    "round_even", "truncate",
]  # fmt: skip


@dataclass(frozen=True)
class AxisReading:
    """How one axis is read.

    Attributes:
        axis: Its number.
        places: Where in the source each index of the result lies, a stage in float64.
        nearest: What rounds a place to an element; None where several are weighed.
        offsets: The neighbours that are weighed, counted from the one below a place.
        weigh: What a neighbour counts, of its offset and the way from the one below, in float64.
        within: Whether neighbours beyond the ends count nothing; the end counts for them else.
        scaled: Whether weights are divided by their sum.
    """

    axis: int
    places: AnyValue
    nearest: Callable[[AnyValue], AnyValue] | None = None
    offsets: Sequence[int] = ()
    weigh: Callable[[int, AnyValue], AnyValue] | None = None
    within: bool = False
    scaled: bool = False


def as_float(framework: Framework, x: AnyValue) -> AnyValue:
    """Return an integer, known or not, in float64."""
    tir = framework.tir
    if isinstance(x, (int, float)):
        return tir.const(float(x), "float64")
    return x.astype("float64")


def round_even(framework: Framework, place: AnyValue) -> AnyValue:
    """Return the nearest whole number, of two the even one."""
    tir = framework.tir
    raised = place + tir.const(0.5, "float64")
    whole = tir.floor(raised)
    half = whole / tir.const(2.0, "float64")
    odd = tir.floor(half) != half
    return tir.Select(tir.all(whole == raised, odd), whole - tir.const(1.0, "float64"), whole)


def linear_weights(framework: Framework) -> Callable[[int, AnyValue], AnyValue]:
    """Return the weights of two neighbours."""
    one = framework.tir.const(1.0, "float64")
    return lambda offset, part: part if offset else one - part


def cubic_weights(framework: Framework, alpha: float) -> Callable[[int, AnyValue], AnyValue]:
    """Return the weights of four neighbours in Keys' cubic convolution (1981)."""

    def number(value: float) -> AnyValue:
        return framework.tir.const(float(value), "float64")

    def near(t: AnyValue) -> AnyValue:
        return (number(alpha + 2) * t - number(alpha + 3)) * t * t + number(1)

    def far(t: AnyValue) -> AnyValue:
        cubic = (number(alpha) * t - number(5 * alpha)) * t + number(8 * alpha)
        return cubic * t - number(4 * alpha)

    def weigh(offset: int, part: AnyValue) -> AnyValue:
        one, two = number(1), number(2)
        return (far(one + part), near(part), near(one - part), far(two - part))[offset + 1]

    return weigh


def interpolate(framework: Framework, data: AnyValue, reading: AxisReading) -> AnyValue:
    """Return the stage that reads a tensor along one axis."""
    te, tir = framework.te, framework.tir
    axis, length, dtype = reading.axis, data.shape[reading.axis], str(data.dtype)
    where = reading.places
    shape = [*data.shape[:axis], *where.shape, *data.shape[axis + 1 :]]

    def clip(index: AnyValue) -> AnyValue:
        return tir.max(tir.min(index, length - 1), tir.const(0, "int64"))

    def read(places: Sequence[AnyValue], index: AnyValue) -> AnyValue:
        return data[(*places[:axis], index, *places[axis + 1 :])]

    if reading.nearest is not None:
        nearest = reading.nearest
        index = te.compute(
            where.shape, lambda x: clip(_index(framework, nearest(where[x]), length)), name="index"
        )
        return te.compute(shape, lambda *p: read(p, index[p[axis]]), name="nearest")
    below = te.compute(where.shape, lambda x: tir.floor(where[x]), name="below")

    def weight(x: AnyValue, tap: AnyValue) -> AnyValue:
        found = _weights(framework, reading, where[x] - below[x], below[x], length)
        return _select(tir, tap, found).astype(dtype)

    weights = te.compute((*where.shape, len(reading.offsets)), weight, name="weights")

    def add_up(*places: AnyValue) -> AnyValue:
        x = places[axis]
        total = None
        for tap, offset in enumerate(reading.offsets):
            index = clip(_index(framework, below[x], length) + offset)
            part = read(places, index) * weights[x, tap]
            total = part if total is None else total + part
        return total

    return te.compute(shape, add_up, name="interpolated")


def _index(framework: Framework, place: AnyValue, length: AnyValue) -> AnyValue:
    """Return a whole number as an integer; one far outside is brought near the end first."""
    tir = framework.tir
    last = as_float(framework, length)
    low = tir.const(-8.0, "float64")
    held = tir.max(tir.min(place, last + tir.const(8.0, "float64")), low)
    return held.astype("int64")


def _select(tir: AnyValue, which: AnyValue, values: Sequence[AnyValue]) -> AnyValue:
    found = values[-1]
    for number in range(len(values) - 2, -1, -1):
        found = tir.Select(which == number, values[number], found)
    return found


def _weights(
    framework: Framework, reading: AxisReading, part: AnyValue, below: AnyValue, length: AnyValue
) -> list[AnyValue]:
    tir = framework.tir
    zero, one = tir.const(0.0, "float64"), tir.const(1.0, "float64")
    found = []
    for offset in reading.offsets:
        value = reading.weigh(offset, part) if reading.weigh is not None else one
        if reading.within:
            index = below + tir.const(float(offset), "float64")
            inside = tir.all(index >= zero, index < as_float(framework, length))
            value = tir.Select(inside, value, zero)
        found.append(value)
    if not reading.scaled:
        return found
    total = found[0]
    for value in found[1:]:
        total = total + value
    total = tir.Select(total == zero, one, total)
    return [value / total for value in found]


def truncate(value: AnyValue, before: str, dtype: str) -> AnyValue:
    """Return a number of the dtype `before` in another as NumPy converts it, cut to an integer."""
    if is_float(dtype) or not is_float(before):
        return value.astype(dtype)
    return value.astype("int64").astype(dtype)


def number_of(framework: Framework, value: float, dtype: str) -> AnyValue:
    """Return a constant in a dtype, cut to an integer."""
    return framework.tir.const(float(value) if is_float(dtype) else int(value), dtype)

"""Poolings that Relax's own operators take otherwise, as tensor expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

from serde.core.weights import numpy_dtype
from serde.relax.framework import Framework
from serde.relay.ir.precision import lowest
from serde.relay.ir.shapes import is_float

__all__ = ["PoolWindow", "adaptive_pool"]


@dataclass(frozen=True)
class PoolWindow:
    """A window that slides over the spatial axes of what is channels first.

    Attributes:
        framework: TVM.
        size: Its lengths.
        strides: Its steps.
        dilation: Distances of its taps.
        before: Padding before each axis.
        lengths: How many windows there are along each axis.
    """

    framework: Framework
    size: Sequence[int]
    strides: Sequence[int]
    dilation: Sequence[int]
    before: Sequence[int]
    lengths: Sequence[AnyValue]

    def _starts(self, places: Sequence[AnyValue]) -> list[AnyValue]:
        axes = zip(places, self.strides, self.before, strict=True)
        return [place * step - before for place, step, before in axes]

    def _reduce(
        self, data: AnyValue, dtype: str, fill: AnyValue, reduce: Callable[..., AnyValue]
    ) -> AnyValue:
        """Return the stage that reduces what is inside each window, `fill` being the rest."""
        te, tir = self.framework.te, self.framework.tir
        batch, channels, *space = data.shape
        taps = [te.reduce_axis((0, size), name=f"k{i}") for i, size in enumerate(self.size)]

        def at_window(n: AnyValue, c: AnyValue, *places: AnyValue) -> AnyValue:
            axes = zip(self._starts(places), taps, self.dilation, strict=True)
            read = [begin + tap * step for begin, tap, step in axes]
            inside = [tir.all(r >= 0, r < end) for r, end in zip(read, space, strict=True)]
            value = data[(n, c, *read)].astype(dtype)
            return reduce(tir.if_then_else(tir.all(*inside), value, fill), axis=taps)

        return te.compute((batch, channels, *self.lengths), at_window, name="window")

    def maximum(self, data: AnyValue) -> AnyValue:
        """Return the maximum of each window; outside lies the least number of the dtype."""
        dtype = str(data.dtype)
        te, tir = self.framework.te, self.framework.tir
        least = lowest(numpy_dtype(dtype))
        fill = tir.const(int(least) if least.dtype.kind in "iub" else float(least), dtype)
        return self._reduce(data, dtype, fill, te.max)

    def mean(self, data: AnyValue, count_include_pad: bool) -> AnyValue:
        """Return the mean of each window; padding may count, and all that lies beyond it then."""
        te, tir = self.framework.te, self.framework.tir
        dtype = str(data.dtype)
        total = dtype if is_float(dtype) else "int64"
        sums = self._reduce(data, total, tir.const(0, total), te.sum)

        def divide(n: AnyValue, c: AnyValue, *places: AnyValue) -> AnyValue:
            taps = tir.const(math.prod(self.size), "int64")
            divisor = taps if count_include_pad else self._count(places, data.shape[2:])
            quotient = divide_in(tir, sums[(n, c, *places)], divisor.astype(total), total)
            return quotient.astype(dtype)

        return te.compute(sums.shape, divide, name="mean_pool")

    def _count(self, places: Sequence[AnyValue], space: Sequence[AnyValue]) -> AnyValue:
        """Return how many taps of a window are inside, 1 where none is."""
        tir = self.framework.tir
        found: AnyValue = tir.const(1, "int64")
        axes = zip(self._starts(places), space, self.size, self.dilation, strict=True)
        for begin, length, size, step in axes:
            first = tir.max(0, tir.floordiv(step - 1 - begin, step))
            last = tir.min(size, tir.floordiv(length - begin + step - 1, step))
            found = found * tir.max(last - first, 0).astype("int64")
        return tir.max(found, tir.const(1, "int64"))


def divide_in(tir: AnyValue, total: AnyValue, divisor: AnyValue, dtype: str) -> AnyValue:
    """Return a quotient in a dtype; that of integers is rounded towards zero."""
    return total / divisor if is_float(dtype) else tir.truncdiv(total, divisor)


def adaptive_pool(
    framework: Framework, counts: Sequence[int], kind: str
) -> Callable[..., AnyValue]:
    """Return what computes means or maxima, "avg" or "max", over as many parts of each axis."""
    te, tir = framework.te, framework.tir

    def parts(places: Sequence[AnyValue], space: Sequence[AnyValue]) -> list[AnyValue]:
        axes = zip(places, space, counts, strict=True)
        return [(tir.floordiv(p * n, c), tir.floordiv((p + 1) * n + c - 1, c)) for p, n, c in axes]

    def adaptive_pool(data: AnyValue) -> AnyValue:
        (batch, channels, *space), dtype = data.shape, str(data.dtype)
        total = dtype if kind == "max" or is_float(dtype) else "int64"
        fill = te.min_value(dtype) if kind == "max" else tir.const(0, total)
        most = [tir.floordiv(n + c - 1, c) + 1 for n, c in zip(space, counts, strict=True)]
        taps = [te.reduce_axis((0, each), name=f"k{i}") for i, each in enumerate(most)]

        def reduce(n: AnyValue, c: AnyValue, *places: AnyValue) -> AnyValue:
            spans = parts(places, space)
            read = [first + tap for (first, _), tap in zip(spans, taps, strict=True)]
            inside = [r < last for r, (_, last) in zip(read, spans, strict=True)]
            held = tir.if_then_else(tir.all(*inside), data[(n, c, *read)].astype(total), fill)
            return te.max(held, axis=taps) if kind == "max" else te.sum(held, axis=taps)

        found = te.compute((batch, channels, *counts), reduce, name="parts")
        if kind == "max":
            return found

        def divide(n: AnyValue, c: AnyValue, *places: AnyValue) -> AnyValue:
            size: AnyValue = tir.const(1, "int64")
            for first, last in parts(places, space):
                size = size * (last - first).astype("int64")
            return divide_in(tir, found[(n, c, *places)], size.astype(total), total).astype(dtype)

        return te.compute(found.shape, divide, name="adaptive_mean")

    return adaptive_pool

"""Samples of regions: where they are in each bin, and their means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.core.records import dataclass
from serde.relay.ir import Expr, call, const

__all__ = ["Samples", "mean_of"]


@dataclass(frozen=True)
class Samples:
    """Samples of all regions along an axis.

    Attributes:
        parts: Where they are in parts of a region, ``(regions or 1, samples)``: down bin by bin,
            and across first one of each bin, so that those of a bin are summed over one axis.
        real: Which of them a region has, ``(regions, samples)``; None if all.
        count: How many a bin of each region has, ``(regions, 1)``, at least 1; None if all have
            as many.
    """

    parts: Expr
    real: Expr | None = None
    count: Expr | None = None

    @classmethod
    def of(cls, span: Expr, bins: int, ratio: int, axis: int, dtype: str) -> Samples:
        """Return `ratio` samples a bin, or if that is not positive one for each element it spans.

        Args:
            span: Lengths of regions ``(regions, 1)``, in elements.
            bins: How many bins.
            ratio: How many samples a bin.
            axis: 0 down, 1 across.
            dtype: That of `span`.
        """
        if ratio > 0:
            places = (np.arange(bins * ratio) + 0.5) / (bins * ratio)
            placed = np.moveaxis(places.reshape(bins, ratio), axis, 0)
            return cls(const(placed.reshape(1, -1), dtype))
        one, number = const(1, dtype), const(bins, dtype)
        found = call("ceil", call("divide", span, number))
        every = [call("reshape", found, newshape=(-1,)), const(np.ones(1), dtype)]
        most = call("max", call("concatenate", every, axis=0))
        steps = call("arange", const(0, dtype), most, one, dtype=dtype)
        count = call("maximum", found, one)
        within = call("divide", call("add", steps, const(0.5, dtype)), count)
        first = const(np.expand_dims(np.arange(bins), 1 - axis), dtype)
        added = call("add", call("expand_dims", within, axis=1 + axis), first)
        parts = call("divide", added, number)
        real = call("expand_dims", call("less", steps, found), axis=1 + axis)
        real = call("broadcast_to_like", real, parts)
        parts, real = (call("reshape", each, newshape=(0, -1)) for each in (parts, real))
        return cls(parts, real, count)


def mean_of(
    values: Expr,
    near: Sequence[Expr],
    samples: Sequence[Samples],
    pooled_size: tuple[int, ...],
    dtype: str,
) -> Expr:
    """Return the means of samples in bins, those that are not near being zero.

    Args:
        values: ``(regions, channels, samples down, samples across)``.
        near: Conditions, of shapes that broadcast to ``(regions, samples down, samples across)``.
        samples: Those down, and across.
        pooled_size: How many bins down, and across.
        dtype: That of the values.
    """
    conditions = list(near)
    for axis, each in enumerate(samples):
        if each.real is not None:
            conditions.append(call("expand_dims", each.real, axis=2 - axis))
    inside = conditions[0]
    for condition in conditions[1:]:
        inside = call("logical_and", inside, condition)
    kept = call("where", call("expand_dims", inside, axis=1), values, const(0.0, dtype))
    rows, columns = pooled_size
    bins = call("reshape", kept, newshape=(0, 0, rows, -1, columns))
    down, across = (each.count for each in samples)
    if down is None or across is None:
        return call("mean", bins, axis=(3,))
    number = call("expand_dims", call("multiply", down, across), axis=2, num_newaxis=2)
    return call("divide", call("sum", bins, axis=(3,)), number)

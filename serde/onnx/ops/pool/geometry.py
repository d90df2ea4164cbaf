"""Where the windows of a pooling lie."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import Any as AnyValue

import numpy as np

from serde.core import Array, arange, dataclass, ones
from serde.errors import Unsupported
from serde.onnx.ops.conv.windows import (
    SPATIAL,
    AutoPad,
    compute_padding,
    per_axis,
    require_fixed,
    to_onnx_pads,
)
from serde.onnx.ops.shape.columns import Windows
from serde.onnx.ops.table import Export, Import, Value
from serde.relay.ir import Dim, Expr, pool_dim
from serde.relay.op.pool.reduction import Pooling


@dataclass(frozen=True)
class Geometry:
    """Geometry of a pooling; `padding` has all before the axes first."""

    size: list[int]
    strides: list[int]
    dilations: list[int]
    padding: list[int]

    def past(self, lengths: Sequence[Dim]) -> list[int | None]:
        """Return how far the last window reaches past the padding; None where it is not known."""
        return [self._past(axis, length) for axis, length in enumerate(lengths)]

    def _past(self, axis: int, length: Dim) -> int | None:
        count = self._count(axis, length)
        if not isinstance(length, int) or not isinstance(count, int):
            return None
        end = (count - 1) * self.strides[axis] + (self.size[axis] - 1) * self.dilations[axis] + 1
        return max(0, end - length - self._around(axis))

    def _around(self, axis: int) -> int:
        return self.padding[axis] + self.padding[axis + len(self.size)]

    def _count(self, axis: int, length: Dim) -> Dim:
        return pool_dim(
            length,
            self.size[axis],
            self.strides[axis],
            self._around(axis),
            self.dilations[axis],
            ceil_mode=True,
        )

    def scale(self, lengths: Sequence[int]) -> Array:
        """Return for each window its size over the number of its elements that hold data."""
        counts = [self._count(axis, length) for axis, length in enumerate(lengths)]
        result = ones((1, 1, *require_fixed(counts, "windows")))
        for axis, length in enumerate(lengths):
            size, gap = self.size[axis], self.dilations[axis]
            starts = arange(result.shape[2 + axis]) * self.strides[axis] - self.padding[axis]
            first, behind = (np.clip(-((start - starts) // -gap), 0, size) for start in (0, length))
            ratio = size / np.maximum(behind - first, 1)
            result *= ratio.reshape([-1 if each == 2 + axis else 1 for each in range(result.ndim)])
        return result


class RelayPool(Pooling):
    """Attributes of Relay's poolings."""

    def geometry(self) -> Geometry:
        """Return the geometry of the windows."""
        return Geometry(
            require_fixed(self.pool_size, "pool_size"),
            require_fixed(self.strides, "strides"),
            require_fixed(self.dilation, "dilation"),
            to_onnx_pads(self.padding, len(self.pool_size)),
        )

    def windows(self, ctx: Export, x: Value) -> Windows:
        """Return the indices that each window looks up in `x`."""
        geometry = self.geometry()
        return Windows.of(
            ctx, ctx.type(x).shape, list(range(2, 2 + len(geometry.size))), geometry.size,
            strides=geometry.strides, dilations=geometry.dilations, pads=geometry.padding,
            ceil_mode=self.ceil_mode,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PoolAttributes:
    """Attributes that the poolings of ONNX share, one number for each spatial axis."""

    kernel_shape: tuple[int, ...]
    auto_pad: AutoPad = "NOTSET"
    ceil_mode: bool = False
    pads: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DilatedPoolAttributes(PoolAttributes):
    """Those of poolings that read with gaps, too."""

    dilations: tuple[int, ...] = ()


def read_window(
    ctx: Import, x: Expr, pool: DilatedPoolAttributes
) -> tuple[dict[str, AnyValue], tuple[int, ...]]:
    """Return a pooling's attributes, and how far its windows reach past the padding.

    ONNX leaves out a window that would start behind the data, which Relay's ``ceil_mode``
    does not; where that matters there is none, and the windows reach past the padding.
    """
    ndim, kernel = ctx.type(x).rank - 2, pool.kernel_shape
    if ndim not in SPATIAL or len(kernel) != ndim:
        raise Unsupported(f"a window of {list(kernel)} over {ndim} axes")
    strides = per_axis(pool.strides, ndim, "strides")
    dilations = per_axis(pool.dilations, ndim, "dilations")
    padding = compute_padding(ctx, x, kernel, strides, dilations, pool.pads, pool.auto_pad)
    attrs: dict[str, AnyValue] = {
        "pool_size": kernel,
        "strides": strides,
        "dilation": dilations,
        "padding": padding,
        "layout": "NC" + SPATIAL[ndim],
        "ceil_mode": pool.ceil_mode and pool.auto_pad in ("NOTSET", "VALID"),
    }
    past = [0] * ndim
    drops = False
    for axis, (length, step) in enumerate(zip(ctx.type(x).shape[2:], strides, strict=True)):
        before, after = padding[axis], padding[ndim + axis]
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        if not attrs["ceil_mode"] or step + after <= reach:
            continue
        if not isinstance(length, int):
            raise Unsupported("ceil_mode beside padding needs fixed lengths")
        count = -(-(length + before + after - reach) // step) + 1
        fewer = (count - 1) * step >= length + before
        drops = drops or fewer
        past[axis] = max(0, (count - 1 - fewer) * step + reach - length - before - after)
    if not drops:
        return attrs, (0,) * ndim
    return {**attrs, "ceil_mode": False}, tuple(past)


def extend_padding(padding: Sequence[int], past: Sequence[int]) -> tuple[int, ...]:
    """Return pads with `past` added behind the axes."""
    ndim = len(past)
    return (*padding[:ndim], *map(add, padding[ndim:], past))


def reach_past_padding(ctx: Import, x: Expr, attrs: dict[str, AnyValue]) -> tuple[int, ...]:
    """Return how far the last windows of ``ceil_mode`` reach past the padding."""
    ndim = len(attrs["pool_size"])
    keys = ("pool_size", "strides", "dilation", "padding")
    window = Geometry(*(list(attrs[key]) for key in keys))
    return tuple(each or 0 for each in window.past(ctx.static_lengths(x, range(2, ndim + 2))))

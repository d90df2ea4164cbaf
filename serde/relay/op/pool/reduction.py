"""What the poolings share: the window along one axis at a time.

A maximum or a sum over a box is one over each axis in turn, so a window of
m times n taps costs m plus n passes over the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, TensorType, widen
from serde.relay.ir.layout import is_blocked, layout_rank, spatial_axes as image_axes
from serde.relay.ir.registry import REQUIRED, Array
from serde.relay.ir.shapes import at, layout_axes, pool_dim, require_window, split_padding

__all__ = [
    "LETTERS", "Pooling", "Window", "relayout", "spatial_axes", "to_out_layout", "total",
    "window_type",
]  # fmt: skip

LETTERS = {1: "W", 2: "HW", 3: "DHW"}
"""Letters of the spatial axes for each number of them."""


@dataclass(frozen=True)
class Window:
    """A window that slides over the spatial axes."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    ceil_mode: bool

    def length(self, index: int, length: Dim) -> Dim:
        """Return how many windows there are along spatial axis number `index`."""
        return pool_dim(
            length,
            self.size[index],
            self.strides[index],
            self.before[index] + self.after[index],
            self.dilation[index],
            ceil_mode=self.ceil_mode,
        )

    def reduce(
        self, data: Array, axes: Sequence[int], fill: AnyValue, combine: Callable[..., Array]
    ) -> Array:
        """Combine the taps of every window; beyond the data there is `fill`."""
        for index, axis in enumerate(axes):
            data = self._reduce_axis(data, index, axis, fill, combine)
        return data

    def _reduce_axis(
        self, data: Array, index: int, axis: int, fill: AnyValue, combine: Callable[..., Array]
    ) -> Array:
        count = self.length(index, data.shape[axis])
        stride, dilation = self.strides[index], self.dilation[index]
        if not isinstance(count, int):
            raise TypeInferenceError(f"a length of {count} is not known")
        reach = (count - 1) * stride + (self.size[index] - 1) * dilation + 1
        padded = _extend(data, axis, self.before[index], reach, fill)
        lead = (slice(None),) * axis
        result = None
        for tap in range(self.size[index]):
            start = tap * dilation
            part = padded[(*lead, slice(start, start + (count - 1) * stride + 1, stride))]
            result = part.copy() if result is None else combine(result, part, out=result)
        return data if result is None else result

    def counts(self, index: int, length: int) -> Array:
        """Return for each window along an axis how many of its taps lie inside the data."""
        count = self.length(index, length)
        if not isinstance(count, int):
            raise TypeInferenceError(f"a length of {count} is not known")
        size, dilation = self.size[index], self.dilation[index]
        stride, first = self.strides[index], self.before[index]

        def within(window: Array) -> Array:
            starts = window * stride - first
            # Taps lie apart evenly: those before the data and before its end are divided out.
            before, passed = (
                np.clip(-((starts - end) // dilation), 0, size) for end in (0, length)
            )
            return passed - before

        return allocation.at_positions(count, within)


def _extend(data: Array, axis: int, before: int, reach: int, fill: AnyValue) -> Array:
    """Return `data` with `before` values of `fill` in front, `reach` long at least."""
    if before == 0 and reach <= data.shape[axis]:
        return data
    shape = list(data.shape)
    shape[axis] = max(reach, before + data.shape[axis])
    padded = np.full(shape, fill, data.dtype)
    padded[(*[slice(None)] * axis, slice(before, before + data.shape[axis]))] = data
    return padded


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """Attributes of poolings over sliding windows."""

    pool_size: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    layout: str
    out_layout: str = ""
    ceil_mode: bool = False

    @classmethod
    def usual(cls, rank: int) -> Pooling:
        """Return the defaults over `rank` spatial axes, of which the window has none."""
        needed: AnyValue = REQUIRED
        ones, zeros = (1,) * rank, (0,) * rank
        layout = "NC" + LETTERS[rank]
        return cls(pool_size=needed, strides=ones, dilation=ones, padding=zeros, layout=layout)

    @property
    def window(self) -> Window:
        """What slides over the data."""
        before, after = split_padding(self.padding, len(self.pool_size))
        return Window(self.pool_size, self.strides, self.dilation, before, after, self.ceil_mode)

    @property
    def result_layout(self) -> str:
        """Order of the axes of the result."""
        return self.out_layout or self.layout


def window_type(data: TensorType, rank: int, pool: Pooling) -> TensorType:
    """Return the type of a pooling over sliding windows."""
    require_window(rank, pool_size=pool.pool_size, strides=pool.strides, dilation=pool.dilation)
    window = pool.window
    axes = spatial_axes(data.rank, pool.layout, rank)
    shape = list(data.shape)
    for index, axis in enumerate(axes):
        shape[axis] = window.length(index, shape[axis])
    return TensorType(at(shape, relayout(pool.layout, pool.out_layout)), data.dtype)


def spatial_axes(data_rank: int, layout: str, rank: int) -> tuple[int, ...]:
    """Return where the spatial axes are."""
    axes = image_axes(layout, "NC" + LETTERS[rank])
    if layout_rank(layout) != data_rank:
        raise TypeInferenceError(f"expected data of layout {layout}, found rank {data_rank}")
    return axes


def relayout(layout: str, out_layout: str) -> tuple[int, ...]:
    """Return the permutation from `layout` to `out_layout`, which if empty is the same."""
    if is_blocked(layout) and out_layout in ("", layout):
        return tuple(range(layout_rank(layout)))
    return layout_axes(layout, out_layout or layout)


def to_out_layout(data: Array, layout: str, out_layout: str) -> Array:
    """Return `data` with its axes in the order of `out_layout`."""
    return data.transpose(relayout(layout, out_layout))


def total(data: Array) -> Array:
    """Return `data` in the dtype in which it is summed: at least float32 or int64."""
    return data.astype(np.int64) if data.dtype.kind in "iub" else widen(data)

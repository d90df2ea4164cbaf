"""Windows that slide over a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from serde.core.allocation import arange
from serde.core.weights import Array
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.shape.reshape import emit_range, reshape_along
from serde.relay.ir.dims import Dim
from serde.relay.ir.shapes import pool_dim


@dataclass(frozen=True)
class Windows:
    """The indices that each window looks up, axis by axis, for what no operator of ONNX says.

    Attributes:
        axes: The axes that windows slide over.
        counts: How many windows there are along each.
        sides: Padding before and after each, so wide that every window ends inside.
        indices: For each axis a table of the indices in the padded data, a row for each window.
        sizes: How many elements a window has along each axis.
    """

    axes: list[int]
    counts: list[Dim]
    sides: list[tuple[int, int]]
    indices: list[Value]
    sizes: list[int]

    @classmethod
    def of(
        cls,
        ctx: ExportContext,
        shape: Sequence[Dim],
        axes: list[int],
        sizes: list[int],
        *,
        strides: list[int],
        dilations: list[int],
        pads: list[int],
        ceil_mode: bool = False,
    ) -> Windows:
        """Return the indices of windows over a tensor of `shape`.

        `pads` has all before the axes first, then those behind them.
        """
        counts, sides, indices = [], [], []
        for i, (axis, size, stride, gap) in enumerate(
            zip(axes, sizes, strides, dilations, strict=True)
        ):
            before, after = pads[i], pads[len(axes) + i]
            count = pool_dim(shape[axis], size, stride, before + after, gap, ceil_mode=ceil_mode)
            counts.append(count)
            sides.append((before, after + (stride - 1 if ceil_mode else 0)))
            indices.append(_window_indices(ctx, count, stride, arange(size) * gap))
        return cls(axes, counts, sides, indices, sizes)

    def pad(self, ctx: ExportContext, x: Value, rank: int, fill: Value) -> Value:
        """Return `x`, of `rank` axes, with `fill` around it."""
        if not any(side for pair in self.sides for side in pair):
            return x
        widths = [0] * (2 * rank)
        for axis, (before, after) in zip(self.axes, self.sides, strict=True):
            widths[axis], widths[rank + axis] = before, after
        return ctx.emit("Pad", x, ctx.ints(widths), fill)

    def gather(self, ctx: ExportContext, x: Value) -> Value:
        """Return padded `x` with two axes for each: the windows, and the elements within one."""
        for axis, indices in sorted(zip(self.axes, self.indices, strict=True), key=_axis)[::-1]:
            x = ctx.emit("Gather", x, indices, axis=axis)
        return x


def _axis(pair: tuple[int, Value]) -> int:
    return pair[0]


def _window_indices(ctx: ExportContext, count: Dim, stride: int, offsets: Array) -> Value:
    """Return the indices of `count` windows, one a row."""
    starts = ctx.emit("Mul", emit_range(ctx, ctx.shape([count])), ctx.ints([stride]))
    return ctx.emit("Add", reshape_along(ctx, starts, 0, 2), ctx.const(offsets, np.int64))

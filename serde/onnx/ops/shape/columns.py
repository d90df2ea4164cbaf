"""Windows that slide over a tensor, and images put together from columns of their blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.relay as relay
from serde.core import Array, arange, dataclass
from serde.errors import Unsupported
from serde.onnx.ops.conv.windows import explicit_pads, per_axis
from serde.onnx.ops.elementwise.convert import const_int64
from serde.onnx.ops.shape.create import build_arange
from serde.onnx.ops.shape.reshape import emit_range, reshape_along, take_entry
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, call, pool_dim, split_padding
from serde.relay.op.shape.columns import Columns


@OPS.exports("serde.col2im", since=18)
def export_col2im(ctx: Export, data: Value, *, col2im: Columns) -> Value:
    before, after = split_padding(col2im.padding, len(col2im.block_shape))
    return ctx.emit(
        "Col2Im",
        data,
        ctx.shape(col2im.image_shape),
        ctx.ints(col2im.block_shape),
        strides=None if col2im.strides is None else list(col2im.strides),
        pads=[*before, *after],
        dilations=None if col2im.dilation is None else list(col2im.dilation),
    )


@OPS.imports("Col2Im", since=18)
def import_col2im(
    ctx: Import, x: Expr, image_shape: Expr, block_shape: Expr,
    *, dilations: tuple[int, ...] | None = None, pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Expr:  # fmt: skip
    lengths = ctx.dims(image_shape)
    if lengths is not None and ctx.is_constant(block_shape):
        return call(
            "serde.col2im", x, image_shape=lengths, block_shape=ctx.ints(block_shape),
            strides=strides, padding=pads or (0,), dilation=dilations,
        )  # fmt: skip
    rank = ctx.axis_count(image_shape)
    if ctx.axis_count(block_shape) != rank:
        raise Unsupported(f"a block of {ctx.axis_count(block_shape)} axes of {rank}")
    steps = per_axis(strides or (), rank, "strides")
    gaps = per_axis(dilations or (), rank, "dilations")
    around = explicit_pads(pads or (), rank)
    return _add_columns(ctx, x, image_shape, block_shape, steps, gaps, around)


def _add_columns(
    ctx: Import, x: Expr, image_shape: Expr, block_shape: Expr, strides: Sequence[int],
    dilations: Sequence[int], pads: Sequence[int],
) -> Expr:  # fmt: skip
    """Return images of computed lengths: each element is added at its flat index.

    What lies on the padding is added to one more pixel, which goes.
    """
    rank = len(strides)
    image, block = (relay.cast(each, "int64") for each in (image_shape, block_shape))
    lengths, sizes = ([take_entry(each, axis) for axis in range(rank)] for each in (image, block))
    counts = []
    for axis in range(rank):
        span = relay.multiply(
            relay.subtract(sizes[axis], const_int64(1)), const_int64(dilations[axis])
        )
        whole = relay.add(lengths[axis], const_int64(pads[axis] + pads[axis + rank] - 1))
        extent = relay.subtract(whole, span)
        counts.append(relay.add(relay.divide(extent, const_int64(strides[axis])), const_int64(1)))
    shape = relay.shape_of(x, "int64")
    row, column = (build_arange(take_entry(shape, axis)) for axis in (1, 2))
    elements, pixels = _multiply_all(sizes), _multiply_all(lengths)
    channel, element = relay.divide(row, elements), relay.floor_mod(row, elements)
    positions = zip(_unravel(element, sizes), _unravel(column, counts), lengths, strict=True)
    flat = relay.expand_dims(channel, axis=1)
    inside: Expr = relay.const(True)
    for axis, (within, number, length) in enumerate(positions):
        start = relay.expand_dims(relay.multiply(number, const_int64(strides[axis])), axis=0)
        step = relay.expand_dims(relay.multiply(within, const_int64(dilations[axis])), axis=1)
        position = relay.subtract(relay.add(start, step), const_int64(pads[axis]))
        inside = relay.logical_and(inside, relay.greater_equal(position, const_int64(0)))
        inside = relay.logical_and(inside, relay.less(position, length))
        flat = relay.add(relay.multiply(flat, length), position)
    channels = relay.divide(take_entry(shape, 1), elements)
    total = relay.multiply(channels, pixels)
    flat = relay.where(inside, flat, total)
    dtype = ctx.type(x).dtype
    work = "float32" if dtype in ("float16", "bfloat16") else dtype
    values = relay.reshape(relay.cast(x, work), newshape=(0, -1))
    indices = relay.broadcast_to_like(relay.reshape(flat, newshape=(1, -1)), values)
    batch = take_entry(shape, 0)
    blank_shape = relay.stack([batch, relay.add(total, const_int64(1))], axis=0)
    blank = call("dyn.zeros", blank_shape, dtype=work)
    found = relay.scatter_elements(blank, indices, values, 1, "add")
    found = relay.strided_slice(found, begin=[0], end=[-1], axes=[1])
    wanted = relay.concatenate((relay.stack([batch, channels], axis=0), image), 0)
    return relay.cast(call("dyn.reshape", found, wanted, allowzero=True), dtype)


def _multiply_all(factors: Sequence[Expr]) -> Expr:
    found = factors[0]
    for each in factors[1:]:
        found = relay.multiply(found, each)
    return found


def _unravel(position: Expr, lengths: Sequence[Expr]) -> list[Expr]:
    """Return the index on each axis of a flat index in row-major order."""
    found = []
    for length in reversed(lengths):
        found.append(relay.floor_mod(position, length))
        position = relay.divide(position, length)
    return found[::-1]


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
        cls, ctx: Export, shape: Sequence[Dim], axes: list[int], sizes: list[int],
        *, strides: list[int], dilations: list[int], pads: list[int], ceil_mode: bool = False,
    ) -> Windows:  # fmt: skip
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

    def pad(self, ctx: Export, x: Value, rank: int, fill: Value) -> Value:
        """Return `x`, of `rank` axes, with `fill` around it."""
        if not any(side for pair in self.sides for side in pair):
            return x
        widths = [0] * (2 * rank)
        for axis, (before, after) in zip(self.axes, self.sides, strict=True):
            widths[axis], widths[rank + axis] = before, after
        return ctx.emit("Pad", x, ctx.ints(widths), fill)

    def gather(self, ctx: Export, x: Value) -> Value:
        """Return padded `x` with two axes for each: the windows, and the elements within one."""
        for axis, indices in sorted(zip(self.axes, self.indices, strict=True), key=_axis)[::-1]:
            x = ctx.emit("Gather", x, indices, axis=axis)
        return x


def _axis(pair: tuple[int, Value]) -> int:
    return pair[0]


def _window_indices(ctx: Export, count: Dim, stride: int, offsets: Array) -> Value:
    """Return the indices of `count` windows, one a row."""
    starts = ctx.emit("Mul", emit_range(ctx, ctx.shape([count])), ctx.ints([stride]))
    return ctx.emit("Add", reshape_along(ctx, starts, 0, 2), ctx.const(offsets, np.int64))

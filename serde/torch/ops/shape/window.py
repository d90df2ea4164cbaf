"""Windows of an axis, blocks of an image as columns, and tensors laid over memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array
from serde.errors import Unsupported
from serde.relay.ir import Call, Constant, Expr, OpDef, Reshape, Var, call, normalize_axis
from serde.relay.op.shape.columns import Columns
from serde.torch.ops.shape.arrange import move_axes
from serde.torch.ops.shape.lengths import multiply_lengths, reshape, sizes_of
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.strided import span


@OPS.imports("aten::unfold", "aten::unfold_copy")
def import_unfold(ctx: Import, self: Expr, *, dimension: int, size: int, step: int) -> Expr:
    """The elements of a window come last."""
    rank = ctx.type(self).rank
    if not rank:
        return relay.reshape(self, newshape=(1,)) if size else relay.zeros((0,), ctx.dtype(self))
    axis = ctx.axis(self, dimension)
    if not size:
        raise Unsupported("windows of no elements")
    last = move_axes(ctx, self, [axis], [rank - 1])
    found = relay.sliding_window(last, rank - 1, (size,), (step,))
    return move_axes(ctx, found, [rank - 1], [axis])


@OPS.exports("sliding_window")
def export_sliding_window(
    ctx: Export, data: Value, *, axis: int, window_shape: tuple[int, ...], strides: tuple[int, ...]
) -> Value:
    first = normalize_axis(axis, ctx.type(data).rank)
    for place, (width, step) in enumerate(zip(window_shape, strides, strict=True)):
        data = ctx.method(data, "unfold", first + place, width, step)
    return data


def _pair(values: int | tuple[int, ...]) -> tuple[int, int]:
    """Return a number of rows and one of columns; one number is both."""
    if isinstance(values, int):
        return values, values
    if not values:
        raise Unsupported("a window without lengths")
    return (values[0], values[-1])


@OPS.imports("aten::im2col")
def import_im2col(
    ctx: Import,
    self: Expr,
    *,
    kernel_size: int | tuple[int, ...],
    dilation: int | tuple[int, ...],
    padding: int | tuple[int, ...],
    stride: int | tuple[int, ...],
) -> Expr:
    """Each element of a block is a slice of the image; (n, channels and elements, blocks)."""
    ctx.require_rank(self, 3, 4)
    kernel, gaps, around, steps = map(_pair, (kernel_size, dilation, padding, stride))
    if min(*kernel, *gaps, *steps) < 1:
        raise Unsupported(f"blocks of {kernel} with gaps of {gaps} in steps of {steps}")
    whole = ctx.type(self).rank == 4
    x = self if whole else relay.expand_dims(self, axis=0)
    if any(around):
        widths = [(0, 0), (0, 0), *((each, each) for each in around)]
        x = relay.nn.pad(x, widths, relay.const(0, ctx.dtype(x)))
    if gaps == (1, 1):
        parts = relay.sliding_window(x, 2, kernel, steps)
        columns = relay.transpose(parts, axes=(0, 1, 4, 5, 2, 3))
    else:
        columns = _take_blocks(ctx, x, kernel, gaps, steps)
    sizes = sizes_of(ctx, columns)
    rows = multiply_lengths(ctx, *sizes[1:4])
    found = reshape(ctx, columns, [sizes[0], rows, multiply_lengths(ctx, *sizes[4:])])
    return found if whole else relay.squeeze(found, axis=(0,))


def _take_blocks(
    ctx: Import, x: Expr, kernel: tuple[int, int], gaps: tuple[int, int], steps: tuple[int, int]
) -> Expr:
    """Return ``(n, channels, rows, columns, down, across)`` of blocks with gaps."""
    for axis, length in zip((2, 4), ctx.static_lengths(x, [2, 3]), strict=True):
        size, gap, step = (each[axis // 2 - 1] for each in (kernel, gaps, steps))
        count = (length - gap * (size - 1) - 1) // step + 1
        blank = allocation.zeros((size, max(count, 0)), np.int64)
        places = (
            blank + allocation.arange(size)[:, None] * gap + allocation.arange(len(blank[0])) * step
        )
        x = relay.take(x, Constant(places), axis=axis, mode="fast")
    return relay.transpose(x, axes=(0, 1, 2, 4, 3, 5))


@OPS.imports("aten::col2im")
def import_col2im(
    ctx: Import, self: Expr,
    *, output_size: tuple[SymInt, ...], kernel_size: int | tuple[int, ...],
    dilation: int | tuple[int, ...], padding: int | tuple[int, ...], stride: int | tuple[int, ...],
) -> Expr:  # fmt: skip
    ctx.require_rank(self, 2, 3)
    whole = ctx.type(self).rank == 3
    x = self if whole else relay.expand_dims(self, axis=0)
    lengths = [ctx.dim(each) for each in output_size]
    found = call(
        "serde.col2im",
        x,
        image_shape=tuple(lengths * 2 if len(lengths) == 1 else lengths),
        block_shape=_pair(kernel_size),
        strides=_pair(stride),
        padding=_pair(padding),
        dilation=_pair(dilation),
    )
    return found if whole else relay.squeeze(found, axis=(0,))


def _is_plain_fold(call: Call) -> bool:
    """Whether images have two axes, padded alike on both sides, as ``F.fold`` takes them."""
    padding = call.attrs["padding"]
    alike = len(padding) != 4 or padding[:2] == padding[2:]
    return len(call.attrs["image_shape"]) == 2 and alike


@OPS.exports("serde.col2im", when=_is_plain_fold)
def export_col2im(ctx: Export, data: Value, *, col2im: Columns) -> Value:
    before = (col2im.padding * 2)[:2]
    return ctx.call(
        "F.fold", data, tuple(ctx.sizes(col2im.image_shape)), col2im.block_shape,
        dilation=col2im.dilation or 1, padding=before, stride=col2im.strides or 1,
    )  # fmt: skip


def _memory(ctx: Import, x: Expr) -> Expr:
    """Return the elements of a tensor in the order in which they lie in memory."""
    source = x
    while isinstance(source, Call) and isinstance(source.op, OpDef) and source.op.has(Reshape):
        source = source.args[0]
    if not isinstance(source, (Var, Constant)):
        raise Unsupported("as_strided of a tensor whose memory may be that of another")
    return reshape(ctx, x, [-1])


def _strided_places(
    ctx: Import, memory: Expr, size: Sequence[SymInt], stride: Sequence[SymInt], offset: SymInt
) -> Array:
    """Return the places in memory of a tensor with strides."""
    held = ctx.type(memory).shape[0]
    lengths = [ctx.fixed(each) for each in size]
    steps, first = [ctx.fixed(each) for each in stride], ctx.fixed(offset)
    if len(steps) != len(lengths) or min([first, *steps]) < 0:
        raise Unsupported(f"a view of sizes {lengths} with strides {steps} from {first} on")
    if isinstance(held, int) and 0 not in lengths and first + span(lengths, steps) > held:
        raise Unsupported(f"a view of sizes {lengths} and strides {steps} of {held} elements")
    places = allocation.full(lengths, first, np.int64)
    for axis, (length, step) in enumerate(zip(lengths, steps, strict=True)):
        form = [-1 if each == axis else 1 for each in range(len(lengths))]
        places += (allocation.arange(length) * step).reshape(form)
    return places


@OPS.imports("aten::as_strided", "aten::as_strided_copy")
def import_as_strided(
    ctx: Import,
    self: Expr,
    *,
    size: tuple[SymInt, ...],
    stride: tuple[SymInt, ...],
    storage_offset: SymInt | None = None,
) -> Expr:
    flat = _memory(ctx, self)
    places = _strided_places(ctx, flat, size, stride, storage_offset or 0)
    return relay.take(flat, Constant(places), axis=0, mode="fast")


@OPS.imports("aten::as_strided_scatter")
def import_as_strided_scatter(
    ctx: Import,
    self: Expr,
    src: Expr,
    *,
    size: tuple[SymInt, ...],
    stride: tuple[SymInt, ...],
    storage_offset: SymInt | None = None,
) -> Expr:
    flat = _memory(ctx, self)
    places = _strided_places(ctx, flat, size, stride, storage_offset or 0)
    rows = Constant(places.reshape(-1))
    new = reshape(ctx, ctx.cast(src, ctx.dtype(self)), [-1])
    return reshape(ctx, relay.scatter_elements(flat, rows, new), sizes_of(ctx, self))


@OPS.imports("aten::view.dtype", "aten::view_copy.dtype")
def import_view_dtype(ctx: Import, self: Expr, *, dtype: np.dtype[np.generic]) -> Expr:
    """The same bytes as another dtype of as many."""
    name = np.dtype(dtype).name
    return self if name == ctx.dtype(self) else relay.reinterpret(self, name)

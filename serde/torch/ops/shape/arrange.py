"""Elements and axes in another order: transposed, rolled, turned, shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call, normalize_axis
from serde.torch.ops.shape.lengths import divide_length, multiply_lengths, reshape, sizes_of
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.ops.written import dims_of, in_signed, permute
from serde.walk.pairs import reads

__all__ = ["move_axes", "swap_axes", "transpose"]


def transpose(ctx: Import, x: Expr, order: Sequence[int]) -> Expr:
    """Return `x` with its axes in another order, itself where it is its own."""
    same = list(order) == list(range(ctx.type(x).rank))
    return x if same else relay.transpose(x, axes=tuple(order))


def swap_axes(ctx: Import, x: Expr, one: int, other: int) -> Expr:
    """Return `x` with two axes exchanged."""
    order = list(range(ctx.type(x).rank))
    if not order:
        return x
    order[one], order[other] = order[other], order[one]
    return transpose(ctx, x, order)


def move_axes(ctx: Import, x: Expr, source: Sequence[int], target: Sequence[int]) -> Expr:
    """Return `x` with some axes at other places, the rest in order between them."""
    rank = ctx.type(x).rank
    if not rank:
        return x
    if len(source) != len(target):
        raise Unsupported(f"{len(source)} axes moved to {len(target)} places")
    placed = dict(zip(target, source, strict=True))
    if len(placed) < len(source) or len(set(source)) < len(source):
        raise Unsupported("an axis is named twice")
    rest = (axis for axis in range(rank) if axis not in source)
    return transpose(ctx, x, [placed[at] if at in placed else next(rest) for at in range(rank)])


@OPS.imports("aten::permute", "aten::permute_copy")
@OPS.imports("prims::transpose", renamed={"a": "self", "permutation": "dims"})
def import_permute(ctx: Import, self: Expr, *, dims: tuple[int, ...]) -> Expr:
    return transpose(ctx, self, [ctx.axis(self, each) for each in dims])


@OPS.imports("aten::transpose.int", "aten::transpose_copy.int", "aten::swapdims", "aten::transpose")
@OPS.imports("aten::swapaxes", renamed={"axis0": "dim0", "axis1": "dim1"})
def import_transpose(ctx: Import, self: Expr, *, dim0: int, dim1: int) -> Expr:
    return swap_axes(ctx, self, ctx.axis(self, dim0), ctx.axis(self, dim1))


@OPS.imports("aten::t", "aten::t_copy")
def import_t(ctx: Import, self: Expr) -> Expr:
    rank = ctx.type(self).rank
    if rank > 2:
        raise Unsupported(f"a tensor of rank {rank} is no matrix")
    return transpose(ctx, self, range(rank)[::-1])


@OPS.imports("aten::numpy_T", "aten::numpy_T.a")
def import_numpy_t(ctx: Import, self: Expr) -> Expr:
    return transpose(ctx, self, range(ctx.type(self).rank)[::-1])


@OPS.imports(
    "aten::mT", "aten::mT.a", "aten::mH", "aten::mH.a", "aten::adjoint",
    "aten::matrix_H", "aten::matrix_H.a",
)  # fmt: skip
def import_matrix_transpose(ctx: Import, self: Expr) -> Expr:
    """Of real numbers, the conjugate transpose is the transpose."""
    rank = ctx.type(self).rank
    return swap_axes(ctx, self, rank - 2, rank - 1) if rank > 1 else self


@OPS.exports("transpose")
def export_transpose(ctx: Export, data: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(data).rank
    order = [axis % rank for axis in axes] if axes else list(reversed(range(rank)))
    return permute(ctx, data, order)


@OPS.imports("aten::movedim", "aten::moveaxis")
def import_movedim(
    ctx: Import, self: Expr, *, source: int | tuple[int, ...], destination: int | tuple[int, ...]
) -> Expr:
    lists = [(each,) if isinstance(each, int) else each for each in (source, destination)]
    given, wanted = ([ctx.axis(self, axis) for axis in each] for each in lists)
    return move_axes(ctx, self, given, wanted)


@OPS.imports("aten::roll")
def import_roll(
    ctx: Import,
    self: Expr,
    *,
    shifts: SymInt | tuple[SymInt, ...],
    dims: int | tuple[int, ...] = (),
) -> Expr:
    """Without axes, the elements are one row."""
    given = shifts if isinstance(shifts, tuple) else (shifts,)
    steps = tuple(ctx.fixed(each) for each in given)
    named = (dims,) if isinstance(dims, int) else dims
    if not named:
        if len(steps) != 1:
            raise Unsupported(f"{len(steps)} shifts without axes")
        flat = call("serde.roll", reshape(ctx, self, [-1]), shift=steps, axes=(0,))
        return reshape(ctx, flat, sizes_of(ctx, self))
    if not ctx.type(self).rank:
        return self
    axes = tuple(ctx.axis(self, each) for each in named)
    if len(axes) != len(steps):
        raise Unsupported(f"{len(steps)} shifts do not fit {len(axes)} axes")
    return call("serde.roll", self, shift=steps, axes=axes)


def _import_shift(
    ctx: Import, self: Expr, *, back: bool, dim: int | tuple[int, ...] | None = None
) -> Expr:
    """Axes are rolled by half their length, or back from there."""
    axes = ctx.axes(self, dim)
    halves = [length // 2 for length in ctx.static_lengths(self, axes)]
    steps = tuple(-each if back else each for each in halves)
    return call("serde.roll", self, shift=steps, axes=axes) if axes else self


OPS.imports("aten::fft_fftshift")(partial(_import_shift, back=False))
OPS.imports("aten::fft_ifftshift")(partial(_import_shift, back=True))


def _flip(ctx: Import, x: Expr, *axes: int) -> Expr:
    for axis in axes:
        x = relay.reverse(x, axis=axis)
    return x


@OPS.imports("aten::flip")
@OPS.imports("prims::rev", renamed={"a": "self"})
def import_flip(ctx: Import, self: Expr, *, dims: tuple[int, ...]) -> Expr:
    axes = ctx.axes(self, dims) if dims else ()
    return _flip(ctx, self, *axes)


OPS.pairs(
    reads("aten::fliplr", "reverse", fixed={"axis": 1}),
    reads("aten::flipud", "reverse", fixed={"axis": 0}),
)


@OPS.exports("reverse")
@in_signed
def export_reverse(ctx: Export, data: Value, *, axis: int | None) -> Value:
    return ctx.method(data, "flip", axis)


@OPS.imports("aten::rot90")
def import_rot90(ctx: Import, self: Expr, *, k: int = 1, dims: tuple[int, int] = (0, 1)) -> Expr:
    one, other = (ctx.axis(self, each) for each in dims)
    if k % 4 == 2:
        return _flip(ctx, self, one, other)
    if k % 4 == 1:
        return swap_axes(ctx, _flip(ctx, self, other), one, other)
    return swap_axes(ctx, _flip(ctx, self, one), one, other) if k % 4 else self


@OPS.imports("aten::pixel_shuffle")
def import_pixel_shuffle(ctx: Import, self: Expr, *, upscale_factor: int) -> Expr:
    """Channels are ordered as the channel, then the row, then the column of a block."""
    ctx.require_rank(self, 3)
    factor = upscale_factor
    if factor < 1:
        raise Unsupported(f"blocks of {factor} elements")
    if ctx.type(self).rank == 4:
        return relay.nn.depth_to_space(self, block_size=factor, mode="CRD")
    *front, channels, rows, columns = sizes_of(ctx, self)
    depth = ctx.fixed(channels) // factor**2
    count = len(front)
    parts = reshape(ctx, self, [*front, depth, factor, factor, rows, columns])
    order = [*range(count), *(count + each for each in (0, 3, 1, 4, 2))]
    tall, wide = (multiply_lengths(ctx, each, factor) for each in (rows, columns))
    return reshape(ctx, relay.transpose(parts, axes=order), [*front, depth, tall, wide])


@OPS.imports("aten::pixel_unshuffle")
def import_pixel_unshuffle(ctx: Import, self: Expr, *, downscale_factor: int) -> Expr:
    ctx.require_rank(self, 3)
    factor = downscale_factor
    *front, channels, rows, columns = sizes_of(ctx, self)
    low, narrow = divide_length(ctx, rows, factor), divide_length(ctx, columns, factor)
    parts = reshape(ctx, self, [*front, channels, low, factor, narrow, factor])
    count = len(front)
    order = [*range(count), *(count + each for each in (0, 2, 4, 1, 3))]
    depth = multiply_lengths(ctx, channels, factor**2)
    return reshape(ctx, relay.transpose(parts, axes=order), [*front, depth, low, narrow])


@OPS.imports("aten::channel_shuffle", "aten::native_channel_shuffle")
def import_channel_shuffle(ctx: Import, self: Expr, *, groups: SymInt) -> Expr:
    ctx.require_rank(self, 2)
    sizes, count = sizes_of(ctx, self), ctx.fixed(groups)
    front, channels, rest = sizes[0], sizes[1], sizes[2:]
    parts = reshape(ctx, self, [front, count, divide_length(ctx, channels, count), *rest])
    return reshape(ctx, swap_axes(ctx, parts, 1, 2), sizes)


@OPS.exports("serde.roll")
def export_roll(
    ctx: Export, data: Value, *, shift: tuple[int, ...], axes: tuple[int, ...]
) -> Value:
    return ctx.call("torch.roll", data, dims_of(shift), dims_of(axes)) if axes else data


@OPS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: Export, data: Value, seq_lengths: Value, *, seq_axis: int, batch_axis: int
) -> Value:
    rank = ctx.type(data).rank
    axes = normalize_axis(seq_axis, rank), normalize_axis(batch_axis, rank)
    return ctx.call(ctx.helper("reverse_sequence"), data, seq_lengths, *axes)

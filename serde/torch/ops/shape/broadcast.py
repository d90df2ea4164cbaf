"""A tensor spread over a larger shape, or repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Any, Constant, Expr, call, is_float, same_shape
from serde.torch.ops.shape.lengths import broadcast, multiply_lengths, reshape, sizes_of, spread
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.ops.written import integers

__all__ = ["tile"]


@OPS.imports("aten::expand", "aten::expand_copy", "aten::broadcast_to", ignored=("implicit",))
def import_expand(ctx: Import, self: Expr, *, size: tuple[SymInt, ...]) -> Expr:
    return broadcast(ctx, self, size)


@OPS.imports("aten::expand_as")
def import_expand_as(ctx: Import, self: Expr, other: Expr) -> Expr:
    own, wanted = ctx.type(self), ctx.type(other)
    if any(isinstance(dim, Any) for dim in wanted.shape) and own.shape != wanted.shape:
        return relay.broadcast_to_like(self, other)
    return broadcast(ctx, self, sizes_of(ctx, other))


@OPS.exports("broadcast_to", ignored=("shape", "dtype"))
def export_broadcast_to(ctx: Export, data: Value) -> Value:
    """A length that stays is -1 where it is no number; one that is unknown does stay."""
    own, wanted = ctx.type(data).shape, ctx.result_type().shape
    if own == wanted:
        return data
    lead = len(wanted) - len(own)
    lengths: list[object] = []
    for place, dim in enumerate(wanted):
        stays = place >= lead and own[place - lead] == dim
        lengths += [-1] if stays and not isinstance(dim, int) else ctx.sizes([dim])
    return ctx.method(data, "expand", *lengths)


@OPS.exports("dyn.broadcast_to", ignored=("dtype",))
def export_dyn_broadcast_to(ctx: Export, data: Value, shape: Value) -> Value:
    return ctx.method(data, "expand", integers(ctx, shape))


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: Export, data: Value, broadcast_type: Value) -> Value:
    return ctx.method(data, "expand_as", broadcast_type)


@OPS.exports("collapse_sum_like", "collapse_sum_to")
def export_collapse_sum(ctx: Export, data: Value, like: Value) -> Value:
    type_ = ctx.result_type()
    if same_shape(ctx.type(data).shape, type_.shape):
        return data
    total = ctx.method(data, "sum_to_size", ctx.sizes(type_.shape))
    return total if is_float(type_.dtype) else ctx.method(total, "to", ctx.dtype(type_.dtype))


@OPS.imports("prims::broadcast_in_dim")
def import_broadcast_in_dim(
    ctx: Import, a: Expr, *, shape: tuple[SymInt, ...], broadcast_dimensions: tuple[int, ...]
) -> Expr:
    sizes: list[SymInt] = [1] * len(shape)
    if not all(0 <= place < len(shape) for place in broadcast_dimensions):
        raise Unsupported(f"axes at {list(broadcast_dimensions)} of {len(shape)}")
    for axis, place in enumerate(broadcast_dimensions):
        sizes[place] = ctx.size(a, axis)
    return broadcast(ctx, reshape(ctx, a, sizes), shape)


@OPS.imports("aten::broadcast_tensors")
def import_broadcast_tensors(ctx: Import, *tensors: Expr) -> list[Expr]:
    return spread(ctx, *tensors)


@OPS.imports("aten::meshgrid")
def import_meshgrid(
    ctx: Import, *tensors: Expr, indexing: Literal["ij", "xy"] = "ij"
) -> list[Expr]:
    return list(relay.meshgrid(tensors, indexing=indexing))


@OPS.exports("meshgrid")
def export_meshgrid(ctx: Export, data: tuple[Value, ...], *, indexing: str) -> tuple[Value, ...]:
    return ctx.call_tuple("torch.meshgrid", list(data), indexing=indexing, outputs=len(data))


def tile(ctx: Import, x: Expr, repeats: Sequence[SymInt]) -> Expr:
    """Return `x` repeated as a whole along each axis, aligned at the last."""
    fixed = [ctx.dim(each) for each in repeats]
    if all(type(each) is int and each == 1 for each in fixed):
        missing = len(fixed) - ctx.type(x).rank
        return relay.expand_dims(x, axis=0, num_newaxis=missing) if missing > 0 else x
    known = [each for each in fixed if isinstance(each, int)]
    if len(known) == len(fixed):
        return relay.tile(x, reps=known)
    if any(isinstance(each, Any) for each in fixed):
        return call("dyn.tile", x, ctx.shape_vector(repeats))
    return _tile_by_symbols(ctx, x, repeats)


def _tile_by_symbols(ctx: Import, x: Expr, repeats: Sequence[SymInt]) -> Expr:
    """Spread `x` over an axis before each, since only lengths may be symbols."""
    sizes: list[SymInt] = [*[1] * (len(repeats) - ctx.type(x).rank), *sizes_of(ctx, x)]
    counts: list[SymInt] = [*[1] * (len(sizes) - len(repeats)), *repeats]
    narrow = [each for size in sizes for each in (1, size)]
    wide = [each for pair in zip(counts, sizes, strict=True) for each in pair]
    whole = [multiply_lengths(ctx, *pair) for pair in zip(counts, sizes, strict=True)]
    return reshape(ctx, broadcast(ctx, reshape(ctx, x, narrow), wide), whole)


@OPS.imports("aten::repeat")
def import_repeat(ctx: Import, self: Expr, *, repeats: tuple[SymInt, ...]) -> Expr:
    if len(repeats) < ctx.type(self).rank:
        raise Unsupported(f"{len(repeats)} counts for a tensor of rank {ctx.type(self).rank}")
    return tile(ctx, self, repeats)


@OPS.imports("aten::tile")
def import_tile(ctx: Import, self: Expr, *, dims: tuple[SymInt, ...]) -> Expr:
    return tile(ctx, self, dims)


@OPS.exports("tile")
def export_tile(ctx: Export, data: Value, *, reps: tuple[int, ...]) -> Value:
    return ctx.method(data, "tile", reps)


@OPS.exports("dyn.tile")
def export_dyn_tile(ctx: Export, data: Value, reps: Value) -> Value:
    return ctx.method(data, "tile", integers(ctx, reps))


@OPS.imports("aten::repeat_interleave.self_int", ignored=("output_size",))
def import_repeat_interleave(
    ctx: Import, self: Expr, *, repeats: SymInt, dim: int | None = None
) -> Expr:
    """Each entry of an axis so many times in a row; without one, all elements are a row."""
    x = reshape(ctx, self, [-1]) if dim is None else self
    axis = ctx.axis(x, dim or 0)
    count = ctx.dim(repeats)
    if not ctx.type(x).rank:
        x = relay.reshape(x, newshape=(1,))
    if isinstance(count, int) and count > 0:
        return relay.repeat(x, repeats=count, axis=axis) if count > 1 else x
    sizes = sizes_of(ctx, x)
    wide: list[SymInt] = [*sizes[: axis + 1], repeats, *sizes[axis + 1 :]]
    spread_out = broadcast(ctx, relay.expand_dims(x, axis=axis + 1), wide)
    sizes[axis] = multiply_lengths(ctx, sizes[axis], repeats)
    return reshape(ctx, spread_out, sizes)


@OPS.exports("repeat")
def export_repeat(ctx: Export, data: Value, *, repeats: int, axis: int | None) -> Value:
    options = {} if axis is None else {"dim": axis}
    return ctx.method(data, "repeat_interleave", repeats, **options)


def _repeated_places(ctx: Import, counts: Expr) -> Expr:
    """Return each place as often as it is counted."""
    known = ctx.known(counts)
    if known is not None:
        return Constant(allocation.repeat(allocation.arange(known.size), known.astype(np.int64)))
    wide = ctx.cast(counts, "int64")
    total = relay.sum(wide, axis=(0,))
    zero, one = (relay.const(each, "int64") for each in (0, 1))
    steps = relay.arange(zero, total, one, dtype="int64")
    return relay.searchsorted(relay.cumsum(wide, axis=0), steps, True, "int64")


@OPS.imports("aten::repeat_interleave.Tensor", ignored=("output_size",))
def import_repeated_places(ctx: Import, repeats: Expr) -> Expr:
    return ctx.cast(_repeated_places(ctx, repeats), ctx.dtype(repeats))


@OPS.imports("aten::repeat_interleave.self_Tensor", ignored=("output_size",))
def import_repeat_interleave_tensor(
    ctx: Import, self: Expr, repeats: Expr, *, dim: int | None = None
) -> Expr:
    x = reshape(ctx, self, [-1]) if dim is None else self
    if not ctx.type(x).rank:
        x = relay.reshape(x, newshape=(1,))
    axis = ctx.axis(x, dim or 0)
    counts = reshape(ctx, repeats, [-1])
    if ctx.type(counts).shape == (1,):
        counts = broadcast(ctx, counts, [ctx.size(x, axis)])
    return relay.take(x, _repeated_places(ctx, counts), axis=axis, mode="fast")

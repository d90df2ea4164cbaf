"""A tensor spread over a larger shape, or repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.dims import Any
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.shape.lengths import (
    broadcast,
    multiply_lengths,
    reshape,
    sizes_of,
    spread,
)
from serde.torch.ops.table import OPS

__all__ = ["tile"]


@OPS.imports("aten::expand", "aten::expand_copy", "aten::broadcast_to", ignored=("implicit",))
def import_expand(ctx: ImportContext, self: Expr, *, size: tuple[SymInt, ...]) -> Expr:
    return broadcast(ctx, self, size)


@OPS.imports("aten::expand_as")
def import_expand_as(ctx: ImportContext, self: Expr, other: Expr) -> Expr:
    own, wanted = ctx.type(self), ctx.type(other)
    if any(isinstance(dim, Any) for dim in wanted.shape) and own.shape != wanted.shape:
        return relay.broadcast_to_like(self, other)
    return broadcast(ctx, self, sizes_of(ctx, other))


@OPS.imports("prims::broadcast_in_dim")
def import_broadcast_in_dim(
    ctx: ImportContext, a: Expr, *, shape: tuple[SymInt, ...], broadcast_dimensions: tuple[int, ...]
) -> Expr:
    sizes: list[SymInt] = [1] * len(shape)
    if not all(0 <= place < len(shape) for place in broadcast_dimensions):
        raise Unsupported(f"axes at {list(broadcast_dimensions)} of {len(shape)}")
    for axis, place in enumerate(broadcast_dimensions):
        sizes[place] = ctx.size(a, axis)
    return broadcast(ctx, reshape(ctx, a, sizes), shape)


@OPS.imports("aten::broadcast_tensors")
def import_broadcast_tensors(ctx: ImportContext, *tensors: Expr) -> list[Expr]:
    return spread(ctx, *tensors)


@OPS.imports("aten::meshgrid")
def import_meshgrid(
    ctx: ImportContext, *tensors: Expr, indexing: Literal["ij", "xy"] = "ij"
) -> list[Expr]:
    return list(relay.meshgrid(tensors, indexing=indexing))


def tile(ctx: ImportContext, x: Expr, repeats: Sequence[SymInt]) -> Expr:
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


def _tile_by_symbols(ctx: ImportContext, x: Expr, repeats: Sequence[SymInt]) -> Expr:
    """Spread `x` over an axis before each, since only lengths may be symbols."""
    sizes: list[SymInt] = [*[1] * (len(repeats) - ctx.type(x).rank), *sizes_of(ctx, x)]
    counts: list[SymInt] = [*[1] * (len(sizes) - len(repeats)), *repeats]
    narrow = [each for size in sizes for each in (1, size)]
    wide = [each for pair in zip(counts, sizes, strict=True) for each in pair]
    whole = [multiply_lengths(ctx, *pair) for pair in zip(counts, sizes, strict=True)]
    return reshape(ctx, broadcast(ctx, reshape(ctx, x, narrow), wide), whole)


@OPS.imports("aten::repeat")
def import_repeat(ctx: ImportContext, self: Expr, *, repeats: tuple[SymInt, ...]) -> Expr:
    if len(repeats) < ctx.type(self).rank:
        raise Unsupported(f"{len(repeats)} counts for a tensor of rank {ctx.type(self).rank}")
    return tile(ctx, self, repeats)


@OPS.imports("aten::tile")
def import_tile(ctx: ImportContext, self: Expr, *, dims: tuple[SymInt, ...]) -> Expr:
    return tile(ctx, self, dims)

"""Elements picked by index."""

from __future__ import annotations

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.shape.lengths import broadcast, reshape, sizes_of, spread
from serde.torch.ops.table import OPS

__all__ = ["at_least_vector", "gather_along"]


def at_least_vector(ctx: ImportContext, x: Expr) -> Expr:
    """Return a scalar as a vector of one."""
    return x if ctx.type(x).rank else relay.reshape(x, newshape=(1,))


def gather_along(ctx: ImportContext, x: Expr, axis: int, index: Expr) -> Expr:
    """Return along an axis the entries that an index names; it may be shorter along others."""
    dims = ctx.type(index).shape
    if 0 in dims:
        return relay.zeros(dims, ctx.dtype(x))
    found = relay.gather(at_least_vector(ctx, x), axis, at_least_vector(ctx, index))
    return found if dims else relay.reshape(found, newshape=())


@OPS.imports("aten::gather", ignored=("sparse_grad",))
def import_gather(ctx: ImportContext, self: Expr, index: Expr, *, dim: int) -> Expr:
    return gather_along(ctx, self, ctx.axis(self, dim), index)


@OPS.imports("aten::index_select")
def import_index_select(ctx: ImportContext, self: Expr, index: Expr, *, dim: int) -> Expr:
    """Of a scalar, the only index is 0."""
    axis = ctx.axis(self, dim)
    if not ctx.type(self).rank:
        return self
    return relay.take(self, at_least_vector(ctx, index), axis=axis, mode="fast")


@OPS.imports("aten::take")
def import_take(ctx: ImportContext, self: Expr, index: Expr) -> Expr:
    """Of the elements in a row; negative indices count from the end."""
    if 0 in ctx.type(index).shape:
        return relay.zeros(ctx.type(index).shape, ctx.dtype(self))
    return call("serde.take", reshape(ctx, self, [-1]), index, axis=0)


@OPS.imports("aten::take_along_dim")
def import_take_along_dim(
    ctx: ImportContext, self: Expr, indices: Expr, *, dim: int | None = None
) -> Expr:
    """All axes but that of the index broadcast."""
    if dim is None:
        flat = [reshape(ctx, each, [-1]) for each in (self, indices)]
        return gather_along(ctx, flat[0], 0, flat[1])
    axis = ctx.axis(self, dim)
    ctx.require_rank(indices, ctx.type(self).rank, ctx.type(self).rank)
    ctx.require_rank(self, 1)
    x, places = _spread_beside(ctx, self, indices, axis)
    return gather_along(ctx, x, axis, places)


def _spread_beside(ctx: ImportContext, x: Expr, index: Expr, axis: int) -> tuple[Expr, Expr]:
    """Return a tensor and an index broadcast along all axes but one."""
    shapes = [list(ctx.type(each).shape) for each in (x, index)]
    for shape in shapes:
        shape[axis] = 1
    if shapes[0] == shapes[1]:
        return x, index
    beside = [relay.take(each, relay.const([0], "int64"), axis=axis) for each in (x, index)]
    common = sizes_of(ctx, spread(ctx, *beside)[0])
    wide: list[Expr] = []
    for each in (x, index):
        sizes: list[SymInt] = list(common)
        sizes[axis] = ctx.size(each, axis)
        wide.append(broadcast(ctx, each, sizes))
    return wide[0], wide[1]

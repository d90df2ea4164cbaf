"""Elements picked by index."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.relay.ir import Expr, TensorType, call, is_float, normalize_axis
from serde.relay.lowering.index import shares_no_axis, take_from_one_axis
from serde.torch.ops.shape.lengths import broadcast, reshape, sizes_of, spread
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.ops.written import cast, in_signed

__all__ = ["as_index", "at_least_vector", "from_start", "gather_along"]


def at_least_vector(ctx: Import, x: Expr) -> Expr:
    """Return a scalar as a vector of one."""
    return x if ctx.type(x).rank else relay.reshape(x, newshape=(1,))


def gather_along(ctx: Import, x: Expr, axis: int, index: Expr) -> Expr:
    """Return along an axis the entries that an index names; it may be shorter along others."""
    dims = ctx.type(index).shape
    if 0 in dims:
        return relay.zeros(dims, ctx.dtype(x))
    found = relay.gather(at_least_vector(ctx, x), axis, at_least_vector(ctx, index))
    return found if dims else relay.reshape(found, newshape=())


@OPS.imports("aten::gather", ignored=("sparse_grad",))
def import_gather(ctx: Import, self: Expr, index: Expr, *, dim: int) -> Expr:
    return gather_along(ctx, self, ctx.axis(self, dim), index)


@OPS.imports("aten::index_select")
def import_index_select(ctx: Import, self: Expr, index: Expr, *, dim: int) -> Expr:
    """Of a scalar, the only index is 0."""
    axis = ctx.axis(self, dim)
    if not ctx.type(self).rank:
        return self
    return relay.take(self, at_least_vector(ctx, index), axis=axis, mode="fast")


@OPS.imports("aten::take")
def import_take(ctx: Import, self: Expr, index: Expr) -> Expr:
    """Of the elements in a row; negative indices count from the end."""
    if 0 in ctx.type(index).shape:
        return relay.zeros(ctx.type(index).shape, ctx.dtype(self))
    return call("serde.take", reshape(ctx, self, [-1]), index, axis=0)


@OPS.imports("aten::take_along_dim")
def import_take_along_dim(
    ctx: Import, self: Expr, indices: Expr, *, dim: int | None = None
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


def _spread_beside(ctx: Import, x: Expr, index: Expr, axis: int) -> tuple[Expr, Expr]:
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


def as_index(ctx: Export, x: Value) -> Value:
    """Return indices as PyTorch takes them: of uint8 it would make a mask."""
    return x if ctx.type(x).dtype in ("int32", "int64") else cast(ctx, x, "int64")


def _within(ctx: Export, indices: Value, length: int | Value, mode: str) -> Value:
    """Return indices that are inside an axis of some length."""
    dtype = ctx.type(indices).dtype
    if indices.data is not None and isinstance(length, int):
        known = indices.data.astype(np.int64)
        known = np.clip(known, 0, length - 1) if mode == "clip" else known % length
        return ctx.const(known)
    index = as_index(ctx, indices)
    if mode == "wrap":
        return ctx.infix("%", index, length)
    last = length - 1 if isinstance(length, int) else ctx.infix("-", length, 1)
    lowest = {} if dtype.startswith("u") else {"min": 0}
    return ctx.call("torch.clamp", index, **lowest, max=last)


def from_start(ctx: Export, indices: Value, data: Value, axis: int) -> Value:
    """Return indices, of which negative ones count from the end, as int64 from the start."""
    length = ctx.size(data, axis)
    if indices.data is not None:
        known = indices.data.astype(np.int64)
        if known.size == 0 or known.min() >= 0:
            return ctx.const(known)
        if isinstance(length, int):
            return ctx.const(np.where(known < 0, known + length, known))
    wide = cast(ctx, indices, "int64")
    if ctx.type(indices).dtype.startswith("u"):
        return wide
    return ctx.infix("%", wide, length)


def _at(ctx: Export, data: Value, axis: int, indices: Value) -> Value:
    """Return the entries of an axis at indices, negative ones counted from the end."""
    number = ctx.scalar(indices) if not ctx.type(indices).shape else None
    place = indices if number is None else int(number)
    return ctx.index(data, (*[slice(None)] * axis, place) if axis else place)


OPS.expands("take")(take_from_one_axis)


@OPS.exports("take", when=shares_no_axis, ignored=("batch_dims",))
@in_signed
def export_take(ctx: Export, data: Value, indices: Value, *, axis: int | None, mode: str) -> Value:
    """Indices that may be outside are clipped or wrapped before."""
    if axis is None:
        data = ctx.typed(ctx.method(data, "flatten"), _flat(ctx, data))
        axis = 0
    axis = normalize_axis(axis, ctx.type(data).rank)
    own = indices
    if mode != "fast":
        indices = _within(ctx, indices, ctx.size(data, axis), mode)
    elif indices.data is None:
        indices = as_index(ctx, indices)
    type_ = ctx.type(data)
    is_table = type_.rank == 2 and axis == 0 and type_.concrete_shape is not None
    # A module's parameters are trained, which integers cannot be.
    if (
        is_table
        and is_float(type_.dtype)
        and data.weight is not None
        and own.data is None
        and ctx.is_weight(data)
    ):
        rows, width = ctx.static_shape(data)
        return ctx.layer(
            "nn.Embedding", (indices,), {"weight": data}, num_embeddings=rows, embedding_dim=width
        )
    return _at(ctx, data, axis, ctx.typed(indices, ctx.type(own)))


def _flat(ctx: Export, data: Value) -> TensorType:
    type_ = ctx.type(data)
    return TensorType([type_.size], type_.dtype)


@OPS.exports("serde.take")
@in_signed
def export_serde_take(ctx: Export, data: Value, indices: Value, *, axis: int) -> Value:
    axis = normalize_axis(axis, ctx.type(data).rank)
    given = indices if indices.data is not None else as_index(ctx, indices)
    return _at(ctx, data, axis, ctx.typed(given, ctx.type(indices)))


@OPS.exports("gather")
@in_signed
def export_gather(ctx: Export, data: Value, indices: Value, *, axis: int | None) -> Value:
    axis = normalize_axis(axis or 0, ctx.type(data).rank)
    return ctx.call("torch.gather", data, axis, from_start(ctx, indices, data, axis))


def _parts(ctx: Export, indices: Value, axis: int) -> list[Value]:
    """Return the rows of indices, one for each axis that they name."""
    rank = ctx.type(indices).rank
    (depth,) = ctx.static_lengths(indices, [axis])
    given = as_index(ctx, indices)
    before: tuple[object, ...] = () if axis % rank == 0 else (Ellipsis,)
    return [ctx.index(given, (*before, place) if before else place) for place in range(depth)]


@OPS.exports("gather_nd", ignored=("index_rank",))
def export_gather_nd(ctx: Export, data: Value, indices: Value, *, batch_dims: int) -> Value:
    if not batch_dims:
        return ctx.index(data, tuple(_parts(ctx, indices, 0)))
    rows = ctx.method(as_index(ctx, indices), "movedim", 0, -1)
    return ctx.call(ctx.helper("gather_batched"), data, rows, batch_dims)


@OPS.exports("serde.gather_nd")
def export_serde_gather_nd(ctx: Export, data: Value, indices: Value, *, batch_dims: int) -> Value:
    if not batch_dims:
        return ctx.index(data, tuple(_parts(ctx, indices, -1)))
    return ctx.call(ctx.helper("gather_batched"), data, as_index(ctx, indices), batch_dims)

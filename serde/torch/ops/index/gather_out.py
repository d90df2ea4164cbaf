"""Entries at indices as they are written."""

from __future__ import annotations

import numpy as np

from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call
from serde.relay.ir.shapes import is_float, normalize_axis
from serde.relay.ir.types import TensorType
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import cast, in_signed
from serde.walk.expansion.tensors import tensor_type


def as_index(ctx: ExportContext, x: Value) -> Value:
    """Return indices as PyTorch takes them: of uint8 it would make a mask."""
    return x if ctx.type(x).dtype in ("int32", "int64") else cast(ctx, x, "int64")


def _within(ctx: ExportContext, indices: Value, length: int | Value, mode: str) -> Value:
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


def from_start(ctx: ExportContext, indices: Value, data: Value, axis: int) -> Value:
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


def _at(ctx: ExportContext, data: Value, axis: int, indices: Value) -> Value:
    """Return the entries of an axis at indices, negative ones counted from the end."""
    number = ctx.scalar(indices) if not ctx.type(indices).shape else None
    place = indices if number is None else int(number)
    return ctx.index(data, (*[slice(None)] * axis, place) if axis else place)


@OPS.exports("take")
@in_signed
def export_take(
    ctx: ExportContext,
    data: Value,
    indices: Value,
    *,
    batch_dims: int,
    axis: int | None,
    mode: str,
) -> Value:
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
    if batch_dims:
        shared = batch_dims % (ctx.type(own).rank + 1) if batch_dims > 0 else (
            batch_dims + ctx.type(own).rank
        )  # fmt: skip
        if shared:
            return ctx.call(ctx.helper("take_batched"), data, indices, shared, axis)
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


def _flat(ctx: ExportContext, data: Value) -> TensorType:
    type_ = ctx.type(data)
    return TensorType([type_.size], type_.dtype)


@OPS.exports("serde.take")
@in_signed
def export_serde_take(ctx: ExportContext, data: Value, indices: Value, *, axis: int) -> Value:
    axis = normalize_axis(axis, ctx.type(data).rank)
    given = indices if indices.data is not None else as_index(ctx, indices)
    return _at(ctx, data, axis, ctx.typed(given, ctx.type(indices)))


@OPS.exports("gather")
@in_signed
def export_gather(ctx: ExportContext, data: Value, indices: Value, *, axis: int | None) -> Value:
    axis = normalize_axis(axis or 0, ctx.type(data).rank)
    return ctx.call("torch.gather", data, axis, from_start(ctx, indices, data, axis))


def _parts(ctx: ExportContext, indices: Value, axis: int) -> list[Value]:
    """Return the rows of indices, one for each axis that they name."""
    rank = ctx.type(indices).rank
    (depth,) = ctx.static_lengths(indices, [axis])
    given = as_index(ctx, indices)
    before: tuple[object, ...] = () if axis % rank == 0 else (Ellipsis,)
    return [ctx.index(given, (*before, place) if before else place) for place in range(depth)]


@OPS.exports("gather_nd", ignored=("index_rank",))
def export_gather_nd(ctx: ExportContext, data: Value, indices: Value, *, batch_dims: int) -> Value:
    if not batch_dims:
        return ctx.index(data, tuple(_parts(ctx, indices, 0)))
    rows = ctx.method(as_index(ctx, indices), "movedim", 0, -1)
    return ctx.call(ctx.helper("gather_batched"), data, rows, batch_dims)


@OPS.exports("serde.gather_nd")
def export_serde_gather_nd(
    ctx: ExportContext, data: Value, indices: Value, *, batch_dims: int
) -> Value:
    if not batch_dims:
        return ctx.index(data, tuple(_parts(ctx, indices, -1)))
    return ctx.call(ctx.helper("gather_batched"), data, as_index(ctx, indices), batch_dims)


@OPS.exports("adv_index")
def export_adv_index(ctx: ExportContext, inputs: tuple[Value, ...]) -> Value:
    data, *indices = inputs
    return ctx.index(data, tuple(as_index(ctx, each) for each in indices))


@OPS.exports("argwhere")
@in_signed
def export_argwhere(ctx: ExportContext, condition: Value) -> Value:
    return ctx.method(ctx.call("torch.argwhere", condition), "to", ctx.dtype("int32"))


@OPS.exports("serde.nonzero")
@in_signed
def export_nonzero(ctx: ExportContext, data: Value) -> Value:
    return ctx.method(ctx.call("torch.nonzero", data), "t")


def _marks_all(call: Call) -> bool:
    """Whether there is a mark for each entry."""
    data, condition = (tensor_type(each) for each in call.args)
    axis = call.attrs["axis"]
    length: Dim = data.size if axis is None else data.shape[axis]
    return condition.shape[0] == length


@OPS.exports("serde.compress", when=_marks_all)
def export_compress(
    ctx: ExportContext, data: Value, condition: Value, *, axis: int | None
) -> Value:
    if axis is None:
        return ctx.index(ctx.method(data, "flatten"), condition)
    axis = normalize_axis(axis, ctx.type(data).rank)
    return ctx.index(data, (*[slice(None)] * axis, condition) if axis else condition)

"""The same elements in another shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.ops.table import OPS, Export, Import, Scalar, Shape, Value
from serde.relay.ir import Dim, Expr, TensorType, get, normalize_axis, product
from serde.relay.op.shape.reshape import new_shape

__all__ = ["flatten", "reshape"]


def reshape(ctx: Export, data: Value, shape: Sequence[Dim]) -> Value:
    """Write the elements of a value in another shape."""
    if 0 in shape:  # A length of 0 is a copied one to Relax.
        return ctx.emit("zeros", ctx.shape_expr(shape), ctx.type(data).dtype)
    return ctx.emit("reshape", data, ctx.shape_expr(shape))


def flatten(ctx: Export, data: Value) -> Value:
    """Write the elements of a value as a vector; it has the Relay type of one."""
    if ctx.type(data).rank == 1:
        return data
    shape = (product(ctx.named_shape(data)),)
    return replace(reshape(ctx, data, shape), type=TensorType(shape, ctx.type(data).dtype))


@OPS.exports("reshape")
def export_reshape(
    ctx: Export, data: Value, *, newshape: tuple[Dim, ...], allowzero: bool
) -> Value:
    return reshape(ctx, data, new_shape(ctx.named_shape(data), newshape, allowzero))


@OPS.imports("relax.reshape")
def import_reshape(ctx: Import, x: Expr, *, shape: Shape) -> Expr:
    return ctx.reshape(x, shape)


@OPS.exports("contrib_reverse_reshape")
def export_reverse_reshape(
    ctx: Export, data: Value, *, newshape: tuple[Dim, ...], allowzero: bool
) -> Value:
    given = TensorType(ctx.named_shape(data), ctx.type(data).dtype)
    infer: AnyValue = get("contrib_reverse_reshape").infer
    return reshape(ctx, data, infer(given, newshape=newshape, allowzero=allowzero).shape)


@OPS.exports("nn.batch_flatten")
def export_batch_flatten(ctx: Export, data: Value) -> Value:
    shape = ctx.named_shape(data)
    return reshape(ctx, data, (shape[0], product(shape[1:])))


@OPS.exports("transpose")
def export_transpose(ctx: Export, data: Value, *, axes: tuple[int, ...] | None) -> Value:
    lengths = ctx.extents(data)
    if not lengths:
        return data
    if 0 in lengths:  # TVM makes a reshape of it, to which a length of 0 is a copied one.
        turned = [lengths[axis] for axis in axes] if axes else lengths[::-1]
        shape = ctx.framework.relax.ShapeExpr(ctx.wide(turned))
        return ctx.emit("zeros", shape, ctx.type(data).dtype)
    return ctx.emit("permute_dims", data, list(axes) if axes else None)


@OPS.exports("expand_dims")
def export_expand_dims(ctx: Export, data: Value, *, axis: int, num_newaxis: int) -> Value:
    first = axis % (ctx.type(data).rank + 1)
    if not num_newaxis:
        return data
    return ctx.emit("expand_dims", data, list(range(first, first + num_newaxis)))


@OPS.imports("relax.expand_dims")
def import_expand_dims(ctx: Import, x: Expr, *, axis: tuple[int, ...]) -> Expr:
    """Axes are those of the result."""
    rank = ctx.rank(x) + len(axis)
    for place in sorted(normalize_axis(each, rank) for each in axis):
        x = relay.expand_dims(x, place)
    return x


@OPS.exports("squeeze")
def export_squeeze(ctx: Export, data: Value, *, axis: tuple[int, ...] | None) -> Value:
    type_ = ctx.type(data)
    if axis is None:
        axis = tuple(index for index, dim in enumerate(type_.shape) if dim == 1)
    gone = {each % type_.rank for each in axis}
    if not gone:
        return data
    known = all(isinstance(type_.shape[each], int) for each in gone)
    if known:
        return ctx.emit("squeeze", data, sorted(gone))
    shape = ctx.named_shape(data)
    return reshape(ctx, data, [dim for index, dim in enumerate(shape) if index not in gone])


@OPS.imports("relax.squeeze")
def import_squeeze(ctx: Import, x: Expr, *, axis: tuple[int, ...] | None) -> Expr:
    """Without axes, those go whose length is known to be 1."""
    if axis is None:
        axis = tuple(index for index, length in enumerate(ctx.type(x).shape) if length == 1)
    return relay.squeeze(x, axis=list(axis)) if axis else x


@OPS.exports("shape_of")
def export_shape_of(ctx: Export, data: Value, *, dtype: AnyValue) -> Value:
    return _as(ctx, ctx.shape(ctx.named_shape(data)), dtype)


@OPS.exports("ndarray_size")
def export_ndarray_size(ctx: Export, data: Value, *, dtype: AnyValue) -> Value:
    count = ctx.shape([product(ctx.named_shape(data))])
    return _as(ctx, ctx.emit("reshape", count, ctx.shape_expr(())), dtype)


def _as(ctx: Export, x: Value, dtype: AnyValue) -> Value:
    return x if dtype == "int64" else ctx.emit("astype", x, str(dtype))


@OPS.exports("reverse")
def export_reverse(ctx: Export, data: Value, *, axis: int | None) -> Value:
    return ctx.emit("flip", data, axis)


@OPS.imports("relax.memory.view")
def import_view(
    ctx: Import,
    x: Expr,
    *,
    shape: Shape | tuple[()] | None = None,
    dtype: str | tuple[()] | None = None,
    relative_byte_offset: Scalar | tuple[()] | None = None,
) -> Expr:
    """An empty tuple stands for what is left out."""
    if relative_byte_offset and ctx.number(relative_byte_offset):
        raise Unsupported("a part of a tensor's memory has no counterpart")
    if dtype and dtype != ctx.dtype(x):
        x = relay.reinterpret(x, dtype)
    return ctx.reshape(x, shape) if shape else x


@OPS.imports("relax.size")
def import_size(ctx: Import, input: Expr) -> Expr:
    shape = ctx.type(input).concrete_shape
    if shape is not None:
        return ctx.const(prod(shape), "int64")
    return relay.ndarray_size(input, dtype="int64")


@OPS.imports("relax.shape_to_tensor")
def import_shape_to_tensor(ctx: Import, *, input: Shape) -> Expr:
    return ctx.shape_tensor(input)

"""Reshaping, transposition, and axes of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.export_context import ExportContext, Value
from serde.nnef.import_context import ImportContext
from serde.nnef.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call, Expr, tensor_type
from serde.relay.ir.registry import OpDef, call
from serde.relay.ir.shapes import find_inserted, normalize_axes, normalize_axis

__all__ = ["insert_axes"]


@OPS.imports("reshape")
def import_reshape(
    ctx: ImportContext,
    input: Expr,
    *,
    shape: tuple[int, ...],
    axis_start: int = 0,
    axis_count: int = -1,
) -> Expr:
    """The axes named take a shape in which 0 keeps the length there is and -1 is the rest."""
    lengths = ctx.type(input).shape
    rank = len(lengths)
    stop = rank if axis_count == -1 else axis_start + axis_count
    if not 0 <= axis_start <= stop <= rank:
        raise Unsupported(f"axes {axis_start} to {stop} are outside a tensor of rank {rank}")
    middle: list[Dim] = []
    for place, length in enumerate(shape, axis_start):
        if length == 0 and place >= rank:
            raise Unsupported(f"a 0 at place {place} of a shape, of a tensor of rank {rank}")
        middle.append(lengths[place] if length == 0 else length)
    found = relay.reshape(input, [*lengths[:axis_start], *middle, *lengths[stop:]], allowzero=True)
    return _product_of_rows(input, found) or found


def _product_of_rows(flat: Expr, found: Expr) -> Expr | None:
    """Return the product over more axes, with its bias, of which the rows were one matrix."""
    product, bias = flat, None
    if _calls(flat, "nn.bias_add"):
        product, bias = flat.args
    if not _calls(product, "nn.dense", "nn.matmul") or not _calls(product.args[0], "reshape"):
        return None
    rows, weight = product.args
    (data,) = product.args[0].args
    shape = tensor_type(data).shape
    expected = (*shape[:-1], tensor_type(flat).shape[-1])
    if tensor_type(found).shape != expected or tensor_type(rows).shape[-1:] != shape[-1:]:
        return None
    name = "nn.dense" if _calls(product, "nn.dense") else "nn.matmul"
    whole = call(name, data, weight, **product.attrs)
    return whole if bias is None else relay.nn.bias_add(whole, bias, axis=-1)


def _calls(node: Expr, *names: str) -> TypeGuard[Call]:
    return isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name in names


@OPS.exports("reshape", "contrib_reverse_reshape", ignored=("newshape", "allowzero"))
@OPS.exports("nn.batch_flatten")
def _reshape(ctx: ExportContext, data: Value) -> Value:
    """Return a tensor in the shape of the result, which may differ by axes of length 1 alone."""
    own, wanted = ctx.static_shape(data), ctx.static_shape(Value("", ctx.result_type()))
    if own == wanted:
        return data
    if not _is_stored(ctx, data):
        new, gone = find_inserted(own, wanted), find_inserted(wanted, own)
        if new:
            return ctx.emit("unsqueeze", data, axes=new)
        if gone:
            return ctx.emit("squeeze", data, axes=gone)
    return ctx.reshape(data, wanted)


@OPS.imports("transpose")
def import_transpose(ctx: ImportContext, input: Expr, *, axes: tuple[int, ...]) -> Expr:
    """Axes behind those that are named stay."""
    order = [*axes, *range(len(axes), ctx.rank(input))]
    return relay.transpose(input, order) if order else input


@OPS.exports("transpose")
def export_transpose(ctx: ExportContext, data: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(data).rank
    order = list(normalize_axes(axes or range(rank)[::-1], rank))
    while order and order[-1] == len(order) - 1:
        order.pop()
    if not order:
        return data
    if data.data is not None:
        return ctx.const(data.data.transpose(axes or None))
    return ctx.emit("transpose", data, axes=order)


@OPS.imports("squeeze")
def import_squeeze(ctx: ImportContext, input: Expr, *, axes: tuple[int, ...]) -> Expr:
    return relay.squeeze(input, axes) if axes else input


@OPS.exports("squeeze")
def export_squeeze(ctx: ExportContext, data: Value, *, axis: tuple[int, ...] | None) -> Value:
    lengths = ctx.static_shape(data)
    if axis is None:
        gone = [place for place, length in enumerate(lengths) if length == 1]
    else:
        gone = sorted(normalize_axes(axis, len(lengths)))
    if not gone:
        return data
    if _is_stored(ctx, data):
        return _reshape(ctx, data)
    return ctx.emit("squeeze", data, axes=gone)


def insert_axes(x: Expr, axes: Sequence[int]) -> Expr:
    """Return a tensor with axes of length 1, which are axes of the result."""
    for axis in sorted(axes):
        x = relay.expand_dims(x, axis)
    return x


@OPS.imports("unsqueeze")
def import_unsqueeze(ctx: ImportContext, input: Expr, *, axes: tuple[int, ...]) -> Expr:
    rank = ctx.rank(input) + len(axes)
    return insert_axes(input, normalize_axes(axes, rank))


@OPS.exports("expand_dims")
def export_expand_dims(ctx: ExportContext, data: Value, *, axis: int, num_newaxis: int) -> Value:
    if not num_newaxis:
        return data
    if _is_stored(ctx, data):
        return _reshape(ctx, data)
    start = normalize_axis(axis, ctx.type(data).rank + 1)
    return ctx.emit("unsqueeze", data, axes=list(range(start, start + num_newaxis)))


def _is_stored(ctx: ExportContext, x: Value) -> bool:
    """Whether a value can be stored in another shape."""
    return x.data is not None or (x.weight is not None and x.weight in ctx.used_once)

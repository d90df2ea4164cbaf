"""Tensors made, reshaped, joined and taken apart, padded, and elements repeated or moved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from math import gcd, prod
from typing import Any as AnyValue, Final, Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array, numpy_dtype
from serde.errors import Unsupported
from serde.nnef.export_context import is_spoken
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Constant, Dim, Expr, TensorType, Tuple, call, is_call, tensor_type
from serde.relay.ir.shapes import find_inserted, normalize_axes, normalize_axis
from serde.walk.expansion.tensors import fixed_shape
from serde.walk.takes import FLOATS, Takes

__all__ = ["insert_axes"]


@OPS.imports("tile")
def import_tile(ctx: Import, input: Expr, *, repeats: tuple[int, ...]) -> Expr:
    return relay.tile(input, repeats) if repeats else input


def _tile(ctx: Export, data: Value, repeats: Sequence[int]) -> Value:
    return (
        data
        if all(each == 1 for each in repeats)
        else ctx.emit("tile", data, repeats=list(repeats))
    )


@OPS.exports("tile")
def export_tile(ctx: Export, data: Value, *, reps: tuple[int, ...]) -> Value:
    rank = max(ctx.type(data).rank, len(reps))
    return _tile(ctx, _raise_rank(ctx, data, rank), (*[1] * (rank - len(reps)), *reps))


def _raise_rank(ctx: Export, x: Value, rank: int) -> Value:
    """Return a tensor with axes of length 1 before its own, a scalar too."""
    own = ctx.static_shape(x)
    return x if len(own) == rank else ctx.reshape(x, (*[1] * (rank - len(own)), *own))


@OPS.exports("broadcast_to", ignored=("shape", "dtype"))
@OPS.exports("broadcast_to_like")
def export_broadcast(ctx: Export, data: Value, *_like: Value) -> Value:
    """Return a tensor spread over the shape of the result."""
    wanted = ctx.static_shape(Value("", ctx.result_type()))
    raised = _raise_rank(ctx, data, len(wanted))
    own = ctx.static_shape(raised)
    repeats = [1 if have == length else length for have, length in zip(own, wanted, strict=True)]
    return _tile(ctx, raised, repeats)


@OPS.imports("constant")
def import_constant(
    ctx: Import, *, shape: tuple[int, ...], value: tuple[AnyValue, ...], dtype: str = "float32"
) -> Expr:
    """One value fills the shape."""
    if any(each < 0 for each in shape):
        raise Unsupported(f"a constant of shape {list(shape)}")
    if not all(isinstance(each, (bool, int, float)) for each in value):
        raise Unsupported(f"a constant of {value!r:.40}")
    data = np.asarray(value, numpy_dtype(dtype))
    size = prod(shape)
    if data.size == 1 and size != 1:
        return relay.full(Constant(data.reshape(())), shape)
    if data.size != size:
        raise Unsupported(f"{data.size} values for a constant of shape {list(shape)}")
    return Constant(data.reshape(shape))


@OPS.exports("full", ignored=("dtype",))
def export_full(ctx: Export, fill_value: Value, *, shape: tuple[Dim, ...]) -> Value:
    """A value that is computed is spread by repeating it."""
    own, wanted = ctx.type(fill_value).dtype, ctx.result_type().dtype
    if own != wanted:
        return ctx.spell(lambda x: relay.full(relay.cast(x, wanted), shape), fill_value)
    if fill_value.data is None:
        return ctx.spell(lambda x: relay.broadcast_to(x, shape), fill_value)
    return _constant(ctx, value=fill_value.data.item())


@OPS.exports("full_like")
def export_full_like(ctx: Export, data: Value, fill_value: Value) -> Value:
    type_ = ctx.result_type()
    return ctx.spell(lambda x: relay.full(x, type_.shape, type_.dtype), fill_value)


def _constant(ctx: Export, *, value: float) -> Value:
    """Return a constant of one value, of the type of the result."""
    type_ = ctx.result_type()
    return ctx.const(allocation.full(ctx.static_shape(Value("", type_)), value), type_.dtype)


for _name, _value in {"zeros": 0, "ones": 1}.items():
    OPS.exports(_name, ignored=("shape", "dtype"))(partial(_constant, value=_value))


@OPS.expands("reverse")
def expand_reverse(data: Expr, *, axis: int) -> Expr:
    """A slice that goes back."""
    length = fixed_shape(data)[axis]
    return relay.strided_slice(data, [length - 1], [-length - 1], [-1], axes=[axis])


@OPS.imports("concat")
def import_concat(ctx: Import, *values: Expr, axis: int) -> Expr:
    return relay.concatenate(Tuple(ctx.join_types(values)), axis)


@OPS.exports("concatenate")
def export_concatenate(ctx: Export, data: Sequence[Value], *, axis: int) -> Value:
    along = normalize_axis(axis, ctx.result_type().rank)
    return data[0] if len(data) == 1 else ctx.emit("concat", data, axis=along)


@OPS.imports("stack")
def import_stack(ctx: Import, *values: Expr, axis: int) -> Expr:
    return relay.stack(Tuple(ctx.join_types(values)), axis)


@OPS.exports("stack")
def export_stack(ctx: Export, data: Sequence[Value], *, axis: int) -> Value:
    return ctx.emit("stack", data, axis=normalize_axis(axis, ctx.result_type().rank))


@OPS.imports("unstack")
def import_unstack(ctx: Import, value: Expr, *, axis: int) -> list[Expr]:
    if ctx.outputs == 1:
        return [relay.squeeze(value, [axis])]
    parts = relay.split(value, ctx.outputs, axis)
    return [relay.squeeze(part, [axis]) for part in parts]


@OPS.imports("split")
def import_split(ctx: Import, value: Expr, *, axis: int, ratios: tuple[int, ...]) -> list[Expr]:
    """The lengths of the parts are as the ratios."""
    axis = normalize_axis(axis, ctx.rank(value))
    if not ratios or min(ratios) < 1:
        raise Unsupported(f"ratios: expected positive integers, found {list(ratios)}")
    if len(ratios) == 1:
        return [value]
    if len(set(ratios)) == 1:
        return list(relay.split(value, len(ratios), axis))
    length = ctx.static_shape(value)[axis]
    if length % sum(ratios):
        raise Unsupported(f"an axis of length {length} cannot be split as {list(ratios)}")
    unit = length // sum(ratios)
    cuts = [unit * each for each in accumulate(ratios[:-1])]
    return list(relay.split(value, cuts, axis))


@OPS.exports("split")
def export_split(
    ctx: Export, data: Value, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> tuple[Value, ...] | Value:
    """Parts of no elements have no ratio, and are slices."""
    along = normalize_axis(axis, ctx.type(data).rank)
    length = ctx.static_shape(data)[along]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        cuts = [length // count * index for index in range(count + 1)]
    else:
        cuts = [0, *indices_or_sections, length]
    sizes = [stop - start for start, stop in pairwise(cuts)]
    if min(sizes) < 1:
        return ctx.spell_tuple(lambda x: Tuple(_slice_parts(x, cuts, along)), data)
    unit = gcd(*sizes)
    ratios = [size // unit for size in sizes]
    return ctx.emit_tuple("split", data, outputs=len(sizes), axis=along, ratios=ratios)


def _slice_parts(x: Expr, cuts: Sequence[int], axis: int) -> list[Expr]:
    return [
        relay.strided_slice(x, [start], [stop], [1], axes=[axis]) for start, stop in pairwise(cuts)
    ]


PadWidth = tuple[tuple[int, int], ...]


@OPS.imports("pad")
def import_pad(
    ctx: Import, input: Expr, *, padding: PadWidth, border: str = "constant", value: float = 0.0
) -> Expr:
    """A side below 0 is cut off behind the padding of the others."""
    rank = ctx.rank(input)
    if len(padding) != rank:
        raise Unsupported(f"padding of {len(padding)} axes for a tensor of rank {rank}")
    wide = tuple((max(before, 0), max(behind, 0)) for before, behind in padding)
    padded = _pad(ctx, input, wide, border, value) if any(map(any, wide)) else input
    if all(before >= 0 and behind >= 0 for before, behind in padding):
        return padded
    lengths = ctx.static_shape(padded)
    begin = [max(-before, 0) for before, _ in padding]
    end = [length - max(-behind, 0) for length, (_, behind) in zip(lengths, padding, strict=True)]
    return relay.strided_slice(padded, begin, end)


def _pad(ctx: Import, x: Expr, padding: PadWidth, border: str, value: float) -> Expr:
    dtype = ctx.type(x).dtype
    if border == "constant":
        return relay.nn.pad(x, padding, ctx.const(value, dtype))
    if border == "replicate":
        return relay.nn.pad(x, padding, ctx.const(0, dtype), "edge")
    if border == "reflect":
        return relay.nn.mirror_pad(x, padding, "REFLECT")
    if border == "reflect-even":
        return relay.nn.mirror_pad(x, padding, "SYMMETRIC")
    raise Unsupported(f"border={border!r} has no values to pad with")


_BORDERS: Final = {
    "edge": "replicate",
    "reflect": "reflect",
    "REFLECT": "reflect",
    "SYMMETRIC": "reflect-even",
}


def _is_said(node: Call) -> bool:
    """Whether floats get a border of their own, or of what a literal says."""
    value, widths = node.args[1], node.attrs["pad_width"]
    if any(min(pair) < 0 for pair in widths):
        return False
    if node.attrs["pad_mode"] != "constant":
        return True
    return isinstance(value, Constant) and is_spoken(_filler(value.data, tensor_type(node.args[0])))


def _filler(value: Array, type_: TensorType) -> Array:
    return value.astype(numpy_dtype(type_.dtype))


@OPS.exports("nn.pad", takes=Takes(data=FLOATS), when=_is_said)
def export_pad(
    ctx: Export,
    data: Value,
    pad_val: Value,
    *,
    pad_width: PadWidth,
    pad_mode: Literal["constant", "edge", "reflect"],
) -> Value:
    if pad_mode != "constant":
        return export_mirror_pad(ctx, data, mode=pad_mode, pad_width=pad_width)
    value = _filler(ctx.constant(pad_val), ctx.type(data))
    return ctx.emit("pad", data, padding=list(pad_width), value=value.item())


@OPS.exports("nn.mirror_pad", takes=Takes(data=FLOATS))
def export_mirror_pad(ctx: Export, data: Value, *, mode: str, pad_width: PadWidth) -> Value:
    return ctx.emit("pad", data, padding=list(pad_width), border=_BORDERS[mode])


@OPS.imports("reshape")
def import_reshape(
    ctx: Import, input: Expr, *, shape: tuple[int, ...], axis_start: int = 0, axis_count: int = -1
) -> Expr:
    """The axes named take a shape in which 0 keeps the length there is and -1 is the rest."""
    lengths = ctx.type(input).shape
    rank = len(lengths)
    stop = rank if axis_count == -1 else axis_start + axis_count
    if not 0 <= axis_start <= stop <= rank:
        raise Unsupported(f"axes {axis_start} to {stop} are outside a tensor of rank {rank}")
    middle: list[Dim] = []
    for index, length in enumerate(shape, axis_start):
        if length == 0 and index >= rank:
            raise Unsupported(f"a 0 at place {index} of a shape, of a tensor of rank {rank}")
        middle.append(lengths[index] if length == 0 else length)
    found = relay.reshape(input, [*lengths[:axis_start], *middle, *lengths[stop:]], allowzero=True)
    return _product_of_rows(input, found) or found


def _product_of_rows(flat: Expr, found: Expr) -> Expr | None:
    """Return the product over more axes, with its bias, of which the rows were one matrix."""
    product, bias = flat, None
    if is_call(flat, "nn.bias_add"):
        product, bias = flat.args
    if not is_call(product, "nn.dense", "nn.matmul") or not is_call(product.args[0], "reshape"):
        return None
    rows, weight = product.args
    (data,) = product.args[0].args
    shape = tensor_type(data).shape
    expected = (*shape[:-1], tensor_type(flat).shape[-1])
    if tensor_type(found).shape != expected or tensor_type(rows).shape[-1:] != shape[-1:]:
        return None
    name = "nn.dense" if is_call(product, "nn.dense") else "nn.matmul"
    whole = call(name, data, weight, **product.attrs)
    return whole if bias is None else relay.nn.bias_add(whole, bias, axis=-1)


@OPS.exports("reshape", "contrib_reverse_reshape", ignored=("newshape", "allowzero"))
@OPS.exports("nn.batch_flatten")
def _reshape(ctx: Export, data: Value) -> Value:
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
def import_transpose(ctx: Import, input: Expr, *, axes: tuple[int, ...]) -> Expr:
    """Axes behind those that are named stay."""
    order = [*axes, *range(len(axes), ctx.rank(input))]
    return relay.transpose(input, order) if order else input


@OPS.exports("transpose")
def export_transpose(ctx: Export, data: Value, *, axes: tuple[int, ...] | None) -> Value:
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
def import_squeeze(ctx: Import, input: Expr, *, axes: tuple[int, ...]) -> Expr:
    return relay.squeeze(input, axes) if axes else input


@OPS.exports("squeeze")
def export_squeeze(ctx: Export, data: Value, *, axis: tuple[int, ...] | None) -> Value:
    lengths = ctx.static_shape(data)
    if axis is None:
        gone = [index for index, length in enumerate(lengths) if length == 1]
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
def import_unsqueeze(ctx: Import, input: Expr, *, axes: tuple[int, ...]) -> Expr:
    rank = ctx.rank(input) + len(axes)
    return insert_axes(input, normalize_axes(axes, rank))


@OPS.exports("expand_dims")
def export_expand_dims(ctx: Export, data: Value, *, axis: int, num_newaxis: int) -> Value:
    if not num_newaxis:
        return data
    if _is_stored(ctx, data):
        return _reshape(ctx, data)
    start = normalize_axis(axis, ctx.type(data).rank + 1)
    return ctx.emit("unsqueeze", data, axes=list(range(start, start + num_newaxis)))


def _is_stored(ctx: Export, x: Value) -> bool:
    """Whether a value can be stored in another shape."""
    return x.data is not None or (x.weight is not None and x.weight in ctx.used_once)

"""The same elements in another order: transposed, reversed, rolled, rotated."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TensorType, call, normalize_axes, normalize_axis
from serde.relay.lowering.lengths import bounded_lengths
from serde.walk.pairs import reads


@OPS.imports("transpose")
def import_transpose(ctx: Import, data: Expr, *, axes: tuple[int, ...] = ()) -> Expr:
    return relay.transpose(data, axes or None)


@OPS.imports("SwapAxis")
def import_swap_axis(ctx: Import, data: Expr, *, dim1: int = 0, dim2: int = 0) -> Expr:
    rank = ctx.type(data).rank
    order = list(range(rank))
    first, second = normalize_axis(dim1, rank), normalize_axis(dim2, rank)
    order[first], order[second] = second, first
    return relay.transpose(data, order)


@OPS.imports("_np_moveaxis")
def import_moveaxis(
    ctx: Import, a: Expr, *, source: tuple[int, ...] | int, destination: tuple[int, ...] | int
) -> Expr:
    rank = ctx.type(a).rank
    sources, targets = (
        normalize_axes((axes,) if isinstance(axes, int) else axes, rank)
        for axes in (source, destination)
    )
    if len(sources) != len(targets):
        raise Unsupported(f"source names {len(sources)} axes, destination {len(targets)}")
    order = [axis for axis in range(rank) if axis not in sources]
    for target, source_axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, source_axis)
    return relay.transpose(a, order)


def axes_last(ctx: Import, data: Expr, *axes: int) -> Expr:
    """Return `data` with some axes moved behind the others, in the order given."""
    rank = ctx.type(data).rank
    named = [normalize_axis(axis, rank) for axis in axes]
    order = [*(axis for axis in range(rank) if axis not in named), *named]
    return data if order == list(range(rank)) else relay.transpose(data, order)


MOST_TRANSPOSED = 6
"""Rank of what MXNet transposes, at most."""


@OPS.exports("transpose")
def export_transpose(ctx: Export, data: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(data).rank
    order = tuple(reversed(range(rank))) if axes is None else normalize_axes(axes, rank)
    if rank > MOST_TRANSPOSED:
        return ctx.spell(lambda x: _one_by_one(x, order), data)
    return data if rank < 2 else ctx.emit_bytes("transpose", data, axes=order)


def _one_by_one(data: Expr, order: Sequence[int]) -> Expr:
    """Bring the axes to the front, the last one first."""
    type_ = data.checked_type
    if not isinstance(type_, TensorType) or type_.concrete_shape is None:
        raise Unsupported(f"needs a fixed shape, found {type_!r}")
    lengths, axes = list(type_.concrete_shape), list(range(type_.rank))
    for axis in reversed(order):
        index = axes.index(axis)
        before, after = prod(lengths[:index]), prod(lengths[index + 1 :])
        parts = relay.reshape(data, [before, lengths[index], after])
        data = relay.transpose(parts, [1, 0, 2])
        axes.insert(0, axes.pop(index))
        lengths.insert(0, lengths.pop(index))
    return relay.reshape(data, lengths)


@OPS.imports("reverse", "_npi_flip")
def import_reverse(ctx: Import, data: Expr, *, axis: tuple[int, ...] | int) -> Expr:
    for each in (axis,) if isinstance(axis, int) else axis:
        data = relay.reverse(data, each)
    return data


@OPS.exports("reverse")
def export_reverse(ctx: Export, data: Value, *, axis: int) -> Value:
    return ctx.emit_bytes("reverse", data, axis=(axis % ctx.type(data).rank,))


@OPS.imports("_np_roll")
def import_roll(
    ctx: Import,
    data: Expr,
    *,
    shift: tuple[int, ...] | int | None = None,
    axis: tuple[int, ...] | int | None = None,
) -> Expr:
    """Without axes the flat tensor is moved; one shift may serve several axes."""
    if shift is None:
        raise Unsupported("a roll without shift")
    steps = (shift,) if isinstance(shift, int) else shift
    if axis is None:
        if len(steps) != 1:
            raise Unsupported(f"{len(steps)} shifts, but no axes")
        if not ctx.type(data).rank:
            return data
        flat = call("serde.roll", relay.reshape(data, (-1,)), shift=steps, axes=(0,))
        return flat if ctx.type(data).rank == 1 else relay.reshape_like(flat, data)
    axes = (axis,) if isinstance(axis, int) else axis
    return call(
        "serde.roll", data, shift=steps * len(axes) if len(steps) == 1 else steps, axes=axes
    )


@OPS.imports("_npi_rot90")
def import_rot90(
    ctx: Import, data: Expr, *, k: int = 1, axes: tuple[int, ...] | None = None
) -> Expr:
    if axes is None or len(axes) != 2:
        raise Unsupported(f"expected two axes to turn, found {axes}")
    rank = ctx.type(data).rank
    first, second = normalize_axes(axes, rank)
    turns = k % 4
    if turns == 2:
        return relay.reverse(relay.reverse(data, first), second)
    if turns == 0:
        return data
    order = list(range(rank))
    order[first], order[second] = second, first
    if turns == 1:
        return relay.transpose(relay.reverse(data, second), order)
    return relay.reverse(relay.transpose(data, order), second)


@OPS.imports("SequenceReverse")
def import_sequence_reverse(
    ctx: Import,
    data: Expr,
    sequence_length: Expr | None = None,
    *,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> Expr:
    if not use_sequence_length or sequence_length is None:
        return relay.reverse(data, 0)
    lengths = relay.cast(sequence_length, "int32")
    return relay.reverse_sequence(data, lengths, seq_axis=0, batch_axis=1)


@OPS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: Export, data: Value, seq_lengths: Value, *, seq_axis: int, batch_axis: int
) -> Value:
    """MXNet has the sequence along axis 0, the batch along axis 1, lengths in the data's dtype."""
    type_ = ctx.type(data)
    seq, batch = seq_axis % type_.rank, batch_axis % type_.rank
    order = [seq, batch, *(i for i in range(type_.rank) if i not in (seq, batch))]
    narrow = type_.dtype in ("bool", "int8", "uint8", "float16")
    wide = ("float32" if type_.dtype == "float16" else "int32") if narrow else type_.dtype
    moved = ctx.spell(lambda x: relay.transpose(relay.cast(x, wide), order), data)
    bounded = ctx.spell(lambda n, x: bounded_lengths(n, x, 0), seq_lengths, moved)
    reversed_ = ctx.emit(
        "SequenceReverse", moved, ctx.cast(bounded, wide), use_sequence_length=True
    )
    back = [order.index(i) for i in range(type_.rank)]
    return ctx.spell(
        lambda x: relay.cast(relay.transpose(x, back), type_.dtype),
        ctx.typed(reversed_, ctx.type(moved)),
    )


OPS.pairs(reads("_np_transpose", "transpose", axes=None))

"""Sequences of several lengths in one tensor without padding: packed, and layers over them.

Relay's layers take padded sequences and their lengths, so these are kept beside what is packed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.ops.index.slicing import cut
from serde.torch.ops.recurrent.layer import MODES, Mode, Stack, run_stack
from serde.torch.ops.table import OPS, Import, Scalar, SymInt
from serde.torch.sequences import PackedSequences


def _count_times(ctx: Import, x: Expr) -> Expr:
    """Return 0, 1, ... for the times of a tensor, in int64."""
    length = ctx.size(x, 0)
    if isinstance(length, int):
        return relay.const(allocation.arange(length), "int64")
    zero, one = relay.const(0, "int64"), relay.const(1, "int64")
    return relay.arange(zero, length, one, dtype="int64")


def _find_inside(ctx: Import, padded: Expr, lengths: Expr) -> Expr:
    """Return for each time and sequence whether it lies before the end."""
    times = relay.expand_dims(_count_times(ctx, padded), axis=1)
    return relay.less(times, relay.expand_dims(relay.cast(lengths, "int64"), axis=0))


def _longest(ctx: Import, lengths: Expr) -> SymInt:
    found = ctx.as_number(relay.cast(relay.max(lengths), "int64"))
    return found if isinstance(found, Expr) else int(found.real)


@OPS.imports("aten::_pack_padded_sequence")
def import_pack_padded_sequence(
    ctx: Import, input: Expr, lengths: Expr, *, batch_first: bool
) -> tuple[Expr, Expr]:
    """The elements one time after another, and how many sequences each time has.

    All sequences have a first element, so that the first number is that of sequences.
    """
    order = [1, 0, *range(2, ctx.type(input).rank)]
    padded = relay.transpose(input, axes=order) if batch_first else input
    inside = _find_inside(ctx, padded, lengths)
    places = relay.transpose(relay.argwhere(inside), axes=[1, 0])
    data = ctx.fold(relay.gather_nd(padded, places))
    counts = ctx.fold(relay.sum(relay.cast(inside, "int64"), axis=[1]))
    counts = cut(ctx, counts, 0, 0, _longest(ctx, lengths))
    first = ctx.shape_vector([ctx.size(padded, 1)])
    rest = relay.strided_slice(counts, begin=[1], end=[2**31 - 1], strides=[1], axes=[0])
    ctx.packed[data] = PackedSequences(ctx.fold(padded), lengths)
    return data, relay.concatenate([first, rest], axis=0)


def _sequences(ctx: Import, data: Expr) -> PackedSequences:
    found = ctx.packed.get(data)
    if found is None:
        raise Unsupported("packed sequences that something was done to")
    return found


def _run(
    ctx: Import, mode: Mode, stack: Stack, data: Expr, states: Sequence[Expr]
) -> tuple[Expr, ...]:
    given = _sequences(ctx, data)
    lengths = ctx.cast(given.lengths, "int32")
    every, *final = run_stack(ctx, mode, stack, given.padded, states, lengths)
    inside = _find_inside(ctx, every, given.lengths)
    places = relay.transpose(relay.argwhere(inside), axes=[1, 0])
    packed = ctx.fold(relay.gather_nd(every, places))
    ctx.packed[packed] = PackedSequences(ctx.fold(every), given.lengths)
    return packed, *final


@OPS.imports("aten::lstm.data", ignored=("batch_sizes",))
def import_lstm_of_packed(
    ctx: Import, data: Expr, *, hx: tuple[Expr, ...], stack: Stack
) -> tuple[Expr, ...]:
    return _run(ctx, MODES["lstm"], stack, data, hx)


def _make_importer(mode: Mode) -> Callable[..., tuple[Expr, ...]]:
    def import_layers_of_packed(
        ctx: Import, data: Expr, hx: Expr, *, stack: Stack
    ) -> tuple[Expr, ...]:
        return _run(ctx, mode, stack, data, [hx])

    return import_layers_of_packed


for _name in ("gru", "rnn_tanh", "rnn_relu"):
    OPS.imports(f"aten::{_name}.data", ignored=("batch_sizes",))(_make_importer(MODES[_name]))


@OPS.imports("aten::_pad_packed_sequence", ignored=("batch_sizes",))
def import_pad_packed_sequence(
    ctx: Import, data: Expr, *, batch_first: bool, padding_value: Scalar, total_length: SymInt
) -> tuple[Expr, Expr]:
    """As long as the longest sequence, or as asked for."""
    given = _sequences(ctx, data)
    padded = given.padded
    whole = ctx.type(padded).shape[0]
    if isinstance(total_length, int) and total_length <= 0:
        total_length = _longest(ctx, given.lengths)
    if isinstance(total_length, Expr):
        padded = cut(ctx, padded, 0, 0, total_length)
    elif total_length != whole:
        raise Unsupported(f"sequences padded to {total_length}, which were so to {whole}")
    inside = _find_inside(ctx, padded, given.lengths)
    behind = ctx.type(padded).rank - 2
    mask = relay.expand_dims(inside, axis=2, num_newaxis=behind) if behind else inside
    found = relay.where(mask, padded, ctx.scalar(padding_value, ctx.dtype(padded)))
    if batch_first:
        found = relay.transpose(found, axes=[1, 0, *range(2, 2 + behind)])
    return found, given.lengths

"""Elements chosen by masks and by lengths of sequences."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.index.gather import as_index
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, is_float
from serde.relay.lowering.lengths import LAST


@OPS.imports("SequenceMask")
def import_sequence_mask(
    ctx: Import,
    data: Expr,
    sequence_length: Expr | None = None,
    *,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
) -> Expr:
    if not use_sequence_length or sequence_length is None:
        return data
    return relay.sequence_mask(data, as_index(ctx, sequence_length), mask_value=value, axis=axis)


@OPS.exports("sequence_mask")
def export_sequence_mask(
    ctx: Export, data: Value, valid_length: Value, *, mask_value: float, axis: int
) -> Value:
    lengths = valid_length
    if is_float(ctx.type(lengths).dtype):
        lengths = ctx.spell(relay.ceil, lengths)
    lengths = ctx.cast(lengths, ctx.type(data).dtype)
    return ctx.emit(
        "SequenceMask", data, lengths, use_sequence_length=True, value=mask_value, axis=axis
    )


@OPS.imports("SequenceLast")
def import_sequence_last(
    ctx: Import,
    data: Expr,
    sequence_length: Expr | None = None,
    *,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> Expr:
    """The batch is the other one of the two first axes."""
    if not use_sequence_length or sequence_length is None:
        last = relay.strided_slice(data, [-1], [LAST], [1], axes=[axis])
        return relay.squeeze(last, (axis,))
    lengths = relay.cast(sequence_length, "int32")
    if axis == 0:
        data = relay.transpose(data, (1, 0, *range(2, ctx.type(data).rank)))
    indices = relay.subtract(lengths, relay.const(np.int32(1)))
    return relay.take(data, indices, axis=1, batch_dims=1, mode="clip")


def as_mask(ctx: Import, mask: Expr) -> Expr:
    """Return a mask of any dtype as bool."""
    if ctx.type(mask).dtype == "bool":
        return mask
    return relay.not_equal(mask, scalar_like(ctx, mask, 0))


def _broadcast_mask(ctx: Import, mask: Expr, rank: int, start_axis: int) -> Expr:
    """Return a mask of some axes, the first of them `start_axis`, that broadcasts over all."""
    behind = rank - start_axis - ctx.type(mask).rank
    if behind < 0:
        raise Unsupported(f"a mask from axis {start_axis} on is too large for rank {rank}")
    return relay.expand_dims(mask, ctx.type(mask).rank, behind) if behind else mask


@OPS.imports("_npi_boolean_mask_assign_scalar")
def import_boolean_mask_assign_scalar(
    ctx: Import, data: Expr, mask: Expr, *, value: float, start_axis: int = 0
) -> Expr:
    """MXNet writes into the data; here the result is a new tensor."""
    marks = _broadcast_mask(ctx, as_mask(ctx, mask), ctx.type(data).rank, start_axis)
    return relay.where(marks, scalar_like(ctx, data, value), data)


@OPS.imports("_npi_boolean_mask_assign_tensor")
def import_boolean_mask_assign_tensor(
    ctx: Import, data: Expr, mask: Expr, value: Expr, *, start_axis: int = 0
) -> Expr:
    """The value has an entry for each mark, in place of the mask's axes, or one for all marks."""
    rank, covered = ctx.type(data).rank, ctx.type(mask).rank
    given = ctx.type(value)
    marks = as_mask(ctx, mask)
    spread = _broadcast_mask(ctx, marks, rank, start_axis)
    if given.size == 1:
        return relay.where(spread, relay.reshape(value, ()), data)
    if given.rank == rank - covered + 1 and given.shape[start_axis] != 1:
        if given.shape[start_axis] == 0:
            return data
        value = _by_mark(ctx, marks, value, start_axis)
    elif given.rank == rank - covered + 1:
        value = relay.squeeze(value, (start_axis,))
    elif start_axis and given.rank != rank - covered:
        raise Unsupported(f"a value {given!r} behind axis {start_axis} of {ctx.type(data)!r}")
    if ctx.type(value).rank != rank and start_axis:
        value = relay.expand_dims(value, start_axis, covered)
    return relay.where(spread, value, data)


def _by_mark(ctx: Import, marks: Expr, value: Expr, axis: int) -> Expr:
    """Return the entry of each mark at its place, whatever elsewhere.

    In front of the first entry goes an empty one, for elements before the first mark.
    """
    flat = relay.reshape(marks, (-1,))
    number = relay.cumsum(relay.cast(flat, "int64"), axis=0)
    widths = [(int(index == axis), 0) for index in range(ctx.type(value).rank)]
    entries = relay.nn.pad(value, widths, scalar_like(ctx, value, 0))
    return relay.take(entries, relay.reshape_like(number, marks), axis=axis, mode="fast")

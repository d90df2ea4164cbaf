"""Elements that a mask marks, or that differ from others: their number depends on values."""

from __future__ import annotations

from collections.abc import Sequence

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.arithmetic import scalar_like
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


def _marks(ctx: ImportContext, mask: Expr) -> Expr:
    """Return a mask of any dtype as bool."""
    if ctx.type(mask).dtype == "bool":
        return mask
    return relay.not_equal(mask, scalar_like(ctx, mask, 0))


@OPS.imports("_contrib_boolean_mask")
def import_boolean_mask(ctx: ImportContext, data: Expr, index: Expr, *, axis: int = 0) -> Expr:
    if axis:
        raise Unsupported(f"axis={axis}: MXNet masks axis 0 alone")
    return call("serde.compress", data, _marks(ctx, index), axis=0)


@OPS.imports("_npx_nonzero")
def import_nonzero(ctx: ImportContext, x: Expr) -> Expr:
    """One row an element; of a scalar as of a vector."""
    data = x if ctx.type(x).rank else relay.reshape(x, (1,))
    return relay.transpose(call("serde.nonzero", data), [1, 0])


@OPS.imports("_npi_unique")
def import_np_unique(
    ctx: ImportContext,
    data: Expr,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Sequence[Expr]:
    given = data if ctx.type(data).rank else relay.reshape(data, (1,))
    found = call("serde.unique", given, axis=axis, sorted=True)
    wanted = (True, return_index, return_inverse, return_counts)
    return [relay.TupleGetItem(found, place) for place, each in enumerate(wanted) if each]


def _spread(ctx: ImportContext, mask: Expr, rank: int, start_axis: int) -> Expr:
    """Return a mask of some axes, the first of them `start_axis`, that broadcasts over all."""
    behind = rank - start_axis - ctx.type(mask).rank
    if behind < 0:
        raise Unsupported(f"a mask from axis {start_axis} on is too large for rank {rank}")
    return relay.expand_dims(mask, ctx.type(mask).rank, behind) if behind else mask


@OPS.imports("_npi_boolean_mask_assign_scalar")
def import_boolean_mask_assign_scalar(
    ctx: ImportContext, data: Expr, mask: Expr, *, value: float, start_axis: int = 0
) -> Expr:
    """MXNet writes into the data; here the result is a new tensor."""
    marks = _spread(ctx, _marks(ctx, mask), ctx.type(data).rank, start_axis)
    return relay.where(marks, scalar_like(ctx, data, value), data)


@OPS.imports("_npi_boolean_mask_assign_tensor")
def import_boolean_mask_assign_tensor(
    ctx: ImportContext, data: Expr, mask: Expr, value: Expr, *, start_axis: int = 0
) -> Expr:
    """The value has an entry for each mark, in place of the mask's axes, or one for all marks."""
    rank, covered = ctx.type(data).rank, ctx.type(mask).rank
    given = ctx.type(value)
    marks = _marks(ctx, mask)
    spread = _spread(ctx, marks, rank, start_axis)
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


def _by_mark(ctx: ImportContext, marks: Expr, value: Expr, axis: int) -> Expr:
    """Return the entry of each mark at its place, whatever elsewhere.

    In front of the first entry goes an empty one, for places before the first mark.
    """
    flat = relay.reshape(marks, (-1,))
    number = relay.cumsum(relay.cast(flat, "int64"), axis=0)
    widths = [(int(place == axis), 0) for place in range(ctx.type(value).rank)]
    entries = relay.nn.pad(value, widths, scalar_like(ctx, value, 0))
    return relay.take(entries, relay.reshape_like(number, marks), axis=axis, mode="fast")

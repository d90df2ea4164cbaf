"""Elements repeated, or put in another order."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.shape.broadcast import tile
from serde.coreml.mlprogram.ops.shape.reshape import expand_dims
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.type_domains import MOVE_DTYPES, NUMBERS_OR_BOOL, cast_to, emit_in
from serde.coreml.value import MAX_RANK, Value
from serde.relay.ir.expr import Expr, tensor_type
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.lowering.shape import decompose_repeat
from serde.walk.pairs import reads


@OPS.imports("tile")
def import_tile(ctx: ImportContext, x: Expr, reps: Expr) -> Expr:
    if ctx.is_constant(reps):
        return relay.tile(x, ctx.ints(reps))
    return call("dyn.tile", x, reps)


@OPS.exports("tile")
def export_tile(ctx: ExportContext, data: Value, *, reps: tuple[int, ...]) -> Value:
    rank = ctx.type(data).rank
    data = expand_dims(ctx, data, range(len(reps) - rank)) if len(reps) > rank else data
    return tile(ctx, data, [*[1] * (rank - len(reps)), *reps])


@OPS.exports("dyn.tile")
def export_dyn_tile(ctx: ExportContext, data: Value, reps: Value) -> Value:
    rank, count = ctx.type(data).rank, ctx.static_lengths(reps, [0])[0]
    if count > rank:
        data = expand_dims(ctx, data, range(count - rank))
    if count < rank:
        ones = ctx.const(allocation.ones(rank - count), "int32")
        reps = ctx.emit("concat", TensorType((rank,), "int32"), values=[ones, reps], axis=0)
    return emit_in(ctx, NUMBERS_OR_BOOL, "tile", {"x": data}, reps=reps)


@OPS.expands("repeat")
def expand_repeat(data: Expr, *, repeats: int, axis: int | None) -> Expr:
    """Where there is no room for one more axis, each entry is looked up."""
    type_ = tensor_type(data)
    length = None if axis is None else type_.shape[axis]
    if not isinstance(length, int) or type_.rank < MAX_RANK:
        return decompose_repeat(data, repeats=repeats, axis=axis)
    places = allocation.repeat(allocation.arange(length, dtype=np.int32), repeats)
    return relay.take(data, relay.Constant(places), axis=axis)


@OPS.imports("reverse", since=(1, 17))
def import_reverse(
    ctx: ImportContext, x: Expr, *, axes: tuple[int, ...] | int | None = None
) -> Expr:
    named = axes if isinstance(axes, tuple) else (axes,)
    for axis in range(ctx.type(x).rank) if axes is None else named:
        x = relay.reverse(x, axis=axis)
    return x


@OPS.exports("reverse")
def export_reverse(ctx: ExportContext, data: Value, *, axis: int | None) -> Value:
    return emit_in(ctx, MOVE_DTYPES, "reverse", {"x": data}, axes=[0 if axis is None else axis])


OPS.pairs(
    reads(
        "reverse_sequence", "reverse_sequence", since=(1, 17), operands="x lengths", seq_axis=0,
        batch_axis=0,
    ),
)  # fmt: skip


@OPS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: ExportContext, data: Value, seq_lengths: Value, *, seq_axis: int, batch_axis: int
) -> Value:
    """MIL defines lengths from 0 to that of the axis only."""
    length = ctx.type(data).shape[seq_axis]
    lengths = cast_to(ctx, seq_lengths, "int32")
    if isinstance(length, int):
        first, last = relay.const(0, "int32"), relay.const(length, "int32")
        lengths = ctx.spell(lambda x: relay.minimum(relay.maximum(x, first), last), lengths)
    return emit_in(
        ctx,
        MOVE_DTYPES,
        "reverse_sequence",
        {"x": data},
        lengths=lengths,
        seq_axis=seq_axis,
        batch_axis=batch_axis,
    )

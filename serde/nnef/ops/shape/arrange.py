"""Elements that are repeated."""

from __future__ import annotations

from collections.abc import Sequence

import serde.relay as relay
from serde.nnef.export_context import ExportContext, Value
from serde.nnef.import_context import ImportContext
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr

__all__: list[str] = []


@OPS.imports("tile")
def import_tile(ctx: ImportContext, input: Expr, *, repeats: tuple[int, ...]) -> Expr:
    return relay.tile(input, repeats) if repeats else input


def _tile(ctx: ExportContext, data: Value, repeats: Sequence[int]) -> Value:
    return (
        data
        if all(each == 1 for each in repeats)
        else ctx.emit("tile", data, repeats=list(repeats))
    )


@OPS.exports("tile")
def export_tile(ctx: ExportContext, data: Value, *, reps: tuple[int, ...]) -> Value:
    rank = max(ctx.type(data).rank, len(reps))
    return _tile(ctx, _raise_rank(ctx, data, rank), (*[1] * (rank - len(reps)), *reps))


def _raise_rank(ctx: ExportContext, x: Value, rank: int) -> Value:
    """Return a tensor with axes of length 1 before its own, a scalar too."""
    own = ctx.static_shape(x)
    return x if len(own) == rank else ctx.reshape(x, (*[1] * (rank - len(own)), *own))


@OPS.exports("broadcast_to", ignored=("shape", "dtype"))
@OPS.exports("broadcast_to_like")
def export_broadcast(ctx: ExportContext, data: Value, *_like: Value) -> Value:
    """Return a tensor spread over the shape of the result."""
    wanted = ctx.static_shape(Value("", ctx.result_type()))
    raised = _raise_rank(ctx, data, len(wanted))
    own = ctx.static_shape(raised)
    repeats = [1 if have == length else length for have, length in zip(own, wanted, strict=True)]
    return _tile(ctx, raised, repeats)

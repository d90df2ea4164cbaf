"""Windows that slide over a tensor."""

from __future__ import annotations

import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.shape.reshape import transpose
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.type_domains import MOVE_DTYPES, NUMBERS, cast_to, compute_dtype
from serde.coreml.value import Value
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import normalize_axis
from serde.relay.ir.types import TensorType


@OPS.imports("sliding_windows", since=(1, 17))
def import_sliding_windows(
    ctx: ImportContext, x: Expr, *, axis: int, size: int, stride: int = 1
) -> Expr:
    """The places within a window lie behind its number; in Relay, at the end."""
    rank = ctx.type(x).rank
    along = normalize_axis(axis, rank)
    order = [*(each for each in range(rank) if each != along), along]
    moved = relay.transpose(x, axes=order) if along < rank - 1 else x
    windows = relay.sliding_window(moved, -1, [size], [stride])
    if along == rank - 1:
        return windows
    return relay.transpose(windows, axes=[*range(along), rank - 1, rank, *range(along, rank - 1)])


@OPS.exports("sliding_window")
def export_sliding_window(
    ctx: ExportContext,
    data: Value,
    *,
    axis: int,
    window_shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> Value:
    """Each axis becomes two; those within the windows then go to the end."""
    dtype, rank = ctx.type(data).dtype, ctx.type(data).rank
    first = axis % rank
    work = compute_dtype(ctx, dtype, MOVE_DTYPES if ctx.version >= 17 else NUMBERS)
    found = cast_to(ctx, data, work)
    for place in reversed(range(first, rank)):
        size, stride = window_shape[place - first], strides[place - first]
        dims: list[Dim] = list(ctx.type(found).shape)
        dims[place : place + 1] = [(dims[place] - size) // stride + 1, size]
        found = ctx.emit(
            "sliding_windows", TensorType(dims, work), x=found, axis=place, size=size, stride=stride
        )
    last = rank + len(window_shape)
    order = [*range(first), *range(first, last, 2), *range(first + 1, last, 2)]
    return cast_to(ctx, transpose(ctx, found, order), dtype)

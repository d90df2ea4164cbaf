"""Windows along axes."""

from __future__ import annotations

import serde.allocation as allocation
import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr


@OPS.exports("sliding_window")
def export_sliding_window(
    ctx: ExportContext,
    data: Value,
    *,
    axis: int,
    window_shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> Value:
    """One axis after the other is looked up at the indices of its windows."""
    rank = ctx.type(data).rank
    first = axis % rank
    lengths = ctx.static_lengths(data, range(first, rank))
    count = len(lengths)

    def build(x: Expr) -> Expr:
        for i, (length, size, step) in enumerate(zip(lengths, window_shape, strides, strict=True)):
            starts = allocation.arange((length - size) // step + 1) * step
            indices = relay.Constant(allocation.outer_sum(starts, allocation.arange(size)))
            x = relay.take(x, indices, axis=first + 2 * i, mode="clip")
        order = [*range(first), *range(first, rank + count, 2), *range(first + 1, rank + count, 2)]
        return relay.transpose(x, order)

    return ctx.spell(build, data)

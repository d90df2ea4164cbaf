"""Images put together from columns of their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS
from serde.relay.ir.dims import Dim, product
from serde.relay.ir.shapes import split_padding
from serde.relay.op.shape.columns import Columns

__all__: list[str] = []


@OPS.exports("serde.col2im")
def export_col2im(ctx: ExportContext, data: Value, *, columns: Columns) -> Value:
    """Each place of an image adds up the elements of blocks that lie there."""
    te, tir = ctx.framework.te, ctx.framework.tir
    rank, dtype = len(columns.block_shape), ctx.type(data).dtype
    steps, apart = columns.strides or (1,) * rank, columns.dilation or (1,) * rank
    before, after = split_padding(columns.padding, rank)
    batch, rows, _ = ctx.named_shape(data)
    counts: list[Dim] = [
        (n + b + a - d * (k - 1) - 1) // s + 1
        for n, k, s, d, b, a in zip(
            columns.image_shape, columns.block_shape, steps, apart, before, after, strict=True
        )
    ]
    size = product(columns.block_shape)
    shape = ctx.wide(ctx.dims([batch, rows // size, *columns.image_shape]))
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype

    def col2im(x: AnyValue, blocks: Sequence[AnyValue]) -> AnyValue:
        inner = [te.reduce_axis((0, length)) for length in ctx.wide(columns.block_shape)]

        def one(image: AnyValue, channel: AnyValue, *places: AnyValue) -> AnyValue:
            element: AnyValue = 0
            block: AnyValue = 0
            hits = []
            for axis in range(rank):
                offset = places[axis] + before[axis] - inner[axis] * apart[axis]
                number = tir.floordiv(offset, steps[axis])
                hits += [
                    tir.floormod(offset, steps[axis]) == 0,
                    number >= 0,
                    number < blocks[axis],
                ]
                element = element * columns.block_shape[axis] + inner[axis]
                block = block * blocks[axis] + number
            inside = hits[0]
            for each in hits[1:]:
                inside = tir.And(inside, each)
            found = x(image, channel * size + element, block).astype(wide)
            kept = tir.if_then_else(inside, found, tir.const(0, wide))
            return te.sum(kept, axis=inner)

        return te.compute(shape, one, name="col2im")

    made = ctx.emit_te(col2im, data, ctx.dims(counts))
    return made if wide == dtype else ctx.emit("astype", made, dtype)

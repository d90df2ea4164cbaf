"""Running sums and products."""

from __future__ import annotations

import serde.relay as relay
from serde.coreml.mlprogram.operators import NUMBERS, cast_to, compute_dtype, emit_in
from serde.coreml.mlprogram.ops.shape.reshape import reshape
from serde.coreml.mlprogram.ops.table import OPS, Export, Value
from serde.relay.ir.types import TensorType
from serde.walk.expansion.tensors import running
from serde.walk.pairs import reads


@OPS.exports("serde.cumsum")
def export_signed_cumsum(
    ctx: Export, data: Value, *, axis: int, exclusive: bool, reverse: bool
) -> Value:
    place = axis % ctx.type(data).rank
    tensors = {"x": data}
    return emit_in(
        ctx, NUMBERS, "cumsum", tensors, axis=place, exclusive=exclusive, reverse=reverse
    )


@OPS.exports("cumsum", ignored=("dtype",))
def export_cumsum(ctx: Export, data: Value, *, axis: int | None, exclusive: bool) -> Value:
    """No axis stands for the flat tensor."""
    result = ctx.result_type()
    work = compute_dtype(ctx, result.dtype, NUMBERS)
    x = cast_to(ctx, data if axis is not None else reshape(ctx, data, result.shape), work)
    place = 0 if axis is None else axis % result.rank
    found = ctx.emit(
        "cumsum",
        TensorType(result.shape, work),
        x=x,
        axis=place,
        exclusive=exclusive,
        reverse=False,
    )
    return cast_to(ctx, found, result.dtype)


OPS.expands("cumprod")(running(relay.multiply, 1))


OPS.pairs(reads("cumsum", "serde.cumsum", axis=0, exclusive=False, reverse=False))

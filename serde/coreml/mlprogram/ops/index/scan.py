"""Running sums and products."""

from __future__ import annotations

from typing import Any as AnyValue

import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.shape.reshape import reshape
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.type_domains import NUMBERS, cast_to, compute_dtype, emit_in
from serde.coreml.value import Value
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType


@OPS.imports("cumsum")
def import_cumsum(
    ctx: ImportContext, x: Expr, *, axis: int = 0, exclusive: bool = False, reverse: bool = False
) -> Expr:
    return call("serde.cumsum", x, axis=axis, exclusive=exclusive, reverse=reverse)


@OPS.exports("serde.cumsum")
def export_signed_cumsum(
    ctx: ExportContext, data: Value, *, axis: int, exclusive: bool, reverse: bool
) -> Value:
    place = axis % ctx.type(data).rank
    tensors = {"x": data}
    return emit_in(
        ctx, NUMBERS, "cumsum", tensors, axis=place, exclusive=exclusive, reverse=reverse
    )


@OPS.exports("cumsum")
def export_cumsum(
    ctx: ExportContext, data: Value, *, axis: int | None, dtype: AnyValue, exclusive: bool
) -> Value:
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


@OPS.expands("cumprod")
def expand_cumprod(data: Expr, *, axis: int | None, dtype: AnyValue, exclusive: bool) -> Expr:
    """Each step multiplies by what lies twice as far back, so that few steps reach the front."""
    if axis is None:
        data, axis = relay.reshape(data, [-1]), 0
    if dtype is not None:
        data = relay.cast(data, dtype)
    type_ = data.checked_type
    if not isinstance(type_, TensorType):
        raise Unsupported(f"expected a tensor, found {type_!r}")
    length = type_.shape[axis]
    if not isinstance(length, int):
        raise Unsupported("a running product along a length that is not fixed")
    place = axis % type_.rank
    one = relay.const(1, type_.dtype)
    reach = 1

    def behind(x: Expr, steps: int) -> Expr:
        """Return `x` moved on by some places, with ones in front."""
        front = [dim if each != place else steps for each, dim in enumerate(type_.shape)]
        if steps >= length:
            return relay.full(one, type_.shape)
        kept = relay.strided_slice(x, [0], [length - steps], axes=[place])
        return relay.concatenate((relay.full(one, front), kept), axis=place)

    found = behind(data, 1) if exclusive else data
    while reach < length:
        found = relay.multiply(found, behind(found, reach))
        reach *= 2
    return found

"""Triangles, bands and diagonals of the innermost matrices."""

from __future__ import annotations

import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.shape.create import positions
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.type_domains import NUMBERS_OR_BOOL, emit_in
from serde.coreml.value import Value
from serde.relay.ir.expr import Call, Constant, Expr, tensor_type


@OPS.imports("band_part")
def import_band_part(ctx: ImportContext, x: Expr, *, lower: int = -1, upper: int = -1) -> Expr:
    """A negative number keeps the whole triangle."""
    if lower >= 0:
        x = relay.trilu(x, -lower, upper=True)
    return relay.trilu(x, upper, upper=False) if upper >= 0 else x


def _is_band(node: Call) -> bool:
    """Whether the triangle holds the main diagonal, for MIL cannot leave that out."""
    k = node.args[1]
    if not isinstance(k, Constant):
        return False
    return bool(k.data <= 0 if node.attrs["upper"] else k.data >= 0)


@OPS.exports("trilu", when=_is_band)
def export_trilu(ctx: ExportContext, data: Value, k: Value, *, upper: bool) -> Value:
    number = int(ctx.constant(k))
    bounds = {"lower": -number, "upper": -1} if upper else {"lower": -1, "upper": number}
    return emit_in(ctx, NUMBERS_OR_BOOL, "band_part", {"x": data}, **bounds)


@OPS.expands("trilu")
def expand_trilu(data: Expr, k: Expr, *, upper: bool) -> Expr:
    """As for all, with positions that networks before iOS14 can count."""
    type_ = tensor_type(data)
    rank = type_.rank
    rows = positions(type_.shape[-2], data, rank - 2, "int32")
    columns = positions(type_.shape[-1], data, rank - 1, "int32")
    bound = relay.add(relay.expand_dims(rows, axis=1), relay.cast(k, "int32"))
    compare = relay.greater_equal if upper else relay.less_equal
    inside = compare(relay.expand_dims(columns, axis=0), bound)
    return relay.where(inside, data, relay.const(0, type_.dtype))

"""Some of the entries of an axis."""

from __future__ import annotations

import serde.relay as relay
from serde.onnx.context import ImportContext as ImportCtx
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import cast
from serde.onnx.ops.table import OPS
from serde.relay.expr import Call, Expr
from serde.relay.registry import call
from serde.relay.types import TensorType


@OPS.exports("serde.compress")
def export_compress(ctx: Ctx, x: Value, condition: Value, *, axis: int | None) -> Value:
    """Before 28 it takes no bfloat16."""
    if ctx.type(x).dtype != "bfloat16" or ctx.version >= 28:
        return ctx.emit("Compress", x, condition, axis=axis)
    found = ctx.emit("Compress", cast(ctx, x, "float32"), condition, axis=axis)
    return cast(ctx, found, "bfloat16")


@OPS.imports("Compress", since=(9, 11, 28))
def import_compress(ctx: ImportCtx, x: Expr, condition: Expr, *, axis: int | None = None) -> Expr:
    return call("serde.compress", x, condition, axis=axis)


def _is_sorted_by_runtimes(node: Call) -> bool:
    """ONNX Runtime has kernels for few dtypes."""
    data = node.args[0].type
    kinds = ("float32", "float64", "int64", "int8")
    return isinstance(data, TensorType) and data.dtype in kinds


@OPS.exports("serde.unique", when=_is_sorted_by_runtimes)
def export_unique_of_axis(
    ctx: Ctx, x: Value, *, axis: int | None, sorted: bool
) -> tuple[Value, ...]:
    return ctx.emit_tuple("Unique", x, outputs=4, axis=axis, sorted=int(sorted))


@OPS.imports("Unique", since=(11, 28))
def import_unique(
    ctx: ImportCtx, x: Expr, *, axis: int | None = None, sorted: bool = True
) -> list[Expr]:
    found = call("serde.unique", x, axis=axis, sorted=sorted)
    return [relay.TupleGetItem(found, each) for each in range(4)]

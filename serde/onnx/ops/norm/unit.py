"""Normalisations to unit length or variance."""

from __future__ import annotations

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import has_dtype
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


@OPS.exports("serde.mean_variance_normalization", when=has_dtype("float32"))
def export_mean_variance_normalization(
    ctx: ExportContext, x: Value, *, axes: tuple[int, ...]
) -> Value:
    """The function that defines it has constants of float32."""
    return ctx.emit("MeanVarianceNormalization", x, axes=axes)


@OPS.imports("MeanVarianceNormalization", since=(9, 13))
def import_mean_variance_normalization(
    ctx: ImportContext, x: Expr, *, axes: tuple[int, ...] = (0, 2, 3)
) -> Expr:
    return call("serde.mean_variance_normalization", x, axes=axes)


@OPS.exports("serde.lp_normalization")
def export_lp_normalization(ctx: ExportContext, x: Value, *, axis: int, p: int) -> Value:
    return ctx.emit("LpNormalization", x, axis=axis, p=p)


@OPS.imports("LpNormalization", since=(1, 22))
def import_lp_normalization(ctx: ImportContext, x: Expr, *, axis: int = -1, p: int = 2) -> Expr:
    return call("serde.lp_normalization", x, axis=axis, p=p)

"""Quantising, and back; what these mean is in the tensors."""

from __future__ import annotations

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.tflite.ops.table import OPS, ImportContext


@OPS.imports("DEQUANTIZE")
def import_dequantize(ctx: ImportContext, x: Expr) -> Expr:
    """Codes have become numbers already; halves become floats."""
    return x if ctx.type(x).dtype == "float32" else relay.cast(x, "float32")


@OPS.imports("QUANTIZE")
def import_quantize(ctx: ImportContext, x: Expr) -> Expr:
    """Numbers become codes where the tensor is stored."""
    return x

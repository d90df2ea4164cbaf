"""Quantising, and back; what these mean is in the tensors."""

from __future__ import annotations

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.tflite.import_context import ImportContext
from serde.tflite.ops.table import OPS


@OPS.imports("DEQUANTIZE")
def import_dequantize(ctx: ImportContext, x: Expr) -> Expr:
    """Codes have become numbers already; halves become floats."""
    return x if ctx.type(x).dtype == "float32" else relay.cast(x, "float32")


@OPS.imports("DENSIFY")
def import_densify(ctx: ImportContext, x: Expr) -> Expr:
    """Sparse tensors are dense from the first."""
    return x


@OPS.imports("QUANTIZE")
def import_quantize(ctx: ImportContext, x: Expr) -> Expr:
    """Numbers become codes where the tensor is stored."""
    return x


@OPS.imports("FAKE_QUANT")
def import_fake_quant(
    ctx: ImportContext,
    x: Expr,
    *,
    min: float = 0.0,
    max: float = 0.0,
    num_bits: int = 0,
    narrow_range: bool = False,
) -> Expr:
    """The range is moved so that zero is one of the values, as TensorFlow does."""
    low, high = float(narrow_range), float(2**num_bits - 1)
    scale = (max - min) / (high - low)
    start = low - min / scale if scale else low
    zero = low if start < low else high if start > high else float(int(start + 0.5))
    least, most = (low - zero) * scale, (high - zero) * scale
    dtype = ctx.type(x).dtype
    limited = relay.clip(x, least, most)
    steps = relay.divide(relay.subtract(limited, ctx.const(least, dtype)), ctx.const(scale, dtype))
    found = relay.floor(relay.add(steps, ctx.const(0.5, dtype)))
    return relay.add(relay.multiply(found, ctx.const(scale, dtype)), ctx.const(least, dtype))

"""Quantised values, and products of them, which TVM sums as integers."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.relax.ops.table import OPS, Import
from serde.relay.ir import Expr, call, is_float
from serde.relay.ir.precision import limits
from serde.relay.op.qnn.integer import body_of_convolution
from serde.relay.op.qnn.sums import body_of_sums


def _along(ctx: Import, parameter: Expr, rank: int, axis: int) -> Expr:
    """Return a scale or a zero point that broadcasts along an axis."""
    if not ctx.rank(parameter):
        return parameter
    if ctx.type(parameter).size == 1:
        return relay.reshape(parameter, ())
    for index in range(rank):
        if index != axis % rank:
            parameter = relay.expand_dims(parameter, index)
    return parameter


@OPS.imports("relax.quantize")
def import_quantize(
    ctx: Import, data: Expr, scale: Expr, zero_point: Expr, *, out_dtype: str, axis: int
) -> Expr:
    """What becomes a float is not rounded to an integer."""
    rank = ctx.rank(data)
    scale, zero_point = (_along(ctx, each, rank, axis) for each in (scale, zero_point))
    scaled = relay.divide(data, scale)
    scaled = scaled if is_float(out_dtype) else call("serde.round_even", scaled)
    moved = relay.add(scaled, relay.cast(zero_point, ctx.dtype(data)))
    bounds = limits(out_dtype)
    return relay.cast(relay.clip(moved, float(bounds.min), float(bounds.max)), out_dtype)


@OPS.imports("relax.dequantize")
def import_dequantize(
    ctx: Import, data: Expr, scale: Expr, zero_point: Expr, *, out_dtype: str, axis: int
) -> Expr:
    """The difference is an integer of 32 bits, but of usual floats, the product a float of as many.

    TVM has integers there of floats of 8 bits as well.
    """
    rank, given = ctx.rank(data), ctx.dtype(data)
    own = "float32" if is_float(given) and not given.startswith("float8") else "int32"
    scale, zero_point = (_along(ctx, each, rank, axis) for each in (scale, zero_point))
    wide = relay.subtract(relay.cast(data, own), relay.cast(zero_point, own))
    product = relay.multiply(relay.cast(wide, "float32"), relay.cast(scale, "float32"))
    if out_dtype == "float32":
        return product
    bounds = np.finfo(out_dtype)
    return relay.cast(relay.clip(product, float(bounds.min), float(bounds.max)), out_dtype)


for _name in ("qnn.batch_matmul", "qnn.conv2d", "qnn.conv2d_transpose", "qnn.dense"):
    OPS.expands(_name)(body_of_sums(_name, floats=False))

OPS.expands("serde.conv_integer")(body_of_convolution(floats=False))

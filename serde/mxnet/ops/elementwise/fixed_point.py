"""Products with fixed-point numbers."""

from __future__ import annotations

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.ops.elementwise.scalars import dtype_of
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import normalize_axes


def _rescale(data: Expr, multiplier: Expr, left: Expr, right: Expr) -> Expr:
    """Return ``floor(data * 2**left * multiplier / 2**(31 + right) + 0.5)``."""
    wide, factor, up, down = (relay.cast(x, "int64") for x in (data, multiplier, left, right))
    product = relay.multiply(relay.left_shift(wide, up), factor)
    half = relay.left_shift(relay.const(1, "int64"), relay.add(down, relay.const(30, "int64")))
    rounded = relay.add(product, half)
    moved = relay.right_shift(rounded, relay.add(down, relay.const(31, "int64")))
    return relay.cast(moved, dtype_of(data))


@OPS.exports("fixed_point_multiply")
def export_fixed_point_multiply(
    ctx: ExportContext, data: Value, *, multiplier: int, shift: int
) -> Value:
    parts = [ctx.const(part, "int64") for part in (multiplier, max(shift, 0), max(-shift, 0))]
    return ctx.spell(_rescale, data, *parts)


@OPS.exports("fixed_point_multiply_per_axis")
def export_fixed_point_multiply_per_axis(
    ctx: ExportContext,
    data: Value,
    fp_multiplier: Value,
    left_shift: Value,
    right_shift: Value,
    *,
    is_lshift_required: bool,
    is_rshift_required: bool,
    axes: tuple[int, ...],
) -> Value:
    type_ = ctx.type(data)
    along = normalize_axes(axes, type_.rank)
    shape = [length if axis in along else 1 for axis, length in enumerate(type_.shape)]
    zero = ctx.const(0, "int64")
    left = ctx.reshape(left_shift, shape) if is_lshift_required else zero
    right = ctx.reshape(right_shift, shape) if is_rshift_required else zero
    return ctx.spell(_rescale, data, ctx.reshape(fp_multiplier, shape), left, right)

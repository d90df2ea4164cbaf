"""Multiplication of integers by a number given as a Q31 mantissa and a power of two."""

from __future__ import annotations

import serde.relay as relay
from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import normalize_axes

__all__: list[str] = []


def _multiply(data: Expr, multiplier: Expr, left: Expr, right: Expr) -> Expr:
    """Return the product of 64 bits, rounded with halves upwards; see the kernel."""
    half = relay.left_shift(relay.const(1, "int64"), relay.add(right, relay.const(30, "int64")))
    scaled = relay.left_shift(relay.cast(data, "int64"), left)
    product = relay.add(relay.multiply(scaled, multiplier), half)
    whole = relay.right_shift(product, relay.add(right, relay.const(31, "int64")))
    return relay.cast(whole, "int32")


@OPS.exports("fixed_point_multiply")
def export_fixed_point_multiply(
    ctx: ExportContext, data: Value, *, multiplier: int, shift: int
) -> Value:
    factors = (multiplier, max(shift, 0), max(-shift, 0))
    given = [relay.const(each, "int64") for each in factors]
    return ctx.spell(lambda x: _multiply(x, *given), data)


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
    rank = ctx.type(data).rank
    along = normalize_axes(axes, rank)
    others = [axis for axis in range(rank) if axis not in along]

    def spread(part: Expr, needed: bool) -> Expr:
        if not needed:
            return relay.const(0, "int64")
        wide = relay.cast(part, "int64")
        for axis in others:
            wide = relay.expand_dims(wide, axis)
        return wide

    def multiplied(x: Expr, factor: Expr, left: Expr, right: Expr) -> Expr:
        return _multiply(
            x,
            spread(factor, True),
            spread(left, is_lshift_required),
            spread(right, is_rshift_required),
        )

    return ctx.spell(multiplied, data, fp_multiplier, left_shift, right_shift)

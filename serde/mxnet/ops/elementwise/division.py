"""Quotients and remainders.

MXNet divides integers towards zero; its remainder has the sign of the divisor and goes through
float64, too narrow for int64. What it leaves of infinities, and by zero, is 0 and not NaN.
"""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.ops.elementwise.scalars import dtype_of
from serde.mxnet.ops.elementwise.written import write_binary
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float


def zero_like(x: Expr) -> Expr:
    """Return 0 of the dtype of `x`."""
    return relay.const(0, dtype_of(x))


def _remainder(lhs: Expr, rhs: Expr) -> Expr:
    """Return the remainder with the sign of the dividend, without rounding."""
    if not is_float(dtype_of(lhs)):
        return relay.subtract(lhs, relay.multiply(relay.divide(lhs, rhs), rhs))
    size = relay.floor_mod(relay.abs(lhs), relay.abs(rhs))
    signed = relay.where(relay.less(lhs, zero_like(lhs)), relay.negative(size), size)
    return _where_defined(signed, lhs, rhs)


def _where_defined(remainder: Expr, lhs: Expr, rhs: Expr) -> Expr:
    """Return NaN in place of a remainder of an infinity, or by zero."""
    finite = relay.add(remainder, relay.subtract(lhs, lhs))
    nothing = relay.const(np.nan, dtype_of(lhs))
    return relay.where(relay.equal(rhs, zero_like(rhs)), nothing, finite)


def _is_other_side(remainder: Expr, rhs: Expr) -> Expr:
    """Return where a remainder that is not 0 and the divisor differ in sign."""
    zero = zero_like(rhs)
    signs = relay.not_equal(relay.less(remainder, zero), relay.less(rhs, zero))
    return relay.logical_and(relay.not_equal(remainder, zero), signs)


def _floor_quotient(lhs: Expr, rhs: Expr) -> Expr:
    """Return the floor of the exact quotient, not of the rounded one."""
    dtype = dtype_of(lhs)
    remainder = _remainder(lhs, rhs)
    below = relay.cast(_is_other_side(remainder, rhs), dtype)
    if not is_float(dtype):
        return relay.subtract(relay.divide(lhs, rhs), below)
    whole = relay.round(relay.divide(relay.subtract(lhs, remainder), rhs))
    by_zero = relay.equal(rhs, zero_like(rhs))
    return relay.where(by_zero, relay.divide(lhs, rhs), relay.subtract(whole, below))


def _floor_remainder(lhs: Expr, rhs: Expr) -> Expr:
    remainder = _remainder(lhs, rhs)
    return relay.where(_is_other_side(remainder, rhs), relay.add(remainder, rhs), remainder)


@OPS.exports("floor_divide")
def export_floor_divide(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
    return ctx.spell(_floor_quotient, lhs, rhs)


@OPS.exports("trunc_divide")
def export_trunc_divide(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
    if is_float(ctx.type(lhs).dtype):
        return ctx.spell(lambda a, b: relay.trunc(relay.divide(a, b)), lhs, rhs)
    return ctx.spell(relay.divide, lhs, rhs)


@OPS.exports("mod", "trunc_mod")
def export_trunc_mod(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
    return ctx.spell(_remainder, lhs, rhs)


@OPS.exports("floor_mod")
def export_floor_mod(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
    if ctx.type(lhs).dtype == "int64":
        return ctx.spell(_floor_remainder, lhs, rhs)
    return write_binary(ctx, ("broadcast_mod", "_mod_scalar", "_rmod_scalar"), lhs, rhs)

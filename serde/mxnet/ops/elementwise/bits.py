"""Shifts and fixed-point products. MXNet has no shifts: they multiply and divide by powers of two.

The powers are looked up, because MXNet computes powers in float64.
"""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Constant, Expr
from serde.relay.ir.shapes import normalize_axes
from serde.relay.ir.types import TensorType
from serde.weights import numpy_dtype


def _powers(places: Expr, dtype: str, count: int) -> Expr:
    """Return 2 to the power `places`, each at most `count`; what does not fit is 0."""
    kind = numpy_dtype(dtype)
    table = np.zeros(count + 1, np.uint64)
    bits = min(count + 1, 8 * kind.itemsize)
    table[:bits] = np.uint64(1) << np.arange(bits, dtype=np.uint64)
    return relay.take(relay.Constant(table.astype(kind)), places, axis=0, mode="clip")


def left_shifted(data: Expr, places: Expr) -> Expr:
    """Return the bits of `data` moved up."""
    dtype = _dtype(data)
    return relay.multiply(data, _powers(places, dtype, 8 * numpy_dtype(dtype).itemsize))


def right_shifted(data: Expr, places: Expr) -> Expr:
    """Return the bits of `data` moved down, the sign kept.

    The bits that go are cleared first, so the division has no remainder. The sign itself is no
    power of two, so the last step of a signed number is one of its own.
    """
    kind = numpy_dtype(_dtype(data))
    top = 8 * kind.itemsize - (2 if kind.kind == "i" else 1)
    near = relay.minimum(places, relay.const(top, _dtype(places)))
    power = _powers(near, kind.name, top)
    low = relay.bitwise_and(data, relay.subtract(power, relay.const(1, kind.name)))
    moved = relay.divide(relay.subtract(data, low), power)
    if isinstance(places, Constant) and (places.data <= top).all():
        return moved
    none = relay.const(0, kind.name)
    far = relay.cast(relay.less(data, none), kind.name)
    far = relay.subtract(none, far) if kind.kind == "i" else none
    return relay.where(relay.greater(places, near), far, moved)


def _dtype(x: Expr) -> str:
    return x.checked_type.dtype if isinstance(x.checked_type, TensorType) else ""


@OPS.exports("left_shift")
def export_left_shift(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
    return ctx.spell(left_shifted, lhs, rhs)


@OPS.exports("right_shift")
def export_right_shift(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
    return ctx.spell(right_shifted, lhs, rhs)


def _rescaled(data: Expr, multiplier: Expr, left: Expr, right: Expr) -> Expr:
    """Return data * 2**left * multiplier / 2**(31 + right), rounded, halves upwards."""
    wide, factor, up, down = (relay.cast(x, "int64") for x in (data, multiplier, left, right))
    product = relay.multiply(relay.left_shift(wide, up), factor)
    half = relay.left_shift(relay.const(1, "int64"), relay.add(down, relay.const(30, "int64")))
    rounded = relay.add(product, half)
    moved = relay.right_shift(rounded, relay.add(down, relay.const(31, "int64")))
    return relay.cast(moved, _dtype(data))


@OPS.exports("fixed_point_multiply")
def export_fixed_point_multiply(
    ctx: ExportContext, data: Value, *, multiplier: int, shift: int
) -> Value:
    parts = [ctx.const(part, "int64") for part in (multiplier, max(shift, 0), max(-shift, 0))]
    return ctx.spell(_rescaled, data, *parts)


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
    return ctx.spell(_rescaled, data, ctx.reshape(fp_multiplier, shape), left, right)

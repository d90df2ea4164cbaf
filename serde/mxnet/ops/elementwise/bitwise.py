"""Logic of bits, and shifts.

MXNet has no shifts: they multiply and divide by powers of two, which are looked up, because
MXNet computes powers in float32.
"""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.mxnet.axis_groups import align
from serde.mxnet.ops.elementwise.scalars import dtype_of
from serde.mxnet.ops.table import OPS, Export, Value
from serde.relay.ir.expr import Constant, Expr

BITWISE = {
    "bitwise_and": "_npi_bitwise_and",
    "bitwise_or": "_npi_bitwise_or",
    "bitwise_xor": "_npi_bitwise_xor",
    "bitwise_not": "_npi_bitwise_not",
}
"""Relay's operator: MXNet's of the same operands."""


def _declare_bitwise_export(name: str, mxnet: str) -> None:
    @OPS.exports(name)
    def export_bitwise(ctx: Export, *operands: Value) -> Value:
        return ctx.emit_bytes(mxnet, *align(ctx, *operands))


def _declare_logical_export(name: str, bitwise: str) -> None:
    @OPS.exports(name)
    def export_logical(ctx: Export, lhs: Value, rhs: Value) -> Value:
        if ctx.result_type().dtype == "bool":
            return ctx.emit_bytes(bitwise, *align(ctx, lhs, rhs))
        return ctx.emit(f"broadcast_{name}", *align(ctx, lhs, rhs))


for _relay, _mxnet in BITWISE.items():
    _declare_bitwise_export(_relay, _mxnet)


for _name in ("and", "or", "xor"):
    _declare_logical_export(f"logical_{_name}", f"_npi_bitwise_{_name}")


def _powers(indices: Expr, dtype: str, count: int) -> Expr:
    """Return 2 to the power `indices`, each at most `count`; what does not fit is 0."""
    kind = numpy_dtype(dtype)
    table = allocation.zeros(count + 1, np.uint64)
    bits = min(count + 1, 8 * kind.itemsize)
    table[:bits] = np.uint64(1) << allocation.arange(bits, dtype=np.uint64)
    return relay.take(relay.Constant(table.astype(kind)), indices, axis=0, mode="clip")


def left_shifted(data: Expr, indices: Expr) -> Expr:
    """Return the bits of `data` moved up."""
    dtype = dtype_of(data)
    return relay.multiply(data, _powers(indices, dtype, 8 * numpy_dtype(dtype).itemsize))


def right_shifted(data: Expr, indices: Expr) -> Expr:
    """Return the bits of `data` moved down, the sign kept.

    The bits that go are cleared first, so the division has no remainder. The sign itself is no
    power of two, so the last step of a signed number is one of its own.
    """
    kind = numpy_dtype(dtype_of(data))
    top = 8 * kind.itemsize - (2 if kind.kind == "i" else 1)
    near = relay.minimum(indices, relay.const(top, dtype_of(indices)))
    power = _powers(near, kind.name, top)
    low = relay.bitwise_and(data, relay.subtract(power, relay.const(1, kind.name)))
    moved = relay.divide(relay.subtract(data, low), power)
    if isinstance(indices, Constant) and (indices.data <= top).all():
        return moved
    none = relay.const(0, kind.name)
    far = relay.cast(relay.less(data, none), kind.name)
    far = relay.subtract(none, far) if kind.kind == "i" else none
    return relay.where(relay.greater(indices, near), far, moved)


@OPS.exports("left_shift")
def export_left_shift(ctx: Export, lhs: Value, rhs: Value) -> Value:
    return ctx.spell(left_shifted, lhs, rhs)


@OPS.exports("right_shift")
def export_right_shift(ctx: Export, lhs: Value, rhs: Value) -> Value:
    return ctx.spell(right_shifted, lhs, rhs)

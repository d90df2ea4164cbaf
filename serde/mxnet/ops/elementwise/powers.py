"""Powers of integers, which MXNet computes in float32."""

from __future__ import annotations

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.mxnet.ops.elementwise.scalars import dtype_of
from serde.relay.ir.expr import Constant, Expr


def integer_power(base: Expr, exponent: Expr) -> Expr:
    """Return the product of the squares of squares that the bits of `exponent` name.

    What goes beyond the range of the dtype means nothing.
    """
    if isinstance(exponent, Constant) and not exponent.data.ndim and exponent.data >= 0:
        return _constant_power(base, int(exponent.data))
    dtype = dtype_of(base)
    zero, one = relay.const(0, dtype), relay.const(1, dtype)
    bits = 8 * numpy_dtype(dtype).itemsize
    is_odd = relay.bitwise_and(exponent, one)
    most = relay.add(relay.const(bits - 2, dtype), is_odd)
    is_inverse = relay.less(exponent, zero)
    # Beyond the last bit, only 0, 1 and -1 have powers in range, which parity tells.
    given = relay.where(is_inverse, is_odd, relay.minimum(exponent, most))
    product: Expr = one
    square = base
    for bit in range((bits - 1).bit_length()):
        named = relay.bitwise_and(given, relay.const(1 << bit, dtype))
        product = relay.multiply(product, relay.where(relay.equal(named, zero), one, square))
        square = relay.multiply(square, square)
    if dtype.startswith("uint"):
        return product
    is_fraction = relay.logical_and(is_inverse, relay.not_equal(relay.abs(base), one))
    return relay.where(is_fraction, zero, product)


def _constant_power(base: Expr, exponent: int) -> Expr:
    """Return a power of which the exponent is known."""
    product: Expr | None = None
    square = base
    while exponent:
        if exponent & 1:
            product = square if product is None else relay.multiply(product, square)
        exponent >>= 1
        square = relay.multiply(square, square) if exponent else square
    return relay.ones_like(base) if product is None else product

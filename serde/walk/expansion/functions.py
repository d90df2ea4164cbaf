"""Functions that Relay has no operator for, as several formats have them."""

from __future__ import annotations

import math

import serde.relay as relay
from serde.relay.ir import Expr, Function, Tuple, TupleGetItem, Var, call, number_like, tensor_type
from serde.relay.ir.types import TensorType

__all__ = ["arctan2", "greatest_divisor", "has_sign", "log_add_exp"]


def has_sign(x: Expr) -> Expr:
    """Return whether the sign of each float is minus; a zero shows its sign as a divisor."""
    zero = number_like(0, x)
    return relay.logical_or(
        relay.less(x, zero), relay.less(relay.divide(number_like(1, x), x), zero)
    )


def arctan2(y: Expr, x: Expr) -> Expr:
    """Return the angle between the axes, mirrored where the second operand is negative.

    Two zeros have the ratio 0, two infinities 1.
    """
    height, width = relay.abs(y), relay.abs(x)
    alike = relay.cast(relay.not_equal(y, number_like(0, y)), tensor_type(y).dtype)
    ratio = relay.where(relay.equal(height, width), alike, relay.divide(height, width))
    first = relay.atan(ratio)
    mirrored = relay.subtract(number_like(math.pi, x), first)
    found = relay.where(has_sign(x), mirrored, first)
    return relay.where(has_sign(y), relay.negative(found), found)


def log_add_exp(x: Expr, y: Expr) -> Expr:
    """Return the logarithm of a sum; infinities that are equal have no difference."""
    distance = relay.negative(relay.abs(relay.subtract(x, y)))
    found = relay.add(relay.maximum(x, y), call("serde.log1p", relay.exp(distance)))
    same = relay.logical_and(relay.isinf(x), relay.equal(x, y))
    return relay.where(same, x, found)


def greatest_divisor(lhs: Expr, rhs: Expr) -> Expr:
    """Return greatest common divisors by Euclid's algorithm, a loop on all elements at once.

    Args:
        lhs: Integers that are not negative, of int64.
        rhs: Others, which broadcast against them.
    """
    zero, one = relay.const(0, "int64"), relay.const(1, "int64")
    spread = relay.zeros_like(relay.add(lhs, rhs))
    sizes = [relay.add(x, spread) for x in (lhs, rhs)]
    kind = tensor_type(spread)
    number, a, b = Var("i", TensorType((), "int64")), Var("a", kind), Var("b", kind)
    is_done = relay.equal(b, zero)
    rest = relay.floor_mod(a, relay.where(is_done, one, b))
    following = relay.where(is_done, zero, rest)
    again = relay.any(relay.not_equal(following, zero))
    body = Function([number, a, b], Tuple([again, relay.where(is_done, a, b), following]))
    start = relay.any(relay.not_equal(sizes[1], zero))
    return TupleGetItem(call("serde.loop", None, start, sizes, [], body=body), 0)

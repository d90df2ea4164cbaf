"""Functions that Relay lacks and some operators of it say: signs, angles, powers, roundings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.arithmetic import in_floats, scalar_like, with_scalar
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType
from serde.weights import numpy_dtype


def _with_sign(ctx: ImportContext, x: Expr) -> Expr:
    """Return whether the sign of each float is minus; a zero shows its sign as a divisor."""
    zero = scalar_like(ctx, x, 0)
    below = relay.less(x, zero)
    return relay.logical_or(below, relay.less(relay.divide(scalar_like(ctx, x, 1), x), zero))


def _copysign(ctx: ImportContext, lhs: Expr, rhs: Expr) -> Expr:
    """MXNet takes the sign of a zero for plus, and that of NaN for minus."""
    zero = scalar_like(ctx, lhs, 0)
    alike = relay.equal(relay.greater_equal(lhs, zero), relay.greater_equal(rhs, zero))
    return relay.where(alike, lhs, relay.negative(lhs))


def _arctan2(ctx: ImportContext, lhs: Expr, rhs: Expr) -> Expr:
    """The angle between the axes, mirrored where the second operand is negative.

    Two zeros have the ratio 0, two infinities 1.
    """

    def angle(y: Expr, x: Expr) -> Expr:
        height, width = relay.abs(y), relay.abs(x)
        alike = relay.cast(relay.not_equal(y, scalar_like(ctx, y, 0)), ctx.type(y).dtype)
        ratio = relay.where(relay.equal(height, width), alike, relay.divide(height, width))
        first = relay.atan(ratio)
        mirrored = relay.subtract(scalar_like(ctx, x, np.pi), first)
        found = relay.where(_with_sign(ctx, x), mirrored, first)
        return relay.where(_with_sign(ctx, y), relay.negative(found), found)

    return in_floats(ctx, angle, lhs, rhs)


def _ldexp(ctx: ImportContext, lhs: Expr, rhs: Expr) -> Expr:
    """The power of two in float64, for it may overflow where the product does not."""
    wide = [relay.cast(x, "float64") for x in (lhs, rhs)]
    power = relay.power(relay.const(2.0, "float64"), wide[1])
    return relay.cast(relay.multiply(wide[0], power), ctx.type(lhs).dtype)


def _lcm(ctx: ImportContext, lhs: Expr, rhs: Expr) -> Expr:
    """Euclid's algorithm as a loop on all elements at once."""
    dtype = ctx.type(lhs).dtype
    if dtype == "bool":
        return relay.logical_and(lhs, rhs)
    if is_float(dtype):
        raise Unsupported(f"expected integers, found {dtype}")
    zero, one = relay.const(0, "int64"), relay.const(1, "int64")
    left, right = (relay.abs(relay.cast(x, "int64")) for x in (lhs, rhs))
    product = relay.multiply(left, right)
    spread = relay.zeros_like(product)
    sizes = [relay.add(x, spread) for x in (left, right)]
    kind = ctx.type(product)
    number = Var("i", TensorType((), "int64"))
    a, b = Var("a", kind), Var("b", kind)
    rest = relay.floor_mod(a, relay.where(relay.equal(b, zero), one, b))
    is_done = relay.equal(b, zero)
    following = relay.where(is_done, zero, rest)
    again = relay.any(relay.not_equal(following, zero))
    body = Function([number, a, b], Tuple([again, relay.where(is_done, a, b), following]))
    loop = call(
        "serde.loop", None, relay.any(relay.not_equal(sizes[1], zero)), sizes, [], body=body
    )
    divisor: Expr = TupleGetItem(loop, 0)
    divisor = relay.where(relay.equal(product, zero), one, divisor)
    return relay.cast(relay.multiply(relay.divide(left, divisor), right), dtype)


PAIRS = {"arctan2": _arctan2, "copysign": _copysign, "lcm": _lcm, "ldexp": _ldexp}


def _register(name: str, function: Callable[[ImportContext, Expr, Expr], Expr]) -> None:
    @OPS.imports(f"_npi_{name}")
    def import_pair(ctx: ImportContext, x1: Expr, x2: Expr) -> Expr:
        return function(ctx, x1, x2)

    def scalar_form(*, swapped: bool) -> Callable[..., AnyValue]:
        def import_scalar(
            ctx: ImportContext, data: Expr, *, scalar: float = 1.0, is_int: bool = True
        ) -> Expr:
            tensor, other = with_scalar(ctx, data, scalar, is_int)
            return function(ctx, other, tensor) if swapped else function(ctx, tensor, other)

        return import_scalar

    OPS.imports(f"_npi_{name}_scalar")(scalar_form(swapped=False))
    if name != "lcm":
        OPS.imports(f"_npi_r{name}_scalar")(scalar_form(swapped=True))


for _name, _function in PAIRS.items():
    _register(_name, _function)


@OPS.imports("_npi_around")
def import_around(ctx: ImportContext, x: Expr, *, decimals: int = 0) -> Expr:
    """Scaled by one ten after the other as in MXNet; integers lose their last digits."""
    if abs(decimals) > 400:
        raise Unsupported(f"decimals={decimals} is beyond every dtype")
    ten = scalar_like(ctx, x, 10)
    up, down = (relay.multiply, relay.divide) if decimals > 0 else (relay.divide, relay.multiply)
    is_whole = not is_float(ctx.type(x).dtype)
    if is_whole and decimals >= 0:
        return x
    for _ in range(abs(decimals)):
        x = up(x, ten)
    x = x if is_whole else relay.serde.round_even(x)
    for _ in range(abs(decimals)):
        x = down(x, ten)
    return x


@OPS.imports("_npi_nan_to_num", ignored=("copy",))
def import_nan_to_num(
    ctx: ImportContext,
    data: Expr,
    *,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Expr:
    dtype = ctx.type(data).dtype
    if not is_float(dtype):
        return data
    greatest = float(np.finfo(numpy_dtype(dtype)).max)
    if posinf is None and neginf is None:
        found = relay.clip(data, -greatest, greatest)
    else:
        ends = ((np.inf, greatest, posinf), (-np.inf, -greatest, neginf))
        found = data
        for infinite, finite, given in ends:
            value = scalar_like(ctx, data, finite if given is None else given)
            found = relay.where(relay.equal(data, scalar_like(ctx, data, infinite)), value, found)
    return relay.where(relay.isnan(data), scalar_like(ctx, data, nan), found)


def _register_class(name: str, sign: float) -> None:
    @OPS.imports(name)
    def import_infinite(ctx: ImportContext, data: Expr) -> Expr:
        if not is_float(ctx.type(data).dtype):
            return relay.isinf(data)
        return relay.equal(data, scalar_like(ctx, data, sign * np.inf))


_register_class("_npi_isposinf", 1.0)
_register_class("_npi_isneginf", -1.0)


def _register_predicate(name: str) -> None:
    @OPS.imports(f"_npi_{name}")
    def import_predicate(ctx: ImportContext, data: Expr) -> Expr:
        return getattr(relay, name)(data)


for _name in ("isfinite", "isinf", "isnan"):
    _register_predicate(_name)


@OPS.imports("_npi_full_like", ignored=("ctx",))
def import_full_like(
    ctx: ImportContext, a: Expr, *, fill_value: float, dtype: np.dtype[AnyValue] | None = None
) -> Expr:
    like = a if dtype is None else relay.cast(a, dtype)
    return relay.full_like(like, scalar_like(ctx, like, fill_value))


@OPS.imports("amp_cast")
def import_amp_cast(ctx: ImportContext, data: Expr, *, dtype: np.dtype[AnyValue]) -> Expr:
    """What is no float of 16 or 32 bits stays as it is."""
    if ctx.type(data).dtype not in ("bfloat16", "float16", "float32"):
        return data
    if not is_float(dtype.name):
        raise Unsupported(f"amp_cast to {dtype}, which oneDNN rounds and MXNet without it cuts")
    return relay.cast(data, dtype)


@OPS.imports("amp_multicast")
def import_amp_multicast(
    ctx: ImportContext, *data: Expr, num_outputs: int, cast_narrow: bool = False
) -> tuple[Expr, ...]:
    """Floats of 16 and 32 bits take the wider, or the narrower, of their dtypes."""
    cast = ("float16", "float32")
    found = [ctx.type(x).dtype for x in data if ctx.type(x).dtype in cast]
    if not found:
        return data
    dtype = min(found) if cast_narrow else max(found)
    return tuple(relay.cast(x, dtype) if ctx.type(x).dtype in cast else x for x in data)

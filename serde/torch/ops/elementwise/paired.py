"""Functions of several tensors that Relay spells out."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import zip_longest

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr, If, call, infer_if, is_float, same_shape
from serde.torch.ops.elementwise.binary import scale
from serde.torch.ops.elementwise.convert import widen
from serde.torch.ops.table import OPS, Import, Scalar
from serde.walk.expansion.functions import arctan2, greatest_divisor, has_sign, log_add_exp

Pair = Callable[[Import, Expr, Expr], Expr]


def round_once(
    ctx: Import, function: Callable[..., Expr], *operands: Expr, floats: bool = True
) -> Expr:
    """Return a function of promoted operands, which are widened meanwhile, numbers at once.

    Args:
        ctx: The context.
        function: The function of them.
        operands: The operands.
        floats: Whether integers become floats.
    """
    given = ctx.promote_to_float(*operands) if floats else ctx.promote(*operands)
    wide = [widen(ctx, each) for each in given]
    for place, each in enumerate(operands):
        if ctx.is_number(each):
            wide[place] = ctx.cast(each, ctx.dtype(wide[place]))
    return ctx.cast(function(*wide), ctx.dtype(given[0]))


def _hypot(ctx: Import, x: Expr, y: Expr) -> Expr:
    """Both are divided by the greater one, whose square might overflow."""
    dtype = ctx.dtype(x)
    one, two = relay.abs(x), relay.abs(y)
    longer, shorter = relay.maximum(one, two), relay.minimum(one, two)
    none = relay.equal(longer, shorter)
    ratio = relay.divide(shorter, longer)
    ratio = relay.where(none, ctx.scalar(1, dtype), ratio)
    grown = relay.add(ctx.scalar(1, dtype), relay.multiply(ratio, ratio))
    return relay.multiply(longer, relay.sqrt(grown))


def _copysign(ctx: Import, x: Expr, sign: Expr) -> Expr:
    size = relay.abs(x)
    return relay.where(has_sign(sign), relay.negative(size), size)


def _logaddexp2(ctx: Import, x: Expr, y: Expr) -> Expr:
    dtype = ctx.dtype(x)
    distance = relay.negative(relay.abs(relay.subtract(x, y)))
    power = relay.power(ctx.scalar(2, dtype), distance)
    rest = relay.divide(call("serde.log1p", power), ctx.scalar(math.log(2), dtype))
    same = relay.logical_and(relay.isinf(x), relay.equal(x, y))
    return relay.where(same, x, relay.add(relay.maximum(x, y), rest))


def _times_log(ctx: Import, x: Expr, y: Expr, *, function: str) -> Expr:
    """Return ``x * log(y)``, which is 0 where `x` is, unless `y` is no number."""
    zero = ctx.scalar(0, ctx.dtype(x))
    found = relay.multiply(x, call(function, y))
    nothing = relay.logical_and(relay.equal(x, zero), relay.logical_not(relay.isnan(y)))
    return relay.where(nothing, zero, found)


FLOATS: dict[str, Pair] = {
    "aten::arctan2": lambda _ctx, y, x: arctan2(y, x),
    "aten::atan2": lambda _ctx, y, x: arctan2(y, x),
    "aten::copysign": _copysign,
    "aten::hypot": _hypot,
    "aten::logaddexp": lambda _ctx, x, y: log_add_exp(x, y),
    "aten::logaddexp2": _logaddexp2,
    "aten::special_xlog1py": partial(_times_log, function="serde.log1p"),
    "aten::special_xlogy": partial(_times_log, function="log"),
    "aten::xlogy": partial(_times_log, function="log"),
}
"""Functions that make floats of integers."""


def _import_pair(ctx: Import, self: Expr, other: Expr, *, function: Pair) -> Expr:
    return round_once(ctx, lambda x, y: function(ctx, x, y), self, other)


for _op, _function in FLOATS.items():
    OPS.imports(_op)(partial(_import_pair, function=_function))


def _import_extreme(ctx: Import, self: Expr, other: Expr, *, target: str) -> Expr:
    """A number beats what is none."""
    one, two = ctx.promote(self, other)
    found: Expr = call(target, one, two)
    if not is_float(ctx.dtype(one)):
        return found
    found = relay.where(relay.isnan(two), one, found)
    return relay.where(relay.isnan(one), two, found)


OPS.imports("aten::fmax")(partial(_import_extreme, target="maximum"))
OPS.imports("aten::fmin")(partial(_import_extreme, target="minimum"))


@OPS.imports("aten::float_power")
def import_float_power(ctx: Import, self: Expr, exponent: Expr) -> Expr:
    return relay.power(ctx.cast(self, "float64"), ctx.cast(exponent, "float64"))


@OPS.imports("aten::ldexp")
def import_ldexp(ctx: Import, self: Expr, other: Expr) -> Expr:
    base, exponent = ctx.promote(ctx.number(2.0), other)
    return relay.multiply(*ctx.promote(self, relay.power(base, exponent)))


@OPS.imports("aten::heaviside")
def import_heaviside(ctx: Import, self: Expr, values: Expr) -> Expr:
    dtype = ctx.dtype(self)
    zero = ctx.scalar(0, dtype)
    if dtype == "bool":
        return relay.logical_or(self, values)
    above = relay.cast(relay.greater(self, zero), dtype)
    return relay.where(relay.equal(self, zero), values, above)


def _require_integers(ctx: Import, x: Expr) -> None:
    if ctx.dtype(x) == "bool" or is_float(ctx.dtype(x)):
        raise Unsupported(f"divisors of {ctx.dtype(x)}")


@OPS.imports("aten::gcd")
def import_gcd(ctx: Import, self: Expr, other: Expr) -> Expr:
    one, two = ctx.promote(self, other)
    _require_integers(ctx, one)
    sizes = (relay.abs(ctx.cast(x, "int64")) for x in (one, two))
    return ctx.cast(greatest_divisor(*sizes), ctx.dtype(one))


@OPS.imports("aten::lcm")
def import_lcm(ctx: Import, self: Expr, other: Expr) -> Expr:
    one, two = ctx.promote(self, other)
    _require_integers(ctx, one)
    left, right = (ctx.cast(x, "int64") for x in (one, two))
    divisor = greatest_divisor(relay.abs(left), relay.abs(right))
    none = relay.equal(divisor, ctx.scalar(0, "int64"))
    part = relay.trunc_divide(left, relay.where(none, ctx.scalar(1, "int64"), divisor))
    return ctx.cast(relay.abs(relay.multiply(part, right)), ctx.dtype(one))


def _import_scaled(
    ctx: Import, self: Expr, tensor1: Expr, tensor2: Expr, *, combine: str, value: Scalar = 1
) -> Expr:
    """Return the first operand plus a multiple of the other two combined."""

    def function(x: Expr, one: Expr, two: Expr) -> Expr:
        return relay.add(x, call(combine, scale(ctx, one, value), two))

    return round_once(ctx, function, self, tensor1, tensor2, floats=combine == "divide")


OPS.imports("aten::addcmul")(partial(_import_scaled, combine="multiply"))
OPS.imports("aten::addcdiv")(partial(_import_scaled, combine="divide"))


@OPS.imports("aten::lerp")
def import_lerp(ctx: Import, self: Expr, end: Expr, weight: Expr) -> Expr:
    """From the nearer end, so that both ends are met."""

    def function(start: Expr, end: Expr, weight: Expr) -> Expr:
        dtype = ctx.dtype(start)
        span = relay.subtract(end, start)
        rest = relay.subtract(ctx.scalar(1, dtype), weight)
        first = relay.add(start, relay.multiply(weight, span))
        last = relay.subtract(end, relay.multiply(span, rest))
        near = relay.less(relay.abs(weight), ctx.scalar(0.5, dtype))
        return relay.where(near, first, last)

    return round_once(ctx, function, self, end, weight)


@OPS.imports("aten::isclose")
def import_isclose(
    ctx: Import,
    self: Expr,
    other: Expr,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Expr:
    """Infinities are near themselves only."""
    same = relay.equal(self, other)
    if equal_nan and is_float(ctx.dtype(self)):
        same = relay.logical_or(same, relay.logical_and(relay.isnan(self), relay.isnan(other)))
    if rtol == 0 and atol == 0:
        return same
    (one,), (two,) = ctx.promote_to_float(self), ctx.promote_to_float(other)
    dtype = ctx.dtype(one)
    limit = relay.add(ctx.scalar(atol, dtype), relay.abs(scale(ctx, two, rtol)))
    distance = relay.abs(relay.subtract(one, two))
    near = relay.logical_and(relay.isfinite(distance), relay.less_equal(distance, limit))
    return relay.logical_or(same, near)


@OPS.imports("aten::isin.Tensor_Tensor", ignored=("assume_unique",))
@OPS.imports(
    "aten::isin.Tensor_Scalar",
    ignored=("assume_unique",),
    renamed={"test_element": "test_elements"},
)
@OPS.imports(
    "aten::isin.Scalar_Tensor", ignored=("assume_unique",), renamed={"element": "elements"}
)
def import_isin(ctx: Import, elements: Expr, test_elements: Expr, *, invert: bool = False) -> Expr:
    one, two = ctx.promote(elements, test_elements)
    flat = relay.reshape(two, newshape=(-1,))
    hit = relay.any(relay.equal(relay.expand_dims(one, -1), flat), axis=[-1])
    return relay.logical_not(hit) if invert else hit


@OPS.imports("aten::allclose")
def import_allclose(
    ctx: Import,
    self: Expr,
    other: Expr,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Expr:
    return relay.all(import_isclose(ctx, self, other, rtol=rtol, atol=atol, equal_nan=equal_nan))


@OPS.imports("aten::equal")
def import_equal(ctx: Import, self: Expr, other: Expr) -> Expr:
    """Tensors of several shapes differ; if open lengths are the same shows when the model runs."""
    pairs = list(zip_longest(ctx.type(self).shape, ctx.type(other).shape))
    no = ctx.scalar(False, "bool")
    if any(one != other and _is_fixed(one, other) for one, other in pairs):
        return no
    alike = relay.all(relay.equal(*ctx.promote(self, other)))
    if same_shape(ctx.type(self).shape, ctx.type(other).shape):
        return alike
    shapes = [relay.shape_of(x, dtype="int64") for x in (self, other)]
    found = If(relay.all(relay.equal(*shapes)), alike, no)
    found.type = infer_if(found)
    return found


def _is_fixed(*dims: Dim | None) -> bool:
    """Whether lengths are numbers, or one is that of an axis which the other tensor has not."""
    return None in dims or all(isinstance(dim, int) for dim in dims)


@OPS.imports("aten::is_nonzero")
def import_is_nonzero(ctx: Import, self: Expr) -> Expr:
    return relay.reshape(ctx.cast(self, "bool"), newshape=())

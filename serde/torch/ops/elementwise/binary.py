"""Arithmetic of two operands."""

from __future__ import annotations

from functools import partial
from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call, is_float
from serde.torch.ops.table import OPS, Export, Import, Scalar, Value
from serde.torch.ops.written import FIRST_BIT, in_computed_dtype

Rounding = Literal["trunc", "floor"] | None


def scale(ctx: Import, x: Expr, factor: Scalar) -> Expr:
    """Return a tensor times a number, which takes its dtype."""
    if not isinstance(factor, Expr) and factor == 1:
        return x
    number = ctx.scalar(factor, ctx.dtype(x))
    if ctx.dtype(x) == "bool":
        return relay.logical_and(x, number)
    return relay.multiply(x, number)


def _require_whole(ctx: Import, dtype: str, *numbers: Scalar) -> None:
    """Refuse a fraction as the factor of integers, as PyTorch does."""
    fractions = any(isinstance(number, float) for number in numbers)
    if fractions and not is_float(dtype):
        raise Unsupported(f"a factor with a fraction for tensors of {dtype}")


@OPS.imports("aten::add")
def import_add(ctx: Import, self: Expr, other: Expr, *, alpha: Scalar = 1) -> Expr:
    """The sum of truth values is their disjunction."""
    one, two = ctx.promote(self, other)
    _require_whole(ctx, ctx.dtype(one), alpha)
    two = scale(ctx, two, alpha)
    return relay.logical_or(one, two) if ctx.dtype(one) == "bool" else relay.add(one, two)


@OPS.imports("aten::sub", "aten::subtract")
def import_sub(ctx: Import, self: Expr, other: Expr, *, alpha: Scalar = 1) -> Expr:
    one, two = ctx.promote(self, other)
    _require_whole(ctx, ctx.dtype(one), alpha)
    return relay.subtract(one, scale(ctx, two, alpha))


@OPS.imports("aten::rsub")
def import_rsub(ctx: Import, self: Expr, other: Expr, *, alpha: Scalar = 1) -> Expr:
    return import_sub(ctx, other, self, alpha=alpha)


@OPS.imports("aten::mul", "aten::multiply")
def import_mul(ctx: Import, self: Expr, other: Expr) -> Expr:
    """The product of truth values is their conjunction."""
    one, two = ctx.promote(self, other)
    return relay.logical_and(one, two) if ctx.dtype(one) == "bool" else relay.multiply(one, two)


@OPS.imports("aten::div", "aten::divide", "aten::true_divide")
def import_div(ctx: Import, self: Expr, other: Expr, *, rounding_mode: Rounding = None) -> Expr:
    """Only a quotient that is not rounded makes floats of integers."""
    if rounding_mode is None:
        return relay.divide(*ctx.promote_to_float(self, other))
    one, two = ctx.promote(self, other)
    return (relay.floor_divide if rounding_mode == "floor" else relay.trunc_divide)(one, two)


_PROMOTED = {
    "aten::maximum": "maximum",
    "aten::max.other": "maximum",
    "aten::minimum": "minimum",
    "aten::min.other": "minimum",
    "aten::floor_divide": "floor_divide",
    "aten::remainder": "floor_mod",
    "aten::fmod": "mod",
}
"""Operators of the dtype to which their operands are promoted, with Relay's.

One remainder has the sign of the divisor, the other that of the dividend.
"""


def _import_promoted(ctx: Import, self: Expr, other: Expr, *, target: str) -> Expr:
    return call(target, *ctx.promote(self, other))


for _op, _target in _PROMOTED.items():
    OPS.imports(_op)(partial(_import_promoted, target=_target))
OPS.imports("aten::pow", renamed={"exponent": "other"})(partial(_import_promoted, target="power"))


@OPS.imports(
    "aten::where.Scalar", "aten::where.ScalarOther", "aten::where.ScalarSelf", "aten::where.self"
)
def import_where(ctx: Import, condition: Expr, self: Expr, other: Expr) -> Expr:
    return relay.where(ctx.cast(condition, "bool"), *ctx.promote(self, other))


@OPS.imports("aten::masked_fill")
def import_masked_fill(ctx: Import, self: Expr, mask: Expr, value: Expr) -> Expr:
    return relay.where(mask, ctx.cast(value, ctx.dtype(self)), self)


def _export_infix(ctx: Export, x: Value, y: Value, *, sign: str, wraps: bool) -> Value:
    def write(a: Value, b: Value) -> Value:
        return ctx.infix(sign, a, b)

    return in_computed_dtype(ctx, write, x, y, wraps=wraps)


for _name, _sign in {
    "add": "+",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "equal": "==",
    "left_shift": "<<",
    "multiply": "*",
    "not_equal": "!=",
    "subtract": "-",
}.items():
    OPS.exports(_name)(partial(_export_infix, sign=_sign, wraps=True))


for _name, _sign in {"floor_divide": "//", "floor_mod": "%"}.items():
    OPS.exports(_name)(partial(_export_infix, sign=_sign, wraps=False))


@OPS.exports("divide")
def export_divide(ctx: Export, x: Value, y: Value) -> Value:
    """Of integers, rounded towards zero; PyTorch's quotient is a float."""
    if is_float(ctx.type(x).dtype):
        return ctx.infix("/", x, y)
    return export_trunc_divide(ctx, x, y)


@OPS.exports("trunc_divide")
def export_trunc_divide(ctx: Export, x: Value, y: Value) -> Value:
    def write(a: Value, b: Value) -> Value:
        return (
            ctx.method(a, "div", b, rounding_mode="trunc")
            if a.data is not None
            else ctx.call("torch.div", a, b, rounding_mode="trunc")
        )

    return in_computed_dtype(ctx, write, x, y, wraps=False)


@OPS.exports("mod", "trunc_mod")
def export_mod(ctx: Export, x: Value, y: Value) -> Value:
    def write(a: Value, b: Value) -> Value:
        return ctx.call("torch.fmod", a, b) if a.data is None else ctx.method(a, "fmod", b)

    return in_computed_dtype(ctx, write, x, y, wraps=False)


@OPS.exports("power")
def export_power(ctx: Export, x: Value, y: Value) -> Value:
    """A number as the exponent of integers must not be negative, a tensor may."""
    if is_float(ctx.type(x).dtype):
        return ctx.infix("**", x, y)
    return in_computed_dtype(ctx, lambda a, b: ctx.method(a, "pow", b), x, y, wraps=False)


def _export_extremum(ctx: Export, x: Value, y: Value, *, target: str) -> Value:
    """Of 64 bits without a sign, the first one is turned over and back again."""
    if ctx.type(x).dtype != "uint64":
        return in_computed_dtype(ctx, lambda a, b: ctx.call(target, a, b), x, y)
    turned = (
        ctx.infix("^", ctx.method(each, "to", ctx.dtype("int64")), FIRST_BIT) for each in (x, y)
    )
    found = ctx.infix("^", ctx.call(target, *turned), FIRST_BIT)
    return ctx.method(found, "to", ctx.dtype("uint64"))


for _name in ("maximum", "minimum"):
    OPS.exports(_name)(partial(_export_extremum, target=f"torch.{_name}"))


@OPS.exports("where")
def export_where(ctx: Export, condition: Value, x: Value, y: Value) -> Value:
    known = ctx.scalar(condition) if not ctx.type(condition).shape else None
    if known is not None:
        chosen, shape = (x if known else y), ctx.result_type().shape
        same = ctx.type(chosen).shape == shape
        return chosen if same else ctx.method(chosen, "expand", ctx.sizes(shape))
    if ctx.type(condition).dtype != "bool":
        condition = ctx.infix("!=", condition, 0)
    return ctx.call("torch.where", condition, x, y)

"""Comparisons and logic."""

from __future__ import annotations

import math
from functools import partial

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Expr, call, is_float
from serde.torch.ops.table import OPS, Export, Import, Value
from serde.torch.ops.written import COMPUTED_AS, FIRST_BIT, cast, in_computed_dtype
from serde.walk.expansion.functions import has_sign
from serde.walk.pairs import reads

COMPARISONS = {
    **{name: name for name in ("greater", "greater_equal", "less", "less_equal", "not_equal")},
    "eq": "equal", "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less",
    "ne": "not_equal",
}  # fmt: skip
"""Comparisons of PyTorch, with Relay's."""


def _import_comparison(ctx: Import, self: Expr, other: Expr, *, target: str) -> Expr:
    return call(target, *ctx.promote(self, other))


for _name, _target in COMPARISONS.items():
    OPS.imports(f"aten::{_name}")(partial(_import_comparison, target=_target))


def _export_comparison(ctx: Export, x: Value, y: Value, *, sign: str) -> Value:
    """Of 64 bits without a sign, the first one is turned over, which keeps their order."""
    if ctx.type(x).dtype == "uint64":
        x, y = (
            ctx.infix("^", ctx.method(each, "to", ctx.dtype("int64")), FIRST_BIT) for each in (x, y)
        )
        return ctx.infix(sign, x, y)
    return in_computed_dtype(ctx, lambda a, b: ctx.infix(sign, a, b), x, y)


for _name, _sign in {
    "greater": ">",
    "greater_equal": ">=",
    "less": "<",
    "less_equal": "<=",
}.items():
    OPS.exports(_name)(partial(_export_comparison, sign=_sign))


def _import_logic(ctx: Import, self: Expr, other: Expr, *, op: str) -> Expr:
    return call(op, ctx.cast(self, "bool"), ctx.cast(other, "bool"))


for _name in ("logical_and", "logical_or", "logical_xor"):
    OPS.imports(f"aten::{_name}")(partial(_import_logic, op=_name))


@OPS.imports("aten::logical_not")
def import_logical_not(ctx: Import, self: Expr) -> Expr:
    return relay.logical_not(ctx.cast(self, "bool"))


@OPS.exports("logical_not")
def export_logical_not(ctx: Export, data: Value) -> Value:
    dtype = ctx.type(data).dtype
    if dtype == "bool":
        return ctx.prefix("~", data)
    return cast(ctx, ctx.prefix("~", ctx.method(data, "to", ctx.dtype("bool"))), dtype, "bool")


def _export_logical(ctx: Export, x: Value, y: Value, *, sign: str, target: str) -> Value:
    """Relay takes numbers, too, and gives their dtype back."""
    dtype = ctx.type(x).dtype
    if dtype == "bool":
        return ctx.infix(sign, x, y)
    if dtype in COMPUTED_AS:
        truths = (ctx.method(each, "to", ctx.dtype("bool")) for each in (x, y))
        return cast(ctx, ctx.infix(sign, *truths), dtype, "bool")
    return cast(ctx, ctx.call(target, x, y), dtype, "bool")


for _name, _sign in {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}.items():
    OPS.exports(_name)(partial(_export_logical, sign=_sign, target=f"torch.{_name}"))


BITWISE = {
    **{name: name for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor",
}  # fmt: skip
"""Operators of bits, and of truth values, with Relay's."""


def _import_bitwise(ctx: Import, self: Expr, other: Expr, *, target: str) -> Expr:
    one, two = ctx.promote(self, other)
    logic = target.replace("bitwise", "logical")
    return call(logic if ctx.dtype(one) == "bool" else target, one, two)


for _name, _target in BITWISE.items():
    OPS.imports(f"aten::{_name}")(partial(_import_bitwise, target=_target))


SHIFTS = {
    "__lshift__": "left_shift",
    "__rshift__": "right_shift",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}
"""Shifts, with Relay's."""


def _import_shift(ctx: Import, self: Expr, other: Expr, *, target: str) -> Expr:
    """Beyond the width nothing is left but, shifting right, the sign."""
    one, two = ctx.promote(self, other)
    dtype = ctx.dtype(one)
    if is_float(dtype) or dtype == "bool":
        raise Unsupported(f"a shift of {dtype}")
    width = 8 * numpy_dtype(dtype).itemsize
    known = ctx.known(two)
    if known is not None and ((known >= 0) & (known < width)).all():
        return call(target, one, two)
    zero, last = ctx.scalar(0, dtype), ctx.scalar(width - 1, dtype)
    inside = relay.logical_and(relay.greater_equal(two, zero), relay.less_equal(two, last))
    if target == "right_shift":
        return call(target, one, relay.where(inside, two, last))
    return relay.where(inside, call(target, one, relay.where(inside, two, zero)), zero)


for _name, _target in SHIFTS.items():
    OPS.imports(f"aten::{_name}")(partial(_import_shift, target=_target))


@OPS.exports("right_shift")
def export_right_shift(ctx: Export, x: Value, y: Value) -> Value:
    """The sign that PyTorch shifts in is cut off from what has none."""
    if ctx.type(x).dtype != "uint64":
        return in_computed_dtype(ctx, lambda a, b: ctx.infix(">>", a, b), x, y)
    signed = (ctx.method(each, "to", ctx.dtype("int64")) for each in (x, y))
    found = ctx.call(ctx.helper("shift_right_unsigned"), *signed)
    return ctx.method(found, "to", ctx.dtype("uint64"))


def _import_class(ctx: Import, self: Expr, *, target: str) -> Expr:
    """No integer is infinite or not a number."""
    if is_float(ctx.dtype(self)):
        return call(target, self)
    return relay.zeros_like(ctx.cast(self, "bool"))


OPS.imports("aten::isnan")(partial(_import_class, target="isnan"))
OPS.imports("aten::isinf")(partial(_import_class, target="isinf"))


@OPS.imports("aten::isfinite")
def import_isfinite(ctx: Import, self: Expr) -> Expr:
    if is_float(ctx.dtype(self)):
        return relay.isfinite(self)
    return relay.ones_like(ctx.cast(self, "bool"))


@OPS.imports("aten::isreal")
def import_isreal(ctx: Import, self: Expr) -> Expr:
    return relay.ones_like(ctx.cast(self, "bool"))


def _import_infinite(ctx: Import, self: Expr, *, sign: float) -> Expr:
    if not is_float(ctx.dtype(self)):
        return relay.zeros_like(ctx.cast(self, "bool"))
    return relay.equal(self, ctx.scalar(sign, ctx.dtype(self)))


OPS.imports("aten::isposinf")(partial(_import_infinite, sign=math.inf))
OPS.imports("aten::isneginf")(partial(_import_infinite, sign=-math.inf))


@OPS.imports("aten::signbit")
def import_signbit(ctx: Import, self: Expr) -> Expr:
    dtype = ctx.dtype(self)
    if is_float(dtype):
        return has_sign(self)
    if dtype == "bool":
        return relay.zeros_like(self)
    return relay.less(self, ctx.scalar(0, dtype))


OPS.pairs(reads("aten::_is_all_true", "all"), reads("aten::_is_any_true", "any"))

"""Functions of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call, is_float, limits
from serde.torch.ops.elementwise.binary import scale
from serde.torch.ops.elementwise.paired import round_once
from serde.torch.ops.table import OPS, Export, Import, Value
from serde.torch.ops.written import cast, in_computed_dtype
from serde.walk import FLOATS, SIGNED, Takes, writes

ALIKE = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "log", "log10",
    "log2", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
"""Functions of floats that PyTorch calls as Relay does."""

FLOAT_FUNCTIONS = {
    **{name: name for name in ALIKE},
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctanh": "atanh", "erfinv": "serde.erfinv", "expm1": "serde.expm1", "lgamma": "serde.lgamma",
    "log1p": "serde.log1p", "special_erf": "erf", "special_erfinv": "serde.erfinv",
    "special_expit": "sigmoid", "special_expm1": "serde.expm1",
    "special_gammaln": "serde.lgamma", "special_log1p": "serde.log1p",
}  # fmt: skip
"""Functions that make floats of integers, with Relay's."""

SAME_DTYPE = {
    "abs": "abs", "absolute": "abs", "bitwise_not": "bitwise_not", "ceil": "ceil", "fix": "trunc",
    "floor": "floor", "neg": "negative", "negative": "negative", "trunc": "trunc",
}  # fmt: skip
"""Functions that keep the dtype, with Relay's."""


def _import_float_function(ctx: Import, self: Expr, *, target: str) -> Expr:
    return call(target, *ctx.promote_to_float(self))


for _name, _target in FLOAT_FUNCTIONS.items():
    OPS.imports(f"aten::{_name}")(partial(_import_float_function, target=_target))


def _import_function(ctx: Import, self: Expr, *, target: str) -> Expr:
    """Truth values are their own absolute values."""
    if target == "abs" and ctx.dtype(self) == "bool":
        return self
    return call(target, self)


for _name, _target in SAME_DTYPE.items():
    OPS.imports(f"aten::{_name}")(partial(_import_function, target=_target))


@OPS.imports("aten::sign", "aten::sgn")
def import_sign(ctx: Import, self: Expr) -> Expr:
    """The sign of a truth value is itself."""
    return self if ctx.dtype(self) == "bool" else relay.sign(self)


@OPS.imports("aten::reciprocal")
def import_reciprocal(ctx: Import, self: Expr) -> Expr:
    (x,) = ctx.promote_to_float(self)
    return relay.divide(ctx.scalar(1, ctx.dtype(x)), x)


@OPS.imports("aten::square")
def import_square(ctx: Import, self: Expr) -> Expr:
    """The square of an integer is one; that of a truth value is itself, as int64."""
    x = ctx.cast(self, "int64") if ctx.dtype(self) == "bool" else self
    return relay.multiply(x, x)


@OPS.imports("aten::round", "aten::special_round")
def import_round(ctx: Import, self: Expr, *, decimals: int = 0) -> Expr:
    """Halves go to the even neighbour; digits are shifted before and back after."""
    if not is_float(ctx.dtype(self)):
        return self
    if decimals == 0:
        return call("serde.round_even", self)
    dtype = ctx.dtype(self)
    if abs(decimals) > 308:
        raise Unsupported(f"a rounding to {decimals} digits")
    power = ctx.scalar(10.0 ** abs(decimals), dtype)
    before, after = (relay.multiply, relay.divide)[:: 1 if decimals > 0 else -1]
    return after(call("serde.round_even", before(self, power)), power)


def _import_rounded(ctx: Import, self: Expr, *, function: Callable[[Import, Expr], Expr]) -> Expr:
    return round_once(ctx, lambda x: function(ctx, x), self)


def _erfc(ctx: Import, x: Expr) -> Expr:
    """The difference is taken in float64; beyond 5 or so it keeps no digits."""
    wide = ctx.cast(x, "float64")
    return ctx.cast(relay.subtract(ctx.scalar(1, "float64"), relay.erf(wide)), ctx.dtype(x))


def _exp2(ctx: Import, x: Expr) -> Expr:
    return relay.power(ctx.scalar(2, ctx.dtype(x)), x)


def _frac(ctx: Import, x: Expr) -> Expr:
    return relay.subtract(x, relay.trunc(x))


def _sinc(ctx: Import, x: Expr) -> Expr:
    dtype = ctx.dtype(x)
    angle = scale(ctx, x, math.pi)
    zero = relay.equal(x, ctx.scalar(0, dtype))
    return relay.where(zero, ctx.scalar(1, dtype), relay.divide(relay.sin(angle), angle))


def _angle(ctx: Import, x: Expr) -> Expr:
    dtype = ctx.dtype(x)
    zero = ctx.scalar(0, dtype)
    found = relay.where(relay.less(x, zero), ctx.scalar(math.pi, dtype), zero)
    return relay.where(relay.isnan(x), x, found)


def _entr(ctx: Import, x: Expr) -> Expr:
    dtype = ctx.dtype(x)
    zero = ctx.scalar(0, dtype)
    found = relay.negative(relay.multiply(x, relay.log(x)))
    found = relay.where(relay.equal(x, zero), zero, found)
    return relay.where(relay.less(x, zero), ctx.scalar(-math.inf, dtype), found)


def _ndtr(ctx: Import, x: Expr) -> Expr:
    half = ctx.scalar(0.5, ctx.dtype(x))
    return relay.multiply(half, _erfc(ctx, scale(ctx, x, -math.sqrt(0.5))))


FUNCTIONS = {
    "angle": _angle,
    "deg2rad": lambda ctx, x: scale(ctx, x, math.pi / 180),
    "erfc": _erfc,
    "exp2": _exp2,
    "frac": _frac,
    "rad2deg": lambda ctx, x: scale(ctx, x, 180 / math.pi),
    "sinc": _sinc,
    "special_entr": _entr,
    "special_erfc": _erfc,
    "special_exp2": _exp2,
    "special_ndtr": _ndtr,
    "special_sinc": _sinc,
}
"""Functions of floats that are spelled out."""


for _name, _function in FUNCTIONS.items():
    OPS.imports(f"aten::{_name}")(partial(_import_rounded, function=_function))


@OPS.imports("aten::logit", "aten::special_logit")
def import_logit(ctx: Import, self: Expr, *, eps: float | None = None) -> Expr:
    def function(x: Expr) -> Expr:
        dtype = ctx.dtype(x)
        if eps is not None:
            x = relay.minimum(relay.maximum(x, ctx.scalar(eps, dtype)), ctx.scalar(1 - eps, dtype))
        return relay.log(relay.divide(x, relay.subtract(ctx.scalar(1, dtype), x)))

    return round_once(ctx, function, self)


@OPS.imports("aten::nan_to_num")
def import_nan_to_num(
    ctx: Import,
    self: Expr,
    *,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Expr:
    """Infinities become the greatest and the least finite number unless told otherwise."""
    dtype = ctx.dtype(self)
    if not is_float(dtype):
        return self
    ends = limits(dtype)
    above = float(ends.max) if posinf is None else posinf
    below = float(ends.min) if neginf is None else neginf
    found = relay.where(relay.isnan(self), ctx.scalar(nan or 0.0, dtype), self)
    for end, value in ((math.inf, above), (-math.inf, below)):
        hit = relay.equal(self, ctx.scalar(end, dtype))
        found = relay.where(hit, ctx.scalar(value, dtype), found)
    return found


@OPS.imports("aten::mvlgamma", "aten::special_multigammaln")
def import_mvlgamma(ctx: Import, self: Expr, *, p: int) -> Expr:
    def function(x: Expr) -> Expr:
        dtype = ctx.dtype(x)
        total: Expr = ctx.scalar(p * (p - 1) / 4 * math.log(math.pi), dtype)
        for place in allocation.iterations(p, "the terms of a logarithm"):
            part = relay.subtract(x, ctx.scalar(place / 2, dtype))
            total = relay.add(total, call("serde.lgamma", part))
        return total

    return round_once(ctx, function, self)


OTHERS = ("isfinite", "isinf", "isnan", "ones_like", "zeros_like")
"""Further operators that PyTorch calls as Relay does."""

_FLOATS = Takes(data=FLOATS)

OPS.pairs(
    *(writes(f"torch.{name}", name) for name in (*ALIKE, *OTHERS)), writes("torch.erf", "fast_erf"),
    writes("torch.exp", "fast_exp"), writes("torch.tanh", "fast_tanh"),
    writes("torch.erfinv", "serde.erfinv"), writes("torch.expm1", "serde.expm1"),
    writes("torch.lgamma", "serde.lgamma"), writes("torch.log1p", "serde.log1p"),
    writes("torch.round", "serde.round_even"), writes("torch.abs", "abs", takes=Takes(data=SIGNED)),
    *(writes(f"torch.{name}", name, takes=_FLOATS) for name in ("ceil", "floor", "trunc")),
)  # fmt: skip


@OPS.exports("sign")
def export_sign(ctx: Export, data: Value) -> Value:
    """Of NaN PyTorch's sign is zero, Relay's NaN."""
    if is_float(ctx.type(data).dtype):
        return ctx.call(ctx.helper("sign"), data)
    if ctx.type(data).dtype.startswith("uint"):
        positive = ctx.method(data, "to", ctx.dtype("bool"))
        return ctx.method(positive, "to", ctx.dtype(ctx.type(data).dtype))
    return ctx.call("torch.sign", data)


@OPS.exports("negative")
def export_negative(ctx: Export, data: Value) -> Value:
    return in_computed_dtype(ctx, lambda x: ctx.prefix("-", x), data)


@OPS.exports("bitwise_not")
def export_bitwise_not(ctx: Export, data: Value) -> Value:
    return in_computed_dtype(ctx, lambda x: ctx.prefix("~", x), data)


@OPS.exports("round", takes=_FLOATS)
def export_round(ctx: Export, data: Value) -> Value:
    """PyTorch rounds halves to even numbers, Relay away from zero."""
    return ctx.call(ctx.helper("round_half_away"), data)


@OPS.exports("serde.tgamma")
def export_tgamma(ctx: Export, data: Value) -> Value:
    """In float64, where the logarithm of a large value keeps its digits."""
    dtype = ctx.type(data).dtype
    wide = cast(ctx, data, "float64")
    return cast(ctx, ctx.call(ctx.helper("gamma"), wide), dtype, "float64")

"""Functions of one tensor, element by element, and other dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core import iterations, numpy_dtype
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.scalars import in_floats, in_singles, scalar_like
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, is_float
from serde.walk.pairs import pair, reads, writes

ALIKE = (
    "abs", "ceil", "cos", "cosh", "erf", "exp", "floor", "log", "log10", "log2", "negative",
    "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
"""Functions that MXNet calls as Relay does."""

UNARY = {
    **{name: name for name in ALIKE},
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctanh": "atanh", "fix": "trunc", "trunc": "trunc",
}  # fmt: skip
"""MXNet's function: Relay's operator."""

ON_INTEGERS = frozenset({"abs", "ceil", "floor", "negative", "round", "sign", "trunc"})

NUMPY_NAMES = {
    "abs": ["_npi_absolute"],
    "erf": [],
    "round": [],
    "rsqrt": [],
    "sigmoid": ["_npx_sigmoid"],
}
"""MXNet's function: its name in the NumPy interface, where that is not just prefixed."""

SLOW = frozenset({"acos", "acosh", "asin", "asinh", "atan", "atanh", "erf"})
"""Functions whose values of integers are so small that float32 holds them."""


def _import_unary(ctx: Import, data: Expr, *, target: str) -> Expr:
    build = getattr(relay, target)
    dtype = ctx.type(data).dtype
    if is_float(dtype) or target in ON_INTEGERS:
        return build(data)
    if target in SLOW:
        return relay.cast(build(relay.cast(data, "float32")), dtype)
    return in_floats(ctx, OF_INTEGERS.get(target, build), data)


def _halved_exponentials(sign: float) -> Callable[[Expr], Expr]:
    def function(x: Expr) -> Expr:
        other = relay.multiply(relay.exp(relay.negative(x)), relay.const(sign, "float64"))
        return relay.multiply(relay.add(relay.exp(x), other), relay.const(0.5, "float64"))

    return function


OF_INTEGERS = {
    "cosh": _halved_exponentials(1.0),
    "sinh": _halved_exponentials(-1.0),
    "tan": lambda x: relay.divide(relay.sin(x), relay.cos(x)),
}
"""Functions that ONNX Runtime does not have in float64, made of such as it has."""

for _name, _target in UNARY.items():
    OPS.imports(_name, *NUMPY_NAMES.get(_name, [f"_npi_{_name}"]))(
        partial(_import_unary, target=_target)
    )

SPECIAL = {
    "erfinv": ("erfinv",),
    "expm1": ("expm1", "_npi_expm1"),
    "lgamma": ("gammaln",),
    "log1p": ("log1p", "_npi_log1p"),
    "tgamma": ("gamma",),
}
"""Extension operator: MXNet's functions, of which the first is written."""

OPS.pairs(
    *(writes(name, target) for target, name in {b: a for a, b in UNARY.items()}.items()),
    *(writes(name, f"fast_{name}") for name in ("erf", "exp", "tanh")),
    *(pair(f"_npi_{name}", name) for name in ("isnan", "isinf", "isfinite")),
    reads("_contrib_sign_ste", "sign"),
    writes("clip", "clip", "a_min", "a_max"),
    *(writes(functions[0], f"serde.{name}") for name, functions in SPECIAL.items()),
)


def _register_special(name: str, mxnet: tuple[str, ...]) -> None:
    build = getattr(relay.serde, name)

    @OPS.imports(*mxnet)
    def import_special(ctx: Import, data: Expr) -> Expr:
        """The gamma function of an integer is one, which its decomposition may fall short of."""
        if name == "tgamma":
            return in_floats(ctx, build, data, rounded=True)
        return in_floats(ctx, build, data)


for _name, _functions in SPECIAL.items():
    _register_special(_name, _functions)


@OPS.imports("square", "_npi_square")
def import_square(ctx: Import, data: Expr) -> Expr:
    return in_singles(ctx, lambda x: relay.multiply(x, x), data)


@OPS.imports("reciprocal", "_npi_reciprocal")
def import_reciprocal(ctx: Import, data: Expr) -> Expr:
    return relay.divide(scalar_like(ctx, data, 1), data)


@OPS.imports("cbrt", "_npi_cbrt")
def import_cbrt(ctx: Import, data: Expr) -> Expr:
    def root(x: Expr) -> Expr:
        third = scalar_like(ctx, x, 1 / 3)
        return relay.multiply(relay.sign(x), relay.power(relay.abs(x), third))

    return in_floats(ctx, root, data)


@OPS.imports("rcbrt")
def import_rcbrt(ctx: Import, data: Expr) -> Expr:
    return relay.divide(scalar_like(ctx, data, 1), import_cbrt(ctx, data))


@OPS.imports("rint", "_npi_rint")
def import_rint(ctx: Import, data: Expr) -> Expr:
    """A half goes down, whatever its sign."""
    if not is_float(ctx.type(data).dtype):
        return data
    whole = relay.floor(data)
    below = relay.less_equal(relay.subtract(data, whole), scalar_like(ctx, data, 0.5))
    return relay.where(below, whole, relay.ceil(data))


@OPS.imports("_contrib_round_ste")
def import_round_ste(ctx: Import, data: Expr) -> Expr:
    """A half goes away from zero."""
    return relay.round(data) if is_float(ctx.type(data).dtype) else data


@OPS.imports("_npi_around")
def import_around(ctx: Import, x: Expr, *, decimals: int = 0) -> Expr:
    """Scaled by one ten after the other as in MXNet; integers lose their last digits."""
    if abs(decimals) > 400:
        raise Unsupported(f"decimals={decimals} is beyond every dtype")
    ten = scalar_like(ctx, x, 10)
    up, down = (relay.multiply, relay.divide) if decimals > 0 else (relay.divide, relay.multiply)
    is_whole = not is_float(ctx.type(x).dtype)
    if is_whole and decimals >= 0:
        return x
    iterations(2 * abs(decimals), f"decimals={decimals}")
    for _ in range(abs(decimals)):
        x = up(x, ten)
    x = x if is_whole else relay.serde.round_even(x)
    for _ in range(abs(decimals)):
        x = down(x, ten)
    return x


DEGREE = float(np.float32(np.pi) / np.float32(180))

RADIAN = float(np.float32(180) / np.float32(np.pi))
"""MXNet's factors between degrees and radians: float32, whatever they multiply."""


@OPS.imports("degrees", "_npi_degrees")
def import_degrees(ctx: Import, data: Expr) -> Expr:
    return in_floats(ctx, lambda x: relay.multiply(x, scalar_like(ctx, x, RADIAN)), data)


@OPS.imports("radians", "_npi_radians")
def import_radians(ctx: Import, data: Expr) -> Expr:
    return in_floats(ctx, lambda x: relay.multiply(x, scalar_like(ctx, x, DEGREE)), data)


@OPS.imports("logical_not")
def import_logical_not(ctx: Import, data: Expr) -> Expr:
    result = relay.equal(data, scalar_like(ctx, data, 0))
    return relay.cast(result, ctx.type(data).dtype)


@OPS.exports("logical_not")
def export_logical_not(ctx: Export, data: Value) -> Value:
    is_bool = ctx.type(data).dtype == "bool"
    return ctx.emit("_npi_logical_not" if is_bool else "logical_not", data)


@OPS.imports("clip")
def import_clip(ctx: Import, data: Expr, *, a_min: float, a_max: float) -> Expr:
    """Of integers the bounds are cut towards zero."""
    if not is_float(ctx.type(data).dtype):
        a_min, a_max = float(np.trunc(a_min)), float(np.trunc(a_max))
    return relay.clip(data, a_min, a_max)


@OPS.imports("smooth_l1")
def import_smooth_l1(ctx: Import, data: Expr, *, scalar: float = 1.0) -> Expr:
    squared = scalar * scalar
    bound = 1 / squared if squared else math.inf
    inner = relay.multiply(relay.multiply(data, data), scalar_like(ctx, data, 0.5 * squared))
    size = relay.abs(data)
    outer = relay.subtract(size, scalar_like(ctx, data, 0.5 * bound))
    return relay.where(relay.less(size, scalar_like(ctx, data, bound)), inner, outer)


@OPS.imports("_contrib_quadratic")
def import_quadratic(
    ctx: Import, data: Expr, *, a: float = 0.0, b: float = 0.0, c: float = 0.0
) -> Expr:
    """Integers are rounded towards zero at the end."""
    dtype = ctx.type(data).dtype
    x = data if is_float(dtype) else relay.cast(data, "float32")
    inner = relay.add(relay.multiply(x, scalar_like(ctx, x, a)), scalar_like(ctx, x, b))
    return relay.cast(relay.add(relay.multiply(x, inner), scalar_like(ctx, x, c)), dtype)


@OPS.imports("_npi_nan_to_num", ignored=("copy",))
def import_nan_to_num(
    ctx: Import,
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


def _import_infinite(ctx: Import, data: Expr, *, sign: float) -> Expr:
    if not is_float(ctx.type(data).dtype):
        return relay.isinf(data)
    return relay.equal(data, scalar_like(ctx, data, sign * np.inf))


OPS.imports("_npi_isposinf")(partial(_import_infinite, sign=1.0))

OPS.imports("_npi_isneginf")(partial(_import_infinite, sign=-1.0))


@OPS.imports("amp_cast")
def import_amp_cast(ctx: Import, data: Expr, *, dtype: np.dtype[AnyValue]) -> Expr:
    """What is no float of 16 or 32 bits stays as it is."""
    if ctx.type(data).dtype not in ("bfloat16", "float16", "float32"):
        return data
    if not is_float(dtype.name):
        raise Unsupported(f"amp_cast to {dtype}, which oneDNN rounds and MXNet without it cuts")
    return relay.cast(data, dtype)


@OPS.imports("amp_multicast")
def import_amp_multicast(
    ctx: Import, *data: Expr, num_outputs: int, cast_narrow: bool = False
) -> tuple[Expr, ...]:
    """Floats of 16 and 32 bits take the wider, or the narrower, of their dtypes."""
    cast = ("float16", "float32")
    found = [ctx.type(x).dtype for x in data if ctx.type(x).dtype in cast]
    if not found:
        return data
    dtype = min(found) if cast_narrow else max(found)
    return tuple(relay.cast(x, dtype) if ctx.type(x).dtype in cast else x for x in data)


@OPS.exports("reinterpret")
def export_reinterpret(ctx: Export, data: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    """MXNet reads no bits: only integers of one width, and constants, are converted."""
    source, target = numpy_dtype(ctx.type(data).dtype), numpy_dtype(ctx.result_type().dtype)
    if data.data is not None:
        return ctx.const(np.array(data.data, order="C").view(target))
    if source == target:
        return data
    if {source.kind, target.kind} <= {"i", "u"}:
        return ctx.emit("Cast", data, dtype=target)
    raise Unsupported(f"the bits of {source} as {target}: MXNet converts values, not bits")


@OPS.imports(
    "_copy",
    "_np_copy",
    "_CrossDeviceCopy",
    "BlockGrad",
    "make_loss",
    "_identity_with_attr_like_rhs",
    uses=1,
)
def import_identity(ctx: Import, data: Expr) -> Expr:
    return data


@OPS.imports("_contrib_gradientmultiplier", ignored=("scalar", "is_int"))
def import_gradient_multiplier(ctx: Import, data: Expr) -> Expr:
    return data


OPS.pairs(pair("Cast", "cast", "dtype"), writes("_copy", "copy"))

"""Arithmetic, comparison and logic of two tensors, or of a tensor and a number.

Comparisons and logic give 1 and 0 in the dtype of their operands, not bool.
On integers MXNet casts a scalar operand to the tensor's dtype if it is marked
as an integer, and both to float64 if not.

Quotients and remainders. MXNet divides integers towards zero; its remainder has the sign of the
divisor and goes through float64, too narrow for int64. What it leaves of infinities, and by zero,
is 0 and not NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue, Final, TypeAlias

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.mxnet.axis_groups import MOST_GROUPS, align
from serde.mxnet.ops.elementwise.scalars import (
    dtype_of,
    in_floats,
    in_singles,
    scalar_like,
    truth,
    with_scalar,
)
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Constant, Expr, is_float
from serde.walk.expansion.functions import arctan2, greatest_divisor
from serde.walk.pairs import reads

__all__ = ["Forms"]


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


Forms: TypeAlias = tuple[str, str, str]
"""MXNet's operator for two tensors, with a scalar behind, with a scalar in front."""

_ROUNDED: Final = frozenset(("_rdiv_scalar",))
"""MXNet's operators that compute integers in float32."""


def _write_binary(ctx: Export, forms: Forms, lhs: Value, rhs: Value) -> Value:
    """Write an operator of two tensors, in the form with a scalar where one of them is one."""
    tensors, behind, before = forms
    left, right = ctx.scalar(lhs), ctx.scalar(rhs)
    if right is not None:
        return ctx.emit(behind, lhs, scalar=right)
    if left is not None and (before not in _ROUNDED or is_float(ctx.type(rhs).dtype)):
        return ctx.emit(before, rhs, scalar=left)
    return ctx.emit_bytes(tensors, *align(ctx, lhs, rhs))


BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "maximum": "maximum",
    "minimum": "minimum",
    "power": "power",
    "mod": "floor_mod",
}

COMPARE = {
    "equal": "equal",
    "not_equal": "not_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "lesser": "less",
    "lesser_equal": "less_equal",
}

LOGICAL = {"logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor"}


def arithmetic(ctx: Import, target: str, lhs: Expr, rhs: Expr) -> Expr:
    """Return one arithmetic operation."""
    if target == "power":
        return in_singles(ctx, relay.power, lhs, rhs)
    if target == "floor_mod":
        return remainder(ctx, lhs, rhs)
    return getattr(relay, target)(lhs, rhs)


def remainder(ctx: Import, lhs: Expr, rhs: Expr) -> Expr:
    """Return the remainder with the sign of the divisor, and 0 where that is 0."""
    if isinstance(rhs, Constant) and rhs.data.all():
        return relay.floor_mod(lhs, rhs)
    zero, one = scalar_like(ctx, rhs, 0), scalar_like(ctx, rhs, 1)
    by_zero = relay.equal(rhs, zero)
    divisor = rhs if is_float(ctx.type(rhs).dtype) else relay.where(by_zero, one, rhs)
    return relay.where(by_zero, zero, relay.floor_mod(lhs, divisor))


def _import_binary(ctx: Import, lhs: Expr, rhs: Expr, *, target: str) -> Expr:
    return arithmetic(ctx, target, lhs, rhs)


def _import_compare(ctx: Import, lhs: Expr, rhs: Expr, *, target: str) -> Expr:
    return relay.cast(getattr(relay, target)(lhs, rhs), ctx.type(lhs).dtype)


def _import_logical(ctx: Import, lhs: Expr, rhs: Expr, *, target: str) -> Expr:
    result = getattr(relay, target)(truth(ctx, lhs), truth(ctx, rhs))
    return relay.cast(result, ctx.type(lhs).dtype)


def _import_scalar(
    ctx: Import,
    data: Expr,
    *,
    binary: Callable[..., AnyValue],
    swapped: bool,
    scalar: float = 1.0,
    is_int: bool = True,
) -> Expr:
    tensor, other = with_scalar(ctx, data, scalar, is_int)
    return binary(ctx, other, tensor) if swapped else binary(ctx, tensor, other)


def _divide(ctx: Import, lhs: Expr, rhs: Expr) -> Expr:
    """MXNet divides a number by integers in float32."""
    return in_singles(ctx, relay.divide, lhs, rhs)


SCATTERED = {
    "elemwise_div": ["_scatter_elemwise_div"],
    "_plus_scalar": ["_scatter_plus_scalar"],
    "_minus_scalar": ["_scatter_minus_scalar"],
}
"""Operators with a second form that, of sparse tensors, computes the stored elements only."""

for _name, _target in BINARY.items():
    _function = partial(_import_binary, target=_target)
    _same_shape = f"elemwise_{_name}" if _name in ("add", "sub", "mul", "div") else f"_{_name}"
    OPS.imports(_same_shape, f"broadcast_{_name}", *SCATTERED.get(_same_shape, []))(_function)
    _stem = {"add": "plus", "sub": "minus"}.get(_name, _name)
    _with_scalar = [f"_{_stem}_scalar", *SCATTERED.get(f"_{_stem}_scalar", [])]
    OPS.imports(*_with_scalar)(partial(_import_scalar, binary=_function, swapped=False))
    if _name in ("sub", "div", "power", "mod"):
        _behind = _divide if _name == "div" else _function
        OPS.imports(f"_r{_stem}_scalar")(partial(_import_scalar, binary=_behind, swapped=True))

for _name, _target in COMPARE.items():
    _function = partial(_import_compare, target=_target)
    OPS.imports(f"_{_name}", f"broadcast_{_name}")(_function)
    OPS.imports(f"_{_name}_scalar")(partial(_import_scalar, binary=_function, swapped=False))

for _name, _target in LOGICAL.items():
    _function = partial(_import_logical, target=_target)
    OPS.imports(f"_{_name}", f"broadcast_{_name}")(_function)
    OPS.imports(f"_{_name}_scalar")(partial(_import_scalar, binary=_function, swapped=False))

WRITTEN: dict[str, Forms] = {
    "add": ("broadcast_add", "_plus_scalar", "_plus_scalar"),
    "subtract": ("broadcast_sub", "_minus_scalar", "_rminus_scalar"),
    "multiply": ("broadcast_mul", "_mul_scalar", "_mul_scalar"),
    "divide": ("broadcast_div", "_div_scalar", "_rdiv_scalar"),
    "maximum": ("broadcast_maximum", "_maximum_scalar", "_maximum_scalar"),
    "minimum": ("broadcast_minimum", "_minimum_scalar", "_minimum_scalar"),
    "equal": ("_npi_equal", "_npi_equal_scalar", "_npi_equal_scalar"),
    "not_equal": ("_npi_not_equal", "_npi_not_equal_scalar", "_npi_not_equal_scalar"),
    "greater": ("_npi_greater", "_npi_greater_scalar", "_npi_less_scalar"),
    "greater_equal": (
        "_npi_greater_equal", "_npi_greater_equal_scalar", "_npi_less_equal_scalar",
    ),
    "less": ("_npi_less", "_npi_less_scalar", "_npi_greater_scalar"),
    "less_equal": ("_npi_less_equal", "_npi_less_equal_scalar", "_npi_greater_equal_scalar"),
}  # fmt: skip
"""Relay's operators in MXNet."""


def _declare_binary_export(name: str, forms: Forms) -> None:
    @OPS.exports(name)
    def export_binary(ctx: Export, lhs: Value, rhs: Value) -> Value:
        return _write_binary(ctx, forms, lhs, rhs)


for _relay, _forms in WRITTEN.items():
    _declare_binary_export(_relay, _forms)


@OPS.exports("power")
def export_power(ctx: Export, lhs: Value, rhs: Value) -> Value:
    """MXNet computes powers of integers in float32."""
    if not is_float(ctx.type(lhs).dtype):
        return ctx.spell(integer_power, lhs, rhs)
    return _write_binary(ctx, ("broadcast_power", "_power_scalar", "_rpower_scalar"), lhs, rhs)


@OPS.imports("add_n")
def import_add_n(ctx: Import, *args: Expr, num_args: int = 0) -> Expr:
    if not args:
        raise Unsupported("expected at least 1 input, found 0")
    total = args[0]
    for term in args[1:]:
        total = relay.add(total, term)
    return total


@OPS.imports("_hypot", "broadcast_hypot", "_npi_hypot")
def import_hypot(ctx: Import, lhs: Expr, rhs: Expr) -> Expr:
    """In float64, where squares of the others neither overflow nor vanish."""
    wide = [relay.cast(x, "float64") for x in (lhs, rhs)]
    squares = relay.add(*(relay.multiply(x, x) for x in wide))
    return relay.cast(relay.sqrt(squares), ctx.type(lhs).dtype)


OPS.imports("_hypot_scalar")(partial(_import_scalar, binary=import_hypot, swapped=False))


@OPS.imports("where")
def import_where(ctx: Import, condition: Expr, x: Expr, y: Expr) -> Expr:
    """A vector as condition chooses whole entries of axis 0."""
    chosen = truth(ctx, condition)
    rank = ctx.type(x).rank
    if ctx.type(condition).rank == 1 and rank > 1:
        chosen = relay.expand_dims(chosen, 1, rank - 1)
    return relay.where(chosen, x, y)


@OPS.exports("where")
def export_where(ctx: Export, condition: Value, x: Value, y: Value) -> Value:
    """NumPy's operator takes five axes, the other one no broadcasts, and no bools."""
    shape = ctx.result_type().shape
    if len(shape) <= MOST_GROUPS:
        return ctx.where(ctx.cast(condition, "bool"), x, y, shape)
    whole = [ctx.spell(lambda a: relay.broadcast_to(a, shape), each) for each in (condition, x, y)]
    return ctx.emit_bytes("where", *whole)


def _copysign(ctx: Import, lhs: Expr, rhs: Expr) -> Expr:
    """MXNet takes the sign of a zero for plus, and that of NaN for minus."""
    zero = scalar_like(ctx, lhs, 0)
    alike = relay.equal(relay.greater_equal(lhs, zero), relay.greater_equal(rhs, zero))
    return relay.where(alike, lhs, relay.negative(lhs))


def _arctan2(ctx: Import, lhs: Expr, rhs: Expr) -> Expr:
    return in_floats(ctx, arctan2, lhs, rhs)


def _ldexp(ctx: Import, lhs: Expr, rhs: Expr) -> Expr:
    """The power of two in float64, for it may overflow where the product does not."""
    wide = [relay.cast(x, "float64") for x in (lhs, rhs)]
    power = relay.power(relay.const(2.0, "float64"), wide[1])
    return relay.cast(relay.multiply(wide[0], power), ctx.type(lhs).dtype)


def _lcm(ctx: Import, lhs: Expr, rhs: Expr) -> Expr:
    dtype = ctx.type(lhs).dtype
    if dtype == "bool":
        return relay.logical_and(lhs, rhs)
    if is_float(dtype):
        raise Unsupported(f"expected integers, found {dtype}")
    left, right = (relay.abs(relay.cast(x, "int64")) for x in (lhs, rhs))
    nothing = relay.equal(relay.multiply(left, right), relay.const(0, "int64"))
    divisor = relay.where(nothing, relay.const(1, "int64"), greatest_divisor(left, right))
    return relay.cast(relay.multiply(relay.divide(left, divisor), right), dtype)


PAIRS = {"arctan2": _arctan2, "copysign": _copysign, "lcm": _lcm, "ldexp": _ldexp}

for _name, _pair in PAIRS.items():
    OPS.imports(f"_npi_{_name}")(_pair)
    OPS.imports(f"_npi_{_name}_scalar")(partial(_import_scalar, binary=_pair, swapped=False))
    if _name != "lcm":
        OPS.imports(f"_npi_r{_name}_scalar")(partial(_import_scalar, binary=_pair, swapped=True))


@OPS.imports("_contrib_allclose")
def import_allclose(
    ctx: Import, a: Expr, b: Expr, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = True
) -> Expr:
    """Anything is close to an infinity, whatever its sign, as both sides of the bound are one."""
    if not is_float(ctx.type(a).dtype):
        a, b = relay.cast(a, "float64"), relay.cast(b, "float64")
    bound = relay.multiply(relay.abs(b), scalar_like(ctx, b, rtol))
    bound = relay.add(bound, scalar_like(ctx, b, atol))
    near = relay.less_equal(relay.abs(relay.subtract(a, b)), bound)
    close = relay.logical_or(relay.equal(a, b), near)
    if equal_nan:
        close = relay.logical_or(close, relay.logical_and(relay.isnan(a), relay.isnan(b)))
    return relay.cast(relay.all(close), "uint8")


OPS.pairs(reads("_grad_add", "add"))


def zero_like(x: Expr) -> Expr:
    """Return 0 of the dtype of `x`."""
    return relay.const(0, dtype_of(x))


def _remainder(lhs: Expr, rhs: Expr) -> Expr:
    """Return the remainder with the sign of the dividend, without rounding."""
    if not is_float(dtype_of(lhs)):
        return relay.subtract(lhs, relay.multiply(relay.divide(lhs, rhs), rhs))
    size = relay.floor_mod(relay.abs(lhs), relay.abs(rhs))
    signed = relay.where(relay.less(lhs, zero_like(lhs)), relay.negative(size), size)
    return _where_defined(signed, lhs, rhs)


def _where_defined(remainder: Expr, lhs: Expr, rhs: Expr) -> Expr:
    """Return NaN in place of a remainder of an infinity, or by zero."""
    finite = relay.add(remainder, relay.subtract(lhs, lhs))
    nothing = relay.const(np.nan, dtype_of(lhs))
    return relay.where(relay.equal(rhs, zero_like(rhs)), nothing, finite)


def _is_other_side(remainder: Expr, rhs: Expr) -> Expr:
    """Return where a remainder that is not 0 and the divisor differ in sign."""
    zero = zero_like(rhs)
    signs = relay.not_equal(relay.less(remainder, zero), relay.less(rhs, zero))
    return relay.logical_and(relay.not_equal(remainder, zero), signs)


def _floor_quotient(lhs: Expr, rhs: Expr) -> Expr:
    """Return the floor of the exact quotient, not of the rounded one."""
    dtype = dtype_of(lhs)
    remainder = _remainder(lhs, rhs)
    below = relay.cast(_is_other_side(remainder, rhs), dtype)
    if not is_float(dtype):
        return relay.subtract(relay.divide(lhs, rhs), below)
    whole = relay.round(relay.divide(relay.subtract(lhs, remainder), rhs))
    by_zero = relay.equal(rhs, zero_like(rhs))
    return relay.where(by_zero, relay.divide(lhs, rhs), relay.subtract(whole, below))


def _floor_remainder(lhs: Expr, rhs: Expr) -> Expr:
    remainder = _remainder(lhs, rhs)
    return relay.where(_is_other_side(remainder, rhs), relay.add(remainder, rhs), remainder)


@OPS.exports("floor_divide")
def export_floor_divide(ctx: Export, lhs: Value, rhs: Value) -> Value:
    return ctx.spell(_floor_quotient, lhs, rhs)


@OPS.exports("trunc_divide")
def export_trunc_divide(ctx: Export, lhs: Value, rhs: Value) -> Value:
    if is_float(ctx.type(lhs).dtype):
        return ctx.spell(lambda a, b: relay.trunc(relay.divide(a, b)), lhs, rhs)
    return ctx.spell(relay.divide, lhs, rhs)


@OPS.exports("mod", "trunc_mod")
def export_trunc_mod(ctx: Export, lhs: Value, rhs: Value) -> Value:
    return ctx.spell(_remainder, lhs, rhs)


@OPS.exports("floor_mod")
def export_floor_mod(ctx: Export, lhs: Value, rhs: Value) -> Value:
    if ctx.type(lhs).dtype == "int64":
        return ctx.spell(_floor_remainder, lhs, rhs)
    return _write_binary(ctx, ("broadcast_mod", "_mod_scalar", "_rmod_scalar"), lhs, rhs)

"""Functions of one tensor: rounding, bounds, conversions, and the error function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.nnef.export_context import element_type
from serde.nnef.ops.elementwise.arithmetic import are_integers, join_root
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Constant, Expr, is_float, tensor_type
from serde.walk import FLOATS, Takes, pair, reads, writes

ALIKE: Final = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log2",
    "rsqrt", "sigmoid", "sign", "sin", "sinh", "tan", "tanh",
)  # fmt: skip
"""Fragments of one tensor that have Relay's names."""

ROUNDING: Final = ("floor", "ceil", "round")
"""Fragments that have Relay's names. ``round`` takes halves away from zero, as Relay's does.

The standard says no more than the nearest integer. Khronos' own runtime calls C's ``round``.
"""

OPS.pairs(
    reads("sqrt", "sqrt"),
    *(pair(op, op) for op in ALIKE),
    pair("neg", "negative"),
    *(pair(op, op, takes=Takes(data=FLOATS)) for op in ROUNDING),
    writes("exp", "fast_exp"),
    writes("tanh", "fast_tanh"),
)


@OPS.exports("sqrt")
def export_sqrt(ctx: Export, data: Value) -> Value:
    return join_root(ctx, data) or ctx.emit("sqrt", data)


@OPS.exports("log10")
def export_log10(ctx: Export, data: Value) -> Value:
    base = ctx.const(math.log(10), ctx.type(data).dtype)
    return ctx.emit("div", ctx.emit("log", data), base)


def _export_filled(ctx: Export, data: Value, *, value: int) -> Value:
    return ctx.const(allocation.full(ctx.static_shape(data), value), ctx.type(data).dtype)


for _value, _name in enumerate(("zeros_like", "ones_like")):
    OPS.exports(_name)(partial(_export_filled, value=_value))


@OPS.imports("clamp")
def import_clamp(ctx: Import, x: Expr, a: Expr, b: Expr) -> Expr:
    """``max(min(x, b), a)``: of bounds that cross, the lower one holds."""
    low, high = (_literal(ctx, bound) for bound in (a, b))
    if low is not None and high is not None and low <= high:
        return relay.clip(x, low, high)
    x, a, b = ctx.align(x, a, b)
    return relay.maximum(relay.minimum(x, b), a)


def _literal(ctx: Import, x: Expr) -> float | None:
    return float(x.data.item()) if ctx.is_literal(x) and isinstance(x, Constant) else None


def _is_between_scalars(node: Call) -> bool:
    """Whether elements are scalars, or integers between two that scalars hold."""
    bounds = node.attrs["a_min"], node.attrs["a_max"]
    return not are_integers(node) or max(map(abs, bounds)) <= 2**24


@OPS.exports("clip", when=_is_between_scalars)
def export_clip(ctx: Export, data: Value, *, a_min: float, a_max: float) -> Value:
    """A bound that is infinite is none. Scalars hold all integers between bounds that are small."""
    dtype = ctx.type(data).dtype
    if not is_float(dtype):
        return _clip_integers(ctx, data, a_min, a_max)
    low, high = (ctx.const(bound, dtype) for bound in (a_min, a_max))
    if math.isinf(a_min):
        return data if math.isinf(a_max) else ctx.emit("min", data, high)
    return ctx.emit("max", data, low) if math.isinf(a_max) else ctx.emit("clamp", data, low, high)


def _clip_integers(ctx: Export, data: Value, low: float, high: float) -> Value:
    """Return integers between two, computed in scalars; codes of a quantisation stay such."""
    dtype = ctx.type(data).dtype
    most = 2 ** (np.finfo(numpy_dtype(ctx.scalar)).nmant + 1)
    if not max(abs(low), abs(high)) <= most:
        raise Unsupported(f"integers between {low} and {high}, which {ctx.scalar} does not hold")
    clipped = ctx.spell(
        lambda x: relay.cast(relay.clip(relay.cast(x, ctx.scalar), low, high), dtype), data
    )
    known = ctx.quantized.get(data.name)
    if known is not None and known.limits is None and clipped.name:
        ctx.quantized[clipped.name] = replace(known, limits=(low, high))
    return clipped


_END: Final = 3.7439211627767994
"""From here on the error function is 1 in float32."""

_NUMERATOR: Final = (
    0.00022905065861350646,
    0.0034082910107109506,
    0.050955695062380861,
    0.18520832239976145,
    1.128379143519084,
)
_DENOMINATOR: Final = (
    -1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667,
    0.11098505178285362, 0.49746925110067538, 1.0,
)  # fmt: skip
"""Coefficients of powers of the square, highest first: the quotient is off by 3e-7 at most."""


@OPS.expands("erf", "fast_erf")
def expand_erf(data: Expr) -> Expr:
    """``x * p(x * x) / q(x * x)``, right to the rounding of float32."""
    dtype = tensor_type(data).dtype
    if dtype != "float32":
        raise Unsupported("NNEF has no error function, and its form here is that of float32")
    x = relay.clip(data, -_END, _END)
    square = relay.multiply(x, x)
    above = relay.multiply(x, _polynomial(_NUMERATOR, square, dtype))
    return relay.divide(above, _polynomial(_DENOMINATOR, square, dtype))


def _polynomial(coefficients: Sequence[float], x: Expr, dtype: str) -> Expr:
    first, second, *rest = coefficients
    factor = relay.multiply(x, relay.const(first, dtype))
    value = relay.add(factor, relay.const(second, dtype))
    for each in rest:
        value = relay.add(relay.multiply(value, x), relay.const(each, dtype))
    return value


@OPS.imports("cast")
def import_cast(ctx: Import, input: Expr, *, dtype: str = "float32") -> Expr:
    """Types have no width: a cast to the type that there is changes nothing.

    Scalars become integers towards zero, and logical values where they are not 0.
    """
    have = ctx.type(input).dtype
    same = np.dtype(have).kind in "iu" and np.dtype(dtype).kind in "iu"
    return input if same or have == dtype else relay.cast(input, dtype)


@OPS.exports("cast", ignored=("dtype",))
def export_cast(ctx: Export, data: Value) -> Value:
    have, wanted = ctx.type(data).dtype, ctx.result_type().dtype
    if data.data is not None:
        return ctx.const(data.data.astype(numpy_dtype(wanted)))
    kind = element_type(wanted)
    if element_type(have) != kind:
        return ctx.emit("cast", data, dtype=kind)
    if have != wanted and not np.can_cast(have, wanted) and (have, wanted) not in _INTEGERS:
        raise Unsupported(f"integers of NNEF have no width, so none cuts {have} to {wanted}")
    return data


_INTEGERS = frozenset((("int64", "int32"), ("uint64", "int64"), ("uint32", "int32")))
"""Casts that keep what integers of NNEF can hold, which Khronos' runtime has in 32 bits."""


@OPS.imports("copy_n")
def import_copy_n(ctx: Import, x: Expr, *, times: int) -> list[Expr]:
    if times != ctx.outputs:
        raise Unsupported(f"times={times} for {ctx.outputs} results")
    return [x] * times


@OPS.imports("add_n")
def import_add_n(ctx: Import, *x: Expr) -> Expr:
    """A list of none gives one 0."""
    if not x:
        return relay.zeros([1], ctx.scalar)
    total = x[-1]
    for place in allocation.iterations(len(x) - 1, "a sum of many tensors"):
        total = relay.add(*ctx.align(x[-2 - place], total))
    return total


OPS.pairs(reads("copy", "copy"))

"""Arithmetic, comparison, functions and conversion, element by element."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.coreml.mlprogram.operators import (
    FLOATS,
    NUMBERS,
    NUMBERS_OR_BOOL,
    cast_to,
    compute_dtype,
    emit_in,
)
from serde.coreml.mlprogram.ops.shape.arrange import spread, spread_as
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Any, Expr, TensorType, broadcast, call, is_float, tensor_type
from serde.relay.op.elementwise.unary import clip_limits
from serde.walk.pairs import reads, writes
from serde.walk.takes import FLOATS as REALS, Takes

DTYPES = {
    "bool": "bool",
    "fp16": "float16",
    "fp32": "float32",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "uint8": "uint8",
    "uint16": "uint16",
}
"""dtypes by MIL's names."""

CAST_TO = {
    15: frozenset({"bool", "float16", "float32", "int32"}),
    17: frozenset({"bool", "float16", "float32", "int32", "int8", "int16", "uint8", "uint16"}),
}
"""dtypes that a cast takes and gives, by the version of iOS from which on."""

UNARY = {
    name: "serde.round_even" if name == "round" else name
    for name in (
        "abs", "acos", "asin", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "floor",
        "round", "sign", "sin", "sinh", "sqrt", "tan", "tanh",
    )
}  # fmt: skip
"""MIL's operator: Relay's."""

OF_INTEGERS = frozenset({"abs", "sign"})
"""Functions that MIL has of integers too."""

ROUNDED = frozenset({"ceil", "floor"})
"""Functions that leave integers as they are, which are none to MIL."""

BINARY = {
    "add": "add",
    "maximum": "maximum",
    "minimum": "minimum",
    "mod": "floor_mod",
    "mul": "multiply",
    "sub": "subtract",
}
COMPARE = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
LOGICAL = ("logical_and", "logical_or", "logical_xor")

Name = Literal["bool", "fp16", "fp32", "int8", "int16", "int32", "uint8", "uint16"]


def like(ctx: Import, x: Expr, value: float) -> Expr:
    """Return a number in the dtype of a tensor."""
    return relay.Constant(np.array(value, numpy_dtype(ctx.type(x).dtype)))


def _export_function(ctx: Export, data: Value, *, op: str) -> Value:
    return emit_in(ctx, NUMBERS if op in OF_INTEGERS else FLOATS, op, {"x": data})


for _op, _target in UNARY.items():
    OPS.pairs(reads(_op, _target))
    OPS.exports(_target, takes=Takes(data=REALS) if _target in ROUNDED else None)(
        partial(_export_function, op=_op)
    )
for _op in ("erf", "exp", "tanh"):
    OPS.exports(f"fast_{_op}")(partial(_export_function, op=_op))


@OPS.exports("logical_not")
def export_logical_not(ctx: Export, data: Value) -> Value:
    type_ = ctx.type(data)
    found = ctx.emit("logical_not", TensorType(type_.shape, "bool"), x=ctx.cast(data, "bool"))
    return ctx.cast(found, type_.dtype)


def _import_arithmetic(ctx: Import, x: Expr, y: Expr, *, target: str) -> Expr:
    return call(target, *promote(ctx, x, y))


def promote(ctx: Import, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Return two tensors in the wider of their dtypes; floats are wider than integers."""
    one, two = ctx.type(x).dtype, ctx.type(y).dtype
    if one == two:
        return x, y
    order = ["bool", "uint8", "int8", "uint16", "int16", "int32", "float16", "float32"]
    if not {one, two} <= set(order):
        raise Unsupported(f"operands of {one} and {two}")
    wide = max(one, two, key=order.index)
    return relay.cast(x, wide), relay.cast(y, wide)


def _export_binary(ctx: Export, lhs: Value, rhs: Value, *, op: str) -> Value:
    return emit_in(ctx, NUMBERS, op, {"x": lhs, "y": rhs})


def _export_comparison(ctx: Export, lhs: Value, rhs: Value, *, op: str) -> Value:
    dtype = compute_dtype(ctx, ctx.type(lhs).dtype, NUMBERS)
    return ctx.emit(op, x=cast_to(ctx, lhs, dtype), y=cast_to(ctx, rhs, dtype))


for _op, _target in BINARY.items():
    OPS.imports(_op)(partial(_import_arithmetic, target=_target))
    OPS.exports(_target)(partial(_export_binary, op=_op))
for _op in COMPARE:
    OPS.imports(_op)(partial(_import_arithmetic, target=_op))
    OPS.exports(_op)(partial(_export_comparison, op=_op))

OPS.imports("pow")(partial(_import_arithmetic, target="power"))


@OPS.exports("power")
def export_power(ctx: Export, lhs: Value, rhs: Value) -> Value:
    """MIL does not say what integers to negative powers are, which Relay cuts towards zero."""
    known = rhs.data is not None and bool((rhs.data >= 0).all())
    if known or not ctx.type(lhs).dtype.startswith("int"):
        return emit_in(ctx, NUMBERS, "pow", {"x": lhs, "y": rhs})
    least = ctx.spell(lambda y: relay.maximum(y, _number_like(y, 0)), rhs)
    powers = emit_in(ctx, NUMBERS, "pow", {"x": lhs, "y": least})

    def cut(x: Expr, y: Expr, found: Expr) -> Expr:
        one = _number_like(x, 1)
        even = relay.equal(relay.floor_mod(y, _number_like(y, 2)), _number_like(y, 0))
        unit = relay.equal(relay.abs(x), one)
        inverse = relay.where(unit, relay.where(even, one, x), _number_like(x, 0))
        return relay.where(relay.less(y, _number_like(y, 0)), inverse, found)

    return ctx.spell(cut, lhs, rhs, powers)


def _export_logical(ctx: Export, lhs: Value, rhs: Value, *, op: str) -> Value:
    truth = [ctx.cast(x, "bool") for x in (lhs, rhs)]
    result = ctx.result_type()
    found = ctx.emit(op, TensorType(result.shape, "bool"), x=truth[0], y=truth[1])
    return ctx.cast(found, result.dtype)


for _op in LOGICAL:
    OPS.imports(_op)(partial(_import_arithmetic, target=_op))
    OPS.exports(_op)(partial(_export_logical, op=_op))


@OPS.imports("real_div")
def import_real_div(ctx: Import, x: Expr, y: Expr) -> Expr:
    """Integers are divided as floats and cut towards zero."""
    x, y = promote(ctx, x, y)
    return relay.divide(x, y)


@OPS.exports("divide")
def export_divide(ctx: Export, lhs: Value, rhs: Value) -> Value:
    """Of integers Relay cuts towards zero: a division of magnitudes, with the sign put back."""
    if is_float(ctx.type(lhs).dtype):
        return ctx.emit("real_div", x=lhs, y=rhs)

    def expand(x: Expr, y: Expr) -> Expr:
        whole = relay.floor_divide(relay.abs(x), relay.abs(y))
        return relay.multiply(whole, relay.multiply(relay.sign(x), relay.sign(y)))

    return ctx.spell(expand, lhs, rhs)


@OPS.imports("floor_div")
def import_floor_div(ctx: Import, x: Expr, y: Expr) -> Expr:
    x, y = promote(ctx, x, y)
    if is_float(ctx.type(x).dtype):
        return relay.floor(relay.divide(x, y))
    return relay.floor_divide(x, y)


@OPS.exports("floor_divide")
def export_floor_divide(ctx: Export, lhs: Value, rhs: Value) -> Value:
    return emit_in(ctx, NUMBERS, "floor_div", {"x": lhs, "y": rhs})


def expand_magnitudes(lhs: Expr, rhs: Expr, *, build: Callable[[Expr, Expr], Expr]) -> Expr:
    """Return a function of two numbers' magnitudes, with the sign of the first."""
    return relay.multiply(relay.sign(lhs), build(relay.abs(lhs), relay.abs(rhs)))


OPS.expands("mod", "trunc_mod")(partial(expand_magnitudes, build=relay.floor_mod))


@OPS.imports("inverse", since=(1, 17))
def import_inverse(ctx: Import, x: Expr, *, epsilon: float = 1e-4) -> Expr:
    return relay.divide(like(ctx, x, 1), relay.add(x, like(ctx, x, epsilon)))


@OPS.imports("log", since=(1, 17))
def import_log(ctx: Import, x: Expr, *, epsilon: float = 1e-45) -> Expr:
    """What is added is nothing in float16, and the least float32, which only saves log(0)."""
    offset = like(ctx, x, epsilon)
    return relay.log(relay.add(x, offset) if ctx.constant(offset) else x)


@OPS.imports("rsqrt", since=(1, 17))
def import_rsqrt(ctx: Import, x: Expr, *, epsilon: float = 1e-12) -> Expr:
    offset = like(ctx, x, epsilon)
    return relay.rsqrt(relay.add(x, offset) if ctx.constant(offset) else x)


@OPS.imports("square")
def import_square(ctx: Import, x: Expr) -> Expr:
    return relay.multiply(x, x)


@OPS.imports("exp2")
def import_exp2(ctx: Import, x: Expr) -> Expr:
    return relay.power(like(ctx, x, 2), x)


@OPS.imports("threshold")
def import_threshold(ctx: Import, x: Expr, *, alpha: float) -> Expr:
    return relay.maximum(x, like(ctx, x, alpha))


@OPS.exports("clip")
def export_clip(ctx: Export, a: Value, *, a_min: float, a_max: float) -> Value:
    if not is_float(ctx.type(a).dtype):
        ends = [np.array(end) for end in clip_limits(numpy_dtype(ctx.type(a).dtype), a_min, a_max)]
        return ctx.spell(
            lambda x: relay.minimum(
                relay.maximum(x, relay.Constant(ends[0])), relay.Constant(ends[1])
            ),
            a,
        )
    most = float(np.finfo(ctx.type(a).dtype).max)  # What is beyond it bounds nothing.
    low, high = (-np.inf if a_min < -most else a_min), (np.inf if a_max > most else a_max)
    return ctx.emit("clip", x=a, alpha=low, beta=high)


@OPS.exports("negative")
def export_negative(ctx: Export, data: Value) -> Value:
    return ctx.emit("mul", x=data, y=ctx.const(-1, ctx.type(data).dtype))


@OPS.imports("select")
def import_select(ctx: Import, cond: Expr, a: Expr, b: Expr) -> Expr:
    a, b = promote(ctx, a, b)
    return relay.where(cond, a, b)


@OPS.exports("where")
def export_where(ctx: Export, condition: Value, x: Value, y: Value) -> Value:
    """MIL takes truth values alone, and what is chosen among must span the result."""
    a, b = x, y
    result = ctx.result_type()
    if broadcast(ctx.type(x).shape, ctx.type(y).shape) != result.shape:
        open_ = any(isinstance(dim, Any) for dim in result.shape)
        b = spread_as(ctx, y, condition) if open_ else spread(ctx, y, result.shape)
    return emit_in(
        ctx, NUMBERS_OR_BOOL, "select", {"a": a, "b": b}, cond=ctx.cast(condition, "bool")
    )


@OPS.imports("identity")
def import_identity(ctx: Import, x: Expr) -> Expr:
    return x


@OPS.imports("cast", since=(1, 17))
def import_cast(ctx: Import, x: Expr, *, dtype: Name) -> Expr:
    return relay.cast(x, DTYPES[dtype])


@OPS.exports("cast")
def export_cast(ctx: Export, data: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    """Integers of 64 bits are held in 32, so that a cast between the two is nothing."""
    held = {"int64": "int32", "float64": "float32"}
    source = held.get(ctx.type(data).dtype, ctx.type(data).dtype)
    target = held.get(dtype.name, dtype.name)
    if source == target:
        return data
    allowed = CAST_TO[17 if ctx.narrows else 15]
    for each in (source, target):
        if each not in allowed:
            hint = "use minimum_deployment_target='iOS17'" if each in CAST_TO[17] else None
            raise Unsupported(f"a cast from {source} to {target} at iOS{ctx.version}", hint=hint)
    names = {found: name for name, found in DTYPES.items()}
    return ctx.emit("cast", x=data, dtype=names[target])


def _number_like(x: Expr, value: float) -> Expr:
    return relay.Constant(np.array(value, numpy_dtype(tensor_type(x).dtype)))


@OPS.expands("acosh")
def expand_acosh(data: Expr) -> Expr:
    """Two roots, as a square would overflow."""
    one = _number_like(data, 1)
    roots = relay.multiply(relay.sqrt(relay.subtract(data, one)), relay.sqrt(relay.add(data, one)))
    return relay.log(relay.add(data, roots))


@OPS.expands("asinh")
def expand_asinh(data: Expr) -> Expr:
    """Below one by another function, as a logarithm would lose small numbers."""
    one = _number_like(data, 1)
    size = relay.abs(data)
    small = relay.minimum(size, one)
    root = relay.sqrt(relay.add(relay.multiply(small, small), one))
    near = relay.atanh(relay.divide(small, root))
    above = relay.maximum(size, one)
    inverse = relay.divide(one, above)
    tail = relay.sqrt(relay.add(one, relay.multiply(inverse, inverse)))
    far = relay.add(relay.log(above), relay.log(relay.add(one, tail)))
    return relay.multiply(relay.sign(data), relay.where(relay.less(size, one), near, far))


OPS.pairs(
    writes("log", "log", constants={"epsilon": 0.0}),
    writes("rsqrt", "rsqrt", constants={"epsilon": 0.0}),
    reads(
        "clip", "clip", "alpha", "beta", since=(1, 17), renamed={"alpha": "a_min", "beta": "a_max"}
    ),
    reads("logical_not", "logical_not"),
)

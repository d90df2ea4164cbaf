"""Arithmetic, comparisons, logic and types of elements; operands broadcast as Relay's do."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float
from serde.tflite.import_context import ImportContext
from serde.tflite.ops.table import OPS
from serde.tflite.schema import code_names
from serde.walk.expansion.functions import arctan2
from serde.walk.pairs import pair

OPS.pairs(
    pair("ABS", "abs"),
    pair("BITWISE_XOR", "bitwise_xor"),
    pair("CEIL", "ceil"),
    pair("COS", "cos"),
    pair("EQUAL", "equal"),
    pair("EXP", "exp"),
    pair("FLOOR", "floor"),
    pair("FLOOR_DIV", "floor_divide"),
    pair("FLOOR_MOD", "floor_mod"),
    pair("GREATER", "greater"),
    pair("GREATER_EQUAL", "greater_equal"),
    pair("LESS", "less"),
    pair("LESS_EQUAL", "less_equal"),
    pair("LOG", "log"),
    pair("LOGICAL_AND", "logical_and"),
    pair("LOGICAL_NOT", "logical_not"),
    pair("LOGICAL_OR", "logical_or"),
    pair("MAXIMUM", "maximum"),
    pair("MINIMUM", "minimum"),
    pair("NEG", "negative"),
    pair("NOT_EQUAL", "not_equal"),
    pair("POW", "power"),
    pair("RIGHT_SHIFT", "right_shift"),
    pair("ROUND", "serde.round_even"),
    pair("RSQRT", "rsqrt"),
    pair("SIGN", "sign"),
    pair("SIN", "sin"),
    pair("SQRT", "sqrt"),
    pair("ZEROS_LIKE", "zeros_like"),
)


@OPS.imports("ADD", ignored=("pot_scale_int16",))
def import_add(ctx: ImportContext, x: Expr, y: Expr, *, fused_activation_function: int = 0) -> Expr:
    return ctx.activated(relay.add(x, y), fused_activation_function)


@OPS.imports("SUB", ignored=("pot_scale_int16",))
def import_sub(ctx: ImportContext, x: Expr, y: Expr, *, fused_activation_function: int = 0) -> Expr:
    return ctx.activated(relay.subtract(x, y), fused_activation_function)


@OPS.imports("MUL")
def import_mul(ctx: ImportContext, x: Expr, y: Expr, *, fused_activation_function: int = 0) -> Expr:
    return ctx.activated(relay.multiply(x, y), fused_activation_function)


@OPS.imports("DIV")
def import_div(ctx: ImportContext, x: Expr, y: Expr, *, fused_activation_function: int = 0) -> Expr:
    """Integers are divided towards zero."""
    divide = relay.divide if is_float(ctx.type(x).dtype) else relay.trunc_divide
    return ctx.activated(divide(x, y), fused_activation_function)


@OPS.imports("ADD_N")
def import_add_n(ctx: ImportContext, *values: Expr) -> Expr:
    total = ctx.first(values)
    for each in values[1:]:
        total = relay.add(total, each)
    return total


@OPS.imports("SQUARE")
def import_square(ctx: ImportContext, x: Expr) -> Expr:
    return relay.multiply(x, x)


@OPS.imports("SQUARED_DIFFERENCE")
def import_squared_difference(ctx: ImportContext, x: Expr, y: Expr) -> Expr:
    found = relay.subtract(x, y)
    return relay.multiply(found, found)


@OPS.imports("ATAN2")
def import_atan2(ctx: ImportContext, y: Expr, x: Expr) -> Expr:
    return arctan2(y, x)


@OPS.imports("CAST")
def import_cast(
    ctx: ImportContext, x: Expr, *, in_data_type: int = 0, out_data_type: int = 0
) -> Expr:
    """The tensors' own types count; floats beyond integers are limited to these."""
    made = ctx.made[0]
    dtype = code_names("TensorType")[out_data_type].lower() if made is None else made.dtype
    if is_float(ctx.type(x).dtype) and dtype in ("int8", "int16", "int32", "int64", "uint8"):
        limits = np.iinfo(dtype)
        x = relay.clip(x, float(limits.min), float(limits.max))
    return relay.cast(x, dtype)


@OPS.imports("BITCAST")
def import_bitcast(ctx: ImportContext, x: Expr) -> Expr:
    made = ctx.made[0]
    return relay.reinterpret(x, ctx.type(x).dtype if made is None else made.dtype)


@OPS.imports("SELECT")
def import_select(ctx: ImportContext, condition: Expr, x: Expr, y: Expr) -> Expr:
    """A condition of one axis picks rows."""
    extra = ctx.rank(x) - ctx.rank(condition)
    if ctx.rank(condition) == 1 and extra > 0:
        condition = relay.expand_dims(condition, axis=1, num_newaxis=extra)
    return relay.where(condition, x, y)


@OPS.imports("SELECT_V2")
def import_select_v2(ctx: ImportContext, condition: Expr, x: Expr, y: Expr) -> Expr:
    return relay.where(condition, x, y)

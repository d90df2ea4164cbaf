"""Arithmetic, comparisons, logic and types of elements; operands broadcast as Relay's do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, TensorType, as_dtype, call, is_float
from serde.tflite.ops.table import OPS, Export, Import, Value
from serde.tflite.schema import code_names
from serde.walk import Takes, dtypes, pair, reads, writes
from serde.walk.expansion.functions import arctan2

_NO_ACTIVATION = {"fused_activation_function": 0}

OPS.pairs(
    pair(("ABS", "STABLEHLO_ABS"), "abs"), pair("BITWISE_XOR", "bitwise_xor"), pair("CEIL", "ceil"),
    pair(("COS", "STABLEHLO_COSINE"), "cos"), pair("EQUAL", "equal"),
    pair(("EXP", "STABLEHLO_EXPONENTIAL"), "exp"), pair(("FLOOR", "STABLEHLO_FLOOR"), "floor"),
    pair("FLOOR_DIV", "floor_divide"), pair("FLOOR_MOD", "floor_mod"), pair("GREATER", "greater"),
    pair("GREATER_EQUAL", "greater_equal"), pair("LESS", "less"), pair("LESS_EQUAL", "less_equal"),
    pair(("LOG", "STABLEHLO_LOG"), "log"), pair(("LOGICAL_AND", "STABLEHLO_AND"), "logical_and"),
    pair("LOGICAL_NOT", "logical_not"), pair(("LOGICAL_OR", "STABLEHLO_OR"), "logical_or"),
    pair(("MAXIMUM", "STABLEHLO_MAXIMUM"), "maximum"),
    pair(("MINIMUM", "STABLEHLO_MINIMUM"), "minimum"),
    pair(("NEG", "STABLEHLO_NEGATE"), "negative"), pair("NOT_EQUAL", "not_equal"),
    pair(("POW", "STABLEHLO_POWER"), "power"), pair("RIGHT_SHIFT", "right_shift"),
    reads("STABLEHLO_SHIFT_LEFT", "left_shift"), reads("STABLEHLO_REMAINDER", "trunc_mod"),
    pair("ROUND", "serde.round_even"), pair(("RSQRT", "STABLEHLO_RSQRT"), "rsqrt"),
    pair("SIGN", "sign"), pair("SIN", "sin"), pair("SQRT", "sqrt"),
    reads(("SELECT_V2", "STABLEHLO_SELECT"), "where"), reads("ZEROS_LIKE", "zeros_like"),
    writes("ADD", "add", constants=_NO_ACTIVATION),
    writes("SUB", "subtract", constants=_NO_ACTIVATION),
    writes("MUL", "multiply", constants=_NO_ACTIVATION),
    writes("DIV", "divide", constants=_NO_ACTIVATION),
    writes("DIV", "trunc_divide", constants=_NO_ACTIVATION, when=lambda node: not _is_float(node)),
    writes("NOT_EQUAL", "logical_xor", takes=Takes(lhs=dtypes("bool"))),
)  # fmt: skip


def _arithmetic_reader(build: Callable[[Expr, Expr], Expr]) -> Callable[..., Expr]:
    def read(ctx: Import, x: Expr, y: Expr, *, fused_activation_function: int = 0) -> Expr:
        return ctx.activated(build(x, y), fused_activation_function)

    return read


_SHORTS = ("pot_scale_int16",)
OPS.imports("ADD", "STABLEHLO_ADD", ignored=_SHORTS)(_arithmetic_reader(relay.add))
OPS.imports("SUB", "STABLEHLO_SUBTRACT", ignored=_SHORTS)(_arithmetic_reader(relay.subtract))
OPS.imports("MUL", "STABLEHLO_MULTIPLY")(_arithmetic_reader(relay.multiply))


@OPS.imports("DIV", "STABLEHLO_DIVIDE")
def import_div(ctx: Import, x: Expr, y: Expr, *, fused_activation_function: int = 0) -> Expr:
    """Integers are divided towards zero."""
    divide = relay.divide if is_float(ctx.type(x).dtype) else relay.trunc_divide
    return ctx.activated(divide(x, y), fused_activation_function)


@OPS.imports("ADD_N")
def import_add_n(ctx: Import, *values: Expr) -> Expr:
    total = ctx.first(values)
    for each in values[1:]:
        total = relay.add(total, each)
    return total


@OPS.imports("SQUARE")
def import_square(ctx: Import, x: Expr) -> Expr:
    return relay.multiply(x, x)


@OPS.imports("SQUARED_DIFFERENCE")
def import_squared_difference(ctx: Import, x: Expr, y: Expr) -> Expr:
    found = relay.subtract(x, y)
    return relay.multiply(found, found)


@OPS.imports("ATAN2")
def import_atan2(ctx: Import, y: Expr, x: Expr) -> Expr:
    return arctan2(y, x)


@OPS.imports("CAST", "STABLEHLO_CONVERT")
def import_cast(ctx: Import, x: Expr, *, in_data_type: int = 0, out_data_type: int = 0) -> Expr:
    """The tensors' own types count; floats beyond integers are limited to these."""
    made = ctx.told()
    dtype = code_names("TensorType")[out_data_type].lower() if made is None else made.dtype
    if is_float(ctx.type(x).dtype) and dtype in ("int8", "int16", "int32", "int64", "uint8"):
        limits = np.iinfo(dtype)
        x = relay.clip(x, float(limits.min), float(limits.max))
    return relay.cast(x, dtype)


@OPS.imports("BITCAST")
def import_bitcast(ctx: Import, x: Expr) -> Expr:
    made = ctx.told()
    return relay.reinterpret(x, ctx.type(x).dtype if made is None else made.dtype)


@OPS.imports("STABLEHLO_CLAMP")
def import_clamp(ctx: Import, low: Expr, x: Expr, high: Expr) -> Expr:
    return relay.minimum(relay.maximum(x, low), high)


@OPS.imports("STABLEHLO_CBRT")
def import_cbrt(ctx: Import, x: Expr) -> Expr:
    third = ctx.const(1 / 3, ctx.type(x).dtype)
    return relay.multiply(relay.sign(x), relay.power(relay.abs(x), third))


_COMPARED = ("equal", "not_equal", "greater_equal", "greater", "less_equal", "less")
_TOTAL_ORDER = 2


@OPS.imports("STABLEHLO_COMPARE")
def import_compare(
    ctx: Import, x: Expr, y: Expr, *, comparison_direction: int = 0, compare_type: int = 0
) -> Expr:
    if compare_type == _TOTAL_ORDER or not 0 <= comparison_direction < len(_COMPARED):
        raise Unsupported(f"a comparison of the kind {comparison_direction}, {compare_type}")
    return call(_COMPARED[comparison_direction], x, y)


@OPS.imports("SELECT")
def import_select(ctx: Import, condition: Expr, x: Expr, y: Expr) -> Expr:
    """A condition of one axis picks rows."""
    extra = ctx.rank(x) - ctx.rank(condition)
    if ctx.rank(condition) == 1 and extra > 0:
        condition = relay.expand_dims(condition, axis=1, num_newaxis=extra)
    return relay.where(condition, x, y)


def _is_float(node: Call) -> bool:
    """Whether a call is one on floats."""
    return isinstance(node.type, TensorType) and is_float(node.type.dtype)


@OPS.exports("nn.bias_add")
def export_bias_add(ctx: Export, data: Value, bias: Value, *, axis: int) -> Value:
    rank = ctx.type(data).rank
    ones = rank - 1 - axis % rank
    if ones:
        bias = ctx.spell(lambda b: relay.expand_dims(b, axis=1, num_newaxis=ones), bias)
    return ctx.emit("ADD", data, bias, fused_activation_function=0)


@OPS.exports("cast", ignored=("dtype",))
def export_cast(ctx: Export, data: Value) -> Value:
    """Of four bits the kernel makes floats alone."""
    numbers = {name.lower(): number for number, name in code_names("TensorType").items()}
    source, target = ctx.type(data).dtype, ctx.result_type().dtype
    if source == "int4" and target != "float32":
        wide = ctx.spell(lambda x: relay.cast(relay.cast(x, "float32"), "int32"), data)
        return ctx.spell(lambda x: as_dtype(x, target), wide)
    options = {"in_data_type": numbers[source], "out_data_type": numbers[target]}
    return ctx.emit("CAST", data, **options)


@OPS.exports("where")
def export_where(ctx: Export, condition: Value, x: Value, y: Value) -> Value:
    if ctx.type(condition).dtype != "bool":
        return ctx.spell(lambda c, a, b: relay.where(relay.cast(c, "bool"), a, b), condition, x, y)
    return ctx.emit("SELECT_V2", condition, x, y)


@OPS.expands("mod", "trunc_mod")
def expand_trunc_mod(lhs: Expr, rhs: Expr) -> Expr:
    """What truncated division leaves; it has the sign of what is divided."""
    rest = relay.floor_mod(relay.abs(lhs), relay.abs(rhs))
    return relay.where(relay.less(lhs, relay.zeros_like(lhs)), relay.negative(rest), rest)


_LIMITS = {(0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1"}


@OPS.exports("clip")
def export_clip(ctx: Export, data: Value, *, a_min: float, a_max: float) -> Value:
    """Two ranges have an operator; others are limited on each side."""
    dtype = ctx.type(data).dtype
    op = _LIMITS.get((a_min, a_max)) if is_float(dtype) else None
    if op is not None:
        return ctx.emit(op, data)
    if not is_float(dtype):
        kind = np.iinfo(dtype)
        a_min, a_max = (int(np.clip(each, kind.min, kind.max)) for each in (a_min, a_max))
    low = ctx.emit("MAXIMUM", data, ctx.const(a_min, dtype))
    return ctx.emit("MINIMUM", low, ctx.const(a_max, dtype))

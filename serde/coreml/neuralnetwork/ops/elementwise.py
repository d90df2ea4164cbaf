"""Arithmetic, comparison and functions, element by element."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.coreml.mlprogram.ops.elementwise import UNARY
from serde.coreml.neuralnetwork.import_context import number
from serde.coreml.neuralnetwork.message_view import MessageView
from serde.coreml.neuralnetwork.ops.table import DIRECT, LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType, call, is_float
from serde.walk.pairs import reads, writes

SAME = (
    "acos", "asin", "atan", "atanh", "ceil", "cos", "cosh", "erf", "floor", "round", "sign", "sin",
    "sinh", "tan", "tanh",
)  # fmt: skip
"""Functions of one tensor without parameters that have MIL's names."""

INVERSE = ("acosh", "asinh")
"""Functions that MIL lacks."""

BINARY = {
    "addBroadcastable": "add",
    "divideBroadcastable": "divide",
    "maxBroadcastable": "maximum",
    "minBroadcastable": "minimum",
    "modBroadcastable": "floor_mod",
    "multiplyBroadcastable": "multiply",
    "powBroadcastable": "power",
    "subtractBroadcastable": "subtract",
}

COMPARISONS = {
    "equal": "equal",
    "greater": "greaterThan",
    "greater_equal": "greaterEqual",
    "less": "lessThan",
    "less_equal": "lessEqual",
    "not_equal": "notEqual",
}
"""Relay's and MIL's operators, and their layers."""

LOGICAL = {"logical_and": "logicalAnd", "logical_or": "logicalOr", "logical_xor": "logicalXor"}
"""Relay's and MIL's operators, and their layers."""


def _import_compare(
    ctx: Import, x: Expr, y: Expr | None = None, *, target: str, alpha: float = 0.0
) -> Expr:
    return relay.cast(call(target, x, number(alpha) if y is None else y), "float32")


def _import_logical(ctx: Import, x: Expr, y: Expr, *, target: str) -> Expr:
    return relay.cast(call(target, truth(x), truth(y)), "float32")


LAYERS.pairs(
    *(reads(name, UNARY[name]) for name in SAME),
    *(reads(name, name) for name in INVERSE),
    *(reads(name, target) for name, target in BINARY.items()),
)
for _target, _name in COMPARISONS.items():
    LAYERS.imports(_name)(partial(_import_compare, target=_target))
for _target, _name in LOGICAL.items():
    LAYERS.imports(_name)(partial(_import_logical, target=_target))


def truth(x: Expr) -> Expr:
    """Return whether elements are not zero."""
    return relay.not_equal(x, number(0))


@LAYERS.imports("copy")
def import_copy(ctx: Import, x: Expr) -> Expr:
    return x


@LAYERS.imports("logicalNot")
def import_logical_not(ctx: Import, x: Expr) -> Expr:
    return relay.cast(relay.equal(x, number(0)), "float32")


@LAYERS.imports("exp2")
def import_exp2(ctx: Import, x: Expr) -> Expr:
    return relay.power(number(2), x)


@LAYERS.imports("floorDivBroadcastable")
def import_floor_div(ctx: Import, x: Expr, y: Expr) -> Expr:
    return relay.floor(relay.divide(x, y))


@LAYERS.imports("clip")
def import_clip(ctx: Import, x: Expr, *, min_val: float = 0.0, max_val: float = 0.0) -> Expr:
    return relay.minimum(relay.maximum(x, number(min_val)), number(max_val))


@LAYERS.imports("whereBroadcastable")
def import_where(ctx: Import, condition: Expr, x: Expr, y: Expr) -> Expr:
    return relay.where(truth(condition), x, y)


Function = Literal["SQRT", "RSQRT", "INVERSE", "POWER", "EXP", "LOG", "ABS", "THRESHOLD"]


EPSILON = 1e-6
"""What roots and quotients get to their operand where a layer names nothing."""


@LAYERS.imports("unary")
def import_unary_function(
    ctx: Import, x: Expr,
    *, type: Function = "SQRT", alpha: float = 0.0, epsilon: float | None = None,
    shift: float = 0.0, scale: float = 1.0,
) -> Expr:  # fmt: skip
    """A logarithm has an epsilon where one is written, which is how coremltools has log1p."""
    if scale != 1:
        x = relay.multiply(x, number(scale))
    if shift != 0:
        x = relay.add(x, number(shift))
    if type == "LOG" and epsilon is not None and epsilon >= np.finfo(np.float32).tiny:
        x = relay.add(x, number(epsilon))
    epsilon = EPSILON if epsilon is None else epsilon
    if type == "RSQRT":
        return relay.rsqrt(relay.add(x, number(epsilon)))
    if type == "INVERSE":
        return relay.divide(number(1), relay.add(x, number(epsilon)))
    if type == "POWER":
        return relay.power(x, number(alpha))
    if type == "THRESHOLD":
        return relay.maximum(x, number(alpha))
    return call({"SQRT": "sqrt", "EXP": "exp", "LOG": "log", "ABS": "abs"}[type], x)


def _chain(xs: tuple[Expr, ...], operation: Callable[[Expr, Expr], Expr]) -> Expr:
    if not xs:
        raise Unsupported("expected at least one tensor")
    return functools.reduce(operation, xs)


@LAYERS.imports("add")
def import_add(ctx: Import, *xs: Expr, alpha: float = 0.0) -> Expr:
    if len(xs) == 1:
        return relay.add(xs[0], number(alpha))
    return _chain(xs, relay.add)


@LAYERS.imports("multiply")
def import_multiply(ctx: Import, *xs: Expr, alpha: float = 0.0) -> Expr:
    if len(xs) == 1:
        return relay.multiply(xs[0], number(alpha))
    return _chain(xs, relay.multiply)


@LAYERS.imports("average")
def import_average(ctx: Import, *xs: Expr) -> Expr:
    return relay.divide(_chain(xs, relay.add), number(len(xs)))


@LAYERS.imports("max")
def import_max(ctx: Import, *xs: Expr) -> Expr:
    return _chain(xs, relay.maximum)


@LAYERS.imports("min")
def import_min(ctx: Import, *xs: Expr) -> Expr:
    return _chain(xs, relay.minimum)


def _align_parameters(
    ctx: Import, x: Expr, part: MessageView | None, shape: tuple[int, ...]
) -> Expr:
    """Return parameters whose shape goes along the last three axes, channels first."""
    ctx.at_least(x, 3)
    if len(shape) not in (1, 3):
        raise Unsupported(f"parameters of shape {list(shape)}")
    return ctx.weight(part, shape if len(shape) == 3 else (shape[0], 1, 1))


@LAYERS.imports("scale")
def import_scale(
    ctx: Import, x: Expr,
    *, shape_scale: tuple[int, ...] = (), scale: MessageView | None = None, has_bias: bool = False,
    shape_bias: tuple[int, ...] = (), bias: MessageView | None = None,
) -> Expr:  # fmt: skip
    result = relay.multiply(x, _align_parameters(ctx, x, scale, shape_scale))
    if has_bias:
        result = relay.add(result, _align_parameters(ctx, x, bias, shape_bias))
    return result


@LAYERS.imports("bias")
def import_bias(
    ctx: Import, x: Expr, *, shape: tuple[int, ...] = (), bias: MessageView | None = None
) -> Expr:
    return relay.add(x, _align_parameters(ctx, x, bias, shape))


@LAYERS.imports("cumSum")
def import_cum_sum(
    ctx: Import,
    x: Expr,
    axis_input: Expr | None = None,
    *,
    axis: int = 0,
    exclude_final_sum: bool = False,
    reverse: bool = False,
) -> Expr:
    if axis_input is not None:
        (axis,) = ctx.whole(axis_input)
    place = ctx.axis(x, axis)
    return relay.serde.cumsum(x, axis=place, exclusive=exclude_final_sum, reverse=reverse)


def _number(x: Value, other: Value) -> float | None:
    """Return the one number that a constant is, if it adds no axes to another tensor's."""
    if x.data is None or x.data.size != 1 or x.type.rank > other.type.rank:
        return None
    found = float(x.data.reshape(()))
    exact = np.isfinite(found) and (is_float(x.type.dtype) or abs(found) <= 1 << 24)
    return found if exact else None


FUNCTIONS = {"abs": "ABS", "exp": "EXP", "sqrt": "SQRT"}
"""Operators of MIL, and the functions of a layer that has several."""

PAIRS = {
    "floor_div": "floorDivBroadcastable",
    "maximum": "maxBroadcastable",
    "minimum": "minBroadcastable",
    "mod": "modBroadcastable",
    "real_div": "divideBroadcastable",
}
"""Operators of MIL with two tensors, and their layers."""

COMMUTING = {"add": "add", "mul": "multiply"}
"""Operators of MIL with two tensors, and the layers that take a number for one of them."""


def _export_plain(ctx: Export, x: Value, *, layer: str) -> Value:
    return ctx.layer(layer, x)


def _export_function(ctx: Export, x: Value, *, function: str) -> Value:
    return ctx.layer("unary", x, type=function, scale=1.0)


def _export_pair(ctx: Export, x: Value, y: Value, *, layer: str) -> Value:
    return ctx.layer(layer, x, y)


def _export_commuting(ctx: Export, x: Value, y: Value, *, layer: str) -> Value:
    """A number on either side is a parameter."""
    for one, other in ((x, y), (y, x)):
        number_ = _number(other, one)
        if number_ is not None:
            return ctx.layer(layer, one, alpha=number_)
    return ctx.layer(f"{layer}Broadcastable", x, y)


def _export_comparison(ctx: Export, x: Value, y: Value, *, layer: str) -> Value:
    bound = _number(y, x)
    if bound is not None and np.float32(bound) == bound:
        return ctx.layer(layer, x, alpha=bound)
    return ctx.layer(layer, x, y)


for _name in (*SAME, *INVERSE):
    LAYERS.exports(_name)(partial(_export_plain, layer=_name))
DIRECT.pairs(*(writes(name, name) for name in INVERSE))
LAYERS.exports("identity")(partial(_export_plain, layer="copy"))
LAYERS.exports("logical_not")(partial(_export_plain, layer="logicalNot"))
for _name, _target in FUNCTIONS.items():
    LAYERS.exports(_name)(partial(_export_function, function=_target))
for _name, _target in (PAIRS | LOGICAL).items():
    LAYERS.exports(_name)(partial(_export_pair, layer=_target))
for _name, _target in COMMUTING.items():
    LAYERS.exports(_name)(partial(_export_commuting, layer=_target))
for _name, _target in COMPARISONS.items():
    LAYERS.exports(_name)(partial(_export_comparison, layer=_target))


@LAYERS.exports("sub")
def export_sub(ctx: Export, x: Value, y: Value) -> Value:
    number_ = _number(y, x)
    if number_ is not None:
        return ctx.layer("add", x, alpha=-number_)
    return ctx.layer("subtractBroadcastable", x, y)


@LAYERS.exports("pow")
def export_pow(ctx: Export, x: Value, y: Value) -> Value:
    if _number(x, y) == 2:
        return ctx.layer("exp2", y)
    power = _number(y, x)
    if power is not None:
        return ctx.layer("unary", x, type="POWER", alpha=power, scale=1.0)
    return ctx.layer("powBroadcastable", x, y)


@LAYERS.exports("log")
def export_log(ctx: Export, x: Value, *, epsilon: float = 1e-45) -> Value:
    return ctx.layer("unary", x, type="LOG", shift=epsilon, scale=1.0)


@LAYERS.exports("rsqrt")
def export_rsqrt(ctx: Export, x: Value, *, epsilon: float = 1e-12) -> Value:
    """A layer without a constant adds one of its own: then it is a power."""
    if epsilon:
        return ctx.layer("unary", x, type="RSQRT", epsilon=epsilon, scale=1.0)
    return ctx.layer("unary", x, type="POWER", alpha=-0.5, scale=1.0)


@LAYERS.exports("clip")
def export_clip(ctx: Export, x: Value, *, alpha: float, beta: float) -> Value:
    return ctx.layer("clip", x, min_val=alpha, max_val=beta)


@LAYERS.exports("select")
def export_select(ctx: Export, cond: Value, a: Value, b: Value) -> Value:
    return ctx.layer("whereBroadcastable", cond, a, b)


@LAYERS.exports("cast")
def export_cast(ctx: Export, x: Value, *, dtype: str) -> Value:
    """All numbers are float32: what the dtype cannot hold is cut off.

    Floats are cut towards zero; whole numbers are taken modulo the range of narrower ones.
    """
    source, target = x.type.dtype, ctx.result_type().dtype
    if is_float(target) or source == "bool":
        return x
    if target == "bool":
        return ctx.layer("notEqual", x)
    if is_float(source):
        size = ctx.layer("unary", x, type="ABS", scale=1.0)
        return ctx.layer("multiply", ctx.layer("sign", x), ctx.layer("floor", size))
    known, wanted = _range(source), _range(target)
    if (wanted[0] <= known[0] and known[1] <= wanted[1]) or target in ("int32", "int64"):
        return x
    lifted = ctx.layer("add", x, alpha=-float(wanted[0])) if wanted[0] else x
    count = ctx.const(wanted[1] - wanted[0] + 1)
    rest = ctx.layer("modBroadcastable", lifted, count)
    return ctx.layer("add", rest, alpha=float(wanted[0])) if wanted[0] else rest


def _range(dtype: str) -> tuple[int, int]:
    limits = np.iinfo(numpy_dtype(dtype))
    return int(limits.min), int(limits.max)


@LAYERS.exports("cumsum", since=13)
def export_cumsum_v13(
    ctx: Export, x: Value, *, axis: int = 0, exclusive: bool = False, reverse: bool = False
) -> Value:
    """Before iOS14, a product with a triangle of ones."""
    rank = x.type.rank
    length = x.type.shape[axis]
    if not isinstance(length, int):
        raise ctx.only_since(14, "running sum along a length that is not fixed")
    ones = allocation.tri(length, k=-1 if exclusive else 0, dtype=np.float32)
    triangle = ctx.const(ones if reverse else ones.T)
    order = [*(each for each in range(rank) if each != axis), axis]
    data = x if rank > 1 else ctx.layer("expandDims", x, of=_row(x), axes=[0])
    if axis != rank - 1:
        data = ctx.layer("transpose", data, axes=order)
    found = ctx.layer("batchedMatmul", data, triangle)
    if rank == 1:
        return ctx.layer("squeeze", found, axes=[0])
    if axis != rank - 1:
        found = ctx.layer("transpose", found, axes=[order.index(each) for each in range(rank)])
    return found


def _row(x: Value) -> TensorType:
    return TensorType((1, *x.type.shape), x.type.dtype)


@LAYERS.exports("cumsum", since=14)
def export_cumsum(
    ctx: Export, x: Value, *, axis: int = 0, exclusive: bool = False, reverse: bool = False
) -> Value:
    return ctx.layer("cumSum", x, axis=axis, exclude_final_sum=exclusive, reverse=reverse)

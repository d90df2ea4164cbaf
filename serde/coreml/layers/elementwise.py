"""Arithmetic, comparison and functions, element by element."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.coreml.layers.table import LAYERS
from serde.coreml.networks import LayerContext as Ctx
from serde.coreml.networks import number
from serde.coreml.parts import Part
from serde.errors import Unsupported
from serde.relay.expr import Expr
from serde.relay.registry import call

UNARY = {
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "ceil": "ceil",
    "copy": "copy",
    "cos": "cos",
    "cosh": "cosh",
    "erf": "erf",
    "floor": "floor",
    "round": "serde.round_even",
    "sign": "sign",
    "sin": "sin",
    "sinh": "sinh",
    "tan": "tan",
    "tanh": "tanh",
}
"""Layers of one tensor and no parameter: Relay's."""

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

COMPARE = {
    "equal": "equal",
    "greaterEqual": "greater_equal",
    "greaterThan": "greater",
    "lessEqual": "less_equal",
    "lessThan": "less",
    "notEqual": "not_equal",
}

LOGICAL = {"logicalAnd": "logical_and", "logicalOr": "logical_or", "logicalXor": "logical_xor"}


def _import_unary(name: str, target: str) -> None:
    @LAYERS.imports(name)
    def import_unary(ctx: Ctx, x: Expr) -> Expr:
        return x if target == "copy" else call(target, x)


def _import_binary(name: str, target: str) -> None:
    @LAYERS.imports(name)
    def import_binary(ctx: Ctx, x: Expr, y: Expr) -> Expr:
        return call(target, x, y)


def _import_compare(name: str, target: str) -> None:
    @LAYERS.imports(name)
    def import_compare(ctx: Ctx, x: Expr, y: Expr | None = None, *, alpha: float = 0.0) -> Expr:
        return relay.cast(call(target, x, number(alpha) if y is None else y), "float32")


def _import_logical(name: str, target: str) -> None:
    @LAYERS.imports(name)
    def import_logical(ctx: Ctx, x: Expr, y: Expr) -> Expr:
        return relay.cast(call(target, truth(x), truth(y)), "float32")


for _name, _target in UNARY.items():
    _import_unary(_name, _target)
for _name, _target in BINARY.items():
    _import_binary(_name, _target)
for _name, _target in COMPARE.items():
    _import_compare(_name, _target)
for _name, _target in LOGICAL.items():
    _import_logical(_name, _target)


def truth(x: Expr) -> Expr:
    """Return whether elements are not zero."""
    return relay.not_equal(x, number(0))


@LAYERS.imports("logicalNot")
def import_logical_not(ctx: Ctx, x: Expr) -> Expr:
    return relay.cast(relay.equal(x, number(0)), "float32")


@LAYERS.imports("exp2")
def import_exp2(ctx: Ctx, x: Expr) -> Expr:
    return relay.power(number(2), x)


@LAYERS.imports("floorDivBroadcastable")
def import_floor_div(ctx: Ctx, x: Expr, y: Expr) -> Expr:
    return relay.floor(relay.divide(x, y))


@LAYERS.imports("clip")
def import_clip(ctx: Ctx, x: Expr, *, min_val: float = 0.0, max_val: float = 0.0) -> Expr:
    return relay.minimum(relay.maximum(x, number(min_val)), number(max_val))


@LAYERS.imports("whereBroadcastable")
def import_where(ctx: Ctx, condition: Expr, x: Expr, y: Expr) -> Expr:
    return relay.where(truth(condition), x, y)


Function = Literal["SQRT", "RSQRT", "INVERSE", "POWER", "EXP", "LOG", "ABS", "THRESHOLD"]


@LAYERS.imports("unary")
def import_unary_function(
    ctx: Ctx,
    x: Expr,
    *,
    type: Function = "SQRT",
    alpha: float = 0.0,
    epsilon: float = 1e-6,
    shift: float = 0.0,
    scale: float = 1.0,
) -> Expr:
    """A logarithm has an epsilon too, which is how coremltools writes log1p."""
    if scale != 1:
        x = relay.multiply(x, number(scale))
    if shift != 0:
        x = relay.add(x, number(shift))
    if type == "LOG" and epsilon >= np.finfo(np.float32).tiny:
        x = relay.add(x, number(epsilon))
    if type == "RSQRT":
        return relay.rsqrt(relay.add(x, number(epsilon)))
    if type == "INVERSE":
        return relay.divide(number(1), relay.add(x, number(epsilon)))
    if type == "POWER":
        return relay.power(x, number(alpha))
    if type == "THRESHOLD":
        return relay.maximum(x, number(alpha))
    return call({"SQRT": "sqrt", "EXP": "exp", "LOG": "log", "ABS": "abs"}[type], x)


def _joined(xs: tuple[Expr, ...], operation: Callable[[Expr, Expr], Expr]) -> Expr:
    if not xs:
        raise Unsupported("expected at least one tensor")
    return functools.reduce(operation, xs)


@LAYERS.imports("add")
def import_add(ctx: Ctx, *xs: Expr, alpha: float = 0.0) -> Expr:
    if len(xs) == 1:
        return relay.add(xs[0], number(alpha))
    return _joined(xs, relay.add)


@LAYERS.imports("multiply")
def import_multiply(ctx: Ctx, *xs: Expr, alpha: float = 0.0) -> Expr:
    if len(xs) == 1:
        return relay.multiply(xs[0], number(alpha))
    return _joined(xs, relay.multiply)


@LAYERS.imports("average")
def import_average(ctx: Ctx, *xs: Expr) -> Expr:
    return relay.divide(_joined(xs, relay.add), number(len(xs)))


@LAYERS.imports("max")
def import_max(ctx: Ctx, *xs: Expr) -> Expr:
    return _joined(xs, relay.maximum)


@LAYERS.imports("min")
def import_min(ctx: Ctx, *xs: Expr) -> Expr:
    return _joined(xs, relay.minimum)


def _aligned(ctx: Ctx, x: Expr, part: Part | None, shape: tuple[int, ...]) -> Expr:
    """Return parameters whose shape goes along the last three axes, channels first."""
    ctx.at_least(x, 3)
    if len(shape) not in (1, 3):
        raise Unsupported(f"parameters of shape {list(shape)}")
    return ctx.weight(part, shape if len(shape) == 3 else (shape[0], 1, 1))


@LAYERS.imports("scale")
def import_scale(
    ctx: Ctx,
    x: Expr,
    *,
    shape_scale: tuple[int, ...] = (),
    scale: Part | None = None,
    has_bias: bool = False,
    shape_bias: tuple[int, ...] = (),
    bias: Part | None = None,
) -> Expr:
    result = relay.multiply(x, _aligned(ctx, x, scale, shape_scale))
    if has_bias:
        result = relay.add(result, _aligned(ctx, x, bias, shape_bias))
    return result


@LAYERS.imports("bias")
def import_bias(
    ctx: Ctx, x: Expr, *, shape: tuple[int, ...] = (), bias: Part | None = None
) -> Expr:
    return relay.add(x, _aligned(ctx, x, bias, shape))


@LAYERS.imports("cumSum")
def import_cum_sum(
    ctx: Ctx,
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

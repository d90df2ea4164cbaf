"""Functions of two tensors, and the choice between two."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import (
    cast,
    chosen,
    computed,
    scalar_like,
    truth,
    typed,
    working,
)
from serde.onnx.ops.elementwise.unary import same
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float

OPS.exports("equal")(same("Equal"))


def _arithmetic(target: str) -> Callable[..., Value]:
    def export_arithmetic(ctx: ExportContext, x: Value, y: Value) -> Value:
        return computed(ctx, target, x, y)

    return export_arithmetic


for _name, _target in {
    "add": "Add",
    "divide": "Div",
    "multiply": "Mul",
    "subtract": "Sub",
}.items():
    OPS.exports(_name)(_arithmetic(_target))


def _comparison(target: str) -> Callable[..., Value]:
    def export_comparison(ctx: ExportContext, x: Value, y: Value) -> Value:
        return ctx.emit(target, _ordered(ctx, x), _ordered(ctx, y))

    return export_comparison


def _ordered(ctx: ExportContext, x: Value) -> Value:
    """ONNX does not order truth values."""
    return cast(ctx, x, np.int32) if ctx.type(x).dtype == "bool" else x


OPS.exports("greater")(_comparison("Greater"))


OPS.exports("less")(_comparison("Less"))


def _logical(target: str) -> Callable[..., Value]:
    def export_logical(ctx: ExportContext, *operands: Value) -> Value:
        """Relay takes numbers, too, and gives their dtype back."""
        dtype = ctx.type(operands[0]).dtype
        result = ctx.emit(target, *[truth(ctx, x) for x in operands])
        return result if dtype == "bool" else cast(ctx, result, dtype)

    return export_logical


for _name, _target in {
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "logical_xor": "Xor",
}.items():
    OPS.exports(_name)(_logical(_target))


@OPS.exports("where")
def export_where(ctx: ExportContext, condition: Value, x: Value, y: Value) -> Value:
    return chosen(ctx, truth(ctx, condition), x, y, ctx.type(x).dtype)


@OPS.exports("power")
def export_power(ctx: ExportContext, x: Value, y: Value) -> Value:
    """Before 12 Pow takes floats only, and never small integers: both go through float64."""
    dtype = ctx.type(x).dtype
    if is_float(dtype) or (dtype in ("int32", "int64") and ctx.version >= 12):
        return ctx.emit("Pow", x, y)
    wide = ctx.emit("Pow", cast(ctx, x, np.float64), cast(ctx, y, np.float64))
    return cast(ctx, wide, dtype)


@OPS.exports("maximum")
def export_maximum(ctx: ExportContext, x: Value, y: Value) -> Value:
    return _extreme(ctx, "Max", "Greater", x, y)


@OPS.exports("minimum")
def export_minimum(ctx: ExportContext, x: Value, y: Value) -> Value:
    return _extreme(ctx, "Min", "Less", x, y)


def _extreme(ctx: ExportContext, op: str, comparison: str, x: Value, y: Value) -> Value:
    """Before 12, Max and Min take floats only; truth values never."""
    dtype = ctx.type(x).dtype
    if dtype == "bool":
        return ctx.emit("Or" if op == "Max" else "And", x, y)
    if ctx.version >= 12 or is_float(dtype):
        return ctx.emit(op, x, y)
    return ctx.emit("Where", ctx.emit(comparison, x, y), x, y)


@OPS.exports("not_equal")
def export_not_equal(ctx: ExportContext, x: Value, y: Value) -> Value:
    return ctx.emit("Not", ctx.emit("Equal", x, y))


@OPS.exports("less_equal", since=12)
def export_less_equal(ctx: ExportContext, x: Value, y: Value) -> Value:
    return ctx.emit("LessOrEqual", _ordered(ctx, x), _ordered(ctx, y))


@OPS.exports("less_equal")
def export_less_equal_v1(ctx: ExportContext, x: Value, y: Value) -> Value:
    """Two comparisons, since the negation of the opposite one is true for NaN."""
    x, y = _ordered(ctx, x), _ordered(ctx, y)
    return ctx.emit("Or", ctx.emit("Less", x, y), ctx.emit("Equal", x, y))


@OPS.exports("greater_equal", since=12)
def export_greater_equal(ctx: ExportContext, x: Value, y: Value) -> Value:
    return ctx.emit("GreaterOrEqual", _ordered(ctx, x), _ordered(ctx, y))


@OPS.exports("greater_equal")
def export_greater_equal_v1(ctx: ExportContext, x: Value, y: Value) -> Value:
    """Two comparisons, since the negation of the opposite one is true for NaN."""
    x, y = _ordered(ctx, x), _ordered(ctx, y)
    return ctx.emit("Or", ctx.emit("Greater", x, y), ctx.emit("Equal", x, y))


@OPS.exports("mod", "trunc_mod")
def export_mod(ctx: ExportContext, x: Value, y: Value) -> Value:
    return ctx.emit("Mod", x, y, fmod=1)


@OPS.exports("floor_mod")
def export_floor_mod(ctx: ExportContext, x: Value, y: Value) -> Value:
    """Of floats, the exact remainder with the dividend's sign, moved to the divisor's side.

    A rounded quotient could be a whole number that the exact one is below.
    """
    if not is_float(ctx.type(x).dtype):
        return ctx.emit("Mod", x, y, fmod=0)
    rest = ctx.emit("Mod", x, y, fmod=1)
    beside = ctx.emit("Less", ctx.emit("Mul", rest, y), ctx.scalar_like(x, 0))
    return ctx.emit("Where", beside, ctx.emit("Add", rest, y), rest)


def _widely(
    ctx: ExportContext, export: Callable[[ExportContext, Value, Value], Value], x: Value, y: Value
) -> Value:
    """Return what a converter makes of operands in a wider dtype, in their own."""
    dtype = ctx.type(x).dtype
    work = working(dtype)
    wide = (typed(ctx, cast(ctx, each, work), each, work) for each in (x, y))
    return cast(ctx, export(ctx, *wide), dtype)


@OPS.exports("floor_divide")
def export_floor_divide(ctx: ExportContext, x: Value, y: Value) -> Value:
    if not ctx.takes("Div", ctx.type(x).dtype):
        return _widely(ctx, export_floor_divide, x, y)
    if is_float(ctx.type(x).dtype):
        return ctx.emit("Floor", ctx.emit("Div", x, y))
    rest = ctx.emit("Mod", x, y, fmod=0)
    return ctx.emit("Div", ctx.emit("Sub", x, rest), y)


@OPS.exports("trunc_divide")
def export_trunc_divide(ctx: ExportContext, x: Value, y: Value) -> Value:
    if not ctx.takes("Div", ctx.type(x).dtype):
        return _widely(ctx, export_trunc_divide, x, y)
    quotient = ctx.emit("Div", x, y)
    if not is_float(ctx.type(x).dtype):
        return quotient
    return ctx.emit("Mul", ctx.emit("Sign", quotient), ctx.emit("Floor", ctx.emit("Abs", quotient)))


def aligned(ctx: ImportContext, x: Expr, y: Expr, axis: int | None, broadcast: bool) -> Expr:
    """Return `y` with axes of 1 behind, so that its first one stands at `axis` of `x`.

    Before version 7, ONNX broadcasts where asked only, and names the axis.
    """
    if not broadcast or axis is None:
        return y
    rank, own = ctx.type(x).rank, ctx.type(y).rank
    following = rank - axis % max(rank, 1) - own
    if following < 0:
        raise Unsupported(f"axis {axis} leaves no place for {own} axes in {rank}")
    return relay.expand_dims(y, axis=own, num_newaxis=following) if following else y


BINARY = {
    "Add": ("add", (7, 13, 14)),
    "And": ("logical_and", (7,)),
    "BitwiseAnd": ("bitwise_and", (18,)),
    "BitwiseOr": ("bitwise_or", (18,)),
    "BitwiseXor": ("bitwise_xor", (18,)),
    "Div": ("divide", (7, 13, 14)),
    "Equal": ("equal", (7, 11, 13, 19)),
    "Greater": ("greater", (7, 9, 13)),
    "GreaterOrEqual": ("greater_equal", (12, 16)),
    "Less": ("less", (7, 9, 13)),
    "LessOrEqual": ("less_equal", (12, 16)),
    "Mul": ("multiply", (7, 13, 14)),
    "Or": ("logical_or", (7,)),
    "Sub": ("subtract", (7, 13, 14)),
    "Xor": ("logical_xor", (7,)),
}
"""The operator of ONNX: Relay's, and the versions that broadcast as NumPy does."""


LEGACY = {
    "Add": ("add", (1, 6)),
    "And": ("logical_and", (1,)),
    "Div": ("divide", (1, 6)),
    "Equal": ("equal", (1,)),
    "Greater": ("greater", (1,)),
    "Less": ("less", (1,)),
    "Mul": ("multiply", (1, 6)),
    "Or": ("logical_or", (1,)),
    "Pow": ("power", (1,)),
    "Sub": ("subtract", (1, 6)),
    "Xor": ("logical_xor", (1,)),
}
"""The same with the versions that broadcast along a named axis."""


def _binary(target: str) -> Callable[..., Expr]:
    def import_binary(ctx: ImportContext, x: Expr, y: Expr) -> Expr:
        return call(target, x, y)

    return import_binary


def _legacy(target: str) -> Callable[..., Expr]:
    def import_legacy(
        ctx: ImportContext, x: Expr, y: Expr, *, axis: int | None = None, broadcast: bool = False
    ) -> Expr:
        return call(target, x, aligned(ctx, x, y, axis, broadcast))

    return import_legacy


for _name, (_target, _versions) in BINARY.items():
    OPS.imports(_name, since=_versions)(_binary(_target))


for _name, (_target, _versions) in LEGACY.items():
    OPS.imports(_name, since=_versions, ignored=("consumed_inputs",))(_legacy(_target))


@OPS.imports("Pow", since=(7, 12, 13, 15))
def import_pow(ctx: ImportContext, x: Expr, y: Expr) -> Expr:
    """The exponent may have a dtype of its own; an integer to a float's power is truncated."""
    dtype, exponent = ctx.type(x).dtype, ctx.type(y).dtype
    if dtype == exponent:
        return relay.power(x, y)
    if is_float(dtype) or not is_float(exponent):
        return relay.power(x, relay.cast(y, dtype))
    return relay.cast(relay.power(relay.cast(x, "float64"), relay.cast(y, "float64")), dtype)


@OPS.imports("Mod", since=(10, 13, 28))
def import_mod(ctx: ImportContext, x: Expr, y: Expr, *, fmod: bool = False) -> Expr:
    if fmod:
        return relay.mod(x, y)
    if is_float(ctx.type(x).dtype) and ctx.version < 28:
        raise Unsupported("fmod=0 is for integers only", hint="set fmod=1")
    return relay.floor_mod(x, y)


@OPS.imports("BitShift", since=(11, 28))
def import_bit_shift(
    ctx: ImportContext, x: Expr, y: Expr, *, direction: Literal["LEFT", "RIGHT"]
) -> Expr:
    return relay.left_shift(x, y) if direction == "LEFT" else relay.right_shift(x, y)


@OPS.imports("Where", since=(9, 16))
def import_where(ctx: ImportContext, condition: Expr, x: Expr, y: Expr) -> Expr:
    return relay.where(condition, x, y)


def _variadic(target: str) -> Callable[..., Expr]:
    def import_variadic(ctx: ImportContext, first: Expr, *others: Expr) -> Expr:
        return reduce(lambda x, y: call(target, x, y), others, first)

    return import_variadic


OPS.imports("Sum", since=(1, 6, 8, 13), ignored=("consumed_inputs",))(_variadic("add"))


OPS.imports("Max", since=(1, 6, 8, 12, 13), ignored=("consumed_inputs",))(_variadic("maximum"))


OPS.imports("Min", since=(1, 6, 8, 12, 13), ignored=("consumed_inputs",))(_variadic("minimum"))


@OPS.imports("Mean", since=(1, 6, 8, 13), ignored=("consumed_inputs",))
def import_mean(ctx: ImportContext, first: Expr, *others: Expr) -> Expr:
    total = reduce(relay.add, others, first)
    return relay.divide(total, scalar_like(ctx, first, 1 + len(others)))


@OPS.exports("left_shift")
def export_left_shift(ctx: ExportContext, x: Value, places: Value) -> Value:
    """A product with a power of two, which wraps as a shift does.

    ONNX shifts unsigned integers only. As in NumPy, a shift by all bits or more leaves zero.
    """
    if _shifts_within(ctx, x, places):
        return ctx.emit("BitShift", x, places, direction="LEFT")
    powers = np.append(np.int64(1) << np.arange(64, dtype=np.int64), np.int64(0))
    power = ctx.emit("Gather", ctx.const(powers), _bounded_places(ctx, places, 64), axis=0)
    return cast(ctx, ctx.emit("Mul", cast(ctx, x, np.int64), power), ctx.type(x).dtype)


@OPS.exports("right_shift")
def export_right_shift(ctx: ExportContext, x: Value, places: Value) -> Value:
    """The floor of a division by a power of two, in int64; of uint64, a BitShift.

    As in NumPy, a shift by all bits or more leaves the sign alone.
    """
    dtype = ctx.type(x).dtype
    if _shifts_within(ctx, x, places):
        return ctx.emit("BitShift", x, places, direction="RIGHT")
    if dtype == "uint64":
        moved = ctx.emit("BitShift", x, _low_places(ctx, places), direction="RIGHT")
        inside = ctx.emit("Less", places, ctx.const(64, dtype))
        return ctx.emit("Mul", moved, cast(ctx, inside, dtype))
    wide, count = cast(ctx, x, np.int64), _bounded_places(ctx, places, 63)
    halves = ctx.const(np.append(np.int64(1) << np.arange(63, dtype=np.int64), np.int64(1) << 62))
    power = ctx.emit("Gather", halves, count, axis=0)
    rest = ctx.emit("Mod", wide, power, fmod=0)
    floor = ctx.emit("Div", ctx.emit("Sub", wide, rest), power)
    if dtype == "int64":
        zero, all_bits = ctx.const(0, np.int64), ctx.const(-1, np.int64)
        sign = ctx.emit("Where", ctx.emit("Less", wide, zero), all_bits, zero)
        floor = ctx.emit("Where", ctx.emit("Equal", count, ctx.const(63, np.int64)), sign, floor)
    return cast(ctx, floor, dtype)


def _shifts_within(ctx: ExportContext, x: Value, places: Value) -> bool:
    """Whether BitShift says a shift: of an unsigned number, by less than its bits."""
    dtype = ctx.type(x).dtype
    if dtype not in ("uint8", "uint32", "uint64") or places.data is None:
        return False
    return bool((places.data < np.dtype(dtype).itemsize * 8).all())


def _bounded_places(ctx: ExportContext, places: Value, most: int) -> Value:
    """Return counts of places as int64, those below 0 or above `most` as `most`."""
    wide, bound = cast(ctx, places, np.int64), ctx.const(most, np.int64)
    low = ctx.emit("Less", wide, ctx.const(0, np.int64))
    return ctx.emit("Where", ctx.emit("Or", low, ctx.emit("Less", bound, wide)), bound, wide)


def _low_places(ctx: ExportContext, places: Value) -> Value:
    return ctx.emit("Mod", places, ctx.const(64, np.uint64), fmod=0)

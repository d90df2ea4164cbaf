"""Functions of two tensors, and the choice between two."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise.convert import cast, chosen, truth
from serde.onnx.ops.elementwise.unary import same
from serde.onnx.ops.table import OPS
from serde.relay.shapes import is_float

for _name, _target in {
    "add": "Add",
    "divide": "Div",
    "equal": "Equal",
    "multiply": "Mul",
    "subtract": "Sub",
}.items():
    OPS.exports(_name)(same(_target))


def _comparison(target: str) -> Callable[..., Value]:
    def export_comparison(ctx: Ctx, x: Value, y: Value) -> Value:
        return ctx.emit(target, _ordered(ctx, x), _ordered(ctx, y))

    return export_comparison


def _ordered(ctx: Ctx, x: Value) -> Value:
    """ONNX does not order truth values."""
    return cast(ctx, x, np.int32) if ctx.type(x).dtype == "bool" else x


OPS.exports("greater")(_comparison("Greater"))
OPS.exports("less")(_comparison("Less"))


def _logical(target: str) -> Callable[..., Value]:
    def export_logical(ctx: Ctx, *operands: Value) -> Value:
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


def _bitwise(target: str, logical: str) -> Callable[..., Value]:
    def export_bitwise(ctx: Ctx, *operands: Value) -> Value:
        return ctx.emit(logical if ctx.type(operands[0]).dtype == "bool" else target, *operands)

    return export_bitwise


for _name, (_target, _truth) in {
    "bitwise_and": ("BitwiseAnd", "And"),
    "bitwise_not": ("BitwiseNot", "Not"),
    "bitwise_or": ("BitwiseOr", "Or"),
    "bitwise_xor": ("BitwiseXor", "Xor"),
}.items():
    OPS.exports(_name, since=18)(_bitwise(_target, _truth))


@OPS.exports("where")
def export_where(ctx: Ctx, condition: Value, x: Value, y: Value) -> Value:
    return chosen(ctx, truth(ctx, condition), x, y, ctx.type(x).dtype)


@OPS.exports("power")
def export_power(ctx: Ctx, x: Value, y: Value) -> Value:
    """Before 12 Pow takes floats only, and never small integers: both go through float64."""
    dtype = ctx.type(x).dtype
    if is_float(dtype) or (dtype in ("int32", "int64") and ctx.version >= 12):
        return ctx.emit("Pow", x, y)
    wide = ctx.emit("Pow", cast(ctx, x, np.float64), cast(ctx, y, np.float64))
    return cast(ctx, wide, dtype)


@OPS.exports("maximum")
def export_maximum(ctx: Ctx, x: Value, y: Value) -> Value:
    return _extreme(ctx, "Max", "Greater", x, y)


@OPS.exports("minimum")
def export_minimum(ctx: Ctx, x: Value, y: Value) -> Value:
    return _extreme(ctx, "Min", "Less", x, y)


def _extreme(ctx: Ctx, op: str, comparison: str, x: Value, y: Value) -> Value:
    """Before 12, Max and Min take floats only; truth values never."""
    dtype = ctx.type(x).dtype
    if dtype == "bool":
        return ctx.emit("Or" if op == "Max" else "And", x, y)
    if ctx.version >= 12 or is_float(dtype):
        return ctx.emit(op, x, y)
    return ctx.emit("Where", ctx.emit(comparison, x, y), x, y)


@OPS.exports("not_equal")
def export_not_equal(ctx: Ctx, x: Value, y: Value) -> Value:
    return ctx.emit("Not", ctx.emit("Equal", x, y))


@OPS.exports("less_equal", since=12)
def export_less_equal(ctx: Ctx, x: Value, y: Value) -> Value:
    return ctx.emit("LessOrEqual", _ordered(ctx, x), _ordered(ctx, y))


@OPS.exports("less_equal")
def export_less_equal_v1(ctx: Ctx, x: Value, y: Value) -> Value:
    """Two comparisons, since the negation of the opposite one is true for NaN."""
    x, y = _ordered(ctx, x), _ordered(ctx, y)
    return ctx.emit("Or", ctx.emit("Less", x, y), ctx.emit("Equal", x, y))


@OPS.exports("greater_equal", since=12)
def export_greater_equal(ctx: Ctx, x: Value, y: Value) -> Value:
    return ctx.emit("GreaterOrEqual", _ordered(ctx, x), _ordered(ctx, y))


@OPS.exports("greater_equal")
def export_greater_equal_v1(ctx: Ctx, x: Value, y: Value) -> Value:
    """Two comparisons, since the negation of the opposite one is true for NaN."""
    x, y = _ordered(ctx, x), _ordered(ctx, y)
    return ctx.emit("Or", ctx.emit("Greater", x, y), ctx.emit("Equal", x, y))


@OPS.exports("mod", "trunc_mod")
def export_mod(ctx: Ctx, x: Value, y: Value) -> Value:
    return ctx.emit("Mod", x, y, fmod=1)


@OPS.exports("floor_mod")
def export_floor_mod(ctx: Ctx, x: Value, y: Value) -> Value:
    if not is_float(ctx.type(x).dtype):
        return ctx.emit("Mod", x, y, fmod=0)
    whole = ctx.emit("Floor", ctx.emit("Div", x, y))
    return ctx.emit("Sub", x, ctx.emit("Mul", whole, y))


@OPS.exports("floor_divide")
def export_floor_divide(ctx: Ctx, x: Value, y: Value) -> Value:
    if is_float(ctx.type(x).dtype):
        return ctx.emit("Floor", ctx.emit("Div", x, y))
    rest = ctx.emit("Mod", x, y, fmod=0)
    return ctx.emit("Div", ctx.emit("Sub", x, rest), y)


@OPS.exports("trunc_divide")
def export_trunc_divide(ctx: Ctx, x: Value, y: Value) -> Value:
    quotient = ctx.emit("Div", x, y)
    if not is_float(ctx.type(x).dtype):
        return quotient
    return ctx.emit("Mul", ctx.emit("Sign", quotient), ctx.emit("Floor", ctx.emit("Abs", quotient)))


@OPS.exports("left_shift")
def export_left_shift(ctx: Ctx, x: Value, places: Value) -> Value:
    """A product with a power of two, which wraps as a shift does.

    ONNX shifts unsigned integers only. As in NumPy, a shift by all bits or more leaves zero.
    """
    if _shifts_within(ctx, x, places):
        return ctx.emit("BitShift", x, places, direction="LEFT")
    powers = np.append(np.int64(1) << np.arange(64, dtype=np.int64), np.int64(0))
    power = ctx.emit("Gather", ctx.const(powers), _bounded_places(ctx, places, 64), axis=0)
    return cast(ctx, ctx.emit("Mul", cast(ctx, x, np.int64), power), ctx.type(x).dtype)


@OPS.exports("right_shift")
def export_right_shift(ctx: Ctx, x: Value, places: Value) -> Value:
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


def _shifts_within(ctx: Ctx, x: Value, places: Value) -> bool:
    """Whether BitShift says a shift: of an unsigned number, by less than its bits."""
    dtype = ctx.type(x).dtype
    if dtype not in ("uint8", "uint32", "uint64") or places.data is None:
        return False
    return bool((places.data < np.dtype(dtype).itemsize * 8).all())


def _bounded_places(ctx: Ctx, places: Value, most: int) -> Value:
    """Return counts of places as int64, those below 0 or above `most` as `most`."""
    wide, bound = cast(ctx, places, np.int64), ctx.const(most, np.int64)
    low = ctx.emit("Less", wide, ctx.const(0, np.int64))
    return ctx.emit("Where", ctx.emit("Or", low, ctx.emit("Less", bound, wide)), bound, wide)


def _low_places(ctx: Ctx, places: Value) -> Value:
    return ctx.emit("Mod", places, ctx.const(64, np.uint64), fmod=0)

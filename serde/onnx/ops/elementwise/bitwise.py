"""Functions of the bits of integers. ONNX has them from 18 on; before, they are arithmetic."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

import numpy as np

import serde.relay as relay
from serde.onnx.ops.elementwise.convert import as_dtype, cast
from serde.onnx.ops.shape.reshape import squeeze, unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir.expr import Expr
from serde.walk.pairs import reads

HEXADECIMAL: Final = np.arange(16, dtype=np.int64)


UFUNCS: Final[dict[str, np.ufunc]] = {
    "And": np.bitwise_and,
    "Or": np.bitwise_or,
    "Xor": np.bitwise_xor,
}


def combine_bits(ctx: Export, op: str, a: Value, b: Value) -> Value:
    """Return two int64 combined bit by bit; before 18 by tables of their hexadecimal digits."""
    if ctx.version >= 18:
        return ctx.emit(f"Bitwise{op}", a, b)
    indices = [_to_hex_digits(ctx, each) for each in (a, b)]
    position = ctx.emit("Add", ctx.emit("Mul", indices[0], ctx.const(16, np.int64)), indices[1])
    table = ctx.const(UFUNCS[op].outer(HEXADECIMAL, HEXADECIMAL).reshape(-1))
    found = ctx.emit("Gather", table, position, axis=0)
    # ONNX Runtime's ReduceSum of int64 goes through floating-point numbers, and its product of
    # no rows with a vector fails.
    column = ctx.emit("MatMul", found, ctx.const(1 << 4 * HEXADECIMAL[:, None]))
    return squeeze(ctx, column, [-1])


def _to_hex_digits(ctx: Export, x: Value) -> Value:
    """Return the hexadecimal digits of int64 on a new last axis, the lowest first."""
    wide = unsqueeze(ctx, cast(ctx, x, np.uint64), [-1])
    shifts = ctx.const(4 * HEXADECIMAL, np.uint64)
    rest = ctx.emit("BitShift", wide, shifts, direction="RIGHT")
    return cast(ctx, ctx.emit("Mod", rest, ctx.const(16, np.uint64)), np.int64)


def _export_bitwise(ctx: Export, x: Value, y: Value, *, op: str) -> Value:
    dtype = ctx.type(x).dtype
    if dtype == "bool":
        return ctx.emit(op, x, y)
    if ctx.version >= 18:
        return ctx.emit(f"Bitwise{op}", x, y)
    wide = (as_dtype(ctx, each, "int64") for each in (x, y))
    return cast(ctx, combine_bits(ctx, op, *wide), dtype)


for _op in UFUNCS:
    OPS.exports(f"bitwise_{_op.lower()}")(partial(_export_bitwise, op=_op))


@OPS.exports("bitwise_not")
def export_bitwise_not(ctx: Export, x: Value) -> Value:
    """Before 18 ``-1 - x``, which wraps in every width."""
    dtype = ctx.type(x).dtype
    if dtype == "bool":
        return ctx.emit("Not", x)
    if ctx.version >= 18:
        return ctx.emit("BitwiseNot", x)
    return cast(ctx, ctx.emit("Sub", ctx.const(-1, "int64"), as_dtype(ctx, x, "int64")), dtype)


@OPS.exports("left_shift")
def export_left_shift(ctx: Export, x: Value, indices: Value) -> Value:
    """``x * 2**y``, which wraps as a shift does.

    ONNX shifts unsigned integers only. As in NumPy, a shift by all bits or more leaves zero.
    """
    if _is_bit_shift(ctx, x, indices):
        return ctx.emit("BitShift", x, indices, direction="LEFT")
    powers = np.append(np.int64(1) << np.arange(64, dtype=np.int64), np.int64(0))
    power = ctx.emit("Gather", ctx.const(powers), _clamp_shift(ctx, indices, 64), axis=0)
    return cast(ctx, ctx.emit("Mul", cast(ctx, x, np.int64), power), ctx.type(x).dtype)


@OPS.exports("right_shift")
def export_right_shift(ctx: Export, x: Value, indices: Value) -> Value:
    """``floor(x / 2**y)`` in int64; of uint64, a BitShift.

    As in NumPy, a shift by all bits or more leaves the sign alone.
    """
    dtype = ctx.type(x).dtype
    if _is_bit_shift(ctx, x, indices):
        return ctx.emit("BitShift", x, indices, direction="RIGHT")
    if dtype == "uint64":
        moved = ctx.emit("BitShift", x, _wrap_shift(ctx, indices), direction="RIGHT")
        inside = ctx.emit("Less", indices, ctx.const(64, dtype))
        return ctx.emit("Mul", moved, cast(ctx, inside, dtype))
    wide = cast(ctx, x, np.int64) if dtype != "int64" else x
    if indices.data is not None and ((indices.data >= 0) & (indices.data < 63)).all():
        power = ctx.const(np.int64(1) << indices.data.astype(np.int64))
        rest = ctx.emit("Mod", wide, power, fmod=0)
        floor = ctx.emit("Div", ctx.emit("Sub", wide, rest), power)
        return floor if dtype == "int64" else cast(ctx, floor, dtype)
    count = _clamp_shift(ctx, indices, 63)
    halves = ctx.const(np.append(np.int64(1) << np.arange(63, dtype=np.int64), np.int64(1) << 62))
    power = ctx.emit("Gather", halves, count, axis=0)
    rest = ctx.emit("Mod", wide, power, fmod=0)
    floor = ctx.emit("Div", ctx.emit("Sub", wide, rest), power)
    if dtype == "int64":
        zero, all_bits = ctx.const(0, np.int64), ctx.const(-1, np.int64)
        sign = ctx.emit("Where", ctx.emit("Less", wide, zero), all_bits, zero)
        floor = ctx.emit("Where", ctx.emit("Equal", count, ctx.const(63, np.int64)), sign, floor)
    return cast(ctx, floor, dtype)


@OPS.imports("BitShift", since=(11, 28))
def import_bit_shift(ctx: Import, x: Expr, y: Expr, *, direction: Literal["LEFT", "RIGHT"]) -> Expr:
    return relay.left_shift(x, y) if direction == "LEFT" else relay.right_shift(x, y)


def _is_bit_shift(ctx: Export, x: Value, indices: Value) -> bool:
    """Whether BitShift says a shift: of an unsigned number, by less than its bits."""
    dtype = ctx.type(x).dtype
    if dtype not in ("uint8", "uint32", "uint64") or indices.data is None:
        return False
    return bool((indices.data < np.dtype(dtype).itemsize * 8).all())


def _clamp_shift(ctx: Export, indices: Value, most: int) -> Value:
    """Return shift counts as int64, those below 0 or above `most` as `most`."""
    wide, bound = cast(ctx, indices, np.int64), ctx.const(most, np.int64)
    low = ctx.emit("Less", wide, ctx.const(0, np.int64))
    return ctx.emit("Where", ctx.emit("Or", low, ctx.emit("Less", bound, wide)), bound, wide)


def _wrap_shift(ctx: Export, indices: Value) -> Value:
    return ctx.emit("Mod", indices, ctx.const(64, np.uint64), fmod=0)


OPS.pairs(reads("BitwiseNot", "bitwise_not", since=18))

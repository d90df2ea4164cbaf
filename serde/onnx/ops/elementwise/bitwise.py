"""Functions of the bits of integers. ONNX has them from 18 on; before, they are arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import cast, widened
from serde.onnx.ops.table import OPS

HEXADECIMAL: Final = np.arange(16, dtype=np.int64)

COMBINED: Final[dict[str, np.ufunc]] = {
    "And": np.bitwise_and,
    "Or": np.bitwise_or,
    "Xor": np.bitwise_xor,
}


def combined(ctx: ExportContext, op: str, a: Value, b: Value) -> Value:
    """Return two int64 combined bit by bit; before 18 by tables of their hexadecimal digits."""
    if ctx.version >= 18:
        return ctx.emit(f"Bitwise{op}", a, b)
    places = [_digits(ctx, each) for each in (a, b)]
    place = ctx.emit("Add", ctx.emit("Mul", places[0], ctx.const(16, np.int64)), places[1])
    table = ctx.const(COMBINED[op].outer(HEXADECIMAL, HEXADECIMAL).reshape(-1))
    found = ctx.emit("Gather", table, place, axis=0)
    # ONNX Runtime's ReduceSum of int64 goes through floating-point numbers, and its product of
    # no rows with a vector fails.
    column = ctx.emit("MatMul", found, ctx.const(1 << 4 * HEXADECIMAL[:, None]))
    if ctx.version >= 13:
        return ctx.emit("Squeeze", column, ctx.ints([-1]))
    return ctx.emit("Squeeze", column, axes=[-1])


def _digits(ctx: ExportContext, x: Value) -> Value:
    """Return the hexadecimal digits of int64 on a new last axis, the lowest first."""
    wide = cast(ctx, x, np.uint64)
    wide = (
        ctx.emit("Unsqueeze", wide, ctx.ints([-1]))
        if ctx.version >= 13
        else ctx.emit("Unsqueeze", wide, axes=[-1])
    )
    shifts = ctx.const(4 * HEXADECIMAL, np.uint64)
    rest = ctx.emit("BitShift", wide, shifts, direction="RIGHT")
    return cast(ctx, ctx.emit("Mod", rest, ctx.const(16, np.uint64)), np.int64)


def _bitwise(op: str) -> Callable[..., Value]:
    def export_bitwise(ctx: ExportContext, x: Value, y: Value) -> Value:
        dtype = ctx.type(x).dtype
        if dtype == "bool":
            return ctx.emit(op, x, y)
        if ctx.version >= 18:
            return ctx.emit(f"Bitwise{op}", x, y)
        wide = (widened(ctx, each, "int64") for each in (x, y))
        return cast(ctx, combined(ctx, op, *wide), dtype)

    return export_bitwise


for _op in COMBINED:
    OPS.exports(f"bitwise_{_op.lower()}")(_bitwise(_op))


@OPS.exports("bitwise_not")
def export_bitwise_not(ctx: ExportContext, x: Value) -> Value:
    """Before 18: what all ones less the number leave, which wraps in every width."""
    dtype = ctx.type(x).dtype
    if dtype == "bool":
        return ctx.emit("Not", x)
    if ctx.version >= 18:
        return ctx.emit("BitwiseNot", x)
    return cast(ctx, ctx.emit("Sub", ctx.const(-1, "int64"), widened(ctx, x, "int64")), dtype)

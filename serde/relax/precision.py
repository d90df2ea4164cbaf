"""Arithmetic of narrow floating-point numbers: in float32, rounded once, as Relay's kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue, Final

from serde.errors import Unsupported
from serde.relax.export_context import ExportContext, Value
from serde.relay.ir import Expr, TensorType, astuple, call, get, tensor_type

__all__ = ["NARROW", "compute_wide", "make_wide_expansion", "widen"]

NARROW: Final = ("float16", "bfloat16")
"""What is computed in float32."""


def compute_wide(
    ctx: ExportContext,
    write: Callable[..., Value],
    *operands: Value,
    narrow: tuple[str, ...] = NARROW,
) -> Value:
    """Write what `write` makes of the operands, in float32 where these are narrower.

    Args:
        ctx: Where it is written.
        write: Takes the operands, converted, and returns one tensor.
        operands: Tensors, of which the first tells the dtype of the result.
        narrow: The dtypes that are converted.
    """
    dtype = ctx.type(operands[0]).dtype
    if dtype not in narrow:
        return write(*operands)
    made = write(*(widen(ctx, each, narrow) for each in operands))
    return ctx.emit("astype", made, dtype)


def widen(ctx: ExportContext, x: Value, narrow: tuple[str, ...] = NARROW) -> Value:
    """Return a tensor in float32 if it is narrower."""
    if ctx.type(x).dtype not in narrow:
        return x
    if x.data is not None:
        return ctx.const(x.data.astype("float32"))
    return ctx.emit("astype", x, "float32")


def make_wide_expansion(
    name: str, decompose: Callable[..., Expr] | None = None
) -> Callable[..., AnyValue]:
    """Return what an extension operator is made of, in float32 where its operands are narrower.

    Args:
        name: The operator, whose first operand tells the dtype of the result.
        decompose: What makes it of wider ones, if not its own decomposition.
    """

    def expand(*operands: AnyValue, **attributes: AnyValue) -> Expr:
        dtype = tensor_type(operands[0]).dtype
        if dtype in NARROW:
            return call("cast", call(name, *map(_cast, operands), **attributes), dtype=dtype)
        body = decompose or get(name).decompose
        if body is None:
            raise Unsupported(f"{name} has no decomposition")
        return astuple(body(*operands, **attributes))

    return expand


def _cast(operand: AnyValue) -> AnyValue:
    type_ = operand.type if isinstance(operand, Expr) else None
    narrow = isinstance(type_, TensorType) and type_.dtype in NARROW
    return call("cast", operand, dtype="float32") if narrow else operand

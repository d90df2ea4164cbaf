"""Padding."""

from __future__ import annotations

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS


@OPS.exports("nn.pad")
def export_pad(
    ctx: Ctx, x: Value, value: Value, *, pad_width: tuple[tuple[int, int], ...], pad_mode: str
) -> Value:
    """ONNX lists all widths before the axes first, then those behind them."""
    widths = ctx.ints([w[0] for w in pad_width] + [w[1] for w in pad_width])
    if pad_mode != "constant":
        return ctx.emit("Pad", x, widths, mode=pad_mode)
    dtype = ctx.type(x).dtype
    if ctx.type(value).dtype != dtype:
        value = ctx.scalar_like(x, ctx.constant(value).item())
    return ctx.emit("Pad", x, widths, value, mode="constant")


@OPS.exports("nn.mirror_pad")
def export_mirror_pad(
    ctx: Ctx, x: Value, *, mode: str, pad_width: tuple[tuple[int, int], ...]
) -> Value:
    if mode != "REFLECT":
        raise Unsupported(f"mode={mode!r} has no counterpart", hint="use mode='REFLECT'")
    widths = ctx.ints([w[0] for w in pad_width] + [w[1] for w in pad_width])
    return ctx.emit("Pad", x, widths, mode="reflect")

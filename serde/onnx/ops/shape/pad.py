"""Padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.context import ImportContext as ImportCtx
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.table import OPS
from serde.relay.expr import Expr
from serde.relay.registry import call


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


Mode = Literal["constant", "reflect", "edge", "wrap"]


@OPS.imports("Pad", since=1)
def import_pad_v1(
    ctx: ImportCtx,
    x: Expr,
    *,
    paddings: tuple[int, ...],
    mode: Mode = "constant",
    value: float = 0.0,
) -> Expr:
    return padded(ctx, x, paddings, mode, scalar_like(ctx, x, value))


@OPS.imports("Pad", since=2)
def import_pad_v2(
    ctx: ImportCtx, x: Expr, *, pads: tuple[int, ...], mode: Mode = "constant", value: float = 0.0
) -> Expr:
    return padded(ctx, x, pads, mode, scalar_like(ctx, x, value))


@OPS.imports("Pad", since=(11, 13, 18, 19, 21, 23, 24, 25))
def import_pad(
    ctx: ImportCtx,
    x: Expr,
    pads: Expr,
    constant_value: Expr | None = None,
    axes: Expr | None = None,
    *,
    mode: Mode = "constant",
) -> Expr:
    value = scalar_like(ctx, x, 0) if constant_value is None else constant_value
    if ctx.type(value).rank:
        value = relay.reshape(value, newshape=())
    rank = ctx.type(x).rank
    along = list(range(rank)) if axes is None else [axis % rank for axis in ctx.ints(axes)]
    if ctx.is_constant(pads):
        widths = [0] * (2 * rank)
        for place, (axis, side) in enumerate((a, s) for s in (0, 1) for a in along):
            widths[axis + side * rank] = ctx.ints(pads)[place]
        return padded(ctx, x, widths, mode, value)
    if along != list(range(rank)) or mode == "wrap":
        raise Unsupported("widths that are computed when the model runs")
    pairs = relay.transpose(relay.reshape(pads, [2, rank]), axes=[1, 0])
    return call("dyn.nn.pad", x, pairs, value, pad_mode=mode)


def padded(ctx: ImportCtx, x: Expr, pads: Sequence[int], mode: Mode, value: Expr) -> Expr:
    """Return `x` with its sides padded, or cut where a width is negative.

    Args:
        ctx: The node.
        x: The tensor.
        pads: All widths before the axes, then those behind them.
        mode: What is put there.
        value: A scalar.
    """
    rank = ctx.type(x).rank
    pairs = list(zip(pads[:rank], pads[rank:], strict=True))
    if any(width < 0 for pair in pairs for width in pair):
        cut = [axis for axis, pair in enumerate(pairs) if min(pair) < 0]
        begin = [max(0, -pairs[axis][0]) for axis in cut]
        end = [min(0, pairs[axis][1]) or FAR for axis in cut]
        x = relay.strided_slice(x, begin, end, axes=cut)
        pairs = [(max(0, low), max(0, high)) for low, high in pairs]
    if not any(width for pair in pairs for width in pair):
        return x
    if mode == "wrap":
        return _wrapped(ctx, x, pairs)
    return relay.nn.pad(x, pairs, value, pad_mode=mode)


FAR = 2**31 - 1
"""An end behind every axis."""


def _wrapped(ctx: ImportCtx, x: Expr, pairs: Sequence[tuple[int, int]]) -> Expr:
    """Return `x` continued by itself, axis by axis."""
    for axis, (before, after) in enumerate(pairs):
        if not before and not after:
            continue
        (length,) = ctx.static_lengths(x, [axis])
        places = np.arange(-before, length + after) % length
        x = relay.take(x, relay.const(places), axis=axis, mode="fast")
    return x

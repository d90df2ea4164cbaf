"""Padding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
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
    if ctx.is_constant(pads) and (axes is None or ctx.is_constant(axes)):
        along = range(rank) if axes is None else [axis % rank for axis in ctx.ints(axes)]
        widths = [0] * (2 * rank)
        for place, (side, axis) in enumerate(product((0, 1), along)):
            widths[axis + side * rank] = ctx.ints(pads)[place]
        return padded(ctx, x, widths, mode, value)
    sides = _sides(ctx, pads, axes, rank)
    if mode != "wrap":
        return call("dyn.nn.pad", x, relay.transpose(sides, axes=[1, 0]), value, pad_mode=mode)
    lengths = relay.shape_of(x, dtype="int64")
    for axis in range(rank):
        low, high, length = (
            relay.reshape(relay.take(each, relay.const(place), mode="fast"), newshape=())
            for each, place in ((sides, axis), (sides, rank + axis), (lengths, axis))
        )
        one = relay.const(np.int64(1))
        places = relay.arange(relay.negative(low), relay.add(length, high), one, "int64")
        x = relay.take(x, places, axis=axis, mode="wrap")
    return x


def _sides(ctx: ImportCtx, pads: Expr, axes: Expr | None, rank: int) -> Expr:
    """Return the widths before and behind every axis, int64: ``(2, rank)``."""
    count = rank if axes is None else ctx.static_shape(axes)[0]
    given = relay.reshape(relay.cast(pads, "int64"), [2, count])
    if axes is None:
        return given
    length = relay.const(np.array(rank, np.int64))
    places = relay.floor_mod(relay.cast(axes, "int64"), length)
    rows = relay.equal(relay.expand_dims(places, axis=1), relay.const(np.arange(rank)))
    return relay.nn.matmul(given, relay.cast(rows, "int64"))


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

"""Padding and dilation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relay.ir.expr import Expr
from serde.relay.lowering.shape import continued

__all__ = ["pad_with"]

PadWidth = tuple[tuple[int, int], ...]


def pad_with(
    ctx: Export, data: Value, value: Value, widths: Sequence[Sequence[AnyValue]], mode: str
) -> Value:
    """Write a tensor with elements before and after each axis.

    Args:
        ctx: The context.
        data: The tensor.
        value: The element to pad with, a scalar.
        widths: How many before and after each axis, as integers or expressions of TIR; of a
            constant a negative number is taken away.
        mode: Which they are: ``constant``, ``edge``, ``reflect`` or ``symmetric``.
    """
    te, tir = ctx.framework.te, ctx.framework.tir

    def pad(x: AnyValue, fill: AnyValue, sides: Sequence[Sequence[AnyValue]]) -> AnyValue:
        shape = [
            length + before + after for length, (before, after) in zip(x.shape, sides, strict=True)
        ]

        def one(*indices: AnyValue) -> AnyValue:
            source, inside = [], []
            for place, length, (before, after) in zip(indices, x.shape, sides, strict=True):
                if _is_zero(before) and _is_zero(after):
                    source.append(place)
                    continue
                own = place - before
                if mode == "constant":
                    inside += [own >= 0, own < length]
                within = all(_fits(each, length, mode) for each in (before, after))
                source.append(_source(tir, mode, own, length, once=within))
            if not inside:
                return x(*source)
            of_data = inside[0]
            for each in inside[1:]:
                of_data = tir.And(of_data, each)
            return tir.if_then_else(of_data, x(*source), fill().astype(str(x.dtype)))

        return te.compute(shape, one, name="pad")

    return ctx.emit_te(pad, data, value, widths)


def _is_zero(width: AnyValue) -> bool:
    return isinstance(width, int) and width == 0


def _fits(width: AnyValue, length: AnyValue, mode: str) -> bool:
    """Whether it is known that the elements of an axis, mirrored once, are enough."""
    fixed = getattr(length, "value", length)
    if not isinstance(fixed, int) or not isinstance(width, int):
        return False
    return width <= fixed - (mode == "reflect")


def _source(tir: AnyValue, mode: str, place: AnyValue, length: AnyValue, *, once: bool) -> AnyValue:
    """Return which element stands at a place counted from the first of the tensor.

    Args:
        tir: TVM's.
        mode: See :func:`pad_with`.
        place: Where it is.
        length: That of the axis.
        once: Whether the place is so near that the axis is mirrored once at most.
    """
    if mode == "constant":
        return place
    last = length - 1
    if mode == "edge":
        return tir.max(tir.min(place, last), tir.IntImm("int64", 0))
    bounce = 0 if mode == "reflect" else 1
    if not once:
        period = tir.max(2 * last + 2 * bounce, tir.IntImm("int64", 1))
        place = tir.floormod(place, period)
    before = tir.Select(place < 0, -place - bounce, place)
    return tir.Select(place > last, 2 * last - place + bounce, before)


@OPS.exports("nn.pad")
def export_pad(
    ctx: Export, data: Value, pad_val: Value, *, pad_width: PadWidth, pad_mode: str
) -> Value:
    if not any(map(any, pad_width)):
        return data
    flat = [each for sides in pad_width for each in sides]
    if pad_mode == "constant" and min(flat) >= 0 and pad_val.data is not None:
        value = float(pad_val.data)
        if value == pad_val.data and ctx.type(data).dtype != "bool":
            return ctx.emit("nn.pad", data, flat, pad_mode="constant", pad_value=value)
    return pad_with(ctx, data, pad_val, pad_width, pad_mode)


@OPS.exports("nn.mirror_pad")
def export_mirror_pad(ctx: Export, data: Value, *, mode: str, pad_width: PadWidth) -> Value:
    if not any(map(any, pad_width)):
        return data
    zero = ctx.const(0, ctx.type(data).dtype)
    return pad_with(ctx, data, zero, pad_width, mode.lower())


@OPS.imports("relax.nn.pad")
def import_pad(
    ctx: Import, data: Expr, *, pad_width: tuple[int, ...], pad_value: float, pad_mode: str
) -> Expr:
    """Widths before and after each axis follow each other."""
    widths = tuple(zip(pad_width[::2], pad_width[1::2], strict=True))
    if pad_mode == "constant":
        return relay.nn.pad(data, widths, pad_value=ctx.like(data, pad_value))
    if pad_mode in ("reflect", "replicate"):
        mode = {"reflect": "reflect", "replicate": "edge"}[pad_mode]
        return relay.nn.pad(data, widths, pad_mode=mode)
    if pad_mode != "circular":
        raise Unsupported(f"pad_mode={pad_mode!r} has no counterpart")
    return continued(data, widths, "wrap")

"""Elements added around a tensor, and between its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.shape.reshape import reshape
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.type_domains import FLOATS, NUMBERS, cast_to, compute_dtype, emit_in
from serde.coreml.value import Value
from serde.errors import Unsupported
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType
from serde.walk.expansion.tensors import require_no_cut
from serde.weights import numpy_dtype

PadWidth = Sequence[tuple[int, int]]
MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
"""Modes of MIL's pad by Relay's names."""


@OPS.imports("pad")
def import_pad(
    ctx: ImportContext,
    x: Expr,
    pad: Expr,
    constant_val: Expr | None = None,
    *,
    mode: Literal["constant", "reflect", "replicate"] = "constant",
) -> Expr:
    """Widths are those of the last axes, before and after each in turn."""
    rank = ctx.type(x).rank
    zero = relay.Constant(np.zeros((), numpy_dtype(ctx.type(x).dtype)))
    value = zero if constant_val is None else constant_val
    if not ctx.is_constant(pad):
        widths = relay.reshape(pad, [rank, 2])
        return call("dyn.nn.pad", x, widths, value, pad_mode=MODES[mode])
    given = ctx.ints(pad)
    pairs = list(zip(given[0::2], given[1::2], strict=True))
    pairs = [(0, 0)] * (rank - len(pairs)) + pairs
    return relay.nn.pad(x, pairs, value, pad_mode=MODES[mode])


@OPS.exports("nn.pad")
def export_pad(
    ctx: ExportContext, data: Value, pad_val: Value, *, pad_width: PadWidth, pad_mode: str
) -> Value:
    """MIL pads floats, with a constant or, over the last two axes, with what is there."""
    require_no_cut(pad_width)
    if not any(width for pair in pad_width for width in pair):
        return data
    if pad_mode != "constant":
        return _pad_with_own_elements(ctx, data, pad_width, pad_mode)
    if not is_float(ctx.type(data).dtype) or pad_val.data is None:
        return _pad_with_blocks(ctx, data, pad_val, pad_width)
    flat = [width for pair in pad_width for width in pair]
    value = ctx.const(pad_val.data, ctx.type(data).dtype)
    return emit_in(
        ctx, FLOATS, "pad", {"x": data, "constant_val": value}, pad=flat, mode="constant"
    )


@OPS.exports("nn.mirror_pad")
def export_mirror_pad(ctx: ExportContext, data: Value, *, mode: str, pad_width: PadWidth) -> Value:
    return _pad_with_own_elements(ctx, data, pad_width, mode.lower())


def _pad_with_own_elements(ctx: ExportContext, x: Value, pad_width: PadWidth, mode: str) -> Value:
    """Return `x` continued by its own elements: each axis looks up where they are."""
    shape = ctx.type(x).shape
    inside = len(shape) >= 2 and all(pair == (0, 0) for pair in pad_width[:-2])
    short = 1 if mode == "reflect" else 0
    fits = inside and all(
        isinstance(dim, int) and max(pair) <= dim - short
        for dim, pair in zip(shape[-2:], pad_width[-2:], strict=True)
        if pair != (0, 0)
    )
    names = {theirs: ours for ours, theirs in MODES.items()}
    if fits and mode in names and is_float(ctx.type(x).dtype):
        flat = [width for pair in pad_width for width in pair]
        return emit_in(ctx, FLOATS, "pad", {"x": x}, pad=flat, mode=names[mode])
    work = compute_dtype(ctx, ctx.type(x).dtype, NUMBERS)
    found = cast_to(ctx, x, work)
    for axis, pair in enumerate(pad_width):
        if pair == (0, 0):
            continue
        length = ctx.type(found).shape[axis]
        if not isinstance(length, int):
            raise Unsupported(f"padding of mode {mode!r} for a length that is not fixed")
        places = allocation.pad(allocation.arange(length, dtype=np.int32), [pair], mode)
        dims: list[Dim] = list(ctx.type(found).shape)
        dims[axis] = len(places)
        index = ctx.const(places)
        found = ctx.emit("gather", TensorType(dims, work), x=found, indices=index, axis=axis)
    return cast_to(ctx, found, ctx.result_type().dtype)


def _pad_with_blocks(ctx: ExportContext, x: Value, value: Value, pad_width: PadWidth) -> Value:
    """Return `x` between blocks of one value, which may be computed."""
    dtype = ctx.type(x).dtype
    work = compute_dtype(ctx, dtype, NUMBERS)
    found, filler = cast_to(ctx, x, work), cast_to(ctx, value, work)
    for axis, pair in enumerate(pad_width):
        if not any(pair):
            continue
        dims: list[Dim] = list(ctx.type(found).shape)
        blocks = []
        for width in pair:
            block = TensorType([*dims[:axis], width, *dims[axis + 1 :]], work)
            blocks.append([_block(ctx, filler, block)] if width else [])
        dims[axis] = dims[axis] + sum(pair)
        parts = [*blocks[0], found, *blocks[1]]
        found = ctx.emit("concat", TensorType(dims, work), values=parts, axis=axis)
    return cast_to(ctx, found, dtype)


def _block(ctx: ExportContext, value: Value, type_: TensorType) -> Value:
    shape = ctx.shape(type_.shape)
    if value.data is not None:
        return ctx.emit("fill", type_, shape=shape, value=value)
    return ctx.emit("tile", type_, x=reshape(ctx, value, [1] * type_.rank), reps=shape)


@OPS.exports("dyn.nn.pad")
def export_dyn_pad(
    ctx: ExportContext, data: Value, pad_width: Value, pad_val: Value, *, pad_mode: str
) -> Value:
    """Widths that are computed are those of all axes."""
    names = {theirs: ours for ours, theirs in MODES.items()}
    rank = ctx.type(data).rank
    if pad_mode != "constant" and rank > 2:
        raise Unsupported(f"padding of mode {pad_mode!r} whose widths are computed")
    dtype = ctx.type(data).dtype
    widths = reshape(ctx, cast_to(ctx, pad_width, "int32"), [2 * rank])
    known = ctx.const(0 if pad_val.data is None else pad_val.data, dtype)
    tensors = {"x": data, "constant_val": known}
    found = emit_in(ctx, FLOATS, "pad", tensors, pad=widths, mode=names[pad_mode])
    if pad_val.data is not None or pad_mode != "constant":
        return found
    ones = ctx.emit("fill", ctx.type(data), shape=_emit_shape(ctx, data), value=ctx.const(1, dtype))
    marks = ctx.emit("pad", x=ones, pad=widths, mode="constant", constant_val=ctx.const(0, dtype))
    inside = ctx.cast(marks, "bool")
    return ctx.emit("select", cond=inside, a=found, b=cast_to(ctx, pad_val, dtype))


def _emit_shape(ctx: ExportContext, x: Value) -> Value:
    return ctx.emit("shape", TensorType((ctx.type(x).rank,), "int32"), x=x)

"""Elements around a tensor."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.export_context import ExportContext, Value, is_spoken
from serde.nnef.import_context import ImportContext
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Constant, Expr, Tuple
from serde.relay.ir.shapes import is_float
from serde.walk.expansion.tensors import fixed_shape, require_no_cut, tensor_type
from serde.weights import numpy_dtype

__all__: list[str] = []

PadWidth = tuple[tuple[int, int], ...]


@OPS.imports("pad")
def import_pad(
    ctx: ImportContext,
    input: Expr,
    *,
    padding: PadWidth,
    border: str = "constant",
    value: float = 0.0,
) -> Expr:
    """A side below 0 is cut off behind the padding of the others."""
    rank = ctx.rank(input)
    if len(padding) != rank:
        raise Unsupported(f"padding of {len(padding)} axes for a tensor of rank {rank}")
    wide = tuple((max(before, 0), max(behind, 0)) for before, behind in padding)
    padded = _pad(ctx, input, wide, border, value) if any(map(any, wide)) else input
    if all(before >= 0 and behind >= 0 for before, behind in padding):
        return padded
    lengths = ctx.static_shape(padded)
    begin = [max(-before, 0) for before, _ in padding]
    end = [length - max(-behind, 0) for length, (_, behind) in zip(lengths, padding, strict=True)]
    return relay.strided_slice(padded, begin, end)


def _pad(ctx: ImportContext, x: Expr, padding: PadWidth, border: str, value: float) -> Expr:
    dtype = ctx.type(x).dtype
    if border == "constant":
        return relay.nn.pad(x, padding, ctx.const(value, dtype))
    if border == "replicate":
        return relay.nn.pad(x, padding, ctx.const(0, dtype), "edge")
    if border == "reflect":
        return relay.nn.mirror_pad(x, padding, "REFLECT")
    if border == "reflect-even":
        return relay.nn.mirror_pad(x, padding, "SYMMETRIC")
    raise Unsupported(f"border={border!r} has no values to pad with")


_BORDERS: Final = {
    "edge": "replicate",
    "reflect": "reflect",
    "REFLECT": "reflect",
    "SYMMETRIC": "reflect-even",
}


@OPS.exports("nn.pad")
def export_pad(
    ctx: ExportContext,
    data: Value,
    pad_val: Value,
    *,
    pad_width: PadWidth,
    pad_mode: Literal["constant", "edge", "reflect"],
) -> Value:
    """Scalars are padded with what a literal says, all else is joined with its borders."""
    require_no_cut(pad_width)
    if pad_mode != "constant":
        return _export_border(ctx, data, pad_width, pad_mode)
    if pad_val.data is not None and is_float(ctx.type(data).dtype):
        value = pad_val.data.astype(numpy_dtype(ctx.type(data).dtype))
        if is_spoken(value):
            return ctx.emit("pad", data, padding=list(pad_width), value=value.item())
    return ctx.spell(lambda x, value: _pad_with_blocks(x, value, pad_width), data, pad_val)


@OPS.exports("nn.mirror_pad")
def export_mirror_pad(
    ctx: ExportContext, data: Value, *, mode: Literal["SYMMETRIC", "REFLECT"], pad_width: PadWidth
) -> Value:
    return _export_border(ctx, data, pad_width, mode)


def _export_border(ctx: ExportContext, data: Value, pad_width: PadWidth, mode: str) -> Value:
    if is_float(ctx.type(data).dtype):
        return ctx.emit("pad", data, padding=list(pad_width), border=_BORDERS[mode])
    numpy_mode = "symmetric" if mode == "SYMMETRIC" else mode.lower()
    return ctx.spell(lambda x: _pad_with_own_elements(x, pad_width, numpy_mode), data)


def _pad_with_own_elements(x: Expr, pad_width: PadWidth, mode: str) -> Expr:
    """Return `x` continued by its own elements, which each axis looks up."""
    for axis, (pair, length) in enumerate(zip(pad_width, fixed_shape(x), strict=True)):
        if any(pair):
            places = allocation.pad(allocation.arange(length, dtype=np.int32), [pair], mode)
            x = relay.take(x, Constant(places), axis, mode="fast")
    return x


def _pad_with_blocks(x: Expr, value: Expr, pad_width: PadWidth) -> Expr:
    """Return `x` between blocks of one value, which may be computed."""
    value = relay.cast(value, tensor_type(x).dtype)
    for axis, pair in enumerate(pad_width):
        if not any(pair):
            continue
        lengths = fixed_shape(x)
        blocks = [
            [relay.full(value, [*lengths[:axis], width, *lengths[axis + 1 :]])] if width else []
            for width in pair
        ]
        x = relay.concatenate(Tuple([*blocks[0], x, *blocks[1]]), axis)
    return x

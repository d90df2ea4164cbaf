"""Elements around a tensor."""

from __future__ import annotations

from typing import Final, Literal

import serde.relay as relay
from serde.core.weights import Array, numpy_dtype
from serde.errors import Unsupported
from serde.nnef.export_context import ExportContext, Value, is_spoken
from serde.nnef.import_context import ImportContext
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Call, Constant, Expr, tensor_type
from serde.relay.ir.types import TensorType
from serde.walk.takes import FLOATS, Takes

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


def _is_said(node: Call) -> bool:
    """Whether floats get a border of their own, or of what a literal says."""
    value, widths = node.args[1], node.attrs["pad_width"]
    if any(min(pair) < 0 for pair in widths):
        return False
    if node.attrs["pad_mode"] != "constant":
        return True
    return isinstance(value, Constant) and is_spoken(_filler(value.data, tensor_type(node.args[0])))


def _filler(value: Array, type_: TensorType) -> Array:
    return value.astype(numpy_dtype(type_.dtype))


@OPS.exports("nn.pad", takes=Takes(data=FLOATS), when=_is_said)
def export_pad(
    ctx: ExportContext,
    data: Value,
    pad_val: Value,
    *,
    pad_width: PadWidth,
    pad_mode: Literal["constant", "edge", "reflect"],
) -> Value:
    if pad_mode != "constant":
        return export_mirror_pad(ctx, data, mode=pad_mode, pad_width=pad_width)
    value = _filler(ctx.constant(pad_val), ctx.type(data))
    return ctx.emit("pad", data, padding=list(pad_width), value=value.item())


@OPS.exports("nn.mirror_pad", takes=Takes(data=FLOATS))
def export_mirror_pad(ctx: ExportContext, data: Value, *, mode: str, pad_width: PadWidth) -> Value:
    return ctx.emit("pad", data, padding=list(pad_width), border=_BORDERS[mode])

"""Joining and splitting."""

from __future__ import annotations

from typing import Literal

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.shape.reshape import along, lengths, unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.types import TupleType


@OPS.exports("concatenate")
def export_concatenate(ctx: Ctx, data: tuple[Value, ...], *, axis: int) -> Value:
    return ctx.emit("Concat", *data, axis=axis)


@OPS.exports("nn.fifo_buffer")
def export_fifo_buffer(ctx: Ctx, x: Value, buffer: Value, *, axis: int) -> Value:
    place = axis % ctx.type(x).rank
    joined = ctx.emit("Concat", buffer, x, axis=place)
    start = ctx.shape([ctx.type(x).shape[place]])
    return ctx.emit("Slice", joined, start, ctx.ints([np.iinfo(np.int64).max]), ctx.ints([place]))


@OPS.exports("stack")
def export_stack(ctx: Ctx, data: tuple[Value, ...], *, axis: int) -> Value:
    place = axis % ctx.result_type().rank
    return ctx.emit("Concat", *[unsqueeze(ctx, each, [place]) for each in data], axis=place)


@OPS.exports("split")
def export_split(
    ctx: Ctx, x: Value, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> tuple[Value, ...]:
    """The lengths are an attribute before 13."""
    if not isinstance(ctx.result, TupleType):
        raise Unsupported("the number of parts is not known")
    place = axis % ctx.type(x).rank
    parts = len(ctx.result.fields)
    lengths = [part.shape[place] for part in ctx.result.fields]  # type: ignore[union-attr]
    fixed = [length for length in lengths if isinstance(length, int)]
    if len(fixed) == parts:
        if ctx.version >= 13:
            return ctx.emit_tuple("Split", x, ctx.ints(fixed), outputs=parts, axis=place)
        return ctx.emit_tuple("Split", x, outputs=parts, axis=place, split=fixed)
    if isinstance(indices_or_sections, int):
        count = parts if ctx.version >= 18 else None
        return ctx.emit_tuple("Split", x, outputs=parts, axis=place, num_outputs=count)
    if ctx.version >= 13:
        return ctx.emit_tuple("Split", x, ctx.shape(lengths), outputs=parts, axis=place)
    raise Unsupported("a split of a dynamic axis at given places needs version 13")


@OPS.exports("meshgrid")
def export_meshgrid(
    ctx: Ctx, data: tuple[Value, ...], *, indexing: Literal["ij", "xy"]
) -> tuple[Value, ...]:
    """With "xy", the first two axes of the grid are exchanged."""
    places = list(range(len(data)))
    if indexing == "xy":
        places[:2] = places[1::-1]
    sizes = [
        lengths(ctx, data[i], [0]) if ctx.type(data[i]).rank else ctx.ints([1]) for i in places
    ]
    shape = ctx.emit("Concat", *sizes, axis=0)
    spread = [along(ctx, x, places.index(i), len(data)) for i, x in enumerate(data)]
    return tuple(ctx.emit("Expand", each, shape) for each in spread)

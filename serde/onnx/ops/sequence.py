"""Sequences."""

from __future__ import annotations

import numpy as np
from onnx import helper

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim


@OPS.exports("serde.sequence_empty")
def export_sequence_empty(
    ctx: Ctx, *, shape: tuple[Dim, ...], dtype: np.dtype[np.generic]
) -> Value:
    """What shape the elements will have is nothing that ONNX says here."""
    return ctx.emit("SequenceEmpty", dtype=helper.np_dtype_to_tensor_dtype(dtype))


@OPS.exports("serde.sequence_construct")
def export_sequence_construct(ctx: Ctx, data: tuple[Value, ...]) -> Value:
    return ctx.emit("SequenceConstruct", *data)


@OPS.exports("serde.sequence_insert")
def export_sequence_insert(ctx: Ctx, data: Value, value: Value, position: Value | None) -> Value:
    return ctx.emit("SequenceInsert", data, value, position)


@OPS.exports("serde.sequence_erase")
def export_sequence_erase(ctx: Ctx, data: Value, position: Value | None) -> Value:
    return ctx.emit("SequenceErase", data, position)


@OPS.exports("serde.sequence_at")
def export_sequence_at(ctx: Ctx, data: Value, position: Value) -> Value:
    return ctx.emit("SequenceAt", data, position)


@OPS.exports("serde.sequence_length")
def export_sequence_length(ctx: Ctx, data: Value) -> Value:
    return ctx.emit("SequenceLength", data)


@OPS.exports("serde.sequence_concat")
def export_sequence_concat(ctx: Ctx, data: Value, *, axis: int, new_axis: bool) -> Value:
    return ctx.emit("ConcatFromSequence", data, axis=axis, new_axis=int(new_axis))


@OPS.exports("serde.sequence_split")
def export_sequence_split(
    ctx: Ctx, data: Value, split: Value | None, *, axis: int, keepdims: bool
) -> Value:
    """Where `split` is given ONNX ignores `keepdims`, which ONNX Runtime does not."""
    kept = int(keepdims) if split is None else None
    return ctx.emit("SplitToSequence", data, split, axis=axis, keepdims=kept)

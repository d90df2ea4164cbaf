"""Elements in another order: layouts, windows, blocks, sequences and sums that undo broadcasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType
from serde.relay.op.shape.layout import LayoutPlan


@OPS.exports("layout_transform")
def export_layout_transform(
    ctx: ExportContext, data: Value, *, src_layout: str, dst_layout: str
) -> Value:
    plan = LayoutPlan(ctx.type(data).shape, src_layout, dst_layout)

    def spelled(x: Expr) -> Expr:
        whole = relay.reshape(relay.transpose(x, plan.gather), plan.parts)
        return relay.transpose(whole, plan.spread)

    return ctx.spell(spelled, data)


def summed_to(data: Expr, shape: Sequence[Dim]) -> Expr:
    """Return `data` summed down to a shape that broadcasts to its own."""
    type_ = data.checked_type
    if not isinstance(type_, TensorType):
        raise Unsupported(f"expected a tensor, found {type_!r}")
    more = type_.rank - len(shape)
    inner = [i + more for i, length in enumerate(shape) if length != type_.shape[i + more]]
    if inner:
        data = relay.sum(data, axis=inner, keepdims=True)
    return relay.sum(data, axis=tuple(range(more))) if more else data


@OPS.exports("collapse_sum_like")
def export_collapse_sum_like(ctx: ExportContext, data: Value, collapse_type: Value) -> Value:
    return ctx.spell(lambda x: summed_to(x, ctx.type(collapse_type).shape), data)


@OPS.exports("collapse_sum_to")
def export_collapse_sum_to(
    ctx: ExportContext, data: Value, shape: Value, *, dtype: AnyValue
) -> Value:
    wanted = [int(length) for length in ctx.constant(shape)]
    return ctx.spell(lambda x: summed_to(x, wanted), data)


@OPS.exports("sliding_window")
def export_sliding_window(
    ctx: ExportContext,
    data: Value,
    *,
    axis: int,
    window_shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> Value:
    """One axis after the other is looked up at the places of its windows."""
    rank = ctx.type(data).rank
    first = axis % rank
    lengths = ctx.static_lengths(data, range(first, rank))
    count = len(lengths)

    def spelled(x: Expr) -> Expr:
        for i, (length, size, step) in enumerate(zip(lengths, window_shape, strides, strict=True)):
            starts = np.arange((length - size) // step + 1) * step
            places = relay.Constant(starts[:, None] + np.arange(size))
            x = relay.take(x, places, axis=first + 2 * i, mode="clip")
        order = [*range(first), *range(first, rank + count, 2), *range(first + 1, rank + count, 2)]
        return relay.transpose(x, order)

    return ctx.spell(spelled, data)


@OPS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: ExportContext, data: Value, seq_lengths: Value, *, seq_axis: int, batch_axis: int
) -> Value:
    """MXNet has the sequence along axis 0, the batch along axis 1, lengths in the data's dtype."""
    type_ = ctx.type(data)
    seq, batch = seq_axis % type_.rank, batch_axis % type_.rank
    order = [seq, batch, *(i for i in range(type_.rank) if i not in (seq, batch))]
    narrow = type_.dtype in ("bool", "int8", "uint8", "float16")
    wide = ("float32" if type_.dtype == "float16" else "int32") if narrow else type_.dtype
    moved = ctx.spell(lambda x: relay.transpose(relay.cast(x, wide), order), data)
    reversed_ = ctx.emit(
        "SequenceReverse", moved, ctx.cast(seq_lengths, wide), use_sequence_length=True
    )
    back = [order.index(i) for i in range(type_.rank)]
    return ctx.spell(
        lambda x: relay.cast(relay.transpose(x, back), type_.dtype),
        ctx.typed(reversed_, ctx.type(moved)),
    )


@OPS.imports("SequenceReverse")
def import_sequence_reverse(
    ctx: ImportContext,
    data: Expr,
    sequence_length: Expr | None = None,
    *,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> Expr:
    if not use_sequence_length or sequence_length is None:
        return relay.reverse(data, 0)
    lengths = relay.cast(sequence_length, "int32")
    return relay.reverse_sequence(data, lengths, seq_axis=0, batch_axis=1)


@OPS.exports("nn.dilate")
def export_dilate(
    ctx: ExportContext, data: Value, *, strides: tuple[int, ...], dilation_value: float
) -> Value:
    """Each axis gets one more behind it, of which only the first place is not filled."""

    def spelled(x: Expr) -> Expr:
        for axis, step in enumerate(strides):
            if step > 1:
                x = _dilated(x, axis, step, dilation_value)
        return x

    return ctx.spell(spelled, data)


def _dilated(data: Expr, axis: int, step: int, value: float) -> Expr:
    type_ = data.checked_type
    if not isinstance(type_, TensorType):
        raise Unsupported(f"expected a tensor, found {type_!r}")
    wide = relay.expand_dims(data, axis + 1)
    fill = relay.full_like(wide, relay.const(value, type_.dtype))
    joined = relay.concatenate([wide, *[fill] * (step - 1)], axis + 1)
    length = type_.shape[axis]
    flat = relay.reshape(joined, [*type_.shape[:axis], length * step, *type_.shape[axis + 1 :]])
    return relay.strided_slice(flat, [0], [1 - step], [1], axes=[axis])


@OPS.exports("nn.mirror_pad")
def export_mirror_pad(
    ctx: ExportContext,
    data: Value,
    *,
    mode: Literal["SYMMETRIC", "REFLECT"],
    pad_width: tuple[tuple[int, int], ...],
) -> Value:
    """MXNet mirrors without the border only; where it cannot, the places are looked up."""
    type_ = ctx.type(data)
    inner = type_.rank in (4, 5) and not any(map(any, pad_width[:2]))
    if mode == "REFLECT" and inner and is_float(type_.dtype):
        widths = [each for pair in pad_width for each in pair]
        return ctx.emit_bytes("Pad", data, mode="reflect", pad_width=widths)

    def spelled(x: Expr) -> Expr:
        for axis, widths in enumerate(pad_width):
            if any(widths):
                (length,) = ctx.static_lengths(data, [axis])
                kind: Literal["symmetric", "reflect"] = (
                    "symmetric" if mode == "SYMMETRIC" else "reflect"
                )
                places = np.pad(np.arange(length), widths, mode=kind)
                x = relay.take(x, relay.Constant(places), axis=axis, mode="clip")
        return x

    return ctx.spell(spelled, data)


@OPS.exports("nn.fifo_buffer")
def export_fifo_buffer(ctx: ExportContext, data: Value, buffer: Value, *, axis: int) -> Value:
    along = axis % ctx.type(buffer).rank
    (length,) = ctx.static_lengths(buffer, [along])

    def spelled(new: Expr, old: Expr) -> Expr:
        joined = relay.concatenate([old, new], along)
        return relay.strided_slice(joined, [-length], [2**31 - 1], [1], axes=[along])

    return ctx.spell(spelled, data, buffer)

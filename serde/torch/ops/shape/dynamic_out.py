"""Shapes, axes and widths that are computed, as they are written."""

from __future__ import annotations

from collections.abc import Callable

from serde.relay.op.index.dynamic import DynamicTopK
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.index.slicing import FAR, write_slices
from serde.torch.ops.table import OPS
from serde.torch.ops.written import DType, cast


def integers(ctx: ExportContext, x: Value) -> Value:
    """Return the integers of a tensor as a list of Python's."""
    return ctx.call(ctx.helper("integers"), x)


def _make_constant_exporter(target: str) -> Callable[..., Value]:
    def export_constant(ctx: ExportContext, shape: Value, *, dtype: DType | None) -> Value:
        return ctx.call(target, integers(ctx, shape), dtype=ctx.dtype(ctx.result_type().dtype))

    return export_constant


for _name in ("ones", "zeros"):
    OPS.exports(f"dyn.{_name}")(_make_constant_exporter(f"torch.{_name}"))


@OPS.exports("dyn.full", ignored=("dtype",))
def export_dyn_full(ctx: ExportContext, fill_value: Value, shape: Value) -> Value:
    value = cast(ctx, fill_value, ctx.result_type().dtype)
    return ctx.method(value, "expand", integers(ctx, shape))


@OPS.exports("dyn.broadcast_to", ignored=("dtype",))
def export_dyn_broadcast_to(ctx: ExportContext, data: Value, shape: Value) -> Value:
    return ctx.method(data, "expand", integers(ctx, shape))


@OPS.exports("dyn.reshape")
def export_dyn_reshape(
    ctx: ExportContext, data: Value, newshape: Value, *, allowzero: bool
) -> Value:
    """A length of 0 is that of the same axis, unless it is allowed."""
    if newshape.data is not None:
        return ctx.method(data, "reshape", ctx.sizes(ctx.result_type().shape))
    if allowzero:
        return ctx.method(data, "reshape", integers(ctx, newshape))
    return ctx.call(ctx.helper("reshape_to"), data, newshape)


@OPS.exports("dyn.tile")
def export_dyn_tile(ctx: ExportContext, data: Value, reps: Value) -> Value:
    return ctx.method(data, "tile", integers(ctx, reps))


@OPS.exports("dyn.expand_dims")
def export_dyn_expand_dims(
    ctx: ExportContext, data: Value, axis: Value, *, num_newaxis: int
) -> Value:
    place = ctx.method(axis, "item") if axis.data is None else int(ctx.constant(axis).item())
    if isinstance(place, int) and place >= 0:
        for number in range(num_newaxis):
            data = ctx.method(data, "unsqueeze", place + number)
        return data
    return ctx.call(ctx.helper("insert_axes"), data, axis, num_newaxis)


@OPS.exports("dyn.squeeze")
def export_dyn_squeeze(ctx: ExportContext, data: Value, axes: Value) -> Value:
    return ctx.method(data, "squeeze", integers(ctx, axes))


@OPS.exports("dyn.nn.pad")
def export_dyn_pad(
    ctx: ExportContext, data: Value, pad_width: Value, pad_val: Value, *, pad_mode: str
) -> Value:
    if pad_mode == "constant":
        widths = integers(ctx, ctx.method(ctx.method(pad_width, "flip", 0), "flatten"))
        filler = cast(ctx, pad_val, ctx.type(data).dtype)
        return ctx.call(ctx.helper("pad_with"), data, widths, filler)
    return ctx.call(ctx.helper("continue_axes"), data, pad_width, pad_mode)


@OPS.exports("dyn.strided_slice")
def export_dyn_strided_slice(
    ctx: ExportContext,
    data: Value,
    begin: Value,
    end: Value,
    strides: Value,
    *,
    slice_mode: str,
    axes: tuple[int, ...] | None,
) -> Value:
    rank = ctx.type(data).rank
    chosen = [axis % rank for axis in axes] if axes is not None else []
    if axes is None:
        (count,) = ctx.type(begin).shape
        chosen = list(range(count if isinstance(count, int) else rank))
    firsts, stops, steps = (ctx.numbers(each) for each in (begin, end, strides))
    forward = strides.data is not None and bool((strides.data > 0).all())
    if forward and slice_mode == "end" and firsts and stops and steps:
        slices = [slice(None)] * rank
        for axis, first, last, step in zip(chosen, firsts, stops, steps, strict=False):
            stop = None if isinstance(last, int) and last >= FAR else last
            slices[axis] = slice(first or None, stop, None if step == 1 else step)
        return write_slices(ctx, data, slices)
    return ctx.call(
        ctx.helper("slice_axes"), data, begin, end, strides, chosen, slice_mode == "size"
    )


@OPS.exports("dyn.topk")
def export_dyn_topk(
    ctx: ExportContext, data: Value, k: Value, *, topk: DynamicTopK
) -> Value | tuple[Value, ...]:
    rank = ctx.type(data).rank
    found = ctx.call_tuple(
        ctx.helper("first_sorted"), data, k, topk.axis % rank, not topk.is_ascend, outputs=2
    )
    types = ctx.result_types()
    if topk.ret_type == "values":
        return found[0]
    places = cast(ctx, found[1], types[-1].dtype, "int64")
    return places if topk.ret_type == "indices" else (found[0], places)

"""Slices and the first of sorted elements whose numbers are computed."""

from __future__ import annotations

from serde.relay.op.index.dynamic import DynamicTopK
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.index.slicing import FAR, write_slices
from serde.torch.ops.table import OPS
from serde.torch.ops.written import cast


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

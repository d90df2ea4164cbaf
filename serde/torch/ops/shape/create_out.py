"""Tensors that are made, spread, repeated and joined, as they are written."""

from __future__ import annotations

from functools import partial

from serde.relay.ir.dims import Dim, same_shape
from serde.relay.ir.expr import Constant
from serde.relay.ir.shapes import is_float, normalize_axis
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import DType, cast


def _export_constant(
    ctx: ExportContext, *, target: str, shape: tuple[Dim, ...] | None, dtype: DType | None
) -> Value:
    type_ = ctx.result_type()
    return ctx.call(target, ctx.sizes(type_.shape), dtype=ctx.dtype(type_.dtype))


for _name in ("ones", "zeros"):
    OPS.exports(_name)(partial(_export_constant, target=f"torch.{_name}"))


@OPS.exports("full", ignored=("shape", "dtype"))
def export_full(ctx: ExportContext, fill_value: Value) -> Value:
    type_ = ctx.result_type()
    value = ctx.scalar(fill_value)
    if value is not None:
        return ctx.call("torch.full", ctx.sizes(type_.shape), value, dtype=ctx.dtype(type_.dtype))
    return ctx.method(cast(ctx, fill_value, type_.dtype), "expand", ctx.sizes(type_.shape))


@OPS.exports("full_like")
def export_full_like(ctx: ExportContext, data: Value, fill_value: Value) -> Value:
    value = ctx.scalar(fill_value)
    if value is not None:
        return ctx.call("torch.full_like", data, value)
    return ctx.method(cast(ctx, fill_value, ctx.type(data).dtype), "expand_as", data)


@OPS.exports("arange")
def export_arange(
    ctx: ExportContext, start: Value, end: Value, step: Value, *, dtype: DType
) -> Value:
    """PyTorch refuses an end before the start, of which Relay has an empty range."""
    numbers = [ctx.scalar(each) for each in (start, end, step)]
    name = ctx.dtype(dtype.name)
    if None not in numbers and ctx.result_type().shape != (0,):
        given = numbers if numbers[2] != 1 else numbers[:2]
        return ctx.call(
            "torch.arange", *(given if given[0] or len(given) > 2 else given[1:]), dtype=name
        )
    count = ctx.numbers(end)
    if numbers[0] == 0 and numbers[2] == 1 and count is not None:
        return ctx.call("torch.arange", *count, dtype=name)
    return ctx.call(ctx.helper("arange"), start, end, step)


@OPS.exports("broadcast_to", ignored=("shape", "dtype"))
def export_broadcast_to(ctx: ExportContext, data: Value) -> Value:
    """A length that stays is -1 where it is no number; one that is unknown does stay."""
    own, wanted = ctx.type(data).shape, ctx.result_type().shape
    if own == wanted:
        return data
    lead = len(wanted) - len(own)
    lengths: list[object] = []
    for place, dim in enumerate(wanted):
        stays = place >= lead and own[place - lead] == dim
        lengths += [-1] if stays and not isinstance(dim, int) else ctx.sizes([dim])
    return ctx.method(data, "expand", *lengths)


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: ExportContext, data: Value, broadcast_type: Value) -> Value:
    return ctx.method(data, "expand_as", broadcast_type)


@OPS.exports("collapse_sum_like", "collapse_sum_to")
def export_collapse_sum(ctx: ExportContext, data: Value, like: Value) -> Value:
    type_ = ctx.result_type()
    if same_shape(ctx.type(data).shape, type_.shape):
        return data
    total = ctx.method(data, "sum_to_size", ctx.sizes(type_.shape))
    return total if is_float(type_.dtype) else ctx.method(total, "to", ctx.dtype(type_.dtype))


@OPS.exports("tile")
def export_tile(ctx: ExportContext, data: Value, *, reps: tuple[int, ...]) -> Value:
    return ctx.method(data, "tile", reps)


@OPS.exports("repeat")
def export_repeat(ctx: ExportContext, data: Value, *, repeats: int, axis: int | None) -> Value:
    options = {} if axis is None else {"dim": axis}
    return ctx.method(data, "repeat_interleave", repeats, **options)


@OPS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: ExportContext, data: Value, seq_lengths: Value, *, seq_axis: int, batch_axis: int
) -> Value:
    rank = ctx.type(data).rank
    axes = normalize_axis(seq_axis, rank), normalize_axis(batch_axis, rank)
    return ctx.call(ctx.helper("reverse_sequence"), data, seq_lengths, *axes)


@OPS.exports("concatenate")
def export_concatenate(ctx: ExportContext, data: tuple[Value, ...], *, axis: int) -> Value:
    return ctx.call("torch.cat", list(data), dim=axis)


@OPS.exports("stack")
def export_stack(ctx: ExportContext, data: tuple[Value, ...], *, axis: int) -> Value:
    return ctx.call("torch.stack", list(data), dim=axis)


@OPS.exports("split")
def export_split(
    ctx: ExportContext, data: Value, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> tuple[Value, ...]:
    types = ctx.result_types()
    axis = normalize_axis(axis, ctx.type(data).rank)
    sizes = [each.shape[axis] for each in types]
    count = len(types)
    if isinstance(indices_or_sections, int):
        if 0 in sizes:
            return ctx.call_tuple("torch.tensor_split", data, count, dim=axis, outputs=count)
        return ctx.call_tuple("torch.chunk", data, count, dim=axis, outputs=count)
    fixed = [each for each in sizes if isinstance(each, int)]
    if len(fixed) == count and sum(fixed) == ctx.type(data).shape[axis]:
        return ctx.call_tuple("torch.split", data, fixed, dim=axis, outputs=count)
    cuts = list(indices_or_sections)
    return ctx.call_tuple("torch.tensor_split", data, cuts, dim=axis, outputs=count)


@OPS.exports("meshgrid")
def export_meshgrid(
    ctx: ExportContext, data: tuple[Value, ...], *, indexing: str
) -> tuple[Value, ...]:
    return ctx.call_tuple("torch.meshgrid", list(data), indexing=indexing, outputs=len(data))


@OPS.exports("sliding_window")
def export_sliding_window(
    ctx: ExportContext,
    data: Value,
    *,
    axis: int,
    window_shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> Value:
    first = normalize_axis(axis, ctx.type(data).rank)
    for place, (width, step) in enumerate(zip(window_shape, strides, strict=True)):
        data = ctx.method(data, "unfold", first + place, width, step)
    return data


@OPS.exports("trilu", when=lambda node: isinstance(node.args[1], Constant))
def export_trilu(ctx: ExportContext, data: Value, k: Value, *, upper: bool) -> Value:
    number = int(ctx.constant(k))
    target = "torch.triu" if upper else "torch.tril"
    return ctx.call(target, data, number) if number else ctx.call(target, data)

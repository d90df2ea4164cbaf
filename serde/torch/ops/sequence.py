"""Sequences: lists of tensors."""

from __future__ import annotations

from serde.torch.ops.table import OPS, Export, Value


@OPS.exports("serde.sequence_construct")
def export_sequence_construct(ctx: Export, data: tuple[Value, ...]) -> Value:
    return ctx.assign(ctx.term(list(data)))


@OPS.exports("serde.sequence_empty", ignored=("shape", "dtype"))
def export_sequence_empty(ctx: Export) -> Value:
    return ctx.call(ctx.helper("no_tensors"))


@OPS.exports("serde.sequence_insert")
def export_sequence_insert(ctx: Export, data: Value, value: Value, position: Value | None) -> Value:
    if position is None:
        return ctx.infix("+", data, ctx.assign(ctx.term([value])))
    return ctx.call(ctx.helper("insert_tensor"), data, value, position)


@OPS.exports("serde.sequence_erase")
def export_sequence_erase(ctx: Export, data: Value, position: Value | None) -> Value:
    if position is None:
        return ctx.index(data, slice(None, -1))
    return ctx.call(ctx.helper("erase_tensor"), data, position)


@OPS.exports("serde.sequence_at")
def export_sequence_at(ctx: Export, data: Value, position: Value) -> Value:
    number = ctx.scalar(position)
    return ctx.index(data, ctx.call("int", position) if number is None else int(number))


@OPS.exports("serde.sequence_length")
def export_sequence_length(ctx: Export, data: Value) -> Value:
    return ctx.call("torch.tensor", ctx.call("len", data))


@OPS.exports("serde.sequence_concat")
def export_sequence_concat(ctx: Export, data: Value, *, axis: int, new_axis: bool) -> Value:
    return ctx.call("torch.stack" if new_axis else "torch.cat", data, dim=axis)


@OPS.exports("serde.sequence_split")
def export_sequence_split(
    ctx: Export, data: Value, split: Value | None, *, axis: int, keepdims: bool
) -> Value:
    axis %= ctx.type(data).rank
    if split is None:
        return ctx.call(ctx.helper("single_tensors"), data, axis, keepdims)
    name = "equal_tensors" if ctx.type(split).rank == 0 else "split_tensors"
    return ctx.call(ctx.helper(name), data, split, axis)

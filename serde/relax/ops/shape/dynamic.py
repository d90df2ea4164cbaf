"""Forms whose shape is an operand: it is computed as a vector, and read back as lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any as AnyValue

from serde.relax.ops.shape.arrange import spread
from serde.relax.ops.shape.create import fill
from serde.relax.ops.shape.pad import pad_with
from serde.relax.ops.table import OPS, Export, Value

__all__ = ["compute_lengths"]


def compute_lengths(
    ctx: Export, count: int, compute: Callable[..., Sequence[AnyValue]], *operands: AnyValue
) -> list[AnyValue]:
    """Return lengths that an expression of tensors gives.

    Args:
        ctx: The context.
        count: How many there are.
        compute: Returns them, as numbers of 64 bits, for tensors of ``tvm.te``.
        operands: What it takes: values, and lengths.
    """
    te, tir = ctx.framework.te, ctx.framework.tir

    def lengths(*given: AnyValue) -> AnyValue:
        found = [each.astype("int64") for each in ctx.wide(compute(*given))]

        def one(place: AnyValue) -> AnyValue:
            chosen = found[-1]
            for number in reversed(range(count - 1)):
                chosen = tir.Select(place == number, found[number], chosen)
            return chosen

        return te.compute((count,), one, name="lengths")

    return ctx.read_shape(ctx.emit_te(lengths, *operands)) if count else []


def _export(ctx: Export, shape: Value, *, op: str, dtype: AnyValue) -> Value:
    return ctx.emit(op, ctx.framework.relax.ShapeExpr(ctx.wide(ctx.read_shape(shape))), str(dtype))


OPS.exports("dyn.zeros")(partial(_export, op="zeros"))
OPS.exports("dyn.ones")(partial(_export, op="ones"))


@OPS.exports("dyn.full")
def export_full(ctx: Export, fill_value: Value, shape: Value, *, dtype: AnyValue) -> Value:
    return fill(ctx, fill_value, ctx.read_shape(shape), ctx.result_type().dtype)


@OPS.exports("dyn.broadcast_to")
def export_broadcast_to(ctx: Export, data: Value, shape: Value, *, dtype: AnyValue) -> Value:
    return spread(ctx, data, ctx.read_shape(shape))


@OPS.exports("dyn.reshape")
def export_reshape(ctx: Export, data: Value, newshape: Value, *, allowzero: bool) -> Value:
    """A 0 copies a length, -1 is what remains."""
    tir = ctx.framework.tir
    (count,) = ctx.extents(newshape)
    own = ctx.wide(ctx.extents(data))
    one = tir.IntImm("int64", 1)

    def lengths(codes: AnyValue, *old: AnyValue) -> list[AnyValue]:
        given = [codes[index].astype("int64") for index in range(count)]
        if not allowzero:
            given = [
                tir.Select(code == 0, old[index], code) if index < len(old) else code
                for index, code in enumerate(given)
            ]
        known = prod((tir.Select(code == -1, one, code) for code in given), start=one)
        rest = tir.floordiv(prod(old, start=one), tir.max(known, one))
        return [tir.Select(code == -1, rest, code) for code in given]

    shape = ctx.wide(compute_lengths(ctx, count, lengths, newshape, *own))
    return ctx.emit("reshape", data, ctx.framework.relax.ShapeExpr(shape))


@OPS.exports("dyn.tile")
def export_tile(ctx: Export, data: Value, reps: Value) -> Value:
    te, tir = ctx.framework.te, ctx.framework.tir
    (count,) = ctx.extents(reps)
    own = ctx.wide(ctx.extents(data))
    rank = max(count, len(own))
    one = tir.IntImm("int64", 1)

    def lengths(counts: AnyValue, *old: AnyValue) -> list[AnyValue]:
        times = [
            *[one] * (rank - count),
            *(counts[index].astype("int64") for index in range(count)),
        ]
        before = [*[one] * (rank - len(old)), *old]
        return [length * by for length, by in zip(before, times, strict=True)]

    shape = ctx.wide(compute_lengths(ctx, rank, lengths, reps, *own))

    def tile(x: AnyValue, shape: list[AnyValue]) -> AnyValue:
        def one(*indices: AnyValue) -> AnyValue:
            inner = indices[rank - len(x.shape) :]
            return x(*(tir.floormod(at, n) for at, n in zip(inner, x.shape, strict=True)))

        return te.compute(shape, one, name="tile")

    return ctx.emit_te(tile, data, shape)


@OPS.exports("dyn.expand_dims")
def export_expand_dims(ctx: Export, data: Value, axis: Value, *, num_newaxis: int) -> Value:
    tir = ctx.framework.tir
    own = ctx.wide(ctx.extents(data))
    one = tir.IntImm("int64", 1)

    def lengths(at: AnyValue, *old: AnyValue) -> list[AnyValue]:
        given = (at() if not at.shape else at[0]).astype("int64")
        first = tir.Select(given < 0, given + (len(old) + 1), given)
        found = []
        for index in range(len(old) + num_newaxis):
            before = old[index] if index < len(old) else one
            behind = old[index - num_newaxis] if index >= num_newaxis else one
            inside = index < first + num_newaxis
            found.append(tir.Select(index < first, before, tir.Select(inside, one, behind)))
        return found

    shape = compute_lengths(ctx, len(own) + num_newaxis, lengths, axis, *own)
    return ctx.emit("reshape", data, ctx.framework.relax.ShapeExpr(ctx.wide(shape)))


@OPS.exports("dyn.squeeze")
def export_squeeze(ctx: Export, data: Value, axes: Value) -> Value:
    """The number of the axes that stay, in front of an axis, is its new place."""
    tir = ctx.framework.tir
    own = ctx.wide(ctx.extents(data))
    (count,) = ctx.extents(axes)

    def lengths(gone: AnyValue, *old: AnyValue) -> list[AnyValue]:
        named = [gone[each].astype("int64") for each in range(count)]
        named = [tir.Select(each < 0, each + len(old), each) for each in named]
        found: list[AnyValue] = [tir.IntImm("int64", 1)] * (len(old) - count)
        before: AnyValue = tir.IntImm("int64", 0)
        for index, length in enumerate(old):
            kept: AnyValue = tir.const(True)
            for each in named:
                kept = tir.And(kept, each != index)
            found = [
                tir.Select(tir.And(kept, before == number), length, other)
                for number, other in enumerate(found)
            ]
            before = before + kept.astype("int64")
        return found

    shape = compute_lengths(ctx, len(own) - count, lengths, axes, *own)
    return ctx.emit("reshape", data, ctx.framework.relax.ShapeExpr(ctx.wide(shape)))


@OPS.exports("dyn.nn.pad")
def export_pad(
    ctx: Export, data: Value, pad_width: Value, pad_val: Value, *, pad_mode: str
) -> Value:
    rank = ctx.type(data).rank

    def widths(given: AnyValue) -> list[AnyValue]:
        return [given[index // 2, index % 2] for index in range(2 * rank)]

    flat = compute_lengths(ctx, 2 * rank, widths, pad_width)
    pairs = [flat[index : index + 2] for index in range(0, 2 * rank, 2)]
    return pad_with(ctx, data, pad_val, pairs, pad_mode)

"""Joining and splitting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

import serde.relay as relay
from serde.core.allocation import iterations
from serde.errors import Unsupported
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TupleType
from serde.walk.pairs import writes

OPS.pairs(writes("Concat", "concatenate", "axis", since=(4, 11, 13), target=1))


@OPS.imports("Concat", since=1)
def import_concat_v1(ctx: Import, first: Expr, *others: Expr, axis: int = 1) -> Expr:
    return import_concat(ctx, first, *others, axis=axis)


@OPS.imports("Concat", since=(4, 11, 13))
def import_concat(ctx: Import, first: Expr, *others: Expr, axis: int) -> Expr:
    return relay.concatenate((first, *others), axis) if others else first


@OPS.exports("stack")
def export_stack(ctx: Export, data: tuple[Value, ...], *, axis: int) -> Value:
    position = axis % ctx.result_type().rank
    return ctx.emit("Concat", *[unsqueeze(ctx, each, [position]) for each in data], axis=position)


def emit_split(ctx: Export, x: Value, lengths: Sequence[int], axis: int) -> tuple[Value, ...]:
    """Cut an axis into parts of these lengths, which are an attribute before 13."""
    count = len(lengths)
    if ctx.version >= 13:
        return ctx.emit_tuple("Split", x, ctx.ints(lengths), outputs=count, axis=axis)
    return ctx.emit_tuple("Split", x, outputs=count, axis=axis, split=list(lengths))


@OPS.exports("split")
def export_split(
    ctx: Export, x: Value, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> tuple[Value, ...]:
    """The lengths are an attribute before 13."""
    if not isinstance(ctx.result, TupleType):
        raise Unsupported("the number of parts is not known")
    position = axis % ctx.type(x).rank
    parts = len(ctx.result.fields)
    lengths = [part.shape[position] for part in ctx.result.fields]  # type: ignore[union-attr]
    fixed = [length for length in lengths if isinstance(length, int)]
    if len(fixed) == parts:
        return emit_split(ctx, x, fixed, position)
    if isinstance(indices_or_sections, int):
        count = parts if ctx.version >= 18 else None
        return ctx.emit_tuple("Split", x, outputs=parts, axis=position, num_outputs=count)
    if ctx.version >= 13:
        return ctx.emit_tuple("Split", x, ctx.shape(lengths), outputs=parts, axis=position)
    raise Unsupported("a split of a dynamic axis at given places needs version 13")


@OPS.imports("Split", since=1)
def import_split_v1(
    ctx: Import, x: Expr, lengths: Expr | None = None, *, axis: int = 0, split: tuple[int, ...] = ()
) -> list[Expr]:
    return _split_parts(ctx, x, axis, ctx.ints(lengths) if lengths is not None else split)


@OPS.imports("Split", since=(2, 11))
def import_split_v2(
    ctx: Import, x: Expr, *, axis: int = 0, split: tuple[int, ...] = ()
) -> list[Expr]:
    return _split_parts(ctx, x, axis, split)


@OPS.imports("Split", since=13)
def import_split_v13(
    ctx: Import, x: Expr, split: Expr | None = None, *, axis: int = 0
) -> list[Expr]:
    return import_split(ctx, x, split, axis=axis)


@OPS.imports("Split", since=18)
def import_split(
    ctx: Import,
    x: Expr,
    split: Expr | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
) -> list[Expr]:
    """Of a length that has no equal parts, the last is the shorter one."""
    if split is not None:
        if not ctx.is_constant(split):
            return _split_computed_lengths(ctx, x, axis, split)
        return _split_parts(ctx, x, axis, ctx.ints(split))
    length, count = ctx.dim_at(x, axis), ctx.declared if num_outputs is None else num_outputs
    if count < 1:
        raise Unsupported(f"a split into {count} parts")
    iterations(count, "the parts of a split")
    if not isinstance(length, int) or length % count == 0:
        return _split_parts(ctx, x, axis, (), count)
    each = -(-length // count)
    return _split_parts(ctx, x, axis, [each] * (count - 1) + [length - each * (count - 1)])


def _split_parts(
    ctx: Import, x: Expr, axis: int, lengths: Sequence[int], count: int | None = None
) -> list[Expr]:
    """Return consecutive parts of `x`, of these lengths or all alike."""
    if not lengths:
        return list(relay.split(x, count or ctx.declared, axis))
    if len(lengths) == 1:
        return [x]
    return list(relay.split(x, list(accumulate(lengths))[:-1], axis))


def _split_computed_lengths(ctx: Import, x: Expr, axis: int, lengths: Expr) -> list[Expr]:
    """Lengths that are computed cut one part after the other."""
    shape = ctx.type(lengths).shape
    if len(shape) != 1 or not isinstance(shape[0], int):
        raise Unsupported(f"lengths of parts in {ctx.type(lengths)!r}")
    position = ctx.axis(x, axis)
    start: Expr = relay.Constant(np.zeros(1, ctx.type(lengths).dtype))
    found = []
    for index in iterations(shape[0], "the parts of a split"):
        stop = relay.add(start, relay.strided_slice(lengths, [index], [index + 1]))
        found.append(relay.strided_slice(x, start, stop, axes=[position]))
        start = stop
    return found

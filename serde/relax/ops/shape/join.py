"""Tensors put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any as AnyValue

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, Tuple


@OPS.exports("concatenate")
def export_concatenate(ctx: Export, data: tuple[Value, ...], *, axis: int) -> Value:
    if len(data) == 1:
        return data[0]
    return ctx.emit("concat", _align(ctx, data, axis % ctx.type(data[0]).rank), axis=axis)


@OPS.imports("relax.concat")
def import_concat(ctx: Import, tensors: Expr, *, axis: int | None) -> Expr:
    fields = ctx.fields(tensors)
    if axis is None:
        return relay.concatenate([relay.reshape(each, (-1,)) for each in fields], axis=0)
    return relay.concatenate(fields, axis=axis)


@OPS.exports("stack")
def export_stack(ctx: Export, data: tuple[Value, ...], *, axis: int) -> Value:
    return ctx.emit("stack", _align(ctx, data), axis=axis)


@OPS.imports("relax.stack")
def import_stack(ctx: Import, tensors: Expr, *, axis: int | None) -> Expr:
    return relay.stack(Tuple(ctx.fields(tensors)), axis=axis or 0)


def _align(ctx: Export, data: Sequence[Value], axis: int | None = None) -> Sequence[Value]:
    """Return tensors that TVM knows to have the same lengths, but along `axis`."""
    shapes = [ctx.extents(each) for each in data]
    wanted = []
    for lengths in zip(*shapes, strict=True):
        fixed = [each for each in lengths if isinstance(each, int)]
        wanted.append(fixed[0] if fixed else lengths[0])
    if all(isinstance(each, int) for shape in shapes for each in shape):
        return data
    aligned = []
    for each, own in zip(data, shapes, strict=True):
        kept = [own[index] if index == axis else dim for index, dim in enumerate(wanted)]
        aligned.append(ctx.with_lengths(each, kept))
    return aligned


@OPS.exports("split")
def export_split(
    ctx: Export, data: Value, *, indices_or_sections: int | tuple[int, ...], axis: int
) -> tuple[Value, ...]:
    shape = ctx.named_shape(data)
    along = axis % len(shape)
    length = shape[along]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        edges: list[Dim] = [length // count * index for index in range(count + 1)]
    else:
        edges = [0, *indices_or_sections, length]
    count = len(edges) - 1
    if count == 1:
        return (data,)
    known = [edge for edge in edges if isinstance(edge, int)]
    if len(known) == len(edges) and all(first < last for first, last in pairwise(known)):
        given = indices_or_sections if isinstance(indices_or_sections, int) else known[1:-1]
        return ctx.emit_tuple("split", data, given, axis=along, outputs=count)
    return tuple(_part(ctx, data, along, *ends) for ends in pairwise(edges))


def _part(ctx: Export, data: Value, axis: int, first: Dim, last: Dim) -> Value:
    """Write the entries of an axis from `first` on, before `last`."""
    te = ctx.framework.te
    start, length = ctx.dim(first), ctx.dim(last - first)

    def part(x: AnyValue, begin: AnyValue) -> AnyValue:
        shape = [*x.shape[:axis], *ctx.wide([length]), *x.shape[axis + 1 :]]

        def one(*indices: AnyValue) -> AnyValue:
            return x(*indices[:axis], indices[axis] + begin, *indices[axis + 1 :])

        return te.compute(shape, one, name="split")

    return ctx.emit_te(part, data, start)


@OPS.imports("relax.split")
def import_split(ctx: Import, x: Expr, *, indices_or_sections: AnyValue, axis: int) -> list[Expr]:
    """Of sections that do not divide the length the last one is shorter."""
    if isinstance(indices_or_sections, tuple):
        return _split_at(x, [ctx.number(each) for each in indices_or_sections], axis)
    length, count = ctx.type(x).shape[axis], indices_or_sections
    if count < 1:
        raise Unsupported(f"a split into {count} sections")
    allocation.iterations(count, "the sections of a split")
    if not isinstance(length, int) or length % count == 0:
        return list(relay.split(x, count, axis=axis))
    step = -(-length // count)
    if step * (count - 1) > length:
        raise Unsupported(f"{length} elements in {count} sections")
    return _split_at(x, [step * index for index in range(1, count)], axis)


def _split_at(x: Expr, indices: Sequence[int], axis: int) -> list[Expr]:
    return list(relay.split(x, tuple(indices), axis=axis))

"""Tensors joined and cut along an axis."""

from __future__ import annotations

from collections.abc import Sequence

import serde.relay as relay
from serde.coreml.mlprogram.operators import NUMBERS_OR_BOOL, cast_to, compute_dtype
from serde.coreml.mlprogram.ops.shape.reshape import expand_dims
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType, normalize_axis


@OPS.imports("concat")
def import_concat(ctx: Import, *values: Expr, axis: int, interleave: bool = False) -> Expr:
    """Interleaved, the first entries of all come first; scalars become a vector."""
    if not ctx.type(ctx.first(values)).rank:
        return relay.stack(values, axis=0)
    if not interleave:
        return relay.concatenate(values, axis=axis)
    shape = ctx.type(values[0]).shape
    along = normalize_axis(axis, len(shape))
    whole = [*shape[:along], shape[along] * len(values), *shape[along + 1 :]]
    return relay.reshape(relay.stack(values, axis=along + 1), whole)


@OPS.exports("concatenate")
def export_concatenate(ctx: Export, data: tuple[Value, ...], *, axis: int) -> Value:
    if len(data) == 1:
        return data[0]
    return ctx.emit("concat", values=data, axis=axis % ctx.type(data[0]).rank)


@OPS.imports("stack")
def import_stack(ctx: Import, *values: Expr, axis: int) -> Expr:
    return relay.stack(values, axis=axis)


@OPS.exports("stack")
def export_stack(ctx: Export, data: tuple[Value, ...], *, axis: int) -> Value:
    place = axis % ctx.result_type().rank
    if len(data) == 1:
        return expand_dims(ctx, data[0], [place])
    return ctx.emit("stack", values=data, axis=place)


@OPS.imports("split")
def import_split(
    ctx: Import,
    x: Expr,
    *,
    axis: int,
    num_splits: int | None = None,
    split_sizes: tuple[int, ...] | int | None = None,
) -> list[Expr]:
    """Lengths become the cuts between them."""
    if split_sizes is None:
        if num_splits is None:
            raise Unsupported("a split without sizes")
        return list(relay.split(x, num_splits, axis=axis))
    sizes = split_sizes if isinstance(split_sizes, tuple) else (split_sizes,)
    cuts = [sum(sizes[: index + 1]) for index in range(len(sizes) - 1)]
    return list(relay.split(x, cuts, axis=axis)) if cuts else [x]


@OPS.exports("split")
def export_split(
    ctx: Export, data: Value, *, indices_or_sections: int | Sequence[int], axis: int
) -> tuple[Value, ...]:
    """MIL wants the lengths; equal parts of a length that is not fixed are counted."""
    dtype = ctx.type(data).dtype
    along = normalize_axis(axis, ctx.type(data).rank)
    types = ctx.result_types()
    if len(types) == 1:
        return (data,)
    lengths = [type_.shape[along] for type_ in types]
    sizes = [length for length in lengths if isinstance(length, int)]
    work = compute_dtype(ctx, dtype, NUMBERS_OR_BOOL)
    parts = [TensorType(type_.shape, work) for type_ in types]
    if 0 in sizes:
        raise Unsupported("a part without elements")
    if len(sizes) < len(lengths):
        if not isinstance(indices_or_sections, int):
            raise Unsupported("parts of several lengths, one of which is not fixed")
        sizes = []
    found = ctx.emit_tuple(
        "split",
        parts,
        x=cast_to(ctx, data, work),
        num_splits=len(parts),
        split_sizes=sizes or None,
        axis=along,
    )
    return tuple(cast_to(ctx, part, dtype) for part in found)

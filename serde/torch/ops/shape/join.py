"""Tensors put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Final

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, normalize_axis
from serde.torch.ops.index.gather import at_least_vector
from serde.torch.ops.index.slicing import cut
from serde.torch.ops.shape.lengths import add_lengths
from serde.torch.ops.shape.reshape import at_least
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value

_MOST_PARTS: Final = 50_000
"""Most parts of a tensor: as many as a tuple of Relay's has."""

__all__ = ["concatenate", "split_by_lengths"]


def concatenate(ctx: Import, tensors: Sequence[Expr], axis: int) -> Expr:
    """Return tensors of one rank one after the other, in the dtype to which they promote."""
    same = ctx.promote(*tensors)
    return same[0] if len(same) == 1 else relay.concatenate(same, axis=axis)


@OPS.imports("aten::cat", "aten::concat", "aten::concatenate", "prims::cat")
def import_cat(ctx: Import, *tensors: Expr, dim: int = 0) -> Expr:
    """A vector of no elements joins tensors of every rank, and counts for the dtype alone."""
    ctx.first(tensors)
    same = ctx.promote(*tensors)
    rank = max(ctx.type(x).rank for x in same)
    kept = [x for x in same if ctx.type(x).shape != (0,)] if rank > 1 else same
    if not rank:
        raise Unsupported("scalars are not concatenated")
    return concatenate(ctx, kept, ctx.axis(kept[0], dim))


@OPS.exports("concatenate")
def export_concatenate(ctx: Export, data: tuple[Value, ...], *, axis: int) -> Value:
    return ctx.call("torch.cat", list(data), dim=axis)


@OPS.imports("aten::stack")
def import_stack(ctx: Import, *tensors: Expr, dim: int = 0) -> Expr:
    rank = ctx.type(ctx.first(tensors)).rank + 1
    return relay.stack(ctx.promote(*tensors), axis=normalize_axis(dim, rank))


@OPS.exports("stack")
def export_stack(ctx: Export, data: tuple[Value, ...], *, axis: int) -> Value:
    return ctx.call("torch.stack", list(data), dim=axis)


@OPS.imports("aten::hstack")
def import_hstack(ctx: Import, *tensors: Expr) -> Expr:
    whole = [at_least(ctx, each, rank=1) for each in tensors]
    return import_cat(ctx, *whole, dim=int(ctx.type(ctx.first(whole)).rank > 1))


@OPS.imports("aten::vstack", "aten::row_stack")
def import_vstack(ctx: Import, *tensors: Expr) -> Expr:
    return import_cat(ctx, *(at_least(ctx, each, rank=2) for each in tensors))


@OPS.imports("aten::dstack")
def import_dstack(ctx: Import, *tensors: Expr) -> Expr:
    return import_cat(ctx, *(at_least(ctx, each, rank=3) for each in tensors), dim=2)


@OPS.imports("aten::column_stack")
def import_column_stack(ctx: Import, *tensors: Expr) -> Expr:
    whole = [
        each if ctx.type(each).rank > 1 else relay.reshape(each, newshape=(-1, 1))
        for each in tensors
    ]
    return import_cat(ctx, *whole, dim=1)


def split_by_lengths(ctx: Import, x: Expr, lengths: Sequence[SymInt], axis: int) -> list[Expr]:
    """Return the parts of an axis, of which `lengths` are all."""
    bounds: list[SymInt] = [0]
    for each in lengths:
        bounds.append(add_lengths(ctx, bounds[-1], each))
    fixed = [ctx.dim(each) for each in bounds[1:-1]]
    cuts = [each for each in fixed if isinstance(each, int)]
    if len(lengths) == 1:
        return [x]
    if len(cuts) == len(fixed):
        equal = len({ctx.dim(each) for each in lengths}) == 1
        return list(relay.split(x, len(lengths) if equal and cuts[0] else cuts, axis=axis))
    return [cut(ctx, x, axis, start, end) for start, end in pairwise(bounds)]


@OPS.imports(
    "aten::split_with_sizes", "aten::unsafe_split_with_sizes", "aten::split_with_sizes_copy"
)
def import_split_with_sizes(
    ctx: Import, self: Expr, *, split_sizes: tuple[SymInt, ...], dim: int = 0
) -> list[Expr]:
    return split_by_lengths(ctx, self, split_sizes, ctx.axis(self, dim))


@OPS.imports("aten::split", "aten::unsafe_split", "aten::split_copy")
def import_split(
    ctx: Import,
    self: Expr,
    *,
    split_size: SymInt | tuple[SymInt, ...] = 0,
    split_sizes: tuple[SymInt, ...] | None = None,
    dim: int = 0,
) -> list[Expr]:
    """The last part may be shorter; of no elements there is one."""
    axis = ctx.axis(self, dim)
    if split_sizes is not None:
        return split_by_lengths(ctx, self, split_sizes, axis)
    if isinstance(split_size, tuple):
        return split_by_lengths(ctx, self, split_size, axis)
    return _split_every(ctx, self, axis, ctx.fixed(split_size))


@OPS.exports("split")
def export_split(
    ctx: Export, data: Value, *, indices_or_sections: int | tuple[int, ...], axis: int
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


def _check_count(count: int) -> None:
    """Refuse parts of which there are too many, or fewer than one."""
    if not 0 <= count <= _MOST_PARTS:
        raise Unsupported(f"{count} parts")


def _split_every(ctx: Import, x: Expr, axis: int, step: int) -> list[Expr]:
    ctx.require_rank(x, 1)
    length = ctx.type(x).shape[axis]
    if not isinstance(length, int):
        return _split_open(ctx, x, axis, step)
    if not step and not length:
        return [x]
    if not step:
        raise Unsupported("parts of no elements")
    _check_count(-(-length // step))
    lengths = [min(step, length - at) for at in range(0, length, step)]
    return split_by_lengths(ctx, x, lengths or [0], axis)


def _split_open(ctx: Import, x: Expr, axis: int, step: int) -> list[Expr]:
    """Return parts of an axis of unknown length, as many as the node gives."""
    if ctx.outputs < 2:
        raise Unsupported(f"a split of an axis of {ctx.type(x).shape[axis]} in parts of {step}")
    bounds = [step * place for place in range(ctx.outputs)]
    ends: list[int | None] = [*bounds[1:], None]
    return [cut(ctx, x, axis, start, end) for start, end in zip(bounds, ends, strict=True)]


@OPS.imports("aten::chunk", "aten::unsafe_chunk")
def import_chunk(ctx: Import, self: Expr, *, chunks: int, dim: int = 0) -> list[Expr]:
    """Parts of the length rounded up, as many as that makes."""
    ctx.require_rank(self, 1)
    axis = ctx.axis(self, dim)
    length = ctx.type(self).shape[axis]
    if chunks < 1:
        raise Unsupported(f"{chunks} chunks")
    if not isinstance(length, int):
        return _chunk_open(ctx, self, axis, chunks)
    if not length:
        _check_count(chunks)
        return [self] * chunks
    return _split_every(ctx, self, axis, -(-length // chunks))


def _chunk_open(ctx: Import, x: Expr, axis: int, chunks: int) -> list[Expr]:
    """Return chunks of an axis whose length is a multiple of their number, as its symbol says."""
    _check_count(chunks)
    length = ctx.type(x).shape[axis]
    part = length // chunks
    if part * chunks != length:
        raise Unsupported(f"{chunks} chunks of an axis of length {length}")
    return list(relay.split(x, chunks, axis=axis))


@OPS.imports("aten::tensor_split")
def import_tensor_split(
    ctx: Import,
    self: Expr,
    tensor_indices_or_sections: Expr | None = None,
    *,
    sections: SymInt | None = None,
    indices: tuple[SymInt, ...] | None = None,
    dim: int = 0,
) -> list[Expr]:
    ctx.require_rank(self, 1)
    axis = ctx.axis(self, dim)
    if tensor_indices_or_sections is not None:
        numbers = _numbers(ctx, tensor_indices_or_sections)
        if ctx.type(tensor_indices_or_sections).rank:
            return _split_at(ctx, self, axis, numbers)
        (sections,) = numbers
    if sections is not None:
        return _split_evenly(ctx, self, axis, ctx.fixed(sections))
    return _split_at(ctx, self, axis, indices or ())


def _numbers(ctx: Import, x: Expr) -> list[SymInt]:
    """Return the elements of a vector, those that are computed as scalars."""
    if ctx.is_constant(x):
        return list(ctx.ints(x))
    wide = ctx.cast(at_least_vector(ctx, x), "int64")
    ctx.require_rank(wide, 1, 1)
    (count,) = ctx.static_shape(wide)
    return [
        ctx.fold(relay.take(wide, relay.const(place, "int64"), axis=0, mode="fast"))
        for place in allocation.iterations(count, f"{count} lengths that are computed")
    ]


def _split_evenly(ctx: Import, x: Expr, axis: int, count: int) -> list[Expr]:
    """Return `count` parts, the first of which are one longer where there is a rest."""
    ctx.require_rank(x, axis + 1)
    length = ctx.type(x).shape[axis]
    if count < 1:
        raise Unsupported(f"{count} parts")
    if not isinstance(length, int):
        return _chunk_open(ctx, x, axis, count)
    _check_count(count)
    small, rest = divmod(length, count)
    return split_by_lengths(ctx, x, [small + (at < rest) for at in range(count)], axis)


def _split_at(ctx: Import, x: Expr, axis: int, places: Sequence[SymInt]) -> list[Expr]:
    """Return the parts between places, each a slice as Python has them."""
    starts: list[SymInt] = [0, *places]
    ends: list[SymInt | None] = [*places, None]
    return [cut(ctx, x, axis, start, end) for start, end in zip(starts, ends, strict=True)]


def _import_parts(
    ctx: Import,
    self: Expr,
    *,
    axis: int | None,
    sections: int | None = None,
    indices: tuple[SymInt, ...] | None = None,
) -> list[Expr]:
    """Equal parts, or those between places; without an axis, along the second if there is one."""
    along = int(ctx.type(self).rank > 1) if axis is None else axis
    if sections is None:
        return _split_at(ctx, self, along, indices or ())
    return _split_evenly(ctx, self, along, sections)


for _name, _axis in {"hsplit": None, "vsplit": 0, "dsplit": 2}.items():
    OPS.imports(f"aten::{_name}")(partial(_import_parts, axis=_axis))


@OPS.imports("aten::unbind", "aten::unbind_copy")
def import_unbind(ctx: Import, self: Expr, *, dim: int = 0) -> list[Expr]:
    axis = ctx.axis(self, dim)
    (count,) = ctx.static_lengths(self, [axis])
    if not count:
        return []
    _check_count(count)
    parts = relay.split(self, count, axis=axis) if count > 1 else [self]
    return [relay.squeeze(each, axis=(axis,)) for each in parts]


@OPS.imports("aten::block_diag")
def import_block_diag(ctx: Import, *tensors: Expr) -> Expr:
    """Zeros stand beside each matrix."""
    blocks = [at_least(ctx, each, rank=2) for each in ctx.promote(*tensors)]
    widths = [ctx.static_lengths(each, [1])[0] for each in blocks]
    rows, before = [], 0
    for block, width in zip(blocks, widths, strict=True):
        sides = (before, sum(widths) - before - width)
        zero = relay.const(0, ctx.dtype(block))
        rows.append(relay.nn.pad(block, ((0, 0), sides), zero) if any(sides) else block)
        before += width
    return concatenate(ctx, rows, 0)

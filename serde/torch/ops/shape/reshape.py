"""Reshaping, and axes of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.dims import Any
from serde.relay.ir.expr import Expr
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.shape.lengths import multiply_lengths, reshape, sizes_of
from serde.torch.ops.table import OPS

__all__ = ["at_least", "insert_axes", "join_axes"]


@OPS.imports(
    "aten::view", "aten::view_copy", "aten::_unsafe_view", "aten::_reshape_alias",
    ignored=("stride",),
)  # fmt: skip
@OPS.imports("aten::reshape", renamed={"shape": "size"})
def import_view(ctx: ImportContext, self: Expr, *, size: tuple[SymInt, ...]) -> Expr:
    return reshape(ctx, self, size)


@OPS.imports("prims::reshape", "prims::view_of")
def import_prims_reshape(
    ctx: ImportContext, a: Expr, *, shape: tuple[SymInt, ...] | None = None
) -> Expr:
    return a if shape is None else reshape(ctx, a, shape)


@OPS.imports("aten::view_as", "aten::reshape_as")
def import_view_as(ctx: ImportContext, self: Expr, other: Expr) -> Expr:
    return reshape(ctx, self, sizes_of(ctx, other))


def join_axes(ctx: ImportContext, x: Expr, first: int, last: int) -> Expr:
    """Return `x` with the axes from `first` to `last` as one."""
    rank = ctx.type(x).rank
    if first == last:
        return x
    if (first, last) == (1, rank - 1):
        return relay.nn.batch_flatten(x)
    if last == rank - 1 and any(isinstance(dim, Any) for dim in ctx.type(x).shape):
        return relay.reshape(x, newshape=(*[0] * first, -1))
    sizes = sizes_of(ctx, x)
    whole = multiply_lengths(ctx, *sizes[first : last + 1])
    return reshape(ctx, x, [*sizes[:first], whole, *sizes[last + 1 :]])


@OPS.imports("aten::flatten")
def import_flatten(
    ctx: ImportContext, self: Expr, *, start_dim: int = 0, end_dim: int = -1
) -> Expr:
    if not ctx.type(self).rank:
        return relay.reshape(self, newshape=(1,))
    first, last = ctx.axis(self, start_dim), ctx.axis(self, end_dim)
    if first > last:
        raise Unsupported(f"axes from {start_dim} to {end_dim} are none")
    return join_axes(ctx, self, first, last)


@OPS.imports("aten::ravel")
def import_ravel(ctx: ImportContext, self: Expr) -> Expr:
    return reshape(ctx, self, [-1])


@OPS.imports("aten::unflatten.int")
def import_unflatten(
    ctx: ImportContext, self: Expr, *, dim: int, sizes: tuple[SymInt, ...]
) -> Expr:
    axis, own = ctx.axis(self, dim), sizes_of(ctx, self)
    parts = list(sizes)
    if -1 in [each for each in parts if not isinstance(each, Expr)] and own[axis] == 0:
        others = [each for each in parts if isinstance(each, Expr) or each != -1]
        parts[parts.index(-1)] = 0 if multiply_lengths(ctx, *others) else -1
    return reshape(ctx, self, [*own[:axis], *parts, *own[axis + 1 :]])


@OPS.imports("aten::squeeze", "aten::squeeze_copy")
def import_squeeze(
    ctx: ImportContext, self: Expr, *, dim: int | tuple[int, ...] | None = None
) -> Expr:
    """Axes that are longer than 1 stay."""
    shape = ctx.type(self).shape
    named = () if dim is None else (dim,) if isinstance(dim, int) else dim
    axes = range(len(shape)) if dim is None else [ctx.axis(self, each) for each in named]
    gone = _require_decided(ctx, self, axes) if shape else ()
    return relay.squeeze(self, axis=gone) if gone else self


@OPS.imports("prims::squeeze")
def import_prims_squeeze(ctx: ImportContext, a: Expr, *, dimensions: tuple[int, ...]) -> Expr:
    return import_squeeze(ctx, a, dim=dimensions)


def _require_decided(ctx: ImportContext, x: Expr, axes: Sequence[int]) -> tuple[int, ...]:
    """Return those axes that have length 1.

    A symbol of which the program knows the range is a length that it found not to be 1.

    Raises:
        Unsupported: One may have it or not.
    """
    shape = ctx.type(x).shape
    for axis in axes:
        if not ctx.at_least(shape[axis], 0):
            raise Unsupported(
                f"axis {axis} may have length 1, and goes then", hint="fix it with input_shapes"
            )
    return tuple(axis for axis in sorted(set(axes)) if shape[axis] == 1)


@OPS.imports("aten::unsqueeze", "aten::unsqueeze_copy")
def import_unsqueeze(ctx: ImportContext, self: Expr, *, dim: int) -> Expr:
    rank = ctx.type(self).rank + 1
    if not -rank <= dim < rank:
        raise Unsupported(f"no axis is inserted at {dim} in a tensor of rank {rank - 1}")
    return relay.expand_dims(self, axis=dim % rank)


def insert_axes(x: Expr, before: int, behind: int) -> Expr:
    """Return `x` with axes of length 1 in front of all others, and behind them."""
    if before:
        x = relay.expand_dims(x, axis=0, num_newaxis=before)
    return relay.expand_dims(x, axis=-1, num_newaxis=behind) if behind else x


def at_least(ctx: ImportContext, self: Expr, *, rank: int) -> Expr:
    """Return a tensor with axes of length 1 up to a rank; the third stands behind the others."""
    have = ctx.type(self).rank
    behind = int(rank == 3 and have < 3)
    before = {(2, 0): 1, (2, 1): 1, (3, 0): 1, (3, 1): 1}.get((rank, have), 0)
    if rank > 1 and have == 0:
        return relay.reshape(self, newshape=(1,) * rank)
    return insert_axes(self, before, behind) if have or rank != 1 else insert_axes(self, 1, 0)


def _import_at_least(ctx: ImportContext, *tensors: Expr, rank: int) -> list[Expr]:
    return [at_least(ctx, each, rank=rank) for each in tensors]


for _rank in (1, 2, 3):
    OPS.imports(f"aten::atleast_{_rank}d")(partial(at_least, rank=_rank))
    OPS.imports(f"aten::atleast_{_rank}d.Sequence")(partial(_import_at_least, rank=_rank))


@OPS.imports("aten::_reshape_from_tensor")
def import_reshape_from_tensor(ctx: ImportContext, self: Expr, shape: Expr) -> Expr:
    return relay.reshape(self, shape)

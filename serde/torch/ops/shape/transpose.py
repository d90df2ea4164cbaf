"""Axes in another order."""

from __future__ import annotations

from collections.abc import Sequence

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.export_context import ExportContext, Value
from serde.torch.import_context import ImportContext
from serde.torch.ops.table import OPS
from serde.torch.ops.written import permute

__all__ = ["move_axes", "swap_axes", "transpose"]


def transpose(ctx: ImportContext, x: Expr, order: Sequence[int]) -> Expr:
    """Return `x` with its axes in another order, itself where it is its own."""
    same = list(order) == list(range(ctx.type(x).rank))
    return x if same else relay.transpose(x, axes=tuple(order))


def swap_axes(ctx: ImportContext, x: Expr, one: int, other: int) -> Expr:
    """Return `x` with two axes exchanged."""
    order = list(range(ctx.type(x).rank))
    if not order:
        return x
    order[one], order[other] = order[other], order[one]
    return transpose(ctx, x, order)


def move_axes(ctx: ImportContext, x: Expr, source: Sequence[int], target: Sequence[int]) -> Expr:
    """Return `x` with some axes at other places, the rest in order between them."""
    rank = ctx.type(x).rank
    if not rank:
        return x
    if len(source) != len(target):
        raise Unsupported(f"{len(source)} axes moved to {len(target)} places")
    placed = dict(zip(target, source, strict=True))
    if len(placed) < len(source) or len(set(source)) < len(source):
        raise Unsupported("an axis is named twice")
    rest = (axis for axis in range(rank) if axis not in source)
    return transpose(ctx, x, [placed[at] if at in placed else next(rest) for at in range(rank)])


@OPS.imports("aten::permute", "aten::permute_copy")
@OPS.imports("prims::transpose", renamed={"a": "self", "permutation": "dims"})
def import_permute(ctx: ImportContext, self: Expr, *, dims: tuple[int, ...]) -> Expr:
    return transpose(ctx, self, [ctx.axis(self, each) for each in dims])


@OPS.imports("aten::transpose.int", "aten::transpose_copy.int", "aten::swapdims", "aten::transpose")
@OPS.imports("aten::swapaxes", renamed={"axis0": "dim0", "axis1": "dim1"})
def import_transpose(ctx: ImportContext, self: Expr, *, dim0: int, dim1: int) -> Expr:
    return swap_axes(ctx, self, ctx.axis(self, dim0), ctx.axis(self, dim1))


@OPS.imports("aten::t", "aten::t_copy")
def import_t(ctx: ImportContext, self: Expr) -> Expr:
    rank = ctx.type(self).rank
    if rank > 2:
        raise Unsupported(f"a tensor of rank {rank} is no matrix")
    return transpose(ctx, self, range(rank)[::-1])


@OPS.imports("aten::numpy_T", "aten::numpy_T.a")
def import_numpy_t(ctx: ImportContext, self: Expr) -> Expr:
    return transpose(ctx, self, range(ctx.type(self).rank)[::-1])


@OPS.imports(
    "aten::mT", "aten::mT.a", "aten::mH", "aten::mH.a", "aten::adjoint",
    "aten::matrix_H", "aten::matrix_H.a",
)  # fmt: skip
def import_matrix_transpose(ctx: ImportContext, self: Expr) -> Expr:
    """Of real numbers, the conjugate transpose is the transpose."""
    rank = ctx.type(self).rank
    return swap_axes(ctx, self, rank - 2, rank - 1) if rank > 1 else self


@OPS.exports("transpose")
def export_transpose(ctx: ExportContext, data: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(data).rank
    order = [axis % rank for axis in axes] if axes else list(reversed(range(rank)))
    return permute(ctx, data, order)


@OPS.imports("aten::movedim", "aten::moveaxis")
def import_movedim(
    ctx: ImportContext,
    self: Expr,
    *,
    source: int | tuple[int, ...],
    destination: int | tuple[int, ...],
) -> Expr:
    lists = [(each,) if isinstance(each, int) else each for each in (source, destination)]
    given, wanted = ([ctx.axis(self, axis) for axis in each] for each in lists)
    return move_axes(ctx, self, given, wanted)

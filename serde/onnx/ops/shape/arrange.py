"""The order of axes and of elements along them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.context import ImportContext as ImportCtx
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.dims import Any, Dim
from serde.relay.expr import Expr


def arranged(ctx: Ctx, x: Value, layout: str, wanted: str) -> Value:
    """Return `x`, whose axes are `layout`, with its axes in the order `wanted`.

    Raises:
        Unsupported: The layout does not have these axes.
    """
    if layout == wanted:
        return x
    if sorted(layout) != sorted(wanted):
        raise Unsupported(f"layout {layout!r} has no counterpart", hint=f"use {wanted}")
    return ctx.emit("Transpose", x, perm=[layout.index(letter) for letter in wanted])


@OPS.exports("transpose")
def export_transpose(ctx: Ctx, x: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(x).rank
    order = range(rank - 1, -1, -1) if axes is None else (axis % rank for axis in axes)
    return ctx.emit("Transpose", x, perm=list(order))


@OPS.exports("reverse")
def export_reverse(ctx: Ctx, x: Value, *, axis: int | None) -> Value:
    place = ctx.ints([0 if axis is None else axis])
    lowest = ctx.ints([np.iinfo(np.int64).min])
    return ctx.emit("Slice", x, ctx.ints([-1]), lowest, place, ctx.ints([-1]))


@OPS.exports("nn.depth_to_space")
def export_depth_to_space(ctx: Ctx, x: Value, *, block_size: int, layout: str, mode: str) -> Value:
    moved = ctx.emit(
        "DepthToSpace", arranged(ctx, x, layout, "NCHW"), blocksize=block_size, mode=mode
    )
    return arranged(ctx, moved, "NCHW", layout)


@OPS.exports("nn.space_to_depth")
def export_space_to_depth(ctx: Ctx, x: Value, *, block_size: int, layout: str, mode: str) -> Value:
    moved = ctx.emit("SpaceToDepth", arranged(ctx, x, layout, "NCHW"), blocksize=block_size)
    return arranged(ctx, moved, "NCHW", layout)


@OPS.imports("Transpose", since=(1, 13, 21, 23, 24, 25))
def import_transpose(ctx: ImportCtx, x: Expr, *, perm: tuple[int, ...] | None = None) -> Expr:
    return relay.transpose(x, axes=perm)


@OPS.imports("DepthToSpace", since=(1, 11, 13, 28))
def import_depth_to_space(
    ctx: ImportCtx, x: Expr, *, blocksize: int, mode: Literal["DCR", "CRD"] = "DCR"
) -> Expr:
    return relay.nn.depth_to_space(x, blocksize, layout="NCHW", mode=mode)


@OPS.imports("SpaceToDepth", since=(1, 13))
def import_space_to_depth(ctx: ImportCtx, x: Expr, *, blocksize: int) -> Expr:
    return relay.nn.space_to_depth(x, blocksize, layout="NCHW")


@OPS.imports("SpaceToDepth", since=28)
def import_space_to_depth_v28(
    ctx: ImportCtx, x: Expr, *, blocksize: int, mode: Literal["DCR", "CRD"] = "DCR"
) -> Expr:
    """CRD keeps what comes from one channel together."""
    if mode == "DCR":
        return import_space_to_depth(ctx, x, blocksize=blocksize)
    n, c, h, w = ctx.type(x).shape
    rows, columns = h // blocksize, w // blocksize
    split = relay.reshape(x, _named([n, c, rows, blocksize, columns, blocksize]))
    moved = relay.transpose(split, axes=[0, 1, 3, 5, 2, 4])
    return relay.reshape(moved, _named([n, c * blocksize * blocksize, rows, columns]))


def _named(dims: Sequence[Dim]) -> list[Dim]:
    """Return dimensions as an attribute.

    Raises:
        Unsupported: More than one is without a length or a name.
    """
    if sum(isinstance(dim, Any) for dim in dims) > 1:
        raise Unsupported(f"several axes without a length or a name: {list(dims)}")
    return [-1 if isinstance(dim, Any) else dim for dim in dims]

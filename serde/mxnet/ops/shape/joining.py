"""Tensors put together and taken apart by NumPy's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.shape.reshaping import import_split_v2
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr


def with_rank(ctx: ImportContext, data: Expr, least: int) -> Expr:
    """Return `data` with axes of length 1 in front, up to a rank of `least`."""
    missing = least - ctx.type(data).rank
    return relay.expand_dims(data, 0, missing) if missing > 0 else data


def at_least_3d(ctx: ImportContext, data: Expr) -> Expr:
    """Return `data` with the axis of a vector in the middle and those of a matrix in front."""
    rank = ctx.type(data).rank
    return relay.expand_dims(with_rank(ctx, data, 2), 2) if rank < 3 else data


@OPS.imports("_np_atleast_1d")
def import_atleast_1d(ctx: ImportContext, *arys: Expr, num_args: int) -> Sequence[Expr]:
    return [with_rank(ctx, each, 1) for each in arys]


@OPS.imports("_np_atleast_2d")
def import_atleast_2d(ctx: ImportContext, *arys: Expr, num_args: int) -> Sequence[Expr]:
    return [with_rank(ctx, each, 2) for each in arys]


@OPS.imports("_np_atleast_3d")
def import_atleast_3d(ctx: ImportContext, *arys: Expr, num_args: int) -> Sequence[Expr]:
    return [at_least_3d(ctx, each) for each in arys]


@OPS.imports("_npi_concatenate")
def import_concatenate(
    ctx: ImportContext, *data: Expr, num_args: int, axis: int | None = 0
) -> Expr:
    if axis is None:
        return relay.concatenate([relay.reshape(each, (-1,)) for each in data], 0)
    return relay.concatenate(data, axis)


@OPS.imports("_npi_stack")
def import_np_stack(ctx: ImportContext, *data: Expr, num_args: int, axis: int = 0) -> Expr:
    return relay.stack(data, axis)


@OPS.imports("_npi_hstack")
def import_hstack(ctx: ImportContext, *data: Expr, num_args: int, dim: int = 1) -> Expr:
    """The axis follows from the rank; MXNet does not look at ``dim``."""
    parts = [with_rank(ctx, each, 1) for each in data]
    return relay.concatenate(parts, 0 if ctx.type(parts[0]).rank == 1 else 1)


@OPS.imports("_npi_vstack")
def import_vstack(ctx: ImportContext, *data: Expr, num_args: int) -> Expr:
    return relay.concatenate([with_rank(ctx, each, 2) for each in data], 0)


@OPS.imports("_npi_dstack")
def import_dstack(ctx: ImportContext, *data: Expr, num_args: int, dim: int = 1) -> Expr:
    """The axis is always 2; MXNet does not look at ``dim``."""
    return relay.concatenate([at_least_3d(ctx, each) for each in data], 2)


@OPS.imports("_npi_column_stack")
def import_column_stack(ctx: ImportContext, *data: Expr, num_args: int) -> Expr:
    parts = [with_rank(ctx, each, 1) for each in data]
    columns = [relay.expand_dims(x, 1) if ctx.type(x).rank == 1 else x for x in parts]
    return relay.concatenate(columns, 1)


@OPS.imports("_npi_hsplit")
def import_hsplit(
    ctx: ImportContext,
    data: Expr,
    *,
    indices: tuple[int, ...],
    axis: int = 1,
    squeeze_axis: bool = False,
    sections: int = 0,
) -> AnyValue:
    """The axis follows from the rank; MXNet does not look at ``axis``."""
    along = 0 if ctx.type(data).rank == 1 else 1
    return import_split_v2(
        ctx, data, indices=indices, axis=along, squeeze_axis=squeeze_axis, sections=sections
    )


@OPS.imports("_npi_dsplit")
def import_dsplit(
    ctx: ImportContext,
    data: Expr,
    *,
    indices: tuple[int, ...],
    axis: int = 1,
    squeeze_axis: bool = False,
    sections: int = 0,
) -> AnyValue:
    if axis not in (2, 2 - ctx.type(data).rank):
        raise Unsupported(f"axis={axis}: MXNet gives the shapes of axis 2, the values of no axis")
    return import_split_v2(
        ctx, data, indices=indices, axis=2, squeeze_axis=squeeze_axis, sections=sections
    )

"""Differences of neighbours."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.index.slicing import LAST
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import normalize_axis


def _differences(data: Expr, axis: int) -> Expr:
    after = relay.strided_slice(data, [1], [LAST], [1], axes=[axis])
    return relay.subtract(after, relay.strided_slice(data, [0], [-1], [1], axes=[axis]))


@OPS.imports("_npi_diff")
def import_diff(ctx: ImportContext, a: Expr, *, n: int = 1, axis: int = -1) -> Expr:
    if n < 0:
        raise Unsupported(f"n={n} is negative")
    along = normalize_axis(axis, ctx.type(a).rank)
    length = ctx.type(a).shape[along]
    for _ in range(min(n, length) if isinstance(length, int) else n):
        a = _differences(a, along)
    return a


@OPS.imports("_npi_ediff1d")
def import_ediff1d(
    ctx: ImportContext,
    input1: Expr,
    *ends: Expr,
    to_begin_arr_given: bool = False,
    to_end_arr_given: bool = False,
    to_begin_scalar: float | None = None,
    to_end_scalar: float | None = None,
) -> Expr:
    """Tensors to put at the ends follow the data, as many as are given."""
    tensors = list(ends)
    flat = relay.reshape(input1, (-1,))
    parts = [_differences(flat, 0)]
    if len(ends) != to_begin_arr_given + to_end_arr_given:
        raise Unsupported(f"{len(ends)} tensors for the ends, but the attributes say otherwise")
    if to_begin_arr_given:
        parts.insert(0, relay.reshape(tensors.pop(0), (-1,)))
    elif to_begin_scalar is not None:
        parts.insert(0, _single(ctx, input1, to_begin_scalar))
    if to_end_arr_given:
        parts.append(relay.reshape(tensors.pop(0), (-1,)))
    elif to_end_scalar is not None:
        parts.append(_single(ctx, input1, to_end_scalar))
    return relay.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def _single(ctx: ImportContext, data: Expr, value: float) -> Expr:
    return relay.Constant(np.reshape(ctx.constant(scalar_like(ctx, data, value)), (1,)))

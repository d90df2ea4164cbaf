"""Normalisation over the last axes."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr, TupleGetItem
from serde.relay.ir.precision import limits
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.norm.statistics import wide_dtype
from serde.torch.ops.table import OPS


def _ones(ctx: ImportContext, x: Expr, count: int) -> Expr:
    """Return ones for the last axes of data."""
    rank = ctx.type(x).rank
    lengths = ctx.static_lengths(x, range(rank - count, rank))
    return ctx.fold(relay.ones(lengths, ctx.dtype(x)))


def _layer_norm(
    ctx: ImportContext, x: Expr, weight: Expr | None, bias: Expr | None, count: int, eps: float
) -> tuple[Expr, ...]:
    """Return the data, and mean and inverse deviation, computed in float32 at least."""
    dtype = ctx.dtype(x)
    stash = wide_dtype(dtype)
    found = call(
        "serde.layer_norm",
        x,
        _ones(ctx, x, count) if weight is None else ctx.cast(weight, dtype),
        None if bias is None else ctx.cast(bias, dtype),
        axis=-count,
        epsilon=eps,
        stash_dtype=np.dtype(stash),
    )
    kept = dtype if weight is None else ctx.dtype(weight)
    mean, inverse = (ctx.cast(ctx.fold(TupleGetItem(found, each)), kept) for each in (1, 2))
    return TupleGetItem(found, 0), mean, inverse


@OPS.imports("aten::layer_norm", ignored=("cudnn_enable",))
def import_layer_norm(
    ctx: ImportContext,
    input: Expr,
    weight: Expr | None = None,
    bias: Expr | None = None,
    *,
    normalized_shape: tuple[SymInt, ...],
    eps: float = 1e-5,
) -> Expr:
    return _layer_norm(ctx, input, weight, bias, len(normalized_shape), eps)[0]


@OPS.imports("aten::native_layer_norm")
def import_native_layer_norm(
    ctx: ImportContext,
    input: Expr,
    weight: Expr | None = None,
    bias: Expr | None = None,
    *,
    normalized_shape: tuple[SymInt, ...],
    eps: float,
) -> tuple[Expr, ...]:
    return _layer_norm(ctx, input, weight, bias, len(normalized_shape), eps)


@OPS.imports("aten::rms_norm")
def import_rms_norm(
    ctx: ImportContext,
    input: Expr,
    weight: Expr | None = None,
    *,
    normalized_shape: tuple[SymInt, ...],
    eps: float | None = None,
) -> Expr:
    count, dtype = len(normalized_shape), ctx.dtype(input)
    if not is_float(dtype):
        raise Unsupported(f"a norm of {dtype}")
    epsilon = float(limits(wide_dtype(dtype)).eps) if eps is None else eps
    gamma = _ones(ctx, input, count) if weight is None else ctx.cast(weight, dtype)
    return call("serde.rms_norm", input, gamma, axis=-count, epsilon=epsilon)

"""Quantiles, covariances and correlations."""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call
from serde.torch.ops.elementwise.paired import import_lerp
from serde.torch.ops.reduce.plain import count
from serde.torch.ops.table import OPS, Import

Interpolation = Literal["linear", "lower", "higher", "midpoint", "nearest"]


def _between(ctx: Import, ordered: Expr, ranks: Expr, interpolation: Interpolation) -> Expr:
    """Return elements of the last axis, in order, at ranks that may lie between two places."""
    dtype = ctx.dtype(ordered)
    if interpolation == "nearest":
        ranks = call("serde.round_even", ranks)
    below = relay.floor(ranks)
    first = relay.gather(ordered, -1, relay.cast(below, "int64"))
    if interpolation in ("lower", "nearest"):
        return first
    last = relay.gather(ordered, -1, relay.cast(relay.ceil(ranks), "int64"))
    if interpolation == "higher":
        return last
    if interpolation == "midpoint":
        return import_lerp(ctx, first, last, ctx.scalar(0.5, dtype))
    return import_lerp(ctx, first, last, relay.subtract(ranks, below))


def _quantile(
    ctx: Import, x: Expr, q: Expr, dim: int | None, keepdim: bool, interpolation: Interpolation,
    ignore_nan: bool,
) -> Expr:  # fmt: skip
    """Return quantiles along an axis, with an axis in front where there are several.

    What is no number makes a quantile none, unless it is ignored; it comes last in order.
    """
    rank, dtype = ctx.type(x).rank, ctx.dtype(x)
    axis = 0 if dim is None else ctx.axis(x, dim)
    single = not ctx.type(q).rank
    rows = relay.reshape(x, newshape=(-1,)) if dim is None or not rank else x
    kept = [place for place in range(ctx.type(rows).rank) if place != axis]
    rows = relay.transpose(rows, axes=[*kept, axis])
    missing = relay.isnan(rows)
    last = relay.where(missing, ctx.scalar(float("inf"), dtype), rows)
    present = relay.cast(relay.logical_not(missing), dtype)
    total = relay.sum(present, axis=[-1], keepdims=True)
    if not ignore_nan:
        total = count(ctx, rows, (len(kept),), dtype)
    fractions = relay.reshape(ctx.cast(q, dtype), newshape=(-1,))
    ranks = relay.multiply(fractions, relay.subtract(total, ctx.scalar(1, dtype)))
    spread = relay.zeros_like(relay.max(rows, axis=[-1], keepdims=True))
    ranks = relay.maximum(relay.add(spread, ranks), ctx.scalar(0, dtype))
    found = _between(ctx, relay.sort(last, axis=-1), ranks, interpolation)
    gone = relay.all(missing, axis=[-1], keepdims=True)
    if not ignore_nan:
        gone = relay.any(missing, axis=[-1], keepdims=True)
    found = relay.where(gone, ctx.scalar(float("nan"), dtype), found)
    found = relay.transpose(found, axes=[len(kept), *range(len(kept))])
    if keepdim and rank:
        axes = range(rank) if dim is None else [axis]
        for place in axes:
            found = relay.expand_dims(found, axis=place + 1)
    return relay.squeeze(found, axis=[0]) if single else found


def _register(op: str, ignore_nan: bool) -> None:
    @OPS.imports(f"aten::{op}")
    def import_quantile(
        ctx: Import,
        self: Expr,
        q: Expr,
        *,
        dim: int | None = None,
        keepdim: bool = False,
        interpolation: Interpolation = "linear",
    ) -> Expr:
        return _quantile(ctx, self, q, dim, keepdim, interpolation, ignore_nan)


_register("quantile", ignore_nan=False)
_register("nanquantile", ignore_nan=True)


@OPS.imports("aten::cov")
def import_cov(
    ctx: Import,
    self: Expr,
    fweights: Expr | None = None,
    aweights: Expr | None = None,
    *,
    correction: int = 1,
) -> Expr:
    """Rows are variables, columns what was observed of them, as often and as surely as told."""
    rank = ctx.type(self).rank
    if rank > 2:
        raise Unsupported(f"the covariance of a tensor of rank {rank}")
    rows = relay.reshape(self, newshape=(1, -1)) if rank < 2 else self
    weighing = [each for each in (fweights, aweights) if each is not None]
    x, *given = ctx.promote_to_float(rows, *weighing)
    dtype = ctx.dtype(x)
    if not given:
        total = count(ctx, x, (1,), dtype)
        mean = relay.mean(x, axis=[1], keepdims=True)
        centred = relay.subtract(x, mean)
        weighted = centred
    else:
        weights = given[0] if len(given) == 1 else relay.multiply(*given)
        total = relay.sum(weights, axis=[0])
        sums = relay.sum(relay.multiply(x, weights), axis=[1], keepdims=True)
        centred = relay.subtract(x, relay.divide(sums, total))
        weighted = relay.multiply(centred, weights)
    less: Expr = ctx.scalar(correction, dtype)
    if aweights is not None and correction:
        squares = relay.sum(relay.multiply(weights, ctx.cast(aweights, dtype)), axis=[0])
        less = relay.multiply(less, relay.divide(squares, total))
    divisor = relay.maximum(relay.subtract(total, less), ctx.scalar(0, dtype))
    found = relay.divide(relay.nn.dense(weighted, centred, units=None), divisor)
    # Of a matrix of one row, PyTorch gives a scalar.
    return relay.reshape(found, newshape=()) if rank < 2 or ctx.type(x).shape[0] == 1 else found


@OPS.imports("aten::corrcoef")
def import_corrcoef(ctx: Import, self: Expr) -> Expr:
    found = import_cov(ctx, self)
    dtype = ctx.dtype(found)
    if not ctx.type(found).rank:
        return relay.divide(found, found)
    spread = relay.sqrt(relay.einsum([found], "ii->i"))
    found = relay.divide(found, relay.expand_dims(spread, axis=1))
    found = relay.divide(found, spread)
    return relay.minimum(relay.maximum(found, ctx.scalar(-1, dtype)), ctx.scalar(1, dtype))

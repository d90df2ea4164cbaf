"""Losses."""

from __future__ import annotations

from typing import Literal

import serde.core.allocation as allocation
import serde.relay as relay
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr

__all__: list[str] = []


@OPS.imports("relax.nn.cross_entropy_with_logits")
def import_cross_entropy_with_logits(ctx: ImportContext, predictions: Expr, labels: Expr) -> Expr:
    """The sum is divided by the number of samples."""
    total = relay.negative(relay.sum(relay.multiply(predictions, labels)))
    if ctx.rank(predictions) < 2:
        return total
    (count,) = ctx.static_lengths(predictions, [0])
    return relay.divide(total, ctx.like(total, count))


@OPS.imports("relax.nn.nll_loss")
def import_nll_loss(
    ctx: ImportContext,
    predictions: Expr,
    targets: Expr,
    weights: Expr | None = None,
    *,
    reduction: Literal["mean", "sum", "none"],
    ignore_index: int,
) -> Expr:
    if weights is None:
        (classes,) = ctx.static_lengths(predictions, [1 if ctx.rank(predictions) > 1 else 0])
        weights = ctx.const(allocation.ones(classes), ctx.dtype(predictions))
    return relay.nn.nll_loss(
        predictions, targets, weights, reduction=reduction, ignore_index=ignore_index
    )

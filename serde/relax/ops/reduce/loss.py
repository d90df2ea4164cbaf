"""Losses."""

from __future__ import annotations

import serde.relay as relay
from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS
from serde.relax.precision import NARROW
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call

__all__: list[str] = []


@OPS.exports("nn.nll_loss")
def export_nll_loss(
    ctx: ExportContext,
    predictions: Value,
    targets: Value,
    weights: Value,
    *,
    reduction: str,
    ignore_index: int,
) -> Value:
    """Relax reads what targets that are ignored name, which may lie outside the classes."""
    labels, dtype = ctx.type(targets), ctx.type(predictions).dtype
    wide = "float32" if dtype in NARROW else dtype
    axis = min(1, labels.rank)

    def loss(predictions: Expr, targets: Expr, weights: Expr) -> Expr:
        predictions, weights = (call("cast", x, dtype=wide) for x in (predictions, weights))
        zero = relay.const(0, wide)
        kept = relay.not_equal(targets, relay.const(ignore_index, labels.dtype))
        classes = relay.where(kept, targets, relay.const(0, labels.dtype))
        found = relay.gather(predictions, axis, relay.expand_dims(classes, axis))
        factors = relay.where(kept, relay.take(weights, classes, axis=0), zero)
        losses = relay.negative(relay.multiply(relay.squeeze(found, [axis]), factors))
        if reduction != "none":
            losses = relay.sum(losses)
        if reduction == "mean":
            losses = relay.divide(losses, relay.sum(factors))
        return call("cast", losses, dtype=dtype)

    return ctx.spell(loss, predictions, targets, weights)

"""Losses."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr

LEAST = float(np.float32(1e-8))
"""Probabilities below count as this one, in whatever dtype."""


@OPS.imports("softmax_cross_entropy")
def import_softmax_cross_entropy(ctx: ImportContext, data: Expr, label: Expr) -> Expr:
    """The sum over all rows, with probabilities kept away from zero."""
    type_ = ctx.type(data)
    if type_.rank != 2:
        raise Unsupported(f"expected a matrix of scores, found {type_!r}")
    indices = relay.expand_dims(relay.cast(label, "int64"), 1)
    chosen = relay.gather(relay.nn.softmax(data, axis=1), 1, indices)
    kept = relay.maximum(chosen, relay.const(LEAST, type_.dtype))
    total = relay.sum(relay.negative(relay.log(kept)), axis=(0, 1))
    return relay.expand_dims(total, 0)


@OPS.exports("nn.nll_loss")
def export_nll_loss(
    ctx: ExportContext,
    predictions: Value,
    targets: Value,
    weights: Value,
    *,
    reduction: Literal["mean", "sum", "none"],
    ignore_index: int,
) -> Value:
    """Sums run in float64."""
    kind, dtype = ctx.type(targets).dtype, ctx.type(predictions).dtype
    axis = min(1, ctx.type(targets).rank)

    def build(scores: Expr, labels: Expr, factors: Expr) -> Expr:
        kept = relay.not_equal(labels, relay.const(ignore_index, kind))
        classes = relay.where(kept, labels, relay.const(0, kind))
        found = relay.gather(scores, axis, relay.expand_dims(classes, axis))
        found = relay.cast(relay.squeeze(found, (axis,)), "float64")
        chosen = relay.cast(relay.take(factors, classes, axis=0, mode="clip"), "float64")
        chosen = relay.where(kept, chosen, relay.const(0.0, "float64"))
        losses = relay.multiply(relay.negative(found), chosen)
        if reduction != "none":
            losses = relay.sum(losses)
        if reduction == "mean":
            losses = relay.divide(losses, relay.sum(chosen))
        return relay.cast(losses, dtype)

    return ctx.spell(build, predictions, targets, weights)

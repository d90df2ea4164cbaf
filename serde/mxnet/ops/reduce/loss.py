"""Losses."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
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

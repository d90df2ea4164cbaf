"""Importers of samples."""

from __future__ import annotations

import serde.relay as relay
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr

__all__: list[str] = []


@OPS.imports("relax.multinomial_from_uniform")
def import_multinomial_from_uniform(
    ctx: ImportContext, prob: Expr, uniform_sample: Expr, sample_indices: Expr, *, dtype: str | None
) -> Expr:
    """A number between 0 and 1 chooses the first event whose running sum exceeds it."""
    sums = relay.cumsum(prob, axis=1, dtype=ctx.dtype(prob))
    rows = relay.take(sums, relay.squeeze(sample_indices, axis=[1]), axis=0)
    passed = relay.less_equal(rows, uniform_sample)
    return relay.sum(relay.cast(passed, dtype or "int64"), axis=1, keepdims=True)

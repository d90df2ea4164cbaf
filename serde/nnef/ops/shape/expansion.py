"""Elements in other places, by moves that NNEF has."""

from __future__ import annotations

import serde.relay as relay
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.walk.expansion.tensors import fixed_shape

__all__: list[str] = []


@OPS.expands("reverse")
def expand_reverse(data: Expr, *, axis: int) -> Expr:
    """A slice that goes back."""
    length = fixed_shape(data)[axis]
    return relay.strided_slice(data, [length - 1], [-length - 1], [-1], axes=[axis])

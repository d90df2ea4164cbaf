"""Variables that a graph changes."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.ops.table import OPS, Import
from serde.relay.ir.expr import Expr


@OPS.imports("update")
def import_update(ctx: Import, variable: Expr, value: Expr) -> Expr:
    """The variable keeps its value until the graph has run: what it gets is an output."""
    target, given = ctx.type(variable), ctx.type(value)
    if ctx.is_literal(value):
        value = relay.broadcast_to(value, target.shape)
    elif given.shape != target.shape:
        raise Unsupported(f"a value of {given!r} for a variable of {target!r}")
    return value if given.dtype == target.dtype else relay.cast(value, target.dtype)

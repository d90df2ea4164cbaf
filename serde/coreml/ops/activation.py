"""Activations."""

from __future__ import annotations

import serde.relay as relay
from serde.converters import ImportContext as Ctx
from serde.coreml.ops.table import OPS
from serde.relay.expr import Expr


@OPS.imports("relu")
def import_relu(ctx: Ctx, x: Expr) -> Expr:
    return relay.nn.relu(x)


@OPS.imports("softmax")
def import_softmax(ctx: Ctx, x: Expr, *, axis: int = -1) -> Expr:
    return relay.nn.softmax(x, axis=axis)

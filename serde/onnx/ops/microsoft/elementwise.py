"""Sums with a bias."""

from __future__ import annotations

import serde.relay as relay
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir.expr import Expr


@MICROSOFT.imports("BiasAdd")
def import_bias_add(ctx: Import, x: Expr, bias: Expr, skip: Expr) -> Expr:
    """Channels are the last axis."""
    return relay.add(relay.add(x, bias), skip)

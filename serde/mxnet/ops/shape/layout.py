"""Layouts of axes."""

from __future__ import annotations

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.layout import LayoutPlan


@OPS.exports("layout_transform")
def export_layout_transform(
    ctx: ExportContext, data: Value, *, src_layout: str, dst_layout: str
) -> Value:
    plan = LayoutPlan(ctx.type(data).shape, src_layout, dst_layout)

    def build(x: Expr) -> Expr:
        whole = relay.reshape(relay.transpose(x, plan.gather), plan.parts)
        return relay.transpose(whole, plan.spread)

    return ctx.spell(build, data)

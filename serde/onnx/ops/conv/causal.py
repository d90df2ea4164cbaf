"""Convolution of each channel over what is past."""

from __future__ import annotations

from typing import Literal

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr, TupleGetItem
from serde.relay.ir.registry import call


@OPS.exports("serde.causal_conv1d", since=27)
def export_causal_conv(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    bias: Value | None,
    state: Value | None,
    *,
    activate: bool,
) -> tuple[Value, ...]:
    activation = "silu" if activate else None
    inputs = (data, weight, bias, state)
    return ctx.emit_tuple("CausalConvWithState", *inputs, outputs=2, activation=activation)


@OPS.imports("CausalConvWithState", since=27)
def import_causal_conv(
    ctx: ImportContext,
    x: Expr,
    weight: Expr,
    bias: Expr | None = None,
    past_state: Expr | None = None,
    *,
    activation: Literal["none", "silu", "swish"] = "none",
) -> list[Expr]:
    found = call("serde.causal_conv1d", x, weight, bias, past_state, activate=activation != "none")
    return [TupleGetItem(found, index) for index in range(2)]

"""Plain recurrent layers."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Literal

import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.recurrent.layer import (
    FUNCTIONS,
    NAMES,
    USUAL,
    Activation,
    Direction,
    biases,
    emit_directions,
    is_supported,
    results,
    states,
)
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.value import Value
from serde.relay.ir.expr import Expr, TupleWrapper
from serde.relay.ir.registry import call


@OPS.imports("rnn", since=(1, 17))
def import_rnn(
    ctx: ImportContext,
    x: Expr,
    initial_h: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias: Expr | None = None,
    *,
    direction: Literal["forward", "reverse"] = "forward",
    output_sequence: bool = False,
    activation: Activation = "tanh",
) -> list[Expr]:
    hidden = ctx.static_shape(weight_hh)[1]
    every, *finals = TupleWrapper(
        call(
            "serde.rnn",
            x,
            relay.expand_dims(weight_ih, 0),
            relay.expand_dims(weight_hh, 0),
            biases(None if bias is None else relay.expand_dims(bias, 0)),
            None,
            states(initial_h, 1),
            hidden_size=hidden,
            direction=direction,
            activations=(FUNCTIONS[activation],),
        ),
        2,
    )
    return results(every, finals, 1, direction, output_sequence)


@OPS.exports("serde.rnn", when=is_supported)
def export_rnn(
    ctx: ExportContext,
    data: Value,
    input_weight: Value,
    recurrent_weight: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    *,
    hidden_size: int,
    direction: Direction,
    activations: tuple[str, ...],
    activation_alpha: tuple[float, ...],
    activation_beta: tuple[float, ...],
    clip: AnyValue,
    layout: str,
) -> list[Value]:
    name = NAMES[(activations or USUAL["serde.rnn"])[0]]
    functions = {"activation": "sigmoid_hard" if name == "hard_sigmoid" else name}
    attrs = {"hidden_size": hidden_size, "direction": direction, "layout": layout}
    weights = (input_weight, recurrent_weight, bias)
    return emit_directions(ctx, "rnn", data, weights, initial_h, (0,), functions, attrs)

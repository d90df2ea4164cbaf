"""Plain recurrent layers."""

from __future__ import annotations

import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.recurrent.layer import (
    FUNCTIONS,
    RecurrentAttributes,
    RelayRecurrent,
    biases,
    build_layer,
    emit_directions,
    is_supported,
)
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.value import Value
from serde.relay.ir.expr import Expr


@OPS.imports("rnn", since=(1, 17))
def import_rnn(
    ctx: ImportContext,
    x: Expr,
    initial_h: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias: Expr | None = None,
    *,
    recurrent: RecurrentAttributes,
) -> list[Expr]:
    """One direction, which Relay has an axis for."""
    parameters = [
        None if each is None else relay.expand_dims(each, 0)
        for each in (weight_ih, weight_hh, bias)
    ]
    return build_layer(
        "serde.rnn",
        (x, *parameters[:2], biases(parameters[2])),
        [initial_h],
        direction=recurrent.direction,
        output_sequence=recurrent.output_sequence,
        hidden_size=ctx.static_shape(weight_hh)[1],
        activations=(FUNCTIONS[recurrent.activation],),
    )


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
    recurrent: RelayRecurrent,
) -> list[Value]:
    """MIL has another name for one of the functions here."""
    (name,) = recurrent.function_names("serde.rnn")
    functions = {"activation": "sigmoid_hard" if name == "hard_sigmoid" else name}
    weights = (input_weight, recurrent_weight, bias)
    return emit_directions(ctx, "rnn", data, weights, initial_h, (0,), functions, recurrent)

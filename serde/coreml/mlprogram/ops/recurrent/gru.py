"""Gated recurrent units."""

from __future__ import annotations

from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.recurrent.layer import (
    FUNCTIONS,
    Activation,
    RecurrentAttributes,
    RelayRecurrent,
    biases,
    build_layer,
    emit_directions,
    is_supported,
    stack_directions,
)
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.value import Value
from serde.relay.ir.expr import Expr

GATES = (2, 0, 1)
"""Update, reset and hidden gate where MIL has reset, hidden, update."""

BACK = (1, 2, 0)
"""The inverse of that order."""


@OPS.imports("gru", since=(1, 17, 18))
def import_gru(
    ctx: ImportContext,
    x: Expr,
    initial_h: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias: Expr | None = None,
    input_bias: Expr | None = None,
    *,
    recurrent: RecurrentAttributes,
    recurrent_activation: Activation = "sigmoid",
    reset_after: bool = False,
) -> list[Expr]:
    """Gates go reset, hidden, update; where the reset comes last, the bias is the state's."""
    weights = [stack_directions([each], GATES) for each in (weight_ih, weight_hh)]
    entering, bias_of_state = (stack_directions([each], GATES) for each in (input_bias, bias))
    return build_layer(
        "serde.gru",
        (x, *weights, biases(entering, bias_of_state)),
        [initial_h],
        direction=recurrent.direction,
        output_sequence=recurrent.output_sequence,
        hidden_size=ctx.static_shape(weight_hh)[1],
        activations=(FUNCTIONS[recurrent_activation], FUNCTIONS[recurrent.activation]),
        linear_before_reset=reset_after,
    )


@OPS.exports("serde.gru", when=is_supported)
def export_gru(
    ctx: ExportContext,
    data: Value,
    input_weight: Value,
    recurrent_weight: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    *,
    recurrent: RelayRecurrent,
    linear_before_reset: bool,
) -> list[Value]:
    """MIL walks one way; where the reset comes last, its runtime is not as its documents say."""
    names = recurrent.function_names("serde.gru")
    functions = {"recurrent_activation": names[0], "activation": names[1]}
    weights = (input_weight, recurrent_weight, bias)
    return emit_directions(ctx, "gru", data, weights, initial_h, BACK, functions, recurrent)

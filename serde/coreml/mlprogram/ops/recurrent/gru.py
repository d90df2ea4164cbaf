"""Gated recurrent units."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Literal

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
    stack_directions,
    states,
)
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.value import Value
from serde.relay.ir.expr import Expr, TupleWrapper
from serde.relay.ir.registry import call

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
    direction: Literal["forward", "reverse"] = "forward",
    output_sequence: bool = False,
    recurrent_activation: Activation = "sigmoid",
    activation: Activation = "tanh",
    reset_after: bool = False,
) -> list[Expr]:
    """Gates go reset, hidden, update; where the reset comes last, the bias is the state's."""
    hidden = ctx.static_shape(weight_hh)[1]
    entering = stack_directions([input_bias], GATES)
    recurrent = stack_directions([bias], GATES)
    every, *finals = TupleWrapper(
        call(
            "serde.gru",
            x,
            stack_directions([weight_ih], GATES),
            stack_directions([weight_hh], GATES),
            biases(entering, recurrent),
            None,
            states(initial_h, 1),
            hidden_size=hidden,
            direction=direction,
            activations=(FUNCTIONS[recurrent_activation], FUNCTIONS[activation]),
            linear_before_reset=reset_after,
        ),
        2,
    )
    return results(every, finals, 1, direction, output_sequence)


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
    hidden_size: int,
    direction: Direction,
    activations: tuple[str, ...],
    activation_alpha: tuple[float, ...],
    activation_beta: tuple[float, ...],
    clip: AnyValue,
    layout: str,
    linear_before_reset: bool,
) -> list[Value]:
    """MIL walks one way; where the reset comes last, its runtime is not as its documents say."""
    names = [NAMES[each] for each in activations[:2] or USUAL["serde.gru"]]
    functions = {"recurrent_activation": names[0], "activation": names[1]}
    attrs = {"hidden_size": hidden_size, "direction": direction, "layout": layout}
    weights = (input_weight, recurrent_weight, bias)
    return emit_directions(ctx, "gru", data, weights, initial_h, BACK, functions, attrs)

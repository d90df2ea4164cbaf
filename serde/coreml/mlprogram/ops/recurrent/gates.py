"""Recurrent layers by their gates: long short-term memory, gated units, plain ones."""

from __future__ import annotations

from typing import Any as AnyValue

import serde.relay as relay
from serde.coreml.mlprogram.ops.recurrent.layer import (
    FUNCTIONS,
    Activation,
    Direction,
    Layer,
    RecurrentAttributes,
    RelayRecurrent,
    bias_row,
    biases,
    build_layer,
    emit_directions,
    is_supported,
    row_of,
    stack_directions,
)
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.relay.ir.expr import Expr
from serde.relay.op.recurrent.gates import count_directions

_GATES_OF_LSTM = (0, 2, 1, 3)
"""Input, output, forget and cell gate where MIL has input, forget, output, cell, and back."""


@OPS.imports("lstm", since=(1, 17))
def import_lstm(
    ctx: Import, x: Expr, initial_h: Expr, initial_c: Expr, weight_ih: Expr, weight_hh: Expr,
    bias: Expr | None = None, peephole: Expr | None = None, weight_ih_back: Expr | None = None,
    weight_hh_back: Expr | None = None, bias_back: Expr | None = None,
    peephole_back: Expr | None = None,
    *, direction: Direction = "forward", output_sequence: bool = False,
    recurrent_activation: Activation = "sigmoid", cell_activation: Activation = "tanh",
    activation: Activation = "tanh", clip: float | None = None,
) -> list[Expr]:  # fmt: skip
    """Gates go input, forget, output, cell; the bound is one of the cell."""
    directions = count_directions(direction)
    hidden = ctx.static_shape(weight_hh)[1]
    pairs = [(weight_ih, weight_ih_back), (weight_hh, weight_hh_back), (bias, bias_back)]
    weights = [stack_directions(pair[:directions], _GATES_OF_LSTM) for pair in pairs]
    holes = stack_directions((peephole, peephole_back)[:directions], (0, 2, 1))
    functions = tuple(
        FUNCTIONS[each] for each in (recurrent_activation, cell_activation, activation)
    )
    return build_layer(
        "serde.lstm", (x, weights[0], weights[1], biases(weights[2])), [initial_h, initial_c],
        holes, None, direction=direction, output_sequence=output_sequence, hidden_size=hidden,
        activations=functions * directions, cell_clip=None if clip is None else (-clip, clip),
    )  # fmt: skip


@OPS.exports("serde.lstm", when=is_supported)
def export_lstm(
    ctx: Export, data: Value, input_weight: Value, recurrent_weight: Value,
    bias: Value | None = None, sequence_lens: Value | None = None, initial_h: Value | None = None,
    initial_c: Value | None = None, peephole: Value | None = None, projection: Value | None = None,
    *, recurrent: RelayRecurrent, input_forget: bool, cell_clip: tuple[float, float] | None,
) -> list[Value]:  # fmt: skip
    """Both directions are one operation."""
    layer = Layer(ctx, data, recurrent)
    numbers = range(layer.directions)
    names = recurrent.function_names("serde.lstm")
    inputs: dict[str, AnyValue] = {}
    for number, suffix in zip(numbers, ("", "_back"), strict=False):
        inputs |= {
            f"weight_ih{suffix}": layer.constant(row_of(number, _GATES_OF_LSTM), input_weight),
            f"weight_hh{suffix}": layer.constant(row_of(number, _GATES_OF_LSTM), recurrent_weight),
            f"bias{suffix}": layer.constant(bias_row(number, _GATES_OF_LSTM), bias),
            f"peephole{suffix}": layer.constant(row_of(number, (0, 2, 1)), peephole),
        }
    found = ctx.emit_tuple(
        "lstm", layer.types(numbers, 2), x=layer.data, initial_h=layer.state(initial_h, numbers),
        initial_c=layer.state(initial_c, numbers), **inputs, direction=recurrent.direction,
        output_sequence=True, recurrent_activation=names[0], cell_activation=names[1],
        activation=names[2],
        clip=None if cell_clip is None else ctx.const(cell_clip[1], layer.work),
    )  # fmt: skip
    return layer.finish([found])


_GATES_OF_GRU = (2, 0, 1)
"""Update, reset and hidden gate where MIL has reset, hidden, update."""

BACK = (1, 2, 0)
"""The inverse of that order."""


@OPS.imports("gru", since=(1, 17, 18))
def import_gru(
    ctx: Import, x: Expr, initial_h: Expr, weight_ih: Expr, weight_hh: Expr,
    bias: Expr | None = None, input_bias: Expr | None = None,
    *, recurrent: RecurrentAttributes, recurrent_activation: Activation = "sigmoid",
    reset_after: bool = False,
) -> list[Expr]:  # fmt: skip
    """Gates go reset, hidden, update; where the reset comes last, the bias is the state's."""
    weights = [stack_directions([each], _GATES_OF_GRU) for each in (weight_ih, weight_hh)]
    entering, bias_of_state = (
        stack_directions([each], _GATES_OF_GRU) for each in (input_bias, bias)
    )
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
    ctx: Export, data: Value, input_weight: Value, recurrent_weight: Value,
    bias: Value | None = None, sequence_lens: Value | None = None, initial_h: Value | None = None,
    *, recurrent: RelayRecurrent, linear_before_reset: bool,
) -> list[Value]:  # fmt: skip
    """MIL walks one way; where the reset comes last, its runtime is not as its documents say."""
    names = recurrent.function_names("serde.gru")
    functions = {"recurrent_activation": names[0], "activation": names[1]}
    weights = (input_weight, recurrent_weight, bias)
    return emit_directions(ctx, "gru", data, weights, initial_h, BACK, functions, recurrent)


@OPS.imports("rnn", since=(1, 17))
def import_rnn(
    ctx: Import, x: Expr, initial_h: Expr, weight_ih: Expr, weight_hh: Expr,
    bias: Expr | None = None,
    *, recurrent: RecurrentAttributes,
) -> list[Expr]:  # fmt: skip
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
    ctx: Export, data: Value, input_weight: Value, recurrent_weight: Value,
    bias: Value | None = None, sequence_lens: Value | None = None, initial_h: Value | None = None,
    *, recurrent: RelayRecurrent,
) -> list[Value]:  # fmt: skip
    """MIL has another name for one of the functions here."""
    (name,) = recurrent.function_names("serde.rnn")
    functions = {"activation": "sigmoid_hard" if name == "hard_sigmoid" else name}
    weights = (input_weight, recurrent_weight, bias)
    return emit_directions(ctx, "rnn", data, weights, initial_h, (0,), functions, recurrent)

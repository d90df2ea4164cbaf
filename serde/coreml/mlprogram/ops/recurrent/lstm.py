"""Long short-term memory."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.recurrent.layer import (
    FUNCTIONS,
    Activation,
    Direction,
    Layer,
    RelayRecurrent,
    bias_row,
    biases,
    build_layer,
    is_supported,
    row_of,
    stack_directions,
)
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.value import Value
from serde.relay.ir.expr import Expr
from serde.relay.op.recurrent.gates import count_directions

GATES = (0, 2, 1, 3)
"""Input, output, forget and cell gate where MIL has input, forget, output, cell, and back."""


@OPS.imports("lstm", since=(1, 17))
def import_lstm(
    ctx: ImportContext,
    x: Expr,
    initial_h: Expr,
    initial_c: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias: Expr | None = None,
    peephole: Expr | None = None,
    weight_ih_back: Expr | None = None,
    weight_hh_back: Expr | None = None,
    bias_back: Expr | None = None,
    peephole_back: Expr | None = None,
    *,
    direction: Direction = "forward",
    output_sequence: bool = False,
    recurrent_activation: Activation = "sigmoid",
    cell_activation: Activation = "tanh",
    activation: Activation = "tanh",
    clip: float | None = None,
) -> list[Expr]:
    """Gates go input, forget, output, cell; the bound is one of the cell."""
    directions = count_directions(direction)
    hidden = ctx.static_shape(weight_hh)[1]
    pairs = [(weight_ih, weight_ih_back), (weight_hh, weight_hh_back), (bias, bias_back)]
    weights = [stack_directions(pair[:directions], GATES) for pair in pairs]
    holes = stack_directions((peephole, peephole_back)[:directions], (0, 2, 1))
    functions = tuple(
        FUNCTIONS[each] for each in (recurrent_activation, cell_activation, activation)
    )
    return build_layer(
        "serde.lstm",
        (x, weights[0], weights[1], biases(weights[2])),
        [initial_h, initial_c],
        holes,
        None,
        direction=direction,
        output_sequence=output_sequence,
        hidden_size=hidden,
        activations=functions * directions,
        cell_clip=None if clip is None else (-clip, clip),
    )


@OPS.exports("serde.lstm", when=is_supported)
def export_lstm(
    ctx: ExportContext,
    data: Value,
    input_weight: Value,
    recurrent_weight: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    initial_c: Value | None = None,
    peephole: Value | None = None,
    projection: Value | None = None,
    *,
    recurrent: RelayRecurrent,
    input_forget: bool,
    cell_clip: tuple[float, float] | None,
) -> list[Value]:
    """Both directions are one operation."""
    layer = Layer(ctx, data, recurrent)
    numbers = range(layer.directions)
    names = recurrent.function_names("serde.lstm")
    inputs: dict[str, AnyValue] = {}
    for number, suffix in zip(numbers, ("", "_back"), strict=False):
        inputs |= {
            f"weight_ih{suffix}": layer.constant(row_of(number, GATES), input_weight),
            f"weight_hh{suffix}": layer.constant(row_of(number, GATES), recurrent_weight),
            f"bias{suffix}": layer.constant(bias_row(number, GATES), bias),
            f"peephole{suffix}": layer.constant(row_of(number, (0, 2, 1)), peephole),
        }
    found = ctx.emit_tuple(
        "lstm",
        layer.types(numbers, 2),
        x=layer.data,
        initial_h=layer.state(initial_h, numbers),
        initial_c=layer.state(initial_c, numbers),
        **inputs,
        direction=recurrent.direction,
        output_sequence=True,
        recurrent_activation=names[0],
        cell_activation=names[1],
        activation=names[2],
        clip=None if cell_clip is None else ctx.const(cell_clip[1], layer.work),
    )
    return layer.finish([found])

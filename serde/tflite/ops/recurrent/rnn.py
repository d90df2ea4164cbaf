"""Plain recurrent layers, and filters along time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import serde.relay as relay
from serde.core.allocation import zeros
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr
from serde.relay.op.recurrent.gates import RecurrentLayer
from serde.tflite.ops.recurrent.layer import (
    TANH,
    Layout,
    are_fused,
    cut,
    direction_of,
    in_both_directions,
    joined,
    state_of,
    written,
)
from serde.tflite.ops.table import OPS, Export, Import, Value


@OPS.imports("SVDF", ignored=("asymmetric_quantize_inputs",))
def import_svdf(
    ctx: Import, x: Expr, feature: Expr, time: Expr, bias: Expr | None, state: Expr,
    *, rank: int = 0, fused_activation_function: int = 0,
) -> Expr:  # fmt: skip
    """Features are filtered along time; the state holds those of the steps before."""
    filters, steps = ctx.static_shape(time, 2)
    batch = ctx.static_shape(state, 2)[0]
    kept = relay.reshape(state, (batch, filters, steps))
    older = relay.strided_slice(kept, [1], [steps], axes=[2])
    new = relay.expand_dims(relay.nn.dense(x, feature), axis=2)
    window = relay.concatenate([older, new], axis=2)
    ctx.update(4, relay.reshape(window, (batch, filters * steps)))
    sums = relay.sum(relay.multiply(window, time), axis=[2])
    found = relay.sum(relay.reshape(sums, (batch, filters // rank, rank)), axis=[2])
    if bias is not None:
        found = relay.nn.bias_add(found, bias, axis=-1)
    return ctx.activated(found, fused_activation_function)


_PLAIN: dict[int, Literal["affine", "relu", "tanh"]] = {0: "affine", 1: "relu", 4: "tanh"}
"""Activations of plain recurrent layers."""


def _plain(
    ctx: Import, x: Expr, weights: Expr, recurrent: Expr, bias: Expr, state: Expr, function: int,
    layout: Layout,
) -> tuple[Expr, Expr]:  # fmt: skip
    """Return the outputs of all steps, and the state behind the last."""
    if function not in _PLAIN:
        raise Unsupported(f"a recurrent layer of the activation {function}")
    hidden = ctx.static_shape(state, 2)[1]
    both = relay.concatenate([bias, ctx.const(zeros(hidden), ctx.type(bias).dtype)], axis=0)
    steps, last = relay.serde.rnn(
        x, relay.expand_dims(weights, axis=0), relay.expand_dims(recurrent, axis=0),
        relay.expand_dims(both, axis=0), None, direction_of(state, layout), hidden_size=hidden,
        layout=layout, activations=(_PLAIN[function],),
        activation_alpha=(1.0,) if function == 0 else (),
        activation_beta=(0.0,) if function == 0 else (),
    )  # fmt: skip
    axis, where = (1, 0) if layout == "TNC" else (2, 1)
    return relay.squeeze(steps, axis=[axis]), relay.squeeze(last, axis=[where])


@OPS.imports("RNN", ignored=("asymmetric_quantize_inputs",))
def import_rnn(
    ctx: Import, x: Expr, weights: Expr, recurrent: Expr, bias: Expr, state: Expr,
    *, fused_activation_function: int = 0,
) -> Expr:  # fmt: skip
    step, function = relay.expand_dims(x, axis=0), fused_activation_function
    found, last = _plain(ctx, step, weights, recurrent, bias, state, function, "TNC")
    ctx.update(4, last)
    return relay.squeeze(found, axis=[0])


@OPS.imports("UNIDIRECTIONAL_SEQUENCE_RNN", ignored=("asymmetric_quantize_inputs",))
def import_sequence_rnn(
    ctx: Import, x: Expr, weights: Expr, recurrent: Expr, bias: Expr, state: Expr,
    *, time_major: bool = False, fused_activation_function: int = 0,
) -> Expr:  # fmt: skip
    layout: Layout = "TNC" if time_major else "NTC"
    parts = (x, weights, recurrent, bias, state, fused_activation_function, layout)
    found, last = _plain(ctx, *parts)
    ctx.update(4, last)
    return found


@OPS.imports("BIDIRECTIONAL_SEQUENCE_RNN", ignored=("asymmetric_quantize_inputs",))
def import_bidirectional_rnn(
    ctx: Import,
    x: Expr,
    *operands: Expr | None,
    time_major: bool = False,
    fused_activation_function: int = 0,
    merge_outputs: bool = False,
) -> Sequence[Expr]:
    """Four operands for each direction: both weights, the bias and the state."""
    known = [each for each in operands if each is not None]
    if len(known) != 8 or list(operands[:8]) != known:
        raise Unsupported("an auxiliary input, or an operand that is left out")
    layout: Layout = "TNC" if time_major else "NTC"

    def run(number: int, entering: Expr) -> Expr:
        weights, recurrent, bias, state = known[4 * number : 4 * number + 4]
        parts = (entering, weights, recurrent, bias, state, fused_activation_function, layout)
        found, last = _plain(ctx, *parts)
        ctx.update(4 + 4 * number, last)
        return found

    return in_both_directions(x, layout, merge_outputs, run)


def _is_rnn(node: Call) -> bool:
    return are_fused(node, ("tanh",), ("relu",))


@OPS.exports("serde.rnn", when=_is_rnn)
def export_rnn(
    ctx: Export, data: Value, input_weight: Value, recurrent_weight: Value, bias: Value | None,
    sequence_lens: Value | None, initial_h: Value | None,
    *, layer: RecurrentLayer,
) -> tuple[Value, ...]:  # fmt: skip
    """Likewise."""
    size = layer.hidden_size
    function = 1 if "relu" in layer.activations else TANH
    columns: list[list[Value]] = [[], []]
    for number in range(ctx.static_shape(input_weight)[0]):
        weights = [
            cut(ctx, each, number, 0, size=size) for each in (input_weight, recurrent_weight)
        ]
        total = cut(ctx, bias, number, 0, 1, size=size) or ctx.const(zeros(size), "float32")
        rest = [*weights, total, state_of(ctx, initial_h, number, layer, size)]
        op, options = "UNIDIRECTIONAL_SEQUENCE_RNN", {"fused_activation_function": function}
        found = written(ctx, op, data, rest, layer, number, size, **options)
        for column, each in zip(columns, found, strict=True):
            column.append(each)
    return joined(ctx, layer, *columns)

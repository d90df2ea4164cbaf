"""The gated recurrent unit."""

from __future__ import annotations

import numpy as np

from serde.relay.ir import Array, Expr, call, const, ranges, relay_op, sample, tensor, widen
from serde.relay.ir.traits import InRange
from serde.relay.ir.work import STEPS
from serde.relay.op.recurrent import layer, unrolling
from serde.relay.op.recurrent.gates import RecurrentLayer

_DEFAULTS = ("sigmoid", "tanh")


def _rows(data: Expr, begin: int, end: int) -> Expr:
    return call("strided_slice", data, begin=(begin,), end=(end,), strides=(1,), axes=(0,))


def _decompose_gru(
    data: Expr, input_weight: Expr, recurrent_weight: Expr, bias: Expr | None,
    sequence_lens: Expr | None, initial_h: Expr | None,
    *, recurrent: RecurrentLayer, linear_before_reset: bool,
) -> Expr:  # fmt: skip
    """Update and reset gate share a product; the hidden gate has its own."""
    gates, size = recurrent.gates(_DEFAULTS), recurrent.hidden_size
    biases = unrolling.split_bias(bias)
    gated, hidden, parts = [], [], []
    for number in range(len(gates)):
        weight = unrolling.take_direction(recurrent_weight, number)
        gated.append(_rows(weight, 0, 2 * size))
        hidden.append(_rows(weight, 2 * size, 3 * size))
        if biases is not None:
            row = unrolling.take_direction(biases[1], number)
            parts.append([_rows(row, 0, 2 * size), _rows(row, 2 * size, 3 * size)])

    def multiply(number: int, state: Expr, part: int) -> Expr:
        product = unrolling.dense(state, (gated, hidden)[part][number])
        return call("add", product, parts[number][part]) if parts else product

    def step(number: int, entering: Expr, states: tuple[Expr, ...]) -> tuple[Expr, ...]:
        f, g = gates[number]
        (state,) = states
        update_in, reset_in, hidden_in = unrolling.split_columns(entering, 3)
        update_state, reset_state = unrolling.split_columns(multiply(number, state, 0), 2)
        update = f.expression(call("add", update_in, update_state))
        reset = f.expression(call("add", reset_in, reset_state))
        if linear_before_reset:
            linear: Expr = call("multiply", reset, multiply(number, state, 1))
        else:
            linear = multiply(number, call("multiply", reset, state), 1)
        candidate = g.expression(call("add", hidden_in, linear))
        rest = call("subtract", const(1.0, unrolling.dtype_of(update)), update)
        kept = call("multiply", update, state)
        return (call("add", call("multiply", rest, candidate), kept),)

    return unrolling.unroll(
        data, input_weight, None if biases is None else biases[0], sequence_lens,
        [(initial_h, recurrent.hidden_size)], step, recurrent,
    )  # fmt: skip


@relay_op(
    "serde.gru",
    traits=(STEPS, InRange(ranges.sequence_lengths)),
    infer=layer.relation(3, _DEFAULTS),
    complete=layer.completion(3),
    decompose=_decompose_gru,
    samples=[
        sample((3, 2, 4), (1, 15, 4), (1, 15, 5), hidden_size=5),
        sample(
            (3, 2, 4),
            (2, 15, 4),
            (2, 15, 5),
            (2, 30),
            tensor((2,), "int32", low=1, high=3),
            (2, 2, 5),
            hidden_size=5,
            direction="bidirectional",
            linear_before_reset=True,
        ),
        sample(
            (2, 3, 4),
            (1, 15, 4),
            (1, 15, 5),
            (1, 30),
            None,
            (2, 1, 5),
            hidden_size=5,
            direction="reverse",
            activations=("hard_sigmoid", "softsign"),
            activation_alpha=(0.25, 0.0),
            activation_beta=(0.625, 0.0),
            clip=1.25,
            layout="NTC",
        ),
    ],
)
def gru(
    data: Array, input_weight: Array, recurrent_weight: Array, bias: Array | None,
    sequence_lens: Array | None, initial_h: Array | None,
    *, recurrent: RecurrentLayer, linear_before_reset: bool = False,
) -> tuple[Array, Array]:  # fmt: skip
    """One layer of gated recurrent units.

    With f and g the activations, as ONNX has it::

        z = f(X @ Wz.T + H @ Rz.T + Wbz + Rbz)
        r = f(X @ Wr.T + H @ Rr.T + Wbr + Rbr)
        h = g(X @ Wh.T + (r * H) @ Rh.T + Rbh + Wbh)
        H = (1 - z) * h + z * H

    With `linear_before_reset`, as cuDNN, PyTorch and MXNet have it::

        h = g(X @ Wh.T + r * (H @ Rh.T + Rbh) + Wbh)

    Args:
        data: Sequences: (time, batch, input), or (batch, time, input) for the layout NTC.
        input_weight: W of update, reset and hidden gate, (directions, 3 hidden, input).
        recurrent_weight: R likewise, (directions, 3 hidden, hidden).
        bias: Wb of the gates and then Rb, (directions, 6 hidden).
        sequence_lens: Length of each sequence; outputs beyond it are zero, and all of an empty one.
        initial_h: H before the first step, (directions, batch, hidden), or batch first.
        recurrent: What the layers share; the functions of a direction are f and g.
        linear_before_reset: Whether the reset gate acts after the product.

    Returns:
        The outputs, (time, directions, batch, hidden) or (batch, time, directions, hidden),
        and the final H, shaped as `initial_h`.
    """
    gates = recurrent.gates(_DEFAULTS)
    weights = widen(recurrent_weight)
    entering_bias, recurrent_bias = layer.split_bias(bias) or (None, None)
    if recurrent_bias is None:
        recurrent_bias = np.zeros(weights.shape[:2], weights.dtype)
    cut = 2 * recurrent.hidden_size

    def step(number: int, entering: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        f, g = gates[number]
        (state,) = states
        weight, row = weights[number], recurrent_bias[number]
        linear = entering[:, :cut] + state @ weight[:cut].T + row[:cut]
        update, reset = np.split(f.values(linear), 2, axis=1)
        if linear_before_reset:
            linear = reset * (state @ weight[cut:].T + row[cut:])
        else:
            linear = (reset * state) @ weight[cut:].T + row[cut:]
        return ((1 - update) * g.values(entering[:, cut:] + linear) + update * state,)

    every, final = layer.walk(
        data, input_weight, entering_bias, sequence_lens, [(initial_h, recurrent.hidden_size)],
        step, recurrent,
    )  # fmt: skip
    return every, final

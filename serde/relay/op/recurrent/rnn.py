"""The plain recurrent layer."""

from __future__ import annotations

from serde.relay.ir import Array, Expr, InRange, call, ranges, relay_op, sample, tensor, widen
from serde.relay.ir.work import STEPS
from serde.relay.op.recurrent import layer, unrolling
from serde.relay.op.recurrent.gates import RecurrentLayer

_DEFAULTS = ("tanh",)


def _decompose_rnn(
    data: Expr, input_weight: Expr, recurrent_weight: Expr, bias: Expr | None,
    sequence_lens: Expr | None, initial_h: Expr | None,
    *, recurrent: RecurrentLayer,
) -> Expr:  # fmt: skip
    """Biases of input and state are added before the walk."""
    gates = recurrent.gates(_DEFAULTS)
    weights = [unrolling.take_direction(recurrent_weight, number) for number in range(len(gates))]
    biases = unrolling.split_bias(bias)

    def step(number: int, entering: Expr, states: tuple[Expr, ...]) -> tuple[Expr, ...]:
        total = call("add", entering, unrolling.dense(states[0], weights[number]))
        return (gates[number][0].expression(total),)

    return unrolling.unroll(
        data, input_weight, None if biases is None else call("add", *biases), sequence_lens,
        [(initial_h, recurrent.hidden_size)], step, recurrent,
    )  # fmt: skip


@relay_op(
    "serde.rnn",
    traits=(STEPS, InRange(ranges.sequence_lengths)),
    infer=layer.relation(1, _DEFAULTS),
    complete=layer.completion(1),
    decompose=_decompose_rnn,
    samples=[
        sample((3, 2, 4), (1, 5, 4), (1, 5, 5), hidden_size=5),
        sample(
            (3, 2, 4),
            (2, 5, 4),
            (2, 5, 5),
            (2, 10),
            tensor((2,), "int32", low=1, high=3),
            (2, 2, 5),
            hidden_size=5,
            direction="bidirectional",
            activations=("relu", "sigmoid"),
            clip=0.75,
        ),
        sample(
            (2, 3, 4),
            (1, 5, 4),
            (1, 5, 5),
            (1, 10),
            None,
            (2, 1, 5),
            hidden_size=5,
            direction="reverse",
            layout="NTC",
        ),
    ],
)
def rnn(
    data: Array, input_weight: Array, recurrent_weight: Array, bias: Array | None,
    sequence_lens: Array | None, initial_h: Array | None,
    *, recurrent: RecurrentLayer,
) -> tuple[Array, Array]:  # fmt: skip
    """One plain recurrent layer: ``H = f(X @ W.T + H @ R.T + Wb + Rb)``, with f the activation.

    Args:
        data: Sequences: (time, batch, input), or (batch, time, input) for the layout NTC.
        input_weight: W, (directions, hidden, input).
        recurrent_weight: R, (directions, hidden, hidden).
        bias: Wb and then Rb, (directions, 2 hidden).
        sequence_lens: Length of each sequence; outputs beyond it are zero, and all of an empty one.
        initial_h: H before the first step, (directions, batch, hidden), or batch first.
        recurrent: What the layers share; the functions of a direction are f.

    Returns:
        The outputs, (time, directions, batch, hidden) or (batch, time, directions, hidden),
        and the final H, shaped as `initial_h`.
    """
    gates = recurrent.gates(_DEFAULTS)
    weights = widen(recurrent_weight)
    biases = layer.split_bias(bias)

    def step(number: int, entering: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        return (gates[number][0].values(entering + states[0] @ weights[number].T),)

    every, final = layer.walk(
        data, input_weight, None if biases is None else biases[0] + biases[1], sequence_lens,
        [(initial_h, recurrent.hidden_size)], step, recurrent,
    )  # fmt: skip
    return every, final

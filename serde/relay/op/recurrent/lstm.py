"""The long short-term memory."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, InRange, TensorType, const, ranges, widen
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.work import STEPS
from serde.relay.op.recurrent import layer, unrolling
from serde.relay.op.recurrent.gates import RecurrentLayer, count_directions

_DEFAULTS = ("sigmoid", "tanh", "tanh")


def _lstm_type(
    data: TensorType, input_weight: TensorType, recurrent_weight: TensorType,
    bias: TensorType | None, sequence_lens: TensorType | None, initial_h: TensorType | None,
    initial_c: TensorType | None, peephole: TensorType | None, projection: TensorType | None,
    *, recurrent: RecurrentLayer, input_forget: bool, cell_clip: tuple[float, float] | None,
) -> tuple[TensorType, ...]:  # fmt: skip
    """A projection makes the output as wide as it has rows."""
    recurrent.gates(_DEFAULTS)
    if cell_clip is not None and cell_clip[0] > cell_clip[1]:
        raise TypeInferenceError(f"cell_clip {cell_clip}: the bounds are not in order")
    directions = count_directions(recurrent.direction)
    output: Dim = recurrent.hidden_size
    if projection is not None:
        if projection.rank != 3:
            raise TypeInferenceError(f"expected a projection of rank 3, found {projection!r}")
        output = projection.shape[1]
        wanted = (directions, output, recurrent.hidden_size)
        layer.require_shape("projection", projection, wanted, data)
    types = layer.layer_types(
        data, input_weight, recurrent_weight, bias, sequence_lens,
        [("initial_h", initial_h, output), ("initial_c", initial_c, recurrent.hidden_size)], 4,
        recurrent,
    )  # fmt: skip
    layer.require_shape("peephole", peephole, (directions, 3 * recurrent.hidden_size), data)
    return types


def _complete_lstm(*given: TensorType | None, hidden_size: int, **attrs: AnyValue) -> layer.Types:
    projection = given[8]
    if projection is not None and not isinstance(projection, TensorType):
        projection = None
    output = projection.shape[1] if projection is not None else hidden_size
    return layer.complete(given, 4, hidden_size, output, attrs["direction"])


def _decompose_lstm(
    data: Expr, input_weight: Expr, recurrent_weight: Expr, bias: Expr | None,
    sequence_lens: Expr | None, initial_h: Expr | None, initial_c: Expr | None,
    peephole: Expr | None, projection: Expr | None,
    *, recurrent: RecurrentLayer, input_forget: bool, cell_clip: tuple[float, float] | None,
) -> Expr:  # fmt: skip
    """The four gates of a step share one product with the state."""
    gates = recurrent.gates(_DEFAULTS)
    numbers = range(len(gates))
    biases = unrolling.split_bias(bias)
    weights = [unrolling.take_direction(recurrent_weight, number) for number in numbers]
    holes: list[list[Expr]] = []
    if peephole is not None:
        holes = [
            unrolling.split_columns(unrolling.take_direction(peephole, number), 3)
            for number in numbers
        ]
    shrink = None
    if projection is not None:
        shrink = [unrolling.take_direction(projection, number) for number in numbers]

    def peeped(linear: Expr, cell: Expr, number: int, part: int) -> Expr:
        if not holes:
            return linear
        return call("add", linear, call("multiply", cell, holes[number][part]))

    def step(number: int, entering: Expr, states: tuple[Expr, ...]) -> tuple[Expr, ...]:
        f, g, h = gates[number]
        state, cell = states
        linear = call("add", entering, unrolling.dense(state, weights[number]))
        taken, given, kept, new = unrolling.split_columns(linear, 4)
        take = f.expression(peeped(taken, cell, number, 0))
        if input_forget:
            keep: Expr = call("subtract", const(1.0, unrolling.dtype_of(take)), take)
        else:
            keep = f.expression(peeped(kept, cell, number, 2))
        fresh = call("multiply", take, g.expression(new))
        cell = call("add", call("multiply", keep, cell), fresh)
        if cell_clip is not None:
            cell = call("clip", cell, a_min=cell_clip[0], a_max=cell_clip[1])
        give = f.expression(peeped(given, cell, number, 1))
        state = call("multiply", give, h.expression(cell))
        if shrink is not None:
            state = unrolling.dense(state, shrink[number])
        return state, cell

    output = recurrent.hidden_size if projection is None else unrolling.shape_of(projection)[1]
    return unrolling.unroll(
        data, input_weight, None if biases is None else call("add", *biases), sequence_lens,
        [(initial_h, output), (initial_c, recurrent.hidden_size)], step, recurrent,
    )  # fmt: skip


@relay_op(
    "serde.lstm",
    traits=(STEPS, InRange(ranges.sequence_lengths)),
    infer=_lstm_type,
    complete=_complete_lstm,
    decompose=_decompose_lstm,
    samples=[
        sample((3, 2, 4), (1, 20, 4), (1, 20, 5), hidden_size=5),
        sample(
            (3, 2, 4),
            (2, 20, 4),
            (2, 20, 5),
            (2, 40),
            tensor((2,), "int32", low=1, high=3),
            (2, 2, 5),
            (2, 2, 5),
            (2, 15),
            hidden_size=5,
            direction="bidirectional",
        ),
        sample(
            (2, 3, 4),
            (1, 20, 4),
            (1, 20, 5),
            (1, 40),
            None,
            (2, 1, 5),
            (2, 1, 5),
            hidden_size=5,
            direction="reverse",
            activations=("hard_sigmoid", "softsign", "relu"),
            clip=1.25,
            layout="NTC",
            input_forget=True,
        ),
        sample(
            (3, 2, 4),
            (2, 20, 4),
            (2, 20, 3),
            (2, 40),
            None,
            None,
            None,
            None,
            (2, 3, 5),
            hidden_size=5,
            direction="bidirectional",
            cell_clip=(-0.5, 0.25),
        ),
    ],
)
def lstm(
    data: Array, input_weight: Array, recurrent_weight: Array, bias: Array | None,
    sequence_lens: Array | None, initial_h: Array | None, initial_c: Array | None,
    peephole: Array | None, projection: Array | None,
    *, recurrent: RecurrentLayer, input_forget: bool = False,
    cell_clip: tuple[float, float] | None = None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """One layer of long short-term memory.

    With f, g and h the activations, as ONNX has it::

        i = f(X @ Wi.T + H @ Ri.T + Pi * C + Wbi + Rbi)
        f = f(X @ Wf.T + H @ Rf.T + Pf * C + Wbf + Rbf)
        c = g(X @ Wc.T + H @ Rc.T + Wbc + Rbc)
        C = f * C + i * c
        o = f(X @ Wo.T + H @ Ro.T + Po * C + Wbo + Rbo)
        H = o * h(C)

    A `projection` makes it ``H = (o * h(C)) @ projection.T``.

    Args:
        data: Sequences: (time, batch, input), or (batch, time, input) for the layout NTC.
        input_weight: W of input, output, forget and cell gate, (directions, 4 hidden, input).
        recurrent_weight: R likewise, (directions, 4 hidden, output).
        bias: Wb of the gates and then Rb, (directions, 8 hidden).
        sequence_lens: Length of each sequence; outputs beyond it are zero, and all of an empty one.
        initial_h: H before the first step, (directions, batch, output), or batch first.
        initial_c: C before the first step, (directions, batch, hidden), or batch first.
        peephole: P of input, output and forget gate, (directions, 3 hidden).
        projection: Weight that makes the output from the hidden elements, (directions, output,
            hidden); without it they are the output.
        recurrent: What the layers share; the functions of a direction are f, g and h.
        input_forget: Whether the forget gate is one minus the input gate.
        cell_clip: Bounds of C itself.

    Returns:
        The outputs, (time, directions, batch, output) or (batch, time, directions, output),
        and the final H and C, shaped as `initial_h` and `initial_c`.
    """
    gates = recurrent.gates(_DEFAULTS)
    weights = widen(recurrent_weight)
    biases = layer.split_bias(bias)
    if peephole is None:
        peephole = np.zeros((weights.shape[0], 3 * recurrent.hidden_size), weights.dtype)
    holes = widen(peephole).reshape(-1, 3, recurrent.hidden_size)

    def step(number: int, entering: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        f, g, h = gates[number]
        state, cell = states
        linear = np.split(entering + state @ weights[number].T, 4, axis=1)
        take = f.values(linear[0] + holes[number, 0] * cell)
        keep = 1 - take if input_forget else f.values(linear[2] + holes[number, 2] * cell)
        cell = keep * cell + take * g.values(linear[3])
        if cell_clip is not None:
            cell = np.clip(cell, *cell_clip).astype(cell.dtype, copy=False)
        give = f.values(linear[1] + holes[number, 1] * cell)
        state = give * h.values(cell)
        return (state if projection is None else state @ widen(projection[number]).T), cell

    output = recurrent.hidden_size if projection is None else projection.shape[1]
    every, final_h, final_c = layer.walk(
        data, input_weight, None if biases is None else biases[0] + biases[1], sequence_lens,
        [(initial_h, output), (initial_c, recurrent.hidden_size)], step, recurrent,
    )  # fmt: skip
    return every, final_h, final_c

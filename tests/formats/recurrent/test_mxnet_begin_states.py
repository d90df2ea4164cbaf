"""Loops whose states begin as zeros for a batch that only MXNet's inference finds."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError

mx = import_mxnet()
sym, rnn, contrib = mx.sym, mx.gluon.rnn, mx.gluon.contrib.rnn

# Products of up to 27 terms, added up in another order, three to six times over.
TOLERANCE = 1e-5

FORMS = {"batch": (3, "batch", 4), "time": ("time", 2, 4), "both": ("time", "batch", 4)}

CELLS: dict[str, Callable[[], Any]] = {
    "rnn": lambda: rnn.RNNCell(5, input_size=4),
    "lstm": lambda: rnn.LSTMCell(5, input_size=4),
    "gru": lambda: rnn.GRUCell(5, input_size=4),
    "projected": lambda: contrib.LSTMPCell(6, 3, input_size=4),
    "residual": lambda: rnn.ResidualCell(rnn.GRUCell(4, input_size=4)),
    "zoneout": lambda: rnn.ZoneoutCell(rnn.LSTMCell(5, input_size=4), 0.2, 0.2),
}


def group(outputs: Any, states: Any) -> Any:
    return sym.Group([outputs, *states])


def begin(cell: Any) -> Any:
    return cell.begin_state(func=sym.zeros, batch_size=0)


def drawn(symbol: Any, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Values of all variables: inputs of the shapes given, and weights, which note theirs."""
    rng, noted = np.random.default_rng(1), symbol.attr_dict()
    values = {}
    for name in symbol.list_arguments():
        shape = shapes.get(name) or ast.literal_eval(noted[name]["__shape__"])
        values[name] = (rng.normal(size=shape) * 0.5).astype(np.float32)
    return values


def unrolled(cell: Any, steps: str = "x") -> Any:
    return group(*sym.contrib.foreach(cell, sym.var(steps), begin(cell)))


@pytest.mark.wide
@pytest.mark.parametrize("form", [None, *FORMS])
@pytest.mark.parametrize("cell", CELLS)
def test_cell_in_a_loop(cell: str, form: str | None) -> None:
    symbol = unrolled(CELLS[cell]())
    shapes = {"x": FORMS[form]} if form else None
    agree(symbol, drawn(symbol, x=(3, 2, 4)), tolerance=TOLERANCE, shapes=shapes)


def stacked() -> Any:
    cells = rnn.SequentialRNNCell()
    for cell in (
        rnn.LSTMCell(4, input_size=4),
        rnn.ResidualCell(rnn.GRUCell(4, input_size=4)),
        rnn.RNNCell(3, input_size=4),
    ):
        cells.add(cell)
    return unrolled(cells)


def one_behind_the_other() -> Any:
    outputs, _ = sym.contrib.foreach(
        (first := rnn.LSTMCell(4, input_size=4)), sym.var("x"), begin(first)
    )
    return group(*sym.contrib.foreach((cell := rnn.GRUCell(3, input_size=4)), outputs, begin(cell)))


def concatenated() -> Any:
    """A cell that joins input and state, as attention does with what it looked at."""

    def body(x: Any, states: list[Any]) -> Any:
        joined = sym.FullyConnected(
            sym.Concat(states[0], x, dim=1), sym.var("w", shape=(5, 9)), no_bias=True, num_hidden=5
        )
        return sym.tanh(joined), [sym.tanh(joined)]

    return group(*sym.contrib.foreach(body, sym.var("x"), [sym.zeros((0, 5))]))


def captured() -> Any:
    zeros = sym.ones((0, 4))
    return group(*sym.contrib.foreach(lambda x, s: (x + zeros, [s[0] * x]), sym.var("x"), [zeros]))


def found_around() -> Any:
    """The body tells nothing of the state, what follows the loop does."""
    outputs, states = sym.contrib.foreach(
        lambda x, s: (sym.tanh(x), [s[0] * 2 + 1]), sym.var("x"), [sym.zeros((0, 5))]
    )
    return sym.Group([outputs, states[0] + sym.var("y")])


def used_before() -> Any:
    """What is made of the state in front of the loop is of the batch too."""
    state = sym.zeros((0, 4))
    before = sym.concat(sym.cos(state), sym.exp(state), dim=1)
    outputs, states = sym.contrib.foreach(lambda x, s: (s[0], [s[0] + x]), sym.var("x"), [state])
    return sym.Group([before, outputs, *states])


def reshaped() -> Any:
    """The state meets the slices in another form than it enters in."""
    return group(
        *sym.contrib.foreach(
            lambda x, s: (sym.expand_dims(s[0], 1) + sym.expand_dims(x, 1), [s[0] * 0.5 + 1]),
            sym.var("x"),
            [sym.zeros((0, 4))],
        )
    )


def compared() -> Any:
    """Operators that need equal shapes, beside the arithmetic ones."""

    def body(x: Any, states: list[Any]) -> Any:
        larger = states[0] > x
        return larger, [sym.where(larger, states[1], x), x + states[1]]

    return group(*sym.contrib.foreach(body, sym.var("x"), [sym.zeros((0, 4)), sym.ones((0, 4))]))


SINGLE: dict[str, Callable[[], Any]] = {
    "stacked": stacked,
    "one behind the other": one_behind_the_other,
    "concatenated": concatenated,
    "captured": captured,
    "used before": used_before,
    "reshaped": reshaped,
    "compared": compared,
}


@pytest.mark.wide
@pytest.mark.parametrize("form", [None, *FORMS])
@pytest.mark.parametrize("build", SINGLE)
def test_loop(build: str, form: str | None) -> None:
    symbol = SINGLE[build]()
    shapes = {"x": FORMS[form]} if form else None
    agree(symbol, drawn(symbol, x=(3, 2, 4)), tolerance=TOLERANCE, shapes=shapes)


@pytest.mark.parametrize("batch", [2, "batch"])
def test_state_that_only_the_graph_around_tells_of(batch: int | str) -> None:
    symbol = found_around()
    agree(symbol, drawn(symbol, x=(3, 7, 4), y=(2, 5)), shapes={"y": (batch, 5)})


def nested(cell: Any) -> Any:
    """The state of the inner loop begins as that of the outer one."""

    def outer(x: Any, states: list[Any]) -> Any:
        return sym.contrib.foreach(cell, x, states)

    return group(*sym.contrib.foreach(outer, sym.var("x"), begin(cell)))


def fused_inside() -> Any:
    def body(x: Any, states: list[Any]) -> Any:
        weights = sym.var("w", shape=(220,))
        out, h, c = sym.RNN(
            x, weights, *states, state_size=5, num_layers=1, mode="lstm", state_outputs=True
        )
        return out, [h, c]

    return group(*sym.contrib.foreach(body, sym.var("x"), [sym.zeros((1, 0, 5)) for _ in "hc"]))


INNER: dict[str, Callable[[], Any]] = {
    "rnn": lambda: nested(rnn.RNNCell(4, input_size=4)),
    "lstm": lambda: nested(rnn.LSTMCell(4, input_size=4)),
    "gru": lambda: nested(rnn.GRUCell(4, input_size=4)),
    "fused": fused_inside,
}


@pytest.mark.wide
@pytest.mark.parametrize("batch", [2, "batch"])
@pytest.mark.parametrize("build", INNER)
def test_loop_in_a_loop(build: str, batch: int | str) -> None:
    symbol = INNER[build]()
    values = drawn(symbol, x=(3, 6, 2, 4))
    agree(symbol, values, tolerance=TOLERANCE, shapes={"x": (3, 6, batch, 4)})


@pytest.mark.wide
@pytest.mark.parametrize("batch", [2, "batch"])
@pytest.mark.parametrize("layout", ["TNC", "NTC"])
@pytest.mark.parametrize("lengths", [False, True])
def test_dynamic_unroll(lengths: bool, layout: str, batch: int | str) -> None:
    cell = rnn.LSTMCell(5, input_size=4)
    valid = {"valid_length": sym.var("lengths")} if lengths else {}
    symbol = group(
        *contrib.rnn_cell.dynamic_unroll(cell, sym.var("x"), begin(cell), layout=layout, **valid)
    )
    shape = (3, batch, 4) if layout == "TNC" else (batch, 3, 4)
    values = drawn(symbol, x=tuple(2 if each == batch else each for each in shape), lengths=(2,))
    if lengths:
        values["lengths"] = np.array([3, 1], np.float32)
    shapes = {"x": shape, "lengths": (batch,)} if lengths else {"x": shape}
    agree(symbol, values, tolerance=TOLERANCE, shapes=shapes)


@pytest.mark.parametrize("batch", [2, "batch"])
def test_convolutional_cell_in_a_loop(batch: int | str) -> None:
    symbol = unrolled(contrib.Conv2DGRUCell((3, 6, 5), 4, 3, 3, i2h_pad=1))
    values = drawn(symbol, x=(3, 2, 3, 6, 5))
    agree(symbol, values, tolerance=TOLERANCE, shapes={"x": (3, batch, 3, 6, 5)})


def test_begin_states_of_a_while_loop_are_refused_as_mxnet_refuses_them() -> None:
    outputs, states = sym.contrib.while_loop(
        lambda x, s: sym.sum(x) < 3,
        lambda x, s: (s * 2, [x + 1, s + x]),
        [sym.var("x"), sym.zeros((0, 4))],
        max_iterations=4,
    )
    symbol = sym.Group([outputs, *states])
    x = np.ones((2, 4), np.float32) / 8
    with pytest.raises(mx.MXNetError, match="negative value -1"):
        symbol.bind(mx.cpu(), {"x": mx.nd.array(x)}).forward()
    with pytest.raises(UnsupportedModelError, match="_while_loop"):
        serde.to_relay(symbol, input_shapes={"x": x.shape})


def loops_in_loops(depth: int) -> Any:
    """A loop in a loop in a loop, each with a state of its own that begins in it."""

    def body(x: Any, states: list[Any], level: int) -> Any:
        state = states[0]
        if level:
            inner, _ = sym.contrib.foreach(
                lambda x, states: body(x, states, level - 1),
                sym.expand_dims(x, 0),
                [sym.zeros((0, 4))],
            )
            x = sym.reshape(inner, shape=(-3, 0))
        return x + state, [state + x]

    loop = sym.contrib.foreach(
        lambda x, states: body(x, states, depth), sym.var("x"), [sym.zeros((0, 4))]
    )
    return group(*loop)


@pytest.mark.wide
def test_many_loops_in_loops() -> None:
    """Were a body walked once for its lengths and once for its value, these would take days.

    MXNet runs no such body: there it wants the shapes of zeros.
    """
    model = serde.to_relay(loops_in_loops(25), input_shapes={"x": (3, "batch", 4)})
    assert str(model.main.body.type).count("batch") == 2

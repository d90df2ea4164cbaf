"""MXNet's recurrent layers: against MXNet itself, in the interpreter and in ONNX Runtime."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.oracle import run_mxnet
from support.runtime import run_onnx

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError
from serde.relay.run.interpreter import run

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
TIME, BATCH, INPUT, HIDDEN = 5, 3, 4, 6
JOINED = {"Reshape", "Concat"}
"""Weights have names of their own, and are joined into the operator's vector as Gluon does it."""

TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def _size(mode: str, layers: int, directions: int, projection: int | None) -> int:
    """Length of the parameter vector, after MXNet's documentation."""
    rows, output = GATES[mode] * HIDDEN, projection or HIDDEN
    total = 0
    for level in range(layers):
        width = INPUT if level == 0 else directions * output
        total += directions * (rows * (width + output) + 2 * rows + (projection or 0) * HIDDEN)
    return total


def _net(
    mx: Any, mode: str, layers: int, directions: int, projection: int | None = None, **attrs: Any
) -> tuple[Any, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A symbol of the operator, its parameters and its inputs."""
    draw = np.random.default_rng(layers + 10 * directions).normal
    names = ["data", "state", "cell"] if mode == "lstm" else ["data", "state"]
    variables = [mx.sym.Variable(name) for name in names]
    variables.insert(1, mx.sym.Variable("weights"))
    if attrs.get("use_sequence_length"):
        variables.append(mx.sym.Variable("lengths"))
    if projection is not None:
        attrs["projection_size"] = projection
    symbol = mx.sym.RNN(
        *variables,
        mode=mode,
        num_layers=layers,
        state_size=HIDDEN,
        bidirectional=directions == 2,
        name="layers",
        **attrs,
    )
    vector = draw(size=_size(mode, layers, directions, projection), scale=0.4)
    inputs = {
        "data": draw(size=(TIME, BATCH, INPUT)),
        "state": draw(size=(layers * directions, BATCH, projection or HIDDEN)),
        "cell": draw(size=(layers * directions, BATCH, HIDDEN)),
    }
    floats = {name: inputs[name].astype("float32") for name in names}
    if attrs.get("use_sequence_length"):
        floats["lengths"] = np.array([5, 2, 3], "float32")
    return symbol, {"weights": vector.astype("float32")}, floats


def _expected(
    mx: Any, symbol: Any, params: dict[str, np.ndarray], inputs: dict[str, np.ndarray]
) -> list[np.ndarray]:
    """What MXNet computes; with a projection it crashes unless the states are asked for."""
    attrs = symbol.attr_dict()["layers"]
    if "projection_size" not in attrs:
        return run_mxnet(symbol, {k: mx.nd.array(v) for k, v in params.items()}, inputs)
    values = {**inputs, **params}
    arrays = [mx.nd.array(values[name]) for name in symbol.list_inputs()]
    results = mx.nd.RNN(*arrays, **{**attrs, "state_outputs": True})
    return [each.asnumpy() for each in results][: len(symbol.list_outputs())]


def _files(mx: Any, symbol: Any, params: dict[str, np.ndarray], folder: Path) -> tuple[Path, Path]:
    paths = folder / "net-symbol.json", folder / "net-0000.params"
    symbol.save(str(paths[0]))
    mx.nd.save(str(paths[1]), {f"arg:{k}": mx.nd.array(v) for k, v in params.items()})
    return paths


def _converted(
    paths: tuple[Path, Path], inputs: dict[str, np.ndarray], folder: Path, **options: Any
) -> tuple[list[str], list[np.ndarray]]:
    shapes = options.pop("input_shapes", {name: value.shape for name, value in inputs.items()})
    target = serde.export_model(
        *paths, format="onnx", path=folder / "net.onnx", input_shapes=shapes, **options
    )
    return run_onnx(target, inputs)


def _assert_all_close(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, **TOLERANCE)


@pytest.mark.wide
@pytest.mark.parametrize("state_outputs", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(("mode", "projection"), [*((mode, None) for mode in GATES), ("lstm", 3)])
def test_operator(
    mx: Any,
    tmp_path: Path,
    mode: str,
    projection: int | None,
    directions: int,
    layers: int,
    state_outputs: bool,
) -> None:
    symbol, params, inputs = _net(
        mx, mode, layers, directions, projection, state_outputs=state_outputs, p=0.5
    )
    expected = _expected(mx, symbol, params, inputs)
    paths = _files(mx, symbol, params, tmp_path)
    names, found = _converted(paths, inputs, tmp_path)
    assert names == symbol.list_outputs()
    _assert_all_close(found, expected)


@pytest.mark.wide
@pytest.mark.parametrize("opset", [11, 14, 22])
@pytest.mark.parametrize("mode", list(GATES))
def test_symbolic_length_and_batch(mx: Any, tmp_path: Path, mode: str, opset: int) -> None:
    symbol, params, inputs = _net(mx, mode, 2, 2, state_outputs=True)
    expected = _expected(mx, symbol, params, inputs)
    paths = _files(mx, symbol, params, tmp_path)
    shapes = {"data": ("t", "n", INPUT), "state": (4, "n", HIDDEN), "cell": (4, "n", HIDDEN)}
    given = {name: shapes[name] for name in inputs}
    _, found = _converted(paths, inputs, tmp_path, input_shapes=given, opset=opset)
    _assert_all_close(found, expected)


@pytest.mark.wide
@pytest.mark.parametrize("layout", ["TNC", "NTC"])
@pytest.mark.parametrize("layer", ["RNN", "LSTM", "GRU"])
def test_gluon_layer_that_makes_its_states(
    mx: Any, tmp_path: Path, layer: str, layout: str
) -> None:
    net = getattr(mx.gluon.rnn, layer)(HIDDEN, 2, layout=layout, bidirectional=True, dropout=0.3)
    net.initialize(mx.init.Normal(0.4))
    draw = np.random.default_rng(3).normal
    x = draw(size=(TIME, BATCH, INPUT)).astype("float32")
    expected = net(mx.nd.array(x)).asnumpy()
    symbol = net(mx.sym.Variable("data"))
    params = {name: value.data().asnumpy() for name, value in net.collect_params().items()}
    paths = _files(mx, symbol, params, tmp_path)
    _, found = _converted(paths, {"data": x}, tmp_path)
    _assert_all_close(found, [expected])


def test_weights_become_weights(mx: Any, tmp_path: Path) -> None:
    net = mx.gluon.rnn.LSTM(HIDDEN, 2)
    net.initialize()
    net(mx.nd.zeros((TIME, BATCH, INPUT)))
    symbol = net(mx.sym.Variable("data"))
    params = {name: value.data().asnumpy() for name, value in net.collect_params().items()}
    paths = _files(mx, symbol, params, tmp_path)
    proto = serde.export_model(*paths, format="onnx", input_shapes={"data": (TIME, BATCH, INPUT)})
    kinds = {node.op_type for node in proto.graph.node}
    assert kinds <= {"LSTM", "Transpose", "Reshape"}
    assert [node.op_type for node in proto.graph.node].count("LSTM") == 2


def test_a_vector_joined_elsewhere_is_cut(mx: Any, tmp_path: Path) -> None:
    """The joints are not where the weights end."""
    symbol, params, inputs = _net(mx, "gru", 2, 2, state_outputs=True)
    expected = _expected(mx, symbol, params, inputs)
    parts = np.split(params["weights"], [7, 100, 101, 500])
    names = [f"part{index}" for index in range(len(parts))]
    vector = mx.sym.concat(*(mx.sym.Variable(name) for name in names), dim=0)
    joined = symbol(weights=vector)
    paths = _files(mx, joined, dict(zip(names, parts, strict=True)), tmp_path)
    _, found = _converted(paths, inputs, tmp_path)
    _assert_all_close(found, expected)


def _cell_step(gates: np.ndarray, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    i, f, c, o = np.split(gates, 4, axis=1)
    logistic = [1 / (1 + np.exp(-x)) for x in (i, f, o)]
    return logistic[1] * cell + logistic[0] * np.tanh(c), logistic[2], c


@pytest.mark.parametrize("bounds", [None, (-0.1, 0.2)])
@pytest.mark.parametrize("lengths", [None, [5, 2, 3]])
def test_what_only_a_gpu_runs(
    mx: Any, bounds: tuple[float, float] | None, lengths: list[int] | None
) -> None:
    """MXNet ignores lengths and bounds on a processor, so its documentation is written out."""
    attrs: dict[str, Any] = {"state_outputs": True}
    if bounds is not None:
        attrs |= {"lstm_state_clip_min": bounds[0], "lstm_state_clip_max": bounds[1]}
    if lengths is not None:
        attrs["use_sequence_length"] = True
    symbol, params, inputs = _net(mx, "lstm", 1, 1, **attrs)
    rows = 4 * HIDDEN
    cuts = np.cumsum([rows * INPUT, rows * HIDDEN, rows])
    w, r, b, c = np.split(params["weights"], cuts)
    state, cell = inputs["state"][0], inputs["cell"][0]
    outputs = []
    for place, x in enumerate(inputs["data"]):
        gates = x @ w.reshape(rows, -1).T + state @ r.reshape(rows, -1).T + b + c
        new, give, _ = _cell_step(gates, cell)
        new = new if bounds is None else np.clip(new, *bounds)
        inside = (np.array(lengths or [TIME] * BATCH) > place)[:, np.newaxis]
        outputs.append(np.where(inside, give * np.tanh(new), 0))
        state = np.where(inside, give * np.tanh(new), state)
        cell = np.where(inside, new, cell)
    shapes = {name: value.shape for name, value in inputs.items()}
    arrays = {"weights": mx.nd.array(params["weights"])}
    model = serde.to_relay(symbol, arrays, input_shapes=shapes)
    values = {**inputs, **params}
    found = run(model.main, [values[p.name_hint] for p in model.main.params])
    _assert_all_close(list(found), [np.stack(outputs), state[None], cell[None]])


def _refused() -> list[Any]:
    return [
        pytest.param("gru", {"lstm_state_clip_min": -1, "lstm_state_clip_max": 1}, "of mode gru"),
        pytest.param("lstm", {"lstm_state_clip_min": -1}, "from -1.0 to None"),
        pytest.param(
            "lstm",
            {"lstm_state_clip_min": -1, "lstm_state_clip_max": 1, "lstm_state_clip_nan": True},
            "lstm_state_clip_nan",
        ),
        pytest.param("gru", {"projection_size": 2}, "projection_size=2 of mode gru"),
    ]


@pytest.mark.parametrize(("mode", "attrs", "message"), _refused())
def test_what_has_no_counterpart(mx: Any, mode: str, attrs: dict[str, Any], message: str) -> None:
    symbol, params, inputs = _net(mx, mode, 1, 1, **attrs)
    shapes = {name: value.shape for name, value in inputs.items()}
    arrays = {"weights": mx.nd.array(params["weights"])}
    with pytest.raises(UnsupportedModelError, match=message):
        serde.to_relay(symbol, arrays, input_shapes=shapes)


@pytest.mark.parametrize("off", [-1, 1])
def test_a_vector_of_another_length_is_refused(mx: Any, off: int) -> None:
    symbol, params, inputs = _net(mx, "gru", 2, 2)
    shapes = {name: value.shape for name, value in inputs.items()}
    vector = np.resize(params["weights"], params["weights"].size + off)
    with pytest.raises(UnsupportedModelError, match="parameters"):
        serde.to_relay(symbol, {"weights": mx.nd.array(vector)}, input_shapes=shapes)


def _returned(
    symbol: Any, params: dict[str, np.ndarray], inputs: dict[str, np.ndarray], shapes: Any
) -> tuple[list[str], list[np.ndarray]]:
    """The operators of a net that went through Relay and back, and its outputs."""
    arrays = {name: mx_array(value) for name, value in params.items()}
    returned, values = serde.import_model(symbol, arrays, input_shapes=shapes)
    assert returned.list_outputs() == symbol.list_outputs()
    names = [node["op"] for node in json.loads(returned.tojson())["nodes"]]
    return [name for name in names if name != "null"], run_mxnet(returned, values, inputs)


def mx_array(value: np.ndarray) -> Any:
    """An array of MXNet."""
    return import_mxnet().nd.array(value)


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(("mode", "projection"), [*((mode, None) for mode in GATES), ("lstm", 3)])
def test_a_stack_comes_back_as_one(
    mx: Any, mode: str, projection: int | None, directions: int, layers: int
) -> None:
    symbol, params, inputs = _net(mx, mode, layers, directions, projection, state_outputs=True)
    expected = _expected(mx, symbol, params, inputs)
    shapes = {name: value.shape for name, value in inputs.items()}
    kinds, found = _returned(symbol, params, inputs, shapes)
    assert kinds.count("RNN") == 1
    assert set(kinds) <= {"RNN", "_copy", *JOINED}
    _assert_all_close(found, expected)


@pytest.mark.wide
@pytest.mark.parametrize("shape", [(TIME, BATCH, INPUT), ("t", "n", INPUT)])
@pytest.mark.parametrize("layout", ["TNC", "NTC"])
@pytest.mark.parametrize("layer", ["RNN", "LSTM", "GRU"])
def test_a_gluon_layer_comes_back(mx: Any, layer: str, layout: str, shape: Any) -> None:
    net = getattr(mx.gluon.rnn, layer)(HIDDEN, 2, layout=layout, bidirectional=True)
    net.initialize(mx.init.Normal(0.4))
    x = np.random.default_rng(3).normal(size=(TIME, BATCH, INPUT)).astype("float32")
    expected = net(mx.nd.array(x)).asnumpy()
    symbol = net(mx.sym.Variable("data"))
    params = {name: value.data().asnumpy() for name, value in net.collect_params().items()}
    kinds, found = _returned(symbol, params, {"data": x}, {"data": shape})
    assert kinds.count("RNN") == 1
    assert set(kinds) <= {"RNN", "transpose", "_zeros", "_copy", *JOINED}
    _assert_all_close(found, [expected])


def test_states_that_are_made_from_states_stay_apart(mx: Any) -> None:
    """An encoder's last state begins the decoder, which reads its outputs."""
    data = mx.sym.Variable("data")
    first, second = mx.sym.Variable("first"), mx.sym.Variable("second")
    begin = mx.sym.Variable("state")
    attrs = {"mode": "gru", "num_layers": 1, "state_size": HIDDEN, "state_outputs": True}
    encoder = mx.sym.RNN(data, first, begin, name="encoder", **attrs)
    decoder = mx.sym.RNN(encoder[0], second, encoder[1], name="decoder", **attrs)
    symbol = decoder[0]
    draw = np.random.default_rng(5).normal
    sizes = {"first": 3 * HIDDEN * (INPUT + HIDDEN + 2), "second": 3 * HIDDEN * (2 * HIDDEN + 2)}
    params = {name: draw(size=size, scale=0.4).astype("f") for name, size in sizes.items()}
    inputs = {
        "data": draw(size=(TIME, BATCH, INPUT)).astype("f"),
        "state": draw(size=(1, BATCH, HIDDEN)).astype("f"),
    }
    expected = run_mxnet(symbol, {k: mx.nd.array(v) for k, v in params.items()}, inputs)
    shapes = {name: value.shape for name, value in inputs.items()}
    kinds, found = _returned(symbol, params, inputs, shapes)
    assert kinds.count("RNN") == 2
    _assert_all_close(found, expected)

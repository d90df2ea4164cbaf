"""Recurrent layers of ONNX through Relay and back, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.onnx_suite import interpret
from support.runtime import open_session

import serde
from serde.errors import UnsupportedModelError

RNG = np.random.default_rng(11)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
HIDDEN = 3


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(0, 0.7, shape).astype(np.float32)


def model_of(op: str, opset: int, lengths: list[int] | None, **attrs: Any) -> onnx.ModelProto:
    """A layer over (4, 2, 5) with every optional input that it has."""
    both = 2 if attrs.get("direction") == "bidirectional" else 1
    rows = GATES[op] * HIDDEN
    tensors = {
        "w": floats(both, rows, 5),
        "r": floats(both, rows, HIDDEN),
        "b": floats(both, 2 * rows),
        "lengths": None if lengths is None else np.array(lengths, np.int32),
        "h": floats(both, 2, HIDDEN),
    }
    outputs = ["y", "y_h"]
    if op == "LSTM":
        tensors |= {"c": floats(both, 2, HIDDEN), "p": floats(both, 3 * HIDDEN)}
        outputs.append("y_c")
    names = ["x", *(name if x is not None else "" for name, x in tensors.items())]
    node = helper.make_node(op, names, outputs, hidden_size=HIDDEN, **attrs)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4, 2, 5])],
        [helper.make_tensor_value_info(y, onnx.TensorProto.FLOAT, None) for y in outputs],
        [numpy_helper.from_array(x, name) for name, x in tensors.items() if x is not None],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


CASES = [
    pytest.param("LSTM", {}, id="lstm"),
    pytest.param("LSTM", {"direction": "bidirectional", "clip": 0.5}, id="lstm clipped"),
    pytest.param("LSTM", {"direction": "reverse", "input_forget": 1}, id="lstm coupled"),
    pytest.param(
        "LSTM",
        {
            "activations": ["HardSigmoid", "LeakyRelu", "tanh"],
            "activation_alpha": [0.3, 0.125],
            "activation_beta": [0.4],
        },
        id="lstm activations",
    ),
    pytest.param("LSTM", {"activations": ["Sigmoid", "Elu", "Softsign"]}, id="lstm defaults"),
    pytest.param("GRU", {"direction": "bidirectional"}, id="gru"),
    pytest.param("GRU", {"linear_before_reset": 1}, id="gru linear"),
    pytest.param(
        "GRU",
        {"activations": ["Sigmoid", "ScaledTanh"], "activation_alpha": [1.5],
         "activation_beta": [0.5]},
        id="gru activations",
    ),
    pytest.param("RNN", {"direction": "bidirectional", "activations": ["Relu", "Tanh"]}, id="rnn"),
    pytest.param(
        "RNN",
        {"activations": ["ThresholdedRelu"], "activation_alpha": [0.25]},
        id="rnn thresholded",
    ),
]  # fmt: skip


@pytest.mark.parametrize("lengths", [None, [4, 2]])
@pytest.mark.parametrize(("op", "attrs"), CASES)
def test_layers(op: str, attrs: dict[str, Any], lengths: list[int] | None) -> None:
    model = model_of(op, 14, lengths, **attrs)
    given = {"x": floats(4, 2, 5)}
    expected = open_session(model.SerializeToString()).run(None, given)
    relay = serde.to_relay(model)
    again = serde.from_relay(relay, format="onnx", opset=14)
    assert [node.op_type for node in again.graph.node] == [op]
    second = open_session(again.SerializeToString()).run(None, given)
    for found in (interpret(relay, given), second):
        for wanted, value in zip(expected, found, strict=True):
            np.testing.assert_allclose(value, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("opset", [1, 7, 14, 22])
def test_every_version_means_the_same(op: str, opset: int) -> None:
    """ONNX Runtime runs version 14, from which the earlier ones differ in form only."""
    model = model_of(op, 14, [4, 2])
    given = {"x": floats(4, 2, 5)}
    expected = open_session(model.SerializeToString()).run(None, given)
    model.opset_import[0].version = opset
    if opset == 1:
        model.graph.node[0].attribute.append(helper.make_attribute("output_sequence", 1))
    for wanted, value in zip(expected, interpret(serde.to_relay(model), given), strict=True):
        np.testing.assert_allclose(value, wanted, 1e-5, 1e-6)


def test_the_state_alone() -> None:
    model = model_of("LSTM", 14, None)
    model.graph.node[0].output[0] = ""
    del model.graph.output[0]
    given = {"x": floats(4, 2, 5)}
    expected = open_session(model.SerializeToString()).run(None, given)
    for wanted, value in zip(expected, interpret(serde.to_relay(model), given), strict=True):
        np.testing.assert_allclose(value, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("attrs", "reason"),
    [
        ({"activations": ["Sigmoid", "Swish", "Tanh"]}, "activation 'Swish' is unknown"),
        ({"activation_alpha": [0.5]}, "1 alphas for 0 functions"),
        ({"activations": ["Sigmoid"]}, "expected 3 activations, found 1"),
    ],
)
def test_what_is_refused(attrs: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedModelError, match=reason):
        serde.to_relay(model_of("LSTM", 14, None, **attrs))

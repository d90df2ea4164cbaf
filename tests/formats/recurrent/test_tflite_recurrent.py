"""Recurrent layers as TFLite's own: what ONNX Runtime gives, in every run of one interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")
pytest.importorskip("onnxruntime")

import onnxruntime
from ai_edge_litert import interpreter

import serde
import serde.relay as relay
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call
from serde.tflite.codec import load

STEPS, BATCH, INPUTS, HIDDEN = 5, 2, 3, 4
CASES: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "lstm": ("lstm", {}, set()),
    "lstm with states": ("lstm", {}, {"initial_h", "initial_c", "bias"}),
    "lstm backwards": ("lstm", {"direction": "reverse"}, {"bias"}),
    "lstm both ways": ("lstm", {"direction": "bidirectional"}, {"bias", "initial_h"}),
    "lstm with peepholes": ("lstm", {}, {"bias", "peephole"}),
    "lstm batch first": ("lstm", {"layout": "NTC"}, {"bias", "initial_c"}),
    "rnn": ("rnn", {}, {"bias"}),
    "rnn of relu both ways": (
        "rnn", {"direction": "bidirectional", "activations": ("relu", "relu")}, {"initial_h"}
    ),
}  # fmt: skip
"""Operator, attributes, and which operands there are; states are inputs."""


def layer(kind: str, attrs: dict[str, Any], there: set[str]) -> RelayModel:
    rng = np.random.default_rng(5)
    gates, count = (4, 8) if kind == "lstm" else (1, 2)
    ways = 2 if attrs.get("direction") == "bidirectional" else 1
    last = attrs.get("layout") == "NTC"
    shape = (BATCH, STEPS, INPUTS) if last else (STEPS, BATCH, INPUTS)
    state = (BATCH, ways, HIDDEN) if last else (ways, BATCH, HIDDEN)
    inputs = [relay.var("x", shape=shape)]
    states = {}
    for name in ("initial_h", "initial_c"):
        if name in there:
            states[name] = relay.var(name, shape=state)
            inputs.append(states[name])

    def weight(*sizes: int) -> relay.Expr:
        return relay.const(rng.normal(size=(ways, *sizes)).astype("f4") * 0.6)

    operands = [
        inputs[0], weight(gates * HIDDEN, INPUTS), weight(gates * HIDDEN, HIDDEN),
        weight(count * HIDDEN) if "bias" in there else None, None, states.get("initial_h"),
    ]  # fmt: skip
    if kind == "lstm":
        holes = weight(3 * HIDDEN) if "peephole" in there else None
        operands += [states.get("initial_c"), holes, None]
    found = call(f"serde.{kind}", *operands, hidden_size=HIDDEN, **attrs)
    names = [f"y{i}" for i in range(2 + (kind == "lstm"))]
    body = relay.Tuple([relay.TupleGetItem(found, i) for i in range(len(names))])
    module = IRModule({"main": relay.Function(inputs, body)})
    given = tuple(each.name_hint for each in inputs)
    return RelayModel(module, {}, ModelMeta(given, tuple(names)))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["BUILTIN_REF", "AUTO"])
def test_a_layer_begins_anew_in_every_run(name: str, kind: str, tmp_path: Path) -> None:
    model = layer(*CASES[name])
    path = serde.export_model(model, format="tflite", path=tmp_path / "net.tflite")
    fused = [x.name for x in load(path).subgraphs[0].operators if "SEQUENCE" in x.name]
    assert len(fused) == 1 + ("both ways" in name)
    onnx = serde.export_model(model, format="onnx").SerializeToString()
    session = onnxruntime.InferenceSession(onnx, providers=["CPUExecutionProvider"])
    resolver = getattr(interpreter.OpResolverType, kind)
    lite = interpreter.Interpreter(str(path), experimental_op_resolver_type=resolver)
    runner = lite.get_signature_runner("serving_default")
    rng = np.random.default_rng(2)
    for _ in range(3):
        feeds = {x.name_hint: rng.normal(size=x.type.shape).astype("f4") for x in model.inputs()}
        expected, found = session.run(None, feeds), runner(**feeds)
        for i, each in enumerate(expected):
            np.testing.assert_allclose(found[f"y{i}"], each, rtol=1e-5, atol=1e-6)


def test_a_state_that_is_set_is_none_of_the_model(tmp_path: Path) -> None:
    model = layer("lstm", {}, {"bias", "initial_h"})
    path = serde.export_model(model, format="tflite", path=tmp_path / "net.tflite")
    again = serde.to_relay(path)
    assert (again.meta.inputs, again.meta.outputs) == (model.meta.inputs, model.meta.outputs)
    assert serde.convert(path, tmp_path / "net.onnx", check=True).passed


def test_states_stay_floats_where_a_net_is_quantised(tmp_path: Path) -> None:
    model, rng = layer("lstm", {}, {"bias", "initial_h"}), np.random.default_rng(3)
    samples = [
        {x.name_hint: rng.normal(size=x.type.shape).astype("f4") for x in model.inputs()}
        for _ in range(4)
    ]
    whole, path = tmp_path / "net.tflite", tmp_path / "small.tflite"
    serde.export_model(model, format="tflite", path=whole)
    serde.export_model(model, format="tflite", path=path, int8=True, calibration=samples)
    plain, small = (
        interpreter.Interpreter(str(each)).get_signature_runner("serving_default")
        for each in (whole, path)
    )
    for _ in range(2):
        expected, found = plain(**samples[0]), small(**samples[0])
        for name, each in expected.items():
            np.testing.assert_allclose(found[name], each, atol=0.05)

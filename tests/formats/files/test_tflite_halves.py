"""Weights of 16 bits in TFLite, which LiteRT makes floats of before it computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from support.differential_judges import JUDGES, evaluate

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.errors import UnsupportedModelError
from serde.relay.ir.expr import If
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.tflite.codec import load

RNG = np.random.default_rng(5)


def net(dtype: str) -> RelayModel:
    x = relay.var("x", shape=(1, 3, 8, 8), dtype=dtype)
    w = relay.var("w", shape=(64, 3, 3, 3), dtype=dtype)
    f = relay.var("f", shape=(32, 64), dtype=dtype)
    found = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=64))
    pooled = relay.reshape(relay.nn.global_avg_pool2d(found), (1, 64))
    body = relay.nn.dense(relay.add(pooled, relay.const(0.1, dtype)), f)
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, w, f], body)))
    draw = np.random.default_rng(7).normal
    weights = {"w": draw(size=(64, 3, 3, 3)), "f": draw(size=(32, 64))}
    params = {name: ArrayWeight(value.astype(dtype)) for name, value in weights.items()}
    return RelayModel(mod, params, ModelMeta(("x",), ("y",)))


def test_weights_stay_halves(tmp_path: Path) -> None:
    model, judge = net("float16"), JUDGES["tflite"]
    path = judge.write(model, tmp_path)
    graph = load(str(path)).subgraphs[0]
    stored = [each.values for each in graph.tensors if each.dtype == "float16"]
    assert len(stored) == 2
    assert [each.name for each in graph.operators].count("DEQUANTIZE") == 2
    assert path.stat().st_size < 0.6 * len(serde.export_model(net("float32"), format="tflite"))
    x = RNG.normal(size=(1, 3, 8, 8)).astype(np.float16)
    (found,) = judge.run(path, model, [x.astype(np.float32)])
    (expected,) = evaluate(model, {"x": x})
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=2e-2)
    wide = net("float32")
    halves = {k: ArrayWeight(v.array().astype(np.float32)) for k, v in model.params.items()}
    (exact,) = evaluate(wide.evolve(params=halves), {"x": x.astype(np.float32)})
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-3)


def test_branches_in_halves_are_refused() -> None:
    c, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(2,), dtype="float16")
    mod = relay.IRModule.from_expr(relay.Function([c, x], If(c, x, relay.exp(x))))
    model = RelayModel(relay.transform.InferType()(mod), {}, ModelMeta(("c", "x"), ("y",)))
    with pytest.raises(UnsupportedModelError, match="TFLite computes no float16"):
        serde.export_model(model, format="tflite")

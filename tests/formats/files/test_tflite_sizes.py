"""Values that lie beyond what a FlatBuffer can refer to, as in files above two gigabytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

import serde
import serde.relay as relay
from serde.relay.ir.module import IRModule
from serde.tflite import writer


def test_values_behind_the_flatbuffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteRT and serde find them, and labels behind them, by positions of 64 bits."""
    monkeypatch.setattr(writer, "_MOST", 0)
    rng = np.random.default_rng(1)
    x = relay.var("x", shape=(2, 5))
    weights = {"w": rng.normal(size=(7, 5)).astype("f4"), "b": rng.normal(size=7).astype("f4")}
    w, b = (relay.var(name, shape=value.shape) for name, value in weights.items())
    body = relay.nn.bias_add(relay.nn.dense(x, w), b)
    module = IRModule({"main": relay.Function([x, w, b], body)})
    path = tmp_path / "net.tflite"
    serde.export_model(
        module, weights, format="tflite", path=path, class_labels=[str(i) for i in range(7)]
    )
    feed = rng.normal(size=(2, 5)).astype("f4")
    expected = feed @ weights["w"].T + weights["b"]
    np.testing.assert_allclose(run_litert_file(path, feed), expected, rtol=1e-5)
    again = serde.to_relay(path)
    assert again.meta.labels == tuple(map(str, range(7)))
    found = {name: weight.array() for name, weight in again.params.items()}
    assert sorted(each.tobytes() for each in found.values()) == sorted(
        each.tobytes() for each in weights.values()
    )


def run_litert_file(path: Path, feed: np.ndarray) -> np.ndarray:
    """Run a file: bytes in memory would be copied without what lies behind the FlatBuffer."""
    from ai_edge_litert import interpreter

    made = interpreter.Interpreter(model_path=str(path))
    made.allocate_tensors()
    made.set_tensor(made.get_input_details()[0]["index"], feed)
    made.invoke()
    return made.get_tensor(made.get_output_details()[0]["index"])

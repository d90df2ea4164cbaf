"""Blocks that differ only in how wide their norms are, as the stages of vision transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.engine.interpreter import RelayEngine
from serde.relay.ir.model import ModelMeta, RelayModel

WIDTHS = (4, 8, 16, 32)
STEPS = ("sin", "tanh", "exp", "sigmoid", "abs", "cos", "atan", "tanh", "abs", "sqrt")


def build(x: np.ndarray) -> tuple[RelayModel, np.ndarray]:
    """The net, and what it computes."""
    params = [relay.var("x", shape=x.shape)]
    weights: dict[str, ArrayWeight] = {}
    y, found = params[0], x
    for width in WIDTHS:
        names = [f"{each}_{width}" for each in ("gamma", "beta")]
        pair = [relay.var(name, shape=(width,)) for name in names]
        values = np.random.default_rng(width).normal(size=(2, width)).astype(np.float32)
        weights |= {n: ArrayWeight(v) for n, v in zip(names, values, strict=True)}
        params += pair
        y = relay.nn.layer_norm(y, *pair)
        centred = found - found.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        found = centred / deviation * values[0] + values[1]
        for step in STEPS:
            y = getattr(relay, step)(y)
            sigmoid = 1 / (1 + np.exp(-found))
            found = (
                sigmoid if step == "sigmoid" else getattr(np, step.replace("atan", "arctan"))(found)
            )
        y, found = relay.concatenate([y, y], axis=1), np.concatenate([found, found], axis=1)
    mod = relay.IRModule.from_expr(relay.Function(params, y))
    typed = relay.transform.InferType()(mod)
    return RelayModel(typed, weights, ModelMeta(("x",), ("y",))), found


def test_a_class_has_the_width_of_its_norm_as_a_parameter(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(2, WIDTHS[0])).astype(np.float32)
    model, expected = build(x)
    folder = serde.from_relay(model, format="torch", path=tmp_path / "net_torch")
    text = (folder / "model.py").read_text()
    assert "def __init__(self, features):" in text
    assert "nn.LayerNorm(features)" in text
    (found,) = RelayEngine(serde.to_relay(folder)).run({"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

"""Attributes of ONNX are float32; what computes in float64 does not take them from there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.random_checks import run_exported

import serde
import serde.relay as relay
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType

X = np.random.default_rng(5).uniform(-2, 2, (3, 4))


def _elu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x > 0, x, alpha * (np.exp(x) - 1))


def _layer_norm(x: np.ndarray) -> np.ndarray:
    distance = x - x.mean(-1, keepdims=True)
    return distance / np.sqrt((distance**2).mean(-1, keepdims=True) + 0.7)


CASES: dict[str, tuple[dict[str, float], np.ndarray]] = {
    "serde.elu": ({"alpha": 0.1}, _elu(X, 0.1)),
    "serde.selu": ({}, 1.0507009873554805 * _elu(X, 1.6732632423543772)),
    "serde.hard_sigmoid": ({}, np.clip(0.2 * X + 0.5, 0, 1)),
    "nn.leaky_relu": ({"alpha": 0.1}, np.where(X > 0, X, 0.1 * X)),
    "nn.layer_norm": ({"epsilon": 0.7}, _layer_norm(X)),
}


@pytest.mark.parametrize("opset", [11, 17, 21])
@pytest.mark.parametrize("name", list(CASES))
def test_float64_keeps_its_precision(name: str, opset: int) -> None:
    attrs, expected = CASES[name]
    x = relay.var("x", TensorType(X.shape, "float64"))
    more = (
        [relay.Constant(np.array([v] * 4)) for v in (1.0, 0.0)] if name == "nn.layer_norm" else []
    )
    np.testing.assert_allclose(_run(call(name, x, *more, **attrs), [x], {"x": X}, opset), expected,
                               rtol=1e-14, atol=1e-15)  # fmt: skip


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_scalar_index_into_a_symbolic_axis(mode: str, opset: int) -> None:
    x = relay.var("x", TensorType(("n", 4), "float64"))
    found = _run(call("take", x, relay.const(7), axis=0, mode=mode), [x], {"x": X}, opset)
    np.testing.assert_array_equal(found, X[7 % 3 if mode == "wrap" else 2])


def _run(body: Any, params: list[Any], feeds: dict[str, np.ndarray], opset: int) -> np.ndarray:
    mod = relay.IRModule.from_expr(relay.Function(params, body))
    meta = relay.ModelMeta(tuple(feeds), ("y",))
    proto = serde.from_relay(relay.RelayModel(mod, {}, meta), format="onnx", opset=opset)
    (found,) = run_exported(proto, feeds)
    return found

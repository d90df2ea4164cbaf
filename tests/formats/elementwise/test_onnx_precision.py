"""Attributes of ONNX are float32; what computes in float64 does not take them from there."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from support.onnx_suite import interpret
from support.random_checks import run_exported
from support.runtime import run_onnx

import serde
import serde.relay as relay
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType

X = np.random.default_rng(5).uniform(-2, 2, (3, 4))


def _elu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x > 0, x, alpha * (np.exp(x) - 1))


def _layer_norm(x: np.ndarray, epsilon: float) -> np.ndarray:
    distance = x - x.mean(-1, keepdims=True)
    return distance / np.sqrt((distance**2).mean(-1, keepdims=True) + epsilon)


CASES: dict[str, tuple[dict[str, float], np.ndarray]] = {
    "serde.elu": ({"alpha": 0.1}, _elu(X, 0.1)),
    "serde.selu": ({}, 1.0507009873554805 * _elu(X, 1.6732632423543772)),
    "serde.hard_sigmoid": ({}, np.clip(0.2 * X + 0.5, 0, 1)),
    "nn.leaky_relu": ({"alpha": 0.1}, np.where(X > 0, X, 0.1 * X)),
    "nn.layer_norm": ({"epsilon": 0.7}, _layer_norm(X, 0.7)),
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


def _group_norm(x: np.ndarray) -> np.ndarray:
    return _layer_norm(x.reshape(3, 2, 2), 0.5).reshape(3, 4)


_VECTORS = (np.array([0.3, -1.1, 2.3, 0.7]), np.array([1.3, 0.1, -0.9, 0.2]))

NORMS: dict[str, tuple[int, dict[str, Any], np.ndarray]] = {
    "nn.layer_norm": (2, {"epsilon": 0.5}, _layer_norm(X, 0.5)),
    "nn.group_norm": (2, {"epsilon": 0.5, "num_groups": 2}, _group_norm(X)),
    "serde.rms_norm": (1, {"epsilon": 0.1}, X / np.sqrt((X**2).mean(-1, keepdims=True) + 0.1)),
}


@pytest.mark.parametrize("opset", [21, 23])
@pytest.mark.parametrize("name", list(NORMS))
def test_norms_of_float64_compute_in_float64(name: str, opset: int) -> None:
    """Unless it says otherwise, a norm of ONNX computes in float32."""
    count, attrs, unit = NORMS[name]
    gamma, beta = _VECTORS
    expected = unit * gamma + (beta if count == 2 else 0)
    x = relay.var("x", TensorType(X.shape, "float64"))
    y = call(name, x, *map(relay.Constant, _VECTORS[:count]), **attrs)
    proto = serde.from_relay(
        relay.IRModule.from_expr(relay.Function([x], y)), format="onnx", opset=opset
    )
    again = serde.to_relay(proto)
    for found in (run_onnx(proto.SerializeToString(), {"x": X})[1], interpret(again, {"x": X})):
        np.testing.assert_allclose(found[0], expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("dtype", "stash"), [("float64", 1), ("float64", 11), ("float32", 11)])
def test_group_norm_computes_in_what_it_says(dtype: str, stash: int) -> None:
    """Far from zero a mean of float32 is so rough that it shows which one was taken.

    ONNX's own body takes the mean of squares, and gives NaN there.
    """
    x = (X + 5000).astype(dtype)
    element = {"float32": "float", "float64": "double"}[dtype]
    proto = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 21]>
        g ({element}[3, 4] x, {element}[4] s, {element}[4] b) => ({element}[3, 4] y)
        {{ y = GroupNormalization <num_groups = 2, epsilon = 0.5, stash_type = {stash}> (x, s, b) }}
        """
    )
    given = {"x": x, "s": _VECTORS[0].astype(dtype), "b": _VECTORS[1].astype(dtype)}
    unit = _group_norm(x.astype(np.float32 if stash == 1 else np.float64)).astype(dtype)
    (found,) = interpret(serde.to_relay(proto), given)
    np.testing.assert_allclose(found, unit * given["s"] + given["b"], rtol=2e-6, atol=1e-6)

"""MIL's recurrent layers and attention in Relay, against the formulas spelled out in NumPy.

A layer that walks backwards gives its steps in the order in which it walks, as the tests of
coremltools have it; the steps of a layer of both directions come in the order of the sequence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mil import check_import
from support.mil_executor import execute
from support.mil_layers import FUNCTIONS

import serde
import serde.relay as relay

pytestmark = pytest.mark.wide

TIME, BATCH, WIDTH, HIDDEN = 4, 2, 3, 5


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.8, 0.8, shape).astype(np.float32)


def lstm(
    x: np.ndarray, h: np.ndarray, c: np.ndarray, weights: list[np.ndarray], attrs: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One direction: all outputs, then the last states."""
    w, r, b, p = weights
    inner = FUNCTIONS[attrs.get("recurrent_activation", "sigmoid")]
    cell = FUNCTIONS[attrs.get("cell_activation", "tanh")]
    outer = FUNCTIONS[attrs.get("activation", "tanh")]
    holes = np.split(p, 3)
    steps = []
    for row in x:
        i, f, o, z = np.split(row @ w.T + h @ r.T + b, 4, axis=1)
        i, f = inner(i + c * holes[0]), inner(f + c * holes[1])
        c = f * c + i * cell(z)
        if "clip" in attrs:
            c = np.clip(c, -attrs["clip"], attrs["clip"])
        h = inner(o + c * holes[2]) * outer(c)
        steps.append(h)
    return np.stack(steps), h, c


def lstm_weights(seed: int) -> list[np.ndarray]:
    shapes = [(4 * HIDDEN, WIDTH), (4 * HIDDEN, HIDDEN), (4 * HIDDEN,), (3 * HIDDEN,)]
    return [draw(*shape, seed=seed + i) for i, shape in enumerate(shapes)]


NAMES = ("weight_ih", "weight_hh", "bias", "peephole")

LSTMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "every_step": {"output_sequence": True},
    "clipped": {"output_sequence": True, "clip": np.float32(0.2)},
    "functions": {
        "output_sequence": True,
        "recurrent_activation": "hard_sigmoid",
        "cell_activation": "relu",
        "activation": "linear",
    },
    "scaled": {"activation": "scaled_tanh", "recurrent_activation": "tanh"},
}


@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("name", LSTMS)
def test_lstm(name: str, direction: str, target: str) -> None:
    attrs = LSTMS[name]
    x, h, c = draw(TIME, BATCH, WIDTH), draw(BATCH, HIDDEN, seed=1), draw(BATCH, HIDDEN, seed=2)
    weights = lstm_weights(3)
    every, *last = lstm(x if direction == "forward" else x[::-1], h, c, weights, attrs)
    outputs = every if attrs.get("output_sequence") else every[-1:]
    given = dict(zip(NAMES, weights, strict=True)) | {"direction": direction} | attrs
    tensors = {"x": x, "initial_h": h, "initial_c": c}
    check_import("lstm", tensors, given, target=target, expected=[outputs, *last], tolerance=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("output_sequence", [True, False])
def test_lstm_of_both_directions(output_sequence: bool, bias: bool) -> None:
    x = draw(TIME, BATCH, WIDTH)
    h, c = draw(BATCH, 2 * HIDDEN, seed=1), draw(BATCH, 2 * HIDDEN, seed=2)
    pair = [lstm_weights(3), lstm_weights(9)]
    names = NAMES if bias else (*NAMES[:2], NAMES[3])
    given: dict[str, Any] = {"direction": "bidirectional", "output_sequence": output_sequence}
    for suffix, weights in zip(("", "_back"), pair, strict=True):
        known = dict(zip(NAMES, weights, strict=True))
        if not bias:
            weights[2] = np.zeros_like(weights[2])
        given |= {f"{name}{suffix}": known[name] for name in names}
    one = lstm(x, h[:, :HIDDEN], c[:, :HIDDEN], pair[0], {})
    two = lstm(x[::-1], h[:, HIDDEN:], c[:, HIDDEN:], pair[1], {})
    last = [np.concatenate([a, b], 1) for a, b in zip(one[1:], two[1:], strict=True)]
    outputs = last[0][None]
    if output_sequence:
        outputs = np.concatenate([one[0], two[0][::-1]], 2)
    tensors = {"x": x, "initial_h": h, "initial_c": c}
    check_import("lstm", tensors, given, expected=[outputs, *last], tolerance=1e-5)


def gru(
    x: np.ndarray, h: np.ndarray, weights: list[np.ndarray], *, late: bool, attrs: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    w, r, b, entering = weights
    inner = FUNCTIONS[attrs.get("recurrent_activation", "sigmoid")]
    outer = FUNCTIONS[attrs.get("activation", "tanh")]
    (wr, wo, wz), (rr, ro, rz) = np.split(w, 3), np.split(r, 3)
    (br, bo, bz), (er, eo, ez) = np.split(b, 3), np.split(entering, 3)
    steps = []
    for row in x:
        reset = inner(row @ wr.T + er + h @ rr.T + br)
        update = inner(row @ wz.T + ez + h @ rz.T + bz)
        if late:
            new = outer(row @ wo.T + eo + reset * (h @ ro.T + bo))
        else:
            new = outer(row @ wo.T + eo + (reset * h) @ ro.T + bo)
        h = (1 - update) * new + update * h
        steps.append(h)
    return np.stack(steps), h


def gru_weights() -> list[np.ndarray]:
    shapes = [(3 * HIDDEN, WIDTH), (3 * HIDDEN, HIDDEN), (3 * HIDDEN,), (3 * HIDDEN,)]
    return [draw(*shape, seed=5 + i) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("target", ["iOS15", "iOS17", "iOS18"])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"output_sequence": True},
        {"output_sequence": True, "activation": "sigmoid", "recurrent_activation": "tanh"},
    ],
    ids=["last", "every", "functions"],
)
def test_gru(attrs: dict[str, Any], direction: str, target: str) -> None:
    x, h = draw(TIME, BATCH, WIDTH), draw(BATCH, HIDDEN, seed=1)
    weights = gru_weights()
    weights[3] = np.zeros_like(weights[3])
    every, last = gru(x if direction == "forward" else x[::-1], h, weights, late=False, attrs=attrs)
    outputs = every if attrs.get("output_sequence") else every[-1:]
    given = dict(zip(NAMES[:3], weights, strict=False)) | {"direction": direction} | attrs
    tensors = {"x": x, "initial_h": h}
    check_import("gru", tensors, given, target=target, expected=[outputs, last], tolerance=1e-5)


@pytest.mark.parametrize("late", [True, False])
def test_gru_of_two_biases(late: bool) -> None:
    x, h = draw(TIME, BATCH, WIDTH), draw(BATCH, HIDDEN, seed=1)
    weights = gru_weights()
    every, last = gru(x, h, weights, late=late, attrs={})
    given = dict(zip((*NAMES[:3], "input_bias"), weights, strict=True))
    given |= {"reset_after": late, "output_sequence": True}
    tensors = {"x": x, "initial_h": h}
    check_import("gru", tensors, given, target="iOS18", expected=[every, last], tolerance=1e-5)


@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "linear", "sigmoid_hard"])
@pytest.mark.parametrize("output_sequence", [True, False])
def test_rnn(output_sequence: bool, activation: str, direction: str, target: str) -> None:
    x, h = draw(TIME, BATCH, WIDTH), draw(BATCH, HIDDEN, seed=1)
    w, r, b = draw(HIDDEN, WIDTH, seed=2), draw(HIDDEN, HIDDEN, seed=3), draw(HIDDEN, seed=4)
    steps, state = [], h
    for row in x if direction == "forward" else x[::-1]:
        state = FUNCTIONS[activation](row @ w.T + state @ r.T + b)
        steps.append(state)
    every = np.stack(steps)
    given = {"weight_ih": w, "weight_hh": r, "bias": b, "direction": direction}
    given |= {"activation": activation, "output_sequence": output_sequence}
    wanted = [every if output_sequence else every[-1:], state]
    tensors = {"x": x, "initial_h": h}
    check_import("rnn", tensors, given, target=target, expected=wanted, tolerance=1e-5)


ATTENTION: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None, str]] = {
    "heads": ((2, 3, 4, 5), None, "float32"),
    "one_head": ((2, 4, 5), None, "float32"),
    "many_axes": ((2, 2, 3, 4, 5), None, "float32"),
    "added": ((2, 3, 4, 5), (4, 6), "float32"),
    "masked": ((2, 3, 4, 5), (2, 1, 4, 6), "bool"),
    "one_head_masked": ((2, 4, 5), (2, 4, 6), "bool"),
    "many_axes_masked": ((2, 2, 3, 4, 5), (1, 1, 4, 6), "float32"),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_scaled_dot_product_attention(name: str) -> None:
    shape, masked, dtype = ATTENTION[name]
    query = draw(*shape, seed=1)
    key = draw(*shape[:-2], 6, shape[-1], seed=2)
    value = draw(*shape[:-2], 6, 7, seed=3)
    tensors = {"query": query, "key": key, "value": value}
    if masked is not None:
        mask = draw(*masked, seed=4)
        # Every query may attend to the first key.
        mask[..., 0] = 0.5
        tensors["attn_mask"] = mask > 0 if dtype == "bool" else mask
    op = "scaled_dot_product_attention"
    check_import(op, tensors, {}, target="iOS18", tolerance=1e-5)


@pytest.mark.parametrize("dtype", ["bool", "float32"])
def test_queries_that_may_attend_to_nothing(dtype: str, tmp_path: Path) -> None:
    """MIL makes NaN of them; ONNX, PyTorch and Relay make zeros."""
    query, key, value = (draw(1, 2, 3, 4, seed=seed) for seed in (1, 2, 3))
    seen = np.array([[False, True, True], [True, False, True], [True, True, False]])
    mask = seen if dtype == "bool" else np.where(seen, 0.25, -np.inf).astype(np.float32)
    given = [relay.var(name, shape=query.shape) for name in "qkv"]
    result = relay.serde.attention(*given, relay.Constant(mask), is_causal=True)
    path = serde.from_relay(
        relay.IRModule.from_expr(relay.Function(given, result)),
        format="coreml", path=tmp_path / "m.mlpackage",
        minimum_deployment_target="iOS18", compute_precision="float32",
    )  # fmt: skip
    (found,) = execute(path, dict(zip("qkv", (query, key, value), strict=True)))
    seen = seen & np.tri(3, dtype=bool)
    products = query @ key.swapaxes(-1, -2) / 2 + (0 if dtype == "bool" else 0.25)
    powers = np.where(seen, np.exp(products), 0)
    expected = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-9) @ value
    assert not expected[:, :, 0].any()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

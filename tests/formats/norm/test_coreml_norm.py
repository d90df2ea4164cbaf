"""MIL's normalisations in Relay, against coremltools, ONNX Runtime and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mil import check_import
from support.one_node import onnx_values


def draw(*shape: int, seed: int = 3, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def factors(count: int) -> dict[str, np.ndarray]:
    return {"gamma": draw(count, seed=4), "beta": draw(count, seed=5)}


@pytest.mark.thin(2)
@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 4, 3)])
@pytest.mark.parametrize("given", [(), ("gamma",), ("beta",), ("gamma", "beta")])
def test_batch_norm(shape: tuple[int, ...], given: tuple[str, ...], target: str) -> None:
    x = draw(*shape)
    mean, variance = draw(3, seed=6), draw(3, seed=7, low=0.2)
    known = {name: value for name, value in factors(3).items() if name in given}
    wanted = onnx_values(
        "BatchNormalization", x, known.get("gamma", np.ones(3, np.float32)),
        known.get("beta", np.zeros(3, np.float32)), mean, variance, epsilon=0.01,
    )  # fmt: skip
    attrs = {"mean": mean, "variance": variance, "epsilon": np.float32(0.01), **known}
    check_import("batch_norm", {"x": x}, attrs, target=target, expected=[wanted])


@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("given", [(), ("gamma",), ("gamma", "beta")])
def test_instance_norm(shape: tuple[int, ...], given: tuple[str, ...], target: str) -> None:
    x = draw(*shape)
    known = {name: value for name, value in factors(3).items() if name in given}
    wanted = onnx_values(
        "InstanceNormalization", x, known.get("gamma", np.ones(3, np.float32)),
        known.get("beta", np.zeros(3, np.float32)), epsilon=0.02,
    )  # fmt: skip
    attrs = {"epsilon": np.float32(0.02), **known}
    check_import("instance_norm", {"x": x}, attrs, target=target, expected=[wanted])


@pytest.mark.parametrize("given", [(), ("gamma",), ("gamma", "beta")])
@pytest.mark.parametrize("op", ["batch_norm", "instance_norm", "layer_norm"])
def test_factors_of_another_dtype(op: str, given: tuple[str, ...]) -> None:
    """From iOS17 on factors may be of more digits than the data."""
    x = draw(2, 3, 4).astype(np.float16)
    length = 4 if op == "layer_norm" else 3
    known = {name: value for name, value in factors(length).items() if name in given}
    wide = x.astype(np.float32)
    axes = {"batch_norm": (), "instance_norm": (2,), "layer_norm": (2,)}[op]
    mean, variance = draw(3, 1, seed=6), draw(3, 1, seed=7, low=0.2)
    attrs: dict[str, Any] = {"epsilon": np.float32(0.02)}
    if op == "batch_norm":
        attrs |= {"mean": mean[:, 0], "variance": variance[:, 0]}
    else:
        mean, variance = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
    if op == "layer_norm":
        attrs["axes"] = [2]
    column = (-1,) if op == "layer_norm" else (-1, 1)
    wanted = (wide - mean) / np.sqrt(variance + 0.02)
    wanted = wanted * known.get("gamma", np.ones(length, np.float32)).reshape(column)
    wanted = wanted + known.get("beta", np.zeros(length, np.float32)).reshape(column)
    check_import(
        op, {"x": x}, attrs | known, target="iOS17", expected=[wanted.astype(np.float16)],
        tolerance=1e-2,
    )  # fmt: skip


LAYERS: dict[str, tuple[tuple[int, ...], list[int]]] = {
    "last": ((2, 3, 4), [-1]),
    "last_two": ((2, 3, 4), [1, 2]),
    "turned": ((2, 3, 4), [-1, 1]),
    "channels": ((2, 3, 4, 5), [1]),
    "apart": ((2, 3, 4, 5), [1, 3]),
    "all": ((2, 3, 4), [0, 1, 2]),
}


@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_layer_norm(name: str, scaled: bool, target: str) -> None:
    shape, axes = LAYERS[name]
    attrs: dict[str, Any] = {"epsilon": np.float32(0.05), "axes": axes}
    chosen = sorted(axis % len(shape) for axis in axes)
    if scaled:
        lengths = [shape[axis] for axis in chosen]
        attrs |= {"gamma": draw(*lengths, seed=4), "beta": draw(*lengths, seed=5)}
    check_import("layer_norm", {"x": draw(*shape)}, attrs, target=target, tolerance=1e-5)


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 4, 5), (2, 2, 3, 4, 5)])
def test_l2_norm(shape: tuple[int, ...]) -> None:
    check_import("l2_norm", {"x": draw(*shape)}, {"epsilon": np.float32(0.25)})


@pytest.mark.parametrize("shape", [(2, 7, 5), (2, 7, 3, 4)])
@pytest.mark.parametrize("size", [3, 5])
def test_local_response_norm(shape: tuple[int, ...], size: int) -> None:
    x = draw(*shape)
    numbers = {"alpha": np.float32(0.5), "beta": np.float32(0.6), "k": np.float32(1.5)}
    image = x if x.ndim == 4 else x[..., None]
    wanted = onnx_values("LRN", image, size=size, alpha=0.5, beta=0.6, bias=1.5).reshape(shape)
    check_import("local_response_norm", {"x": x}, {"size": size, **numbers}, expected=[wanted])

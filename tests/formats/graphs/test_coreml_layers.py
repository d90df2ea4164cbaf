"""Layers of NeuralNetworks in Relay, against their definitions in NumPy and against PyTorch."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from support.coreml_layers import Build, check_layers

F32 = np.float32


def draw(name: str, *shape: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    """Values that are the same each time."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return rng.uniform(low, high, shape).astype(F32)


def five(x: np.ndarray) -> np.ndarray:
    """An image as a network of five axes has it."""
    return x.reshape(1, 1, *x.shape)


IMAGE = draw("image", 4, 6, 5)
VECTOR = draw("vector", 6)
POSITIVE = draw("positive", 3, 2, 4, low=0.1)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(x))


SLOPES = np.array([0.5, -0.25, 2.0, 1.0], F32)
PER = SLOPES.reshape(-1, 1, 1)

ACTIVATIONS: dict[str, tuple[str, Any, np.ndarray]] = {
    "linear": ("LINEAR", [0.5, -1.0], 0.5 * IMAGE - 1),
    "relu": ("RELU", None, np.maximum(IMAGE, 0)),
    "leaky": ("LEAKYRELU", [0.125], np.where(IMAGE >= 0, IMAGE, IMAGE / 8)),
    "thresholded": ("THRESHOLDEDRELU", 0.5, np.where(IMAGE >= 0.5, IMAGE, 0)),
    "prelu": ("PRELU", SLOPES, np.where(IMAGE >= 0, IMAGE, PER * IMAGE)),
    "prelu_one": ("PRELU", SLOPES[:1], np.where(IMAGE >= 0, IMAGE, IMAGE / 2)),
    "tanh": ("TANH", None, np.tanh(IMAGE)),
    "scaled_tanh": ("SCALED_TANH", [0.5, 1.5], 0.5 * np.tanh(1.5 * IMAGE)),
    "sigmoid": ("SIGMOID", None, sigmoid(IMAGE)),
    "hard": ("SIGMOID_HARD", [0.25, 0.5], np.clip(0.25 * IMAGE + 0.5, 0, 1)),
    "elu": ("ELU", 0.75, np.where(IMAGE >= 0, IMAGE, 0.75 * np.expm1(IMAGE))),
    "softsign": ("SOFTSIGN", None, IMAGE / (1 + np.abs(IMAGE))),
    "softplus": ("SOFTPLUS", None, softplus(IMAGE)),
    "parametric": (
        "PARAMETRICSOFTPLUS",
        [np.abs(SLOPES), SLOPES],
        np.abs(PER) * softplus(PER * IMAGE),
    ),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name: str) -> None:
    kind, params, expected = ACTIVATIONS[name]
    check_layers(
        lambda b: b.add_activation("layer", kind, "x", "y", params), {"x": IMAGE}, five(expected)
    )


UNARY: dict[str, tuple[str, dict[str, float], Any]] = {
    "sqrt": ("sqrt", {}, np.sqrt),
    "rsqrt": ("rsqrt", {"epsilon": 0.5}, lambda x: 1 / np.sqrt(x + 0.5)),
    "rsqrt_default": ("rsqrt", {"epsilon": 0}, lambda x: 1 / np.sqrt(x + 1e-6)),
    "inverse": ("inverse", {"epsilon": 0.25}, lambda x: 1 / (x + 0.25)),
    "power": ("power", {"alpha": 2.5}, lambda x: x**2.5),
    "exp": ("exp", {"shift": 0.5, "scale": -0.5}, lambda x: np.exp(-0.5 * x + 0.5)),
    "log": ("log", {"scale": 2}, lambda x: np.log(2 * x)),
    "log_epsilon": ("log", {"epsilon": 1.0}, np.log1p),
    "abs": ("abs", {"shift": -1}, lambda x: np.abs(x - 1)),
    "threshold": ("threshold", {"alpha": 1.25}, lambda x: np.maximum(x, 1.25)),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    mode, attrs, function = UNARY[name]
    check_layers(
        lambda b: b.add_unary("layer", "x", "y", mode, **attrs),
        {"x": POSITIVE},
        five(function(POSITIVE)),
    )


def standardised(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


MEAN, SPREAD = draw("mean", 4), draw("spread", 4, low=0.5)
LRN = np.stack(
    [
        IMAGE[i] / (2 + 0.5 / 3 * np.square(IMAGE[max(0, i - 1) : i + 2]).sum(0)) ** 0.75
        for i in range(4)
    ]
)
EXPONENTIAL = np.exp(IMAGE)
BLOCKS = draw("blocks", 8, 2, 3)
SPACE = draw("space", 2, 4, 6)

ONE: dict[str, tuple[Build, np.ndarray, np.ndarray]] = {
    "batchnorm": (
        lambda b: b.add_batchnorm(
            "l", 4, SLOPES, MEAN, MEAN, SPREAD, input_name="x", output_name="y", epsilon=1e-3
        ),
        IMAGE,
        PER * (IMAGE - MEAN.reshape(-1, 1, 1)) / np.sqrt(SPREAD.reshape(-1, 1, 1) + 1e-3)
        + MEAN.reshape(-1, 1, 1),
    ),
    "batchnorm_instance": (
        lambda b: b.add_batchnorm(
            "l", 4, SLOPES, MEAN, compute_mean_var=True, instance_normalization=True,
            input_name="x", output_name="y", epsilon=0.01,
        ),
        IMAGE,
        PER * standardised(IMAGE, (1, 2), 0.01) + MEAN.reshape(-1, 1, 1),
    ),
    "mvn": (
        lambda b: b.add_mvn("l", "x", "y", across_channels=False, epsilon=0.01),
        IMAGE,
        standardised(IMAGE, (1, 2), 0.01),
    ),
    "mvn_across": (
        lambda b: b.add_mvn("l", "x", "y", across_channels=True, epsilon=0.01),
        IMAGE,
        standardised(IMAGE, (0, 1, 2), 0.01),
    ),
    "mvn_mean": (
        lambda b: b.add_mvn("l", "x", "y", across_channels=False, normalize_variance=False),
        IMAGE,
        IMAGE - IMAGE.mean((1, 2), keepdims=True),
    ),
    "l2normalize": (
        lambda b: b.add_l2_normalize("l", "x", "y", epsilon=0.25),
        IMAGE,
        IMAGE / np.sqrt(np.square(IMAGE).sum() + 0.25),
    ),
    "lrn": (lambda b: b.add_lrn("l", "x", "y", 0.5, 0.75, 3, 2.0), IMAGE, LRN),
    "softmax": (
        lambda b: b.add_softmax("l", "x", "y"),
        IMAGE,
        EXPONENTIAL / EXPONENTIAL.sum(0, keepdims=True),
    ),
    "crop": (
        lambda b: b.add_crop("l", 1, 2, 0, 1, 0, ["x"], "y"), IMAGE, IMAGE[:, 0:5, 1:3]
    ),
    "padding": (
        lambda b: b.add_padding("l", 1, 2, 0, 3, 0.5, "x", "y"),
        IMAGE,
        np.pad(IMAGE, ((0, 0), (0, 3), (1, 2)), constant_values=0.5),
    ),
    "padding_reflection": (
        lambda b: b.add_padding("l", 2, 0, 2, 1, 0, "x", "y", "reflection"),
        IMAGE,
        np.pad(IMAGE, ((0, 0), (2, 1), (2, 0)), "reflect"),
    ),
    "padding_replication": (
        lambda b: b.add_padding("l", 2, 0, 2, 1, 0, "x", "y", "replication"),
        IMAGE,
        np.pad(IMAGE, ((0, 0), (2, 1), (2, 0)), "edge"),
    ),
    "upsample": (
        lambda b: b.add_upsample("l", 2, 3, "x", "y"),
        IMAGE,
        IMAGE.repeat(2, axis=1).repeat(3, axis=2),
    ),
    "scale": (
        lambda b: b.add_scale("l", SLOPES, MEAN, True, "x", "y", [4], [4]),
        IMAGE,
        PER * IMAGE + MEAN.reshape(-1, 1, 1),
    ),
    "scale_one": (
        lambda b: b.add_scale("l", np.array([2.0]), None, False, "x", "y", [1]),
        IMAGE,
        2 * IMAGE,
    ),
    "scale_image": (
        lambda b: b.add_scale("l", IMAGE, IMAGE[:1], True, "x", "y", [4, 6, 5], [1, 6, 5]),
        IMAGE,
        IMAGE * IMAGE + IMAGE[:1],
    ),
    "bias": (
        lambda b: b.add_bias("l", SLOPES, "x", "y", [4]), IMAGE, IMAGE + PER
    ),
    "add_scalar": (
        lambda b: b.add_elementwise("l", ["x"], "y", "ADD", 1.5), IMAGE, IMAGE + 1.5
    ),
    "multiply_scalar": (
        lambda b: b.add_elementwise("l", ["x"], "y", "MULTIPLY", -1.5), IMAGE, IMAGE * -1.5
    ),
    "flatten": (
        lambda b: b.add_flatten("l", 0, "x", "y"), IMAGE, IMAGE.reshape(-1, 1, 1)
    ),
    "flatten_last": (
        lambda b: b.add_flatten("l", 1, "x", "y"),
        IMAGE,
        IMAGE.transpose(1, 2, 0).reshape(-1, 1, 1),
    ),
    "reshape": (
        lambda b: b.add_reshape("l", "x", "y", (5, 8, 3), 0), IMAGE, IMAGE.reshape(5, 8, 3)
    ),
    "reshape_last": (
        lambda b: b.add_reshape("l", "x", "y", (5, 8, 3), 1),
        IMAGE,
        IMAGE.transpose(1, 2, 0).reshape(8, 3, 5).transpose(2, 0, 1),
    ),
    "permute": (
        lambda b: b.add_permute("l", (0, 3, 1, 2), "x", "y"), IMAGE, IMAGE.transpose(2, 0, 1)
    ),
    "slice": (
        lambda b: b.add_slice("l", "x", "y", "height", 1, -1, 2), IMAGE, IMAGE[:, 1:-1:2]
    ),
    "slice_channels": (
        lambda b: b.add_slice("l", "x", "y", "channel", 1, 3), IMAGE, IMAGE[1:3]
    ),
    "space_to_depth": (
        lambda b: b.add_reorganize_data("l", "x", "y", "SPACE_TO_DEPTH", 2),
        SPACE,
        SPACE.reshape(2, 2, 2, 3, 2).transpose(2, 4, 0, 1, 3).reshape(8, 2, 3),
    ),
    "depth_to_space": (
        lambda b: b.add_reorganize_data("l", "x", "y", "DEPTH_TO_SPACE", 2),
        BLOCKS,
        BLOCKS.reshape(2, 2, 2, 2, 3).transpose(2, 3, 0, 4, 1).reshape(2, 4, 6),
    ),
    "pixel_shuffle": (
        lambda b: b.add_reorganize_data("l", "x", "y", "PIXEL_SHUFFLE", 2),
        BLOCKS,
        BLOCKS.reshape(2, 2, 2, 2, 3).transpose(0, 3, 1, 4, 2).reshape(2, 4, 6),
    ),
    "load_constant": (
        lambda b: (
            b.add_load_constant("c", "c", IMAGE.ravel(), [4, 6, 5]),
            b.add_elementwise("l", ["x", "c"], "y", "ADD"),
        ),
        IMAGE,
        IMAGE * 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_layer(name: str) -> None:
    build, data, expected = ONE[name]
    check_layers(build, {"x": data}, five(expected))


AXES = {"CHW": (0, 1, 2), "HW": (1, 2), "C": (0,), "H": (1,), "W": (2,)}
MODES: dict[str, Any] = {
    "sum": np.sum,
    "avg": np.mean,
    "prod": np.prod,
    "logsum": lambda x, axis, keepdims: np.log(x + 0.5).sum(axis, keepdims=keepdims),
    "sumsquare": lambda x, axis, keepdims: np.square(x).sum(axis, keepdims=keepdims),
    "L1": lambda x, axis, keepdims: np.abs(x).sum(axis, keepdims=keepdims),
    "L2": lambda x, axis, keepdims: np.sqrt(np.square(x).sum(axis, keepdims=keepdims)),
    "max": np.max,
    "min": np.min,
}


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("mode", MODES)
def test_reduce(mode: str, axis: str) -> None:
    check_layers(
        lambda b: b.add_reduce("l", "x", "y", axis, mode, 0.5),
        {"x": POSITIVE},
        five(np.asarray(MODES[mode](POSITIVE, axis=AXES[axis], keepdims=True))),
    )


@pytest.mark.parametrize("axis", ["C", "H", "W"])
def test_place_of_the_greatest(axis: str) -> None:
    expected = IMAGE.argmax(AXES[axis][0], keepdims=True).astype(F32)
    check_layers(
        lambda b: b.add_reduce("l", "x", "y", axis, "argmax"), {"x": IMAGE}, five(expected)
    )


MANY: dict[str, Any] = {
    "ADD": lambda x, y, z: x + y + z,
    "MULTIPLY": lambda x, y, z: x * y * z,
    "AVE": lambda x, y, z: (x + y + z) / 3,
    "MAX": lambda x, y, z: np.maximum(np.maximum(x, y), z),
    "MIN": lambda x, y, z: np.minimum(np.minimum(x, y), z),
}


@pytest.mark.parametrize("mode", MANY)
def test_several_tensors(mode: str) -> None:
    tensors = {name: draw(name, 4, 1 if name == "z" else 6, 5) for name in "abz"}
    check_layers(
        lambda b: b.add_elementwise("l", ["a", "b", "z"], "y", mode),
        tensors,
        five(MANY[mode](*tensors.values())),
    )


@pytest.mark.parametrize("mode", ["DOT", "COS"])
def test_dot(mode: str) -> None:
    x, y = draw("dx", 6), draw("dy", 6)
    expected = np.dot(x, y) / (np.linalg.norm(x) * np.linalg.norm(y) if mode == "COS" else 1)
    check_layers(
        lambda b: b.add_elementwise("l", ["a", "b"], "y", mode),
        {"a": x, "b": y},
        np.full((1, 1, 1, 1, 1), expected, F32),
    )


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_inner_product(rank: int, bias: bool) -> None:
    data = draw("inner", 6) if rank == 1 else draw("inner", 2, 3, 1)
    weight, shift = draw("w", 5, 6), draw("b", 5)
    expected = weight @ data.reshape(-1) + (shift if bias else 0)
    check_layers(
        lambda b: b.add_inner_product("l", weight, shift if bias else None, 6, 5, bias, "x", "y"),
        {"x": data},
        expected.reshape(1, 1, 5, 1, 1),
    )


@pytest.mark.parametrize("bias", [False, True])
def test_embedding(bias: bool) -> None:
    table, shift = draw("table", 7, 10), draw("shift", 7)
    indices = np.array([3, 0, 9], F32).reshape(3, 1, 1, 1, 1)
    rows = table.T[[3, 0, 9]] + (shift if bias else 0)
    check_layers(
        lambda b: b.add_embedding("l", table, shift if bias else None, 10, 7, bias, "x", "y"),
        {"x": indices},
        rows.reshape(3, 1, 7, 1, 1),
    )


def test_concat_and_split() -> None:
    check_layers(
        lambda b: (
            b.add_split("s", "x", ["p", "q"]),
            b.add_elementwise("c", ["q", "p"], "y", "CONCAT"),
        ),
        {"x": IMAGE},
        five(np.concatenate([IMAGE[2:], IMAGE[:2]])),
    )


def test_sequences() -> None:
    data = draw("sequence", 3, 2, 4, 1, 1)
    expected = np.concatenate([np.tile(data, (2, 1, 1, 1, 1)), data])
    check_layers(
        lambda b: (
            b.add_sequence_repeat("r", 2, "x", "r"),
            b.add_elementwise("c", ["r", "x"], "y", "SEQUENCE_CONCAT"),
        ),
        {"x": data},
        expected,
    )


def test_permute_of_the_sequence() -> None:
    data = draw("sequence", 3, 1, 4, 2, 5)
    check_layers(
        lambda b: b.add_permute("l", (3, 1, 2, 0), "x", "y"),
        {"x": data},
        data.transpose(4, 1, 2, 3, 0),
    )

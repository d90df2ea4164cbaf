"""Whole NeuralNetworks: inputs, images, labels, and weights in few bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_layers import check_layers, evaluate, network_of
from support.coreml_models import tools

import serde
from serde.core.weights import FileWeight
from serde.errors import FormatError

F32 = np.float32
RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (3, 8, 6)).astype(F32)
KERNEL = RNG.uniform(-1, 1, (4, 3, 3, 3)).astype(F32)


def convolution(b: Any, weight: Any, **options: Any) -> None:
    b.add_convolution(
        "conv", 3, 4, 3, 3, 1, 1, "valid", 1, weight, None, False,
        input_name="x", output_name="y", **options,
    )  # fmt: skip


def expected_of(kernel: np.ndarray) -> np.ndarray:
    """The convolution by what it is defined as."""
    windows = np.lib.stride_tricks.sliding_window_view(X, (3, 3), axis=(1, 2))
    return np.einsum("chwij,ocij->ohw", windows, kernel)[None, None].astype(F32)


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("kind", ["linear", "linear_per_channel", "lut"])
def test_weights_in_few_bits(kind: str, bits: int) -> None:
    codes = RNG.integers(0, 2**bits, KERNEL.shape)
    each = "".join(f"{code:0{bits}b}" for code in codes.transpose(2, 3, 1, 0).reshape(-1))
    each += "0" * (-len(each) % 8)
    raw = bytes(int(each[i : i + 8], 2) for i in range(0, len(each), 8))
    count = 4 if kind == "linear_per_channel" else 1
    scale, bias = (RNG.uniform(-0.1, 0.1, count).astype(F32) for _ in range(2))
    table = RNG.uniform(-1, 1, 2**bits).astype(F32)
    options: dict[str, Any] = {"quant_lut": table, "quantization_type": "lut"}
    kernel = table[codes]
    if kind != "lut":
        options = {"quant_scale": scale, "quant_bias": bias, "quantization_type": "linear"}
        kernel = codes * scale.reshape(-1, 1, 1, 1) + bias.reshape(-1, 1, 1, 1)
    check_layers(
        lambda b: convolution(b, raw, nbits=bits, is_quantized_weight=True, **options),
        {"x": X},
        expected_of(kernel),
    )


def test_weights_in_half_precision() -> None:
    spec = network_of(lambda b: convolution(b, KERNEL.transpose(2, 3, 1, 0)), {"x": X})
    weights = spec.neuralNetwork.layers[0].convolution.weights
    half = KERNEL.astype(np.float16)
    weights.float16Value = half.tobytes()
    del weights.floatValue[:]
    (found,) = evaluate(serde.to_relay(spec), {"x": X})
    np.testing.assert_allclose(found, expected_of(half.astype(F32)), rtol=1e-5, atol=1e-5)


def test_eight_bit_weights_of_a_dynamic_product() -> None:
    codes = RNG.integers(-128, 128, (5, 18)).astype(np.int8)
    x = RNG.uniform(-1, 1, (1, 18)).astype(F32)
    check_layers(
        lambda b: b.add_inner_product(
            "l", codes.tobytes(), None, 18, 5, False, "x", "y", int_8_dynamic_quantize=True,
            is_quantized_weight=True, quantization_type="linear", nbits=8,
            quant_scale=np.array([0.01]),
        ),
        {"x": x},
        x @ (codes.T * F32(0.01)),
        exact=True,
    )  # fmt: skip


def test_weights_stay_in_the_file(tmp_path: Path) -> None:
    kernel = RNG.uniform(-1, 1, (64, 3, 3, 3)).astype(F32)

    def build(b: Any) -> None:
        b.add_convolution(
            "conv", 3, 64, 3, 3, 1, 1, "valid", 1, kernel.transpose(2, 3, 1, 0), None, False,
            input_name="x", output_name="y",
        )  # fmt: skip

    path = tmp_path / "net.mlmodel"
    path.write_bytes(network_of(build, {"x": X}).SerializeToString())
    model = serde.to_relay(path)
    (weight,) = model.params.values()
    assert isinstance(weight, FileWeight)
    assert list(model.params) == ["conv_weights"]
    np.testing.assert_array_equal(weight.array(), kernel)


def test_too_few_weights() -> None:
    spec = network_of(lambda b: convolution(b, KERNEL.transpose(2, 3, 1, 0)), {"x": X})
    del spec.neuralNetwork.layers[0].convolution.weights.floatValue[5:]
    with pytest.raises(FormatError, match="expected values of"):
        serde.to_relay(spec)


@pytest.mark.parametrize("color", ["RGB", "BGR", "GRAYSCALE"])
def test_image(color: str) -> None:
    channels = 1 if color == "GRAYSCALE" else 3
    spec = network_of(lambda b: b.add_activation("l", "RELU", "x", "y"), {"x": X})
    image = spec.description.input[0].type.imageType
    image.width, image.height = 6, 8
    image.colorSpace = {"GRAYSCALE": 10, "RGB": 20, "BGR": 30}[color]
    step = spec.neuralNetwork.preprocessing.add()
    step.featureName = "x"
    scaler = step.scaler
    scaler.channelScale = 0.5
    scaler.redBias, scaler.greenBias, scaler.blueBias, scaler.grayBias = 1, -2, 3, -4
    mean = RNG.uniform(-1, 1, (channels, 8, 6)).astype(F32)
    second = spec.neuralNetwork.preprocessing.add()
    second.featureName = "x"
    second.meanImage.meanImage.extend(mean.ravel())
    pixels = RNG.uniform(0, 10, (1, channels, 8, 6)).astype(F32)
    bias = {"GRAYSCALE": [-4], "RGB": [1, -2, 3], "BGR": [3, -2, 1]}[color]
    wanted = pixels * 0.5 + np.array(bias, F32).reshape(-1, 1, 1) - mean
    model = serde.to_relay(spec)
    (found,) = evaluate(model, {"x": pixels})
    np.testing.assert_allclose(found, np.maximum(wanted, 0)[None], rtol=1e-6, atol=1e-6)
    assert model.meta.extra["x.color_space"] == color


@pytest.mark.parametrize("labels", [["cat", "dog", "owl"], [7, 8, 9]])
def test_classifier(labels: list[Any]) -> None:
    x = RNG.uniform(-1, 1, 4).astype(F32)
    weight = RNG.uniform(-1, 1, (3, 4)).astype(F32)

    def build(b: Any) -> None:
        b.add_inner_product("d", weight, None, 4, 3, False, "x", "d")
        b.add_softmax("s", "d", "scores")
        b.set_class_labels(labels, prediction_blob="scores")

    spec = network_of(build, {"x": x}, ["scores"], mode="classifier")
    model = serde.to_relay(spec)
    assert model.meta.labels == tuple(map(str, labels))
    (found,) = evaluate(model, {"x": x})
    scores = np.exp(weight @ x)
    np.testing.assert_allclose(found, scores / scores.sum(), rtol=1e-5)


def test_regressor() -> None:
    x = RNG.uniform(-1, 1, 4).astype(F32)
    spec = network_of(
        lambda b: b.add_activation("l", "RELU", "x", "y"), {"x": x}, ["y"], mode="regressor"
    )
    (found,) = evaluate(serde.to_relay(spec), {"x": x})
    np.testing.assert_array_equal(found.reshape(-1), np.maximum(x, 0))


def test_flexible_shape() -> None:
    spec = network_of(lambda b: b.add_activation("l", "RELU", "x", "y"), {"x": X})
    flexible = tools().models.neural_network.flexible_shape_utils
    shapes = flexible.NeuralNetworkMultiArrayShapeRange()
    shapes.add_channel_range((3, 3))
    shapes.add_height_range((4, 16))
    shapes.add_width_range((6, 6))
    flexible.update_multiarray_shape_range(spec, "x", shapes)
    model = serde.to_relay(spec)
    (variable,) = model.inputs()
    assert [str(dim) for dim in variable.type.shape] == ["3", "x_1", "6"]


def test_declared_outputs_have_their_axes() -> None:
    spec = network_of(lambda b: b.add_activation("l", "RELU", "x", "y"), {"x": X})
    spec.description.output[0].type.multiArrayType.shape.extend([3, 8, 6])
    (found,) = evaluate(serde.to_relay(spec), {"x": X})
    np.testing.assert_array_equal(found, np.maximum(X, 0))


def test_a_chain_of_layers_has_four_axes() -> None:
    def build(b: Any) -> None:
        convolution(b, KERNEL.transpose(2, 3, 1, 0))
        b.nn_spec.layers[0].output[0] = "c"
        b.add_activation("relu", "RELU", "c", "r")
        b.add_pooling("pool", 2, 2, 2, 2, "MAX", "VALID", "r", "y")

    text = serde.to_relay(network_of(build, {"x": X})).mod.astext()
    assert text.count("expand_dims") == 2
    assert "reshape" not in text


def test_an_unknown_tensor() -> None:
    spec = network_of(lambda b: b.add_activation("l", "RELU", "x", "y"), {"x": X})
    spec.neuralNetwork.layers[0].input[0] = "nothing"
    with pytest.raises(FormatError, match="no tensor is called 'nothing'"):
        serde.to_relay(spec)


def test_more_outputs_than_a_layer_gives(tmp_path: Path) -> None:
    spec = network_of(lambda b: convolution(b, KERNEL.transpose(2, 3, 1, 0)), {"x": X})
    spec.neuralNetwork.layers[0].output.append("more")
    path = tmp_path / "net.mlmodel"
    path.write_bytes(spec.SerializeToString())
    with pytest.raises(FormatError, match="conv: expected at most 1 outputs"):
        serde.to_relay(path)

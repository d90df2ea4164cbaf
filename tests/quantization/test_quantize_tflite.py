"""TFLite models quantised by ranges measured on samples, judged by LiteRT itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("ai_edge_litert")

from support.runtime import run_onnx
from support.tflite_models import run_litert

import serde
from serde.errors import CheckError, OptionError
from serde.tflite.codec import load

CLASSES = 10
IMAGE = (1, 3, 12, 12)


def save_net(path: Path, length: int | str = 1) -> Path:
    """A convolution, a residual, a join, poolings and a head; classes depend on the image."""
    rng = np.random.default_rng(0)
    weights = {
        "w0": rng.normal(0, 0.4, (8, 3, 3, 3)),
        "b0": rng.normal(0, 0.1, 8),
        "w1": rng.normal(0, 0.2, (8, 8, 3, 3)) * rng.uniform(0.05, 3, (8, 1, 1, 1)),
        "b1": rng.normal(0, 0.1, 8),
        "w2": rng.normal(0, 0.3, (8, 1, 3, 3)),
        "w3": rng.normal(0, 1, (16, CLASSES)),
        "b3": rng.normal(0, 1, CLASSES),
    }
    node = helper.make_node
    pads = {"pads": [1, 1, 1, 1]}
    nodes = [
        node("Conv", ["data", "w0", "b0"], ["c0"], "conv0", **pads),
        node("Relu", ["c0"], ["r0"], "relu0"),
        node("Conv", ["r0", "w1", "b1"], ["c1"], "conv1", **pads),
        node("Add", ["c1", "r0"], ["s"], "sum"),
        node("Relu", ["s"], ["r1"], "relu1"),
        node("Conv", ["r1", "w2"], ["c2"], "depthwise", group=8, **pads),
        node("Concat", ["c2", "r1"], ["j"], "join", axis=1),
        node("MaxPool", ["j"], ["m"], "most", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["m"], ["p"], "pool"),
        node("Flatten", ["p"], ["f"], "flat"),
        node("Gemm", ["f", "w3", "b3"], ["scores"], "head"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [length, *IMAGE[1:]])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [length, CLASSES])],
        [numpy_helper.from_array(each.astype("f4"), name) for name, each in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


def draw(count: int = 6, seed: int = 1, rows: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.2, 2, count)
    return [rng.normal(0, s, (rows, *IMAGE[1:])).astype(np.float32) for s in spread]


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_net(tmp_path_factory.mktemp("source") / "net.onnx")


@pytest.fixture(scope="module")
def quantized(net: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, serde.Report]:
    target = tmp_path_factory.mktemp("target") / "int8.tflite"
    return target, serde.convert(net, target, int8=True, calibration=draw())


def operators(path: Path) -> Counter[str]:
    """Return operators with the types of their results."""
    graph = load(path).subgraphs[0]
    return Counter(f"{x.name} {graph.tensors[x.outputs[0]].dtype}" for x in graph.operators)


def tensor(path: Path, name: str) -> Any:
    return next(each for each in load(path).subgraphs[0].tensors if each.name == name)


def test_all_layers_are_on_integers(quantized: tuple[Path, serde.Report]) -> None:
    """Inputs and outputs are floats; one side of the join has readers beside it."""
    assert operators(quantized[0]) == {
        "TRANSPOSE int8": 1, "QUANTIZE int8": 2, "CONV_2D int8": 2, "ADD int8": 1,
        "DEPTHWISE_CONV_2D int8": 1, "CONCATENATION int8": 1, "MAX_POOL_2D int8": 1,
        "MEAN int8": 1, "FULLY_CONNECTED int8": 1, "DEQUANTIZE float32": 1,
    }  # fmt: skip


def test_the_report_tells_what_litert_gives(
    net: Path, quantized: tuple[Path, serde.Report]
) -> None:
    target, report = quantized
    data = target.read_bytes()
    found = np.concatenate([run_litert(data, [x])[0] for x in draw()]).astype(np.float64)
    wanted = np.concatenate([run_onnx(net, {"data": x})[1][0] for x in draw()]).astype(np.float64)
    (row,) = report.accuracy
    noise = ((found - wanted) ** 2).sum()
    assert row.after.snr == pytest.approx(10 * np.log10((wanted**2).sum() / noise), abs=1e-3)
    assert row.before.cosine == pytest.approx(1, abs=1e-6)
    assert row.after.cosine > 0.999
    assert row.after.agreement == (wanted.argmax(1) == found.argmax(1)).mean()
    assert report.facts["smaller_size_bytes"] < report.facts["float_size_bytes"]
    assert report.facts["quantized"].endswith("activations int8 by minmax of 6 samples")


@pytest.mark.parametrize("seed", [2, 3])
def test_data_that_were_not_measured_on(
    net: Path, quantized: tuple[Path, serde.Report], seed: int
) -> None:
    data = quantized[0].read_bytes()
    for x in draw(4, seed):
        (wanted,) = run_onnx(net, {"data": x})[1]
        for optimised in (False, True):
            (found,) = run_litert(data, [x], optimised=optimised)
            assert np.vdot(wanted, found) > 0.99 * np.linalg.norm(wanted) * np.linalg.norm(found)


def test_scales(net: Path, quantized: tuple[Path, serde.Report], tmp_path: Path) -> None:
    """Channels have scales of their own without zero points, unless one for all is asked."""
    graph = onnx.load(net).graph
    source = next(numpy_helper.to_array(x) for x in graph.initializer if x.name == "w1")
    found = tensor(quantized[0], "w1")
    np.testing.assert_allclose(
        found.quantization.scales, np.abs(source).max((1, 2, 3)) / 127, rtol=1e-6
    )
    assert not found.quantization.zero_points.any()
    codes = found.values.array().astype(np.float32) * found.quantization.scales[:, None, None, None]
    assert np.abs(codes.transpose(0, 3, 1, 2) - source).max() <= found.quantization.scales.max() / 2
    whole = tmp_path / "whole.tflite"
    report = serde.convert(net, whole, int8=True, calibration=draw(), per_channel=False)
    assert tensor(whole, "w1").quantization.scales.shape == (1,)
    assert report.accuracy[0].after.snr < quantized[1].accuracy[0].after.snr


def test_every_sample_counts(net: Path, tmp_path: Path) -> None:
    scales = []
    for number, samples in enumerate([[x / 10 for x in draw()], draw()]):
        target = tmp_path / f"{number}.tflite"
        serde.convert(net, target, int8="static", calibration=samples)
        graph = load(target).subgraphs[0]
        first = next(each for each in graph.operators if each.name == "QUANTIZE")
        quantization = graph.tensors[first.outputs[0]].quantization
        scales.append(float(quantization.scales[0]))
        most = max(0.0, *(float(x.max()) for x in samples))
        least = min(0.0, *(float(x.min()) for x in samples))
        assert scales[-1] == pytest.approx((most - least) / 255, rel=1e-6)
        zero = int(quantization.zero_points[0])
        assert scales[-1] * (-128 - zero) == pytest.approx(least, abs=scales[-1] / 2)
    assert scales[1] > 9 * scales[0]


def test_symmetric(net: Path, tmp_path: Path) -> None:
    target = tmp_path / "symmetric.tflite"
    report = serde.convert(net, target, int8=True, calibration=draw(), symmetric=True)
    for each in load(target).subgraphs[0].tensors:
        assert each.quantization is None or not each.quantization.zero_points.any()
    assert report.accuracy[0].after.cosine > 0.999


def test_activations_of_16_bits(
    net: Path, quantized: tuple[Path, serde.Report], tmp_path: Path
) -> None:
    target = tmp_path / "int16.tflite"
    report = serde.convert(net, target, int8=True, calibration=draw(), activation_type="int16")
    found = operators(target)
    assert found["CONV_2D int16"] == 2
    assert {each for each in found if each.endswith("float32")} == {"DEQUANTIZE float32"}
    assert report.accuracy[0].after.snr > quantized[1].accuracy[0].after.snr


@pytest.mark.parametrize("way", ["dynamic", "weights"])
def test_weights_alone(tmp_path: Path, way: str) -> None:
    """Large filters are stored as codes; LiteRT computes with them, or widens them first."""
    rng = np.random.default_rng(3)
    made = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("Flatten", ["r"], ["f"]),
            helper.make_node("Gemm", ["f", "v"], ["y"], "head"),
        ],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 9, 9])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 12])],
        [
            numpy_helper.from_array(rng.normal(0, 0.2, shape).astype("f4"), name)
            for name, shape in {"w": (16, 16, 3, 3), "v": (784, 12)}.items()
        ],
    )
    opsets = [helper.make_opsetid("", 17)]
    source, target = tmp_path / "net.onnx", tmp_path / "small.tflite"
    onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=8), source)
    report = serde.convert(source, target, int8=way)
    assert report.facts["smaller_size_bytes"] < 0.35 * report.facts["float_size_bytes"]
    assert tensor(target, "w").dtype == "int8"
    assert operators(target)["DEQUANTIZE float32"] == (2 if way == "weights" else 0)
    x = rng.normal(0, 1, (1, 16, 9, 9)).astype(np.float32)
    (wanted,) = run_onnx(source, {"x": x})[1]
    (found,) = run_litert(target.read_bytes(), [x])
    assert np.sqrt(((found - wanted) ** 2).mean()) < 0.05 * wanted.std()


def test_what_is_excluded_stays(net: Path, tmp_path: Path) -> None:
    target = tmp_path / "net.tflite"
    serde.convert(net, target)
    (name,) = (
        load(target).subgraphs[0].tensors[each.outputs[0]].name
        for each in load(target).subgraphs[0].operators
        if each.name == "FULLY_CONNECTED"
    )
    serde.convert(net, target, int8=True, calibration=draw(), int8_exclude=(name,))
    assert operators(target)["FULLY_CONNECTED float32"] == 1
    assert operators(target)["CONV_2D int8"] == 2


def test_open_lengths(tmp_path: Path) -> None:
    source = save_net(tmp_path / "net.onnx", "N")
    target = tmp_path / "int8.tflite"
    samples = [x for rows in (1, 3) for x in draw(2, rows, rows)]
    report = serde.convert(source, target, int8=True, calibration=samples)
    assert report.accuracy[0].after.cosine > 0.999
    (x,) = draw(1, 5, 4)
    (wanted,) = run_onnx(source, {"data": x})[1]
    (found,) = run_litert(target.read_bytes(), [x])
    assert np.vdot(wanted, found) > 0.99 * np.linalg.norm(wanted) * np.linalg.norm(found)


def test_the_same_bytes(net: Path, quantized: tuple[Path, serde.Report], tmp_path: Path) -> None:
    again = tmp_path / "again.tflite"
    serde.convert(net, again, int8=True, calibration=draw())
    assert again.read_bytes() == quantized[0].read_bytes()


def test_too_much_is_lost(net: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="below the least"):
        serde.convert(
            net, tmp_path / "net.tflite", int8=True, calibration=draw(), min_cosine=0.9999999
        )
    assert list(tmp_path.iterdir()) == []


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no data": ({"int8": True}, "calibration data, which is missing"),
    "bits": ({"int4": True}, "int4: what quantises TFLite has no such option; it has int8"),
    "palettes": ({"palettize": 4}, "palettize"),
    "method": ({"int8": True, "calibration": 1, "calibration_method": "entropy"}, "method"),
    "weights": ({"int8": True, "calibration": 1, "weight_type": "uint8"}, "has int8 for"),
    "ranges": ({"int8": "dynamic", "symmetric": True}, "activations are floats"),
    "floats": ({"int8": True, "calibration": 1, "write_quantized": "exact"}, "on numbers"),
    "unknown": ({"int8": True, "calibration": 1, "int8_exclude": ("x9",)}, "no tensor x9"),
    "halves": ({"int8": "weights", "float16": True}, "float16"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(net: Path, tmp_path: Path, name: str) -> None:
    options, message = REFUSED[name]
    if "calibration" in options:
        options = {**options, "calibration": draw(1)}
    with pytest.raises(OptionError, match=message):
        serde.convert(net, tmp_path / "net.tflite", **options)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_quantise(tmp_path: Path) -> None:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Sin", ["x"], ["y"])], "sine", value[:1], value[1:])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "sine.onnx")
    with pytest.raises(serde.UnsupportedModelError, match="nothing in it is quantised"):
        serde.convert(
            tmp_path / "sine.onnx", tmp_path / "int8.tflite", int8=True,
            calibration=np.ones(2, np.float32),
        )  # fmt: skip
    assert not (tmp_path / "int8.tflite").exists()

"""ML Programs compressed by coremltools, judged by an executor of MIL and by coremltools."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.coreml_models import tools
from support.mil_executor import execute

import serde
from serde.command.cli import main
from serde.coreml.model import operations
from serde.engine.interpreter import RelayEngine
from serde.errors import CheckError

pytest.importorskip("coremltools")

IOS16 = {"minimum_deployment_target": "iOS16"}
IOS18 = {"minimum_deployment_target": "iOS18"}


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A convolution and a head, each with more elements than coremltools lets be."""
    rng = np.random.default_rng(0)
    weights = {
        "w0": rng.normal(0, 0.2, (16, 16, 3, 3)) * rng.uniform(0.1, 2, (16, 1, 1, 1)),
        "w1": rng.normal(0, 0.2, (256, 12)),
        "b1": rng.normal(0, 0.2, 12),
    }
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["data", "w0"], ["c"], "conv", strides=[2, 2]),
            helper.make_node("Relu", ["c"], ["r"], "relu"),
            helper.make_node("Flatten", ["r"], ["f"], "flat"),
            helper.make_node("Gemm", ["f", "w1", "b1"], ["scores"], "head"),
        ],
        "net",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 16, 9, 9])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 12])],
        [numpy_helper.from_array(each.astype("f4"), name) for name, each in weights.items()],
    )
    path = tmp_path_factory.mktemp("source") / "net.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def draw() -> np.ndarray:
    return np.random.default_rng(1).normal(0, 1, (1, 16, 9, 9)).astype(np.float32)


def weight_of(net: Path, name: str) -> np.ndarray:
    graph = onnx.load(net).graph
    return next(numpy_helper.to_array(each) for each in graph.initializer if each.name == name)


def kinds(path: Path) -> Counter[str]:
    spec = tools().models.MLModel(str(path), skip_model_load=True).get_spec()
    found = (op.type for op in operations(spec) if op.type.startswith("constexpr"))
    return Counter(found)


WAYS: dict[str, tuple[dict[str, Any], Counter[str], float]] = {
    "int8": ({"int8": True, **IOS16}, Counter(constexpr_affine_dequantize=2), 0.9999),
    "int8-per-tensor": (
        {"int8": "weights", "per_channel": False, **IOS16},
        Counter(constexpr_affine_dequantize=2),
        0.999,
    ),
    "uint8-iOS18": (
        {"int8": True, "weight_type": "uint8", **IOS18},
        Counter(constexpr_blockwise_shift_scale=2),
        0.9999,
    ),
    "int4": ({"int4": True, **IOS18}, Counter(constexpr_blockwise_shift_scale=2), 0.97),
    "int4-blocks": (
        {"int4": True, "block_size": 16, **IOS18},
        Counter(constexpr_blockwise_shift_scale=2),
        0.97,
    ),
    "int4-points": (
        {"int4": True, "zero_points": True, **IOS18},
        Counter(constexpr_blockwise_shift_scale=2),
        0.97,
    ),
    "palette": ({"palettize": 4, **IOS16}, Counter(constexpr_lut_to_dense=2), 0.97),
    "sparse": ({"sparsity": 0.5, **IOS16}, Counter(constexpr_sparse_to_dense=2), 0.9),
    "sparse-int8": (
        {"sparsity": 0.5, "int8": True, **IOS18},
        Counter(constexpr_sparse_blockwise_shift_scale=2, constexpr_sparse_to_dense=2),
        0.9,
    ),
    "sparse-palette": (
        {"sparsity": 0.5, "palettize": 6, **IOS18},
        Counter(constexpr_lut_to_sparse=2, constexpr_sparse_to_dense=2),
        0.9,
    ),
}
FIRST = ("int8",)


@pytest.mark.parametrize(
    "way", [pytest.param(w, marks=[] if w in FIRST else pytest.mark.wide) for w in WAYS]
)
def test_weights_are_compressed(net: Path, tmp_path: Path, way: str) -> None:
    """An executor that is none of ours, and the interpreter, give what the report tells."""
    options, wanted, least = WAYS[way]
    if "palettize" in options:
        pytest.importorskip("sklearn")
    plain, small = tmp_path / "plain.mlpackage", tmp_path / "small.mlpackage"
    target = options["minimum_deployment_target"]
    serde.convert(net, plain, minimum_deployment_target=target)
    report = serde.convert(net, small, calibration=draw(), **options)
    assert kinds(small) == wanted
    sizes = [
        (each / "Data/com.apple.CoreML/weights/weight.bin").stat().st_size
        for each in (plain, small)
    ]
    assert sizes[1] < 0.75 * sizes[0]
    (before,), (after,) = (execute_outputs(each) for each in (plain, small))
    (read,) = RelayEngine(serde.to_relay(small)).run({"data": draw()})
    np.testing.assert_allclose(read, after, atol=2e-2 * after.std())
    (row,) = report.accuracy
    cosine = np.vdot(before, after) / np.linalg.norm(before) / np.linalg.norm(after)
    assert row.after.cosine == pytest.approx(cosine, abs=2e-4)
    assert least < row.after.cosine < row.before.cosine
    assert report.facts["accuracy_data"] == "1 sample of the calibration data (arrays)"


def execute_outputs(path: Path) -> list[np.ndarray]:
    """What the executor gives for the drawn input, in float64."""
    return [np.asarray(each, np.float64) for each in execute(path, {"data": draw()})]


@pytest.mark.wide
def test_scales_and_levels_are_those_of_the_definition(net: Path, tmp_path: Path) -> None:
    """Each channel's greatest magnitude is 127 levels; coremltools undoes it."""
    small = tmp_path / "small.mlpackage"
    serde.convert(net, small, int8=True, **IOS16)
    ct = tools()
    model = ct.models.MLModel(str(small), skip_model_load=True)
    plain = ct.optimize.coreml.decompress_weights(model)
    found = ct.optimize.coreml.get_weights_metadata(plain, weight_threshold=100)
    source = weight_of(net, "w0")
    scale = np.abs(source).max(axis=(1, 2, 3), keepdims=True) / 127
    wanted = np.rint(source / scale) * scale
    (kernel,) = (each.val for each in found.values() if each.val.shape == source.shape)
    np.testing.assert_allclose(kernel, wanted, atol=1.01 * scale.max())
    rounding = 2.0**-11 * np.abs(source)  # It is stored in float16 before.
    assert np.all(np.abs(kernel - source) <= 0.51 * scale + 2 * rounding)


@pytest.mark.wide
def test_same_bytes_and_facts(net: Path, tmp_path: Path) -> None:
    """What the writer says of inputs and outputs stays; a second run gives the same files."""
    options = {
        "int8": True, "class_labels": [f"c{i}" for i in range(12)], "author": "A", **IOS16,
    }  # fmt: skip
    made = [tmp_path / name for name in ("a.mlpackage", "b.mlpackage")]
    for each in made:
        serde.convert(net, each, **options)
    files = [[p for p in sorted(each.rglob("*")) if p.is_file()] for each in made]
    assert [p.read_bytes() for p in files[0]] == [p.read_bytes() for p in files[1]]
    spec = tools().models.MLModel(str(made[0]), skip_model_load=True).get_spec()
    assert spec.description.predictedFeatureName == "classLabel"
    assert spec.description.metadata.author == "A"
    for op in operations(spec):
        blobs = {name: each.blobFileValue.offset for name, each in op.attributes.items()}
        places = [blobs[name] for name in sorted(blobs) if blobs[name]]
        assert places == sorted(places), "the order of a map, which differs between processes"


@pytest.mark.wide
def test_what_stays(net: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.mlpackage"
    serde.convert(net, small, int8=True, int8_exclude=("w0",), **IOS16)
    assert kinds(small)["constexpr_affine_dequantize"] == 1


@pytest.mark.wide
def test_too_little_left(net: Path, tmp_path: Path) -> None:
    target = tmp_path / "small.mlpackage"
    with pytest.raises(CheckError, match="scores is below the least"):
        serde.convert(net, target, sparsity=0.98, min_cosine=0.9, **IOS16)
    assert list(tmp_path.iterdir()) == []


REFUSED = {
    "an older system": (
        {"int8": True},
        "needs minimum_deployment_target=iOS16 or later, found iOS15",
    ),
    "4 bits": ({"int4": True, **IOS16}, "iOS18 or later, found iOS16"),
    "blocks": ({"int8": True, "block_size": 16, **IOS16}, "iOS18 or later, found iOS16"),
    "a palette in blocks": ({"palettize": 4, "block_size": 16, **IOS18}, "block_size: what pale"),
    "parts": ({"int4": True, "int4_head": False, **IOS18}, "int4_head: what compresses weights"),
    "two ways": ({"sparsity": 0.5, "int8": True, **IOS16}, "int8 and sparsity: needs"),
    "activations": ({"int8": "static", "calibration": draw(), **IOS18}, "runs on macOS"),
    "at run time": ({"int8": "dynamic", **IOS18}, "no activations at run time"),
    "a palette and levels": ({"int8": True, "palettize": 4, **IOS18}, "one of them"),
    "bits": ({"palettize": 5, **IOS18}, "palettize: expected one of"),
    "a share": ({"sparsity": 1.5, **IOS18}, "a share between 0 and 1"),
    "types of activations": ({"int8": True, "activation_type": "int8", **IOS18}, "stay floats"),
    "a network": ({"int8": True, "minimum_deployment_target": "iOS14"}, "needs an ML Program"),
    "an unknown operation": ({"int8": True, "int8_exclude": ("w9",), **IOS16}, "no operation w9"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(net: Path, tmp_path: Path, case: str) -> None:
    options, message = REFUSED[case]
    name = "small.mlmodel" if case == "a network" else "small.mlpackage"
    with pytest.raises(serde.OptionError, match=message):
        serde.convert(net, tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.wide
def test_on_the_command_line(net: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = ["convert", str(net), str(tmp_path / "small.mlpackage"), "--int8", "weights"]
    assert main([*args, "--minimum-deployment-target", "iOS16"]) == 0
    shown = capfd.readouterr().err
    assert "weights int8 per channel; activations stay floats" in shown
    assert "Running" not in shown  # The tool's bars of progress.

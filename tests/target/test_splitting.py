"""Models of files split, checked and written; what is kept of operators that nobody knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.errors import CheckError, OptionError, UnsupportedModelError
from serde.target import HybridExecutor, OnnxModule
from serde.target.onnx import build
from serde.target.splitting import split

X = np.random.default_rng(2).normal(size=(2, 5)).astype(np.float32)


def unknown_net() -> onnx.ModelProto:
    """A product, an operator of ONNX Runtime alone, and a sigmoid behind it."""
    weight = np.random.default_rng(3).normal(size=(5, 8)).astype(np.float32)
    others = np.random.default_rng(4).normal(size=(3, 8)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
        helper.make_node(
            "CDist", ["h", "others"], ["a"], name="apart", domain="com.microsoft",
            metric="euclidean",
        ),
        helper.make_node("Sigmoid", ["a"], ["y"], name="gate"),
    ]  # fmt: skip
    float32 = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", float32, [2, 5])],
        [helper.make_tensor_value_info("y", float32, [2, 3])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(others, "others")],
        value_info=[helper.make_tensor_value_info("a", float32, [2, 3])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_an_operator_that_nobody_knows_stays_and_runs(tmp_path: Path) -> None:
    source = unknown_net()
    with pytest.raises(UnsupportedModelError):
        split(source)
    found = split(source, tmp_path / "split", keep_unknown=True, opset=13)
    assert [(node.op, node.name) for node in found.partition.staying] == [
        ("serde.foreign", "apart")
    ]
    assert [each.nodes[0] for each in found.module.imported_modules] == ["Gemm", "Sigmoid"]
    session = onnxruntime.InferenceSession(
        source.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (expected,) = session.run(None, {"x": X})
    for module in (found.module, OnnxModule.load(tmp_path / "split")):
        np.testing.assert_allclose(HybridExecutor(module).run(X)[0], expected, rtol=1e-5)


def net() -> relay.IRModule:
    x = relay.var("x", shape=(2, 5))
    return relay.IRModule.from_expr(relay.nn.relu(relay.exp(relay.tanh(x))))


def test_a_split_is_compared_with_its_source(tmp_path: Path) -> None:
    report = Report()
    found = split(net(), tmp_path / "split", supported=["Tanh"], runs=2, report=report)
    assert report.passed
    assert not found.partition.is_whole
    assert [stage.name for stage in report.stages] == [
        "load", "relay -> relay", "partition", "build", "check", "save",
    ]  # fmt: skip


def test_a_split_that_gives_something_else_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(region: object) -> object:
        return lambda arrays: [np.zeros_like(each) for each in arrays]

    monkeypatch.setattr("serde.target.regions._RUNNERS", {"wrong": wrong})
    with pytest.raises(CheckError, match="split model"):
        split(net(), tmp_path / "split", supported=["Tanh"], runs=1, runner="wrong")
    assert not (tmp_path / "split").exists()


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(OptionError, match="expected a package to replace"):
        split(tmp_path / "missing.onnx", tmp_path / "mine")
    with pytest.raises(OptionError, match="no operator of ONNX"):
        split(tmp_path / "missing.onnx", supported=["Reluu"])


@pytest.mark.wide
@pytest.mark.parametrize("suffix", [".onnx", "-symbol.json", ".relay", ".mlpackage", ".nnef.tgz"])
def test_any_format_is_split(suffix: str, tmp_path: Path) -> None:
    x = relay.var("data", shape=(1, 3, 6, 6))
    w = relay.var("w", shape=(4, 3, 3, 3))
    body = relay.sigmoid(relay.nn.relu(relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3))))
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    path = tmp_path / f"net{suffix}"
    mod = relay.IRModule.from_expr(relay.Function([x, w], body))
    serde.from_relay((mod, {"w": weights}), path=path)
    options = {"input_shapes": {"data": (1, 3, 6, 6)}} if suffix.endswith("json") else {}
    report = Report()
    found = split(path, tmp_path / "split", supported=["Conv", "Relu"], report=report, **options)
    assert [each.nodes for each in found.module.imported_modules] == [("Conv", "Relu")]
    values = np.random.default_rng(1).normal(size=(1, 3, 6, 6)).astype(np.float32)
    expected = relay.create_executor(mod=mod, params={"w": weights}).evaluate()(values)
    result = HybridExecutor(OnnxModule.load(tmp_path / "split")).run(values)[0]
    half = suffix == ".mlpackage"  # which holds weights in 16 bits and computes so
    np.testing.assert_allclose(result, expected, atol=5e-3 if half else 1e-5)


@pytest.mark.parametrize("opset", [11, 13, 20])
def test_a_split_without_regions_keeps_its_opset(tmp_path: Path, opset: int) -> None:
    found = split(net(), tmp_path / "split", supported=["MaxPool"], opset=opset)
    assert not found.partition.regions
    assert (found.partition.opset, found.module.opset) == (opset, opset)
    assert OnnxModule.load(tmp_path / "split").opset == opset
    expected = np.maximum(np.exp(np.tanh(X)), 0)
    np.testing.assert_allclose(HybridExecutor(found.module).run(X)[0], expected, rtol=1e-5)


def test_a_partitioned_module_without_regions_keeps_its_opset() -> None:
    mod = relay.op.contrib.onnx.partition_for_onnx(net(), supported=["MaxPool"], opset=13)
    assert build(relay.fromtext(mod.astext())).opset == 13
    assert build(mod).opset == 13
    assert build(mod, opset=11).opset == 11

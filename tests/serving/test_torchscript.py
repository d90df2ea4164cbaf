"""TorchScript in a repository of Triton's, whose backend is told names by places."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from serde.fleet.serving import write_triton

torch = pytest.importorskip("torch")


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_what_is_written_runs_under_the_names_by_place(tmp_path: Path) -> None:
    shapes = {"a": ["N", 3], "b": ["N", 3], "sum": ["N", 3], "top": ["N"]}
    value = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    }
    nodes = [
        helper.make_node("Add", ["a", "b"], ["sum"]),
        helper.make_node("ReduceMax", ["sum"], ["top"], axes=[1], keepdims=0),
    ]
    ends = [value["a"], value["b"]], [value["sum"], value["top"]]
    model = helper.make_model(
        helper.make_graph(nodes, "g", *ends), opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )  # fmt: skip
    net = tmp_path / "net.onnx"
    onnx.save(model, net)
    placed = write_triton(net, tmp_path / "models", target_format="torch")
    assert placed == tmp_path / "models" / "net" / "1"
    config = (placed.parent / "config.pbtxt").read_text(encoding="utf-8")
    assert re.findall(r'  name: "(.*)"', config) == ["a__0", "b__1", "sum__0", "top__1"]
    assert re.findall(r'^(?:backend|platform): "(.*)"', config, re.MULTILINE) == [
        "pytorch_libtorch", "pytorch",
    ]  # fmt: skip
    module = torch.jit.load(os.fspath(placed / "model.pt"))
    feed = {name: np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32) for name in "ab"}
    expected = onnxruntime.InferenceSession(os.fspath(net)).run(["sum", "top"], feed)
    found = module(*map(torch.from_numpy, feed.values()))
    for ours, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), wanted, rtol=1e-6)

"""Files of docs/runtimes.md: a small model of tokens, and a runtime's list."""

import re
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from support.pages import ROOT

nodes = [
    helper.make_node("Gather", ["table", "ids"], ["x"]),
    helper.make_node("Cast", ["mask"], ["m"], to=onnx.TensorProto.FLOAT),
    helper.make_node("Unsqueeze", ["m", "last"], ["m3"]),
    helper.make_node("Mul", ["x", "m3"], ["y"]),
    helper.make_node("ReduceMean", ["y"], ["mean"], axes=[1], keepdims=0),
    helper.make_node("MatMul", ["mean", "w"], ["scores"]),
    helper.make_node("ArgMax", ["scores"], ["best"], axis=-1, keepdims=0),
]
rng = np.random.default_rng(0)
weights = {
    "table": rng.normal(size=(50, 8)).astype(np.float32),
    "w": rng.normal(size=(8, 10)).astype(np.float32),
    "last": np.array([2]),
}
integers, floats = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
graph = helper.make_graph(
    nodes,
    "ranker",
    [helper.make_tensor_value_info(name, integers, [2, 7]) for name in ("ids", "mask")],
    [
        helper.make_tensor_value_info("scores", floats, [2, 10]),
        helper.make_tensor_value_info("best", integers, [2]),
    ],
    [numpy_helper.from_array(array, name) for name, array in weights.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "ranker.onnx")
page = (ROOT / "docs" / "runtimes.md").read_text("utf-8")
Path("small.toml").write_text(re.search(r"```toml\n(.*?)```", page, re.S)[1], "utf-8")

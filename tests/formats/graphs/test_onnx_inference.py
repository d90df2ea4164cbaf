"""Graphs that ONNX infers piece by piece, as it would infer all of one."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from serde.core.weights import ArrayWeight
from serde.errors import ConverterBug
from serde.onnx import inference
from serde.onnx.model import OnnxModel


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "_PIECE", 2)


def model(target: list[int], length: int) -> OnnxModel:
    """Six nodes: a reshape by a constant two pieces before it, then a weight that is added to it.

    Args:
        target: Of the reshape of eight elements.
        length: Of the weight.
    """
    shape = numpy_helper.from_array(np.array(target), "target")
    inner = helper.make_graph(
        [helper.make_node("Add", ["reshaped", "w"], ["sum"])], "then", [],
        [helper.make_tensor_value_info("sum", TensorProto.FLOAT, None)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Constant", [], ["shape"], value=shape),
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("Relu", ["t"], ["r"]),
        helper.make_node("Abs", ["r"], ["a"]),
        helper.make_node("Reshape", ["a", "shape"], ["reshaped"]),
        helper.make_node("Not", ["c"], ["d"]),
        helper.make_node("If", ["d"], ["y"], then_branch=inner, else_branch=inner),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [8]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])
    graph = helper.make_graph(nodes, "main", inputs, [output])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return OnnxModel(proto, {"w": ArrayWeight(np.zeros(length, np.float32))})


def test_types_pass_from_piece_to_piece() -> None:
    native = model([2, 4], 4)
    before = native.proto.SerializeToString()
    inference.infer_shapes(native)
    assert native.proto.SerializeToString() == before


def test_weight_of_another_length_is_told() -> None:
    with pytest.raises(ConverterBug, match="Incompatible dimensions"):
        inference.infer_shapes(model([2, 4], 3))


def test_output_of_another_shape_is_told() -> None:
    with pytest.raises(ConverterBug, match=r"(?i)inferred shape and existing shape differ"):
        inference.infer_shapes(model([4, 2], 2))

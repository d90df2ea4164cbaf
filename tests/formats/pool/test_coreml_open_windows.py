"""Windows that round up along lengths that are open, judged by ONNX Runtime's at many lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from support.mil_executor import execute
from support.runtime import open_session

import serde
from serde.coreml.model import operations

WINDOWS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "max-2-2": ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, True),
    "max-3-2": ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2]}, True),
    "max-padded": (
        "MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, True,
    ),
    "max-uneven": (
        "MaxPool", {"kernel_shape": [4, 3], "strides": [2, 2], "pads": [0, 1, 1, 0]}, False,
    ),
    "average": ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2]}, True),
    "average-padded": (
        "AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, True,
    ),
}  # fmt: skip
"""Each with whether MIL itself rounds up."""


def pooled(op: str, attrs: dict[str, Any]) -> ModelProto:
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "H", "W"]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
    ]
    node = helper.make_node(op, ["x"], ["y"], ceil_mode=1, **attrs)
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.wide
@pytest.mark.parametrize("target", ["iOS15", "iOS18"])
@pytest.mark.parametrize("name", WINDOWS)
def test_open_lengths_round_up(name: str, target: str) -> None:
    op, attrs, own = WINDOWS[name]
    model = pooled(op, attrs)
    native = serde.export_model(
        model, format="coreml", compute_precision="float32", minimum_deployment_target=target
    )
    (window,) = [op for op in operations(native.get_spec()) if op.type.endswith("_pool")]
    flag = window.inputs["ceil_mode"].arguments[0].name
    (constant,) = [
        op for op in operations(native.get_spec()) if op.outputs and op.outputs[0].name == flag
    ]
    assert constant.attributes["val"].immediateValue.tensor.bools.values[0] == own
    session = open_session(model.SerializeToString())
    for height in range(6, 11):
        x = np.random.default_rng(height).normal(size=(1, 2, height, 9)).astype(np.float32)
        (expected,) = session.run(None, {"x": x})
        (found,) = execute(native, {"x": x})
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)

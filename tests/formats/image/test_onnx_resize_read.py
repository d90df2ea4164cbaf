"""Resize of version 11 by coordinates that ONNX dropped at 13, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from support.onnx_suite import interpret

import serde
from serde.errors import UnsupportedModelError

X = np.random.default_rng(0).standard_normal((1, 2, 4, 5)).astype(np.float32)


def model_of(sizes: bool, is_open: bool, **attrs: Any) -> onnx.ModelProto:
    shape = (1, 2, "H", "W") if is_open else X.shape
    tensors = {
        "roi": np.zeros(0, np.float32),
        "scales": np.array([] if sizes else [1, 1, 2, 1.5], np.float32),
        **({"sizes": np.array([1, 2, 7, 3])} if sizes else {}),
    }
    attrs["coordinate_transformation_mode"] = "tf_half_pixel_for_nn"
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", *tensors], ["y"], **attrs)],
        "g",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, [None] * 4)],
        [numpy_helper.from_array(each, name) for name, each in tensors.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)


def run(proto: onnx.ModelProto) -> np.ndarray:
    return onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": X})[0]


KINDS = [
    {"mode": "nearest", "nearest_mode": "floor"},
    {"mode": "nearest", "nearest_mode": "round_prefer_floor"},
    {"mode": "linear"},
    {"mode": "cubic"},
]


@pytest.mark.parametrize("opset", [11, 17, 19])
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("sizes", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind.values()))
def test_half_pixels_for_nearest(
    kind: dict[str, str], sizes: bool, is_open: bool, opset: int
) -> None:
    proto = model_of(sizes, is_open, **kind)
    expected, model = run(proto), serde.to_relay(proto)
    np.testing.assert_allclose(interpret(model, {"x": X})[0], expected, atol=2e-6)
    if is_open and opset >= 13 and kind["mode"] != "nearest":
        with pytest.raises(UnsupportedModelError, match=r"dropped at version 13 \(use opset 12"):
            serde.from_relay(model, format="onnx", opset=opset)
        return
    np.testing.assert_allclose(
        run(serde.from_relay(model, format="onnx", opset=opset)), expected, atol=2e-6
    )

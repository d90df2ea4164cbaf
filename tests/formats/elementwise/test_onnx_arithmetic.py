"""Remainders of ONNX by zero and of infinities, in every format."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from support.onnx_suite import interpret

import serde
from serde.bridge.formats import get_bridge
from serde.compat import import_mxnet
from serde.conversion.prepare import PrepareOptions, prepare
from serde.core.report import Report
from serde.mxnet.engine import MxnetEngine, mxnet_program

LEFT = [5, -5, 0, np.inf, -np.inf, np.nan, 7, -7, 3, -4.5]
RIGHT = [0, 0, 0, 2, 0, 1, np.inf, np.inf, -np.inf, 3]


def remainder_of(dtype: str) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, y, z = (helper.make_tensor_value_info(each, kind, [10]) for each in "xyz")
    graph = helper.make_graph(
        [helper.make_node("Mod", ["x", "y"], ["z"], fmod=1)], "g", [x, y], [z]
    )
    opsets = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=7)


@pytest.mark.parametrize("target", ["relay", "onnx", "mxnet"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_floats_by_zero_are_no_numbers(dtype: str, target: str) -> None:
    proto = remainder_of(dtype)
    given = {"x": np.array(LEFT, dtype), "y": np.array(RIGHT, dtype)}
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, given)
    assert np.isnan(expected[:6]).all()
    model = serde.to_relay(proto)
    if target == "relay":
        (found,) = interpret(model, given)
    elif target == "onnx":
        written = serde.from_relay(model, format="onnx").SerializeToString()
        (found,) = onnxruntime.InferenceSession(written).run(None, given)
    else:
        model, bridge = prepare(model, PrepareOptions(), report=Report()), get_bridge("mxnet")
        native = bridge.from_relay(model, bridge.bind_export({}), report=Report())
        (found,) = MxnetEngine(import_mxnet(), mxnet_program(native, model)).run(given)
    np.testing.assert_array_equal(found, expected)

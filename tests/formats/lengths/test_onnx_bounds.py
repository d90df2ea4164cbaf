"""Operands and attributes of ONNX nodes that fit nothing, or ask for too much: one error each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import serde
import serde.relay as relay
from serde.core.outcome import exit_code
from serde.errors import (
    EvaluationError,
    FormatError,
    LimitError,
    SerdeError,
    UnsupportedModelError as Refused,
)


def model(nodes: str, given: str = "float[2, 3] x", **constants: object) -> onnx.ModelProto:
    """Return a model that gives y, its constants of int64 unless they are arrays."""
    text = f'<ir_version: 10, opset_import: ["" : 23]> g ({given}) => (float y) {{ {nodes} }}'
    proto = parser.parse_model(text)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    for name, value in constants.items():
        array = value if isinstance(value, np.ndarray) else np.array(value, np.int64)
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    return proto


NAN = np.array(np.nan, np.float32)
ONE = np.array(1, np.float32)
INF = np.array(np.inf, np.float32)
HUGE = 2**62

FEW = {
    "gather_axis": (model("y = Gather <axis = 7> (x, i)", i=[0]), Refused),
    "reduce_axis": (model("y = ReduceMax (x, a)", a=[5]), Refused),
    "pad_count": (model("y = Pad (x, p)", p=[1, 2, 3]), Refused),
    "range_nan": (model("y = Range (a, b, c)", a=ONE, b=NAN, c=ONE), Refused),
    "expand_scalar": (model("y = Expand (x, s)", "float[2, 3] x, int64 s"), Refused),
    "split_parts": (model(f"y, z = Split <num_outputs = {HUGE}> (x)"), LimitError),
    "rank": (model("y = Expand (x, s)", s=[1] * 1000), Refused),
    "stft": (model("y = STFT (x, s, , l)", "float[1, 9999999, 1] x", s=1, l=999), LimitError),
}
"""Models, and what is raised."""

MANY = {
    "slice_axis": (model("y = Slice (x, s, e, a)", s=[0], e=[1], a=[9]), Refused),
    "slice_counts": (model("y = Slice (x, s, e)", s=[0, 0], e=[1]), Refused),
    "slice_rank": (model("y = Slice (x, s, e)", s=[[0]], e=[[1]]), Refused),
    "unsqueeze_axis": (model("y = Unsqueeze (x, a)", a=[9]), Refused),
    "unsqueeze_twice": (model("y = Unsqueeze (x, a)", a=[0, 0]), Refused),
    "reduce_scalar": (model("y = ReduceMax (x, a)", "float x", a=[0]), Refused),
    "reduce_rank": (model("y = ReduceMax (x, a)", "float[2] x, int64[2, 2] a"), Refused),
    "pad_axis": (model("y = Pad (x, p, , a)", p=[1, 1], a=[4]), Refused),
    "wrap_nothing": (model('y = Pad <mode = "wrap"> (x, p)', "float[0] x", p=[1, 1]), Refused),
    "split_axis": (model("y, z = Split <axis = 4, num_outputs = 2> (x)"), Refused),
    "split_none": (model("y, z = Split <num_outputs = 0> (x)"), Refused),
    "cumsum_scalar": (model("y = CumSum (x, a)", "float x", a=0), Refused),
    "hardmax_axis": (model("y = Hardmax <axis = 3> (x)"), Refused),
    "one_hot_depths": (model("y = OneHot (i, d, v)", "float[2] v, int64[2] i", d=[1, 2]), Refused),
    "range_inf": (model("y = Range (a, b, c)", a=ONE, b=INF, c=ONE), Refused),
    "range_by_nothing": (model("y = Range (a, b, c)", a=0, b=1, c=0), Refused),
    "resize_count": (model("y = Resize (x, , , s)", s=[1, 2, 3, 4]), Refused),
    "resize_nan": (model("y = Resize (x, , s)", s=np.array([1, np.nan], np.float32)), Refused),
    "gemm_scalar": (model("y = Gemm <transB = 1> (x, b)", "float[2, 3] x, float b"), Refused),
    "same_pads": (model('y = MaxPool <kernel_shape = [2], strides = [2], auto_pad = "SAME_UPPER">'
                        " (x)", "float[1, 1, N, M] x"), Refused),
    "window": (model("y, i = MaxPool <kernel_shape = [-2, 0]> (x)",
                     "float[1, 1, 4, 4] x"), Refused),
    "input_rank": (model("y = Relu (x)", f"float[{', '.join('1' * 100)}] x"), FormatError),
}  # fmt: skip
"""The same for other operators."""


def refuses(proto: onnx.ModelProto, kind: type[SerdeError], folder: Path) -> None:
    """Check that a model raises one error that is no defect, and that nothing is written."""
    with pytest.raises(kind) as caught:
        serde.convert(proto, folder / "m.onnx", source_format="onnx")
    assert exit_code(caught.value) in (1, 3)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", FEW)
def test_operands_that_fit_nothing(name: str, tmp_path: Path) -> None:
    refuses(*FEW[name], tmp_path)


@pytest.mark.wide
@pytest.mark.parametrize("name", MANY)
def test_operands_of_other_operators(name: str, tmp_path: Path) -> None:
    refuses(*MANY[name], tmp_path)


def test_an_index_outside_of_weights_fails_as_the_model_would(tmp_path: Path) -> None:
    table = np.zeros((3, 400), np.float32)
    indices = np.full((3, 400), 7, np.int64)
    proto = model("y = GatherElements <axis = 0> (t, i)", t=table, i=indices)
    del proto.graph.input[:]
    refuses(proto, EvaluationError, tmp_path)


def test_tensors_of_attributes_are_read_where_they_are() -> None:
    """Those of 1 KiB and more stay in the file."""
    keys, values = np.arange(500), np.arange(500) * 3
    node = helper.make_node(
        "LabelEncoder",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        keys_tensor=numpy_helper.from_array(keys),
        values_tensor=numpy_helper.from_array(values),
        default_tensor=numpy_helper.from_array(np.array([-1])),
    )
    ends = [helper.make_tensor_value_info(name, TensorProto.INT64, [4]) for name in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    found = serde.to_relay(proto.SerializeToString(), format="onnx")
    x = np.array([0, 499, 7, 500])
    result = relay.create_executor("debug", mod=found.mod).evaluate()(
        x, *(weight.array() for weight in found.params.values())
    )
    np.testing.assert_array_equal(np.asarray(result), [0, 1497, 21, -1])


def test_numbers_beside_data_are_passed_over(tmp_path: Path) -> None:
    """Of a file's numbers there may be millions, of up to ten bytes, in any window of it."""
    proto = model("y = Add (x, w)", w=np.ones(600, np.float32))
    numbers = [0, -1, 2**63 - 1, -(2**63), 127, 128, 300] * 5000
    attribute = proto.graph.node[0].attribute.add(name="n", type=onnx.AttributeProto.INTS)
    attribute.ints.extend(numbers)
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(Refused, match="unknown attribute n"):
        serde.to_relay(path)
    cut = path.read_bytes()[:-1]
    with pytest.raises(FormatError):
        serde.to_relay(cut, format="onnx")


def test_axes_of_no_array_are_refused() -> None:
    proto = model("y = Add (x, w)", w=np.zeros(0, np.float32))
    proto.graph.initializer[0].dims[:] = [0, 2**62, 2**62]
    with pytest.raises(FormatError, match="no array"):
        serde.to_relay(proto)


def test_a_length_that_inference_would_wrap_around_is_refused() -> None:
    bounds = (relay.const(each, "int64") for each in (0, 2**63 - 1, 1))
    body = relay.sum(relay.arange(*bounds, dtype="int64"))
    with pytest.raises(Refused, match="a tensor of the lengths"):
        serde.from_relay(relay.Function([], body), format="onnx")

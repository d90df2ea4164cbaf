"""ONNX sequences and optionals as Relay: what onnx's backend suite does not cover."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser
from support.onnx_suite import interpret

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.errors import UnsupportedModelError
from serde.relay.ir.types import SequenceType, TensorType
from serde.relay.ir.visit import post_order

X = np.arange(12, dtype=np.float32).reshape(6, 2)


def model_of(text: str, opset: int = 17) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')


def has_sequences(model: relay.RelayModel) -> bool:
    return any(isinstance(node.type, SequenceType) for node in post_order(model.main))


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (
            "s = SplitToSequence<axis=0>(x, two) p = Constant<value_int=-1>() y = SequenceAt(s, p)",
            X[4:],
        ),
        (
            "s = SplitToSequence<axis=0>(x, four) r = SequenceErase(s) "
            "y = ConcatFromSequence<axis=1>(r)",
            X[:4],
        ),
        (
            "s = SplitToSequence<axis=0>(x, two) p = Constant<value_int=1>() "
            "t = SequenceErase(s, p) y = ConcatFromSequence<axis=0>(t)",
            np.concatenate([X[:2], X[4:]]),
        ),
        (
            "e = SequenceEmpty<dtype=1>() a = SequenceInsert(e, x) h = Neg(x) "
            "p = Constant<value_int=0>() b = SequenceInsert(a, h, p) "
            "y = ConcatFromSequence<axis=-1, new_axis=1>(b)",
            np.stack([-X, X], -1),
        ),
        (
            "s = SplitToSequence<axis=1, keepdims=0>(x) n = SequenceLength(s) y = Cast<to=1>(n)",
            np.float32(2),
        ),
    ],
)
def test_known_positions_leave_no_sequence(nodes: str, expected: np.ndarray) -> None:
    consts = "two = Constant<value_int=2>() four = Constant<value_int=4>()"
    rank = ",".join("?" * np.ndim(expected))
    out = f"float[{rank}] y" if rank else "float y"
    model = serde.to_relay(model_of(f"g (float[6,2] x) => ({out}) {{ {consts} {nodes} }}"))
    assert not has_sequences(model)
    np.testing.assert_array_equal(interpret(model, {"x": X})[0], expected)


@pytest.mark.parametrize("position", [-3, 0, 2])
def test_a_position_that_is_computed(position: int) -> None:
    proto = model_of(
        "g (float[6,2] x, int64 p) => (float[2,2] y) "
        "{ two = Constant<value_int=2>() s = SplitToSequence(x, two) y = SequenceAt(s, p) }"
    )
    model = serde.to_relay(proto)
    found = interpret(model, {"x": X, "p": np.array(position)})[0]
    np.testing.assert_array_equal(found, X.reshape(3, 2, 2)[position])


def test_a_position_outside() -> None:
    proto = model_of(
        "g (float[6,2] x) => (float[2,2] y) "
        "{ p = Constant<value_int=1>() s = SequenceConstruct(x) y = SequenceAt(s, p) }"
    )
    with pytest.raises(UnsupportedModelError, match="position 1 is outside a sequence of 1"):
        serde.to_relay(proto)


def test_parts_that_do_not_make_the_whole() -> None:
    proto = model_of(
        "g (float[6,2] x) => (int64 n) "
        "{ p = Constant<value_ints=[2, 3]>() s = SplitToSequence(x, p) n = SequenceLength(s) }"
    )
    with pytest.raises(UnsupportedModelError, match=r"parts of \[2, 3\] do not make a length of 6"):
        serde.to_relay(proto)


def test_a_loop_that_fills_an_empty_sequence() -> None:
    """The empty sequence says nothing of its elements; the body does."""
    proto = model_of(
        "g (float[N] x, int64 m) => (float[?] y) { e = SequenceEmpty<dtype=1>() "
        "s = Loop<body = b (int64 i, bool go, seq(float) t) => (bool on, seq(float) u) "
        "{ on = Identity(go) f = Cast<to=1>(i) v = Mul(x, f) u = SequenceInsert(t, v) }>(m, , e) "
        "y = ConcatFromSequence<axis=0>(s) }"
    )
    x = np.array([1, 2], np.float32)
    found = interpret(serde.to_relay(proto), {"x": x, "m": np.array(3)})[0]
    np.testing.assert_array_equal(found, [0, 0, 1, 2, 2, 4])


@pytest.mark.slow
def test_a_sequence_of_many_tensors_is_built_in_time() -> None:
    nodes = [helper.make_node("SequenceEmpty", [], ["s0"])]
    nodes += [
        helper.make_node("SequenceInsert", [f"s{i}", "x"], [f"s{i + 1}"]) for i in range(3000)
    ]
    nodes.append(helper.make_node("SequenceLength", ["s3000"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    assert interpret(serde.to_relay(proto), {"x": np.ones(1, np.float32)})[0] == 3000


def optional_branches() -> onnx.ModelProto:
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    optional = helper.make_optional_type_proto(element)

    def branch(name: str, node: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph([node], name, [], [helper.make_value_info(name, optional)])

    full = branch("a", helper.make_node("Optional", ["x"], ["a"]))
    none = branch("b", helper.make_node("Optional", [], ["b"], type=element))
    graph = helper.make_graph(
        [
            helper.make_node("If", ["c"], ["o"], then_branch=full, else_branch=none),
            helper.make_node("OptionalHasElement", ["o"], ["h"]),
        ],
        "g",
        [
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
        ],
        [helper.make_tensor_value_info("h", TensorProto.BOOL, [])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("there", [True, False])
def test_branches_that_give_an_optional(there: bool) -> None:
    proto = optional_branches()
    found = interpret(serde.to_relay(proto), {"c": np.array(there), "x": np.ones(2, np.float32)})
    assert bool(found[0]) is there


@pytest.mark.parametrize("op", ["StringConcat", "StringSplit", "StringNormalizer"])
def test_operators_of_strings_are_refused_by_name(op: str) -> None:
    node = helper.make_node(op, ["x"], ["y"], name="text")
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, [2])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    with pytest.raises(
        UnsupportedModelError, match=rf"{op} +x1  a tensor of strings has no .*text"
    ):
        serde.to_relay(proto)


@pytest.mark.parametrize("format", ["onnx", "coreml", "nnef", "mxnet"])
def test_an_optional_input_of_a_given_shape_is_there(format: str) -> None:
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3])
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    nodes = [
        helper.make_node("OptionalGetElement", ["a"], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    optional = helper.make_value_info("a", helper.make_optional_type_proto(element))
    graph = helper.make_graph(nodes, "main", [optional], [value])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    report = Report()
    model = serde.to_relay(proto, input_shapes={"a": (2, 3)}, report=report)
    assert [each.type for each in model.inputs()] == [TensorType((2, 3), "float32")]
    assert "input a is optional, and read as there" in report.notes
    serde.from_relay(model, format=format)
    assert isinstance(serde.to_relay(proto).inputs()[0].type, SequenceType)

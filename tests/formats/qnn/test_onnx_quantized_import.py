"""Quantised operators of ONNX through Relay, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.onnx_suite import interpret
from support.runtime import open_session

import serde

RNG = np.random.default_rng(5)


def _bytes(dtype: str, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def check(op: str, given: dict[str, Any], constants: dict[str, Any], **attrs: Any) -> None:
    """Compare the interpreter and a second export with ONNX Runtime, bit for bit."""
    order = [*given, *constants]
    ranks = sorted(order, key=lambda name: int(name[1:]))
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in given.items()
    ]
    graph = helper.make_graph(
        [helper.make_node(op, ranks, ["y"], **attrs)],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", _result(op, given, constants), None)],
        [numpy_helper.from_array(np.asarray(x), name) for name, x in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (expected,) = open_session(model.SerializeToString()).run(None, given)
    relay = serde.to_relay(model)
    (found,) = interpret(relay, given)
    np.testing.assert_array_equal(found, expected, strict=True)
    again = serde.from_relay(relay, format="onnx", opset=17)
    (second,) = open_session(again.SerializeToString()).run(None, given)
    np.testing.assert_array_equal(second, expected, strict=True)


def _result(op: str, given: dict[str, Any], constants: dict[str, Any]) -> int:
    if op.endswith("Integer"):
        return TensorProto.INT32
    return helper.np_dtype_to_tensor_dtype({**given, **constants}["i7"].dtype)


@pytest.mark.exact_sums
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_qlinear_conv(dtype: str, per_channel: bool, biased: bool) -> None:
    scales = np.array([0.01, 0.02, 0.004, 0.03], np.float32)
    bias = {"i8": RNG.integers(-2000, 2000, 4).astype(np.int32)} if biased else {}
    check(
        "QLinearConv",
        {"i0": _bytes("uint8", 2, 4, 6, 5)},
        {
            "i1": np.float32(0.02),
            "i2": np.uint8(131),
            "i3": _bytes(dtype, 4, 2, 3, 3),
            "i4": scales if per_channel else np.float32(0.01),
            "i5": np.zeros(4, dtype) if per_channel else np.array(3, dtype),
            "i6": np.float32(0.11),
            "i7": np.uint8(120),
            **bias,
        },
        group=2,
        pads=[1, 0, 1, 2],
        strides=[2, 1],
    )


def test_qlinear_conv_over_one_axis() -> None:
    check(
        "QLinearConv",
        {"i0": _bytes("uint8", 2, 4, 7)},
        {
            "i1": np.float32(0.02),
            "i2": np.uint8(131),
            "i3": _bytes("uint8", 6, 4, 3),
            "i4": np.float32(0.01),
            "i5": np.uint8(99),
            "i6": np.float32(0.11),
            "i7": np.uint8(120),
        },
        pads=[1, 0],
    )


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize(
    ("left", "right"), [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (2, 2, 4, 5))]
)
def test_qlinear_matmul(left: tuple[int, ...], right: tuple[int, ...], columns: bool) -> None:
    """Two products of 8 and 7 bits fit into 16, in which some processors saturate sums."""
    vector = columns and len(right) == 2
    check(
        "QLinearMatMul",
        {"i0": _bytes("uint8", *left), "i3": _bytes("int8", *right) // 2},
        {
            "i1": np.float32(0.02),
            "i2": np.uint8(131),
            "i4": np.linspace(0.01, 0.05, 5, dtype=np.float32) if vector else np.float32(0.03),
            "i5": np.arange(5, dtype=np.int8) if vector else np.int8(-4),
            "i6": np.float32(0.15),
            "i7": np.uint8(100),
        },
    )


@pytest.mark.parametrize(
    ("left", "right"), [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (2, 2, 4, 5))]
)
@pytest.mark.parametrize("constant", [False, True])
def test_matmul_integer(left: tuple[int, ...], right: tuple[int, ...], constant: bool) -> None:
    points = {"i2": np.array(7, np.uint8), "i3": np.array(130, np.uint8)}
    given = {"i0": _bytes("uint8", *left), "i1": _bytes("uint8", *right)}
    check("MatMulInteger", given if constant else {**given, **points}, points if constant else {})


@pytest.mark.parametrize("constant", [False, True])
def test_conv_integer(constant: bool) -> None:
    points = {"i2": np.array(7, np.uint8), "i3": np.array(130, np.uint8)}
    given = {"i0": _bytes("uint8", 1, 4, 6, 5), "i1": _bytes("uint8", 6, 2, 3, 3)}
    check(
        "ConvInteger",
        given if constant else {**given, **points},
        points if constant else {},
        group=2,
        pads=[1, 0, 1, 2],
        dilations=[2, 1],
    )


@pytest.mark.parametrize(
    ("op", "shapes"),
    [("QLinearConv", [(1, 4, 6, 5), (6, 4, 3, 3)]), ("QLinearMatMul", [(3, 4), (4, 5)])],
)
def test_quantized_layers_stay_whole(op: str, shapes: list[tuple[int, ...]]) -> None:
    names = [f"i{place}" for place in range(8)]
    weight = _bytes("int8", *shapes[1])
    parts = [np.float32(0.02), np.uint8(3), weight, np.float32(0.1), np.int8(2)]
    fixed = dict(zip(names[1:], [*parts, np.float32(0.5), np.uint8(7)], strict=True))
    info = helper.make_tensor_value_info("i0", TensorProto.UINT8, shapes[0])
    result = helper.make_tensor_value_info("y", TensorProto.UINT8, None)
    weights = [numpy_helper.from_array(np.asarray(x), name) for name, x in fixed.items()]
    graph = helper.make_graph([helper.make_node(op, names, ["y"])], "g", [info], [result], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    again = serde.from_relay(serde.to_relay(model), format="onnx", opset=17)
    assert [node.op_type for node in again.graph.node] == [op]

"""Sequences of Relay as sequences of ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from support.exported import OPSETS, export, operators, run_proto
from support.runtime import newest_runtime_opset

import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relay.ir.dims import Any as AnyDim
from serde.relay.ir.expr import Call, Expr, Function, If, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import call
from serde.relay.ir.types import SequenceType, TensorType
from serde.relay.run.interpreter import run

ROW = TensorType((2,))
ROWS = SequenceType(TensorType((AnyDim(),)))
A, B = np.array([1, 2], np.float32), np.array([3, 4, 5], np.float32)
FROM_13 = [opset for opset in OPSETS if opset >= 13]
FROM_14 = [opset for opset in OPSETS if opset >= 14]


def int64(value: int) -> Expr:
    return relay.const(value, "int64")


def assert_same(function: Function, opset: int, arguments: list[Any]) -> onnx.ModelProto:
    proto = export(function, opset)
    expected = run(function, arguments)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for one, other in zip(run_proto(proto, arguments), expected, strict=True):
        assert isinstance(one, list) == isinstance(other, list)
        if isinstance(one, list):
            for found, wanted in zip(one, other, strict=True):
                np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_array_equal(one, other)
    return proto


@pytest.mark.parametrize("opset", OPSETS)
def test_interface_declares_sequences(opset: int) -> None:
    x = Var("x", SequenceType(TensorType(("n", 3))))
    body = call("serde.sequence_erase", x)
    proto = assert_same(Function([x], body), opset, [[np.ones((2, 3), np.float32)] * 2])
    (given,), (result,) = proto.graph.input, proto.graph.output
    element = given.type.sequence_type.elem_type.tensor_type
    assert element.elem_type == onnx.TensorProto.FLOAT
    assert [dim.dim_param or dim.dim_value for dim in element.shape.dim] == ["n", 3]
    assert result.type == given.type


@pytest.mark.parametrize("opset", FROM_13)
@pytest.mark.parametrize("chosen", [True, False])
def test_branches_yield_sequences(opset: int, chosen: bool) -> None:
    c, x, y = Var("c", TensorType((), "bool")), Var("x", ROWS), Var("y", ROW)
    longer = call("serde.sequence_insert", x, y, int64(0))
    shorter = call("serde.sequence_erase", x, int64(0))
    value = If(c, longer, shorter)
    body = Tuple([value, call("serde.sequence_length", value)])
    proto = assert_same(Function([c, x, y], body), opset, [np.array(chosen), [A, B], A])
    assert "If" in operators(proto.graph.node)


@pytest.mark.parametrize("opset", FROM_13)
@pytest.mark.parametrize("count", [0, 3])
def test_loops_carry_sequences(opset: int, count: int) -> None:
    limit, x = Var("limit", TensorType((), "int64")), Var("x", ROW)
    number, state, row = Var("i", TensorType((), "int64")), Var("state", ROWS), Var("row", ROW)
    lengthened = relay.concatenate([row, relay.cast(relay.expand_dims(number, 0), "float32")], 0)
    fields = [relay.const(True), call("serde.sequence_insert", state, lengthened), row]
    body = Function([number, state, row], Tuple(fields))
    start = call("serde.sequence_empty", shape=("?",))
    loop = relay.serde.loop(limit, None, [start], [x], body=body).tuple_value
    held = TupleGetItem(loop, 0)
    result = Tuple([held, TupleGetItem(loop, 1), call("serde.sequence_length", held)])
    proto = assert_same(Function([limit, x], result), opset, [np.array(count), A])
    assert operators(proto.graph.node).count("Loop") == 1


@pytest.mark.parametrize("opset", FROM_13)
def test_loops_capture_sequences(opset: int) -> None:
    limit, x = Var("limit", TensorType((), "int64")), Var("x", ROWS)
    number, total, held = (
        Var("i", TensorType((), "int64")),
        Var("total", TensorType(())),
        Var("held", ROWS),
    )
    item = relay.sum(call("serde.sequence_at", held, number))
    body = Function([number, total, held], Tuple([relay.const(True), relay.add(total, item)]))
    loop = relay.serde.loop(limit, None, [relay.const(0.5)], [x], body=body).tuple_value
    function = Function([limit, x], TupleGetItem(loop, 0))
    (found,) = run_proto(export(function, opset), [np.array(2), [A, B]])
    assert float(found) == 0.5 + A.sum() + B.sum()


@pytest.mark.parametrize("opset", FROM_14)
def test_a_sequence_handed_through_is_copied(opset: int) -> None:
    x = Var("x", ROWS)
    proto = assert_same(Function([x], x), opset, [[A, B]])
    assert operators(proto.graph.node) == ["Identity"]


@pytest.mark.parametrize("opset", FROM_13)
@pytest.mark.parametrize("there", [True, False])
def test_optional(opset: int, there: bool) -> None:
    x, fallback = Var("x", ROWS), Var("fallback", TensorType((AnyDim(),)))
    has = relay.serde.optional_has_element(x)
    body = Tuple([has, If(has, relay.serde.optional_get_element(x), fallback)])
    assert_same(Function([x, fallback], body), opset, [[A] if there else [], B])


@pytest.mark.parametrize("opset", OPSETS)
def test_known_positions_need_no_sequence(opset: int) -> None:
    x = Var("x", TensorType((4, 2)))
    rows = call("serde.sequence_split", x, axis=0, keepdims=False)
    body = relay.add(
        call("serde.sequence_at", rows, int64(-1)), call("serde.sequence_at", rows, int64(1))
    )
    data = np.arange(8, dtype=np.float32).reshape(4, 2)
    proto = export(Function([x], body), opset)
    assert not any("Sequence" in name for name in operators(proto.graph.node))
    np.testing.assert_array_equal(run_proto(proto, [data])[0], data[3] + data[1])


@pytest.mark.parametrize("opset", [15, newest_runtime_opset()])
def test_local_functions_take_sequences(opset: int) -> None:
    x, inner = Var("x", ROWS), Var("rows", ROWS)
    body = call("serde.sequence_insert", inner, call("serde.sequence_at", inner, int64(0)))
    callee = Function([inner], body, None, attrs={"Composite": "again"})
    function = Function([x], Call(callee, [x]))
    proto = export(function, opset, local_functions=True)
    assert [each.name for each in proto.functions] == ["again"]
    (found,) = run_proto(proto, [[A, B]])
    for one, other in zip(found, [A, B, A], strict=True):
        np.testing.assert_array_equal(one, other)


def test_branches_before_13_take_no_sequence() -> None:
    c, x = Var("c", TensorType((), "bool")), Var("x", ROWS)
    body = If(c, call("serde.sequence_erase", x), call("serde.sequence_erase", x, int64(0)))
    with pytest.raises(UnsupportedModelError, match="If takes no sequence at version 12"):
        export(Function([c, x], body), 12)


def test_copies_before_14_take_no_sequence() -> None:
    x = Var("x", ROWS)
    with pytest.raises(UnsupportedModelError, match="Identity takes no sequence at version 13"):
        export(Function([x], x), 13)

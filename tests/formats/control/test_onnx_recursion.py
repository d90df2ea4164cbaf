"""Functions that call themselves, as Loop of ONNX."""

from __future__ import annotations

import numpy as np
import pytest
from support.exported import OPSETS, assert_close, export, interpreted, run_proto

import serde.relay as relay
from serde.onnx.builder import walk_nodes
from serde.relay.ir.expr import Call, Function, GlobalVar, If, Let, Tuple, TupleGetItem, Var
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import FuncType, TensorType, TupleType

X3 = np.array([0.5, -2.0, 0.25], np.float32)
INT = TensorType((), "int32")
VECTOR = TensorType((3,))


def example(calls: Var | GlobalVar) -> Function:
    """Return ``for i in range(10): b = a*2 + a; a = a + b if b.sum() > 0 else a - b``."""
    i, a = relay.var("i", shape=(), dtype="int32"), relay.var("a", shape=(3,))
    b, following = Var("b", VECTOR), Var("following", VECTOR)
    positive = relay.greater(relay.sum(b), relay.const(0.0))
    chosen = If(positive, relay.add(a, b), relay.subtract(a, b))
    again = Call(calls, [relay.add(i, relay.const(1)), following])
    value = relay.add(relay.multiply(a, relay.const(2.0)), a)
    step = Let(b, value, Let(following, chosen, again))
    return Function([i, a], If(relay.less(i, relay.const(10)), step, a), VECTOR)


def in_numpy(a: np.ndarray) -> np.ndarray:
    for _ in range(10):
        b = a * np.float32(2) + a
        a = a + b if b.sum() > 0 else a - b
    return a


@pytest.mark.thin(2)
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("is_global", [False, True])
def test_loop_with_an_if_inside(opset: int, sign: int, is_global: bool) -> None:
    x = relay.var("x", shape=(3,))
    if is_global:
        name = GlobalVar("repeat", FuncType([INT, VECTOR], VECTOR))
        main = Function([x], Call(name, [relay.const(0), x]))
        mod = IRModule({name: example(name), GlobalVar("main"): main})
    else:
        repeat = Var("repeat", FuncType([INT, VECTOR], VECTOR))
        body = Let(repeat, example(repeat), Call(repeat, [relay.const(0), x]))
        mod = IRModule({"main": Function([x], body)})
    proto = export(mod, opset)
    ops = [node.op_type for node in walk_nodes(proto.graph.node)]
    assert ops.count("Loop") == 1
    assert ops.count("If") == 1
    data = X3 * np.float32(sign)
    assert_close(run_proto(proto, [data]), [in_numpy(data)])


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("start", [0, 3, 9])
def test_while_loop_of_tvm(opset: int, start: int) -> None:
    """A list of numbers grows until it has seven."""
    i = relay.var("i", shape=(), dtype="int32")
    rows = relay.var("rows", shape=(relay.Any(), 1), dtype="int32")

    def fewer(i: Var, _rows: Var) -> Call:
        return relay.less(i, relay.const(7))

    def body(i: Var, rows: Var) -> list[Call]:
        row = relay.reshape(i, (1, 1))
        return [relay.add(i, relay.const(1)), relay.concatenate([rows, row], axis=0)]

    loop = relay.loops.while_loop(fewer, [i, rows], body)
    n = relay.var("n", shape=(), dtype="int32")
    first = relay.reshape(relay.const(0), (1, 1))
    source = Function([n], Call(loop, [n, first]))
    proto = export(source, opset)
    found = run_proto(proto, [np.array(start, np.int32)])
    numbers = np.array([0, *range(start, 7)], np.int32).reshape(-1, 1)
    assert_close(found, [np.array(max(start, 7), np.int32), numbers])


@pytest.mark.parametrize("local", [False, True])
def test_recursion_that_a_function_argument_hides(local: bool) -> None:
    """What is repeated comes in as an argument, so that it is known once that is inlined."""
    step, x0 = Var("step", FuncType([VECTOR], VECTOR)), relay.var("x0", shape=(3,))
    go = Var("go", FuncType([INT, VECTOR], VECTOR))
    i, a = relay.var("i", shape=(), dtype="int32"), relay.var("a", shape=(3,))
    again = Call(go, [relay.add(i, relay.const(1)), Call(step, [a])])
    body = Function([i, a], If(relay.less(i, relay.const(4)), again, a), VECTOR)
    times = Function([step, x0], Let(go, body, Call(go, [relay.const(0), x0])))
    u, x = relay.var("u", shape=(3,)), relay.var("x", shape=(3,))
    cosine = Function([u], relay.cos(u), attrs={"Composite": "vendor.cosine"})
    source = Function([x], Call(times, [cosine, x]))
    proto = export(source, local_functions=local)
    assert [function.name for function in proto.functions] == ["vendor_cosine"] * local
    assert_close(run_proto(proto, [X3]), [np.cos(np.cos(np.cos(np.cos(X3))))])


def test_loop_whose_state_is_a_tuple_result() -> None:
    i, a, b = (
        relay.var("i", shape=(), dtype="int32"),
        relay.var("a", shape=(3,)),
        relay.var("b", shape=(3,)),
    )
    pair = TupleType([VECTOR, VECTOR])
    go = Var("go", FuncType([INT, VECTOR, VECTOR], pair))
    again = Call(go, [relay.add(i, relay.const(1)), b, relay.add(a, b)])
    body = Function([i, a, b], If(relay.less(i, relay.const(6)), again, Tuple([a, b])), pair)
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    done = Let(go, body, Call(go, [relay.const(0), x, y]))
    source = Function([x, y], relay.multiply(TupleGetItem(done, 0), TupleGetItem(done, 1)))
    a3, b3 = X3, X3 * np.float32(0.5)
    expected = interpreted(source, [a3, b3])
    proto = export(source)
    found = run_proto(proto, [a3, b3])
    for _ in range(6):
        a3, b3 = b3, a3 + b3
    assert_close(found, [a3 * b3])
    assert_close(found, expected)

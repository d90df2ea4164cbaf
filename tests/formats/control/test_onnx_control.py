"""Conditionals and loops of Relay as If, Loop and Scan of ONNX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.exported import (
    OPSETS,
    assert_close,
    export,
    interpreted,
    operators,
    run_proto,
    subgraph,
    typed,
)
from support.runtime import OLD_RUNTIME

import serde
import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.onnx.builder import walk_nodes
from serde.relay.ir.expr import Call, Expr, Function, If, Let, Span, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import call
from serde.relay.ir.types import FuncType, TensorType, TupleType
from serde.walk.placement import Scope

RNG = np.random.default_rng(11)
X3 = RNG.standard_normal(3).astype(np.float32)


def flag(name: str = "c") -> Var:
    return relay.var(name, shape=(), dtype="bool")


def vector(name: str = "x", *dims: object) -> Var:
    return relay.var(name, shape=dims or (3,))


def number(name: str = "i") -> Var:
    return relay.var(name, shape=(), dtype="int64")


def only(proto: onnx.ModelProto, op: str) -> onnx.NodeProto:
    (found,) = [node for node in proto.graph.node if node.op_type == op]
    return found


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("chosen", [True, False])
def test_branch_holds_what_it_alone_needs(opset: int, chosen: bool) -> None:
    c, x = flag(), vector()
    shared = relay.exp(x)
    left, right = relay.tanh(relay.add(shared, x)), relay.sqrt(relay.abs(shared))
    proto = export(Function([c, x], If(c, left, right)), opset)
    node = only(proto, "If")
    assert operators(proto.graph.node) == ["Exp", "If"]
    assert operators(subgraph(node, "then_branch").node) == ["Add", "Tanh"]
    assert operators(subgraph(node, "else_branch").node) == ["Abs", "Sqrt"]
    grown = np.exp(X3)
    expected = np.tanh(grown + X3) if chosen else np.sqrt(np.abs(grown))
    assert_close(run_proto(proto, [np.array(chosen), X3]), [expected])


@pytest.mark.parametrize("chosen", [True, False])
def test_node_of_both_branches_and_the_outside_lies_outside(chosen: bool) -> None:
    c, x = flag(), vector()
    shared = relay.exp(x)
    body = Tuple([If(c, relay.negative(shared), relay.sqrt(shared)), shared])
    proto = export(Function([c, x], body))
    assert operators(proto.graph.node) == ["Exp", "If"]
    grown = np.exp(X3)
    expected = [-grown if chosen else np.sqrt(grown), grown]
    assert_close(run_proto(proto, [np.array(chosen), X3]), expected)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_ifs_in_a_branch_share_a_node_in_that_branch(first: bool, second: bool) -> None:
    c, d, x = flag(), flag("d"), vector()
    shared = relay.tanh(x)
    inner = If(d, relay.add(shared, x), relay.multiply(shared, x))
    body = If(c, relay.add(inner, If(d, shared, x)), relay.negative(x))
    proto = export(Function([c, d, x], body))
    node = only(proto, "If")
    assert operators(proto.graph.node) == ["If"]
    then = subgraph(node, "then_branch")
    assert operators(then.node) == ["Tanh", "If", "If", "Add"]
    bent = np.tanh(X3)
    inside = bent + X3 + bent if second else bent * X3 + X3
    found = run_proto(proto, [np.array(first), np.array(second), X3])
    assert_close(found, [inside if first else -X3])


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("chosen", [True, False])
def test_branches_that_are_an_input_and_a_constant(opset: int, chosen: bool) -> None:
    c, x = flag(), vector()
    fixed = np.array([1, 2, 3], np.float32)
    proto = export(Function([c, x], If(c, x, relay.const(fixed))), opset)
    node = only(proto, "If")
    outside = {"x", *(tensor.name for tensor in proto.graph.initializer)}
    for branch in ("then_branch", "else_branch"):
        graph = subgraph(node, branch)
        assert operators(graph.node) == ["Identity"]
        assert graph.output[0].name not in outside
        assert not graph.initializer
    assert_close(run_proto(proto, [np.array(chosen), X3]), [X3 if chosen else fixed])


@pytest.mark.parametrize("chosen", [True, False])
def test_branches_that_yield_tuples_in_tuples(chosen: bool) -> None:
    c = flag()
    inner = TupleType([TensorType((3,)), TensorType((2,))])
    t = relay.var("t", TupleType([TensorType((3,)), inner]))
    swapped = Tuple([TupleGetItem(t, 0), TupleGetItem(TupleGetItem(t, 1), 1)])
    body = Tuple([If(c, TupleGetItem(t, 1), swapped), relay.exp(TupleGetItem(t, 0))])
    proto = export(Function([c, t], body))
    assert [each.name for each in proto.graph.input] == ["c", "t_0", "t_1_0", "t_1_1"]
    assert [each.name for each in proto.graph.output] == ["output0_0", "output0_1", "output1"]
    a, b, d = X3, X3 * 2, np.array([7, 8], np.float32)
    found = run_proto(proto, [np.array(chosen), a, b, d])
    assert_close(found, [b if chosen else a, d, np.exp(a)])


def test_check_of_tuples_in_the_result(tmp_path: Path) -> None:
    x = vector()
    source = Function([x], Tuple([Tuple([relay.exp(x), x]), relay.tanh(x)]))
    report = serde.convert((typed(source), {}), tmp_path / "net.onnx", check=True)
    assert report.passed
    assert [each.output for each in report.verdicts] == ["output0_0", "output0_1", "output1"]


def test_parameter_that_is_a_function_is_refused() -> None:
    x, f = vector(), Var("f", FuncType([TensorType((3,))], TensorType((3,))))
    with pytest.raises(UnsupportedModelError, match=r"is no tensor \[f\]"):
        export(Function([f, x], Call(f, [x])))


def test_one_value_twice_in_a_branch() -> None:
    c, x = flag(), vector()
    twice = relay.exp(x)
    proto = export(Function([c, x], If(c, Tuple([twice, twice]), Tuple([x, x]))))
    assert_close(run_proto(proto, [np.array(True), X3]), [np.exp(X3)] * 2)
    assert_close(run_proto(proto, [np.array(False), X3]), [X3] * 2)


def test_names_of_flat_inputs_give_way() -> None:
    t = relay.var("t", TupleType([TensorType((3,)), TensorType((3,))]))
    other = vector("t_0")
    body = relay.add(relay.subtract(TupleGetItem(t, 0), TupleGetItem(t, 1)), other)
    proto = export(Function([t, other], body))
    assert [each.name for each in proto.graph.input] == ["t_0_", "t_1", "t_0"]
    assert_close(run_proto(proto, [X3, X3 * 3, X3 * 10]), [X3 - X3 * 3 + X3 * 10])


@pytest.mark.parametrize("chosen", [True, False])
def test_let_around_and_inside_a_branch(chosen: bool) -> None:
    c, x, v, w = flag(), vector(), Var("v"), Var("w")
    then = Let(w, relay.tanh(v), relay.add(w, w))
    source = Function([c, x], Let(v, relay.exp(x), If(c, then, relay.negative(x))))
    proto = export(source)
    node = only(proto, "If")
    assert operators(proto.graph.node) == ["If"]
    assert operators(subgraph(node, "then_branch").node) == ["Exp", "Tanh", "Add"]
    bent = np.tanh(np.exp(X3))
    assert_close(run_proto(proto, [np.array(chosen), X3]), [bent + bent if chosen else -X3])


def test_let_with_a_wider_type_is_an_alias() -> None:
    x = vector("x", "N")
    wide = Var("v", TensorType((relay.Any(),)))
    proto = export(Function([x], Let(wide, relay.exp(x), relay.tanh(wide))))
    assert_close(run_proto(proto, [X3]), [np.tanh(np.exp(X3))])


@pytest.mark.parametrize("chosen", [True, False])
def test_weights_in_branches_are_initializers_of_the_model(chosen: bool) -> None:
    c, x = flag(), vector("x", 2, 3)
    w, v = vector("w", 4, 3), vector("v", 4, 3)
    body = If(c, relay.nn.dense(x, w), relay.nn.dense(relay.negative(x), v))
    arrays = {name: RNG.standard_normal((4, 3)).astype(np.float32) for name in "wv"}
    proto = export(Function([c, x, w, v], body), params=arrays)
    assert {tensor.name for tensor in proto.graph.initializer} == {"w", "v"}
    assert all(not subgraph(only(proto, "If"), f"{b}_branch").initializer for b in ("then", "else"))
    data = RNG.standard_normal((2, 3)).astype(np.float32)
    expected = data @ arrays["w"].T if chosen else -data @ arrays["v"].T
    assert_close(run_proto(proto, [np.array(chosen), data]), [expected])


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("chosen", [True, False])
def test_symbol_in_a_branch(opset: int, chosen: bool) -> None:
    c, x, y = flag(), vector("x", "N", 3), vector()
    body = If(c, relay.broadcast_to(relay.exp(y), x.type.shape), relay.negative(x))
    proto = export(Function([c, x, y], body), opset)
    data = RNG.standard_normal((5, 3)).astype(np.float32)
    expected = np.broadcast_to(np.exp(X3), (5, 3)) if chosen else -data
    assert_close(run_proto(proto, [np.array(chosen), data, X3]), [expected])


def nest(depth: int) -> Function:
    c, x = flag(), vector()
    value: Expr = relay.negative(x)
    for level in range(depth):
        value = If(c, relay.exp(value), relay.const(np.full(3, level, np.float32)))
    return Function([c, x], value)


@pytest.mark.skipif(
    OLD_RUNTIME, reason="ONNX Runtime 1.23 takes twice as long for each conditional inside another"
)
def test_ifs_inside_each_other_up_to_what_protobuf_reads() -> None:
    proto = export(nest(31))
    assert sum(node.op_type == "If" for node in walk_nodes(proto.graph.node)) == 31
    found = run_proto(proto, [np.array(False), X3])
    assert_close(found, [np.full(3, 30, np.float32)])


@pytest.mark.parametrize("depth", [32, 1000])
def test_more_ifs_inside_each_other_are_refused(depth: int) -> None:
    with pytest.raises(UnsupportedModelError, match="more than 31 subgraphs") as caught:
        export(nest(depth))
    assert len(caught.value.report.issues) == 1


def test_scopes_find_what_is_around_both() -> None:
    root = Scope()
    trunk = [root]
    for step in range(200):
        trunk.append(Scope(trunk[-1], str(step)))
    left, right = Scope(trunk[77], "left"), Scope(trunk[77], "right")
    for step in range(90):
        left = Scope(left, str(step))
    assert left.common(right) is trunk[77]
    assert right.common(left) is trunk[77]
    assert left.common(trunk[200]) is trunk[77]
    assert trunk[13].common(left) is trunk[13]
    assert left.common(left) is left


def unsayable(x: Expr, span: Span | None = None) -> Expr:
    """Return floats of the bits of `x` as integers, which ONNX reads from version 26 on."""
    return relay.cast(call("reinterpret", x, dtype="int32", span=span), "float32")


def test_gap_in_a_branch_is_named_with_its_path() -> None:
    c, x = flag(), vector("x", 3, 3)
    bad = unsayable(x, Span("pick"))
    chosen = If(c, relay.tanh(bad), relay.const(np.zeros((3, 3), np.float32)), Span("gate"))
    with pytest.raises(UnsupportedModelError, match=r"\[gate/then/pick\]"):
        export(Function([c, x], chosen))


def example() -> Function:
    """Return ``b = a*2 + a; a = a + b if b.sum() > 0 else a - b`` as the body of a loop."""
    i, a = number(), vector("a")
    b = relay.add(relay.multiply(a, relay.const(2.0)), a)
    positive = relay.greater(relay.sum(b), relay.const(0.0))
    return Function(
        [i, a], Tuple([relay.const(True), If(positive, relay.add(a, b), relay.subtract(a, b))])
    )


def example_in_numpy(a: np.ndarray, times: int) -> np.ndarray:
    for _ in range(times):
        b = a * np.float32(2) + a
        a = a + b if b.sum() > 0 else a - b
    return a


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("sign", [1, -1])
def test_loop_with_an_if_inside(opset: int, sign: int) -> None:
    x = vector()
    looped = relay.serde.loop(relay.const(10, "int64"), None, [x], [], body=example())
    proto = export(Function([x], looped[0]), opset)
    body = subgraph(only(proto, "Loop"), "body")
    assert "If" in operators(body.node)
    data = np.array([1, 2, -0.5], np.float32) * np.float32(sign)
    assert_close(run_proto(proto, [data]), [example_in_numpy(data, 10)])


def test_the_call_that_tvm_had() -> None:
    x = vector()
    looped = relay.serde.loop(relay.const(10, "int64"), None, [x], [], body=example())
    mod = typed(Function([x], looped[0]))
    proto = relay.to_onnx(mod, {}, "net", opset_version=13)
    assert proto.graph.name == "net"
    assert_close(run_proto(proto, [X3]), [example_in_numpy(X3, 10)])
    same = serde.from_relay(serde.to_relay(mod), format="onnx", opset=13)
    assert same.graph.node == proto.graph.node


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("limit", [0, 1, 4])
def test_loops_inside_each_other_with_stacks(opset: int, limit: int) -> None:
    """The inner loop adds k * step for k = 0, 1, 2; the outer stacks what that gives."""
    j, s, step = number("j"), vector("s"), vector("step")
    scaled = relay.multiply(relay.cast(j, "float32"), step)
    inner = Function([j, s, step], Tuple([relay.const(True), relay.add(s, scaled)]))
    i, a, w = number(), vector("a"), vector("w")
    once = relay.serde.loop(relay.const(3, "int64"), None, [a], [relay.exp(w)], body=inner)[0]
    outer = Function([i, a, w], Tuple([relay.const(True), once, relay.multiply(once, w)]))
    n, x, y = number("n"), vector(), vector("y")
    looped = relay.serde.loop(n, None, [x], [y], body=outer)
    proto = export(Function([n, x, y], looped.astuple()), opset)
    y3 = np.array([0.1, 0.2, 0.3], np.float32)
    state, rows = X3, np.zeros((limit, 3), np.float32)
    for row in range(limit):
        for k in range(3):
            state = state + np.float32(k) * np.exp(y3)
        rows[row] = state * y3
    assert_close(run_proto(proto, [np.array(limit, np.int64), X3, y3]), [state, rows])


@pytest.mark.parametrize("opset", OPSETS)
def test_loop_with_a_condition_and_without_a_limit(opset: int) -> None:
    i, a = number(), vector("a")
    halved = relay.multiply(a, relay.const(0.5))
    going = relay.greater(relay.sum(halved), relay.const(1.0))
    body = Function([i, a], Tuple([going, halved]))
    g, x = flag("g"), vector()
    proto = export(Function([g, x], relay.serde.loop(None, g, [x], [], body=body)[0]), opset)
    start = np.array([10, 20, 30], np.float32)
    state = start
    while True:
        state = state * np.float32(0.5)
        if state.sum() <= 1:
            break
    assert_close(run_proto(proto, [np.array(True), start]), [state])
    assert_close(run_proto(proto, [np.array(False), start]), [start])


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("limit", [0, 5])
def test_loop_with_a_state_that_grows(opset: int, limit: int) -> None:
    i, a = number(), relay.var("a", shape=(relay.Any(),), dtype="int64")
    grown = relay.concatenate([a, relay.expand_dims(i, 0)], axis=0)
    body = Function([i, a], Tuple([relay.const(True), grown]))
    n, x = number("n"), relay.var("x", shape=("N",), dtype="int64")
    proto = export(Function([n, x], relay.serde.loop(n, None, [x], [], body=body)[0]), opset)
    start = np.array([7, 8], np.int64)
    found = run_proto(proto, [np.array(limit, np.int64), start])
    assert_close(found, [np.array([7, 8, *range(limit)], np.int64)])


@pytest.mark.parametrize("opset", OPSETS)
def test_captured_weight_is_seen_from_inside(opset: int) -> None:
    i, a, w = number(), vector("a", 1, 3), vector("w", 3, 3)
    body = Function([i, a, w], Tuple([relay.const(True), relay.tanh(relay.nn.dense(a, w))]))
    x, weight = vector("x", 1, 3), vector("weight", 3, 3)
    looped = relay.serde.loop(relay.const(4, "int64"), None, [x], [weight], body=body)[0]
    array = RNG.standard_normal((3, 3)).astype(np.float32)
    proto = export(Function([x, weight], looped), opset, {"weight": array})
    assert "weight" in {tensor.name for tensor in proto.graph.initializer}
    state = data = RNG.standard_normal((1, 3)).astype(np.float32)
    for _ in range(4):
        state = np.tanh(state @ array.T)
    assert_close(run_proto(proto, [data]), [state])


@pytest.mark.parametrize("opset", OPSETS)
def test_symbol_inside_a_body(opset: int) -> None:
    """The body broadcasts to (N, M), which the outside and a capture show."""
    i, a, b = number(), vector("a", "N", "M"), vector("b", "M")
    rows = relay.broadcast_to(b, a.type.shape)
    body = Function([i, a, b], Tuple([relay.const(True), relay.add(a, rows)]))
    x, y = vector("x", "N", "M"), vector("y", "M")
    looped = relay.serde.loop(relay.const(3, "int64"), None, [x], [y], body=body)[0]
    proto = export(Function([x, y], looped), opset)
    dims = proto.graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_param for dim in dims] == ["N", "M"]
    data, row = RNG.standard_normal((2, 4)).astype(np.float32), np.ones(4, np.float32)
    assert_close(run_proto(proto, [data, row]), [data + 3])


@pytest.mark.parametrize("opset", OPSETS)
def test_symbol_of_the_outside_alone(opset: int) -> None:
    """The body knows N only by what it captures; inside a branch of it, the shape is read."""
    i, a, b, c = number(), vector("a", 1), vector("b", "N"), flag()
    wide = relay.sum(relay.broadcast_to(a, b.type.shape), keepdims=True)
    body = Function([i, a, b, c], Tuple([relay.const(True), If(c, wide, relay.negative(a))]))
    x, y, d = vector("x", 1), vector("y", "N"), flag("d")
    looped = relay.serde.loop(relay.const(2, "int64"), None, [x], [y, d], body=body)[0]
    proto = export(Function([x, y, d], looped), opset)
    start, row = np.array([1.5], np.float32), np.zeros(5, np.float32)
    assert_close(run_proto(proto, [start, row, np.array(True)]), [start * 25])
    assert_close(run_proto(proto, [start, row, np.array(False)]), [start])


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("times", [0, 2])
@pytest.mark.parametrize("going", [True, False])
def test_rows_of_open_lengths(opset: int, times: int, going: bool) -> None:
    """What no iteration stacks has the lengths that the types tell."""
    i, a, b = number(), vector("a", 1), vector("b", 3, "N")
    rows = Tuple([relay.const(True), a, relay.negative(b), relay.sum(b, axis=[0])])
    body = Function([i, a, b], rows)
    limit, start = Var("limit", TensorType((), "int64")), flag("start")
    x, y = vector("x", 1), vector("y", 3, "N")
    looped = relay.serde.loop(limit, start, [x], [y], body=body)
    proto = export(Function([limit, start, x, y], Tuple([looped[1], looped[2]])), opset)
    data = RNG.standard_normal((3, 4)).astype(np.float32)
    feeds = [np.array(times), np.array(going), np.zeros(1, np.float32), data]
    count = times if going else 0
    wanted = [np.stack([-data] * 2)[:count], np.stack([data.sum(0)] * 2)[:count]]
    assert_close(run_proto(proto, feeds), wanted)


@pytest.mark.parametrize("opset", OPSETS)
def test_scan_over_axis_1_backwards(opset: int) -> None:
    total, row, scale = vector("total"), vector("row"), relay.var("scale", shape=())
    added = relay.add(total, relay.multiply(row, scale))
    body = Function([total, row, scale], Tuple([added, added, row]))
    s, x, k = vector("s"), vector("x", 3, "T"), relay.var("k", shape=())
    scanned = relay.serde.scan(
        [s], [x], [k], body=body, axes=(1,), reverse=(True,), out_axes=(1, 0),
        out_reverse=(False, True),
    )  # fmt: skip
    proto = export(Function([s, x, k], scanned.astuple()), opset)
    data, factor = RNG.standard_normal((3, 6)).astype(np.float32), np.float32(0.5)
    state, sums, rows = X3, [], []
    for column in range(5, -1, -1):
        state = state + data[:, column] * factor
        sums.append(state)
        rows.append(data[:, column])
    expected = [state, np.stack(sums, 1), np.stack(rows[::-1], 0)]
    assert_close(run_proto(proto, [X3, data, np.array(factor)]), expected)


def test_scan_inside_a_branch_inside_a_loop() -> None:
    total, item = relay.var("total", shape=()), relay.var("item", shape=())
    adding = Function([total, item], Tuple([relay.add(total, item)]))
    i, a, c = number(), vector("a"), flag()
    summed = relay.serde.scan([relay.const(0.0)], [a], [], body=adding)
    wide = relay.add(a, summed[0])
    body = Function([i, a, c], Tuple([relay.const(True), If(c, wide, relay.negative(a))]))
    x, d = vector(), flag("d")
    looped = relay.serde.loop(relay.const(3, "int64"), None, [x], [d], body=body)[0]
    proto = export(Function([x, d], looped))
    state = X3
    for _ in range(3):
        state = state + state.sum(dtype=np.float32)
    assert_close(run_proto(proto, [X3, np.array(True)]), [state])
    assert_close(run_proto(proto, [X3, np.array(False)]), [-X3])


def test_one_body_in_two_loops() -> None:
    x = vector()
    body = example()
    first = relay.serde.loop(relay.const(2, "int64"), None, [x], [], body=body)[0]
    second = relay.serde.loop(relay.const(3, "int64"), None, [first], [], body=body)[0]
    proto = export(Function([x], second))
    assert [node.name for node in proto.graph.node if node.op_type == "Loop"] == ["loop", "loop_1"]
    assert_close(run_proto(proto, [X3]), [example_in_numpy(X3, 5)])


def test_extension_operator_in_a_body_is_decomposed_where_it_must() -> None:
    i, a = number(), vector("a")
    body = Function([i, a], Tuple([relay.const(True), relay.serde.gelu(a)]))
    x = vector()
    source = Function([x], relay.serde.loop(relay.const(2, "int64"), None, [x], [], body=body)[0])
    proto = export(source, 13)
    assert "Gelu" not in {node.op_type for node in walk_nodes(proto.graph.node)}
    assert_close(run_proto(proto, [X3]), interpreted(source, [X3]))


def test_gap_in_a_body_is_named_with_its_path() -> None:
    i, a = number(), vector("a", 3, 3)
    body = Function([i, a], Tuple([relay.const(True), unsayable(a)]))
    x = vector("x", 3, 3)
    looped = call("serde.loop", relay.const(2, "int64"), None, (x,), (), body=body, span=Span("lp"))
    with pytest.raises(UnsupportedModelError, match=r"\[lp/body/reinterpret\]"):
        export(Function([x], TupleGetItem(looped, 0)))


def test_both_kinds_of_gap_show_in_one_report() -> None:
    c, x = flag(), vector("x", 3, 3)
    left, right = unsayable(x), unsayable(relay.negative(x))
    with pytest.raises(UnsupportedModelError) as caught:
        export(Function([c, x], If(c, left, right)))
    assert [issue.node for issue in caught.value.report.issues] == [
        "if/then/reinterpret",
        "if/else/reinterpret",
    ]


def test_recursion_that_is_no_loop_is_refused() -> None:
    """Two calls of itself in one body: a tree, which no loop repeats."""
    n, x = relay.var("n", shape=(), dtype="int32"), vector("v")
    f = Var("f", FuncType([TensorType((), "int32"), TensorType((3,))], TensorType((3,))))
    less = relay.subtract(n, relay.const(1))
    again = relay.add(Call(f, [less, x]), Call(f, [less, relay.negative(x)]))
    body = If(relay.less(n, relay.const(1)), x, again)
    y = vector("y")
    source = Let(f, Function([n, x], body, TensorType((3,))), Call(f, [relay.const(2), y]))
    with pytest.raises(UnsupportedModelError, match="calls itself"):
        export(Function([y], source))


@pytest.mark.wide
@pytest.mark.parametrize("length", [100, 20_000])
def test_a_long_chain_in_a_branch(length: int) -> None:
    c, x = flag(), vector()
    value: Expr = x
    for _ in range(length):
        value = relay.negative(value)
    mod = typed(Function([c, x], If(c, value, x)))
    proto = serde.export_model((mod, {}), format="onnx")
    (node,) = proto.graph.node
    assert len(subgraph(node, "then_branch").node) == length

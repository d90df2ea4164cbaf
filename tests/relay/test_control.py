"""Loops: types, what they compute, and what passes make of their bodies."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import RelayError, TypeInferenceError, VerifyError
from serde.relay import transform
from serde.relay.ir.bodies import all_nodes, carried, inner_first
from serde.relay.ir.expr import Call, Expr, Function, Var, astuple
from serde.relay.ir.registry import OpDef
from serde.relay.ir.types import TensorType, TupleType
from serde.relay.run.interpreter import run

COUNT = TensorType((), "int64")
GOING = TensorType((), "bool")


def number() -> Var:
    return Var("i", COUNT)


def module(params: list[Var], body: Any) -> relay.IRModule:
    mod = transform.InferType()(relay.IRModule({"main": Function(params, astuple(body))}))
    relay.verify(mod)
    return mod


def evaluate(mod: relay.IRModule, *arrays: Any) -> Any:
    return run(mod["main"], [np.asarray(array) for array in arrays], mod=mod)


def names(expr: Expr) -> list[str]:
    """Return the operators that are called, bodies included, sorted."""
    calls = (node for node in all_nodes(expr) if isinstance(node, Call))
    return sorted(node.op.name for node in calls if isinstance(node.op, OpDef))


def summing(limit: Expr | None, going: Expr | None, start: Expr, body_going: Any = None) -> Any:
    """Return a loop that adds the iteration's number to a state and stacks the state."""
    i, total = number(), Var("total", COUNT)
    added = relay.add(total, i)
    goes_on = relay.const(True) if body_going is None else body_going(added)
    body = Function([i, total], relay.Tuple([goes_on, added, added]))
    return relay.serde.loop(limit, going, [start], body=body)


def test_loop_with_a_limit() -> None:
    start = relay.var("start", shape=(), dtype="int64")
    mod = module([start], summing(relay.const(5, "int64"), None, start))
    total, stacked = evaluate(mod, np.int64(100))
    assert total == 100 + 0 + 1 + 2 + 3 + 4
    np.testing.assert_array_equal(stacked, 100 + np.cumsum(np.arange(5)))
    assert mod["main"].body.type == TupleType([COUNT, TensorType((5,), "int64")])


def test_loop_with_a_condition_only() -> None:
    start = relay.var("start", shape=(), dtype="int64")
    loop = summing(None, None, start, lambda x: relay.less(x, relay.const(10, "int64")))
    mod = module([start], loop)
    total, stacked = evaluate(mod, np.int64(0))
    np.testing.assert_array_equal(stacked, [0, 1, 3, 6, 10])
    assert total == 10
    assert mod["main"].body.type == TupleType([COUNT, TensorType((relay.Any(),), "int64")])


def test_loop_with_both() -> None:
    params = [relay.var("n", shape=(), dtype="int64"), Var("going", GOING), Var("start", COUNT)]
    loop = summing(*params, lambda x: relay.less(x, relay.const(10, "int64")))
    mod = module(params, loop)
    assert evaluate(mod, np.int64(3), np.True_, np.int64(0))[0] == 3
    assert evaluate(mod, np.int64(50), np.True_, np.int64(0))[0] == 10
    total, stacked = evaluate(mod, np.int64(50), np.False_, np.int64(7))
    assert (total, stacked.shape, stacked.dtype) == (7, (0,), np.int64)


@pytest.mark.parametrize("limit", [0, -3])
def test_no_iteration_leaves_states_and_stacks_nothing(limit: int) -> None:
    x = relay.var("x", shape=("n", 3))
    i, inner = number(), Var("inner", TensorType(("n", 3)))
    body = Function([i, inner], relay.Tuple([relay.const(True), relay.exp(inner), inner]))
    mod = module([x], relay.serde.loop(relay.const(limit, "int64"), None, [x], body=body))
    state, stacked = evaluate(mod, np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(state, np.ones((2, 3)))
    assert stacked.shape == (0, 2, 3)


def test_state_whose_shape_grows() -> None:
    x = relay.var("x", shape=(2,))
    i, inner = number(), Var("inner", TensorType((relay.Any(),)))
    doubled = relay.concatenate([inner, inner], axis=0)
    body = Function([i, inner], relay.Tuple([relay.const(True), doubled]))
    loop = relay.serde.loop(relay.const(3, "int64"), None, [x], body=body)
    mod = module([x], loop)
    assert mod["main"].body.type == TupleType([TensorType((relay.Any(),))])
    np.testing.assert_array_equal(evaluate(mod, np.float32([1, 2]))[0], [1, 2] * 8)


def test_a_named_length_must_not_change() -> None:
    x = relay.var("x", shape=("n",))
    inner = Var("inner", TensorType(("n",)))
    doubled = relay.concatenate([inner, inner], axis=0)
    body = Function([number(), inner], relay.Tuple([relay.const(True), doubled]))
    with pytest.raises(TypeInferenceError, match="a length that changes, from n to 2"):
        relay.serde.loop(relay.const(3, "int64"), None, [x], body=body)


def bad_body(fields: list[Expr], *params: Var) -> Function:
    return Function([number(), *params], relay.Tuple(fields))


def test_types_that_do_not_fit_are_refused() -> None:
    x, inner = relay.var("x", shape=(2,)), Var("inner", TensorType((2,)))
    three = relay.const(3, "int64")
    going = relay.const(True)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (relay.const(3, "int32"), {"body": bad_body([going, inner], inner)}, "operand limit"),
        (three, {"body": bad_body([going, inner])}, "expected 1 parameters, found 2|expected 2"),
        (three, {"body": bad_body([inner, inner], inner)}, "expected a scalar bool"),
        (three, {"body": bad_body([going], inner)}, "expected a scalar bool, 1 states"),
        (three, {"body": Function([number(), inner], inner)}, "expected a tuple"),
    ]
    for limit, attrs, message in cases:
        with pytest.raises(TypeInferenceError, match=message):
            relay.serde.loop(limit, None, [x], **attrs)
    wide = Var("inner", TensorType((3,)))
    with pytest.raises(TypeInferenceError, match=r"state 0: expected Tensor\[\(3\)"):
        relay.serde.loop(three, None, [x], body=bad_body([going, wide], wide))


def test_nested_loops_and_a_condition_inside() -> None:
    x = relay.var("x", shape=(2,))
    i, j = number(), number()
    outer, inner = Var("outer", TensorType((2,))), Var("inner", TensorType((2,)))
    kept, index = Var("kept", TensorType((2,))), Var("index", COUNT)
    positive = relay.greater(relay.sum(inner), relay.const(0.0))
    following = relay.If(positive, relay.subtract(inner, kept), relay.add(inner, kept))
    inside = Function([j, inner, kept, index], relay.Tuple([relay.const(True), following, index]))
    nested = relay.serde.loop(relay.add(i, relay.const(1, "int64")), None, [outer], [outer, i],
                              body=inside)  # fmt: skip
    body = Function([i, outer], relay.Tuple([relay.const(True), nested[0], relay.sum(nested[1])]))
    mod = module([x], relay.serde.loop(relay.const(4, "int64"), None, [x], body=body))
    given = np.float32([3, -1])
    expected, sums = given, []
    for step in range(4):
        capture, value = expected, expected
        for _ in range(step + 1):
            value = value - capture if value.sum() > 0 else value + capture
        expected = value
        sums.append(step * (step + 1))
    found, stacked = evaluate(mod, given)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(stacked, sums)
    plain = transform.Decompose(frozenset())(mod)
    relay.verify(plain)
    assert "serde.loop" not in names(plain["main"])
    np.testing.assert_array_equal(evaluate(plain, given)[0], expected)


@pytest.mark.wide
def test_many_iterations_take_no_stack_and_little_time() -> None:
    start = relay.var("start", shape=(), dtype="int64")
    mod = module([start], summing(relay.const(100_000, "int64"), None, start))
    begin = time.perf_counter()
    total, stacked = evaluate(mod, np.int64(0))
    assert time.perf_counter() - begin < 30
    assert total == 100_000 * 99_999 // 2
    assert stacked.shape == (100_000,)


@pytest.mark.wide
def test_loops_in_a_recursion_take_no_stack() -> None:
    text = """#[version = "0.0.5"]
def @main(%n: int64) { @down(%n) }
def @down(%n: int64) -> int64 {
  if (less(%n, 1i64)) { 0i64 } else {
    %0 = fn (%i: int64, %s: int64, %m: int64) {
      (True, add(%s, @down(subtract(%m, 1i64))))
    };
    %1 = serde.loop(1i64, (), (1i64,), (%n,), body=%0);
    %1.0
  }
}
"""
    mod = relay.fromtext(text)
    relay.verify(mod)
    assert evaluate(mod, np.int64(3000)) == 3000
    assert relay.structural_equal(relay.fromtext(mod.astext()), mod)


def test_a_body_takes_nothing_from_around_it() -> None:
    x = relay.var("x", shape=(2,))
    inner = Var("inner", TensorType((2,)))
    body = Function([number(), inner], relay.Tuple([relay.const(True), relay.add(inner, x)]))
    loop = relay.serde.loop(relay.const(3, "int64"), None, [x], body=body)
    mod = relay.IRModule({"main": Function([x], loop.astuple())})
    with pytest.raises(VerifyError, match=r"a body takes Var\(x\) from around it"):
        relay.verify(mod)


def test_faults_in_a_body_name_the_operator() -> None:
    x = relay.var("x", shape=(relay.Any(),))
    inner = Var("inner", TensorType((relay.Any(),)))
    grown = relay.concatenate([inner, inner], axis=0)
    body = Function([number(), inner], relay.Tuple([relay.const(True), grown, inner]))
    mod = module([x], relay.serde.loop(relay.const(2, "int64"), None, [x], body=body))
    with pytest.raises(RelayError, match=r"serde\.loop: all input arrays must have"):
        evaluate(mod, np.ones(2, np.float32))


def test_scan_against_numpy() -> None:
    h, x, w = (relay.var(n, shape=s) for n, s in (("h", (3,)), ("x", (2, 5, 3)), ("w", (3, 3))))
    state, row = Var("state", TensorType((3,))), Var("row", TensorType((2, 3)))
    weight = Var("weight", TensorType((3, 3)))
    product = relay.nn.matmul(row, weight)
    following = relay.tanh(relay.add(state, relay.sum(product, axis=0)))
    body = Function([state, row, weight], relay.Tuple([following, product, following]))
    scan = relay.serde.scan([h], [x], [w], body=body, axes=(1,), reverse=(True,),
                            out_axes=(2, 0), out_reverse=(False, True))  # fmt: skip
    mod = module([h, x, w], scan)
    generator = np.random.default_rng(3)
    arrays = [generator.normal(size=s).astype(np.float32) for s in ((3,), (2, 5, 3), (3, 3))]
    value, products, states = arrays[0], [], []
    for place in reversed(range(5)):
        products.append(arrays[1][:, place] @ arrays[2])
        value = np.tanh(value + products[-1].sum(0))
        states.append(value)
    found = evaluate(mod, *arrays)
    np.testing.assert_allclose(found[0], value, rtol=1e-6)
    np.testing.assert_allclose(found[1], np.stack(products, axis=2), rtol=1e-6)
    np.testing.assert_allclose(found[2], np.stack(states[::-1]), rtol=1e-6)
    plain = transform.Decompose({"serde.loop"})(mod)
    relay.verify(plain)
    assert "serde.loop" in names(plain["main"])
    for left, right in zip(evaluate(plain, *arrays), found, strict=True):
        np.testing.assert_array_equal(left, right)


def test_scanned_lengths_must_agree() -> None:
    left, right = (Var(name, TensorType((2,))) for name in "lr")
    body = Function([left, right], relay.Tuple([relay.add(left, right)]))
    x, y = relay.var("x", shape=(4, 2)), relay.var("y", shape=(5, 2))
    with pytest.raises(TypeInferenceError, match="lengths 4 and 5 differ"):
        relay.serde.scan([], [x, y], body=body)
    x, y = relay.var("x", shape=("n", 2)), relay.var("y", shape=("m", 2))
    mod = module([x, y], relay.serde.scan([], [x, y], body=body))
    with pytest.raises(RelayError, match="cannot be walked together"):
        evaluate(mod, np.ones((4, 2), np.float32), np.ones((5, 2), np.float32))


def test_symbolic_stack_in_plain_relay() -> None:
    x = relay.var("x", shape=("n", 3))
    inner = Var("inner", TensorType(("n", 3)))
    body = Function([number(), inner], relay.Tuple([relay.const(True), relay.exp(inner), inner]))
    mod = module([x], relay.serde.loop(relay.const(2, "int64"), None, [x], body=body))
    given = np.zeros((4, 3), np.float32)
    for text in (mod.astext(), mod.astext(strict=True)):
        found = relay.fromtext(text)
        assert relay.structural_equal(found, mod)
    plain = transform.Decompose(frozenset())(mod)
    for left, right in zip(evaluate(plain, given), evaluate(mod, given), strict=True):
        np.testing.assert_array_equal(left, right)


INNER = TensorType((2, 3))


def looped(build: Any) -> relay.IRModule:
    """Return three iterations of what `build` makes of a state and a capture."""
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(2, 3))
    state, kept = Var("state", INNER), Var("kept", INNER)
    body = Function([number(), state, kept], relay.Tuple([relay.const(True), build(state, kept)]))
    loop = relay.serde.loop(relay.const(3, "int64"), None, [x], [w], body=body)
    return module([x, w], relay.TupleGetItem(astuple(loop), 0))


def only_body(mod: relay.IRModule) -> Function:
    (body,) = inner_first(mod["main"])
    return body


ONE = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("each", "build", "left"),
    [
        (
            transform.EvaluateConstants(),
            lambda s, k: relay.add(s, relay.exp(relay.const(0.0))),
            ["add"],
        ),
        (
            transform.FoldShape(),
            lambda s, k: relay.reshape_like(relay.reshape(s, (6,)), k),
            ["reshape", "reshape"],
        ),
        (transform.RemoveIdentities(), lambda s, k: relay.add(relay.copy(s), k), ["add"]),
        (
            transform.MergeEqualNodes(),
            lambda s, k: relay.add(relay.exp(s), relay.exp(s)),
            ["add", "exp"],
        ),
        (
            transform.RemoveDeadCode(),
            lambda s, k: relay.Let(Var("unused"), relay.exp(s), relay.add(s, k)),
            ["add"],
        ),
        (
            transform.ToGraphNormalForm(),
            lambda s, k: relay.Let(v := Var("v", INNER), relay.exp(s), relay.add(v, k)),
            ["add", "exp"],
        ),
        (
            transform.InlineCalls(),
            lambda s, k: Function([v := Var("v", INNER)], relay.exp(v))(relay.add(s, k)),
            ["add", "exp"],
        ),
        (
            transform.Decompose(frozenset({"serde.loop"})),
            lambda s, k: relay.serde.softsign(relay.add(s, k)),
            ["abs", "add", "add", "divide"],
        ),
        (
            transform.Compose(transform.extension_patterns()),
            lambda s, k: relay.divide(s, relay.add(relay.const(1.0), relay.abs(s))),
            ["serde.softsign"],
        ),
        (transform.FoldBatchNorm(), lambda s, k: relay.add(relay.nn.dropout(s, 0.5), k), ["add"]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_passes_reach_bodies(each: transform.Pass, build: Any, left: list[str]) -> None:
    mod = looped(build)
    changed, did = each.run(mod)
    assert did
    relay.verify(changed)
    assert names(only_body(changed)) == left
    np.testing.assert_allclose(evaluate(changed, ONE, ONE), evaluate(mod, ONE, ONE), rtol=1e-6)
    assert each.run(changed) == (changed, False)


def test_passes_reach_bodies_of_bodies() -> None:
    x = relay.var("x", shape=(2, 3))
    outer, inner = Var("outer", INNER), Var("inner", INNER)
    going, two = relay.const(True), relay.const(2, "int64")
    inside = Function([number(), inner], relay.Tuple([going, relay.copy(relay.exp(inner))]))
    nested = relay.serde.loop(two, None, [outer], body=inside)
    body = Function([number(), outer], relay.Tuple([going, nested[0]]))
    mod = module([x], relay.serde.loop(two, None, [x], body=body)[0])
    changed, did = transform.RemoveIdentities().run(mod)
    assert did
    relay.verify(changed)
    assert "copy" not in names(changed["main"])
    assert len(inner_first(changed["main"])) == 2


def test_float16_keeps_states_and_captures() -> None:
    mod = looped(lambda s, k: relay.multiply(relay.add(s, k), k))
    changed, did = transform.ToFloat16().run(mod)
    assert did
    relay.verify(changed)
    body = only_body(changed)
    assert [param.type for param in body.params[1:]] == [INNER, INNER]
    assert "cast" in names(body)
    halves = np.full((2, 3), 0.5, np.float32)
    np.testing.assert_allclose(evaluate(changed, ONE, halves), 0.5625 * ONE, rtol=1e-2)


def test_loops_are_not_run_beforehand() -> None:
    body = Function([number()], relay.Tuple([relay.const(True), relay.const(1.0)]))
    mod = module([], relay.serde.loop(None, None, [], body=body)[0])
    assert transform.EvaluateConstants().run(mod) == (mod, False)


def test_functions_that_bodies_call_are_kept() -> None:
    text = """#[version = "0.0.5"]
def @main(%x: float32) {
  %0 = fn (%i: int64, %s: float32) { (True, @double(%s)) };
  %1 = serde.loop(3i64, (), (%x,), (), body=%0);
  %1.0
}
def @double(%x: float32) -> float32 { add(%x, %x) }
"""
    mod = relay.fromtext(text)
    kept = transform.RemoveDeadCode()(mod)
    assert [v.name_hint for v in kept.functions] == [v.name_hint for v in mod.functions]
    assert evaluate(kept, np.float32(1)) == 8
    inlined = transform.InlineCalls()(mod)
    relay.verify(inlined)
    assert names(inlined["main"]) == ["add", "serde.loop"]
    assert evaluate(inlined, np.float32(1)) == 8


def test_bodies_are_compared() -> None:
    left = looped(lambda s, k: relay.add(s, k))
    assert relay.structural_equal(left, looped(lambda s, k: relay.add(s, k)))
    with pytest.raises(RelayError, match=r"attrs\.body\.body\.fields\[1\]\.op: 'add' and 'sub"):
        relay.assert_structural_equal(left, looped(lambda s, k: relay.subtract(s, k)))


def test_only_calls_of_operators_carry_functions() -> None:
    mod = looped(lambda s, k: relay.add(s, k))
    loops = [node for node in all_nodes(mod["main"]) if carried(node)]
    assert [node.op.name for node in loops if isinstance(node, Call)] == ["serde.loop"]


def test_dead_states_stacks_and_captures_go() -> None:
    x, w, v = (relay.var(name, shape=(2, 3)) for name in "xwv")
    a, b, c, kept, unused = (Var(name, INNER) for name in ("a", "b", "c", "kept", "unused"))
    i, shift = number(), Var("shift", INNER)
    fields = [
        relay.less(relay.sum(b), relay.const(40.0)),
        relay.add(a, shift),
        relay.add(b, kept),
        relay.multiply(c, unused),
        relay.exp(c),
        relay.negative(a),
    ]
    inner = relay.Let(shift, relay.negative(kept), relay.Tuple(fields))
    body = Function([i, a, b, c, kept, unused], inner)
    loop = relay.serde.loop(relay.const(20, "int64"), None, [x, x, x], [w, v], body=body)
    mod = module([x, w, v], relay.Tuple([loop[4], loop[0]]))
    changed, did = transform.RemoveDeadCode().run(mod)
    assert did
    relay.verify(changed)
    (call,) = (node for node in all_nodes(changed["main"]) if carried(node))
    assert isinstance(call, Call)
    assert [len(astuple(each).fields) for each in call.args[2:]] == [2, 1]
    assert [param.name_hint for param in only_body(changed).params] == ["i", "a", "b", "kept"]
    arrays = [np.full((2, 3), value, np.float32) for value in (1, 2, 3)]
    stacked, last = evaluate(changed, *arrays)
    # Sums of b are 6, 18, 30, 42 when it is read: the loop ends after the fourth iteration.
    np.testing.assert_array_equal(last, np.full((2, 3), 1 - 4 * 2))
    np.testing.assert_array_equal(stacked, -np.array([1, -1, -3, -5])[:, None, None] + 0 * last)
    for left, right in zip(evaluate(mod, *arrays), (stacked, last), strict=True):
        np.testing.assert_array_equal(left, right)
    assert transform.RemoveDeadCode().run(changed) == (changed, False)


def test_dead_results_of_a_scan_go() -> None:
    x, h = relay.var("x", shape=(4, 3)), relay.var("h", shape=(3,))
    s, t, row = (Var(name, TensorType((3,))) for name in ("s", "t", "row"))
    fields = [relay.add(s, row), relay.multiply(t, s), relay.exp(row), relay.add(s, row)]
    body = Function([s, t, row], relay.Tuple(fields))
    scan = relay.serde.scan([h, h], [x], body=body, out_axes=(0, 1), reverse=(True,))
    mod = module([x, h], scan[3])
    changed = transform.RemoveDeadCode()(mod)
    relay.verify(changed)
    (call,) = (node for node in all_nodes(changed["main"]) if carried(node))
    assert isinstance(call, Call)
    assert (call.attrs["out_axes"], call.attrs["reverse"]) == ((1,), (True,))
    assert [param.name_hint for param in call.attrs["body"].params] == ["s", "row"]
    given = np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = 1 + np.cumsum(given[::-1], axis=0).T
    np.testing.assert_array_equal(evaluate(changed, given, np.ones(3, np.float32)), expected)

"""Inlining of functions and lets."""

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType, InlineCalls, ToGraphNormalForm

MATRIX = relay.TensorType((2, 3))
INT = relay.TensorType((), "int32")
DATA = np.random.default_rng(1).normal(size=(2, 3)).astype("float32")


def _kinds(function: relay.Function, kind: type) -> int:
    return sum(isinstance(node, kind) for node in post_order(function))


def _globals() -> relay.IRModule:
    x, k, j = (relay.var(name, MATRIX) for name in "xkj")
    let = relay.var("let", MATRIX)
    twice, both = relay.GlobalVar("twice"), relay.GlobalVar("both")
    return InferType()(
        relay.IRModule(
            {
                relay.GlobalVar("main"): relay.Function([x], both(relay.exp(x)), MATRIX),
                both: relay.Function([j], relay.add(twice(j), twice(relay.abs(j))), MATRIX),
                twice: relay.Function([k], relay.Let(let, relay.add(k, k), relay.negative(let))),
            }
        )
    )


def test_global_functions_and_their_lets_are_copied_apart() -> None:
    mod, changed = InlineCalls().run(_globals())
    assert changed
    verify(mod)
    main = mod["main"]
    assert not any(isinstance(getattr(n, "op", None), relay.GlobalVar) for n in post_order(main))
    assert len({node.var for node in post_order(main) if isinstance(node, relay.Let)}) == 2
    np.testing.assert_allclose(run(main, [DATA]), -4 * np.exp(DATA), rtol=1e-6)
    graph = ToGraphNormalForm()(mod)
    verify(graph)
    assert _kinds(graph["main"], relay.Let) == 0
    np.testing.assert_allclose(run(graph["main"], [DATA]), -4 * np.exp(DATA), rtol=1e-6)


def test_recursive_functions_stay_and_their_callers_go_in() -> None:
    down, start = relay.GlobalVar("down"), relay.GlobalVar("start")
    k, n, m = (relay.var(name, INT) for name in "knm")
    step = down(relay.subtract(k, relay.const(2)))
    body = relay.If(relay.less(k, relay.const(2)), k, step)
    mod = relay.IRModule(
        {
            down: relay.Function([k], body, INT),
            start: relay.Function([n], down(relay.add(n, relay.const(1))), INT),
            relay.GlobalVar("main"): relay.Function([m], start(m), INT),
        }
    )
    result = InlineCalls()(InferType()(mod))
    called = [n.op.name_hint for n in post_order(result["main"]) if _is_global_call(n)]
    assert called == ["down"]
    assert relay.create_executor(mod=result).evaluate()(np.int32(8)) == 1


def _is_global_call(node: relay.Expr) -> bool:
    return isinstance(node, relay.Call) and isinstance(node.op, relay.GlobalVar)


def test_composite_functions_are_inlined_when_asked() -> None:
    x, k = relay.var("x", MATRIX), relay.var("k", MATRIX)
    inner = relay.Function([k], relay.negative(relay.exp(k))).with_attr("Composite", "my.op")
    mod = relay.IRModule.from_expr(relay.Function([x], relay.Call(inner, [x])))
    mod = InferType()(mod)
    assert InlineCalls().run(mod) == (mod, False)
    result = InlineCalls(opaque=True)(mod)
    assert _kinds(result["main"], relay.Function) == 1
    np.testing.assert_allclose(run(result["main"], [DATA]), -np.exp(DATA), rtol=1e-6)


def test_symbols_that_mean_something_else_outside_keep_a_function_apart() -> None:
    k = relay.var("k", relay.TensorType(("N", 2, 3)))
    flat = relay.Function([k], relay.reshape(k, newshape=(relay.symbol("N") * 2, 3)))
    x = relay.var("x", relay.TensorType(("M", 2, 3)))
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], relay.Call(flat, [x]))))
    assert not InlineCalls().run(mod)[1]
    assert run(mod["main"], [np.zeros((5, 2, 3), "float32")]).shape == (10, 3)


def test_a_let_bound_closure_becomes_its_body() -> None:
    x, k, f = relay.var("x", MATRIX), relay.var("k", MATRIX), relay.Var("f")
    closure = relay.Function([k], relay.add(k, x))
    body = relay.Let(f, closure, relay.Call(f, [relay.Call(f, [relay.exp(x)])]))
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], body)))
    result = InlineCalls()(ToGraphNormalForm()(mod))
    verify(result)
    assert _kinds(result["main"], relay.Function) == 1
    assert _kinds(result["main"], relay.Let) == 0
    np.testing.assert_allclose(run(result["main"], [DATA]), np.exp(DATA) + 2 * DATA, rtol=1e-5)


def test_a_recursive_let_stays() -> None:
    i, x, f = relay.var("i", INT), relay.var("x", INT), relay.Var("f")
    again = relay.Call(f, [relay.add(i, relay.const(3))])
    function = relay.Function([i], relay.If(relay.less(i, relay.const(9)), again, i), INT)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.Let(f, function, relay.Call(f, [x]))))
    mod = InferType()(mod)
    result, changed = ToGraphNormalForm().run(mod)
    assert not changed
    assert run(result["main"], [np.int32(1)]) == 10


@pytest.mark.slow
def test_100000_lets_in_a_row() -> None:
    x = relay.var("x", INT)
    variables = [relay.var(f"v{i}", INT) for i in range(100_000)]
    body: relay.Expr = variables[-1]
    for index in range(99_999, 0, -1):
        body = relay.Let(variables[index], relay.add(variables[index - 1], x), body)
    body = relay.Let(variables[0], x, body)
    result = ToGraphNormalForm().transform(relay.Function([x], body))
    assert _kinds(result, relay.Let) == 0
    assert run(result, [np.int32(2)]) == 200_000

"""Removal of what does not contribute to the result."""

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType, RemoveDeadCode
from serde.relay.transform.remove_dead_code import unused_params

MATRIX = relay.TensorType((2, 3))
DATA = np.random.default_rng(1).normal(size=(2, 3)).astype("float32")


def _calls(function: relay.Function) -> list[str]:
    return [node.op.name for node in post_order(function) if isinstance(node, relay.Call)]


def test_a_let_that_only_an_unused_let_reads_goes_too() -> None:
    x, a, b, c = (relay.var(name, MATRIX) for name in "xabc")
    body = relay.Let(c, relay.log(b), relay.negative(a))
    body = relay.Let(a, relay.abs(x), relay.Let(b, relay.exp(a), body))
    mod = relay.IRModule.from_expr(relay.Function([x], body))
    result, changed = RemoveDeadCode().run(mod)
    verify(result)
    assert changed
    assert _calls(result["main"]) == ["abs", "negative"]
    np.testing.assert_array_equal(run(result["main"], [DATA]), -np.abs(DATA))


def test_an_unused_recursive_function_goes() -> None:
    x, k, f = relay.var("x", MATRIX), relay.var("k", MATRIX), relay.Var("f")
    function = relay.Function([k], relay.Call(f, [relay.exp(k)]), MATRIX)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.Let(f, function, relay.tanh(x))))
    result = RemoveDeadCode()(InferType()(mod))
    assert _calls(result["main"]) == ["tanh"]


def test_fields_of_a_tuple_that_nobody_takes_go() -> None:
    x = relay.var("x", MATRIX)
    pair = relay.Tuple([relay.exp(x), relay.log(x)])
    function = relay.Function([x], relay.TupleGetItem(pair, 0))
    result = RemoveDeadCode().transform(function)
    assert _calls(result) == ["exp"]
    np.testing.assert_allclose(run(result, [DATA]), np.exp(DATA), rtol=1e-6)


def test_functions_that_main_does_not_reach_go_and_parameters_stay() -> None:
    x, y, k, j = (relay.var(name, MATRIX) for name in "xykj")
    names = {name: relay.GlobalVar(name) for name in ("used", "unused", "main")}
    mod = relay.IRModule(
        {
            names["used"]: relay.Function([k], relay.exp(k), MATRIX),
            names["unused"]: relay.Function([j], names["used"](j), MATRIX),
            names["main"]: relay.Function([x, y], names["used"](x), MATRIX),
        }
    )
    result, changed = RemoveDeadCode().run(InferType()(mod))
    assert changed
    assert sorted(v.name_hint for v in result.functions) == ["main", "used"]
    assert [p.name_hint for p in result["main"].params] == ["x", "y"]
    assert unused_params(result["main"]) == [y]


def test_nothing_to_do_is_no_change() -> None:
    x, a = relay.var("x", MATRIX), relay.var("a", MATRIX)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.Let(a, relay.exp(x), relay.add(a, a))))
    result, changed = RemoveDeadCode().run(mod)
    assert not changed
    assert result is mod


@pytest.mark.slow
def test_100000_dead_lets() -> None:
    x = relay.var("x", MATRIX)
    body: relay.Expr = relay.exp(x)
    for index in range(100_000):
        body = relay.Let(relay.var(f"v{index}", MATRIX), relay.abs(x), body)
    assert _calls(RemoveDeadCode().transform(relay.Function([x], body))) == ["exp"]

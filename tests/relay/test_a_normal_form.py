"""A-normal form: operands are names, values are bound where all their users see them."""

import numpy as np
import pytest
from support.programs import build_program, programs

import serde.relay as relay
from serde.relay.ir.compare import assert_structural_equal
from serde.relay.ir.expr import Call, Constant, Expr, Function, If, Let, Tuple, Var
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType, ToANormalForm, ToGraphNormalForm


def _module(body: Expr) -> relay.IRModule:
    return InferType()(relay.IRModule.from_expr(body))


def _bindings(body: Expr) -> tuple[list[Expr], Expr]:
    values = []
    while isinstance(body, Let):
        values.append(body.value)
        body = body.body
    return values, body


def test_each_call_is_bound_once_in_order() -> None:
    x = relay.var("x", shape=(2, 3))
    y = relay.exp(x)
    mod = _module(Tuple([relay.add(y, relay.const(1.0)), y]))
    after, changed = ToANormalForm().run(mod)
    assert changed
    verify(after)
    values, result = _bindings(after["main"].body)
    assert [v.op.name for v in values if isinstance(v, Call)] == ["exp", "add"]
    assert isinstance(values[-1], Tuple)
    assert isinstance(result, Var)
    assert_structural_equal(ToGraphNormalForm()(after), mod)


def test_operands_are_atoms() -> None:
    x = relay.var("x", shape=(4,))
    mod = _module(relay.sum(relay.multiply(relay.exp(x), relay.sqrt(relay.abs(x)))))
    after = ToANormalForm()(mod)
    calls = [node for node in post_order(after["main"]) if isinstance(node, Call)]
    assert len(calls) == 5
    assert all(isinstance(a, (Var, Constant)) for node in calls for a in node.args)


def test_what_one_branch_needs_is_bound_inside_it() -> None:
    x, c = relay.var("x", shape=(2,)), relay.var("c", shape=(), dtype="bool")
    shared = relay.exp(x)
    body = If(c, relay.add(shared, relay.sqrt(x)), relay.negative(shared))
    mod = _module(Function([x, c], body))
    after = ToANormalForm()(mod)
    verify(after)
    values, _ = _bindings(after["main"].body)
    assert isinstance(values[0], Call)
    assert values[0].op.name == "exp"
    assert isinstance(values[1], If)
    inner, _ = _bindings(values[1].true_branch)
    assert [v.op.name for v in inner if isinstance(v, Call)] == ["sqrt", "add"]
    data = np.array([1.0, 4.0], "float32")
    for flag in (True, False):
        ours, theirs = (run(m["main"], [data, np.array(flag)]) for m in (after, mod))
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", sorted(set(programs()) - {"same_names", "let_chain", "let"}))
def test_graph_normal_form_is_the_inverse(name: str) -> None:
    before = ToGraphNormalForm()(InferType()(build_program(name)))
    after = ToANormalForm()(before)
    verify(after)
    again = ToANormalForm()(ToGraphNormalForm()(after))
    assert_structural_equal(again, after)


def test_a_long_chain_is_bound() -> None:
    y: Expr = relay.var("x", shape=(2,))
    for _ in range(20_000):
        y = relay.tanh(y)
    after = ToANormalForm()(_module(y))
    assert len(_bindings(after["main"].body)[0]) == 20_000

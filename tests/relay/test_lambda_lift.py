"""Local functions that become functions of the module."""

import numpy as np
import pytest
from support.programs import build_program

import serde.relay as relay
from serde.relay.ir.expr import Call, Expr, Function, Let, Var
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.transform import InferType, LambdaLift

VECTOR = relay.TensorType((3,), "float32")


def _var(name: str) -> Var:
    return relay.var(name, VECTOR)


def _module(body: Function) -> relay.IRModule:
    return InferType()(relay.IRModule.from_expr(body))


def _lift(mod: relay.IRModule) -> relay.IRModule:
    after, changed = LambdaLift().run(mod)
    assert changed
    verify(after)
    verify(InferType()(after))
    assert LambdaLift().run(after) == (after, False)
    return after


def _run(mod: relay.IRModule, *inputs: np.ndarray) -> np.ndarray:
    return relay.create_executor("graph", mod=mod).evaluate()(*inputs)


def _literals(mod: relay.IRModule) -> int:
    found = [n for f in mod.functions.values() for n in post_order(f.body)]
    return sum(isinstance(node, Function) for node in found)


def _names(mod: relay.IRModule) -> list[str]:
    return [variable.name_hint for variable in mod.functions]


def test_what_a_function_takes_from_around_becomes_its_parameters() -> None:
    x, w, y, f = _var("x"), _var("w"), _var("y"), relay.var("f")
    literal = Function([y], relay.add(relay.multiply(y, w), x))
    mod = _module(Function([x, w], Let(f, literal, Call(f, [Call(f, [x])]))))
    after = _lift(mod)
    assert _names(after) == ["main", "main_f"]
    assert len(after["main_f"].params) == 3
    assert _literals(after) == 0
    a, b = np.arange(3, dtype="float32"), np.full(3, 2, "float32")
    np.testing.assert_array_equal(_run(after, a, b), (a * b + a) * b + a)


def test_functions_that_call_each_other_hand_captures_on() -> None:
    x, y, z = _var("x"), _var("y"), _var("z")
    inner, outer = relay.var("inner"), relay.var("outer")
    first = Function([y], relay.add(y, x))
    second = Function([z], relay.exp(Call(inner, [z])))
    body = Let(inner, first, Let(outer, second, Call(outer, [x])))
    after = _lift(_module(Function([x], body)))
    assert _names(after) == ["main", "main_inner", "main_outer"]
    assert [len(after[name].params) for name in ("main_inner", "main_outer")] == [2, 2]
    data = np.arange(3, dtype="float32")
    np.testing.assert_allclose(_run(after, data), np.exp(data + data), rtol=1e-6)


def test_a_function_called_where_it_stands_is_lifted_out_of_another() -> None:
    x, y, z = _var("x"), _var("y"), _var("z")
    inner = Function([z], relay.add(z, y))
    outer = Function([y], relay.multiply(Call(inner, [x]), y))
    after = _lift(_module(Function([x], Call(outer, [relay.exp(x)]))))
    assert _literals(after) == 0
    data = np.arange(3, dtype="float32")
    want = (data + np.exp(data)) * np.exp(data)
    np.testing.assert_allclose(_run(after, data), want, rtol=1e-6)


def test_recursion_becomes_that_of_a_global_function() -> None:
    mod = InferType()(build_program("let_recursion"))
    after = _lift(mod)
    assert _literals(after) == 0
    rng = np.random.default_rng(0)
    inputs = [
        np.asarray(rng.uniform(1, 3, p.checked_type.concrete_shape)).astype(p.checked_type.dtype)
        for p in mod["main"].params
    ]
    for ours, theirs in zip(_run(after, *inputs), _run(mod, *inputs), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", ["result", "argument", "Primitive"])
def test_closures_that_are_values_and_kernels_stay(kind: str) -> None:
    x, y, f, g = _var("x"), _var("y"), relay.var("f"), relay.var("g")
    literal = Function([y], relay.add(y, y), attrs={"Primitive": 1} if kind == "Primitive" else {})
    body: Expr = Let(f, literal, f)
    if kind == "argument":
        h = Var("h", relay.FuncType([VECTOR], VECTOR))
        caller = Function([h], Call(h, [x]), attrs={"Composite": "apply"})
        body = Let(g, literal, Call(caller, [g]))
    elif kind == "Primitive":
        body = Call(literal, [x])
    mod = _module(Function([x], body))
    assert LambdaLift().run(mod) == (mod, False)

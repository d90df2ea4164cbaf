"""LambdaLift and EtaExpand: functions of the module for local ones, and the other way."""

from __future__ import annotations

import numpy as np
import pytest
from support.pass_texts import check, parse, tensor
from support.programs import build_program

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.ir.expr import Call, Expr, Function, Let, Var
from serde.relay.ir.module import IRModule
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.transform import EtaExpand, InferType, LambdaLift

VECTOR = relay.TensorType((3,), "float32")
DATA = np.arange(3, dtype="float32")


def _var(name: str) -> Var:
    return relay.var(name, VECTOR)


def _module(body: Function) -> IRModule:
    return InferType()(IRModule.from_expr(body))


def _lift(mod: IRModule, count: int) -> IRModule:
    after, changed = LambdaLift().run(mod)
    assert changed
    verify(after)
    assert len(after.functions) == count
    assert _literals(after) == []
    assert LambdaLift().run(after) == (after, False)
    return after


def _literals(mod: IRModule) -> list[Expr]:
    """Return local functions but for those that closures are."""
    found = []
    for function in mod.functions.values():
        body = function.body
        if function.attrs.get("Closure"):
            assert isinstance(body, Function)
            body = body.body
        found += [node for node in post_order(body) if isinstance(node, Function)]
    return [node for node in found if not node.attrs.get("Primitive")]


def _agree(ours: IRModule, theirs: IRModule, *inputs: np.ndarray) -> None:
    results = [
        relay.create_executor("graph", mod=mod).evaluate()(*inputs) for mod in (ours, theirs)
    ]
    for left, right in zip(*(r if isinstance(r, tuple) else (r,) for r in results), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_function_that_takes_nothing_becomes_global() -> None:
    x, y = _var("x"), _var("y")
    mod = _module(Function([x], Call(Function([y], relay.exp(y)), [relay.exp(x)])))
    after = _lift(mod, 2)
    lifted = next(f for v, f in after.functions.items() if v.name_hint != "main")
    assert not lifted.attrs
    assert after["main"].body.op.name_hint.startswith("lifted_name")
    _agree(after, mod, DATA)


def test_equal_functions_become_one() -> None:
    x = _var("x")
    functions = [Function([y], relay.exp(y)) for y in (_var("y"), _var("z"))]
    ends = [Call(function, [x]) for function in functions]
    mod = _module(Function([x], relay.Tuple([*ends, Call(Function([y := _var("y")], y), [x])])))
    _agree(_lift(mod, 3), mod, DATA)


def test_what_a_closure_takes_is_handed_to_it() -> None:
    x, w, y, f = _var("x"), _var("w"), _var("y"), relay.var("f")
    literal = Function([y], relay.add(relay.multiply(y, w), x))
    mod = _module(Function([x, w], Let(f, literal, Call(f, [Call(f, [x])]))))
    after = _lift(mod, 2)
    lifted = next(f for v, f in after.functions.items() if v.name_hint != "main")
    assert lifted.attrs == {"Closure": 1}
    assert len(lifted.params) == 2
    assert isinstance(lifted.body, Function)
    assert len(lifted.body.params) == 1
    _agree(after, mod, DATA, np.full(3, 2, "float32"))


def test_functions_that_call_each_other() -> None:
    x, y, z = _var("x"), _var("y"), _var("z")
    inner, outer = relay.var("inner"), relay.var("outer")
    first = Function([y], relay.add(y, x))
    second = Function([z], relay.exp(Call(inner, [z])))
    body = Let(inner, first, Let(outer, second, Call(outer, [x])))
    mod = _module(Function([x], body))
    _agree(_lift(mod, 3), mod, DATA)


def test_a_function_inside_another_is_lifted_first() -> None:
    x, y, z = _var("x"), _var("y"), _var("z")
    inner = Function([z], relay.add(z, y))
    outer = Function([y], relay.multiply(Call(inner, [x]), y))
    mod = _module(Function([x], Call(outer, [relay.exp(x)])))
    _agree(_lift(mod, 3), mod, DATA)


def test_a_function_that_is_a_result() -> None:
    x, y = _var("x"), _var("y")
    make = Function([y], Function([x], relay.add(x, y)))
    closure = Call(make, [relay.ones((3,), "float32")])
    mod = _module(Function([], Call(closure, [relay.zeros((3,), "float32")])))
    _agree(_lift(mod, 3), mod)


def test_a_function_that_is_an_argument() -> None:
    x, y, h = _var("x"), _var("y"), Var("h", relay.FuncType([VECTOR], VECTOR))
    apply = Function([h], Call(h, [x]))
    mod = _module(Function([x], Call(apply, [Function([y], relay.add(y, x))])))
    _agree(_lift(mod, 3), mod, DATA)


@pytest.mark.parametrize("name", ["let_recursion"])
def test_recursion_becomes_that_of_a_global_function(name: str) -> None:
    mod = InferType()(build_program(name))
    after = _lift(mod, 2)
    rng = np.random.default_rng(0)
    inputs = [
        np.asarray(rng.uniform(1, 3, p.checked_type.concrete_shape)).astype(p.checked_type.dtype)
        for p in mod["main"].params
    ]
    _agree(after, mod, *inputs)


@pytest.mark.parametrize("captures", [True, False])
def test_a_loop_calls_its_global_name(captures: bool) -> None:
    step = "%w" if captures else "%s"
    mod = parse(
        f"def @main(%w: {tensor(2)}) -> {tensor(2)} {{\n"
        f"let %loop = fn (%i: int32, %s: {tensor(2)}) -> {tensor(2)} {{\n"
        f"if (less(%i, 3)) {{ %loop(add(%i, 1), add(%s, {step})) }} else {{ %s }} }};\n"
        "%loop(0, %w)\n}\n"
    )
    after = _lift(mod, 2)
    _agree(after, mod, np.array([1, 2], "float32"))
    found = relay.create_executor(mod=after).evaluate()(np.array([1, 2], "float32"))
    np.testing.assert_array_equal(found, [4, 8] if captures else [8, 16])


def test_primitive_functions_stay() -> None:
    text = "def @main(%x: float32) { %0 = fn (%y: float32, Primitive=1) { exp(%y) }; %0(%x) }"
    check(LambdaLift(), text, text)


def test_a_function_that_names_itself_as_a_value() -> None:
    mod = parse(
        "def @main(%n: int32) -> int32 {\n"
        "let %f = fn (%i: int32) -> int32 {\n"
        "let %g = if (less(%i, 5)) { %f } else { fn (%j: int32) -> int32 { multiply(%j, 2) } };\n"
        "if (less(%i, 5)) { %g(add(%i, 1)) } else { %g(%i) } };\n%f(%n)\n}\n"
    )
    _agree(_lift(mod, 3), mod, np.int32(2))


ETA = {
    "a value": ("@f", "fn (%x: float32) -> float32 { @f(%x) }"),
    "a field": ("(@f, @f)", "%0 = fn (%x: float32) -> float32 { @f(%x) };\n(%0, %0)"),
    "called": ("@f(2f)", None),
    "an operand": ("@twice(@f)", "@twice(fn (%x: float32) -> float32 { @f(%x) })"),
}  # fmt: skip
FUNCTIONS = (
    "def @f(%x: float32) -> float32 { exp(%x) }\n"
    "def @twice(%g: fn (float32) -> float32) -> float32 { %g(%g(1f)) }\n"
)


@pytest.mark.parametrize("name", ETA)
def test_global_functions_are_written_out(name: str) -> None:
    before, after = ETA[name]
    texts = [f"{FUNCTIONS}def @main() {{ {body} }}\n" for body in (before, after or before)]
    check(EtaExpand(expand_global_var=True), *texts, numbers=False)


LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"


@pytest.mark.parametrize(
    ("head", "before", "after"),
    [
        ("def @main[A]() -> fn (A, List[A]) -> List[A]", "Cons",
         "fn [A](%x: A, %xs: List[A]) -> List[A] { Cons(%x, %xs) }"),
        ("def @main() -> List[float32]", "Cons(1f, Nil())", None),
        ("def @main[A](%a: A) -> List[A]", "Cons(%a, Nil())", None),
    ],
)  # fmt: skip
def test_constructors_are_written_out(head: str, before: str, after: str | None) -> None:
    texts = [f"{LIST}{head} {{ {body} }}\n" for body in (before, after or before)]
    check(EtaExpand(expand_constructor=True), *texts, numbers=False)


def test_eta_expansion_needs_something_to_expand() -> None:
    with pytest.raises(RelayError, match="must expand"):
        EtaExpand()

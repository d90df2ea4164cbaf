"""A-normal form and basic-block normal form, in text."""

from __future__ import annotations

import numpy as np
import pytest
from support.pass_texts import check, check_bodies
from support.programs import build_program, programs

import serde.relay as relay
from serde.relay.ir.compare import assert_structural_equal
from serde.relay.ir.expr import Expr, Let
from serde.relay.ir.verify import verify
from serde.relay.run.interpreter import run
from serde.relay.transform import (
    InferType,
    ToANormalForm,
    ToBasicBlockNormalForm,
    ToGraphNormalForm,
)
from serde.relay.tvm.passes.scopes import lifted_nodes

X = "%x: float32, %y: float32, %c: bool"

BOUND = {
    "a call": ("exp(%x)", "let %a = exp(%x);\n%a"),
    "operands first": (
        "add(exp(%x), sqrt(%y))",
        "let %a = exp(%x);\nlet %b = sqrt(%y);\nlet %d = add(%a, %b);\n%d",
    ),
    "constants": (
        "add(%x, multiply(2f, 3f))",
        "let %a = 2f;\nlet %b = 3f;\nlet %d = multiply(%a, %b);\nlet %e = add(%x, %d);\n%e",
    ),
    "shared": (
        "%0 = exp(%x);\nadd(%0, %0)", "let %a = exp(%x);\nlet %b = add(%a, %a);\n%b",
    ),
    "a tuple": (
        "%0 = (%x, exp(%y));\n%1 = %0.1;\ntanh(%1)",
        "let %a = exp(%y);\nlet %b = (%x, %a);\nlet %d = %b.1;\nlet %e = tanh(%d);\n%e",
    ),
    "branches": (
        "if (%c) { exp(%x) } else { sqrt(%y) }",
        "let %a = if (%c) { let %b = exp(%x); %b } else { let %d = sqrt(%y); %d };\n%a",
    ),
    "shared by branches": (
        "%0 = exp(%x);\nif (%c) { sqrt(%0) } else { tanh(%0) }",
        "let %a = exp(%x);\n"
        "let %b = if (%c) { let %d = sqrt(%a); %d } else { let %e = tanh(%a); %e };\n%b",
    ),
    "a variable": ("%x", "%x"),
    "a function": (
        "%0 = fn (%z: float32) { exp(%z) };\n%0(%x)",
        "let %f = fn (%z: float32) { let %a = exp(%z); %a };\nlet %b = %f(%x);\n%b",
    ),
    "lets stay": (
        "let %a = exp(%x);\nsqrt(%a)", "let %a = exp(%x);\nlet %b = sqrt(%a);\n%b",
    ),
    "lets in operands": (
        "sqrt({ let %a = exp(%x); add(%a, %y) })",
        "let %a = exp(%x);\nlet %b = add(%a, %y);\nlet %d = sqrt(%b);\n%d",
    ),
    "lets in lets": (
        "let %a = { let %b = exp(%x); tanh(%b) };\nsqrt(%a)",
        "let %b = exp(%x);\nlet %d = tanh(%b);\nlet %a = %d;\nlet %e = sqrt(%a);\n%e",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUND)
def test_every_value_is_bound(name: str) -> None:
    check_bodies(ToANormalForm(), X, *BOUND[name])


def test_primitive_functions_are_bound_whole() -> None:
    literal = "fn (%z: float32, Primitive=1) { exp(tanh(%z)) }"
    after = f"let %f = {literal};\nlet %a = %f(%x);\n%a"
    check_bodies(ToANormalForm(), X, f"%0 = {literal};\n%0(%x)", after)


def test_operands_that_must_be_constants_stay() -> None:
    body = "collapse_sum_to(%x, meta[relay.Constant][0])"
    x = relay.var("x", shape=(2, 3))
    mod = InferType()(relay.IRModule.from_expr(relay.collapse_sum_to(x, (3,))))
    after = ToANormalForm()(mod)["main"]
    assert body.split("(")[0] in after.astext()
    assert after.body.value.type == mod["main"].body.type


BLOCKS = {
    "one block": ("%0 = exp(%x);\nadd(%0, %0)", None),
    "one branch": (
        "if (%c) { %0 = exp(%x); add(%0, %0) } else { %y }", None,
    ),
    "both branches": (
        "%0 = exp(%x);\nif (%c) { sqrt(%0) } else { tanh(%0) }",
        "let %a = exp(%x);\nif (%c) { sqrt(%a) } else { tanh(%a) }",
    ),
    "before the branches": (
        "%0 = less(%x, %y);\nif (%0) { %x } else { if (%0) { %y } else { %x } }", None,
    ),
    "nested": (
        "%0 = exp(%x);\nif (%c) { if (%c) { add(%0, 1f) } else { add(%0, 2f) } } else { %y }",
        "if (%c) { let %a = exp(%x); if (%c) { add(%a, 1f) } else { add(%a, 2f) } } else { %y }",
    ),
    "two functions": (
        "%0 = exp(%x);\n%1 = fn (%z: float32) { add(%z, %0) };\n"
        "%2 = fn (%z: float32) { subtract(%z, %0) };\nadd(%1(%y), %2(%y))",
        "let %a = exp(%x);\n%1 = fn (%z: float32) { add(%z, %a) };\n"
        "%2 = fn (%z: float32) { subtract(%z, %a) };\nadd(%1(%y), %2(%y))",
    ),
    "a function and a branch": (
        "%0 = exp(%x);\n"
        "if (%c) { %1 = fn (%z: float32) { add(%z, %0) }; %1(%y) } else { tanh(%0) }",
        "let %a = exp(%x);\n"
        "if (%c) { %1 = fn (%z: float32) { add(%z, %a) }; %1(%y) } else { tanh(%a) }",
    ),
    "a chain": (
        "%0 = exp(%x);\n%1 = sqrt(%0);\nif (%c) { %1 } else { tanh(%1) }",
        "let %a = sqrt(exp(%x));\nif (%c) { %a } else { tanh(%a) }",
    ),
    "lets": ("let %a = exp(%x);\nlet %b = tanh(%a);\nadd(%b, %a)", None),
    "an alias": ("let %a = exp(%x);\nlet %b = %a;\n%a", "let %a = exp(%x);\nlet %b = %a;\n%b"),
    "recursion": (
        "let %f = fn (%z: float32) -> float32 {"
        " if (less(%z, 1f)) { %z } else { %f(subtract(%z, 1f)) } };\n%f(%x)", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKS)
def test_what_blocks_share_is_bound(name: str) -> None:
    before, after = BLOCKS[name]
    check_bodies(ToBasicBlockNormalForm(), X, before, before if after is None else after)


@pytest.mark.parametrize("name", BLOCKS)
def test_nothing_is_left_to_lift(name: str) -> None:
    mod = InferType()(
        relay.fromtext(f'#[version = "0.0.5"]\ndef @main({X}) {{ {BLOCKS[name][0]} }}')
    )
    again = ToBasicBlockNormalForm()(mod)
    assert not lifted_nodes(again["main"])
    if BLOCKS[name][1] is None:
        assert not lifted_nodes(mod["main"])


def test_clauses_are_blocks() -> None:
    head = "type Maybe[A] { Just(A), None_, }\n"
    head += "def @main(%m: Maybe[float32], %x: float32) -> float32 {\n"
    before = "%0 = exp(%x);\nmatch (%m) { Just(%a) => { add(%a, %0) }, None_ => { %0 } }\n}\n"
    after = "let %b = exp(%x);\nmatch (%m) { Just(%a) => { add(%a, %b) }, None_ => { %b } }\n}\n"
    check(ToBasicBlockNormalForm(), head + before, head + after, numbers=False)


@pytest.mark.parametrize("each", [ToANormalForm(), ToBasicBlockNormalForm()])
def test_references_keep_their_order(each: ToANormalForm) -> None:
    body = (
        "let %r = ref(%x);\nlet %a = ref_read(%r);\nlet %w = ref_write(%r, %y);\n"
        "let %b = ref_read(%r);\nsubtract(%a, %b)"
    )
    after = body.replace("subtract(%a, %b)", "let %d = subtract(%a, %b);\n%d")
    check_bodies(each, X, body, after if isinstance(each, ToANormalForm) else body)


@pytest.mark.parametrize("name", sorted(set(programs()) - {"same_names", "let_chain", "let"}))
def test_graph_normal_form_is_the_inverse(name: str) -> None:
    before = ToGraphNormalForm()(InferType()(build_program(name)))
    after = ToANormalForm()(before)
    verify(after)
    again = ToANormalForm()(ToGraphNormalForm()(after))
    assert_structural_equal(again, after)


@pytest.mark.parametrize("name", sorted(programs()))
def test_blocks_of_recorded_programs(name: str) -> None:
    mod = InferType()(build_program(name))
    after = ToBasicBlockNormalForm()(mod)
    verify(after)
    assert not lifted_nodes(after["main"])


@pytest.mark.wide
def test_deep_blocks_do_not_recurse() -> None:
    x, c = relay.var("x", shape=()), relay.var("c", shape=(), dtype="bool")
    shared = relay.exp(x)
    body: Expr = relay.tanh(shared)
    for _ in range(3_000):
        body = relay.If(c, body, relay.add(shared, x))
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x, c], body)))
    after = ToBasicBlockNormalForm()(mod)["main"]
    assert isinstance(after.body, Let)
    data = [np.float32(0.5), np.array(True)]
    assert run(after, data) == run(mod["main"], data)


@pytest.mark.wide
def test_a_long_chain_is_bound() -> None:
    y: Expr = relay.var("x", shape=(2,))
    for _ in range(20_000):
        y = relay.tanh(y)
    body = ToANormalForm()(InferType()(relay.IRModule.from_expr(y)))["main"].body
    count = 0
    while isinstance(body, Let):
        body, count = body.body, count + 1
    assert count == 20_000

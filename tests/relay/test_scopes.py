"""Passes on programs whose values are shared across scopes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.scoped_programs import Meaning, ScopedMaker

import serde.relay as relay
from serde.relay.ir import registry
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, Let, Op, Tuple, Var
from serde.relay.ir.module import IRModule
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import (
    CanonicalizeOps,
    DefuseOps,
    EvaluateConstants,
    FuseOps,
    InferType,
    InlineCalls,
    LambdaLift,
    MergeEqualNodes,
    Pass,
    RemoveDeadCode,
    RemoveIdentities,
    Sequential,
    ToANormalForm,
    ToGraphNormalForm,
)

SEEDS = (*range(20), 259, 306)

PASSES: dict[str, Pass] = {
    "anf": ToANormalForm(),
    "graph": ToGraphNormalForm(),
    "inline": InlineCalls(),
    "lift": LambdaLift(),
    "cse": MergeEqualNodes(),
    "dce": RemoveDeadCode(),
    "fold": EvaluateConstants(),
    "simplify": RemoveIdentities(),
    "canonical": CanonicalizeOps(),
    "fuse": FuseOps(),
    "anf_graph": Sequential([ToANormalForm(), ToGraphNormalForm()]),
    "graph_anf": Sequential([ToGraphNormalForm(), ToANormalForm()]),
    "anf_cse_dce": Sequential([ToANormalForm(), MergeEqualNodes(), RemoveDeadCode()]),
    "cse_anf": Sequential([MergeEqualNodes(), ToANormalForm()]),
    "lift_inline": Sequential([LambdaLift(), InlineCalls()]),
    "lift_anf": Sequential([LambdaLift(), ToANormalForm()]),
    "inline_graph_inline": Sequential([InlineCalls(), ToGraphNormalForm(), InlineCalls()]),
    "inline_lift": Sequential([InlineCalls(), LambdaLift()]),
    "graph_lift_cse": Sequential([ToGraphNormalForm(), LambdaLift(), MergeEqualNodes()]),
    "fuse_defuse": Sequential([FuseOps(), DefuseOps()]),
}


def agree(mod: IRModule, wanted: Any, inputs: list[float]) -> None:
    """Require that a module is sound and means what it did, here and in the interpreter."""
    verify(mod)
    np.testing.assert_array_equal(Meaning(mod)(*inputs), wanted)
    found = run(mod["main"], [np.float64(value) for value in inputs], mod=mod)
    np.testing.assert_array_equal(found, wanted)


def drawn(seed: int) -> tuple[IRModule, Any, list[float]]:
    """Return a typed module, what it gives, and for which inputs."""
    maker = ScopedMaker(seed)
    mod, inputs = maker.module(), maker.inputs()
    wanted = Meaning(mod)(*inputs)
    return InferType()(mod), wanted, inputs


@pytest.mark.wide
@pytest.mark.parametrize("seed", SEEDS)
def test_the_interpreter_runs_what_shares_across_scopes(seed: int) -> None:
    mod, wanted, inputs = drawn(seed)
    agree(mod, wanted, inputs)


@pytest.mark.sparse(3)
@pytest.mark.thin(2)
@pytest.mark.parametrize("name", sorted(PASSES))
@pytest.mark.parametrize("seed", SEEDS)
def test_passes_keep_scopes(name: str, seed: int) -> None:
    mod, wanted, inputs = drawn(seed)
    agree(InferType()(PASSES[name](mod)), wanted, inputs)


@pytest.mark.thin(2)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_text_keeps_scopes(seed: int, strict: bool) -> None:
    mod, wanted, inputs = drawn(seed)
    agree(relay.fromtext(mod.astext(strict=strict)), wanted, inputs)


@pytest.mark.wide
@pytest.mark.parametrize("seed", SEEDS)
def test_operands_are_atoms_in_normal_form(seed: int) -> None:
    mod, _, _ = drawn(seed)
    after = ToANormalForm()(mod)
    for node in post_order(*after.functions.values()):
        assert all(isinstance(each, (Var, Constant, GlobalVar)) for each in operands(node))


def operands(node: Expr) -> list[Expr]:
    if isinstance(node, Call):
        callee = [] if isinstance(node.op, (Op, Function)) else [node.op]
        return [*node.args, *callee]
    if isinstance(node, Tuple):
        return list(node.fields)
    return [node.value] if isinstance(node, Let) and isinstance(node.value, Let) else []


def test_a_variable_bound_to_a_variable_comes_after_it() -> None:
    x, y = relay.var("x"), relay.var("y")
    body = Let(x, relay.const(4.0), Let(y, x, Call(registry.get("add"), [x, y])))
    after = ToANormalForm()(InferType()(IRModule.from_expr(Function([], body))))
    verify(after)
    assert run(after["main"], []) == 8


# Programs of the kinds that TVM's own tests of parser and passes have; %c is true, %x is 3.
PROGRAMS: dict[str, tuple[str, Any]] = {
    "a name bound twice": ("def @main() { let %x = 1; let %x = 2; %x }", 2),
    "a let in a let": ("def @main() { let %x = { let %y = 3; add(%y, %y) }; %x }", 6),
    "a let as operand": ("def @main(%x: int32) { add({ let %y = 1; %y }, %x) }", 4),
    "a variable's variable": ("def @main() { let %x = 4f; let %y = %x; %x + %y }", 8),
    "no value": ("def @main() { () }", ()),
    "fields of no value": ("def @main(%x: int32) { %0 = (); (%0, %x, ()) }", ((), 3, ())),
    "one value": ("def @main() { (0,) }", (0,)),
    "values thrown away": ("def @main(%x: int32) { add(%x, 1); add(%x, 2) }", 5),
    "a graph": ("def @main() { %0 = 1; %1 = (%0, %0); %1 }", (1, 1)),
    "precedence": ("def @main() { 1 * 2 + 3 - 4 }", 1),
    "a call of what stands there": ("def @main(%x: int32) { fn (%x: int32) { %x + %x }(%x) }", 6),
    "lets in branches": (
        "def @main(%c: bool) { if (%c) { let %x = 1; %x } else { let %x = 2; %x } }", 1
    ),
    "shared by branches": (
        "def @main(%c: bool, %x: int32) {\n"
        "  %0 = %x + 1;\n  if (%c) { %0 * %0 } else { let %y = %0; %y + %0 }\n}", 16,
    ),
    "a recursion": (
        "def @f(%n: int32) -> int32 { if (less(%n, 1)) { 0 } else { %n + @f(%n - 1) } }\n"
        "def @main() { @f(10) }", 55,
    ),
    "a local recursion under two names": (
        "def @main() {\n  let %f: fn (int32) -> int32 = fn (%n: int32) -> int32 {\n"
        "    if (less(%n, 1)) { 0 } else { %n + %f(%n - 1) }\n  };\n"
        "  let %g = %f;\n  %g(4)\n}", 10,
    ),
    "closures in closures": (
        "def @main(%x: int32) {\n  let %f = fn (%a: int32) { add(%a, %x) };\n"
        "  let %g = fn (%b: int32) { %f(add(%b, %x)) };\n  %g(2)\n}", 8,
    ),
    "a function that gives one": (
        "def @main(%x: int32) {\n  let %f = fn (%y: int32) { fn (%z: int32) { %x + %y + %z } };\n"
        "  let %g = %f(1);\n  %g(2)\n}", 6,
    ),
    "a function that takes one": (
        "def @main(%x: int32) {\n  let %twice = fn (%f: fn (int32) -> int32, %y: int32) -> int32 {"
        " %f(%f(%y)) };\n  %twice(fn (%a: int32) -> int32 { %a * 3 }, %x)\n}", 27,
    ),
    "unused lets": ("def @main(%x: int32) { let %a = %x + 1; let %b = %a + 1; %x }", 3),
}  # fmt: skip
GIVEN = {"bool": np.array(True), "int32": np.int32(3)}
AS_IT_IS = Sequential([])


@pytest.mark.parametrize("name", [*PASSES, "text"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_as_tvms_tests_have_them(program: str, name: str) -> None:
    text, wanted = PROGRAMS[program]
    mod = relay.fromtext(f'#[version = "0.0.5"]\n{text}\n')
    if name == "text":
        mod = relay.fromtext(mod.astext(strict=True))
    after = InferType()(PASSES.get(name, AS_IT_IS)(mod))
    verify(after)
    inputs = [GIVEN[repr(param.type)] for param in after["main"].params]
    assert _numbers(run(after["main"], inputs, mod=after)) == wanted


def _numbers(value: Any) -> Any:
    return tuple(map(_numbers, value)) if isinstance(value, tuple) else value.item()

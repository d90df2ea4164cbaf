"""Passes on programs whose values are shared across scopes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.scoped_programs import Meaning, ScopedMaker

import serde.relay as relay
from serde.relay.expr import Call, Constant, Expr, Function, GlobalVar, Let, Op, Tuple, Var
from serde.relay.interpreter import run
from serde.relay.module import IRModule
from serde.relay.transform import (
    CanonicalizeOps,
    DeadCodeElimination,
    DefuseOps,
    EliminateCommonSubexpr,
    FoldConstant,
    FuseOps,
    InferType,
    Inline,
    LambdaLift,
    Pass,
    Sequential,
    SimplifyExpr,
    ToANormalForm,
    ToGraphNormalForm,
)
from serde.relay.verify import verify
from serde.relay.visit import post_order

COUNT = 20

PASSES: dict[str, Pass] = {
    "anf": ToANormalForm(),
    "graph": ToGraphNormalForm(),
    "inline": Inline(),
    "lift": LambdaLift(),
    "cse": EliminateCommonSubexpr(),
    "dce": DeadCodeElimination(),
    "fold": FoldConstant(),
    "simplify": SimplifyExpr(),
    "canonical": CanonicalizeOps(),
    "fuse": FuseOps(),
    "anf_graph": Sequential([ToANormalForm(), ToGraphNormalForm()]),
    "graph_anf": Sequential([ToGraphNormalForm(), ToANormalForm()]),
    "anf_cse_dce": Sequential([ToANormalForm(), EliminateCommonSubexpr(), DeadCodeElimination()]),
    "cse_anf": Sequential([EliminateCommonSubexpr(), ToANormalForm()]),
    "lift_inline": Sequential([LambdaLift(), Inline()]),
    "lift_anf": Sequential([LambdaLift(), ToANormalForm()]),
    "inline_graph_inline": Sequential([Inline(), ToGraphNormalForm(), Inline()]),
    "inline_lift": Sequential([Inline(), LambdaLift()]),
    "graph_lift_cse": Sequential([ToGraphNormalForm(), LambdaLift(), EliminateCommonSubexpr()]),
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


@pytest.mark.parametrize("seed", range(COUNT))
def test_the_interpreter_runs_what_shares_across_scopes(seed: int) -> None:
    mod, wanted, inputs = drawn(seed)
    agree(mod, wanted, inputs)


@pytest.mark.parametrize("name", sorted(PASSES))
@pytest.mark.parametrize("seed", range(COUNT))
def test_passes_keep_scopes(name: str, seed: int) -> None:
    mod, wanted, inputs = drawn(seed)
    agree(InferType()(PASSES[name](mod)), wanted, inputs)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("seed", range(COUNT))
def test_text_keeps_scopes(seed: int, strict: bool) -> None:
    mod, wanted, inputs = drawn(seed)
    agree(relay.fromtext(mod.astext(strict=strict)), wanted, inputs)


@pytest.mark.parametrize("seed", range(COUNT))
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
    body = Let(x, relay.const(4.0), Let(y, x, Call(relay.registry.get("add"), [x, y])))
    after = ToANormalForm()(InferType()(IRModule.from_expr(Function([], body))))
    verify(after)
    assert run(after["main"], []) == 8

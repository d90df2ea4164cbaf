"""Conditionals and loops in MXNet 1.9.1, against numpy written out here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.mxnet_written import run_written

import serde.relay as relay
from serde.core.report import Report
from serde.errors import UnsupportedModelError
from serde.mxnet.exporter import from_relay
from serde.mxnet.model import MxnetModel
from serde.relay.ir.expr import Call, Expr, Function, Tuple, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call
from serde.relay.op.control import samples

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 4


def exported(params: Sequence[Var], body: Expr, outputs: int = 1) -> tuple[RelayModel, MxnetModel]:
    mod = relay.transform.InferType()(IRModule.from_expr(Function(params, body)))
    names = tuple(param.name_hint for param in params)
    model = RelayModel(mod, {}, ModelMeta(names, tuple(f"out{i}" for i in range(outputs))))
    return model, from_relay(model, Report())


def run(params: Sequence[Var], body: Expr, *arrays: Any, outputs: int = 1) -> list[np.ndarray]:
    return run_written(params, body, arrays, outputs=outputs)


def operators(native: MxnetModel) -> list[str]:
    return [node.op for node in native.graph.nodes if node.op != "null"]


def shared() -> tuple[list[Var], Expr]:
    """A conditional whose branches share the exponential and have a node each of their own."""
    x, flag = relay.var("x", shape=(2, 3)), relay.var("flag", shape=(1,), dtype="bool")
    power = relay.exp(x)
    taken = relay.add(power, relay.const(1.0))
    other = relay.multiply(relay.tanh(x), power)
    return [x, flag], relay.If(relay.reshape(flag, ()), taken, other)


@pytest.mark.parametrize("flag", [True, False])
def test_conditional_runs_one_branch(flag: bool) -> None:
    (found,) = run(*shared(), X, np.array([flag]))
    wanted = np.exp(X) + 1 if flag else np.tanh(X) * np.exp(X)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_conditional_is_one_node_around_which_lies_what_is_shared() -> None:
    _, native = exported(*shared())
    assert operators(native).count("_cond") == 1
    assert operators(native).count("exp") == 1
    (node,) = [node for node in native.graph.nodes if node.op == "_cond"]
    inner = [[each.op for each in graph.nodes if each.op != "null"] for graph in node.subgraphs]
    assert all("exp" not in names for names in inner)
    assert "tanh" in inner[2]


@pytest.mark.parametrize("flag", [True, False])
def test_each_branch_gives_its_own_constants(flag: bool) -> None:
    choice = relay.var("choice", shape=(1,), dtype="bool")
    same = relay.const(-X)
    body = relay.If(
        relay.reshape(choice, ()),
        relay.Tuple([relay.const(X), same]),
        relay.Tuple([relay.const(X + 1), same]),
    )
    first, second = run([choice], body, np.array([flag]), outputs=2)
    np.testing.assert_array_equal(first, X if flag else X + 1)
    np.testing.assert_array_equal(second, -X)


@pytest.mark.parametrize("flags", [(True, True), (True, False), (False, True)])
def test_conditional_inside_a_conditional(flags: tuple[bool, bool]) -> None:
    x = relay.var("x", shape=(2, 3))
    outer, inner = (relay.var(name, shape=(1,), dtype="bool") for name in ("outer", "inner"))
    nested = relay.If(
        relay.reshape(inner, ()),
        relay.Tuple([relay.sin(x), x]),
        relay.Tuple([relay.cos(x), relay.negative(x)]),
    )
    body = relay.If(
        relay.reshape(outer, ()), nested, relay.Tuple([x, relay.add(x, relay.const(2.0))])
    )
    given = [np.array([flag]) for flag in flags]
    first, second = run([x, outer, inner], body, X, *given, outputs=2)
    inside = (np.sin(X), X) if flags[1] else (np.cos(X), -X)
    wanted = inside if flags[0] else (X, X + 2)
    np.testing.assert_allclose(first, wanted[0], rtol=1e-6)
    np.testing.assert_allclose(second, wanted[1], rtol=1e-6)


@pytest.mark.parametrize("flag", [True, False])
def test_conditional_on_a_scalar_input_chooses(flag: bool) -> None:
    x, choice = relay.var("x", shape=(2, 3)), relay.var("choice", shape=(), dtype="bool")
    body = relay.If(choice, relay.exp(x), relay.negative(x))
    (found,) = run([x, choice], body, X, np.array(flag))
    np.testing.assert_allclose(found, np.exp(X) if flag else -X, rtol=1e-6)
    assert "_cond" not in operators(exported([x, choice], body)[1])


def countdown(limit: int) -> tuple[list[Var], Call]:
    x = relay.var("x", shape=(2, 3))
    captured = (relay.const(0.5),)
    body = samples.countdown()
    return [x], call("serde.loop", relay.const(limit, "int64"), None, (x,), captured, body=body)


@pytest.mark.parametrize("limit", [0, 1, 3, 40])
def test_loop_ends_by_limit_or_condition(limit: int) -> None:
    last, stack, numbers = run(*countdown(limit), X, outputs=3)
    state, rows = X, []
    while len(rows) < limit:
        state = state / 2
        rows.append(-state)
        if np.abs(state).sum() <= 0.5:
            break
    np.testing.assert_allclose(last, state, rtol=1e-6)
    np.testing.assert_allclose(stack, np.array(rows).reshape(-1, 2, 3), rtol=1e-6)
    assert numbers.tolist() == list(range(len(rows)))
    assert numbers.dtype == np.int64


def test_loop_with_a_condition_is_a_while_loop() -> None:
    _, native = exported(*countdown(40), outputs=3)
    (node,) = [node for node in native.graph.nodes if node.op == "_while_loop"]
    assert node.attrs["max_iterations"] == "40"
    assert len(node.subgraphs) == 2


def test_loop_without_a_limit_is_refused() -> None:
    x = relay.var("x", shape=(2, 3))
    loop = call("serde.loop", None, None, (x,), (relay.const(0.5),), body=samples.countdown())
    with pytest.raises(UnsupportedModelError, match="without a constant limit"):
        exported([x], loop, 3)


@pytest.mark.parametrize("batch", [2, 5])
def test_loop_that_always_goes_on_is_a_foreach(batch: int) -> None:
    x, step = relay.var("x", shape=(2, 2)), relay.var("step", shape=(2,))
    state = (x, relay.const(7, "int32"))
    body = samples.accumulation()
    loop = call("serde.loop", relay.const(batch, "int64"), None, state, (step,), body=body)
    results = Tuple([relay.TupleGetItem(loop, i) for i in (0, 2)])
    given = np.ones((2, 2), np.float32), np.array([1, 2], np.float32)
    last, stack = run([x, step], results, *given, outputs=2)
    rows = [(given[0] + given[1] * (i + 1)).sum(1) for i in range(batch)]
    np.testing.assert_allclose(last, given[0] + given[1] * batch, rtol=1e-6)
    np.testing.assert_allclose(stack, rows, rtol=1e-6)
    assert "_foreach" in operators(exported([x, step], results, 2)[1])


def test_conditional_inside_a_scan() -> None:
    total, row = relay.var("total", shape=(3,)), relay.var("row", shape=(3,))
    grows = relay.greater(relay.sum(row), relay.const(0.0))
    following = relay.If(grows, relay.add(total, row), relay.multiply(total, relay.const(2.0)))
    body = Function([total, row], Tuple([following]))
    typed = relay.transform.InferType()(IRModule.from_expr(body))["main"]
    first, rows = relay.var("first", shape=(3,)), relay.var("rows", shape=(4, 3))
    scan = call("serde.scan", (first,), (rows,), (), body=typed)
    signs = np.array([1, -1, 1, -1], np.float32)[:, None]
    given = np.ones(3, np.float32), signs * np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    (found,) = run([first, rows], relay.TupleGetItem(scan, 0), *given)
    wanted = given[0]
    for each in given[1]:
        wanted = wanted + each if each.sum() > 0 else wanted * 2
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_scan_inside_a_scan() -> None:
    inner = samples.running_sum()
    total, block = relay.var("total", shape=(3,)), relay.var("block", shape=(2, 3))
    scan = call("serde.scan", (total,), (block,), (relay.const(2.0),), body=inner)
    fields = [relay.TupleGetItem(scan, 0), relay.TupleGetItem(scan, 2)]
    body = relay.transform.InferType()(IRModule.from_expr(Function([total, block], Tuple(fields))))[
        "main"
    ]
    first, blocks = relay.var("first", shape=(3,)), relay.var("blocks", shape=(4, 2, 3))
    outer = call("serde.scan", (first,), (blocks,), (), body=body)
    results = Tuple([relay.TupleGetItem(outer, i) for i in range(2)])
    given = np.ones(3, np.float32), np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    last, scaled = run([first, blocks], results, *given, outputs=2)
    np.testing.assert_allclose(last, given[0] + given[1].sum((0, 1)), rtol=1e-6)
    np.testing.assert_allclose(scaled, given[1] * 2, rtol=1e-6)


@pytest.mark.parametrize("flag", [True, False])
def test_scan_inside_a_conditional(flag: bool) -> None:
    first, rows = relay.var("first", shape=(3,)), relay.var("rows", shape=(4, 3))
    choice = relay.var("choice", shape=(1,), dtype="bool")
    scan = call("serde.scan", (first,), (rows,), (relay.const(2.0),), body=samples.running_sum())
    body = relay.If(relay.reshape(choice, ()), relay.TupleGetItem(scan, 0), relay.negative(first))
    given = np.ones(3, np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
    (found,) = run([first, rows, choice], body, *given, np.array([flag]))
    np.testing.assert_allclose(found, given[0] + given[1].sum(0) if flag else -given[0], rtol=1e-6)

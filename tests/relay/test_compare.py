"""Structural equality, and the place it names where two things differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.ir.compare import first_difference
from serde.relay.ir.expr import Let, TupleGetItem, Var
from serde.relay.text.parser import parse_expr


def test_names_do_not_count() -> None:
    a = parse_expr("fn (%x: float32, %y: float32) { let %z = subtract(%x, %y); %z }")
    b = parse_expr("fn (%p: float32, %q: float32) { let %r = subtract(%p, %q); %r }")
    assert relay.structural_equal(a, b)
    relay.assert_structural_equal(a, b)


@pytest.mark.parametrize(
    ("left", "right", "difference"),
    [
        ("%x", "%y", "body: Var(x) and Var(y) are not bound at the same place"),
        ("exp(%x)", "log(%x)", "body.op: 'exp' and 'log'"),
        ("exp(%x)", "%x", "body: Call(exp, 1 args) and Var(x)"),
        ("exp(exp(%x))", "exp(log(%x))", "body.args[0].op: 'exp' and 'log'"),
        ("sum(%x, axis=[0])", "sum(%x, axis=[1])", "body.attrs.axis[0]: 0 and 1"),
        ("sum(%x)", "sum(%x, keepdims=True)", "body.attrs.keepdims: False and True"),
        ("(%x, %y)", "(%x,)", "body: 2 and 1 fields"),
        ("(%x, %y).0", "(%x, %y).1", "body.index: 0 and 1"),
        ("add(%x, 1f)", "add(%x, 2f)", "body.args[1]: constants differ in value: 1.0 and 2.0"),
        ("1f", "1f64", "body: Constant(float32) and Constant(float64)"),
        ("0f", "-0f", "body: constants differ in value: 0.0 and -0.0"),
        (
            "%0 = exp(%x); add(%0, %0)",
            "add(exp(%x), exp(%x))",
            "body.args[1]: Call(exp, 1 args) is shared on one side only",
        ),
        (
            "if (True) { %x } else { %y }",
            "if (True) { %x } else { %x }",
            "body.false_branch: Var(y) and Var(x) are not bound at the same place",
        ),
        (
            "let %a = exp(%x); let %b = exp(%y); %a",
            "let %a = exp(%x); let %b = exp(%y); %b",
            "body.body.body: Var(a) and Var(b) are not bound at the same place",
        ),
    ],
)
def test_first_difference(left: str, right: str, difference: str) -> None:
    shape = "Tensor[(2, 3), float32]"
    a, b = (parse_expr(f"fn (%x: {shape}, %y: {shape}) {{ {s} }}") for s in (left, right))
    assert first_difference(a, b) == difference
    assert first_difference(b, a) is not None
    assert not relay.structural_equal(a, b)
    assert first_difference(a, a) is None
    with pytest.raises(RelayError):
        relay.assert_structural_equal(a, b)


@pytest.mark.parametrize(
    ("left", "right", "difference"),
    [
        ("(%x: float32)", "(%x: float64)", "params[0].type: float32 and float64"),
        (
            "(%x: Tensor[(N), float32])",
            "(%x: Tensor[(M), float32])",
            "params[0].type: Tensor[(N), float32] and Tensor[(M), float32]",
        ),
        ("(%x: float32)", "(%x: float32, %y: float32)", "value: 1 and 2 params"),
        ("(%x: float32, Primitive=1)", "(%x: float32)", "attrs: only one has Primitive"),
        ("(%x: float32, A=1)", "(%x: float32, A=True)", "attrs.A: 1 and True"),
        ("(%x: float32, A=1)", "(%x: float32, A=1f)", "attrs.A: 1 and 1.0"),
    ],
)
def test_functions_differ(left: str, right: str, difference: str) -> None:
    a, b = (parse_expr(f"fn {s} {{ %x }}") for s in (left, right))
    assert first_difference(a, b) == difference


def test_constants_by_bytes() -> None:
    nan = np.array([np.nan, 1.0], np.float32)
    assert relay.structural_equal(relay.const(nan), relay.const(nan.copy()))
    assert not relay.structural_equal(relay.const(nan), relay.const(nan[::-1]))
    assert not relay.structural_equal(relay.const([1, 2]), relay.const([[1, 2]]))


def test_sharing_of_constants_and_projections_does_not_count() -> None:
    one = relay.const(1.0)
    assert relay.structural_equal(
        relay.Tuple([one, one]), relay.Tuple([relay.const(1.0), relay.const(1.0)])
    )
    pair = relay.Tuple([one, one])
    field = TupleGetItem(pair, 0)
    again = relay.Tuple([TupleGetItem(pair, 0), TupleGetItem(pair, 0)])
    assert relay.structural_equal(relay.Tuple([field, field]), again)
    assert relay.structural_equal(relay.Tuple([]), relay.Tuple([]))


def test_free_variables() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    assert relay.structural_equal(relay.exp(x), relay.exp(x))
    assert not relay.structural_equal(relay.exp(x), relay.exp(y))
    assert relay.structural_equal(relay.exp(x), relay.exp(y), map_free_vars=True)
    different = relay.exp(relay.var("z", shape=(3,)))
    assert not relay.structural_equal(relay.exp(x), different, map_free_vars=True)
    swapped = relay.add(x, y), relay.add(x, x)
    assert not relay.structural_equal(*swapped, map_free_vars=True)


def test_modules() -> None:
    x = relay.var("x", shape=(2,))
    one = relay.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    y = relay.var("y", shape=(2,))
    other = relay.IRModule.from_expr(relay.Function([y], relay.log(y)))
    assert first_difference(one, other) == "main.body.op: 'exp' and 'log'"
    named = relay.IRModule({"run": one["main"]})
    assert first_difference(one, named) == "module: only one has a function main"
    noted = relay.IRModule({"main": one["main"]}, attrs={"a": 1})
    assert first_difference(one, noted) == "module.attrs: only one has a"
    assert first_difference(one, one["main"]) == "value: a IRModule and a Function"


def test_lists_are_compared_one_by_one() -> None:
    x, number = relay.TensorType((1, 2)), relay.TensorType((), "float32")
    assert relay.structural_equal([x, number], (x, relay.TensorType(())))
    assert relay.structural_equal((4, 5), [4, 5])
    assert relay.structural_equal([relay.const(1), number], [relay.const(1), number])
    assert first_difference([x], [x, x]) == "list: 1 and 2 items"
    assert "float32" in str(first_difference([x, number], [x, x]))


def test_types() -> None:
    assert relay.structural_equal(relay.TensorType((2,)), relay.TensorType((2,)))
    assert first_difference(relay.TensorType((2,)), relay.TupleType([])) is not None


@pytest.mark.slow
def test_long_chains_are_compared_without_recursion() -> None:
    def chain(last: Any) -> relay.Function:
        x = relay.var("x", shape=(2,))
        value: Any = relay.exp(x)
        for _ in range(100_000):
            value = relay.exp(value)
        return relay.Function([x], last(value))

    assert relay.structural_equal(chain(relay.exp), chain(relay.exp))
    assert first_difference(chain(relay.exp), chain(relay.log)) == "body.op: 'exp' and 'log'"


def test_shared_graph_is_compared_in_linear_time() -> None:
    def doubled() -> relay.Function:
        x = relay.var("x", shape=(2,))
        value: Any = x
        for _ in range(200):
            value = TupleGetItem(relay.Tuple([relay.add(value, value), value]), 0)
        return relay.Function([x], value)

    assert relay.structural_equal(doubled(), doubled())


def test_recursive_let() -> None:
    def recursion(swap: bool) -> relay.Function:
        x, f, i = relay.var("x", shape=()), Var("f"), relay.var("i", shape=())
        body = relay.Function([i], f(x if swap else i), relay.TensorType(()))
        return relay.Function([x], Let(f, body, f(x)))

    assert relay.structural_equal(recursion(False), recursion(False))
    assert first_difference(recursion(False), recursion(True)) == (
        "body.value.body.args[0]: Var(i) and Var(x) are not bound at the same place"
    )

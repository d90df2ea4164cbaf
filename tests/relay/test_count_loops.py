"""Loops that a counter ends get the limit that this is; plain Python is the judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.relay import transform
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run

TOTAL = TensorType((3,), "float32")


def loop(
    begin: int, step: int, bound: int, op: str, *, shape: tuple[int, ...] = (), turned: bool = False
) -> Function:
    """``while op(i, bound): i, total = i + step, total + i * x``, asked behind each iteration."""
    kind = TensorType(shape, "int32")
    number, i = Var("number", TensorType((), "int64")), Var("i", kind)
    total, x = Var("total", TOTAL), Var("x", TOTAL)
    following = relay.add(i, relay.const(np.full(shape, step, np.int32)))
    limit = relay.const(np.full(shape, bound, np.int32))
    question = call(op, limit, following) if turned else call(op, following, limit)
    again = relay.reshape(question, ()) if shape else question
    grown = relay.add(total, relay.multiply(relay.cast(i, "float32"), x))
    body = infer_function(Function([number, i, total, x], Tuple([again, following, grown])))
    outer = Var("x", TOTAL)
    first = relay.const(np.full(shape, begin, np.int32))
    zeros = relay.const(np.zeros(3, np.float32))
    going = relay.const(np.array(True))
    found = call("serde.loop", None, going, (first, zeros), (outer,), body=body)
    return infer_function(
        Function([outer], Tuple([TupleGetItem(found, 0), TupleGetItem(found, 1)]))
    )


def loops(function: Function) -> list[Call]:
    nodes = post_order(function.body)
    return [n for n in nodes if isinstance(n, Call) and n.op.name == "serde.loop"]


CASES: dict[str, tuple[dict[str, Any], int]] = {
    "below": ({"begin": 0, "step": 1, "bound": 5, "op": "less"}, 5),
    "up to": ({"begin": 0, "step": 1, "bound": 5, "op": "less_equal"}, 6),
    "by threes": ({"begin": 1, "step": 3, "bound": 9, "op": "less"}, 3),
    "a vector": ({"begin": 2, "step": 2, "bound": 9, "op": "less", "shape": (1,)}, 4),
    "turned": ({"begin": 0, "step": 1, "bound": 4, "op": "greater", "turned": True}, 4),
    "turned to": ({"begin": 0, "step": 2, "bound": 4, "op": "greater_equal", "turned": True}, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_counter_is_a_limit(name: str) -> None:
    options, turns = CASES[name]
    function = loop(**options)
    mod, changed = transform.CountLoops().run(relay.IRModule.from_expr(function))
    assert changed
    verify(mod)
    (counted,) = loops(mod["main"])
    assert counted.args[0].data == turns
    assert len(counted.args[2].fields) == 1
    x = np.float32([1, -2, 0.5])
    i, total = options["begin"], np.zeros(3, np.float32)
    for _ in range(turns):
        i, total = i + options["step"], total + np.float32(i) * x
    number, found = run(mod["main"], [x])
    np.testing.assert_array_equal(number, np.full(options.get("shape", ()), i, np.int32))
    np.testing.assert_array_equal(found, total)


def _shrinking() -> Function:
    return loop(9, -1, 4, "greater")


def _of_floats() -> Function:
    """It goes on as long as a sum is small."""
    number, total = Var("number", TensorType((), "int64")), Var("total", TensorType((), "float32"))
    following = relay.add(total, relay.const(np.float32(0.5)))
    again = relay.less(following, relay.const(np.float32(3)))
    body = infer_function(Function([number, total], Tuple([again, following])))
    first = relay.const(np.float32(0))
    found = call("serde.loop", None, relay.const(np.array(True)), (first,), (), body=body)
    return infer_function(Function([], TupleGetItem(found, 0)))


def _of_an_input() -> Function:
    kind = TensorType((), "int32")
    number, i, most = Var("number", TensorType((), "int64")), Var("i", kind), Var("most", kind)
    following = relay.add(i, relay.const(np.int32(1)))
    body = infer_function(
        Function([number, i, most], Tuple([relay.less(following, most), following]))
    )
    outer = Var("most", kind)
    first: Expr = relay.const(np.int32(0))
    found = call("serde.loop", None, relay.const(np.array(True)), (first,), (outer,), body=body)
    return infer_function(Function([outer], TupleGetItem(found, 0)))


def _wrapping() -> Function:
    """The counter starts again below zero before it reaches its bound."""
    return loop(2**31 - 8, 3, 2**31 - 1, "less")


@pytest.mark.parametrize("build", [_shrinking, _of_floats, _of_an_input, _wrapping])
def test_other_loops_stay(build: Any) -> None:
    function = build()
    assert transform.CountLoops().transform(function) is function


@pytest.mark.parametrize(("dtype", "begin"), [("bool", -3), ("int8", -300)])
def test_a_counter_that_is_compared_in_a_narrower_dtype_stays(dtype: str, begin: int) -> None:
    """What the counter is cast to does not tell how far it has come."""
    number, i = (Var(name, TensorType((), each)) for name, each in (("n", "int64"), ("i", "int32")))
    following = relay.add(i, relay.const(np.int32(1)))
    narrow = relay.cast(relay.cast(following, dtype), "int32")
    question = relay.less(narrow, relay.const(np.int32(1)))
    body = infer_function(Function([number, i], Tuple([question, following])))
    going = relay.const(np.array(True))
    found = call("serde.loop", None, going, (relay.const(np.int32(begin)),), (), body=body)
    function = infer_function(Function([], TupleGetItem(found, 0)))
    last = begin + 1
    while np.int32(last).astype(dtype).astype(np.int32) < 1:
        last += 1
    assert run(transform.CountLoops().transform(function), []) == last

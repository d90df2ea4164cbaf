"""Biases written as additions."""

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.expr import Call, Expr, Function
from serde.relay.ir.registry import OpDef
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import CanonicalizeOps, InferType


def _names(root: Expr) -> list[str]:
    calls = [n.op for n in post_order(root) if isinstance(n, Call)]
    return [op.name for op in calls if isinstance(op, OpDef)]


def _module(body: Expr) -> relay.IRModule:
    return InferType()(relay.IRModule.from_expr(body))


@pytest.mark.parametrize(("axis", "shape"), [(1, (2, 3, 4, 5)), (-1, (2, 3)), (0, (4, 3))])
def test_a_bias_is_added(axis: int, shape: tuple[int, ...]) -> None:
    x, b = relay.var("x", shape=shape), relay.var("b", shape=(shape[axis],))
    mod = _module(Function([x, b], relay.nn.bias_add(x, b, axis=axis)))
    after, changed = CanonicalizeOps().run(mod)
    assert changed
    verify(after)
    assert _names(after["main"])[-1] == "add"
    rng = np.random.default_rng(0)
    data = rng.normal(size=shape).astype("float32")
    bias = rng.normal(size=shape[axis]).astype("float32")
    want = np.moveaxis(np.moveaxis(data, axis, -1) + bias, -1, axis)
    np.testing.assert_array_equal(run(after["main"], [data, bias]), want)
    assert CanonicalizeOps().run(after) == (after, False)


@pytest.mark.wide
def test_long_chains_are_walked_without_recursion() -> None:
    x = relay.var("x", shape=(2,))
    total: Expr = x
    for _ in range(20_000):
        total = relay.nn.bias_add(relay.add(total, x), x, axis=0)
    assert set(_names(CanonicalizeOps()(_module(total))["main"])) == {"add"}

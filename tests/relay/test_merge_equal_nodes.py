"""Merging of equal calls."""

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import MergeEqualNodes

MATRIX = relay.TensorType((2, 3))
DATA = np.random.default_rng(1).normal(size=(2, 3)).astype("float32")


def _calls(function: relay.Function) -> int:
    return sum(isinstance(node, relay.Call) for node in post_order(function))


def test_equal_chains_become_one() -> None:
    x = relay.var("x", MATRIX)
    left = relay.add(relay.exp(x), relay.const(1.0))
    right = relay.add(relay.exp(x), relay.const(1.0))
    function = relay.Function([x], relay.multiply(left, right))
    mod, changed = MergeEqualNodes().run(relay.IRModule.from_expr(function))
    verify(mod)
    assert changed
    assert _calls(mod["main"]) == 3
    body = mod["main"].body
    assert body.args[0] is body.args[1]
    want = (np.exp(DATA) + np.float32(1)) ** 2
    np.testing.assert_allclose(run(mod["main"], [DATA]), want, rtol=1e-6)


def test_attributes_types_and_signs_of_zero_tell_apart() -> None:
    x = relay.var("x", MATRIX)
    parts = [
        relay.sum(x, axis=0),
        relay.sum(x, axis=1, keepdims=False),
        relay.clip(x, 0.0, 1.0),
        relay.clip(x, -0.0, 1.0),
        relay.const(np.float32(0)),
        relay.const(np.float32(-0.0)),
        relay.const(np.int32(0)),
        relay.const(np.zeros(1, "float32")),
    ]
    function = relay.Function([x], relay.Tuple(parts))
    assert MergeEqualNodes().transform(function) is function


def test_fields_of_one_call_merge() -> None:
    x = relay.var("x", MATRIX)
    first, second = relay.split(x, 3, axis=1), relay.split(x, 3, axis=1)
    function = relay.Function([x], relay.add(first[1], second[1]))
    result = MergeEqualNodes().transform(function)
    assert _calls(result) == 2
    assert result.body.args[0] is result.body.args[1]


def test_values_of_different_variables_stay_apart() -> None:
    x, y = relay.var("x", MATRIX), relay.var("x", MATRIX)
    function = relay.Function([x, y], relay.subtract(relay.exp(x), relay.exp(y)))
    assert MergeEqualNodes().transform(function) is function


@pytest.mark.wide
def test_two_chains_of_50000() -> None:
    x = relay.var("x", MATRIX)
    left = right = x
    for _ in range(50_000):
        left, right = relay.exp(left), relay.exp(right)
    function = relay.Function([x], relay.add(left, right))
    assert _calls(MergeEqualNodes().transform(function)) == 50_001

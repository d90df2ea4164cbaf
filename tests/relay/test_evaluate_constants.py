"""Evaluation of constants."""

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import EvaluateConstants, InferType

MATRIX = relay.TensorType((2, 3))
DATA = np.random.default_rng(1).normal(size=(2, 3)).astype("float32")


def _calls(function: relay.Function) -> list[str]:
    return [node.op.name for node in post_order(function) if isinstance(node, relay.Call)]


def test_what_depends_on_constants_is_evaluated() -> None:
    x = relay.var("x", MATRIX)
    table = relay.reshape(relay.const(np.arange(6, dtype="float32")), newshape=(2, 3))
    joined = relay.concatenate([relay.exp(table), table], axis=0)
    function = relay.Function([x], relay.add(x, relay.split(joined, 2)[0]))
    mod, changed = EvaluateConstants().run(relay.IRModule.from_expr(function))
    verify(mod)
    assert changed
    assert _calls(mod["main"]) == ["add"]
    value = mod["main"].body.args[1]
    assert value.type == MATRIX
    np.testing.assert_allclose(value.data, np.exp(np.arange(6.0)).reshape(2, 3), rtol=1e-6)


def test_a_constant_condition_chooses() -> None:
    x = relay.var("x", MATRIX)
    condition = relay.less(relay.const(1), relay.const(2))
    function = relay.Function([x], relay.If(condition, relay.exp(x), relay.log(x)))
    assert _calls(EvaluateConstants().transform(function)) == ["exp"]


def test_large_results_are_left() -> None:
    wide = relay.broadcast_to(relay.const(1.0), shape=(100, 100))
    function = relay.Function([], wide)
    assert EvaluateConstants(max_bytes=39_999).transform(function) is function
    assert isinstance(EvaluateConstants(max_bytes=40_000).transform(function).body, relay.Constant)


def test_unknown_lengths_and_failing_kernels_are_left() -> None:
    x = relay.var("x", MATRIX)
    function = relay.Function([x], relay.exp(x))
    assert EvaluateConstants().transform(function) is function


def test_integer_kinds_keep_their_dtype() -> None:
    total = relay.add(relay.const(np.int8(100)), relay.const(np.int8(27)))
    result = EvaluateConstants().transform(relay.Function([], total))
    assert result.body.data == 127
    assert result.body.data.dtype == np.int8


@pytest.mark.slow
def test_a_constant_chain_of_100000() -> None:
    total: relay.Expr = relay.const(np.int32(0))
    one = relay.const(np.int32(1))
    for _ in range(100_000):
        total = relay.add(total, one)
    result = EvaluateConstants().transform(relay.Function([], total))
    assert run(result, []) == 100_000
    assert isinstance(result.body, relay.Constant)


def test_types_follow_from_what_became_constant() -> None:
    x = relay.var("x", MATRIX)
    shape = relay.add(relay.Constant(np.array([3, 0])), relay.Constant(np.array([0, 2])))
    function = relay.Function([x], relay.dyn.reshape(x, shape))
    mod, changed = EvaluateConstants().run(InferType()(relay.IRModule.from_expr(function)))
    verify(mod)
    assert changed
    assert mod["main"].body.type == relay.TensorType((3, 2))


def test_a_branch_that_says_more_of_its_type_keeps_the_if_typed() -> None:
    x, cond = relay.var("x", MATRIX), relay.var("cond", shape=(), dtype="bool")
    shape = relay.add(relay.Constant(np.array([3, 0])), relay.Constant(np.array([0, 2])))
    left = relay.dyn.reshape(x, shape)
    right = relay.dyn.reshape(relay.exp(x), shape)
    choice = relay.If(cond, left, relay.dyn.reshape(right, relay.shape_of(x, "int64")))
    function = relay.Function([x, cond], choice)
    mod, _ = EvaluateConstants().run(InferType()(relay.IRModule.from_expr(function)))
    verify(mod)
    assert mod["main"].body.type == relay.TensorType((relay.Any(), relay.Any()))

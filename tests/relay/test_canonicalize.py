"""Casts copied to their users, and biases written as additions."""

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.expr import Call, Expr, Function, Tuple
from serde.relay.ir.registry import OpDef
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import CanonicalizeCast, CanonicalizeOps, FuseOps, InferType


def _names(root: Expr) -> list[str]:
    calls = [n.op for n in post_order(root) if isinstance(n, Call)]
    return [op.name for op in calls if isinstance(op, OpDef)]


def _module(body: Expr) -> relay.IRModule:
    return InferType()(relay.IRModule.from_expr(body))


def _shared(source: str, target: str) -> relay.IRModule:
    x = relay.var("x", shape=(2, 3), dtype=source)
    wide = relay.cast(x, target)
    one = relay.Constant(np.array(1, target))
    ends = [relay.add(wide, one), relay.multiply(wide, wide), relay.sum(wide)]
    return _module(Tuple(ends))


def test_each_elementwise_user_gets_the_cast() -> None:
    mod = _shared("int8", "int32")
    after, changed = CanonicalizeCast().run(mod)
    assert changed
    verify(after)
    assert _names(after["main"]).count("cast") == 3
    value = np.arange(-3, 3, dtype="int8").reshape(2, 3)
    for ours, theirs in zip(run(after["main"], [value]), run(mod["main"], [value]), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert CanonicalizeCast().run(after) == (after, False)


def test_fusion_then_takes_the_narrow_value() -> None:
    fused = FuseOps()(CanonicalizeCast()(_shared("int8", "int32")))
    kernels = [n for n in post_order(fused["main"]) if isinstance(n, Function) and n.attrs]
    assert sorted(_names(each) for each in kernels) == [
        ["cast", "add"], ["cast", "multiply"], ["cast", "sum"]
    ]  # fmt: skip
    assert {p.checked_type.dtype for each in kernels for p in each.params} == {"int8"}


@pytest.mark.parametrize(("source", "target"), [("int32", "int8"), ("float32", "int32")])
def test_a_cast_that_does_not_widen_stays(source: str, target: str) -> None:
    mod = _shared(source, target)
    assert CanonicalizeCast().run(mod) == (mod, False)


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
    x = relay.var("x", shape=(2,), dtype="float16")
    y: Expr = relay.cast(x, "float32")
    total: Expr = y
    for _ in range(20_000):
        total = relay.nn.bias_add(relay.add(total, y), y, axis=0)
    mod = CanonicalizeOps()(CanonicalizeCast()(_module(total)))
    names = _names(mod["main"])
    assert "nn.bias_add" not in names
    assert names.count("cast") > 20_000

"""float32 arithmetic in float16."""

import numpy as np
import pytest

import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.relay.ir.model import RelayModel
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType, ToFloat16, float16_overflows, fold_weights

RNG = np.random.default_rng(2)
X = RNG.normal(size=(2, 3)).astype("float32")
W = RNG.normal(size=(2, 3)).astype("float32")
MATRIX = relay.TensorType((2, 3))


def _calls(function: relay.Function) -> list[str]:
    return [node.op.name for node in post_order(function) if isinstance(node, relay.Call)]


def _convert(function: relay.Function, **options: object) -> relay.Function:
    mod, changed = ToFloat16(**options).run(relay.IRModule.from_expr(function))
    verify(mod)
    assert changed
    return mod["main"]


def test_casts_stand_at_the_borders_only() -> None:
    x, w = relay.var("x", MATRIX), relay.var("w", MATRIX)
    body = relay.multiply(relay.add(relay.exp(x), w), relay.add(x, relay.const(1.0)))
    result = _convert(relay.Function([x, w], body), weights=frozenset({"w"}))
    assert _calls(result) == ["cast", "exp", "cast", "add", "add", "multiply", "cast"]
    assert [p.type.dtype for p in result.params] == ["float32", "float32"]
    x16, w16 = X.astype("float16"), W.astype("float16")
    want = ((np.exp(x16) + w16) * (x16 + np.float16(1))).astype("float32")
    np.testing.assert_allclose(run(result, [X, W]), want, rtol=2e-3)


def test_inputs_and_outputs_become_float16_when_asked() -> None:
    x, w = relay.var("x", MATRIX), relay.var("w", MATRIX)
    function = relay.Function([x, w], relay.add(relay.negative(x), w))
    result = _convert(function, keep_io=False, weights=frozenset({"w"}))
    assert [p.type.dtype for p in result.params] == ["float16", "float32"]
    assert _calls(result) == ["negative", "cast", "add"]
    assert result.checked_type.ret_type.dtype == "float16"
    got = run(result, [X.astype("float16"), W])
    np.testing.assert_array_equal(got, W.astype("float16") - X.astype("float16"))


def test_listed_operators_and_nodes_stay() -> None:
    x = relay.var("x", MATRIX)
    named = relay.exp(relay.negative(x))
    named.span = relay.Span("sensitive")
    function = relay.Function([x], relay.negative(relay.sum(named, axis=1)))
    result = _convert(function, keep=frozenset({"sum", "sensitive"}))
    dtypes = {
        node.op.name: node.args[0].type.dtype
        for node in post_order(result)
        if isinstance(node, relay.Call)
    }
    assert dtypes["exp"] == dtypes["sum"] == "float32"
    assert dtypes["negative"] == "float16"


def test_integers_and_comparisons_are_left_alone() -> None:
    x = relay.var("x", MATRIX)
    i = relay.var("i", relay.TensorType((2, 3), "int32"))
    body = relay.where(relay.greater(x, relay.const(0.0)), relay.add(i, i), i)
    result = _convert(relay.Function([x, i], body))
    assert result.body.type == relay.TensorType((2, 3), "int32")
    index = np.arange(6, dtype="int32").reshape(2, 3)
    np.testing.assert_array_equal(run(result, [X, index]), np.where(X > 0, 2 * index, index))


def test_attributes_that_name_float32_name_float16() -> None:
    i = relay.var("i", relay.TensorType((3,), "int32"))
    body = relay.negative(relay.cast(i, "float32"))
    result = _convert(relay.Function([i], body))
    assert _calls(result) == ["cast", "negative", "cast"]
    assert result.body.type == relay.TensorType((3,), "float32")


def test_tuples_branches_and_functions() -> None:
    x, k = relay.var("x", MATRIX), relay.var("k", MATRIX)
    flag = relay.var("flag", relay.TensorType((), "bool"))
    inner = relay.Function([k], relay.exp(k))
    choice = relay.If(flag, relay.negative(x), relay.Call(inner, [relay.abs(x)]))
    joined = relay.concatenate([choice, relay.tanh(x)], axis=0)
    function = relay.Function([x, flag], relay.Tuple([joined, relay.split(x, 3, axis=1)[1]]))
    mod = InferType()(relay.IRModule.from_expr(function))
    result = ToFloat16()(mod)
    verify(result)
    first, second = run(result["main"], [X, np.bool_(False)])
    assert first.dtype == second.dtype == np.float32
    want = np.concatenate([np.exp(np.abs(X)), np.tanh(X)])
    np.testing.assert_allclose(first, want, rtol=5e-3, atol=1e-3)
    np.testing.assert_array_equal(second, X[:, 1:2].astype("float16").astype("float32"))


def test_functions_that_others_call_keep_their_types() -> None:
    x, k = relay.var("x", MATRIX), relay.var("k", MATRIX)
    twice = relay.GlobalVar("twice")
    main = relay.Function([x], twice(relay.negative(x)), MATRIX)
    mod = relay.IRModule(
        {relay.GlobalVar("main"): main, twice: relay.Function([k], relay.add(k, k), MATRIX)}
    )
    result = ToFloat16(keep_io=False)(InferType()(mod))
    verify(result)
    assert result["twice"].params[0].type == MATRIX
    got = run(result["main"], [X.astype("float16")], mod=result)
    np.testing.assert_array_equal(got, -2 * X.astype("float16"))


def test_weights_are_cast_when_folded() -> None:
    x, w = relay.var("x", MATRIX), relay.var("w", MATRIX)
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.add(x, w)))
    narrow = ToFloat16(weights=frozenset({"w"}))(mod)
    model = fold_weights(RelayModel(narrow, {"w": ArrayWeight(W)}))
    assert model.params["w"].dtype == "float16"
    np.testing.assert_array_equal(model.params["w"].array(), W.astype("float16"))


@pytest.mark.parametrize(("value", "lost"), [(65519.0, False), (65520.0, True), (np.inf, False)])
def test_overflow_is_found_in_weights_and_constants(value: float, lost: bool) -> None:
    x, w, v = (relay.var(name, MATRIX) for name in "xwv")
    limit = relay.Constant(np.array(value, "float32"), relay.Span("mask"))
    body = relay.minimum(relay.add(x, w), limit)
    body = relay.add(body, relay.sum(v, axis=0))
    mod = relay.IRModule.from_expr(relay.Function([x, w, v], body))
    weights = {"w": ArrayWeight(np.full((2, 3), value, "float32")), "v": ArrayWeight(W * 1e6)}
    with np.errstate(over="ignore"):
        assert bool(np.isinf(np.float16(np.float32(value))) and np.isfinite(value)) is lost
    found = float16_overflows(RelayModel(mod, weights))
    assert found == (["constant mask", "weight w"] if lost else [])


@pytest.mark.wide
def test_a_chain_of_100000() -> None:
    x = relay.var("x", MATRIX)
    body = x
    for _ in range(100_000):
        body = relay.abs(body)
    result = ToFloat16().transform(relay.Function([x], body))
    assert _calls(result).count("cast") == 2

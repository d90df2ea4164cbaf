"""Decomposition of what a target lacks."""

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import TypeInferenceError, Unsupported
from serde.relay.ir.registry import call
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import Decompose
from serde.relay.transform.decompose import decompose

X = np.random.default_rng(2).normal(size=(2, 3)).astype("float32")
MATRIX = relay.TensorType((2, 3))


def _calls(function: relay.Function) -> list[str]:
    return [node.op.name for node in post_order(function) if isinstance(node, relay.Call)]


def _silu_and_mish() -> relay.Function:
    x = relay.var("x", MATRIX)
    return relay.Function([x], call("serde.mish", call("serde.silu", x)))


def test_only_what_is_lacking_is_decomposed() -> None:
    mod, changed = Decompose(frozenset({"serde.mish"})).run(
        relay.IRModule.from_expr(_silu_and_mish())
    )
    verify(mod)
    assert changed
    assert _calls(mod["main"]) == ["sigmoid", "multiply", "serde.mish"]
    silu = X / (1 + np.exp(-X))
    want = silu * np.tanh(np.log1p(np.exp(silu)))
    np.testing.assert_allclose(run(mod["main"], [X]), want, rtol=1e-5)


def test_a_predicate_may_look_at_the_call() -> None:
    x = relay.var("x", MATRIX)
    body = call("serde.elu", call("serde.elu", x, alpha=1.0), alpha=0.5)
    result = Decompose(lambda node: node.attrs["alpha"] == 1.0).transform(relay.Function([x], body))
    assert _calls(result).count("serde.elu") == 1
    inner = np.where(X > 0, X, np.expm1(X))
    want = np.where(inner > 0, inner, 0.5 * np.expm1(inner))
    np.testing.assert_allclose(run(result, [X]), want, rtol=1e-5, atol=1e-6)


def test_a_target_that_has_all_changes_nothing() -> None:
    function = _silu_and_mish()
    assert Decompose(lambda _node: True).transform(function) is function


def test_what_comes_out_names_its_source() -> None:
    x = relay.var("x", MATRIX)
    node = call("serde.silu", relay.exp(x), span=relay.Span("act_1"))
    result = Decompose(frozenset()).transform(relay.Function([x], node))
    names = [n.span.source_name if n.span else "" for n in post_order(result.body)]
    assert names == ["", "", "act_1", "act_1"]


def test_an_operator_of_relay_has_no_decomposition() -> None:
    with pytest.raises(TypeInferenceError, match="no decomposition"):
        decompose(relay.exp(relay.var("x", MATRIX)))


def _thirds(data: relay.Expr, *, axis: int, indices_or_sections: int) -> relay.Expr:
    if indices_or_sections != 3:
        raise Unsupported("other than thirds")
    places = [relay.Constant(np.array([at])) for at in range(3)]
    return relay.Tuple([relay.take(data, place, axis) for place in places])


@pytest.mark.parametrize(("parts", "kept"), [(3, False), (1, True)])
def test_a_target_may_say_what_it_makes_of_an_operator(parts: int, kept: bool) -> None:
    x = relay.var("x", MATRIX)
    function = relay.Function([x], relay.split(x, parts, axis=1)[parts - 1])
    table = {"split": _thirds}
    result = Decompose(lambda node: node.op.name != "split", table.get).transform(function)
    assert ("split" in _calls(result)) == kept
    np.testing.assert_array_equal(run(result, [X]), np.split(X, parts, 1)[parts - 1])


@pytest.mark.wide
def test_10000_calls_in_a_row() -> None:
    x = relay.var("x", MATRIX)
    body = x
    for _ in range(10_000):
        body = call("serde.silu", body)
    result = Decompose(frozenset()).transform(relay.Function([x], body))
    assert _calls(result).count("sigmoid") == 10_000


def _suppression() -> relay.Function:
    boxes, scores = relay.var("boxes", shape=(1, 5, 4)), relay.var("scores", shape=(1, 2, 5))
    found = relay.vision.all_class_non_max_suppression(boxes, scores, 2, 0.5, 0.0)
    return relay.Function([boxes, scores], found.astuple())


def test_operators_that_are_made_of_each_other_end_with_what_the_target_has() -> None:
    plain = _suppression()
    assert Decompose(frozenset()).transform(plain) is plain
    selected = Decompose(lambda node: node.op.name != "vision.all_class_non_max_suppression")
    made = selected.transform(plain)
    assert "serde.non_max_suppression" in _calls(made)
    back = Decompose(lambda node: node.op.name != "serde.non_max_suppression").transform(made)
    assert "vision.all_class_non_max_suppression" in _calls(back)
    assert "serde.non_max_suppression" not in _calls(back)


@pytest.mark.parametrize("known", [frozenset(), frozenset({"serde.resize"})])
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_resized_integers_are_rounded_to_even(dtype: str, known: frozenset[str]) -> None:
    rows = np.array([[0, 1], [1, 2], [2, 3], [7, 6]], dtype)
    x = relay.var("x", shape=rows.shape, dtype=dtype)
    node = call("serde.resize", x, None, None, None, size=(3,), axes=(1,), method="linear")
    function = Decompose(known).transform(relay.Function([x], node))
    assert ("serde.resize" in _calls(function)) == bool(known)
    middle = np.rint(rows.mean(1)).astype(dtype)
    expected = np.stack([rows[:, 0], middle, rows[:, 1]], 1)
    np.testing.assert_array_equal(run(function, [rows]), expected)


def test_only_images_of_fixed_lengths_are_resized_by_parts() -> None:
    x = relay.var("x", shape=(relay.Any(), 2))
    node = call("serde.resize", x, None, None, None, size=(3,), axes=(1,), method="linear")
    with pytest.raises(TypeInferenceError, match="needs a fixed shape to resize, found"):
        decompose(node)

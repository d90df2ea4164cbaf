"""Closed expressions become weights."""

from pathlib import Path

import numpy as np

import serde.relay as relay
from serde.core.report import Report
from serde.core.weights import ArrayWeight, FileWeight, OpenFile, Weight
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.computed import ComputedWeight
from serde.relay.run.interpreter import run
from serde.relay.transform import fold_weights

RNG = np.random.default_rng(2)
X = RNG.normal(size=(2, 3)).astype("float32")
W = RNG.normal(size=(4, 3)).astype("float32")
S = RNG.uniform(1, 2, size=4).astype("float32")


def _model(function: relay.Function, **params: np.ndarray | Weight) -> RelayModel:
    weights = {
        name: value if isinstance(value, Weight) else ArrayWeight(value)
        for name, value in params.items()
    }
    meta = ModelMeta(inputs=("x",), description="kept")
    return RelayModel(relay.IRModule.from_expr(function), weights, meta)


def _run(model: RelayModel, *inputs: np.ndarray) -> np.ndarray:
    given = iter(inputs)
    values = [
        model.params[p.name_hint].array() if p.name_hint in model.params else next(given)
        for p in model.main.params
    ]
    return run(model.main, values)


def _calls(model: RelayModel) -> list[str]:
    return [n.op.name for n in post_order(model.main) if isinstance(n, relay.Call)]


def _vars() -> tuple[relay.Var, relay.Var, relay.Var]:
    return relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3)), relay.var("s", shape=(4,))


def test_a_scaled_weight_takes_the_name_of_the_weight() -> None:
    x, w, s = _vars()
    scaled = relay.multiply(w, relay.expand_dims(relay.sqrt(s), axis=1))
    model = _model(relay.Function([x, w, s], relay.add(x, relay.sum(scaled, axis=0))), w=W, s=S)
    result = fold_weights(model)
    verify(result.mod)
    assert _calls(result) == ["add"]
    assert [p.name_hint for p in result.main.params] == ["x", "w"]
    assert list(result.params) == ["w"]
    assert result.meta is model.meta
    want = X + (W * np.sqrt(S)[:, None]).sum(0)
    np.testing.assert_allclose(_run(result, X), want, rtol=1e-5)


def test_a_weight_used_elsewhere_keeps_its_name() -> None:
    x, w, s = _vars()
    negated = relay.transpose(relay.negative(w), axes=(1, 0))
    product = relay.multiply(relay.sum(x), relay.sum(negated))
    both = relay.Tuple([product, relay.multiply(relay.expand_dims(relay.sum(x), 0), s), w])
    result = fold_weights(_model(relay.Function([x, w, s], both), w=W, s=S))
    assert [p.name_hint for p in result.main.params] == ["x", "w", "w_folded", "s"]
    assert sorted(result.params) == ["s", "w", "w_folded"]


def test_two_expressions_of_one_weight_get_two_names() -> None:
    x, w, _ = _vars()
    left = relay.add(x, relay.max(w, axis=0))
    right = relay.add(left, relay.min(w, axis=0))
    result = fold_weights(_model(relay.Function([x, w], right), w=W))
    names = [p.name_hint for p in result.main.params]
    assert names == ["x", "w", "w_folded"]
    np.testing.assert_allclose(_run(result, X), X + W.max(0) + W.min(0), rtol=1e-6)


def test_constants_alone_become_constants_and_unused_weights_go() -> None:
    x, w, s = _vars()
    table = relay.exp(relay.const(np.arange(3, dtype="float32")))
    result = fold_weights(_model(relay.Function([x, w, s], relay.add(x, table)), w=W, s=S))
    assert [p.name_hint for p in result.main.params] == ["x"]
    assert dict(result.params) == {}
    np.testing.assert_allclose(_run(result, X), X + np.exp(np.arange(3.0)), rtol=1e-6)


def test_a_reshaped_weight_of_a_file_stays_a_range(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"head" + W.tobytes())
    opened = OpenFile.open(path)
    weight = FileWeight(opened.range(4, W.nbytes), (4, 3), "float32")
    opened.close()
    x, w, _ = _vars()
    view = relay.squeeze(relay.expand_dims(relay.reshape(w, newshape=(2, 6)), 0), axis=[0])
    body = relay.add(relay.sum(x), view)
    result = fold_weights(_model(relay.Function([x, w], body), w=weight))
    folded = result.params["w"]
    assert isinstance(folded, FileWeight)
    assert folded.source == weight.source
    assert folded.shape == (2, 6)
    np.testing.assert_array_equal(folded.array(), W.reshape(2, 6))


def test_fields_of_a_split_weight_are_weights() -> None:
    x, w, _ = _vars()
    parts = relay.split(w, 2, axis=0)
    body = relay.Tuple([relay.add(x, parts[1]), relay.add(x, parts[0])])
    result = fold_weights(_model(relay.Function([x, w], body), w=W))
    assert _calls(result) == ["add", "add"]
    first, second = _run(result, X)
    np.testing.assert_array_equal(first, X + W[2:])
    np.testing.assert_array_equal(second, X + W[:2])


def test_weights_of_a_tuple_operand_fold_one_by_one() -> None:
    x, w, _ = _vars()
    body = relay.concatenate([x, relay.negative(w)], axis=0)
    result = fold_weights(_model(relay.Function([x, w], body), w=W))
    assert _calls(result) == ["concatenate"]
    np.testing.assert_array_equal(_run(result, X), np.concatenate([X, -W]))


def test_an_output_that_is_a_weight_expression() -> None:
    x, w, _ = _vars()
    body = relay.Tuple([relay.exp(x), relay.negative(w)])
    result = fold_weights(_model(relay.Function([x, w], body), w=W))
    np.testing.assert_array_equal(_run(result, X)[1], -W)


def test_a_large_weight_evaluated_as_one_is_noted() -> None:
    large = np.zeros((2048, 2560), "float32")
    x, w = relay.var("x", shape=(2048,)), relay.var("w", shape=large.shape)
    body = relay.add(x, relay.transpose(w, axes=(1, 0)))
    report = Report()
    result = fold_weights(_model(relay.Function([x, w], body), w=large), report=report)
    assert isinstance(result.params["w"], ComputedWeight)
    assert report.notes == ["w: computed as one tensor of 20971520 bytes"]


def test_nothing_to_fold_is_the_model_itself() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(2, 3))
    model = _model(relay.Function([x, w], relay.add(x, w)), w=W[:2])
    assert fold_weights(model) is model


def test_folding_twice_is_folding_once() -> None:
    x, w, s = _vars()
    scaled = relay.multiply(w, relay.expand_dims(s, axis=1))
    model = _model(relay.Function([x, w, s], relay.add(x, relay.sum(scaled, axis=0))), w=W, s=S)
    once = fold_weights(model)
    assert fold_weights(once) is once


def test_what_grows_out_of_proportion_stays_in_the_graph() -> None:
    x, w = relay.var("x", shape=(1,)), relay.var("w", shape=(4,))
    total = relay.sum(relay.tile(relay.exp(w), reps=(100_000_000,)))
    model = fold_weights(_model(relay.Function([x, w], relay.add(x, total)), w=S))
    names = [n.op.name for n in post_order(model.main) if isinstance(n, relay.Call)]
    assert names == ["tile", "sum", "add"]
    assert model.params["w"].nbytes == S.nbytes
    small = relay.Function([x, w], relay.add(x, relay.sum(relay.tile(w, reps=(1000,)))))
    found = fold_weights(_model(small, w=S))
    expected = np.tile(S.astype("float64"), 1000).sum()
    np.testing.assert_allclose(_run(found, np.zeros(1, "float32")), [expected], rtol=1e-5)
    assert [n.op.name for n in post_order(found.main) if isinstance(n, relay.Call)] == ["add"]


def test_a_weight_spread_over_a_length_of_an_input_stays() -> None:
    x = relay.var("x", shape=("n", 4))
    s = relay.var("s", shape=(4,))
    spread = relay.broadcast_to(s, (relay.symbol("n"), 4))
    model = _model(relay.Function([x, s], relay.add(x, spread)), s=S)
    result = fold_weights(model)
    assert _calls(result) == ["broadcast_to", "add"]
    data = RNG.normal(size=(3, 4)).astype("float32")
    np.testing.assert_array_equal(_run(result, data), data + S)


def test_fields_of_a_tuple_that_is_closed_itself_are_no_weights() -> None:
    """What is packed from parts is one weight; the parts are none, and keep no name from it."""
    x, w, s = _vars()
    parts = relay.split(w, 2, axis=0)
    packed = relay.concatenate([parts[1], parts[0]], axis=0)
    row = relay.stack([relay.sum(packed, axis=1), relay.negative(s)], axis=0)
    body = relay.Tuple([relay.add(x, relay.max(packed, axis=0)), row])
    result = fold_weights(_model(relay.Function([x, w, s], body), w=W, s=S))
    assert sorted(result.params) == ["s", "w"]
    assert {name: weight.shape for name, weight in result.params.items()} == {
        "s": (2, 4),
        "w": (3,),
    }
    first, second = _run(result, X)
    turned = np.concatenate([W[2:], W[:2]])
    np.testing.assert_array_equal(first, X + turned.max(0))
    np.testing.assert_allclose(second, np.stack([turned.sum(1), -S]), rtol=1e-6)


def test_a_name_gets_one_suffix_however_often_it_is_folded() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w_folded2_folded", shape=(4, 3))
    left = relay.add(x, relay.max(w, axis=0))
    body = relay.Tuple([relay.add(left, relay.min(w, axis=0)), w])
    result = fold_weights(_model(relay.Function([x, w], body), w_folded2_folded=W))
    assert list(result.params) == ["w_folded2_folded", "w_folded", "w_folded2"]


def test_the_parts_of_a_weight_give_its_name_back() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(6, 3))
    values = np.concatenate([W, W[:2]])
    first, second = relay.split(w, [2], axis=0)
    apart = relay.Tuple([relay.add(x, first), relay.concatenate([x, second], axis=0)])
    result = fold_weights(_model(relay.Function([x, w], apart), w=values))
    assert {name: each.shape for name, each in result.params.items()} == {
        "w": (4, 3),
        "w_folded": (2, 3),
    }
    parts = [p for p in result.main.params if p.name_hint != "x"]
    named = {p.name_hint: p for p in parts}
    whole = relay.concatenate([named["w_folded"], named["w"]], axis=0)
    function = relay.Function([x, *parts], relay.concatenate([x, whole], axis=0))
    again = fold_weights(_model(function, **result.params))
    assert list(again.params) == ["w"]
    np.testing.assert_array_equal(again.params["w"].array(), values)


def test_equal_expressions_are_one_weight() -> None:
    x, w, _ = _vars()
    left = relay.add(x, relay.max(w, axis=0))
    body = relay.multiply(left, relay.max(w, axis=0))
    result = fold_weights(_model(relay.Function([x, w], body), w=W))
    assert list(result.params) == ["w"]
    np.testing.assert_array_equal(_run(result, X), (X + W.max(0)) * W.max(0))


TABLE = RNG.normal(size=(200, 100)).astype("float32")


def _tied() -> RelayModel:
    """An embedding whose table is the last layer's matrix, too, by its transpose."""
    ids, table = relay.var("ids", shape=(5,), dtype="int32"), relay.var("table", shape=(200, 100))
    rows = relay.take(table, ids, axis=0)
    scores = relay.nn.matmul(rows, relay.transpose(table, axes=(1, 0)))
    return _model(relay.Function([ids, table], scores), table=TABLE)


def test_a_tied_weight_is_stored_once() -> None:
    ids = np.array([3, 1, 4, 1, 5], "int32")
    result = fold_weights(_tied())
    assert list(result.params) == ["table"]
    np.testing.assert_allclose(_run(result, ids), TABLE[ids] @ TABLE.T, rtol=1e-4, atol=1e-4)
    assert list(fold_weights(_tied(), share=False).params) == ["table", "table_folded"]


def test_a_weight_in_two_forms_is_stored_once() -> None:
    x, w = relay.var("x", shape=(20000,)), relay.var("table", shape=(200, 100))
    turned = relay.reshape(relay.transpose(w, axes=(1, 0)), newshape=(20000,))
    flat = relay.reshape(w, newshape=(20000,))
    body = relay.add(relay.multiply(x, turned), flat)
    result = fold_weights(_model(relay.Function([x, w], body), table=TABLE))
    assert list(result.params) == ["table"]
    data = RNG.normal(size=20000).astype("float32")
    np.testing.assert_array_equal(_run(result, data), data * TABLE.T.ravel() + TABLE.ravel())


def test_what_has_a_suffix_keeps_it_from_what_gets_one() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    v = relay.var("w_folded", shape=(3,))
    least = relay.add(relay.add(x, relay.max(w, axis=0)), relay.min(w, axis=0))
    body = relay.multiply(least, relay.negative(v))
    result = fold_weights(_model(relay.Function([x, w, v], body), w=W, w_folded=W[0]))
    assert sorted(result.params) == ["w", "w_folded", "w_folded2"]
    np.testing.assert_array_equal(result.params["w_folded"].array(), -W[0])


def test_weights_of_a_packing_operator_stay_apart() -> None:
    x, w, s = _vars()
    parts = [relay.reshape(relay.negative(w), newshape=(-1,)), relay.reshape(s, newshape=(-1,))]
    packed = relay.concatenate(parts, axis=0)
    some = relay.strided_slice(packed, [0], [3], [1])
    body = relay.Tuple([relay.cumsum(packed), relay.add(x, some)])
    result = fold_weights(_model(relay.Function([x, w, s], body), w=W, s=S), packing=("cumsum",))
    assert {name: weight.shape for name, weight in result.params.items()} == {
        "w": (4, 3),
        "s": (4,),
    }
    first, second = _run(result, X)
    np.testing.assert_allclose(first, np.cumsum(np.concatenate([-W.ravel(), S])), rtol=1e-5)
    np.testing.assert_array_equal(second, X - W[0])


def test_bytes_that_are_summed_in_float64_stay_bytes() -> None:
    x, w = (
        relay.var("x", shape=(2, 300), dtype="float64"),
        relay.var("w", shape=(300, 300), dtype="int8"),
    )
    body = relay.nn.dense(x, relay.cast(w, "float64"))
    weight = RNG.integers(-128, 128, (300, 300)).astype("int8")
    result = fold_weights(_model(relay.Function([x, w], body), w=weight))
    assert _calls(result) == ["cast", "nn.dense"]
    assert result.params["w"].dtype == "int8"
    data = RNG.normal(size=(2, 300))
    np.testing.assert_allclose(_run(result, data), data @ weight.T.astype("float64"))

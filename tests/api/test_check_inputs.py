"""Seeded inputs of a check, and what limits them, against values written out here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.checking.inputs import input_ranges, random_inputs, resolve_dims
from serde.errors import OptionError
from serde.relay.expr import Expr, Var
from serde.weights import ArrayWeight


def model_of(body: Expr, *params: Var, weights: Mapping[str, Any] | None = None) -> Any:
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(params, body)))
    held = {name: ArrayWeight(value) for name, value in (weights or {}).items()}
    return relay.RelayModel(mod, held, relay.ModelMeta(outputs=("out",)))


def identity_model(*shape: int | str, dtype: str = "float32") -> Any:
    x = relay.var("x", shape=shape, dtype=dtype)
    return model_of(relay.copy(x), x)


def test_dynamic_dimensions_have_lengths() -> None:
    model = identity_model("N", 3, "H", "W")
    assert resolve_dims(model) == {"N": 2, "H": 64, "W": 64}
    assert resolve_dims(model, {"H": 5, "N": 1}) == {"N": 1, "H": 5, "W": 64}
    values = random_inputs(model, seed=0, lengths={"N": 1, "H": 5, "W": 6})
    assert values["x"].shape == (1, 3, 5, 6)


@pytest.mark.parametrize(
    ("dims", "message"),
    [({"Q": 3}, r"no dynamic dimension is called Q \(there are: N\)"), ({"N": 0}, "N: expected 1")],
)
def test_lengths_that_cannot_be(dims: dict[str, int], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        resolve_dims(identity_model("N"), dims)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "bool"])
def test_inputs_have_the_declared_dtype_and_follow_the_seed(dtype: str) -> None:
    model = identity_model(50, dtype=dtype)
    first, again, other = (
        random_inputs(model, seed=seed, lengths={})["x"] for seed in ((0, 0), (0, 0), (0, 1))
    )
    assert first.dtype == dtype
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_inputs_for_float16_are_values_that_it_holds() -> None:
    value = random_inputs(identity_model(100), seed=0, lengths={}, float16=True)["x"]
    assert value.dtype == np.float32
    np.testing.assert_array_equal(value, value.astype("float16").astype("float32"))


@pytest.mark.parametrize(("space", "whole"), [("BGR", True), ("GRAYSCALE_FLOAT16", False)])
def test_an_image_gets_pixels(space: str, whole: bool) -> None:
    model = identity_model(1, 3, 20, 20)
    model = model.evolve(meta=replace(model.meta, extra={"x.color_space": space}))
    value = random_inputs(model, seed=0, lengths={})["x"]
    assert value.dtype == np.float32
    assert bool(np.all(value == value.round())) == whole
    assert (value.max() > 200) == whole


def take_of(index: Expr) -> Expr:
    table = relay.var("table", shape=(7, 4))
    return relay.take(table, index, axis=0)


def ranges_of(body: Expr, *params: Var) -> dict[str, tuple[int, int]]:
    return input_ranges(model_of(body, *params), {"T": 9})


def test_an_index_stays_within_its_table() -> None:
    i = relay.var("i", shape=(500,), dtype="int32")
    table = relay.var("table", shape=(7, 4))
    model = model_of(
        relay.take(table, i, axis=0), i, table, weights={"table": np.zeros((7, 4), "float32")}
    )
    drawn = random_inputs(model, seed=0, lengths={})["i"]
    assert set(drawn.tolist()) == set(range(7))


def test_a_float_that_becomes_an_index_is_a_whole_number() -> None:
    i = relay.var("i", shape=(4, 100))
    table = relay.var("table", shape=(7, 4))
    index = relay.reshape(relay.cast(i, "int32"), (-1,))
    model = model_of(
        relay.take(table, index, axis=1), i, table, weights={"table": np.zeros((7, 4), "float32")}
    )
    drawn = random_inputs(model, seed=0, lengths={})["i"]
    assert drawn.dtype == np.float32
    assert set(drawn.ravel().tolist()) == {0.0, 1.0, 2.0, 3.0}


def test_the_narrowest_consumer_decides() -> None:
    i = relay.var("i", shape=(5,), dtype="int32")
    big, small = relay.var("big", shape=(100,)), relay.var("small", shape=(3,))
    body = relay.Tuple([relay.take(big, i), relay.take(small, i)])
    assert ranges_of(body, i, big, small) == {"i": (0, 2)}


def test_an_index_less_one_may_be_greater() -> None:
    i = relay.var("i", shape=(5,), dtype="int32")
    table = relay.var("table", shape=(7,))
    shifted = relay.subtract(i, relay.const(1, "int32"))
    assert ranges_of(relay.take(table, shifted), i, table) == {"i": (1, 7)}


def test_a_pair_of_inputs_is_followed_through_a_tuple() -> None:
    i, j = (relay.var(name, shape=(2,), dtype="int32") for name in "ij")
    table = relay.var("table", shape=(7,))
    index = relay.concatenate([i, j], 0)
    assert ranges_of(relay.take(table, index), i, j, table) == {"i": (0, 6), "j": (0, 6)}


def test_a_let_is_followed() -> None:
    i, v = relay.var("i", shape=(2,), dtype="int32"), relay.var("v", shape=(2,), dtype="int32")
    table = relay.var("table", shape=(7,))
    body = relay.Let(v, relay.copy(i), relay.take(table, v))
    assert ranges_of(body, i, table) == {"i": (0, 6)}


def test_one_hot_needs_less_than_its_depth() -> None:
    i = relay.var("i", shape=(5,), dtype="int32")
    on, off = relay.const(1.0), relay.const(0.0)
    body = relay.one_hot(i, on, off, depth=11, axis=-1, dtype="float32")
    assert ranges_of(body, i) == {"i": (0, 10)}


def test_lengths_of_sequences_are_at_least_one() -> None:
    data, n = relay.var("data", shape=("T", 2, 3)), relay.var("n", shape=(2,))
    assert ranges_of(relay.sequence_mask(data, n, 0.0, 0), data, n) == {"n": (1, 9)}


def test_lengths_of_reversed_sequences() -> None:
    data = relay.var("data", shape=(6, 2))
    n = relay.var("n", shape=(2,), dtype="int32")
    assert ranges_of(relay.reverse_sequence(data, n, 0, 1), data, n) == {"n": (1, 6)}


def test_coordinates_stay_within_the_shortest_axis_they_count() -> None:
    data, i = relay.var("data", shape=(6, 4, 9)), relay.var("i", shape=(2, 5), dtype="int64")
    assert ranges_of(relay.gather_nd(data, i), data, i) == {"i": (0, 3)}


def test_an_input_that_is_no_index_has_no_range() -> None:
    x = relay.var("x", shape=(5,))
    assert ranges_of(relay.tanh(x), x) == {}

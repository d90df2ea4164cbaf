"""Seeded inputs of a check, and what limits them, against values written out here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.samples import all_samples, build

import serde.relay as relay
from serde.checking import constraints
from serde.checking.inputs import input_constraints, random_inputs
from serde.checking.sizes import resolve_dims
from serde.core.weights import ArrayWeight
from serde.engine.interpreter import RelayEngine
from serde.errors import OptionError
from serde.relay.ir.expr import Expr, Function, If, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import OpDef, Sample, all_ops, call
from serde.relay.ir.types import SequenceType


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
    [
        ({"Q": 3}, r"no dynamic dimension is called Q \(there are: N\)"),
        ({"N": 0}, "N: expected 1"),
        ({"N": 2.5}, "N: expected 1 or more, found 2.5"),
        ({"N": "4"}, "N: expected 1 or more, found '4'"),
    ],
)
def test_lengths_that_cannot_be(dims: dict[str, Any], message: str) -> None:
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
    return input_constraints(model_of(body, *params), {"T": 9}).ranges


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


# Ranges through a graph. Each case is an index made of one input, for a table of 7 rows.


def integers(value: Any) -> Expr:
    return relay.const(np.array(value), "int64")


def in_another_function(i: Expr) -> Expr:
    p = relay.var("p", shape=(5,), dtype="int64")
    return relay.Call(Function([p], relay.add(p, integers(1))), [i])


def in_branches(i: Expr) -> Expr:
    choice = If(relay.const(True), relay.add(i, integers(2)), relay.copy(i))
    choice.type = i.type
    return choice


def negative_from_the_end(i: Expr) -> Expr:
    return relay.where(relay.less(i, integers(0)), relay.add(i, integers(7)), i)


def of_a_length(i: Expr) -> Expr:
    """Counted from the end of an axis whose length the graph itself asks for."""
    length = relay.take(relay.shape_of(relay.var("t", shape=(7, 4)), "int64"), integers(0))
    return relay.where(relay.less(i, integers(0)), relay.add(i, length), i)


OPEN = 2**62


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        (lambda i: i, (0, 6)),
        (lambda i: relay.add(i, integers(2)), (-2, 4)),
        (lambda i: relay.add(integers([0, 1, 2, 3, 4]), i), (0, 2)),
        (lambda i: relay.subtract(integers(6), i), (0, 6)),
        (lambda i: relay.multiply(i, integers(2)), (0, 3)),
        (lambda i: relay.multiply(integers(-1), i), (-6, 0)),
        (lambda i: relay.negative(i), (-6, 0)),
        (lambda i: relay.abs(i), (-6, 6)),
        (lambda i: relay.floor_divide(i, integers(2)), (0, 13)),
        (lambda i: relay.floor_mod(i, integers(7)), (0, OPEN)),
        (lambda i: relay.minimum(i, integers(6)), (0, OPEN)),
        (lambda i: relay.maximum(integers(0), i), (-OPEN, 6)),
        (lambda i: relay.clip(i, 0, 100), (-OPEN, 6)),
        (lambda i: relay.clip(i, -3, 4), (0, OPEN)),
        (lambda i: relay.maximum(relay.clip(i, -3, 9), integers(2)), (-OPEN, 6)),
        (lambda i: relay.where(relay.greater(i, integers(3)), integers(0), i), (0, 6)),
        (negative_from_the_end, (-7, 6)),
        (of_a_length, (-7, 6)),
        (in_another_function, (-1, 5)),
        (in_branches, (0, 4)),
        (lambda i: relay.cast(relay.cast(i, "float32"), "int32"), (0, 6)),
        (lambda i: relay.max(relay.tile(i, (2,)), axis=0, keepdims=True), (0, 6)),
        (lambda i: relay.gather(i, 0, integers([0, 1])), (0, 6)),
        (lambda i: TupleGetItem(Tuple([integers(0), i]), 1), (0, 6)),
        (lambda i: relay.split(i, 5)[3], (0, 6)),
        (lambda i: relay.full_like(integers([1, 2]), relay.take(i, integers(0))), (0, 6)),
    ],
)
def test_a_range_goes_back_through_a_graph(index: Any, wanted: tuple[int, int]) -> None:
    i, table = relay.var("i", shape=(5,), dtype="int64"), relay.var("t", shape=(7, 4))
    assert ranges_of(relay.take(table, index(i), axis=0), i, table)["i"] == wanted


def test_of_a_sum_of_two_inputs_each_has_one_half() -> None:
    i, j = (relay.var(name, shape=(2,), dtype="int32") for name in "ij")
    table = relay.var("table", shape=(7,))
    assert ranges_of(relay.take(table, relay.add(i, j)), i, j, table) == {"i": (0, 3), "j": (0, 3)}


@pytest.mark.parametrize(
    ("name", "wanted"), [("serde.take", (-7, 6)), ("gather", (-7, 6)), ("take", (0, 6))]
)
def test_negative_indices_are_none_to_draw(name: str, wanted: tuple[int, int]) -> None:
    """They may be, where the operator counts from the end, but in use no index is negative."""
    i, table = relay.var("i", shape=(500,), dtype="int64"), relay.var("table", shape=(7,))
    model = model_of(call(name, table, i, axis=0), i, table, weights={"table": np.zeros(7, "f")})
    assert input_constraints(model, {}).ranges == {"i": wanted}
    assert set(random_inputs(model, seed=0, lengths={})["i"].tolist()) == set(range(7))


def test_a_table_in_the_body_of_a_loop() -> None:
    number, held = relay.var("n", shape=(), dtype="int64"), relay.var("held", shape=(2,))
    row, rows = relay.var("row", shape=(), dtype="int64"), relay.var("rows", shape=(7, 2))
    body = Function(
        [number, row, held, rows],
        Tuple([relay.const(True), row, relay.add(held, relay.take(rows, row, axis=0))]),
    )
    i, table = relay.var("i", shape=(), dtype="int64"), relay.var("table", shape=(7, 2))
    start = relay.const(np.zeros(2, "float32"))
    loop = call("serde.loop", integers(3), relay.const(True), [i, start], [table], body=body)
    assert ranges_of(loop, i, table) == {"i": (0, 6)}


def test_a_loop_that_counts_up_ends() -> None:
    n, p = (relay.var(name, shape=(), dtype="int64") for name in "np")
    body = Function([n, p], Tuple([relay.const(True), relay.add(p, integers(1))]))
    i, table = relay.var("i", shape=(), dtype="int64"), relay.var("table", shape=(700,))
    loop = call("serde.loop", integers(3), relay.const(True), [i], [], body=body)
    found = ranges_of(relay.take(table, TupleGetItem(loop, 0)), i, table)
    assert 600 < found["i"][1] <= 699


def test_a_global_function_is_looked_into() -> None:
    p, rows = relay.var("p", shape=(3,), dtype="int64"), relay.var("rows", shape=(7, 2))
    lookup = relay.GlobalVar("lookup")
    i, table = relay.var("i", shape=(3,), dtype="int64"), relay.var("table", shape=(7, 2))
    functions = {
        lookup: Function([p, rows], relay.take(rows, p, axis=0)),
        "main": Function([i, table], relay.Call(lookup, [i, table])),
    }
    mod = relay.IRModule(functions)
    model = relay.RelayModel(relay.transform.InferType()(mod), {})
    assert input_constraints(model, {}).ranges == {"i": (0, 6)}


def test_an_integer_divisor_is_not_zero() -> None:
    i, j = (relay.var(name, shape=(500,), dtype="int32") for name in "ij")
    model = model_of(relay.floor_divide(i, j), i, j)
    assert random_inputs(model, seed=0, lengths={})["j"].min() == 1


def attention_mask(mask: Expr) -> Expr:
    hidden = relay.subtract(relay.const(1.0), relay.cast(mask, "float32"))
    return relay.multiply(hidden, relay.const(-10000.0))


@pytest.mark.parametrize(
    "use",
    [
        attention_mask,
        lambda mask: relay.where(relay.cast(mask, "bool"), relay.const(1.0), relay.const(2.0)),
        lambda mask: relay.where(
            relay.equal(mask, integers(0)), relay.const(-np.inf), relay.const(0.0)
        ),
    ],
)
def test_a_mask_has_ones_and_zeros_and_hides_no_row(use: Any) -> None:
    mask = relay.var("mask", shape=(20, 30), dtype="int64")
    drawn = random_inputs(model_of(use(mask), mask), seed=0, lengths={})["mask"]
    assert set(drawn.ravel().tolist()) == {0, 1}
    assert drawn.max(axis=1).min() == 1


def test_tokens_that_are_compared_with_padding_are_still_tokens() -> None:
    i, table = relay.var("i", shape=(500,), dtype="int64"), relay.var("t", shape=(7,))
    body = Tuple([relay.take(table, i), relay.equal(i, integers(1))])
    model = model_of(body, i, table, weights={"t": np.zeros(7, "float32")})
    assert set(random_inputs(model, seed=0, lengths={})["i"].tolist()) == set(range(7))


def test_a_length_is_among_the_positions_that_it_is_compared_with() -> None:
    n = relay.var("n", shape=(3, 1))
    positions = relay.const(np.arange(9, dtype="float32"))
    assert ranges_of(relay.less(positions, n), n) == {"n": (1, 9)}


def test_a_float_that_is_compared_with_zero_is_no_mask() -> None:
    x = relay.var("x", shape=(50,))
    model = model_of(relay.where(relay.greater(x, relay.const(0.0)), x, relay.const(0.0)), x)
    assert len(set(random_inputs(model, seed=0, lengths={})["x"].tolist())) == 50


def apart(x: Expr, rows: Expr) -> Expr:
    """Return aligned regions, the number of whose image is cut off."""
    image, corners = relay.split(rows, [1], axis=1)
    images = relay.cast(relay.squeeze(image, [1]), "int32")
    return call("serde.roi_align", x, corners, images, pooled_size=(2, 2), spatial_scale=0.5)


def pooled(name: str) -> Any:
    return lambda x, rows: call(name, x, rows, pooled_size=(2, 2), spatial_scale=0.5)


def at_least(rows: Expr) -> Expr:
    """Return regions as MXNet has them, those of no image as of the first."""
    return relay.maximum(rows, relay.const(np.array([0, *[-np.inf] * 4], "float32")))


@pytest.mark.parametrize("rows", [lambda rows: rows, at_least], ids=["plain", "bounded"])
@pytest.mark.parametrize(
    "pool", [pooled("vision.roi_pool"), pooled("vision.roi_align"), apart],
    ids=["pool", "align", "apart"],
)  # fmt: skip
def test_regions_lie_within_the_images_there_are(pool: Any, rows: Any) -> None:
    x, rois = relay.var("x", shape=(3, 4, 16, 20)), relay.var("rois", shape=(200, 5))
    model = model_of(pool(x, rows(rois)), x, rois)
    drawn = random_inputs(model, seed=0, lengths={})["rois"]
    assert set(drawn[:, 0].tolist()) == {0.0, 1.0, 2.0}
    assert drawn[:, 1:].min() >= 0
    assert drawn[:, [1, 3]].max() <= 40
    assert drawn[:, [2, 4]].max() <= 32
    assert np.all(drawn[:, 3:] >= drawn[:, 1:3])


def test_thresholds_are_between_0_and_1() -> None:
    boxes, scores = relay.var("boxes", shape=(1, 9, 4)), relay.var("scores", shape=(1, 2, 9))
    limit = relay.var("limit", shape=(), dtype="int64")
    overlap, least = (relay.var(name, shape=(50,)) for name in ("overlap", "least"))
    taken = [relay.take(each, relay.const(0, "int64"), axis=0) for each in (overlap, least)]
    found = call("vision.all_class_non_max_suppression", boxes, scores, limit, *taken)
    model = model_of(TupleGetItem(found, 0), boxes, scores, limit, overlap, least)
    drawn = random_inputs(model, seed=0, lengths={})
    for name in ("overlap", "least"):
        assert 0 <= drawn[name].min() < drawn[name].max() <= 1
    assert 1 <= drawn["limit"] <= 8


@pytest.mark.parametrize(
    ("dtype", "narrow"), [("int32", "int8"), ("float32", "float16"), ("float64", "float32")]
)
def test_what_an_engine_holds_less_of_is_drawn_so(dtype: str, narrow: str) -> None:
    """Values are such as the narrowest of the dtypes that the models declare holds exactly."""
    model = identity_model(500, dtype=dtype)
    drawn = random_inputs(model, seed=0, lengths={}, dtypes={"x": [narrow]})["x"]
    assert drawn.dtype == dtype
    assert len(np.unique(drawn)) > 50
    np.testing.assert_array_equal(drawn, drawn.astype(narrow).astype(dtype))


# Every operator.


def test_places_of_unpooling_lie_within_the_result() -> None:
    x, i = relay.var("x", shape=(2, 3, 2, 2)), relay.var("i", shape=(2, 3, 2, 2), dtype="int64")
    body = call("serde.max_unpool", x, i, pool_size=(2, 2), strides=(2, 2))
    assert ranges_of(body, x, i) == {"i": (0, 2 * 3 * 4 * 4 - 1)}


@pytest.mark.parametrize(("name", "most"), [("at", 1), ("erase", 1), ("insert", 2)])
def test_positions_lie_within_the_sequence(name: str, most: int) -> None:
    a, b = relay.var("a", shape=(2,)), relay.var("b", shape=(2,))
    position = relay.var("position", shape=(), dtype="int64")
    sequence = call("serde.sequence_construct", Tuple([a, b]))
    operands = (sequence, a, position) if name == "insert" else (sequence, position)
    body = call(f"serde.sequence_{name}", *operands)
    assert ranges_of(body, a, b, position) == {"position": (0, most)}


@pytest.mark.parametrize(("mode", "most"), [("end", (5, 9)), ("size", (1, 5))])
def test_a_slice_is_neither_empty_nor_all(mode: str, most: tuple[int, int]) -> None:
    x = relay.var("x", shape=(20, 9))
    begin, end = (relay.var(name, shape=(1,), dtype="int64") for name in ("begin", "end"))
    steps = relay.const(np.array([1]))
    body = call("dyn.strided_slice", x, begin, end, steps, axes=(1,), slice_mode=mode)
    assert ranges_of(body, x, begin, end) == {"begin": (0, 4), "end": most}


@pytest.mark.parametrize(
    ("step", "wanted"),
    [(None, {"start": (0, 8), "stop": (9, 64), "step": (1, 4)}),
     (1, {"start": (0, 8), "stop": (9, 64)}), (-1, {"start": (9, 64), "stop": (0, 8)})],
)  # fmt: skip
def test_a_range_of_numbers_is_not_empty(
    step: int | None, wanted: dict[str, tuple[int, int]]
) -> None:
    params = [relay.var(name, shape=(), dtype="int64") for name in wanted]
    given = params if step is None else [*params, relay.const(step, "int64")]
    assert ranges_of(relay.arange(*given, dtype="int64"), *params) == wanted


def test_a_choice_of_rows_takes_some() -> None:
    x, chosen = relay.var("x", shape=(6, 3)), relay.var("chosen", shape=(6,), dtype="bool")
    model = model_of(call("serde.compress", x, chosen, axis=0), x, chosen)
    for seed in range(100):
        assert random_inputs(model, seed=seed, lengths={})["chosen"].any()


def test_powers_of_integers_stay_within_their_range() -> None:
    x, p = (relay.var(name, shape=(9,), dtype="int32") for name in "xp")
    assert ranges_of(relay.power(x, p), x, p) == {"x": (0, 7), "p": (0, 7)}
    assert ranges_of(relay.power(x, relay.const(2)), x) == {}


@pytest.mark.parametrize("names", [constraints._BINARY_INVERSES, constraints._UNARY_INVERSES])
def test_tables_name_operators_that_exist(names: Any) -> None:
    assert set(names) <= set(all_ops())


GIVEN_ONLY = {
    "dyn.broadcast_to": "a shape must be one that the data can have",
    "dyn.expand_dims": "an axis must be one of the result",
    "dyn.reshape": "a shape must hold as many elements as the data",
    "dyn.sparse_to_dense": "indices are distinct and in order",
    "dyn.squeeze": "an axis must be one of length 1",
    "sparse_reshape": "a shape must hold as many elements as the other",
}
"""Operators with operands that no range describes: who has such an input gives it."""


@pytest.mark.parametrize(("definition", "given"), all_samples(one_first=True))
def test_every_operator_takes_what_is_drawn_for_its_operands(
    definition: OpDef, given: Sample
) -> None:
    built = build(definition, given)
    if any(isinstance(variable.type, SequenceType) for variable in built.variables):
        pytest.skip("sequences are not drawn")
    names = tuple(variable.name_hint for variable in built.variables)
    model = relay.RelayModel(
        relay.IRModule({"main": built.function}), {}, relay.ModelMeta(inputs=names)
    )
    drawn = random_inputs(model, seed=0, lengths={})
    if definition.name in GIVEN_ONLY:
        return
    RelayEngine(model).run(drawn)

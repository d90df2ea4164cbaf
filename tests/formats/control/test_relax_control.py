"""Loops, scans, conditionals and recurrent layers in TVM."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

from support.relax_run import compile_model, run_function, write_function

import serde
import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relay.ir.dims import Any

_TRUE = relay.const(True, "bool")


def _decay(*, asks: bool = False) -> relay.Function:
    """A body that halves a state, adds the turn's number and stacks the sum; it stops at 1000."""
    number, x = relay.var("i", shape=(), dtype="int64"), relay.var("x", shape=(3,))
    value = relay.add(relay.multiply(x, relay.const(0.5)), relay.cast(number, "float32"))
    total = relay.sum(value)
    going = relay.less(total, relay.const(1000.0)) if asks else _TRUE
    return relay.Function([number, x], relay.Tuple([going, value, total]))


def _expect_decay(x: np.ndarray, count: int | None, *, asks: bool) -> tuple[np.ndarray, np.ndarray]:
    rows, number = [], 0
    while count is None or number < count:
        x = x * np.float32(0.5) + np.float32(number)
        rows.append(x.sum())
        number += 1
        if asks and rows[-1] >= 1000:
            break
    return x, np.array(rows, np.float32)


def _loop(count: int | None, *, given: bool = False, asks: bool = False) -> relay.Function:
    x, limit = relay.var("x", shape=(3,)), relay.var("n", shape=(), dtype="int64")
    bound = limit if given else None if count is None else relay.const(count, "int64")
    result = relay.serde.loop(bound, None, [x], body=_decay(asks=asks))
    return relay.Function([x, limit] if given else [x], result.astuple())


def _check_decay(count: int | None, *, given: bool = False, asks: bool = False) -> None:
    x = np.array([1, -2, 5], np.float32)
    arrays = [x, np.array(count)] if given else [x]
    state, stack = run_function(_loop(count, given=given, asks=asks), *arrays)
    expected = _expect_decay(x, count, asks=asks)
    np.testing.assert_allclose(state, expected[0], rtol=1e-5)
    np.testing.assert_allclose(stack, expected[1], rtol=1e-5)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("count", "given", "asks"),
    [
        (11, False, False),
        pytest.param(5, True, False, marks=pytest.mark.wide),
        pytest.param(0, False, False, marks=pytest.mark.wide),
        pytest.param(1, False, False, marks=pytest.mark.wide),
        pytest.param(64, False, False, marks=pytest.mark.wide),
        pytest.param(20_000, False, False, marks=pytest.mark.wide),
        pytest.param(0, True, False, marks=pytest.mark.wide),
        pytest.param(1, True, False, marks=pytest.mark.wide),
        pytest.param(20_000, True, False, marks=pytest.mark.wide),
        pytest.param(50, False, True, marks=pytest.mark.wide),
        pytest.param(5000, False, True, marks=pytest.mark.wide),
        pytest.param(5000, True, True, marks=pytest.mark.wide),
        pytest.param(None, False, True, marks=pytest.mark.wide),
    ],
)
def test_loops_make_as_many_turns(count: int | None, given: bool, asks: bool) -> None:
    _check_decay(count, given=given, asks=asks)


def test_calls_lie_as_deep_as_the_count_has_digits() -> None:
    module = write_function(_loop(1_000_000)).module
    assert len(module.functions) < 25


@pytest.mark.parametrize(
    ("count", "given", "asks"),
    [
        (1000, False, False),
        pytest.param(11, False, False, marks=pytest.mark.wide),
        pytest.param(5, True, False, marks=pytest.mark.wide),
        pytest.param(0, True, False, marks=pytest.mark.wide),
        pytest.param(50, False, True, marks=pytest.mark.wide),
        pytest.param(9, True, True, marks=pytest.mark.wide),
        pytest.param(None, False, True, marks=pytest.mark.wide),
    ],
)
def test_functions_that_make_turns_are_read_as_loops(
    count: int | None, given: bool, asks: bool
) -> None:
    model = serde.to_relay(write_function(_loop(count, given=given, asks=asks)).module)
    text = model.mod.astext()
    assert "serde.loop" in text
    assert len(text.splitlines()) < 150
    x = np.array([1, -2, 5], np.float32)
    evaluate = relay.create_executor("graph", mod=model.mod).evaluate()
    state, stack = evaluate(*([x, np.array(count)] if given else [x]))
    expected = _expect_decay(x, count, asks=asks)
    np.testing.assert_allclose(np.asarray(state), expected[0], rtol=1e-5)
    np.testing.assert_allclose(np.asarray(stack), expected[1], rtol=1e-5)


@pytest.mark.wide
def test_a_loop_that_does_not_begin() -> None:
    x, going = relay.var("x", shape=(3,)), relay.var("going", shape=(), dtype="bool")
    result = relay.serde.loop(None, going, [x], body=_decay(asks=True))
    function = relay.Function([x, going], result.astuple())
    run = compile_model(write_function(function))
    x_value = np.array([1, 2, 3], np.float32)
    state, stack = run(x_value, np.array(False))
    np.testing.assert_array_equal(state, x_value)
    assert stack.shape == (0,)
    _, stack = run(x_value, np.array(True))
    assert stack.shape == _expect_decay(x_value, None, asks=True)[1].shape


@pytest.mark.wide
def test_states_and_stacks_of_lengths_that_change() -> None:
    number = relay.var("i", shape=(), dtype="int64")
    x = relay.Var("x", relay.TensorType((Any(), 2)))
    grown = relay.concatenate([x, relay.ones((1, 2), "float32")], axis=0)
    body = relay.Function([number, x], relay.Tuple([_TRUE, grown]))
    start, limit = relay.var("x", shape=("N", 2)), relay.var("n", shape=(), dtype="int64")
    for bound, params in ((limit, [start, limit]), (relay.const(5, "int64"), [start])):
        result = relay.serde.loop(bound, None, [start], body=body)
        given = [np.zeros((3, 2), np.float32), np.array(5)][: len(params)]
        (found,) = run_function(relay.Function(params, result.astuple()), *given)
        np.testing.assert_array_equal(found, np.concatenate([np.zeros((3, 2)), np.ones((5, 2))]))


@pytest.mark.wide
def test_loops_inside_loops_and_conditionals() -> None:
    """Sums of i * j, of odd j alone, for i below 4 and j below 3, in two ways."""
    i, j = (relay.var(name, shape=(), dtype="int64") for name in "ij")
    total, outer = (relay.var(name, shape=(), dtype="int64") for name in ("total", "outer"))
    odd = relay.equal(relay.floor_mod(j, relay.const(2, "int64")), relay.const(1, "int64"))
    pair = relay.If(odd, relay.add(total, relay.multiply(outer, j)), total)
    inner = relay.Function([j, total, outer], relay.Tuple([_TRUE, pair, pair]))
    sums = relay.var("sums", shape=(), dtype="int64")
    looped = relay.serde.loop(relay.const(3, "int64"), None, [sums], [i], body=inner)
    body = relay.Function([i, sums], relay.Tuple([_TRUE, looped[0], looped[1]]))
    limit, start = (relay.var(name, shape=(), dtype="int64") for name in ("n", "start"))
    result = relay.serde.loop(limit, None, [start], body=body)
    function = relay.Function([limit, start], result.astuple())
    value, stack = run_function(function, np.array(4), np.array(100))
    rows, expected = [], 100
    for outer_number in range(4):
        row = []
        for inner_number in range(3):
            expected += outer_number * inner_number if inner_number % 2 else 0
            row.append(expected)
        rows.append(row)
    assert value == expected
    np.testing.assert_array_equal(stack, rows)


@pytest.mark.wide
@pytest.mark.parametrize("length", [3, "T"])
def test_scans_along_axes_and_backwards(length: int | str) -> None:
    state, row = relay.var("s", shape=(2,)), relay.var("row", shape=(2,))
    scale = relay.var("scale", shape=(2,))
    following = relay.add(relay.multiply(state, scale), row)
    body = relay.Function([state, row, scale], relay.Tuple([following, following, row]))
    x, s, k = (
        relay.var("x", shape=(2, length)),
        relay.var("s", shape=(2,)),
        relay.var("k", shape=(2,)),
    )
    scanned = relay.serde.scan(
        [s],
        [x],
        [k],
        body=body,
        axes=(1,),
        reverse=(True,),
        out_axes=(-1, 0),
        out_reverse=(False, True),
    )
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    begin, factor = np.array([10, 20], np.float32), np.array([0.5, -1], np.float32)
    found = run_function(relay.Function([x, s, k], scanned.astuple()), values, begin, factor)
    rows, state_value = [], begin
    for place in reversed(range(3)):
        state_value = state_value * factor + values[:, place]
        rows.append(state_value)
    np.testing.assert_allclose(found[0], state_value)
    np.testing.assert_allclose(found[1], np.stack(rows, -1))
    np.testing.assert_allclose(found[2], values.T)


@pytest.mark.wide
def test_conditionals_with_several_results() -> None:
    x, flag = relay.var("x", shape=(2,)), relay.var("flag", shape=(), dtype="bool")
    inner = relay.If(
        relay.less(relay.sum(x), relay.const(0.0)),
        relay.Tuple([relay.negative(x), relay.sum(x)]),
        relay.Tuple([x, relay.const(7.0)]),
    )
    outer = relay.If(flag, inner, relay.Tuple([relay.add(x, x), relay.max(x)]))
    run = compile_model(write_function(relay.Function([x, flag], outer)))
    for given, flagged in (([1, 2], True), ([-1, -2], True), ([1, 2], False)):
        found = run(np.array(given, np.float32), np.array(flagged))
        total = np.float32(sum(given))
        expected = ([-1 * each for each in given], total) if total < 0 else (given, 7.0)
        expected = expected if flagged else ([2 * each for each in given], max(given))
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


def test_branches_allocate_nothing_themselves() -> None:
    """What one branch allocates, TVM gives to another, and crashes where the one is not run."""
    x, flag = relay.var("x", shape=(2, "N")), relay.var("flag", shape=(), dtype="bool")
    taken, other = relay.sigmoid(relay.sum(x, axis=0)), relay.max(relay.exp(x), axis=0)
    function = relay.Function([x, flag], relay.sum(relay.If(flag, taken, other)))
    run = compile_model(write_function(function))
    value = np.array([[1, 2, 3], [-1, 0, 4]], np.float32)
    for flagged in (True, False, True, False):
        expected = 1 / (1 + np.exp(-value.sum(0))) if flagged else np.exp(value).max(0)
        np.testing.assert_allclose(run(value, np.array(flagged))[0], expected.sum(), rtol=1e-5)


@pytest.mark.wide
def test_conditionals_too_deep_for_tvm_are_refused() -> None:
    x, flag = relay.var("x", shape=(2,)), relay.var("flag", shape=(), dtype="bool")
    value = x
    for _ in range(41):
        value = relay.If(flag, relay.add(value, x), x)
    with pytest.raises(UnsupportedModelError, match="subgraphs lie inside each other"):
        write_function(relay.Function([x, flag], value))


_LAYERS = {
    "lstm": {"gates": 4, "states": 2},
    "gru": {"gates": 3, "states": 1},
    "rnn": {"gates": 1, "states": 1},
}


@pytest.mark.wide
@pytest.mark.parametrize("name", _LAYERS)
@pytest.mark.parametrize("length", [20, "T"])
def test_long_recurrent_layers(name: str, length: int | str) -> None:
    """A layer in both directions, of sequences of several lengths, beside its kernel."""
    random = np.random.default_rng(0)
    gates, states = _LAYERS[name]["gates"], _LAYERS[name]["states"]
    shapes = [(length, 2, 3), (2, gates * 4, 3), (2, gates * 4, 4), (2, gates * 8)]
    x = [relay.var(f"x{place}", shape=shape) for place, shape in enumerate(shapes)]
    lens = relay.var("lens", shape=(2,), dtype="int32")
    initial = [relay.var(f"h{place}", shape=(2, 2, 4)) for place in range(states)]
    layer = getattr(relay.serde, name)
    result = layer(*x, lens, *initial, hidden_size=4, direction="bidirectional")
    params = [*x, lens, *initial]
    function = relay.Function(params, result.astuple())
    arrays = [
        random.standard_normal([20 if n == length else n for n in shape]).astype(np.float32)
        for shape in shapes
    ]
    arrays += [np.array([20, 13], np.int32)]
    arrays += [random.standard_normal((2, 2, 4)).astype(np.float32) for _ in initial]
    found = run_function(function, *arrays)
    expected = relay.create_executor("graph", mod=relay.IRModule.from_expr(function)).evaluate()(
        *arrays
    )
    assert len(found) == 1 + states
    for actual, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(actual, np.asarray(wanted), rtol=1e-4, atol=1e-5)

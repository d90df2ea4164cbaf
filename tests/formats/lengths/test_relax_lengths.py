"""Symbolic and data-dependent lengths in TVM: modules compiled once, run on several lengths."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tvm")

from support.relax_run import compile_model, write_function

import serde.relay as relay
from serde.relay.ir.dims import Any, Dim, symbol
from serde.relay.ir.types import TensorType

N, M, K = symbol("n"), symbol("m"), symbol("k")
FAR = 2**31 - 1
Lines = Sequence[tuple[int, ...]]


def _var(name: str, *shape: Dim, dtype: str = "float32") -> relay.Var:
    return relay.var(name, TensorType(shape, dtype))


def _values(*shape: int) -> np.ndarray:
    """Different numbers, about half of them 0."""
    count = int(np.prod(shape))
    numbers = np.random.default_rng(count).permutation(count).astype(np.float32) - count // 2
    return np.maximum(numbers, 0).reshape(shape)


def _compile(function: relay.Function) -> Callable[..., list[np.ndarray]]:
    typed = relay.transform.InferType()(relay.IRModule.from_expr(function))
    return compile_model(write_function(typed["main"]))


def _check(
    function: relay.Function,
    expected: Callable[..., Sequence[np.ndarray]],
    lines: Lines | Sequence[Lines],
) -> None:
    """Run a function on inputs of each of several shapes, and compare with NumPy."""
    run = _compile(function)
    for shapes in lines:
        arrays = [_values(*shape) for shape in shapes]  # type: ignore[misc]
        found = run(*arrays)
        wanted = expected(*arrays)
        assert len(found) == len(wanted)
        for have, want in zip(found, wanted, strict=True):
            assert have.shape == want.shape
            np.testing.assert_allclose(have, want, rtol=1e-5)


def _add(one: Sequence[Dim], other: Sequence[Dim]) -> relay.Function:
    x, y = _var("x", *one), _var("y", *other)
    return relay.Function([x, y], relay.add(x, y))


@pytest.mark.wide
@pytest.mark.parametrize(
    ("one", "other", "lines"),
    [
        ((N,), (M,), [((3,), (1,)), ((1,), (4,)), ((5,), (5,))]),
        pytest.param((N,), (3,), [((3,), (3,)), ((1,), (3,))], marks=pytest.mark.wide),
        pytest.param((N, 1), (2, M), [((2, 1), (2, 3))], marks=pytest.mark.wide),
        pytest.param(
            (Any(), 2), (Any(), 2), [((4, 2), (4, 2)), ((1, 2), (3, 2))], marks=pytest.mark.wide
        ),
        pytest.param((Any(), 2), (1,), [((3, 2), (1,))], marks=pytest.mark.wide),
    ],
)
def test_lengths_that_are_not_known_to_be_the_same_broadcast(
    one: Sequence[Dim], other: Sequence[Dim], lines: Sequence[Lines]
) -> None:
    _check(_add(one, other), lambda x, y: [x + y], lines)


def test_lengths_of_parameters_that_are_not_known_to_be_those_of_channels() -> None:
    x = _var("x", 2, 4, 3)
    pairs = [_var(name, dim) for name, dim in zip("abcd", (N, 3, M, N), strict=True)]
    normed = relay.nn.batch_norm(x, *pairs, axis=-1, epsilon=0.5)[0]

    def expected(
        x: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray
    ) -> list[np.ndarray]:
        return [(x - c) / np.sqrt(d + np.float32(0.5)) * a + b]

    _check(relay.Function([x, *pairs], normed), expected, [((2, 4, 3), *[(3,)] * 4)])


def test_a_multiple_of_a_symbol_shows_the_symbol() -> None:
    x = _var("x", 2 * N)
    function = relay.Function([x], relay.reshape(x, (N, 2)))
    _check(function, lambda a: [a.reshape(-1, 2)], [((6,),), ((2,),)])


@pytest.mark.wide
def test_a_sum_with_a_symbol_shows_the_symbol() -> None:
    x = _var("x", 2 * N + 1)
    rest = relay.strided_slice(x, [1], [FAR])
    function = relay.Function([x], relay.reshape(rest, (2, N)))
    _check(function, lambda a: [a[1:].reshape(2, -1)], [((7,),), ((3,),)])


@pytest.mark.wide
def test_an_input_may_use_a_symbol_that_a_later_one_shows() -> None:
    x, y = _var("x", 2 * N), _var("y", N)
    function = relay.Function([x, y], relay.add(x, relay.concatenate([y, y], 0)))
    _check(function, lambda a, b: [a + np.tile(b, 2)], [((6,), (3,)), ((2,), (1,))])


@pytest.mark.wide
def test_a_product_of_symbols_is_the_length_of_an_input() -> None:
    x, y = _var("x", N * M), _var("y", M)
    function = relay.Function([x, y], relay.add(relay.reshape(x, (-1, M)), y))
    _check(function, lambda a, b: [a.reshape(-1, len(b)) + b], [((6,), (3,))])


def test_inputs_of_a_wrong_length_are_an_error() -> None:
    x, y = _var("x", 2 * N), _var("y", N)
    run = _compile(relay.Function([x, y], relay.Tuple([x, y])))
    with pytest.raises(Exception, match="mismatch"):
        run(_values(5), _values(2))


def test_the_number_of_places_is_known_when_the_model_runs_only() -> None:
    x = _var("x", N, 3)
    places = relay.sum(relay.argwhere(x), axis=1)
    found = relay.take(relay.reshape(x, (-1,)), relay.cast(places, "int64"), axis=0)
    function = relay.Function([x], relay.Tuple([found, relay.shape_of(found, "int64")]))

    def expected(a: np.ndarray) -> list[np.ndarray]:
        picked = a.reshape(-1)[np.argwhere(a).sum(1)]
        return [picked, np.array(picked.shape)]

    _check(function, expected, [((4, 3),), ((1, 3),), ((0, 3),)])


@pytest.mark.wide
def test_what_is_computed_of_a_data_dependent_length() -> None:
    x = _var("x", N)
    rows = relay.cast(relay.reshape(relay.argwhere(x), (-1,)), "float32")
    results = [
        relay.add(rows, rows),
        relay.concatenate([rows, x], 0),
        relay.sum(rows),
        relay.transpose(relay.stack([rows, rows], 0)),
        relay.strided_slice(rows, [-1], [-FAR], [-1]),
        relay.tile(rows, [2]),
    ]

    def expected(a: np.ndarray) -> list[np.ndarray]:
        r = np.flatnonzero(a).astype(np.float32)
        both = np.stack([r, r]).T
        return [r + r, np.concatenate([r, a]), r.sum(), both, r[::-1], np.tile(r, 2)]

    _check(relay.Function([x], relay.Tuple(results)), expected, [((9,),), ((4,),)])


@pytest.mark.wide
@pytest.mark.parametrize("choice", [True, False])
def test_branches_may_have_other_lengths(choice: bool) -> None:
    x, wanted = _var("x", N), _var("c", dtype="bool")
    some = relay.take(x, relay.reshape(relay.argwhere(x), (-1,)), axis=0)
    run = _compile(relay.Function([x, wanted], relay.If(wanted, some, relay.negative(x))))
    a = _values(9)
    (found,) = run(a, np.array(choice))
    np.testing.assert_array_equal(found, a[a != 0] if choice else -a)


@pytest.mark.wide
def test_a_length_that_a_branch_shows_is_not_used_outside() -> None:
    x, wanted = _var("x", N), _var("c", dtype="bool")
    rest = relay.strided_slice(x, [1], [FAR])
    chosen = relay.If(wanted, relay.nn.relu(rest), relay.negative(rest))
    function = relay.Function([x, wanted], relay.add(chosen, rest))
    run = _compile(function)
    a = _values(9) - 1
    np.testing.assert_array_equal(run(a, np.array(False))[0], np.zeros(8, np.float32))


@pytest.mark.wide
def test_symbols_of_a_function_are_those_of_its_call() -> None:
    inner = _var("a", K)
    double = relay.Function([inner], relay.concatenate([inner, inner], 0))
    x = _var("x", N, 3)
    call = double(relay.reshape(x, (-1,)))
    function = relay.Function([x], relay.reshape(call, (2, -1, 3)))
    _check(function, lambda a: [np.stack([a, a])], [((2, 3),), ((5, 3),)])


@pytest.mark.wide
def test_a_shape_may_be_computed() -> None:
    x = _var("x", N, M)
    lengths = relay.take(relay.shape_of(x, "int64"), relay.const([1, 0], "int64"), axis=0)
    ones = relay.const([1, 1], "int64")
    function = relay.Function([x], relay.reshape(x, relay.multiply(lengths, ones)))
    _check(function, lambda a: [a.reshape(a.shape[::-1])], [((2, 5),), ((3, 1),)])


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        ("sum", [0, 0, 0]),
        pytest.param("prod", [1, 1, 1], marks=pytest.mark.wide),
        pytest.param("mean", [np.nan] * 3, marks=pytest.mark.wide),
        pytest.param("max", [-np.inf] * 3, marks=pytest.mark.wide),
    ],
)
def test_reductions_of_no_elements(op: str, wanted: list[float]) -> None:
    x = _var("x", N, 3)
    run = _compile(relay.Function([x], getattr(relay, op)(x, axis=0)))
    np.testing.assert_array_equal(run(_values(0, 3))[0], np.array(wanted, np.float32))
    full = getattr(np, op)(_values(4, 3), axis=0)
    np.testing.assert_allclose(run(_values(4, 3))[0], full, rtol=1e-6)


@pytest.mark.wide
def test_products_over_no_elements() -> None:
    x, y = _var("x", 2, N), _var("y", 3, N)
    function = relay.Function([x, y], relay.nn.dense(x, y))
    _check(function, lambda a, b: [a @ b.T], [((2, 0), (3, 0)), ((2, 4), (3, 4))])


@pytest.mark.wide
def test_sums_to_a_shape_over_no_elements() -> None:
    x, y = _var("x", N, 3), _var("y", 3)
    function = relay.Function([x, y], relay.collapse_sum_like(x, y))
    _check(function, lambda a, _b: [a.sum(0)], [((0, 3), (3,)), ((4, 3), (3,))])


@pytest.mark.wide
def test_tensors_of_lengths_that_are_the_same_at_run_time_are_joined() -> None:
    x, y = _var("x", N), _var("y", M)
    rows = [relay.reshape(relay.argwhere(each), (-1,)) for each in (x, y)]
    both = relay.Tuple([relay.stack(rows, 1), relay.concatenate([rows[0], rows[1]], 0)])

    def expected(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        found = [np.flatnonzero(each) for each in (a, b)]
        return [np.stack(found, 1), np.concatenate(found)]

    _check(relay.Function([x, y], both), expected, [((5,), (5,)), ((9,), (9,))])


@pytest.mark.wide
def test_lengths_that_are_written_in_two_ways_are_no_equations() -> None:
    """TVM's passes ran without end on a cast between them."""
    x, w = _var("x", 1, 4, N, M), _var("w", 2 * K, 4, K, K)
    made = relay.nn.conv2d(x, w, strides=(2, 1), padding=(1, 1), kernel_size=(3, 3), channels=6)
    run = _compile(relay.Function([x, w], relay.transpose(made, [1, 2, 0, 3])))
    assert run(_values(1, 4, 5, 4), _values(6, 4, 3, 3))[0].shape == (6, 3, 1, 4)


@pytest.mark.wide
def test_chains_of_lengths_that_are_not_known_stay_small() -> None:
    inputs = [_var(f"x{place}", symbol(f"s{place}")) for place in range(12)]
    total: relay.Expr = inputs[0]
    for each in inputs[1:]:
        total = relay.multiply(relay.add(total, each), each)
    run = _compile(relay.Function(inputs, total))
    assert run(*[np.ones(1 + 3 * (place % 2), np.float32) for place in range(12)])[0].shape == (4,)


@pytest.mark.wide
@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_short_axes_are_mirrored_as_often_as_needed(mode: str) -> None:
    x = _var("x", N, 2)
    mirrored = relay.nn.mirror_pad(x, ((3, 4), (0, 1)), mode.upper())
    widths = ((3, 4), (0, 1))
    _check(
        relay.Function([x], mirrored),
        lambda value: [np.pad(value, widths, mode)],  # type: ignore[call-overload]
        [[(length, 2)] for length in (1, 2, 3, 9)],
    )


def test_indices_of_lengths_that_are_not_compared_are_spread() -> None:
    x, rows = _var("x", 4, 3), relay.var("i", TensorType((N,), "int64"))
    columns = relay.var("j", TensorType((M,), "int64"))
    picked = relay.adv_index([x, rows, columns])
    run = _compile(relay.Function([x, rows, columns], picked))
    values = _values(4, 3)
    for one, other in (([1, 3, 0], [2]), ([1], [2, 0]), ([1, 3], [0, 2])):
        places = np.array(one), np.array(other)
        assert run(values, *places)[0].tolist() == values[places].tolist()


TEXTS = """
import sys

sys.path.append({tests!r})

from serde.bridge.formats import get_bridge
from serde.core import Report
from serde.relay import IRModule
from serde.relay.ir.dims import symbol
from serde.relay.ir.model import ModelMeta, RelayModel
from support.samples import all_samples, build

padding = [object() for _ in range({turn} * 10_007)]
relax = get_bridge("relax")
samples = {{each.id: each.values for each in all_samples()}}
for name in {names!r}:
    names = lambda variable, axis, length: symbol(f"d{{variable}}_{{axis}}")
    function = build(*samples[name], names).function
    inputs = tuple(each.name_hint for each in function.params)
    model = RelayModel(IRModule.from_expr(function), {{}}, ModelMeta(inputs, ("y",), "relay", "1"))
    print(relax.from_relay(model, relax.bind_export({{}}), report=Report()).module.script())
"""
ORDERED = ["add-0", "where-0", "argwhere-0", "serde.cumprod-0", "dyn.nn.upsampling-1", "tile-0"]


@pytest.mark.wide
def test_the_text_does_not_depend_on_the_process() -> None:
    """TVM keeps lengths in sets of objects, which every process orders anew."""
    tests = str(Path(__file__).parents[2])
    texts = set()
    for turn in range(4):
        script = TEXTS.format(tests=tests, turn=turn, names=ORDERED)
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        texts.add(done.stdout)
    assert len(texts) == 1

"""Gamma and Poisson numbers against NumPy's, in distribution; whole and decomposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import infer, run_kernel

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.ir.registry import call
from serde.relay.run.interpreter import run
from serde.relay.transform import Decompose, MergeEqualNodes

COUNT = 40_000


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    """The greatest difference of two empirical distribution functions (Kolmogorov, Smirnov)."""
    found, expected = np.sort(found.ravel()), np.sort(expected.ravel())
    places = np.concatenate([found, expected])
    sides = [np.searchsorted(each, places, side="right") / each.size for each in (found, expected)]
    return float(np.abs(sides[0] - sides[1]).max())


BOUND = 1.95 * np.sqrt(2 / COUNT)
"""What the distance of two draws of equal distribution exceeds once in 1000 times."""


@pytest.mark.wide
@pytest.mark.parametrize("alpha", [0.05, 0.4, 1.0, 1.5, 7.0, 3e5])
def test_gamma_numbers_are_distributed_as_those_of_numpy(alpha: float) -> None:
    found = run_kernel("serde.random_gamma", np.array(alpha), shape=[COUNT], seed=3.0)
    expected = np.random.default_rng(11).gamma(alpha, size=COUNT)
    assert distance(found, expected) < BOUND


@pytest.mark.wide
@pytest.mark.parametrize("lam", [0.0, 0.01, 0.9, 5.0, 9.99, 10.0, 13.7, 80.0, 1e6])
def test_poisson_numbers_are_distributed_as_those_of_numpy(lam: float) -> None:
    found = run_kernel("serde.random_poisson", np.array(lam), shape=[COUNT], seed=5.0)
    expected = np.random.default_rng(12).poisson(lam, size=COUNT)
    assert distance(found, expected) < BOUND


@pytest.mark.parametrize("name", ["serde.random_gamma", "serde.random_poisson"])
@pytest.mark.parametrize("rate", [0.3, 2.0, 25.0])
def test_a_constant_rate_is_decomposed_to_the_same_numbers(name: str, rate: float) -> None:
    body = call(name, relay.const(rate, "float32"), shape=(50,), seed=4.0)
    function = Decompose(frozenset()).transform(relay.Function([], body))
    expected = run_kernel(name, np.array(rate, np.float32), shape=[50], seed=4.0)
    np.testing.assert_allclose(run(function, []), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["serde.random_gamma", "serde.random_poisson"])
def test_a_seed_determines_numbers_and_none_does_not(name: str) -> None:
    rates = np.linspace(0.5, 30, 40, dtype=np.float32).reshape(4, 10)
    first = run_kernel(name, rates, seed=7.0)
    np.testing.assert_array_equal(first, run_kernel(name, rates, seed=7.0))
    x = relay.var("x", shape=rates.shape)
    body = Decompose(frozenset()).transform(relay.Function([x], call(name, x, seed=7.0)))
    np.testing.assert_allclose(first, run(body, [rates]), rtol=1e-6)
    assert (first != run_kernel(name, rates, seed=8.0)).any()
    assert (run_kernel(name, rates) != run_kernel(name, rates)).any()


@pytest.mark.wide
@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("serde.random_gamma", np.random.default_rng(13).gamma),
        ("serde.random_poisson", np.random.default_rng(14).poisson),
    ],
)
def test_rates_are_spread_over_a_shape(name: str, draw: Any) -> None:
    rates = np.array([0.5, 3.0, 20.0])
    found = run_kernel(name, rates, shape=[COUNT, 3], seed=2.0)
    x = relay.var("x", shape=(3,), dtype="float64")
    body = call(name, x, shape=(COUNT, 3), seed=2.0)
    function = Decompose(frozenset()).transform(relay.Function([x], body))
    np.testing.assert_allclose(run(function, [rates]), found, rtol=1e-9)
    for column, expected in zip(found.T, draw(rates, size=(COUNT, 3)).T, strict=True):
        assert distance(column, expected) < BOUND


@pytest.mark.parametrize("name", ["serde.random_gamma", "serde.random_poisson"])
def test_rates_of_open_lengths(name: str) -> None:
    """The decomposition draws for as many as there are when the model runs."""
    rates = relay.var("rates", shape=("n", 3))
    body = call(name, rates)
    draws = frozenset({"serde.random_uniform", "serde.random_normal"})
    function = Decompose(draws).transform(relay.Function([rates], body))
    assert run(function, [np.full((5, 3), 4, np.float32)]).shape == (5, 3)


def test_equal_draws_stay_two() -> None:
    x = relay.var("x", shape=(2, 3))
    body = relay.subtract(*(call("serde.random_gamma", x) for _ in range(2)))
    kept = MergeEqualNodes()(relay.IRModule.from_expr(relay.Function([x], body)))
    assert kept["main"].body.args[0] is not kept["main"].body.args[1]


@pytest.mark.parametrize(
    ("shapes", "attrs", "message"),
    [
        ([(2, 3)], {"shape": [3]}, "does not fit the shape"),
        ([(2,)], {"shape": [3]}, "3"),
        ([(2,)], {"shape": [-1, 2]}, "expected lengths"),
    ],
)
def test_refusals(shapes: Any, attrs: Any, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        infer("serde.random_gamma", *shapes, **attrs)

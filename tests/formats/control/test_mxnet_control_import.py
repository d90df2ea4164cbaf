"""Loops and conditionals made by MXNet 1.9.1, read into Relay: the same numbers as MXNet's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.compat import import_mxnet
from serde.errors import MissingDependency

X = np.arange(12, dtype=np.float32).reshape(4, 3) / 5 - 1
S = np.array([1, -2, 3], np.float32)
V = np.array([1, 2, -3, 4], np.float32)


@pytest.fixture(scope="module")
def mx() -> Any:
    try:
        return import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))


def foreach(mx: Any) -> Any:
    x, s, w = (mx.sym.var(name) for name in "xsw")
    out, states = mx.sym.contrib.foreach(
        lambda row, state: (row * w + state[0], [state[0] + row]), x, [s]
    )
    return mx.sym.Group([out, *states])


def foreach_of_a_vector(mx: Any) -> Any:
    v, s = mx.sym.var("v"), mx.sym.var("s")
    out, states = mx.sym.contrib.foreach(
        lambda one, state: (one * 2, [mx.sym.broadcast_add(state[0], one)]), v, [s]
    )
    return mx.sym.Group([out, *states])


def while_loop(mx: Any) -> Any:
    i, s = mx.sym.var("i"), mx.sym.var("s")
    out, states = mx.sym.contrib.while_loop(
        lambda i, s: i < 3, lambda i, s: ([s * 2, i], [i + 1, s + 1]), [i, s], max_iterations=5
    )
    return mx.sym.Group(
        [*(mx.sym.slice_axis(each, axis=0, begin=0, end=3) for each in out), *states]
    )


def cond(mx: Any) -> Any:
    s, w = mx.sym.var("s"), mx.sym.var("w")
    return mx.sym.contrib.cond(mx.sym.sum(s) < 3, lambda: s + w, lambda: s * w)


CASES: list[tuple[Callable[[Any], Any], dict[str, np.ndarray]]] = [
    (foreach, {"x": X, "s": S, "w": S + 1}),
    (foreach_of_a_vector, {"v": V, "s": S}),
    (while_loop, {"i": np.zeros(1, np.float32), "s": S}),
    (cond, {"s": S, "w": S + 1}),
    (cond, {"s": S * 10, "w": S + 1}),
]


@pytest.mark.parametrize(("make", "arrays"), CASES)
def test_relay_computes_what_mxnet_does(
    mx: Any, make: Callable[[Any], Any], arrays: dict[str, np.ndarray]
) -> None:
    symbol = make(mx)
    feeds = {name: mx.nd.array(array) for name, array in arrays.items()}
    expected = symbol.bind(mx.cpu(), args=feeds, grad_req="null").forward()
    shapes = {name: array.shape for name, array in arrays.items()}
    model = serde.to_relay(symbol, {}, input_shapes=shapes)
    executor = relay.create_executor("graph", mod=model.mod).evaluate()
    given = [arrays[param.name_hint] for param in model.main.params]
    found = executor(*given)
    results = found if len(expected) > 1 else [found]
    for wanted, actual in zip(expected, results, strict=True):
        value = np.asarray(actual.numpy() if hasattr(actual, "numpy") else actual)
        np.testing.assert_allclose(value, wanted.asnumpy(), rtol=1e-6)


@pytest.mark.parametrize("make", [foreach, cond])
def test_comes_back_as_the_same_operator(mx: Any, make: Callable[[Any], Any]) -> None:
    arrays = next(arrays for each, arrays in CASES if each is make)
    symbol = make(mx)
    shapes = {name: array.shape for name, array in arrays.items()}
    again, params = serde.import_model(symbol, {}, input_shapes=shapes)
    feeds = {name: mx.nd.array(array) for name, array in arrays.items()}
    expected = symbol.bind(mx.cpu(), args=feeds, grad_req="null").forward()
    given = {**feeds, **params.arg}
    found = again.bind(
        mx.cpu(), args={name: given[name] for name in again.list_arguments()}, grad_req="null"
    ).forward()
    for wanted, actual in zip(expected, found, strict=True):
        np.testing.assert_allclose(actual.asnumpy(), wanted.asnumpy(), rtol=1e-6)
    operator = "_foreach" if make is foreach else "_cond"
    assert operator in again.tojson()

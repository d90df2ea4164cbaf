"""Weights that are expressions, against NumPy on whole arrays."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

import serde.relay as relay
from serde.core.limits import CHUNK_BYTES
from serde.core.weights import ArrayWeight, Weight
from serde.errors import RelayError
from serde.relay.run.computed import ComputedWeight

RNG = np.random.default_rng(3)
W = RNG.normal(size=(12, 4, 3, 3)).astype("float32")
S = RNG.uniform(0.5, 2, size=12).astype("float32")


def _w() -> relay.Var:
    return relay.var("w", shape=W.shape)


Build = Callable[[relay.Expr], relay.Expr]
CASES: dict[str, tuple[Build, np.ndarray, bool]] = {
    "scale": (
        lambda w: relay.multiply(w, relay.const(S.reshape(12, 1, 1, 1))),
        W * S.reshape(12, 1, 1, 1),
        False,
    ),
    "broadcast along rows": (lambda w: relay.add(w, relay.const(S[:3])), W + S[:3], False),
    "cast": (lambda w: relay.cast(w, "float16"), W.astype("float16"), False),
    "inner transpose": (
        lambda w: relay.transpose(w, axes=(0, 2, 3, 1)),
        W.transpose(0, 2, 3, 1),
        False,
    ),
    "rows moved by transpose": (
        lambda w: relay.transpose(w, axes=(2, 3, 1, 0)),
        W.transpose(2, 3, 1, 0),
        True,
    ),
    "reshape that keeps rows": (
        lambda w: relay.negative(relay.reshape(w, newshape=(12, -1))),
        -W.reshape(12, -1),
        False,
    ),
    "reshape to more rows": (
        lambda w: relay.exp(relay.reshape(w, newshape=(36, 12))),
        np.exp(W.reshape(36, 12)),
        False,
    ),
    "reshape to fewer, unequal rows": (
        lambda w: relay.negative(relay.reshape(w, newshape=(8, 54))),
        -W.reshape(8, 54),
        False,
    ),
    "expand and squeeze": (
        lambda w: relay.squeeze(relay.expand_dims(w, axis=1), axis=[1]),
        W,
        False,
    ),
    "concatenate inside": (
        lambda w: relay.concatenate([w, relay.negative(w)], axis=1),
        np.concatenate([W, -W], axis=1),
        False,
    ),
    "concatenate rows": (
        lambda w: relay.concatenate([relay.negative(w), w, relay.const(W[:5])], axis=0),
        np.concatenate([-W, W, W[:5]]),
        False,
    ),
    "norm of each row": (
        lambda w: relay.nn.l2_normalize(w, eps=1e-9, axis=(1, 2, 3)),
        W / np.sqrt(np.square(W).sum((1, 2, 3), keepdims=True)),
        False,
    ),
    "norm of all": (
        lambda w: relay.nn.l2_normalize(w, eps=1e-9),
        W / np.sqrt(np.square(W).sum()),
        True,
    ),
    "stack inside": (lambda w: relay.stack([w, w], axis=2), np.stack([W, W], axis=2), False),
    "gates in another order": (
        lambda w: relay.concatenate([relay.split(w, 3)[i] for i in (2, 0, 1)], axis=0),
        np.concatenate([W[8:], W[:4], W[4:8]]),
        False,
    ),
    "slice of rows": (
        lambda w: relay.strided_slice(w, begin=[2, 1], end=[9, 3], strides=[1, 1]),
        W[2:9, 1:3],
        False,
    ),
    "reduction inside": (
        lambda w: relay.max(w, axis=[1, 2], keepdims=True),
        W.max((1, 2), keepdims=True),
        False,
    ),
    "reduction over rows": (lambda w: relay.max(w, axis=0), W.max(0), True),
    "shared, rows apart": (
        lambda w: relay.add(
            relay.strided_slice(w, begin=[0], end=[6], strides=[1]),
            relay.strided_slice(w, begin=[6], end=[12], strides=[1]),
        ),
        W[:6] + W[6:],
        False,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_and_chunks_are_those_of_the_whole(case: str) -> None:
    build, want, whole = CASES[case]
    w = _w()
    weight = ComputedWeight(build(w), {w: ArrayWeight(W)})
    assert weight.shape == want.shape
    assert weight.dtype == want.dtype.name
    assert weight.whole is whole
    np.testing.assert_array_equal(weight.array(), want)
    length = want.shape[0]
    for start, stop in [(0, 1), (length // 2, length), (1, 3)]:
        np.testing.assert_array_equal(weight.rows(start, stop), want[start:stop])
    assert b"".join(weight.chunks()) == want.tobytes()


class _Zeros(Weight):
    """A source of any size that counts what it hands out."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape
        self.dtype = "float32"
        self.most = 0

    def rows(self, start: int, stop: int) -> np.ndarray:
        value = np.zeros((stop - start, *self.shape[1:]), "float32")
        self.most = max(self.most, value.nbytes)
        return value


def test_memory_stays_near_a_few_chunks() -> None:
    source = _Zeros(4096, 16384)
    w, s = relay.var("w", shape=source.shape), relay.var("s", shape=(4096,))
    scaled = relay.multiply(w, relay.expand_dims(relay.sqrt(s), axis=1))
    weight = ComputedWeight(relay.cast(scaled, "float16"), {w: source, s: _Zeros(4096)})
    assert not weight.whole
    tracemalloc.start()
    total = sum(len(piece) for piece in weight.chunks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 4096 * 16384 * 2
    assert source.most <= 2 * CHUNK_BYTES
    assert peak < 7 * CHUNK_BYTES


def test_what_every_piece_needs_is_evaluated_once() -> None:
    calls = []

    class Counted(_Zeros):
        def array(self) -> np.ndarray:
            calls.append(self.shape)
            return super().array()

    w, s = relay.var("w", shape=(64, 2**20)), relay.var("s", shape=(2**20,))
    weight = ComputedWeight(relay.add(w, s), {w: _Zeros(64, 2**20), s: Counted(2**20)})
    assert sum(1 for _ in weight.chunks()) == 16
    assert calls == [(2**20,)]


def test_a_computed_source_splits_as_well() -> None:
    w, v = _w(), relay.var("v", shape=(12, 36))
    inner = ComputedWeight(relay.reshape(w, newshape=(12, 36)), {w: ArrayWeight(W)})
    outer = ComputedWeight(relay.negative(v), {v: inner})
    assert not outer.whole
    np.testing.assert_array_equal(outer.rows(3, 5), -W.reshape(12, 36)[3:5])


def test_one_variable_may_mean_different_weights_on_two_levels() -> None:
    w = _w()
    inner = ComputedWeight(relay.negative(w), {w: ArrayWeight(W)})
    outer = ComputedWeight(relay.add(w, w), {w: inner})
    np.testing.assert_array_equal(outer.array(), -W - W)


@pytest.mark.slow
def test_deep_expressions_and_deep_nesting_take_linear_time() -> None:
    w = relay.var("w", shape=(3,))
    data = np.zeros(3, "float32")
    expr = w
    weight: Weight = ArrayWeight(data)
    for _ in range(20_000):
        expr = relay.add(expr, relay.const(1.0))
    np.testing.assert_array_equal(ComputedWeight(expr, {w: weight}).array(), data + 20_000)
    for _ in range(20_000):
        weight = ComputedWeight(relay.add(w, relay.const(1.0)), {w: weight})
    np.testing.assert_array_equal(weight.array(), data + 20_000)


def test_a_choice_inside_is_evaluated_as_one() -> None:
    w = _w()
    first = relay.take(w, relay.const(0), axis=0)
    flag = relay.greater(relay.max(first), relay.const(-1e9))
    weight = ComputedWeight(relay.If(flag, w, relay.negative(w)), {w: ArrayWeight(W)})
    assert weight.whole
    np.testing.assert_array_equal(weight.rows(2, 4), W[2:4])


def test_sources_must_be_there_and_fit() -> None:
    w = _w()
    with pytest.raises(RelayError, match="has no weight"):
        ComputedWeight(relay.exp(w), {})
    with pytest.raises(RelayError, match=r"expected Tensor\[\(12, 4, 3, 3\), float32\], found"):
        ComputedWeight(relay.exp(w), {w: ArrayWeight(W[:3])})
    n = relay.var("n", relay.TensorType(("N",)))
    with pytest.raises(RelayError, match="concrete shape"):
        ComputedWeight(relay.exp(n), {n: ArrayWeight(S)})


def test_an_empty_and_a_scalar_weight() -> None:
    e, s = relay.var("e", shape=(0, 3)), relay.var("s", shape=())
    empty = ComputedWeight(relay.exp(e), {e: ArrayWeight(np.zeros((0, 3), "float32"))})
    assert list(empty.chunks()) == []
    scalar = ComputedWeight(relay.negative(s), {s: ArrayWeight(np.array(2, "float32"))})
    assert b"".join(scalar.chunks()) == np.array(-2, "float32").tobytes()


@pytest.mark.parametrize("cast", [False, True])
def test_a_large_transpose_is_not_evaluated_as_one(
    cast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serde.relay.run.computed._MOST_HELD", 2**20)
    data = RNG.normal(size=(700, 1500)).astype("float32")
    w = relay.var("w", shape=data.shape)
    inner = relay.cast(w, "float64") if cast else w
    weight = ComputedWeight(relay.transpose(inner, axes=(1, 0)), {w: ArrayWeight(data)})
    assert not weight.whole
    wanted = data.T.astype("float64" if cast else "float32")
    assert b"".join(weight.chunks()) == wanted.tobytes()

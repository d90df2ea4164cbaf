"""Arrays of sizes that a file tells: made within a budget, and refused where there are none."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import serde
import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.limits import spending
from serde.errors import LimitError, Unsupported, UnsupportedModelError

MADE: dict[str, tuple[Callable[[], Any], Any]] = {
    "full": (lambda: allocation.full((2, 3), 7, "int8"), np.full((2, 3), 7, "int8")),
    "none": (lambda: allocation.zeros((0, 2**40), "int8"), np.zeros((0, 2**40), "int8")),
    "eye": (lambda: allocation.eye(2, 3, 1), np.eye(2, 3, 1)),
    "up": (lambda: allocation.arange(1, 8, 3), np.array([1, 4, 7])),
    "down": (lambda: allocation.arange(5, -1, -2), np.array([5, 3, 1])),
    "wrong way": (lambda: allocation.arange(np.int64(2**62), -5), np.zeros(0, "int64")),
    "far and nothing": (lambda: allocation.arange(2**63, -(2**63)), np.zeros(0, "int64")),
    "fractions": (lambda: allocation.arange(0.0, 1.0, 0.3), np.arange(0.0, 1.0, 0.3)),
    "linspace": (lambda: allocation.linspace(0, 1, 3), np.array([0, 0.5, 1])),
    "repeat": (lambda: allocation.repeat([[1, 2]], 2, 1), np.array([[1, 1, 2, 2]])),
    "counts": (lambda: allocation.repeat([1, 2], [3, 1]), np.array([1, 1, 1, 2])),
    "tile": (lambda: allocation.tile([1, 2], (2, 1)), np.array([[1, 2], [1, 2]])),
    "tri": (lambda: allocation.tri(2, 3, 1, "int8"), np.array([[1, 1, 0], [1, 1, 1]])),
    "indices": (lambda: allocation.indices([2, 2]), np.array([[[0, 0], [1, 1]], [[0, 1], [0, 1]]])),
    "pad": (lambda: allocation.pad([1, 2, 3], [(2, 1)], "reflect"), np.array([3, 2, 1, 2, 3, 2])),
    "sums": (
        lambda: allocation.outer_sum(np.array([0, 2, 4]), np.array([0, 1])),
        np.array([[0, 1], [2, 3], [4, 5]]),
    ),
    "products": (
        lambda: allocation.outer(np.array([1, 2]), np.array([3, 0, 5])),
        np.array([[3, 0, 5], [6, 0, 10]]),
    ),
    "lower": (lambda: allocation.tril_indices(2), np.array([[0, 1, 1], [0, 0, 1]])),
    "broadcast": (lambda: allocation.broadcast_to([[1], [2]], (2, 2)), np.array([[1, 1], [2, 2]])),
    "how often": (lambda: allocation.bincount(np.array([2, 0, 2]), 4), np.array([1, 0, 2, 0])),
    "how often none": (lambda: allocation.bincount(np.zeros(0, int), 2), np.array([0, 0])),
    "turns": (lambda: list(allocation.iterations(3, "turns")), np.arange(3)),
    "no turns": (lambda: list(allocation.iterations(-3, "turns")), np.zeros(0)),
}


@pytest.mark.parametrize(("make", "expected"), MADE.values(), ids=MADE)
def test_what_is_made(make: Callable[[], Any], expected: np.ndarray) -> None:
    found = make()
    np.testing.assert_array_equal(found, expected)
    assert np.shape(found) == expected.shape


REFUSED: dict[str, Callable[[], Any]] = {
    "negative": lambda: allocation.full((-2, -3), 1),
    "negative eye": lambda: allocation.eye(-3),
    "negative count": lambda: allocation.linspace(0, 1, -5),
    "negative repeats": lambda: allocation.repeat([1, 2], [5, -1]),
    "negative tiles": lambda: allocation.tile([1], (2, -1)),
    "negative padding": lambda: allocation.pad([1, 2], [(-1, 1)], "edge"),
    "no such broadcast": lambda: allocation.broadcast_to([1, 2, 3], (2, 2)),
    "broadcast to fewer axes": lambda: allocation.broadcast_to([[1]], (1,)),
    "count of a negative": lambda: allocation.bincount(np.array([3, -1]), 4),
    "no step": lambda: allocation.arange(0, 5, 0),
    "no step of a fraction": lambda: allocation.arange(0, 5, 0.0),
    "to NaN": lambda: allocation.arange(0, float("nan")),
    "to infinity": lambda: allocation.arange(np.float32(0), np.float32("inf"), np.float32(1)),
    "steps of NaN": lambda: allocation.arange(0, 5, np.float32("nan")),
    "too many axes": lambda: allocation.ones([1] * 33),
    "empty but too long": lambda: allocation.zeros((0, 2**62)),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_what_there_is_not(make: Callable[[], Any]) -> None:
    with spending() as budget:
        before = dict(budget._taken)
        with pytest.raises(Unsupported):
            make()
        assert budget._taken == before


BOMBS: dict[str, Callable[[], Any]] = {
    "full": lambda: allocation.full((2**40, 2**40), 1),
    "eye": lambda: allocation.eye(2**20),
    "arange": lambda: allocation.arange(0, 2**63),
    "arange down": lambda: allocation.arange(np.int64(0), np.int64(-(2**63)), np.int64(-1)),
    "arange of fractions": lambda: allocation.arange(0, 1e300, 1.0),
    "linspace": lambda: allocation.linspace(0, 1, 2**62),
    "repeat": lambda: allocation.repeat([1, 2], [2**62, 2**62]),
    "repeat all": lambda: allocation.repeat(np.zeros((2, 3)), 2**63 - 1, 0),
    "tile": lambda: allocation.tile([1, 2], (2**33, 2**33)),
    "positions": lambda: allocation.positions(2**40),
    "tri": lambda: allocation.tri(2**20),
    "indices": lambda: allocation.indices([2**20, 2**20]),
    "pad": lambda: allocation.pad([1, 2], [(2**40, 0)], "edge"),
    "sums": lambda: allocation.outer_sum(np.arange(2**15), np.arange(2**15)),
    "products": lambda: allocation.outer(np.arange(2**13), np.arange(2**13)),
    "lower": lambda: allocation.tril_indices(2**20),
    "broadcast": lambda: allocation.broadcast_to(1.0, (2**40, 2**40)),
    "how often": lambda: allocation.bincount(np.array([0, 2**60]), 4),
    "how often of many": lambda: allocation.bincount(np.array([0]), 2**40),
    "turns": lambda: allocation.iterations(2**63, "turns"),
}


@pytest.mark.parametrize("make", BOMBS.values(), ids=BOMBS)
def test_what_is_beyond_the_budget(make: Callable[[], Any]) -> None:
    with spending(), pytest.raises(LimitError, match="may be taken; --limit"):
        make()


def test_positions_are_computed_and_not_kept() -> None:
    with spending({"constants": 800, "elements": 200}):
        for _ in range(2):
            np.testing.assert_array_equal(allocation.positions(100), np.arange(100))
        with pytest.raises(LimitError, match="would take 201 elements"):
            allocation.positions(1)
        with pytest.raises(LimitError, match="would take 808 constants"):
            allocation.positions(101)


def test_arrays_add_up() -> None:
    with spending({"constants": 1000}):
        allocation.zeros(100)
        with pytest.raises(LimitError, match="would take 1,600 constants"):
            allocation.zeros(100)
        allocation.zeros(25)


# What attributes and lengths tell alone, in models of a few bytes.

SIDE = 200_000
BIG: dict[str, Callable[[], relay.Expr]] = {
    "anchors": lambda: relay.vision.multibox_prior(_map(SIDE, SIDE), sizes=(0.5, 0.2)),
    "many anchors": lambda: relay.vision.multibox_prior(_map(3000, 3000), sizes=(0.5,) * 100),
    "one hot": lambda: relay.one_hot(_map(4, dtype="int32"), *_ends(), 2 * 10**9, -1, "float32"),
    "resize": lambda: relay.image.resize2d(
        _map(4, 4), (10**10, 2), coordinate_transformation_mode="tf_half_pixel_for_nn"
    ),
    "full": lambda: relay.add(_map(1), relay.full(_ends()[0], (SIDE, SIDE), "float32")),
    "arange": lambda: relay.add(_map(1), relay.arange(*(_number(v) for v in (0, 4e10, 1)))),
    "repeat": lambda: relay.add(_map(1), relay.repeat(relay.const([1.0, 2.0]), 10**9, 0)),
    "tile": lambda: relay.add(_map(1), relay.tile(relay.const([1.0, 2.0]), (SIDE, SIDE))),
    "triangle": lambda: relay.trilu(_map(SIDE, SIDE), _number(0, "int32"), False),
    "upsampling": lambda: relay.nn.upsampling(_map(4, 4), SIDE, SIDE, method="bilinear"),
}


def _map(*shape: int, dtype: str = "float32") -> relay.Var:
    lead = (1, 1) if len(shape) == 2 else ()
    return relay.var("x", shape=(*lead, *shape), dtype=dtype)


def _number(value: float, dtype: str = "float32") -> relay.Constant:
    return relay.const(value, dtype)


def _ends() -> list[relay.Constant]:
    return [relay.const(1.0), relay.const(0.0)]


@pytest.mark.wide
@pytest.mark.parametrize("format", ["coreml", "mxnet", "nnef", "onnx"])
@pytest.mark.parametrize("kind", BIG)
def test_small_models_of_large_tensors_take_little(kind: str, format: str) -> None:
    """What is written, or refused, is not made: no array of more than 300 MB is asked for."""
    pytest.importorskip({"coreml": "coremltools", "onnx": "onnx"}.get(format, "numpy"))
    body = BIG[kind]()
    mod = relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    x = _map(1)
    serde.export_model(relay.IRModule.from_expr(relay.Function([x], x + x)), format=format)
    tracemalloc.start()  # What is imported is, above: traced, MXNet takes half a minute.
    try:
        serde.export_model(mod, format=format)
    except (LimitError, UnsupportedModelError):
        pass
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < 300e6


@pytest.mark.parametrize("format", ["coreml", "nnef", "onnx"])
@pytest.mark.parametrize("kind", ["anchors", "many anchors"])
def test_anchors_draw_from_the_budget(kind: str, format: str) -> None:
    pytest.importorskip({"coreml": "coremltools", "onnx": "onnx"}.get(format, "numpy"))
    body = BIG[kind]()
    mod = relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    with pytest.raises(LimitError, match="--limit constants="):
        serde.export_model(mod, format=format)

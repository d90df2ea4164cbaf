"""Adaptive poolings written as ONNX, against windows cut out in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.onnx_export import OPSETS, run_exported

import serde.relay as relay
from serde.relay.ir.expr import TupleGetItem
from serde.relay.ir.registry import call


def by_windows(
    x: np.ndarray, sizes: tuple[int, ...], reduce: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Reduce each window over the last axes, from the floor of its start to the ceiling."""
    out = np.empty((*x.shape[:2], *sizes), x.dtype)
    lengths = x.shape[2:]
    for place in product(*map(range, sizes)):
        spans = [
            slice(int(np.floor(i * n / m)), int(np.ceil((i + 1) * n / m)))
            for i, n, m in zip(place, lengths, sizes, strict=True)
        ]
        out[(slice(None), slice(None), *place)] = reduce(x[(slice(None), slice(None), *spans)])
    return out


def mean(part: np.ndarray) -> np.ndarray:
    axes = tuple(range(2, part.ndim))
    if part.dtype.kind == "f":
        return part.mean(axes)
    return np.trunc(part.mean(axes)).astype(part.dtype)


def greatest(part: np.ndarray) -> np.ndarray:
    return part.max(tuple(range(2, part.ndim)))


CASES = [
    ((1, 2, 7), (3,)),
    ((2, 3, 12), (4,)),
    ((1, 2, 7, 10), (3, 5)),
    ((1, 2, 3, 4), (5, 6)),
    ((1, 2, 8, 5), (1, 1)),
    ((1, 2, 4, 5, 7), (2, 5, 3)),
]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize(("shape", "sizes"), CASES)
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_pooling(
    kind: str, shape: tuple[int, ...], sizes: tuple[int, ...], symbolic: bool, opset: int
) -> None:
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    build = getattr(relay.nn, f"adaptive_{kind}_pool{len(sizes)}d")
    unknown = [(0, axis) for axis in (0, *range(2, len(shape)))] if symbolic else []
    (found,) = run_exported(
        lambda data: build(data, output_size=sizes), x, opset=opset, symbolic=unknown
    )
    expected = by_windows(x, sizes, mean if kind == "avg" else greatest)
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_pooling_of_integers(kind: str, dtype: str, opset: int) -> None:
    x = np.random.default_rng(4).integers(0, 100, (1, 2, 7, 6))
    x = (x if dtype == "uint8" else x - 50).astype(dtype)
    build = getattr(relay.nn, f"adaptive_{kind}_pool2d")
    (found,) = run_exported(lambda data: build(data, output_size=(3, 2)), x, opset=opset)
    np.testing.assert_array_equal(found, by_windows(x, (3, 2), mean if kind == "avg" else greatest))


def test_infinity_stays_in_its_windows() -> None:
    x = np.array([[[1, 2, 3, 4, np.inf]]], np.float32)
    (found,) = run_exported(lambda data: relay.nn.adaptive_avg_pool1d(data, 3), x, opset=17)
    assert found.tolist() == [[[1.5, 3.0, np.inf]]]


@pytest.mark.parametrize("opset", OPSETS)
def test_only_one_axis_is_pooled(opset: int) -> None:
    x = np.random.default_rng(5).normal(size=(1, 5, 4, 2)).astype(np.float32)
    (found,) = run_exported(
        lambda data: relay.nn.adaptive_max_pool2d(data, (3, 4), layout="NHWC", out_layout="NCHW"),
        x,
        opset=opset,
        symbolic=[(0, 1)],
    )
    np.testing.assert_array_equal(found, by_windows(x.transpose(0, 3, 1, 2), (3, 4), greatest))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
def test_zeros_before_a_max_pool_take_part(symbolic: bool, opset: int) -> None:
    """ONNX Runtime folds a Pad into MaxPool, whose padding is never the largest."""
    x = -1 - np.random.default_rng(4).random((1, 2, 4, 5), dtype=np.float32)
    widths = ((0, 0), (0, 0), (1, 1), (1, 0))
    unknown = [(0, axis) for axis in (0, 2, 3)] if symbolic else []
    (found,) = run_exported(
        lambda data: relay.nn.max_pool2d(relay.nn.pad(data, pad_width=widths), pool_size=(2, 2)),
        x,
        opset=opset,
        symbolic=unknown,
    )
    padded = np.pad(x, widths)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 2), axis=(2, 3))
    np.testing.assert_array_equal(found, windows.max((4, 5)))


@pytest.mark.parametrize("opset", OPSETS)
def test_what_is_padded_may_be_as_wide_as_a_window(opset: int) -> None:
    """ONNX Runtime folds a Pad into AveragePool, and refuses what it then is."""
    x = np.random.default_rng(5).random((1, 2, 7, 8), dtype=np.float32)
    (found,) = run_exported(
        lambda data: relay.nn.avg_pool2d(
            data, pool_size=(2, 2), strides=(2, 2), padding=(1, 1), ceil_mode=True,
            count_include_pad=True,
        ),
        x,
        opset=opset,
        symbolic=[],
    )  # fmt: skip
    padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (1, 1)))[:, :, :10]
    blocks = padded.reshape(1, 2, 5, 2, 5, 2)
    counted = np.minimum(np.arange(5) * 2 + 2, 9) - np.arange(5) * 2
    expected = blocks.sum((3, 5)) / (counted[:, None] * 2)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.wide
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize(
    ("kind", "attrs"),
    [("max", {}), ("avg", {"count_include_pad": True}), ("avg", {"count_include_pad": False})],
)
def test_windows_in_the_padding_alone(
    kind: str, attrs: dict[str, Any], symbolic: bool, opset: int
) -> None:
    """ONNX Runtime loads no pooling of them; they give zeros or the least number."""
    x = np.random.default_rng(4).normal(size=(1, 2, 5, 4)).astype(np.float32)
    build = getattr(relay.nn, f"{kind}_pool2d")
    attrs = {"pool_size": (3, 1), "strides": (2, 1), "padding": (1, 2, 3, 0), **attrs}
    least = np.finfo(np.float32).min if kind == "max" else 0
    rows = np.pad(x, [(0, 0), (0, 0), (1, 3), (2, 0)], constant_values=least)
    held = np.pad(np.ones((5, 4), np.float32), [(1, 3), (2, 0)])
    tops = range(0, 7, 2)
    windows, counts = ([y[..., top : top + 3, :] for top in tops] for y in (rows, held))
    if kind == "max":
        expected = np.stack([part.max(-2) for part in windows], -2)
    else:
        by = [3 if attrs["count_include_pad"] else np.maximum(n.sum(-2), 1) for n in counts]
        expected = np.stack([w.sum(-2) / n for w, n in zip(windows, by, strict=True)], -2)
    unknown = [(0, 2), (0, 3)] if symbolic else []
    (found,) = run_exported(lambda data: build(data, **attrs), x, opset=opset, symbolic=unknown)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_places_of_maxima_with_less_than_no_padding_count_in_the_whole_image() -> None:
    attrs = {
        "pool_size": [2, 2], "strides": [2, 2], "dilation": [1, 1], "padding": [-2, 0, 0, 0],
        "column_major": False,
    }  # fmt: skip
    x = np.random.default_rng(3).permutation(72).reshape(1, 2, 6, 6).astype(np.float32)
    (found,) = run_exported(
        lambda x: TupleGetItem(call("serde.max_pool_with_places", x, **attrs), 1), x, opset=17
    )
    windows = x[:, :, 2:].reshape(1, 2, 2, 2, 3, 2).swapaxes(3, 4).reshape(1, 2, 2, 3, 4)
    value = windows.max(-1).reshape(-1)
    places = [int(np.flatnonzero(x.reshape(-1) == each)[0]) for each in value]
    np.testing.assert_array_equal(found.reshape(-1), places)

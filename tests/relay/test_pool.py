"""Pooling against ONNX Runtime and MXNet, and against windows written out."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from support.kernels import infer, run_decomposed, run_kernel, run_node
from support.mxnet_operators import run_mxnet_operator

from serde.errors import TypeInferenceError

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


WINDOWS = [
    pytest.param((2, 3, 13), (3,), (2,), (1, 0), (1,), id="1d"),
    pytest.param((2, 3, 11, 12), (3, 2), (2, 3), (1, 1, 1, 0), (1, 1), id="2d"),
    pytest.param((1, 2, 11, 12), (2, 3), (1, 1), (0, 0, 0, 0), (3, 2), id="dilated"),
    pytest.param((1, 2, 7, 8), (7, 8), (1, 1), (0, 0, 0, 0), (1, 1), id="whole"),
    pytest.param((1, 2, 5, 6, 7), (2, 3, 2), (1, 2, 2), (1, 1, 0, 0, 1, 1), (1, 1, 1), id="3d"),
]
CALLS = ("shape", "size", "strides", "padding", "dilation")


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(CALLS, WINDOWS)
def test_max_pool_is_onnx(
    shape: Any, size: Any, strides: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> None:
    x = _normal(1, *shape)
    expected = run_node(
        "MaxPool",
        x,
        kernel_shape=size,
        strides=strides,
        pads=padding,
        dilations=dilation,
        ceil_mode=int(ceil_mode),
    )
    found = _pool("max", x, size, strides, padding, dilation, ceil_mode=ceil_mode)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize(CALLS, WINDOWS)
def test_avg_pool_is_onnx(
    shape: Any, size: Any, strides: Any, padding: Any, dilation: Any, include: bool
) -> None:
    x = _normal(2, *shape)
    expected = run_node(
        "AveragePool",
        x,
        opset=19,
        kernel_shape=size,
        strides=strides,
        pads=padding,
        dilations=dilation,
        count_include_pad=int(include),
    )
    found = _pool("avg", x, size, strides, padding, dilation, count_include_pad=include)
    np.testing.assert_allclose(found, expected, **CLOSE)


def _pool(
    kind: str, x: np.ndarray, size: Any, strides: Any, padding: Any, dilation: Any, **attrs: Any
) -> np.ndarray:
    """Pool in channels-last, and put the channels back."""
    space = SPATIAL[len(size)]
    return run_kernel(
        f"nn.{kind}_pool{len(size)}d",
        np.ascontiguousarray(np.moveaxis(x, 1, -1)),
        pool_size=size,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout=f"N{space}C",
        out_layout=f"NC{space}",
        **attrs,
    )


@pytest.mark.parametrize("include", [False, True])
def test_mean_of_windows_that_pass_the_padding(include: bool) -> None:
    """With padding counted, TVM divides by the whole window; else by what lies inside."""
    x = _normal(3, 1, 1, 6, 7)
    expected = np.empty((1, 1, 4, 4), np.float32)
    for row, column in product(range(4), range(4)):
        rows = [r for r in range(2 * row - 1, 2 * row + 2) if 0 <= r < 6]
        columns = [c for c in range(2 * column - 1, 2 * column + 2) if 0 <= c < 7]
        part = x[0, 0][np.ix_(rows, columns)]
        expected[0, 0, row, column] = part.sum() / (9 if include else part.size)
    found = run_kernel(
        "nn.avg_pool2d",
        x,
        pool_size=(3, 3),
        strides=(2, 2),
        padding=(1, 1),
        ceil_mode=True,
        count_include_pad=include,
    )
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_a_window_beyond_the_data_holds_the_lowest_number() -> None:
    """TVM keeps a window that rounding up puts wholly after the data; ONNX drops it."""
    x = np.array([[[1, 2, 3, 4]]], np.float32)
    attrs = {"pool_size": (1,), "strides": (3,), "padding": (0, 1), "ceil_mode": True}
    found = run_kernel("nn.max_pool1d", x, **attrs)
    np.testing.assert_array_equal(found, [[[1, 4, np.finfo(np.float32).min]]])
    found = run_kernel("nn.avg_pool1d", x, **attrs)
    np.testing.assert_array_equal(found, [[[1, 4, 0]]])


def test_integer_means_are_truncated() -> None:
    x = np.array([[[-3, -2, 4, 3]]], np.int8)
    found = run_kernel("nn.avg_pool1d", x, pool_size=(2,), strides=(2,))
    np.testing.assert_array_equal(found, np.array([[[-2, 3]]], np.int8))


def test_integer_sums_do_not_overflow() -> None:
    x = np.full((1, 1, 8, 8), 127, np.int8)
    found = run_kernel("nn.global_avg_pool2d", x)
    np.testing.assert_array_equal(found, np.full((1, 1, 1, 1), 127, np.int8))


@pytest.mark.parametrize(("kind", "op"), [("max", "GlobalMaxPool"), ("avg", "GlobalAveragePool")])
def test_global_pool_is_onnx(kind: str, op: str) -> None:
    x = _normal(4, 2, 3, 9, 10)
    found = run_kernel(f"nn.global_{kind}_pool2d", x)
    np.testing.assert_allclose(found, run_node(op, x), **CLOSE)


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (5, 7), (9, 11)])
def test_adaptive_mean_is_mxnet(size: tuple[int, int]) -> None:
    x = _normal(5, 2, 3, 5, 7)
    expected = run_mxnet_operator("contrib.AdaptiveAvgPooling2D", x, output_size=size)
    found = run_kernel("nn.adaptive_avg_pool2d", x, output_size=size)
    np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_maximum_of_even_parts_is_a_plain_one(rank: int) -> None:
    x = _normal(6, 2, 3, *(4, 6, 8)[:rank])
    size = (2, 3, 2)[:rank]
    step = tuple(n // s for n, s in zip(x.shape[2:], size, strict=True))
    expected = run_node("MaxPool", x, kernel_shape=step, strides=step)
    found = run_kernel(f"nn.adaptive_max_pool{rank}d", x, output_size=size)
    np.testing.assert_array_equal(found, expected)


def test_adaptive_parts_overlap() -> None:
    x = np.arange(7, dtype=np.float32).reshape(1, 1, 7)
    found = run_kernel("nn.adaptive_avg_pool1d", x, output_size=(3,))
    np.testing.assert_allclose(found, [[[1, 3, 5]]])


@pytest.mark.parametrize("run", [run_kernel, run_decomposed])
@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(CALLS, WINDOWS)
def test_lp_pool_is_onnx(
    shape: Any, size: Any, strides: Any, padding: Any, dilation: Any, p: int, run: Any
) -> None:
    x = _normal(7, *shape)
    attrs = {"kernel_shape": size, "strides": strides, "pads": padding, "dilations": dilation}
    expected = run_node("LpPool", x, p=p, **attrs)
    found = run(
        "serde.lp_pool",
        x,
        p=p,
        pool_size=size,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout="NC" + SPATIAL[len(size)],
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("run", [run_kernel, run_decomposed])
def test_lp_pool_is_mxnet(run: Any) -> None:
    x = _normal(8, 2, 3, 8, 9)
    expected = run_mxnet_operator(
        "Pooling", x, kernel=(3, 2), stride=(2, 2), pad=(1, 1), pool_type="lp", p_value=2
    )
    found = run("serde.lp_pool", x, p=2, pool_size=(3, 2), strides=(2, 2), padding=(1, 1))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_lengths_may_be_symbols() -> None:
    found = infer("nn.max_pool2d", ("n", 3, "h", 8), pool_size=(2, 2), strides=(2, 2))
    assert found == "Tensor[(n, 3, floordiv(h, 2), 4), float32]"
    found = infer("nn.global_avg_pool2d", ("n", "c", "h", "w"))
    assert found == "Tensor[(n, c, 1, 1), float32]"


@pytest.mark.parametrize(
    ("name", "shape", "attrs", "message"),
    [
        ("nn.max_pool2d", (1, 3, 2, 2), {"pool_size": (3, 3)}, "does not fit a length of 2"),
        ("nn.max_pool2d", (1, 3, 8), {"pool_size": (3, 3)}, "layout NCHW"),
        ("nn.max_pool2d", (1, 3, 8, 8), {"pool_size": (3,)}, "expected 2 positive numbers"),
        ("nn.avg_pool1d", (1, 3, 8), {"pool_size": (3,), "layout": "NCX"}, "layout"),
        ("nn.adaptive_avg_pool2d", (1, 3, 8, 8), {"output_size": (3, 2, 1)}, "output_size"),
        ("serde.lp_pool", (1, 3, 8, 8), {"pool_size": (2, 2), "p": 0}, "positive"),
    ],
)
def test_refusals(name: str, shape: Any, attrs: Any, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        infer(name, shape, **attrs)

"""MXNet's operators on quantised numbers, against MXNet itself and its oneDNN.

Numbers of levels are compared for equality. That they are equal is the luck of the draw: a
requantisation rounds a product of float32, MXNet's by levels over a range and ours by the range
over levels, so that one in about 1e5 results may lie on the other side of a half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree
from support.mxnet_fused import BYTES, CALIBRATED, end, levels, reals, with_parameters

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError

mx = import_mxnet()

RANGES = [(-4.0, 4.0), (-3.3, 2.1), (0.0, 2.7)]


def graph(name: str, inputs: dict[str, np.ndarray], attrs: dict[str, Any]) -> Any:
    return getattr(mx.sym.contrib, name)(**{key: mx.sym.var(key) for key in inputs}, **attrs)


def check(
    name: str, inputs: dict[str, np.ndarray], tolerance: float | None = None, **attrs: Any
) -> None:
    symbol = graph(name, inputs, attrs)
    model = agree(symbol, inputs, tolerance=tolerance)
    assert list(model.meta.outputs) == symbol.list_outputs()


def refuses(name: str, inputs: dict[str, np.ndarray], reason: str, **attrs: Any) -> None:
    shapes = {key: value.shape for key, value in inputs.items()}
    dtypes = {key: value.dtype.name for key, value in inputs.items()}
    with pytest.raises(UnsupportedModelError, match=reason):
        serde.to_relay(graph(name, inputs, attrs), input_shapes=shapes, input_dtypes=dtypes)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("ends", RANGES)
def test_quantize(dtype: str, ends: tuple[float, float]) -> None:
    inputs = {"data": reals(3, 400), "min_range": end(ends[0]), "max_range": end(ends[1])}
    check("quantize", inputs, out_type=dtype)


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["auto", "int8", "uint8"])
@pytest.mark.parametrize("ends", [None, *RANGES])
@pytest.mark.parametrize("positive", [False, True])
def test_quantize_v2(dtype: str, ends: tuple[float, float] | None, positive: bool) -> None:
    data = reals(3, 400)
    given = {} if ends is None else {"min_calib_range": ends[0], "max_calib_range": ends[1]}
    check("quantize_v2", {"data": abs(data) if positive else data}, out_type=dtype, **given)


@pytest.mark.parametrize("name", ["min_calib_range", "max_calib_range"])
def test_quantize_v2_takes_no_half_of_a_range(name: str) -> None:
    check("quantize_v2", {"data": reals(3, 40)}, **{name: 0.5})


@pytest.mark.parametrize("low", [-3.0, -1.7, -0.3, -5.9, -11.0])
def test_the_end_of_a_range_lies_on_a_half(low: float) -> None:
    data = np.array([low, -low, low / 2, 0], np.float32)
    check("quantize_v2", {"data": data}, min_calib_range=low, max_calib_range=-low)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("ends", [None, (-1.0, 2.0)])
def test_quantized_numbers_pass_a_quantisation(dtype: str, ends: Any) -> None:
    given = {} if ends is None else {"min_calib_range": ends[0], "max_calib_range": ends[1]}
    check("quantize_v2", {"data": levels(dtype, 3, 4)}, out_type=dtype, **given)


def test_bits_that_change_their_meaning_are_refused() -> None:
    refuses("quantize_v2", {"data": levels("uint8", 3, 4)}, "passes the bits on")


@pytest.mark.parametrize("ends", [None, (-1.0, 3.0)])
def test_quantize_asym(ends: tuple[float, float] | None) -> None:
    given = {} if ends is None else {"min_calib_range": ends[0], "max_calib_range": ends[1]}
    check("quantize_asym", {"data": reals(5, 2, 3)}, **given)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("ends", RANGES)
def test_dequantize(dtype: str, ends: tuple[float, float]) -> None:
    low, high = ends
    inputs = {"data": levels(dtype, 4, 64), "min_range": end(low), "max_range": end(high)}
    check("dequantize", inputs)


@pytest.mark.parametrize("dtype", ["auto", "int8", "uint8"])
@pytest.mark.parametrize("ends", [None, *RANGES])
def test_requantize(dtype: str, ends: tuple[float, float] | None) -> None:
    sums = np.random.default_rng(0).integers(-100000, 100000, (3, 200)).astype(np.int32)
    inputs = {"data": sums, "min_range": end(-2e5), "max_range": end(1.5e5)}
    given = {} if ends is None else {"min_calib_range": ends[0], "max_calib_range": ends[1]}
    check("requantize", inputs, out_type=dtype, **given)


def ranged(low: float = -3.0, high: float = 2.0) -> dict[str, np.ndarray]:
    return {"min_data": end(low), "max_data": end(high)}


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 4)])
def test_quantized_act(shape: tuple[int, ...]) -> None:
    check("quantized_act", {"data": levels("int8", *shape), **ranged()}, act_type="relu")


@pytest.mark.parametrize(("act_type", "dtype", "reason"), [
    ("tanh", "int8", "relu of quantised numbers only"),
    ("relu", "uint8", "whose result MXNet takes for int8"),
])  # fmt: skip
def test_quantized_act_refuses(act_type: str, dtype: str, reason: str) -> None:
    inputs = {"data": levels(dtype, 2, 3), **ranged()}
    refuses("quantized_act", inputs, reason, act_type=act_type)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("shape", [(2,), (2, 3), (2, 3, 4, 5)])
def test_quantized_flatten(dtype: str, shape: tuple[int, ...]) -> None:
    check("quantized_flatten", {"data": levels(dtype, *shape), **ranged()})


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "int8"])
def test_quantized_embedding(dtype: str) -> None:
    inputs = {
        "data": np.array([[0, 1, 6], [7, -1, 2]], dtype),
        "weight": levels("int8", 7, 4),
        "min_weight": end(-3),
        "max_weight": end(2),
    }
    check("quantized_embedding", inputs, input_dim=7, output_dim=4)


POOLING = [
    {"kernel": (3, 3), "stride": (2, 2)},
    {"kernel": (2, 2), "stride": (2, 2)},
    {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)},
    {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "count_include_pad": False},
    {"kernel": (2, 2), "stride": (2, 2), "pooling_convention": "full"},
    {"kernel": (3, 3), "stride": (3, 3), "pad": (1, 1), "pooling_convention": "full"},
    {"kernel": (2, 2), "stride": (2, 2), "pooling_convention": "full", "count_include_pad": False},
    {"kernel": (1, 1), "global_pool": True},
    {"kernel": (2, 2), "layout": "NCHW"},
]


@pytest.mark.wide
@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("pool_type", ["max", "avg"])
@pytest.mark.parametrize("attrs", POOLING)
def test_quantized_pooling(dtype: str, pool_type: str, attrs: dict[str, Any]) -> None:
    inputs = {"data": levels(dtype, 2, 3, 7, 7), **ranged()}
    check("quantized_pooling", inputs, pool_type=pool_type, **attrs)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("pool_type", ["max", "avg"])
def test_quantized_pooling_in_space(dtype: str, pool_type: str) -> None:
    inputs = {"data": levels(dtype, 2, 3, 5, 5, 5), **ranged()}
    check("quantized_pooling", inputs, pool_type=pool_type, kernel=(2, 2, 2))


@pytest.mark.parametrize(("shape", "attrs", "reason"), [
    ((2, 3, 7), {"kernel": (2,)}, "two or three spatial axes"),
    ((2, 3, 7, 7), {"kernel": (2, 2), "pool_type": "sum"}, "has max and avg"),
])  # fmt: skip
def test_quantized_pooling_refuses(shape: Any, attrs: dict[str, Any], reason: str) -> None:
    refuses("quantized_pooling", {"data": levels("int8", *shape), **ranged()}, reason, **attrs)


@pytest.mark.wide
@pytest.mark.parametrize(("dtypes", "ranges"), [
    (("int8", "int8"), ((-3, 2), (-1, 2))),
    (("uint8", "uint8"), ((0, 2), (0, 5))),
    (("uint8", "uint8"), ((0, 2), (0, 2))),
    (("uint8", "uint8"), ((-1, 2), (0, 5))),
    (("uint8", "int8"), ((0, 2.03), (-1, 1.57))),
    (("int8", "uint8", "uint8"), ((-1, 1.57), (0, 2.03), (0, 0.7))),
])  # fmt: skip
def test_quantized_concat(dtypes: tuple[str, ...], ranges: Any) -> None:
    inputs = {f"x{i}": levels(d, 2, 3 + i, 4, 4, seed=i) for i, d in enumerate(dtypes)}
    for i, (low, high) in enumerate(ranges):
        inputs |= {f"low{i}": end(low), f"high{i}": end(high)}
    symbol = mx.sym.contrib.quantized_concat(*map(mx.sym.var, inputs), num_args=len(dtypes), dim=1)
    agree(symbol, inputs)


def test_numbers_of_one_range_are_joined_as_they_are() -> None:
    data = mx.sym.var("data")
    sides = [
        mx.sym.contrib.quantize_v2(part, min_calib_range=-1.0, max_calib_range=2.0)
        for part in (data, data * 2)
    ]
    order = [sides[0][0], sides[1][0], sides[0][1], sides[0][2], sides[1][1], sides[1][2]]
    joined = mx.sym.contrib.quantized_concat(*order, num_args=2, dim=1)
    model = agree(joined, {"data": reals(2, 3, 4, 4)})
    assert "dequantize" not in model.mod.astext()


def two(dtypes: tuple[str, str], *shape: int) -> dict[str, np.ndarray]:
    return {
        "lhs": levels(dtypes[0], *shape, seed=1),
        "rhs": levels(dtypes[1], *shape, seed=2),
        "lhs_min": end(-3),
        "lhs_max": end(2),
        "rhs_min": end(-1),
        "rhs_max": end(1.7),
    }


def check_sum(inputs: dict[str, np.ndarray], tolerance: float | None, **attrs: Any) -> None:
    """MXNet is asked several times: it hands oneDNN factors of memory that is free by then.

    So one sum in a hundred has those of an earlier one, more often if those ran before.
    """
    symbol = graph("quantized_elemwise_add", inputs, attrs)
    with_parameters(symbol, {}, inputs, tolerance, runs=9)


@pytest.mark.parametrize("attrs", [CALIBRATED, {"min_calib_range": 0.0, "max_calib_range": 4.03}])
@pytest.mark.parametrize("left", BYTES)
@pytest.mark.parametrize("right", BYTES)
def test_quantized_elemwise_add(left: str, right: str, attrs: dict[str, float]) -> None:
    check_sum(two((left, right), 2, 300), None, **attrs)


@pytest.mark.parametrize("dtype", BYTES)
def test_quantized_elemwise_add_in_int32(dtype: str) -> None:
    """float32, in which MXNet adds, has a step of 256 there, and each term is rounded."""
    check_sum(two((dtype, dtype), 2, 300), 512)


def test_a_sum_in_which_a_side_is_lost_is_refused() -> None:
    refuses("quantized_elemwise_add", two(("int8", "uint8"), 2, 3), "loses the latter")


@pytest.mark.parametrize("attrs", [{}, CALIBRATED, {"enable_float_output": True}])
def test_quantized_elemwise_mul(attrs: dict[str, Any]) -> None:
    inputs = two(("int8", "int8"), 2, 300)
    symbol = mx.sym.contrib.quantized_elemwise_mul(*map(mx.sym.var, inputs), **attrs)
    agree(symbol, inputs)


def test_quantized_elemwise_mul_refuses_uint8() -> None:
    refuses("quantized_elemwise_mul", two(("int8", "uint8"), 2, 3), "int8 only")


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("fix_gamma", [False, True])
@pytest.mark.parametrize("eps", [1e-3, 0.5])
def test_quantized_batch_norm(dtype: str, fix_gamma: bool, eps: float) -> None:
    rng = np.random.default_rng(5)
    names = ("gamma", "beta", "moving_mean", "moving_var")
    values = {name: rng.uniform(0.5, 2, 5).astype(np.float32) for name in names}
    inputs = {"data": levels(dtype, 2, 5, 9, 9), **ranged()}
    attrs = {"fix_gamma": fix_gamma, "eps": eps, "min_calib_range": -3.0, "max_calib_range": 8.0}
    symbol = mx.sym.contrib.quantized_batch_norm(
        **{name: mx.sym.var(name) for name in (*inputs, *values)}, **attrs
    )
    arrays = {name: mx.nd.array(value) for name, value in values.items()}
    with_parameters(symbol, arrays, inputs)


def test_quantized_batch_norm_refuses_sums() -> None:
    inputs = {name: reals(5) for name in ("gamma", "beta", "moving_mean", "moving_var")}
    inputs |= {"data": levels("int8", 2, 5, 3, 3), **ranged()}
    refuses("quantized_batch_norm", inputs, "needs min_calib_range")


def layer(dtype: str, shape: tuple[int, ...], weight: tuple[int, ...], bias: bool) -> Any:
    """Inputs of a layer; with weights of 7 bits no processor's sums of two products saturate."""
    weights = levels("int8", *weight, seed=2) // 2
    inputs = {"data": levels(dtype, *shape, seed=1), "weight": weights}
    if bias:
        inputs["bias"] = levels("int8", weight[0], seed=3)
    inputs |= ranged()
    inputs |= {"min_weight": end(-0.5), "max_weight": end(0.4)}
    if bias:
        inputs |= {"min_bias": end(-1), "max_bias": end(0.9)}
    return inputs


WINDOWS: list[dict[str, Any]] = [{}, {"pad": 1, "stride": 2}, {"dilate": 2}]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(2, 4, 9, 8), (2, 4, 5, 6, 7)])
def test_quantized_conv(shape: tuple[int, ...], bias: bool, window: dict[str, int]) -> None:
    ndim = len(shape) - 2
    inputs = layer("uint8", shape, (6, 4, *[2] * ndim), bias)
    attrs = {name: (value,) * ndim for name, value in window.items()}
    check("quantized_conv", inputs, kernel=(2,) * ndim, num_filter=6, no_bias=not bias, **attrs)


@pytest.mark.parametrize(("dtype", "shape", "groups"), [
    ("int8", (2, 4, 9, 8), 1),
    ("uint8", (2, 4, 9, 8), 2),
    ("uint8", (2, 4, 9), 1),
])  # fmt: skip
def test_quantized_conv_refuses(dtype: str, shape: tuple[int, ...], groups: int) -> None:
    ndim = len(shape) - 2
    inputs = layer(dtype, shape, (6, 4 // groups, *[2] * ndim), True)
    attrs = {"kernel": (2,) * ndim, "num_filter": 6, "num_group": groups}
    refuses("quantized_conv", inputs, "MXNet has uint8, one group", **attrs)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("shape", "flatten"), [
    ((3, 20), True), ((3, 4, 5), True), ((3, 20), False), ((3, 4, 20), False),
])  # fmt: skip
def test_quantized_fully_connected(
    shape: tuple[int, ...], flatten: bool, bias: bool, dtype: str
) -> None:
    inputs = layer(dtype, shape, (7, 20), bias)
    attrs = {"num_hidden": 7, "no_bias": not bias, "flatten": flatten}
    check("quantized_fully_connected", inputs, **attrs)

"""MXNet's operators on quantised numbers, against MXNet itself and its oneDNN.

Numbers of levels are compared for equality. That they are equal is the luck of the draw: a
requantisation rounds a product of float32, MXNet's by levels over a range and ours by the range
over levels, so that one in about 1e5 results may lie on the other side of a half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree, same
from support.mxnet_fused import fused, quantized
from support.oracle import run_mxnet
from support.runtime import newest_runtime_opset, run_onnx

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError
from serde.relay.interpreter import run

mx = import_mxnet()

RANGES = [(-4.0, 4.0), (-3.3, 2.1), (0.0, 2.7)]
CALIBRATED = {"min_calib_range": -3.0, "max_calib_range": 4.1}
BYTES = ["int8", "uint8"]


def levels(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    limits = np.iinfo(dtype)
    drawn = np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape)
    return drawn.astype(dtype)


def reals(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-4, 4, shape).astype(np.float32)


def end(value: float) -> np.ndarray:
    return np.array([value], np.float32)


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


@pytest.mark.parametrize("attrs", [CALIBRATED, {"min_calib_range": 0.0, "max_calib_range": 4.03}])
@pytest.mark.parametrize("left", BYTES)
@pytest.mark.parametrize("right", BYTES)
def test_quantized_elemwise_add(left: str, right: str, attrs: dict[str, float]) -> None:
    check("quantized_elemwise_add", two((left, right), 2, 300), **attrs)


@pytest.mark.parametrize("dtype", BYTES)
def test_quantized_elemwise_add_in_int32(dtype: str) -> None:
    """float32, in which MXNet adds, has a step of 256 there, and each term is rounded."""
    check("quantized_elemwise_add", two((dtype, dtype), 2, 300), tolerance=512)


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


def with_parameters(
    symbol: Any,
    params: dict[str, Any],
    inputs: dict[str, np.ndarray],
    tolerance: float | None = None,
) -> None:
    """Compare a graph with weights, those of auxiliary states among them."""
    expected = run_mxnet(symbol, params, inputs)
    model = serde.to_relay(
        symbol,
        params,
        input_shapes={name: value.shape for name, value in inputs.items()},
        input_dtypes={name: value.dtype.name for name, value in inputs.items()},
    )
    assert list(model.meta.outputs) == symbol.list_outputs()
    values = {**inputs, **{name: value.asnumpy() for name, value in params.items()}}
    result = run(model.main, [values[p.name_hint] for p in model.main.params], mod=model.mod)
    same(result if isinstance(result, tuple) else (result,), expected, tolerance)
    proto = serde.from_relay(model, format="onnx", opset=newest_runtime_opset())
    given = {name: inputs[name] for name in model.meta.inputs}
    same(run_onnx(proto.SerializeToString(), given)[1], expected, tolerance)


def test_quantized_batch_norm_refuses_sums() -> None:
    inputs = {name: reals(5) for name in ("gamma", "beta", "moving_mean", "moving_var")}
    inputs |= {"data": levels("int8", 2, 5, 3, 3), **ranged()}
    refuses("quantized_batch_norm", inputs, "needs min_calib_range")


def layer(dtype: str, shape: tuple[int, ...], weight: tuple[int, ...], bias: bool) -> Any:
    inputs = {"data": levels(dtype, *shape, seed=1), "weight": levels("int8", *weight, seed=2)}
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


def relu(x: Any) -> Any:
    return mx.sym.Activation(x, act_type="relu")


def leaky(x: Any) -> Any:
    return mx.sym.LeakyReLU(x, act_type="leaky", slope=0.1)


def gelu(x: Any) -> Any:
    return mx.sym.LeakyReLU(x, act_type="gelu")


def relu6(x: Any) -> Any:
    return mx.sym.clip(x, 0, 6)


def relu1(x: Any) -> Any:
    return mx.sym.clip(x, 0, 1)


def fused_conv(
    dtype: str = "uint8",
    *,
    shape: tuple[int, ...] = (2, 4, 9, 9),
    channels: int = 6,
    norm: dict[str, Any] | None = None,
    function: Any = None,
    plus: str | None = None,
    behind: Any = None,
    calibrated: bool = True,
    bias: bool = True,
    reverse: bool = False,
    **attrs: Any,
) -> None:
    """Compare a quantised convolution as oneDNN fuses it; weights and data are drawn."""
    ndim = len(shape) - 2
    kernel = (3,) * ndim
    attrs = {
        name: (value,) * ndim if name != "num_group" else value for name, value in attrs.items()
    }
    made = mx.sym.Convolution(
        mx.sym.var("data"), name="c", kernel=kernel, num_filter=channels, no_bias=not bias, **attrs
    )
    if norm is not None:
        made = mx.sym.BatchNorm(made, name="n", **norm)
    if function is not None:
        made = function(made)
    if plus is not None:
        other = mx.sym.var("other")
        made = other + made if reverse else made + other
    if behind is not None:
        made = behind(made)
    rng = np.random.default_rng(7)
    signed = dtype == "int8"
    inputs = {"data": levels(dtype, *shape, seed=1)}
    ranges = {"low": end(-2.7 if signed else 0), "high": end(2.7)}
    depth = shape[1] // attrs.get("num_group", 1)
    params = {"c_weight": rng.normal(0, 0.2, (channels, depth, *kernel))}
    params["c_weight"] *= np.linspace(0.3, 1, channels).reshape(-1, 1, *[1] * ndim)
    if bias:
        params["c_bias"] = rng.normal(0, 0.3, channels)
    if norm is not None:
        params |= {
            "n_gamma": rng.uniform(0.5, 1.5, channels),
            "n_beta": rng.normal(0, 0.3, channels),
        }
        params |= {"n_moving_mean": rng.normal(0, 0.3, channels)}
        params |= {"n_moving_var": rng.uniform(0.5, 1.5, channels)}
    if plus is not None:
        plain = mx.sym.Convolution(mx.sym.var("data"), kernel=kernel, num_filter=channels, **attrs)
        (result,) = plain.infer_shape(data=shape)[1]
        inputs["other"] = levels(plus, *result, seed=2)
        ranges |= {"other_low": end(-1.9), "other_high": end(1.3)}
    symbol = quantized(fused(made), list(ranges), **(CALIBRATED if calibrated else {}))
    arrays = {name: mx.nd.array(value.astype(np.float32)) for name, value in params.items()}
    with_parameters(symbol, arrays, {**inputs, **ranges})


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("norm", [None, {"fix_gamma": False}, {"fix_gamma": True, "eps": 2e-5}])
@pytest.mark.parametrize("function", [None, relu])
def test_fused_conv(dtype: str, calibrated: bool, bias: bool, norm: Any, function: Any) -> None:
    fused_conv(dtype, calibrated=calibrated, bias=bias, norm=norm, function=function)


@pytest.mark.parametrize("function", [leaky, gelu, relu6, relu1])
@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("calibrated", [False, True])
def test_fused_conv_with_a_function(dtype: str, function: Any, calibrated: bool) -> None:
    fused_conv(dtype, function=function, calibrated=calibrated)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("plus", BYTES)
@pytest.mark.parametrize("behind", [None, relu])
@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_fused_conv_with_a_sum(
    dtype: str, plus: str, behind: Any, calibrated: bool, reverse: bool
) -> None:
    """Where dtypes of sum and result differ, MXNet cuts to one and writes the bits of the other."""
    fused_conv(dtype, plus=plus, behind=behind, calibrated=calibrated, bias=False, reverse=reverse)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("channels", "attrs"), [
    (6, {"stride": 2, "pad": 1}), (6, {"dilate": 2}), (4, {"num_group": 4}), (8, {"num_group": 4}),
    (6, {"num_group": 2}), (8, {"num_group": 2, "stride": 2}),
])  # fmt: skip
@pytest.mark.parametrize("calibrated", [False, True])
def test_windows_and_groups_of_a_fused_conv(
    dtype: str, channels: int, attrs: dict[str, int], calibrated: bool
) -> None:
    fused_conv(dtype, channels=channels, calibrated=calibrated, **attrs)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("function", [None, relu])
def test_fused_conv_in_space(dtype: str, function: Any) -> None:
    fused_conv(dtype, shape=(2, 4, 5, 6, 7), function=function)


def fused_dense(
    dtype: str,
    *,
    function: Any = None,
    bias: bool = True,
    shape: tuple[int, ...] = (30, 20),
    flatten: bool = True,
    **attrs: Any,
) -> None:
    """Compare a quantised fully connected layer as oneDNN fuses it."""
    made = mx.sym.FullyConnected(
        mx.sym.var("data"), name="f", num_hidden=5, no_bias=not bias, flatten=flatten
    )
    if function is not None:
        made = function(made)
    rng = np.random.default_rng(7)
    inputs = {"data": levels(dtype, *shape, seed=1)}
    ranges = {"low": end(-2.1), "high": end(2.7)}
    if attrs.get("channel_wise_quantize"):
        params: Any = {"f_weight": rng.normal(0, 0.3, (5, 20)).astype(np.float32)}
        if bias:
            params["f_bias"] = rng.normal(0, 0.3, 5).astype(np.float32)
    else:
        params = {"f_weight": levels("int8", 5, 20, seed=2)}
        ranges |= {"w_low": end(-0.53), "w_high": end(0.43)}
        if bias:
            params["f_bias"] = levels("int8", 5, seed=3)
            ranges |= {"b_low": end(-0.3), "b_high": end(0.71)}
    outputs = 1 if attrs.get("enable_float_output") else 3
    symbol = quantized(fused(made), list(ranges), outputs, **attrs)
    fed = {**inputs, **params, **ranges}
    model = agree(symbol, {name: fed[name] for name in symbol.list_arguments()})
    assert list(model.meta.outputs) == symbol.list_outputs()


ENDS = [{}, CALIBRATED, {"enable_float_output": True}]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("attrs", ENDS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("function", [None, relu, leaky, gelu, relu6, relu1, mx.sym.abs])
def test_fused_dense(dtype: str, attrs: Any, bias: bool, function: Any) -> None:
    fused_dense(dtype, function=function, bias=bias, **attrs)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("attrs", ENDS[1:])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("function", [None, relu])
def test_fused_dense_by_channels(dtype: str, attrs: Any, bias: bool, function: Any) -> None:
    fused_dense(dtype, function=function, bias=bias, channel_wise_quantize=True, **attrs)


@pytest.mark.parametrize(("shape", "flatten"), [((3, 4, 5), True), ((3, 4, 20), False)])
def test_axes_of_a_fused_dense(shape: tuple[int, ...], flatten: bool) -> None:
    fused_dense("uint8", shape=shape, flatten=flatten, **CALIBRATED)


@pytest.mark.parametrize("attrs", ENDS)
def test_fused_queries_and_keys(attrs: Any) -> None:
    made = mx.sym.contrib.interleaved_matmul_selfatt_qk(mx.sym.var("qkv"), heads=2)
    inputs = {"qkv": levels("int8", 5, 3, 24), "low": end(-1.1), "high": end(2.3)}
    outputs = 1 if "enable_float_output" in attrs else 3
    agree(quantized(fused(made), ["low", "high"], outputs, **attrs), inputs)


@pytest.mark.parametrize("attrs", ENDS)
def test_fused_values_and_attention(attrs: Any) -> None:
    made = mx.sym.contrib.interleaved_matmul_selfatt_valatt(
        mx.sym.var("qkv"), mx.sym.var("att"), heads=2
    )
    inputs = {"qkv": levels("int8", 5, 3, 24), "att": levels("uint8", 6, 5, 5, seed=1)}
    ranges = {"low": end(-1.1), "high": end(2.3), "att_low": end(0), "att_high": end(0.9)}
    outputs = 1 if "enable_float_output" in attrs else 3
    agree(quantized(fused(made), list(ranges), outputs, **attrs), {**inputs, **ranges})


@pytest.mark.parametrize("norm", [None, {"fix_gamma": False}])
@pytest.mark.parametrize("behind", [None, relu])
@pytest.mark.parametrize("plus", [False, True])
def test_fused_float_conv(norm: Any, behind: Any, plus: bool) -> None:
    made = mx.sym.Convolution(mx.sym.var("data"), name="c", kernel=(3, 3), num_filter=4)
    if norm is not None:
        made = mx.sym.BatchNorm(made, name="n", **norm)
    inputs = {"data": reals(2, 3, 7, 7)}
    if plus:
        made = made + mx.sym.var("other")
        inputs["other"] = reals(2, 4, 5, 5, seed=1)
    symbol = fused(made if behind is None else behind(made))
    assert "_sg_mkldnn_conv" in symbol.tojson()
    shapes = {name: value.shape for name, value in inputs.items()}
    arguments, _, states = symbol.infer_shape(**shapes)
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    params = {
        name: mx.nd.array(abs(reals(*shape, seed=5)) / 4 + 0.5)
        for name, shape in zip(names, [*arguments, *states], strict=True)
        if name not in inputs
    }
    # Results near 10 are sums of 27 products, which oneDNN takes in another order.
    with_parameters(symbol, params, inputs, tolerance=1e-5)


@pytest.mark.parametrize("function", [None, relu, gelu, relu6, mx.sym.sqrt, mx.sym.square])
def test_fused_float_dense(function: Any) -> None:
    made = mx.sym.FullyConnected(mx.sym.var("data"), name="f", num_hidden=5)
    symbol = (made if function is None else function(made)).get_backend_symbol("MKLDNN")
    assert "_sg_mkldnn_fully_connected" in symbol.tojson()
    inputs = {"data": abs(reals(3, 8)), "f_weight": abs(reals(5, 8, seed=1)), "f_bias": reals(5)}
    agree(symbol, inputs)

"""The layers that MXNet fuses for oneDNN, quantised and float, against MXNet itself.

Numbers of levels are compared for equality, as those of ``test_mxnet_quantized.py`` are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree
from support.mxnet_fused import (
    BYTES,
    CALIBRATED,
    end,
    fused,
    levels,
    quantized,
    reals,
    with_parameters,
)

from serde.compat import import_mxnet

mx = import_mxnet()


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


@pytest.mark.exact_sums
@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("norm", [None, {"fix_gamma": False}, {"fix_gamma": True, "eps": 2e-5}])
@pytest.mark.parametrize("function", [None, relu])
def test_fused_conv(dtype: str, calibrated: bool, bias: bool, norm: Any, function: Any) -> None:
    fused_conv(dtype, calibrated=calibrated, bias=bias, norm=norm, function=function)


@pytest.mark.exact_sums
@pytest.mark.wide
@pytest.mark.parametrize("function", [leaky, gelu, relu6, relu1])
@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("calibrated", [False, True])
def test_fused_conv_with_a_function(dtype: str, function: Any, calibrated: bool) -> None:
    fused_conv(dtype, function=function, calibrated=calibrated)


@pytest.mark.exact_sums
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


@pytest.mark.exact_sums
@pytest.mark.wide
@pytest.mark.thin(2)
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


@pytest.mark.exact_sums
@pytest.mark.wide
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


@pytest.mark.exact_sums
@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("attrs", ENDS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("function", [None, relu, leaky, gelu, relu6, relu1, mx.sym.abs])
def test_fused_dense(dtype: str, attrs: Any, bias: bool, function: Any) -> None:
    fused_dense(dtype, function=function, bias=bias, **attrs)


@pytest.mark.exact_sums
@pytest.mark.wide
@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("attrs", ENDS[1:])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("function", [None, relu])
def test_fused_dense_by_channels(dtype: str, attrs: Any, bias: bool, function: Any) -> None:
    fused_dense(dtype, function=function, bias=bias, channel_wise_quantize=True, **attrs)


@pytest.mark.exact_sums
@pytest.mark.parametrize(("shape", "flatten"), [((3, 4, 5), True), ((3, 4, 20), False)])
def test_axes_of_a_fused_dense(shape: tuple[int, ...], flatten: bool) -> None:
    fused_dense("uint8", shape=shape, flatten=flatten, **CALIBRATED)


@pytest.mark.exact_sums
@pytest.mark.parametrize("attrs", ENDS)
def test_fused_queries_and_keys(attrs: Any) -> None:
    made = mx.sym.contrib.interleaved_matmul_selfatt_qk(mx.sym.var("qkv"), heads=2)
    inputs = {"qkv": levels("int8", 5, 3, 24), "low": end(-1.1), "high": end(2.3)}
    outputs = 1 if "enable_float_output" in attrs else 3
    agree(quantized(fused(made), ["low", "high"], outputs, **attrs), inputs)


@pytest.mark.exact_sums
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


@pytest.mark.parametrize("part", ["qk", "valatt"])
def test_fused_float_attention(part: str) -> None:
    inputs = {"qkv": reals(5, 3, 24), "att": abs(reals(6, 5, 5, seed=1))}
    if part == "qk":
        del inputs["att"]
    build = getattr(mx.sym.contrib, f"interleaved_matmul_selfatt_{part}")
    symbol = fused(build(*map(mx.sym.var, inputs), heads=2))
    assert f"_sg_mkldnn_selfatt_{part}" in symbol.tojson()
    # Results near 50 are sums of four products or five, which oneDNN takes in another order.
    agree(symbol, inputs, tolerance=5e-6)

"""A small net as MXNet's own quantisation leaves it, for oneDNN's fused layers."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from serde.compat import import_mxnet

mx = import_mxnet()


@dataclass(frozen=True)
class QuantizedNet:
    """A quantised net, and the float net that it was made of.

    Attributes:
        symbol: The quantised net.
        params: Its arguments and auxiliary states.
        data: An input.
        float_symbol: The float net.
        float_params: Its arguments and auxiliary states.
    """

    symbol: Any
    params: dict[str, Any]
    data: np.ndarray
    float_symbol: Any
    float_params: dict[str, Any]


def small_net() -> Any:
    """Two residual blocks, with a projection in one; both poolings; a join; a dense head."""

    def layer(x: Any, channels: int, name: str, relu: bool = True, **attrs: Any) -> Any:
        window = {"kernel": (3, 3), "pad": (1, 1), **attrs}
        made = mx.sym.Convolution(x, num_filter=channels, name=name, no_bias=True, **window)
        made = mx.sym.BatchNorm(made, name=f"{name}_norm", fix_gamma=False)
        return mx.sym.Activation(made, act_type="relu") if relu else made

    first = layer(mx.sym.var("data"), 8, "c0", stride=(2, 2))
    inner = layer(layer(first, 8, "c1"), 8, "c2", relu=False)
    block = mx.sym.Activation(first + inner, act_type="relu")
    side = layer(block, 16, "c3", relu=False, stride=(2, 2))
    inner = layer(layer(block, 16, "c4", stride=(2, 2)), 16, "c5", relu=False)
    block = mx.sym.Activation(side + inner, act_type="relu")
    pooled = [
        mx.sym.Pooling(block, kernel=(2, 2), pool_type=kind, name=kind) for kind in ("max", "avg")
    ]
    deep = layer(mx.sym.Concat(*pooled, dim=1), 32, "c6", num_group=32)
    flat = mx.sym.Flatten(mx.sym.Pooling(deep, global_pool=True, kernel=(1, 1), pool_type="avg"))
    dense = mx.sym.FullyConnected(flat, num_hidden=12, name="f0")
    return mx.sym.FullyConnected(mx.sym.Activation(dense, act_type="relu"), num_hidden=5, name="f1")


def quantize_small_net(mode: str, dtype: str = "auto") -> QuantizedNet:
    """Quantise it with calibrated ranges ("naive"), or ranges taken at run time ("none")."""
    symbol, rng = small_net(), np.random.default_rng(0)
    data = rng.normal(0, 1, (8, 3, 24, 24)).astype(np.float32)
    arguments, _, states = symbol.infer_shape(data=(2, 3, 24, 24))
    args = {
        name: rng.normal(0, 1.4 / np.sqrt(np.prod(shape[1:])), shape)
        if len(shape) > 1
        else rng.uniform(0.6, 1.4, shape)
        for name, shape in zip(symbol.list_arguments(), arguments, strict=True)
        if name != "data"
    }
    aux = {
        name: rng.uniform(0.6, 1.4, shape) if name.endswith("var") else rng.normal(0, 0.2, shape)
        for name, shape in zip(symbol.list_auxiliary_states(), states, strict=True)
    }
    calibration: dict[str, Any] = {"calib_mode": mode}
    if mode != "none":
        calibration["calib_data"] = mx.io.NDArrayIter(data=data, batch_size=2)
    quiet = logging.getLogger("quantization")
    quiet.setLevel(logging.ERROR)
    arrays = [{name: mx.nd.array(value) for name, value in each.items()} for each in (args, aux)]
    made, arg, aux_arrays = mx.contrib.quantization.quantize_model(
        symbol.get_backend_symbol("MKLDNN_QUANTIZE"),
        *arrays,
        ctx=mx.cpu(),
        label_names=None,
        quantized_dtype=dtype,
        logger=quiet,
        **calibration,
    )
    quantized = made.get_backend_symbol("MKLDNN_QUANTIZE")
    floats = {**arrays[0], **arrays[1]}
    return QuantizedNet(quantized, {**arg, **aux_arrays}, data[:2], symbol, floats)

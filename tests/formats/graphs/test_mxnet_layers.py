"""Layers of Relay that MXNet has otherwise: the interpreter against MXNet, any batch."""

from __future__ import annotations

import json
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.oracle import run_mxnet

import serde
import serde.relay as relay
from serde.compat import import_mxnet
from serde.relay.run.interpreter import run

IMAGES = ("N", 4, 9, 7)
VOLUMES = ("N", 2, 5, 6, 7)

LAYERS: dict[str, tuple[tuple[Any, ...], tuple[int, ...] | None, Callable[..., Any]]] = {
    "average of the data alone": (IMAGES, None, lambda x: relay.nn.avg_pool2d(
        x, (3, 2), (2, 2), padding=(1, 0, 2, 1))),
    "average past the padding": (IMAGES, None, lambda x: relay.nn.avg_pool2d(
        x, (3, 3), (2, 2), padding=(1, 1), ceil_mode=True, count_include_pad=True)),
    "average of a volume": (VOLUMES, None, lambda x: relay.nn.avg_pool3d(
        x, (2, 3, 2), (2, 1, 2), padding=(1, 0, 0, 0, 2, 1))),
    "dilated maximum": (IMAGES, None, lambda x: relay.nn.max_pool2d(
        x, (2, 2), (2, 1), dilation=(2, 3), padding=(1, 0, 0, 2))),
    "maximum of parts": (VOLUMES, None, lambda x: relay.nn.adaptive_max_pool3d(x, (2, 4, 3))),
    "mean of parts": (VOLUMES, None, lambda x: relay.nn.adaptive_avg_pool3d(x, (3, 2, 5))),
    "transposed, cut unevenly": (VOLUMES, (2, 3, 3, 2, 3), lambda x, w: relay.nn.conv3d_transpose(
        x, w, channels=3, kernel_size=(3, 2, 3), strides=(2, 1, 2), padding=(1, 0, 2, 0, 1, 1))),
    "transposed, longer than its stride": (
        IMAGES, (4, 3, 3, 3), lambda x, w: relay.nn.conv2d_transpose(
            x, w, channels=3, kernel_size=(3, 3), padding=(0, 1), output_padding=(2, 1))),
    "depthwise, several filters a channel": (IMAGES, (4, 2, 3, 3), lambda x, w: relay.nn.conv2d(
        x, w, groups=4, kernel_size=(3, 3), padding=(1, 0, 0, 2))),
    "convolved volume, padded unevenly": (VOLUMES, (3, 2, 2, 3, 2), lambda x, w: relay.nn.conv3d(
        x, w, kernel_size=(2, 3, 2), padding=(1, 0, 0, 0, 2, 1), dilation=(1, 2, 1))),
    "cubic resize": (IMAGES, None, lambda x: relay.image.resize2d(
        x, (5, 12), method="cubic", coordinate_transformation_mode="align_corners")),
    "doubled": (("N", 3, "H", "W"), None, lambda x: relay.image.resize2d(
        x, (2 * x.type.shape[2], 2 * x.type.shape[3]), method="linear",
        coordinate_transformation_mode="half_pixel")),
    "repeated by other factors": (("N", 3, "H", "W"), None, lambda x: relay.nn.upsampling(x, 3, 2)),
    "groups of channels": (IMAGES, (4,), lambda x, w: relay.nn.group_norm(x, w, w, 2, axis=1)),
}  # fmt: skip
"""Shape of the data, that of a weight, and the layer."""


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def returned(function: relay.Function, weights: dict[str, np.ndarray], data: np.ndarray) -> Any:
    """The operators of a function in MXNet, after comparing what it computes."""
    symbol, params = serde.import_model(relay.IRModule.from_expr(function), weights)
    (found,) = run_mxnet(symbol, params, {"data": data})
    expected = run(function, [data, *weights.values()])
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=5e-5)
    names = [node["op"] for node in json.loads(symbol.tojson())["nodes"]]
    return Counter(name for name in names if name != "null")


@pytest.mark.parametrize("name", LAYERS)
def test_layer(mx: Any, name: str) -> None:
    shape, weight, build = LAYERS[name]
    draw = np.random.default_rng(3)
    data = draw.normal(size=[3 if isinstance(dim, str) else dim for dim in shape])
    variables = [relay.var("data", relay.TensorType(shape))]
    weights = {}
    if weight is not None:
        variables.append(relay.var("weight", relay.TensorType(weight)))
        weights["weight"] = draw.normal(size=weight).astype("float32")
    function = relay.Function(variables, build(*variables))
    assert returned(function, weights, data.astype("float32"))


def test_a_channels_last_net_is_transposed_at_its_edges(mx: Any) -> None:
    draw = np.random.default_rng(5)
    shapes = {"one": (3, 3, 3, 8), "bias": (8,), "two": (3, 3, 8, 8)}
    weights = {name: draw.normal(size=shape).astype("float32") for name, shape in shapes.items()}
    data = relay.var("data", relay.TensorType(("N", 12, 12, 3)))
    one, bias, two = (relay.var(name, relay.TensorType(each)) for name, each in shapes.items())
    attrs: dict[str, Any] = {
        "kernel_size": (3, 3), "padding": 1, "data_layout": "NHWC", "kernel_layout": "HWIO"
    }  # fmt: skip
    x = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(data, one, **attrs), bias, axis=3))
    x = relay.nn.max_pool2d(x, (2, 2), (2, 2), layout="NHWC")
    function = relay.Function([data, one, bias, two], relay.nn.conv2d(x, two, **attrs))
    image = draw.normal(size=(2, 12, 12, 3)).astype("float32")
    kinds = returned(function, weights, image)
    assert kinds == {"transpose": 2, "Convolution": 2, "Activation": 1, "Pooling": 1}

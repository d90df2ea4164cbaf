"""MXNet's convolutions at learned places, and blocks of pixels, against MXNet itself."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree, same
from support.oracle import run_mxnet
from support.runtime import run_onnx

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


SMALL: dict[str, Any] = {"kernel": (3, 3), "num_filter": 4}
WHOLE: dict[str, Any] = {
    "kernel": (3, 2), "stride": (2, 1), "pad": (1, 2), "dilate": (1, 2), "num_filter": 4,
    "num_group": 2, "num_deformable_group": 2, "layout": "NCHW",
}  # fmt: skip


def operands(attrs: dict[str, Any], *, mask: bool, bias: bool, dtype: str) -> dict[str, np.ndarray]:
    """Images, and shifts that lead out of them on all sides."""
    draw = np.random.default_rng(3)
    kernel, size = attrs["kernel"], (7, 8)
    groups = attrs.get("num_deformable_group", 1)
    stride, pad, dilate = (attrs.get(name, default) for name, default in (
        ("stride", (1, 1)), ("pad", (0, 0)), ("dilate", (1, 1))))  # fmt: skip
    places = [
        (size[i] + 2 * pad[i] - dilate[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in (0, 1)
    ]
    taps = groups * kernel[0] * kernel[1]
    values = {
        "data": draw.normal(size=(2, 4, *size)),
        "offset": draw.normal(size=(2, 2 * taps, *places), scale=3),
    }
    values["offset"][:, ::3] = np.round(values["offset"][:, ::3])
    if mask:
        values["mask"] = draw.uniform(size=(2, taps, *places))
    values["weight"] = draw.normal(size=(4, 4 // attrs.get("num_group", 1), *kernel))
    if bias:
        values["bias"] = draw.normal(size=4)
    return {name: value.astype(dtype) for name, value in values.items()}


def convolution(mx: Any, inputs: dict[str, np.ndarray], attrs: dict[str, Any]) -> Any:
    build = mx.sym.contrib.DeformableConvolution
    if "mask" in inputs:
        build = mx.sym.contrib.ModulatedDeformableConvolution
    return build(*(mx.sym.var(name) for name in inputs), no_bias="bias" not in inputs, **attrs)


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("attrs", [SMALL, WHOLE], ids=["small", "whole"])
@pytest.mark.parametrize("mask", [False, True], ids=["plain", "modulated"])
def test_deformable(mx: Any, mask: bool, attrs: dict[str, Any], bias: bool, dtype: str) -> None:
    inputs = operands(attrs, mask=mask, bias=bias, dtype=dtype)
    symbol = convolution(mx, inputs, attrs)
    # Before DeformConv, there is a Conv, which ONNX Runtime has not in float64.
    opsets = [13, 17, 19, 22] if dtype == "float32" else [19, 22]
    # sums of up to 36 products of numbers of up to 4
    bound = 2e-5 if dtype == "float32" else None
    agree(symbol, inputs, returns=True, opsets=opsets, tolerance=bound)


@pytest.mark.parametrize("opset", [13, 17, 22])
@pytest.mark.parametrize("mask", [False, True], ids=["plain", "modulated"])
def test_deformable_of_any_batch(mx: Any, mask: bool, opset: int) -> None:
    inputs = operands(WHOLE, mask=mask, bias=True, dtype="float32")
    symbol = convolution(mx, inputs, WHOLE)
    shapes = {name: value.shape for name, value in inputs.items()}
    for name in ("data", "offset", "mask"):
        if name in shapes:
            shapes[name] = ("n", *shapes[name][1:])
    model = serde.to_relay(symbol, input_shapes=shapes)
    proto = serde.from_relay(model, format="onnx", opset=opset)
    fed = {name: inputs[name] for name in model.meta.inputs}
    found = run_onnx(proto.SerializeToString(), fed)[1]
    same(found, run_mxnet(symbol, {}, inputs), 2e-5)


def test_one_node_each(mx: Any) -> None:
    inputs = operands(WHOLE, mask=True, bias=True, dtype="float32")
    shapes = {name: value.shape for name, value in inputs.items()}
    model = serde.to_relay(convolution(mx, inputs, WHOLE), input_shapes=shapes)
    kinds = [node.op_type for node in serde.from_relay(model, format="onnx", opset=19).graph.node]
    assert kinds == ["DeformConv"]


def test_layouts_that_mxnet_has_not(mx: Any) -> None:
    inputs = operands(SMALL, mask=True, bias=True, dtype="float32")
    symbol = convolution(mx, inputs, {**SMALL, "layout": "NCDHW"})
    with pytest.raises(UnsupportedModelError, match="layout NCDHW"):
        serde.to_relay(symbol, input_shapes={name: x.shape for name, x in inputs.items()})


BLOCKS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((6, 7), {"kernel": (2, 3)}),
    ((6, 7), {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 2), "dilate": (1, 3)}),
    ((9, 8), {"kernel": (3, 1), "stride": (3, 2), "dilate": (2, 1)}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("size", "attrs"), BLOCKS)
def test_columns_of_blocks(mx: Any, size: Any, attrs: dict[str, Any], dtype: str) -> None:
    data = np.random.default_rng(1).normal(size=(2, 3, *size)).astype(dtype)
    agree(mx.sym.im2col(mx.sym.var("x"), **attrs), {"x": data})


def test_columns_of_any_batch(mx: Any) -> None:
    symbol = mx.sym.im2col(mx.sym.var("x"), kernel=(3, 2), pad=(1, 1))
    model = serde.to_relay(symbol, input_shapes={"x": ("n", 3, 6, 7)})
    inputs = {"x": np.random.default_rng(2).normal(size=(2, 3, 6, 7)).astype("float32")}
    proto = serde.from_relay(model, format="onnx").SerializeToString()
    same(run_onnx(proto, inputs)[1], run_mxnet(symbol, {}, inputs))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("size", "attrs"), BLOCKS)
def test_images_of_blocks(mx: Any, size: Any, attrs: dict[str, Any], dtype: str) -> None:
    images = mx.nd.zeros((2, 3, *size))
    shape = mx.nd.im2col(images, **attrs).shape
    data = np.random.default_rng(1).normal(size=shape).astype(dtype)
    symbol = mx.sym.col2im(mx.sym.var("x"), output_size=size, **attrs)
    agree(symbol, {"x": data}, opsets=[13] if dtype == "float64" else [13, 21], returns=True)


@pytest.mark.parametrize("name", ["im2col", "col2im"])
def test_blocks_of_one_axis(mx: Any, name: str) -> None:
    """MXNet accepts them in its shapes and fails when it computes them."""
    attrs = {"output_size": (9,)} if name == "col2im" else {}
    symbol = getattr(mx.sym, name)(mx.sym.var("x"), kernel=(3,), **attrs)
    with pytest.raises(UnsupportedModelError, match="two axes alone"):
        serde.to_relay(symbol, input_shapes={"x": (2, 3, 9)})

"""Convolutions against ONNX Runtime and MXNet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import infer, run_kernel, run_node
from support.mxnet_operators import run_mxnet_operator

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.op.conv import windows

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


DIRECT = [
    pytest.param((2, 6, 13), (4, 6, 3), (2,), (1, 2), (2,), 1, id="1d"),
    pytest.param((2, 6, 13), (6, 2, 5), (1,), (0, 0), (1,), 3, id="1d-groups"),
    pytest.param((2, 3, 11, 12), (8, 3, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1, id="3x3"),
    pytest.param((1, 8, 11, 12), (6, 8, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, id="1x1"),
    pytest.param((1, 8, 11, 12), (6, 8, 1, 1), (2, 3), (0, 0, 0, 0), (1, 1), 1, id="1x1-stride"),
    pytest.param((1, 4, 11, 12), (6, 4, 2, 5), (1, 2), (0, 3, 2, 1), (3, 2), 1, id="dilated"),
    pytest.param((2, 8, 9, 9), (12, 2, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 4, id="groups"),
    pytest.param((2, 8, 9, 9), (8, 1, 3, 3), (2, 1), (1, 0, 1, 2), (1, 2), 8, id="depthwise"),
    pytest.param((2, 4, 9, 9), (12, 1, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 4, id="multiplied"),
    pytest.param((1, 4, 5, 6, 7), (4, 2, 2, 3, 3), (2, 1, 2), (1, 0, 1, 0, 2, 1), (1, 2, 1), 2,
                 id="3d"),
]  # fmt: skip


@pytest.mark.parametrize(("x", "w", "strides", "padding", "dilation", "groups"), DIRECT)
def test_convolution_is_onnx(
    x: Any, w: Any, strides: Any, padding: Any, dilation: Any, groups: int
) -> None:
    data, weight = _normal(1, *x), _normal(2, *w)
    expected = run_node(
        "Conv", data, weight, strides=strides, pads=padding, dilations=dilation, group=groups
    )
    name = f"nn.conv{len(strides)}d"
    attrs = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    np.testing.assert_allclose(run_kernel(name, data, weight, **attrs), expected, **CLOSE)


@pytest.mark.parametrize(("x", "w", "strides", "padding", "dilation", "groups"), DIRECT)
def test_channels_last_is_the_same(
    x: Any, w: Any, strides: Any, padding: Any, dilation: Any, groups: int
) -> None:
    data, weight = _normal(1, *x), _normal(2, *w)
    expected = run_node(
        "Conv", data, weight, strides=strides, pads=padding, dilations=dilation, group=groups
    )
    space = SPATIAL[len(strides)]
    found = run_kernel(
        f"nn.conv{len(strides)}d",
        np.moveaxis(data, 1, -1),
        np.moveaxis(weight, (0, 1), (-1, -2)),
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        data_layout=f"N{space}C",
        kernel_layout=f"{space}IO",
        out_layout=f"NC{space}",
    )
    np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("kernel_layout", ["OHWI", "HWOI", "IOHW", "HWIO"])
@pytest.mark.parametrize("data_layout", ["NHWC", "HWCN", "CHWN"])
def test_every_layout_is_a_transposition(data_layout: str, kernel_layout: str) -> None:
    data, weight = _normal(3, 2, 3, 7, 6), _normal(4, 5, 3, 3, 2)
    expected = run_node("Conv", data, weight)
    found = run_kernel(
        "nn.conv2d",
        data.transpose(["NCHW".index(letter) for letter in data_layout]),
        weight.transpose(["OIHW".index(letter) for letter in kernel_layout]),
        data_layout=data_layout,
        kernel_layout=kernel_layout,
    )
    back = found.transpose([data_layout.index(letter) for letter in "NCHW"])
    np.testing.assert_allclose(back, expected, **CLOSE)


def test_depthwise_weight_may_have_the_multiplier_second() -> None:
    data, weight = _normal(5, 1, 4, 6, 6), _normal(6, 12, 1, 3, 3)
    expected = run_node("Conv", data, weight, group=4)
    found = run_kernel("nn.conv2d", data, weight.reshape(4, 3, 3, 3), groups=4)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_groups_may_be_an_axis_of_the_weight() -> None:
    data, weight = _normal(5, 1, 4, 6, 6), _normal(6, 6, 2, 3, 3)
    expected = run_node("Conv", data, weight, group=2)
    grouped = weight.reshape(2, 3, 2, 3, 3)
    found = run_kernel("nn.conv2d", data, grouped, groups=2, kernel_layout="GOIHW")
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_windows_in_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data, weight = _normal(7, 2, 3, 12, 10), _normal(8, 4, 3, 3, 3)
    expected = run_node("Conv", data, weight, strides=(2, 1))
    monkeypatch.setattr(windows, "_COLUMN_BYTES", 1000)
    found = run_kernel("nn.conv2d", data, weight, strides=(2, 1))
    np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_integers_are_exact(dtype: str) -> None:
    limits = np.iinfo(dtype)
    generator = np.random.default_rng(9)
    data = generator.integers(limits.min, limits.max, (1, 64, 6, 6), dtype, endpoint=True)
    weight = generator.integers(limits.min, limits.max, (5, 64, 3, 3), dtype, endpoint=True)
    expected = np.zeros((1, 5, 4, 4), np.int64)
    for y, x in np.ndindex(4, 4):
        patch = data[0, :, y : y + 3, x : x + 3].astype(np.int64)
        expected[0, :, y, x] = (patch * weight.astype(np.int64)).sum((1, 2, 3))
    found = run_kernel("nn.conv2d", data, weight, out_dtype="int64")
    np.testing.assert_array_equal(found, expected)


def test_half_precision_sums_in_single() -> None:
    data = np.ones((1, 4096, 1, 1), np.float16)
    weight = np.full((1, 4096, 1, 1), 1.0009765625, np.float16)
    assert run_kernel("nn.conv2d", data, weight)[0, 0, 0, 0] == 4100


TRANSPOSED = [
    pytest.param((2, 4, 7), (4, 3, 4), (3,), (1, 2), (1,), (2,), 1, id="1d"),
    pytest.param((1, 4, 5, 6), (4, 3, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), (1, 1), 1, id="2d"),
    pytest.param((2, 4, 5, 6), (4, 3, 3, 2), (2, 3), (0, 2, 1, 0), (2, 1), (1, 0), 2, id="groups"),
    pytest.param((1, 4, 5, 6), (4, 1, 4, 4), (2, 2), (1, 1, 1, 1), (1, 1), (0, 0), 4, id="depth"),
    pytest.param((1, 2, 3, 4, 5), (2, 3, 3, 2, 2), (2, 1, 2), (1, 0, 0, 0, 1, 1), (1, 2, 1),
                 (1, 0, 1), 1, id="3d"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("x", "w", "strides", "padding", "dilation", "extra", "groups"), TRANSPOSED
)
def test_transposed_convolution_is_onnx(
    x: Any, w: Any, strides: Any, padding: Any, dilation: Any, extra: Any, groups: int
) -> None:
    data, weight = _normal(1, *x), _normal(2, *w)
    expected = run_node(
        "ConvTranspose",
        data,
        weight,
        strides=strides,
        pads=padding,
        dilations=dilation,
        output_padding=extra,
        group=groups,
    )
    found = run_kernel(
        f"nn.conv{len(strides)}d_transpose",
        data,
        weight,
        strides=strides,
        padding=padding,
        dilation=dilation,
        output_padding=extra,
        groups=groups,
    )
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_deconvolution_is_mxnet() -> None:
    data, weight = _normal(1, 2, 4, 5, 6), _normal(2, 4, 3, 4, 3)
    expected = run_mxnet_operator(
        "Deconvolution",
        data,
        weight,
        kernel=(4, 3),
        stride=(2, 3),
        pad=(1, 0),
        adj=(1, 2),
        num_filter=6,
        num_group=2,
    )
    found = run_kernel(
        "nn.conv2d_transpose",
        data,
        weight,
        strides=(2, 3),
        padding=(1, 0),
        output_padding=(1, 2),
        groups=2,
        channels=6,
        kernel_size=(4, 3),
    )
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_deformable_convolution_without_offsets_is_plain() -> None:
    data, weight = _normal(1, 2, 4, 7, 8), _normal(2, 6, 2, 3, 3)
    offset = np.zeros((2, 36, 3, 6), np.float32)
    expected = run_node(
        "Conv", data, weight, group=2, strides=(2, 1), dilations=(1, 2), pads=(0, 1, 0, 1)
    )
    found = run_kernel(
        "nn.deformable_conv2d",
        data,
        offset,
        weight,
        groups=2,
        deformable_groups=2,
        strides=(2, 1),
        dilation=(1, 2),
        padding=(0, 1, 0, 1),
    )
    np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("is_multiply", [True, False])
def test_correlation_is_mxnet(is_multiply: bool) -> None:
    attrs = {"kernel_size": 3, "max_displacement": 4, "stride1": 2, "stride2": 2}
    a, b = _normal(1, 1, 2, 13, 12), _normal(2, 1, 2, 13, 12)
    expected = run_mxnet_operator("Correlation", a, b, pad_size=4, is_multiply=is_multiply, **attrs)
    found = run_kernel("nn.correlation", a, b, padding=(4,), is_multiply=is_multiply, **attrs)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_untyped_weights_take_their_shape() -> None:
    x = relay.var("x", shape=("n", 6, 9, 9))
    w, v = relay.var("w"), relay.var("v")
    y = relay.nn.conv2d(x, w, channels=8, kernel_size=3, groups=2, kernel_layout="HWIO")
    y = relay.nn.conv2d_transpose(y, v, channels=4, kernel_size=(2, 5))
    relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, w, v], y)))
    assert repr(w.type) == "Tensor[(3, 3, 3, 8), float32]"
    assert repr(v.type) == "Tensor[(8, 4, 2, 5), float32]"


def test_lengths_may_be_symbols() -> None:
    found = infer("nn.conv2d", ("n", 3, "h", 32), (8, 3, 3, 3), padding=(1,), strides=(2, 2))
    assert found == "Tensor[(n, 8, floordiv(h + 1, 2), 16), float32]"
    found = infer("nn.conv2d_transpose", ("n", 3, "h", 8), (3, 8, 4, 4), strides=(2, 2))
    assert found == "Tensor[(n, 8, 2*h + 2, 18), float32]"


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "message"),
    [
        ("nn.conv2d", [(1, 3, 8, 8), (4, 2, 3, 3)], {}, "weight of 2 input channels"),
        ("nn.conv2d", [(1, 3, 8), (4, 3, 3, 3)], {}, "layout NCHW"),
        ("nn.conv2d", [(1, 3, 2, 8), (4, 3, 3, 3)], {}, "does not fit a length of 2"),
        ("nn.conv2d", [(1, 3, 8, 8), (4, 3, 3, 3)], {"groups": 2}, "do not form 2 groups"),
        ("nn.conv2d", [(1, 3, 8, 8), (4, 3, 3, 3)], {"channels": 5}, "channels is 5"),
        ("nn.conv2d", [(1, 3, 8, 8), (4, 3, 3, 3)], {"kernel_size": (3, 2)}, "kernel_size"),
        ("nn.conv2d", [(1, 3, 8, 8), (4, 3, 3, 3)], {"padding": (1, 1, 1)}, "1 or 2 or 4 numbers"),
        ("nn.conv2d", [(1, 3, 8, 8), (4, 3, 3, 3)], {"padding": (-1,)}, "negative"),
        ("nn.conv2d", [(1, 3, 8, 8), (4, 3, 3, 3)], {"strides": (1, 0)}, "positive"),
        ("nn.conv2d", [(1, 3, 8, 8), (4, 3, 3, 3)], {"data_layout": "NCWX"}, "layout"),
        ("nn.conv2d_transpose", [(1, 3, 4, 4), (2, 3, 3, 3)], {}, "2 input channels"),
        ("nn.conv1d_transpose", [(1, 3, 2), (3, 1, 2)], {"padding": (2,)}, "leaves a length"),
        ("nn.deformable_conv2d", [(1, 3, 8, 8), (1, 9, 6, 6), (4, 3, 3, 3)], {}, "offsets"),
        (
            "nn.conv2d_backward_weight",
            [(2, 3, 4, 4), (2, 4, 6, 6)],
            {"kernel_size": (3, 3), "strides": (2, 1), "kernel_layout": "NCHW"},
            "there are 2 windows",
        ),
    ],
)
def test_refusals(name: str, shapes: Any, attrs: Any, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        infer(name, *shapes, **attrs)

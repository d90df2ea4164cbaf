"""MIL's convolutions in Relay, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mil import check_import
from support.one_node import onnx_values

AUTO = {"same": "SAME_UPPER", "same_lower": "SAME_LOWER", "valid": "VALID"}


def draw(*shape: int, seed: int = 7) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, shape).astype(np.float32)


def pairs(pad: list[int]) -> list[int]:
    """Padding of all axes before, then after, of pairs of both."""
    return [*pad[0::2], *pad[1::2]]


CONV: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "line": ((2, 3, 9), (4, 3, 3), {}),
    "image": ((2, 3, 9, 8), (4, 3, 3, 2), {"strides": [2, 1]}),
    "volume": ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), {"strides": [1, 2, 2]}),
    "grouped": ((1, 4, 7, 7), (6, 2, 3, 3), {"groups": 2}),
    "depthwise": ((1, 4, 7, 7), (4, 1, 3, 3), {"groups": 4, "dilations": [2, 1]}),
    "padded": ((1, 3, 7, 8), (2, 3, 3, 3), {"pad_type": "custom", "pad": [1, 2, 0, 3]}),
    "valid": ((1, 3, 7, 8), (2, 3, 3, 3), {"pad_type": "valid", "pad": [1, 1, 1, 1]}),
}
SAME = [("image", [1, 1]), ("image", [2, 3]), ("line", [1]), ("line", [2]), ("volume", [2, 1, 2])]


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", CONV)
def test_conv(name: str, bias: bool, target: str) -> None:
    shape, kernel, attrs = CONV[name]
    x, w = draw(*shape), draw(*kernel, seed=8)
    b = draw(kernel[0], seed=9) if bias else None
    own = {"strides": attrs.get("strides"), "dilations": attrs.get("dilations")}
    own |= {"group": attrs.get("groups", 1)}
    if attrs.get("pad_type") == "custom":
        own["pads"] = pairs(attrs["pad"])
    wanted = onnx_values("Conv", x, w, b, **{k: v for k, v in own.items() if v is not None})
    constants = {"weight": w} | ({"bias": b} if bias else {})
    check_import("conv", {"x": x}, attrs | constants, target=target, expected=[wanted])


@pytest.mark.thin(2)
@pytest.mark.parametrize("pad_type", ["same", "same_lower"])
@pytest.mark.parametrize(("name", "strides"), SAME)
@pytest.mark.parametrize("dilation", [1, 2])
def test_conv_keeps_lengths(name: str, strides: list[int], dilation: int, pad_type: str) -> None:
    """A window with gaps is a wider one with zeros in them."""
    shape, kernel, _ = CONV[name]
    x, w = draw(*shape), draw(*kernel, seed=8)
    wide = np.zeros([*kernel[:2], *((k - 1) * dilation + 1 for k in kernel[2:])], np.float32)
    wide[(slice(None), slice(None), *[slice(None, None, dilation)] * len(strides))] = w
    wanted = onnx_values("Conv", x, wide, strides=strides, auto_pad=AUTO[pad_type])
    dilations = [dilation] * len(strides)
    attrs = {"weight": w, "strides": strides, "dilations": dilations, "pad_type": pad_type}
    check_import("conv", {"x": x}, attrs, target="iOS16", expected=[wanted])


def test_conv_of_a_weight_that_is_computed() -> None:
    x, w = draw(1, 2, 6, 6), draw(3, 2, 3, 3, seed=8)
    check_import("conv", {"x": x, "weight": w}, {}, expected=[onnx_values("Conv", x, w)])


TRANSPOSED: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], dict[str, Any]]] = {
    "line": ((1, 3, 6), (3, 4, 3), {"strides": [2]}, {"strides": [2]}),
    "image": (
        (2, 3, 5, 6),
        (3, 2, 3, 4),
        {"strides": [2, 1], "pad_type": "custom", "pad": [1, 0, 2, 1]},
        {"strides": [2, 1], "pads": [1, 2, 0, 1]},
    ),
    "volume": ((1, 2, 3, 4, 3), (2, 3, 2, 2, 2), {"strides": [2, 2, 1]}, {"strides": [2, 2, 1]}),
    "grouped": (
        (1, 4, 5, 5),
        (4, 3, 3, 3),
        {"groups": 2, "dilations": [2, 1]},
        {"group": 2, "dilations": [2, 1]},
    ),
    "same": (
        (1, 2, 5, 4),
        (2, 3, 4, 3),
        {"pad_type": "same", "strides": [2, 2]},
        {"strides": [2, 2], "pads": [1, 0, 1, 1]},
    ),
    "same_and_longer": (
        (1, 2, 5, 4),
        (2, 3, 1, 2),
        {"pad_type": "same", "strides": [2, 3]},
        {"strides": [2, 3], "output_padding": [1, 1]},
    ),
    "shaped": (
        (1, 2, 5, 4),
        (2, 3, 3, 3),
        {"strides": [2, 2], "pad_type": "custom", "pad": [1] * 4, "output_shape": [1, 3, 10, 7]},
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 0]},
    ),
    "same_and_shaped": (
        (1, 2, 4, 4),
        (2, 3, 3, 3),
        {"strides": [2, 2], "pad_type": "same", "output_shape": [1, 3, 7, 8]},
        {"strides": [2, 2], "pads": [1, 0, 1, 1]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("name", TRANSPOSED)
def test_conv_transpose(name: str, target: str) -> None:
    shape, kernel, attrs, own = TRANSPOSED[name]
    x, w = draw(*shape), draw(*kernel, seed=8)
    b = draw(kernel[1] * attrs.get("groups", 1), seed=9)
    wanted = onnx_values("ConvTranspose", x, w, b, **own)
    constants = {"weight": w, "bias": b}
    check_import("conv_transpose", {"x": x}, attrs | constants, target=target, expected=[wanted])

"""The judge that is written in NumPy, judged itself: by ONNX Runtime's operators and by NumPy.

Where Khronos' runtime and the PyTorch interpreter both cannot say what a fragment computes, these
operators mean the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest
from support.nnef_judges import agree
from support.nnef_reference import REFERENCE
from support.one_node import onnx_values

RNG = np.random.default_rng(15)

MODES: Final = {
    "constant": "constant",
    "replicate": "edge",
    "reflect": "reflect",
    "reflect-even": "symmetric",
}
"""What NumPy calls borders."""

PADDING: Final = [(0, 0), (0, 0), (1, 2), (2, 1)]


def draw(*shape: int) -> np.ndarray:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def check(found: np.ndarray, expected: np.ndarray) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    if expected.dtype.kind in "iu":
        found = found.astype(np.int64)
        expected = expected.astype(np.int64)
    assert agree([found], [expected]) == ""


@pytest.mark.parametrize("border", MODES)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pads(border: str, rank: int) -> None:
    x = draw(*(4, 5, 3)[:rank])
    padding = [(2, 1), (3, 2), (1, 0)][:rank]
    check(REFERENCE["pad"](x, padding=padding, border=border), np.pad(x, padding, MODES[border]))


@pytest.mark.parametrize("border", MODES)
@pytest.mark.parametrize("dilation", [[1, 1], [2, 3]])
def test_convolutions(border: str, dilation: list[int]) -> None:
    x, w, c = draw(2, 4, 7, 8), draw(6, 2, 3, 2), draw(1, 6)
    attributes = {"stride": [2, 1], "dilation": dilation, "groups": 2}
    found = REFERENCE["conv"](x, w, c, border=border, padding=PADDING[2:], **attributes)
    extended = np.pad(x, PADDING, MODES[border])
    expected = onnx_values("Conv", extended, w, c[0], strides=[2, 1], dilations=dilation, group=2)
    check(found, expected)


@pytest.mark.parametrize("border", MODES)
@pytest.mark.parametrize("dilation", [[1, 1], [2, 3]])
def test_pools(border: str, dilation: list[int]) -> None:
    x = draw(1, 2, 8, 7)
    window = {"size": [1, 1, 3, 2], "stride": [1, 1, 2, 1], "dilation": [1, 1, *dilation]}
    extended = np.pad(x, PADDING, MODES[border])
    theirs = {"kernel_shape": [3, 2], "strides": [2, 1], "dilations": dilation}
    for op, other in (("avg_pool", "AveragePool"), ("max_pool", "MaxPool")):
        found = REFERENCE[op](x, padding=PADDING, border=border, **window)
        check(found, onnx_values(other, extended, **theirs))
    found = REFERENCE["rms_pool"](x, padding=PADDING, border=border, **window)
    check(found, np.sqrt(onnx_values("AveragePool", extended**2, **theirs)))
    found = REFERENCE["box"](x, padding=PADDING, border=border, **window)
    check(found, 6 * onnx_values("AveragePool", extended, **theirs))


@pytest.mark.parametrize("border", MODES)
@pytest.mark.parametrize("dilation", [1, 2])
def test_places_in_windows(border: str, dilation: int) -> None:
    """ONNX has places in the tensor: from those follow the places in the window."""
    x = draw(1, 1, 8, 7)
    extended = np.pad(x, PADDING, MODES[border])
    window = {"size": [1, 1, 3, 2], "stride": [1, 1, 2, 1], "dilation": [1, 1, dilation, 1]}
    found = REFERENCE["argmax_pool"](x, padding=PADDING, border=border, **window)
    _values, places = onnx_values(
        "MaxPool", extended, outputs=2, kernel_shape=[3, 2], strides=[2, 1], dilations=[dilation, 1]
    )
    row, column = np.divmod(places[0, 0], extended.shape[3])
    first = np.arange(row.shape[0])[:, None] * 2
    expected = (row - first) // dilation * 2 + column - np.arange(row.shape[1])
    check(found[0, 0], expected)
    sampled = REFERENCE["sample"](x, found, padding=PADDING, border=border, **window)
    check(sampled, REFERENCE["max_pool"](x, padding=PADDING, border=border, **window))


@pytest.mark.parametrize("op", ["desample", "max_unpool"])
def test_unpooling(op: str) -> None:
    x = draw(1, 2, 6, 8)
    window = {"size": [1, 1, 2, 2], "stride": [1, 1, 2, 2], "padding": [(0, 0)] * 4}
    values, index = REFERENCE["max_pool_with_index"](x, **window)
    theirs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    pooled, places = onnx_values("MaxPool", x, outputs=2, **theirs)
    check(values, pooled)
    check(
        REFERENCE[op](values, index, **window), onnx_values("MaxUnpool", pooled, places, **theirs)
    )


@pytest.mark.parametrize("border", MODES)
@pytest.mark.parametrize("stride", [1, 2])
def test_transposed(border: str, stride: int) -> None:
    """The input goes on beyond its border: as far as a window reaches is enough."""
    x, w = draw(1, 4, 4, 5), draw(4, 3, 3, 2)
    zero = np.zeros(())
    window = {"stride": [stride] * 2, "dilation": [1, 2], "padding": [(1, 0), (0, 1)]}
    more = 3
    extended = np.pad(x, [(0, 0), (0, 0), (more, more), (more, more)], MODES[border])
    whole = onnx_values(
        "ConvTranspose", extended, w, strides=[stride] * 2, dilations=[1, 2], group=1
    )
    found = REFERENCE["deconv"](x, w, zero, border=border, **window)
    rows, columns = more * stride + 1, more * stride
    expected = whole[:, :, rows : rows + found.shape[2], columns : columns + found.shape[3]]
    check(found, expected)


@pytest.mark.parametrize("border", MODES)
def test_debox(border: str) -> None:
    x = draw(1, 2, 4, 5)
    window = {
        "size": [1, 1, 3, 2],
        "stride": [1, 1, 2, 1],
        "padding": [(0, 0), (0, 0), (1, 1), (0, 1)],
    }
    ones, zero = np.ones((2, 1, 3, 2), np.float32), np.zeros(())
    whole = REFERENCE["deconv"](
        x, ones, zero, border=border, stride=[2, 1], padding=[(1, 1), (0, 1)], groups=2
    )
    check(REFERENCE["debox"](x, border=border, **window), whole)
    check(REFERENCE["avg_unpool"](x, border=border, **window), whole / 6)


def _upsampled(x: np.ndarray, factor: Sequence[int], method: str) -> np.ndarray:
    mode = {"symmetric": "half_pixel", "asymmetric": "asymmetric", "aligned": "align_corners"}
    scales = np.array([1, 1, *factor], np.float32)
    return onnx_values(
        "Resize", x, None, scales, mode="linear", coordinate_transformation_mode=mode[method]
    )


@pytest.mark.parametrize("factor", [[2], [3], [2, 2], [2, 3], [1, 4], [2, 1, 3]])
@pytest.mark.parametrize("method", ["symmetric", "asymmetric", "aligned"])
def test_upsampling(factor: list[int], method: str) -> None:
    x = draw(1, 2, *(4, 3, 3)[: len(factor)])
    op = REFERENCE["multilinear_upsample"]
    check(op(x, factor=factor, method=method), _upsampled(x, factor, method))


@pytest.mark.parametrize("factor", [[2], [3], [2, 2], [2, 3], [1, 4]])
@pytest.mark.parametrize("method", ["symmetric", "asymmetric"])
def test_upsampling_between_zeros(factor: list[int], method: str) -> None:
    x = draw(1, 2, *(4, 3)[: len(factor)])
    found = REFERENCE["multilinear_upsample"](x, factor=factor, method=method, border="constant")
    around = _upsampled(np.pad(x, [(0, 0), (0, 0)] + [(1, 1)] * len(factor)), factor, method)
    inner = tuple(slice(f, -f) for f in factor)
    check(found, around[(slice(None), slice(None), *inner)])


@pytest.mark.parametrize("axes", [[0, 2], [2, 0], [1, 2], [0, 1, 2]])
@pytest.mark.parametrize("op", ["argmax_reduce", "argmin_reduce"])
def test_places_along_axes(op: str, axes: list[int]) -> None:
    x = draw(2, 3, 4)
    other = {"argmax_reduce": "ArgMax", "argmin_reduce": "ArgMin"}[op]
    kept = [axis for axis in range(3) if axis not in axes]
    rows = x.transpose([*kept, *sorted(axes)]).reshape([*(x.shape[axis] for axis in kept), -1])
    expected = onnx_values(other, rows, axis=-1, keepdims=0)
    found = REFERENCE[op](x, axes=axes)
    assert found.shape == tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    check(found.reshape(expected.shape), expected)


OPSET: Final = 21
"""The last in which ONNX Runtime has kernels for regions."""

ROIS: Final = np.array([[0, 0, 3, 4], [1, 2, 5, 5], [2, 1, 4, 3]], np.float32)
PARTS: Final = np.array([[0.5, 0.75, 3.5, 4], [1.25, 2, 4.75, 5.25], [2, 1.5, 4.5, 3]], np.float32)
BATCH: Final = np.array([0, 1, 1], np.int64)


@pytest.mark.parametrize("size", [[2, 2], [3, 2], [1, 1]])
def test_regions_pooled(size: list[int]) -> None:
    x = draw(2, 2, 7, 7)
    numbered = np.concatenate([BATCH[:, None].astype(np.float32), ROIS], axis=1)
    expected = onnx_values("MaxRoiPool", x, numbered, opset=OPSET, pooled_shape=size)
    check(REFERENCE["max_roi_pool"](x, ROIS, BATCH, output_size=size), expected)


@pytest.mark.parametrize("rate", [1, 2, 3])
@pytest.mark.parametrize("method", ["symmetric", "asymmetric"])
def test_regions_aligned(rate: int, method: str) -> None:
    """ONNX samples in the middle of each cell: `asymmetric` lies half a cell before."""
    x = draw(2, 2, 7, 7)
    size = [2, 3]
    attributes = {"output_size": size, "sampling_rate": [rate, rate], "resize_method": method}
    found = REFERENCE["avg_roi_align"](x, PARTS, BATCH, **attributes)
    wide = (PARTS[:, 2] - PARTS[:, 0]) / (size[1] * rate)
    high = (PARTS[:, 3] - PARTS[:, 1]) / (size[0] * rate)
    middle = np.stack([wide, high, wide, high], axis=1) / 2
    expected = onnx_values(
        "RoiAlign",
        x,
        (PARTS if method == "symmetric" else PARTS - middle).astype(np.float32),
        BATCH,
        opset=OPSET,
        mode="avg",
        output_height=size[0],
        output_width=size[1],
        sampling_ratio=rate,
        coordinate_transformation_mode=(
            "half_pixel" if method == "symmetric" else "output_half_pixel"
        ),
    )
    check(found, expected)


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("alpha", [1.0, 0.25])
def test_responses_normalised(size: int, alpha: float) -> None:
    x = draw(2, 6, 3, 2)
    attributes = {"alpha": alpha, "beta": 0.75, "bias": 1.5}
    found = REFERENCE["local_response_normalization"](x, size=[1, size, 1, 1], **attributes)
    check(found, onnx_values("LRN", x, size=size, **attributes))


@pytest.mark.parametrize(("signed", "zero"), [(True, -3), (False, 120)])
def test_quantised(signed: bool, zero: int) -> None:
    x = draw(4, 5)
    scale = np.float32(0.01)
    point = np.array(zero, np.int8 if signed else np.uint8)
    codes = onnx_values("QuantizeLinear", x, np.array(scale), point)
    expected = onnx_values("DequantizeLinear", codes, np.array(scale), point)
    attributes = {"bits": 8, "signed": signed, "symmetric": False}
    found = REFERENCE["zero_point_linear_quantize"](
        x, np.array(zero), np.array(scale), **attributes
    )
    check(found, expected)

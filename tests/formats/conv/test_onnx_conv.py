"""Convolutions that ONNX lacks, written out in its operators, against loops in NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support.onnx_export import OPSETS, run_exported
from support.runtime import run_onnx

import serde
import serde.relay as relay
from serde.errors import UnsupportedModelError


def read(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """Channels of an image between pixels: zero before the first, fading behind the last."""
    channels, height, width = image.shape
    total = np.zeros(channels)
    if not (0 <= y < height and 0 <= x < width):
        return total
    top, left = int(y), int(x)
    for row, column in product((top, top + 1), (left, left + 1)):
        if row < height and column < width:
            total += image[:, row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


def deformed(
    data: np.ndarray,
    offset: np.ndarray,
    weight: np.ndarray,
    *,
    strides: tuple[int, int],
    padding: tuple[int, ...],
    dilation: tuple[int, int],
    groups: int,
    parts: int,
) -> np.ndarray:
    batch, inputs = data.shape[:2]
    outputs, per_group, *window = weight.shape
    out = np.zeros((batch, outputs, *offset.shape[2:]))
    for n, row, column in np.ndindex(batch, *offset.shape[2:]):
        taps = np.zeros((inputs, *window))
        for part, (i, j) in product(range(parts), np.ndindex(*window)):
            at = 2 * (part * window[0] * window[1] + i * window[1] + j)
            down, right = offset[n, at : at + 2, row, column].astype(np.float64)
            y = row * strides[0] - padding[0] + i * dilation[0] + down
            x = column * strides[1] - padding[1] + j * dilation[1] + right
            span = slice(part * inputs // parts, (part + 1) * inputs // parts)
            taps[span, i, j] = read(data[n, span], y, x)
        for o in range(outputs):
            first = o // (outputs // groups) * per_group
            out[n, o, row, column] = (weight[o] * taps[first : first + per_group]).sum()
    return out


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize(("groups", "parts"), [(1, 1), (2, 1), (1, 2), (2, 4)])
def test_deformable_convolution(groups: int, parts: int, symbolic: bool, opset: int) -> None:
    generator = np.random.default_rng(3)
    data = generator.normal(size=(2, 4, 6, 7)).astype(np.float32)
    weight = generator.normal(size=(4, 4 // groups, 3, 2)).astype(np.float32)
    offset = generator.uniform(-2, 2, (2, 12 * parts, 3, 5)).astype(np.float32)
    offset[:, :, 0, :2] = np.round(offset[:, :, 0, :2])
    attrs = {"strides": (2, 1), "padding": (1, 0, 1, 0), "dilation": (1, 2), "groups": groups}
    (found,) = run_exported(
        lambda x, o, w: relay.nn.deformable_conv2d(x, o, w, deformable_groups=parts, **attrs),
        data, offset, weight, opset=opset,
        symbolic=[(0, 0), (0, 2), (0, 3)] if symbolic else [],
    )  # fmt: skip
    expected = deformed(data, offset, weight, parts=parts, **attrs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("multiply", [False, True], ids=["difference", "product"])
@pytest.mark.parametrize(
    ("kernel", "reach", "steps"), [(1, 0, (2, 1)), (3, 3, (1, 2)), (1, 2, (1, 1))]
)
def test_correlation(
    kernel: int, reach: int, steps: tuple[int, int], multiply: bool, opset: int
) -> None:
    generator = np.random.default_rng(4)
    a, b = (generator.normal(size=(2, 3, 8, 9)).astype(np.float32) for _ in "ab")
    (found,) = run_exported(
        lambda x, y: relay.nn.correlation(
            x, y, kernel, reach, *steps, (1, 2), multiply, "NCHW"
        ),
        a, b, opset=opset, symbolic=[(0, 0), (0, 3), (1, 0), (1, 3)],
    )  # fmt: skip
    first, second = (np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2))) for x in (a, b))
    near = kernel // 2
    border = reach + near
    shifts = range(-(reach // steps[1]) * steps[1], reach + 1, steps[1])
    rows, columns = (range(border, n - border, steps[0]) for n in first.shape[2:])
    expected = np.zeros((2, len(shifts) ** 2, len(rows), len(columns)))
    for (d, (down, right)), (i, y), (j, x) in product(
        enumerate(product(shifts, repeat=2)), enumerate(rows), enumerate(columns)
    ):
        one = first[:, :, y - near : y + near + 1, x - near : x + near + 1]
        y, x = y + down, x + right
        two = second[:, :, y - near : y + near + 1, x - near : x + near + 1]
        likeness = one * two if multiply else np.abs(one - two)
        expected[:, d, i, j] = likeness.mean((1, 2, 3))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("groups", "strides", "padding", "extra", "dilation"),
    [
        (1, (1, 1), (0, 0, 0, 0), (0, 0), (1, 1)),
        (2, (2, 3), (1, 0, 0, 1), (1, 2), (1, 1)),
        (1, (3, 2), (3, 2, 3, 2), (2, 1), (1, 1)),
        (4, (2, 1), (1, 1, 2, 0), (0, 0), (2, 1)),
    ],
)
@pytest.mark.parametrize(
    "dtypes", [("uint8", "int8"), ("int8", "uint8"), ("int16", "int8"), ("uint16", "uint8")]
)
def test_transposed_convolution_of_bytes(
    dtypes: tuple[str, str],
    groups: int,
    strides: tuple[int, int],
    padding: tuple[int, ...],
    extra: tuple[int, int],
    dilation: tuple[int, int],
    opset: int,
) -> None:
    generator = np.random.default_rng(5)
    # Sums of two products stay in int16, in which some processors saturate them.
    most = 128 if dtypes == ("int8", "uint8") else 2**16
    x, w = (
        generator.integers(info.min, min(info.max + 1, most), shape).astype(info.dtype)
        for info, shape in zip(map(np.iinfo, dtypes), [(2, 4, 3, 5), (4, 3, 3, 2)], strict=True)
    )
    points = [int(np.iinfo(dtype).min) + 77 for dtype in dtypes]
    zeros = [relay.const(point, "int32") for point in points]
    scales = [relay.const(0.5, "float32")] * 2
    (found,) = run_exported(
        lambda a, b: relay.qnn.op.conv2d_transpose(
            a, b, *zeros, *scales, strides, padding, dilation, groups, 3 * groups, (3, 2),
            output_padding=extra,
        ),
        x, w, opset=opset, symbolic=[(0, 0), (0, 2)],
    )  # fmt: skip
    wide, kernel = x.astype(np.int64) - points[0], w.astype(np.int64) - points[1]
    reach = [d * (k - 1) for d, k in zip(dilation, (3, 2), strict=True)]
    full = [
        (n - 1) * s + r + 1 + e for n, s, r, e in zip((3, 5), strides, reach, extra, strict=True)
    ]
    whole = np.zeros((2, 3 * groups, *full), np.int64)
    for c, i, j in np.ndindex(4, 3, 2):
        group = c // (4 // groups)
        rows = slice(i * dilation[0], i * dilation[0] + 2 * strides[0] + 1, strides[0])
        columns = slice(j * dilation[1], j * dilation[1] + 4 * strides[1] + 1, strides[1])
        part = wide[:, c, None] * kernel[c, :, i, j, None, None]
        whole[:, 3 * group : 3 * group + 3, rows, columns] += part
    top, left, bottom, right = padding
    expected = whole[:, :, top : full[0] - bottom, left : full[1] - right]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("opset", OPSETS)
def test_as_many_filters_as_groups(opset: int) -> None:
    """A weight (groups, inputs of a group, ...) is depthwise only if data has as many channels."""
    generator = np.random.default_rng(6)
    x = generator.normal(size=(1, 6, 4, 5)).astype(np.float32)
    w = generator.normal(size=(2, 3, 1, 1)).astype(np.float32)
    (found,) = run_exported(
        lambda a, b: relay.nn.conv2d(a, b, groups=2, channels=2, kernel_size=(1, 1)),
        x, w, opset=opset,
    )  # fmt: skip
    parts = x.reshape(1, 2, 3, 4, 5) * w.reshape(1, 2, 3, 1, 1)
    np.testing.assert_allclose(found, parts.sum(2), rtol=1e-5, atol=1e-6)


def test_channels_of_an_open_group() -> None:
    """A weight of (c, c / 4, k) has channels of a group, whatever c is."""
    c = relay.symbol("c")
    x, w = relay.var("x", shape=(1, c, 9)), relay.var("w", shape=(c, c // 4, 3))
    result = relay.nn.conv1d(x, w, groups=4)
    module = relay.IRModule.from_expr(relay.Function([x, w], result))
    proto = serde.from_relay(module, format="onnx")
    generator = np.random.default_rng(6)
    data, weight = (
        generator.normal(size=size).astype("float32") for size in ((1, 8, 9), (8, 2, 3))
    )
    windows = np.lib.stride_tricks.sliding_window_view(data[0], 3, axis=-1).reshape(4, 2, 7, 3)
    expected = np.einsum("gctk,gock->got", windows, weight.reshape(4, 2, 2, 3)).reshape(1, 8, 7)
    (found,) = run_onnx(proto.SerializeToString(), {"x": data, "w": weight})[1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("format", ["onnx", "coreml"])
def test_an_open_weight_that_may_hold_filters_of_channels(format: str) -> None:
    """With 4 channels a weight (4, m, k) makes 4 * m of them; with 8 it has 8."""
    x, w = relay.var("x", shape=(1, "c", 9)), relay.var("w", shape=("c", "m", 3))
    result = relay.nn.conv1d(x, w, groups=4)
    module = relay.IRModule.from_expr(relay.Function([x, w], result))
    with pytest.raises(UnsupportedModelError, match="may hold filters of each channel"):
        serde.from_relay(module, format=format)

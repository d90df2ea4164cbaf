"""Greyscale morphology."""

from __future__ import annotations

from functools import partial
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Arguments, Array, Dim, Layout, lowest, relay_op, sample, tensor
from serde.relay.ir.shapes import (
    at,
    conv_dim,
    join_dim,
    layout_axes,
    require_same_dtype,
    require_window,
    split_padding,
)
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import filters
from serde.relay.lowering.image import decompose_dilation2d
from serde.relay.op.conv.windows import pad_sides, padding_sides, per_axis, taps


def _dilation2d_type(
    data: TensorType, weight: TensorType,
    *, strides: tuple[int, ...], padding: tuple[int, ...], dilations: tuple[int, ...],
    data_layout: str, kernel_layout: str, out_dtype: np.dtype[AnyValue] | None,
) -> TensorType:  # fmt: skip
    """The window has as many channels as the image."""
    require_same_dtype(data, weight)
    require_window(2, strides=strides, dilations=dilations)
    axes, kernel_axes = layout_axes(data_layout, "NCHW"), layout_axes(kernel_layout, "IHW")
    if data.rank != 4 or weight.rank != 3:
        raise TypeInferenceError(f"expected images and a window, found {data!r} and {weight!r}")
    shape: list[Dim] = list(data.shape)
    channels, *kernel = at(weight.shape, kernel_axes)
    shape[axes[1]] = join_dim(shape[axes[1]], channels)
    before, after = split_padding(padding, 2)
    for i, axis in enumerate(axes[2:]):
        sides = before[i] + after[i]
        shape[axis] = conv_dim(shape[axis], kernel[i], strides[i], sides, dilations[i])
    return TensorType(shape, data.dtype if out_dtype is None else dtype_name(out_dtype))


def _window_numbers(given: AnyValue) -> AnyValue:
    """Return two numbers of what a builder was given; TVM takes four, and ignores the last two."""
    numbers = per_axis(given, 2)
    return tuple(numbers)[:2] if len(numbers) == 4 else numbers


@relay_op(
    "image.dilation2d", traits=(filters(1, 8), Layout("data_layout"),),
    infer=_dilation2d_type,
    samples=[
        sample((2, 3, 6, 7), (3, 2, 3)),
        sample((1, 7, 6, 2), (3, 2, 2), strides=(2, 1), padding=(1, 0, 2, 1), dilations=(1, 2),
               data_layout="NHWC", kernel_layout="HWI"),
        sample(tensor((1, 2, 5, 5), "int32"), tensor((2, 3, 3), "int32"), padding=(1, 1)),
        sample(tensor((1, 1, 4, 4), "float16"), tensor((1, 2, 2), "float16"),
               out_dtype="float32"),
    ],
    decompose=decompose_dilation2d,
    arguments=Arguments(
        convert={
            "strides": _window_numbers,
            "dilations": _window_numbers,
            "padding": partial(padding_sides, rank=2),
        }
    ),
)  # fmt: skip
def dilation2d(
    data: Array, weight: Array,
    *, strides: tuple[int, ...] = (1, 1), padding: tuple[int, ...] = (0, 0),
    dilations: tuple[int, ...] = (1, 1), data_layout: str = "NCHW", kernel_layout: str = "IHW",
    out_dtype: np.dtype[AnyValue] | None = None,
) -> Array:  # fmt: skip
    """The greatest sum of an element and that of a window over it, for each place of the window.

    Around the image lies the least number of its dtype.
    """
    dtype = data.dtype if out_dtype is None else out_dtype
    images = data.transpose(layout_axes(data_layout, "NCHW"))
    window = weight.transpose(layout_axes(kernel_layout, "IHW")).astype(dtype)
    padded = pad_sides(images, *split_padding(padding, 2), lowest(data.dtype)).astype(dtype)
    counts = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, s, d in zip(padded.shape[2:], window.shape[1:], strides, dilations, strict=True)
    ]
    sums = [
        padded[(slice(None), slice(None), *where)] + window[(slice(None), *place, None, None)]
        for place, where in taps(window.shape[1:], strides, dilations, counts)
    ]
    return np.maximum.reduce(sums).transpose(layout_axes("NCHW", data_layout))

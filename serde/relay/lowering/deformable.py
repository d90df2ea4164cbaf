"""Convolutions at positions that are learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
from serde.core.weights import dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Dim, Expr, Tuple, as_dtype, call, const, split_padding, tensor_type
from serde.relay.lowering.layout import arranged
from serde.relay.lowering.lengths import length_of, positions

__all__ = ["decompose_deform_conv2d", "decompose_deformable_conv2d"]


def _positions_of_taps(
    offset: Expr,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    shift: float = 0.0,
) -> list[Expr]:
    """Return where taps read, down and across: ``(N * groups, taps, rows, columns)``.

    They are counted from `shift` before the first pixel's centre.
    """
    rows, columns = tensor_type(offset).shape[2:]
    taps, dtype = kernel[0] * kernel[1], tensor_type(offset).dtype
    shifts = call("reshape", offset, newshape=(-1, taps, 2, rows, columns))
    found = list[Expr]()
    for axis, count in enumerate((rows, columns)):
        steps = allocation.indices(kernel)[axis].reshape(-1, 1, 1) * dilation[axis]
        steps = steps + (shift - padding[axis])
        shape = (1, -1, 1) if axis == 0 else (1, 1, -1)
        if isinstance(count, int):
            starts = np.arange(count).reshape(shape) * strides[axis]
            regular: Expr = const(steps + starts, dtype)
        else:
            line = call("reshape", positions(offset, 2 + axis, dtype), newshape=shape)
            stride = const(strides[axis], dtype)
            regular = call("add", call("multiply", line, stride), const(steps, dtype))
        moved = call("take", shifts, const(axis, "int64"), axis=2, mode="fast")
        found.append(call("add", moved, regular))
    return found


def _named(*lengths: Dim) -> tuple[Dim, ...]:
    if any(isinstance(each, Any) for each in lengths):
        raise TypeInferenceError("a convolution at learned positions of lengths without names")
    return lengths


def _fixed(*lengths: Dim) -> tuple[int, ...]:
    known = tuple(each for each in lengths if isinstance(each, int))
    if len(known) < len(lengths):
        raise TypeInferenceError(f"needs a fixed shape to read between pixels, found {lengths}")
    return known


def decompose_deform_conv2d(
    data: Expr,
    weight: Expr,
    offset: Expr,
    bias: Expr | None,
    mask: Expr | None,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    offset_groups: int,
) -> Expr:
    """What the taps read is one channel each, which a convolution of one place adds up."""
    (channels,), (outputs, inputs, *kernel) = (
        _fixed(*lengths) for lengths in (tensor_type(data).shape[1:2], tensor_type(weight).shape)
    )
    (*space, rows, columns) = _named(*tensor_type(data).shape[2:], *tensor_type(offset).shape[2:])
    dtype, taps = tensor_type(data).dtype, kernel[0] * kernel[1]
    points = []
    window = kernel, strides, padding, dilation
    for axis, middle in enumerate(_positions_of_taps(offset, *window, shift=0.5)):
        length = space[axis]
        if isinstance(length, int):
            scaled = call("multiply", middle, const(2 / length, dtype))
        else:
            half = call("multiply", as_dtype(length_of(data, 2 + axis), dtype), const(0.5, dtype))
            scaled = call("divide", middle, half)
        points.append(call("subtract", scaled, const(1.0, dtype)))
    grid = call("stack", points[::-1], axis=1)
    read = call(
        "image.grid_sample",
        call("reshape", data, newshape=(-1, channels // offset_groups, *space)),
        call("reshape", grid, newshape=(-1, 2, rows * taps, columns)),
        align_corners=False,
    )
    if mask is not None:
        factors = call("reshape", mask, newshape=(-1, 1, rows * taps, columns))
        read = call("multiply", read, factors)
    result = call(
        "nn.conv2d",
        call("reshape", read, newshape=(-1, channels * taps, rows, columns)),
        call("reshape", weight, newshape=(outputs, inputs * taps, 1, 1)),
        groups=groups,
        channels=outputs,
        kernel_size=(1, 1),
        padding=(0, 0, 0, 0),
    )
    return result if bias is None else call("nn.bias_add", result, bias, axis=1)


def decompose_deformable_conv2d(
    data: Expr,
    offset: Expr,
    weight: Expr,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    deformable_groups: int,
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: AnyValue,
    **_sizes: AnyValue,
) -> Expr:
    """Edges do not fade before the first pixel: taps that lie there are weighed by nothing."""
    given = tensor_type(data).dtype
    dtype = given if out_dtype is None else dtype_name(out_dtype)
    work = "float64" if "float64" in (given, dtype) else "float32"
    images, shifts = (as_dtype(arranged(x, data_layout, "NCHW"), work) for x in (data, offset))
    filters = as_dtype(arranged(weight, kernel_layout, "OIHW"), work)
    kernel = _fixed(*tensor_type(filters).shape[2:])
    rows, columns = _named(*tensor_type(shifts).shape[2:])
    sides = split_padding(padding, 2)
    places = _positions_of_taps(shifts, kernel, strides, sides[0], dilation)
    inside = (call("greater_equal", place, const(0.0, work)) for place in places)
    mask = as_dtype(call("logical_and", *inside), work)
    taps = kernel[0] * kernel[1] * deformable_groups
    found = call(
        "serde.deform_conv2d", images, filters, shifts, Tuple([]),
        call("reshape", mask, newshape=(-1, taps, rows, columns)),
        strides=strides, padding=(*sides[0], *sides[1]), dilation=dilation, groups=groups,
        offset_groups=deformable_groups,
    )  # fmt: skip
    return as_dtype(arranged(found, "NCHW", out_layout or data_layout), dtype)

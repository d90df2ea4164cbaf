"""Convolution at learned places, and the correlation of two images."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any as AnyValue

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import join_dim, layout_axes, require_float, require_same_dtype, split_padding
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr, const, tensor_type
from serde.relay.ir.precision import widen
from serde.relay.ir.registry import Arguments, Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import at
from serde.relay.ir.traits import Fusion, FusionPattern, Layout
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import filters, pairs
from serde.relay.lowering.deformable import decompose_deformable_conv2d
from serde.relay.op.conv.direct import complete_conv, convolution_type
from serde.relay.op.conv.windows import (
    Convolution,
    expand,
    pad_sides,
    per_axis,
    to_layout,
    weight_array,
    weight_shape,
    window_arguments,
)
from serde.relay.op.linalg.product import exact_operand, to_product_dtype


@dataclass(frozen=True, kw_only=True)
class Displacements:
    """Attributes of ``nn.correlation``."""

    kernel_size: int = 1
    max_displacement: int = 1
    stride1: int = 1
    stride2: int = 1
    padding: tuple[int, ...] = (0, 0)
    is_multiply: bool = True
    layout: str = "NCHW"


def _deformable_type(
    data: TensorType,
    offset: TensorType,
    weight: TensorType,
    *,
    deformable_groups: int,
    **attrs: AnyValue,
) -> TensorType:
    """Offsets need two channels for each tap and deformable group."""
    require_float(data)
    require_same_dtype(data, offset)
    result = convolution_type(data, weight, rank=2, conv=Convolution(**attrs))
    axes = layout_axes(attrs["data_layout"], "NCHW")
    out_axes = layout_axes(attrs["out_layout"] or attrs["data_layout"], "NCHW")
    channels = data.shape[axes[1]]
    if deformable_groups < 1 or (type(channels) is int and channels % deformable_groups):
        raise TypeInferenceError(
            f"{channels} channels do not form {deformable_groups} deformable groups"
        )
    kernel = at(weight.shape, layout_axes(attrs["kernel_layout"], "OIHW")[2:])
    batch, _, height, width = at(result.shape, out_axes)
    wanted = (batch, kernel[0] * kernel[1] * (2 * deformable_groups), height, width)
    try:
        for found, dim in zip(at(offset.shape, axes), wanted, strict=True):
            join_dim(found, dim)
    except (TypeInferenceError, IndexError):
        shown = ", ".join(map(str, wanted))
        raise TypeInferenceError(f"expected offsets of shape ({shown}), found {offset!r}") from None
    return result


def _complete_deformable(
    data: TensorType | None, offset: TensorType | None, weight: TensorType | None, **attrs: AnyValue
) -> tuple[TensorType | None, ...]:
    if weight is None:
        names = ("groups", "channels", "kernel_size", "data_layout", "kernel_layout")
        weight = complete_conv(data, rank=2, **{name: attrs[name] for name in names})
    if offset is None and data is not None and weight is not None:
        offset = _offset_type(data, weight, **attrs)
    return data, offset, weight


def _offset_type(
    data: TensorType, weight: TensorType, *, deformable_groups: int, **attrs: AnyValue
) -> TensorType:
    """Return the type of the offsets: two for each tap, group and place of the result."""
    layout = attrs["data_layout"]
    result = convolution_type(
        data, weight, rank=2, conv=Convolution(**{**attrs, "out_layout": layout})
    )
    batch, _, *space = at(result.shape, layout_axes(layout, "NCHW"))
    taps = weight_shape(weight, attrs["kernel_layout"], 2)[2:]
    shape = (batch, 2 * taps[0] * taps[1] * deformable_groups, *space)
    return TensorType(at(shape, to_layout(layout, 2)), data.dtype)


def _bilinear_at(image: Array, y: Array, x: Array) -> Array:
    """Return ``(C, *places)`` of a ``(C, H, W)`` image between its pixels.

    A place before the first pixel reads zero; one after the last fades to zero, as in TVM.
    """
    height, width = image.shape[1:]
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    top, left = np.floor(y), np.floor(x)
    total = np.zeros((image.shape[0], *y.shape), image.dtype)
    for down, right in product((0, 1), repeat=2):
        row, column = top + down, left + right
        weight = (1 - np.abs(y - row)) * (1 - np.abs(x - column))
        read = inside & (row < height) & (column < width)
        rows = np.clip(row, 0, height - 1).astype(np.int64)
        columns = np.clip(column, 0, width - 1).astype(np.int64)
        total += image[:, rows, columns] * (weight * read)
    return total


@relay_op(
    "nn.deformable_conv2d",
    traits=(
        filters(2, 16),
        Layout("data_layout", operands=2),
        Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),
    ),
    infer=_deformable_type,
    decompose=decompose_deformable_conv2d,
    complete=_complete_deformable,
    samples=[
        sample((1, 4, 6, 5), (1, 18, 4, 3), (2, 4, 3, 3)),
        sample(
            (2, 4, 6, 5),
            (2, 16, 3, 5),
            (6, 2, 2, 2),
            strides=(2, 1),
            dilation=(1, 2),
            padding=(0, 1, 1, 1),
            groups=2,
            deformable_groups=2,
        ),
        sample(
            (1, 5, 5, 2),
            (1, 4, 4, 8),
            (2, 2, 2, 3),
            data_layout="NHWC",
            kernel_layout="HWIO",
            out_layout="NCHW",
        ),
    ],
    arguments=window_arguments(2, "strides", "dilation", "kernel_size"),
)
def deformable_conv2d(
    data: Array, offset: Array, weight: Array,
    *, strides: tuple[int, ...] = (1, 1), padding: tuple[int, ...] = (0, 0),
    dilation: tuple[int, ...] = (1, 1), deformable_groups: int = 1, groups: int = 1,
    channels: Dim | None = None, kernel_size: tuple[int, ...] | None = None,
    data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: str = "",
    out_dtype: np.dtype[AnyValue] | None = None,
) -> Array:  # fmt: skip
    """``y[o, i] = sum_ck w[o, c, k] * x[c, i * stride + k * dilation - padding + offset[k, i]]``.

    Places between pixels are read bilinearly (Dai et al., 2017). For each deformable group and
    each tap, `offset` has two channels: down and right.
    """
    axes = layout_axes(data_layout, "NCHW")
    x = exact_operand(data, 1).transpose(axes)
    shifts = exact_operand(offset, 1).transpose(axes)
    w = exact_operand(weight_array(weight, kernel_layout, 2), 1)
    taps = w.shape[2] * w.shape[3]
    (top, left), _ = split_padding(padding, 2)
    batch, inputs = x.shape[:2]
    height, width = shifts.shape[2:]
    rows = (np.arange(height) * strides[0] - top)[:, None]
    columns = (np.arange(width) * strides[1] - left)[None, :]
    shifts = shifts.reshape(batch, deformable_groups, taps, 2, height, width)
    part = inputs // deformable_groups
    matrix = w.reshape(groups, w.shape[0] // groups, -1)
    out = np.empty((batch, w.shape[0], height, width), x.dtype)
    for index in range(batch):
        read = np.empty((inputs, taps, height, width), x.dtype)
        for group, (tap, place) in product(
            range(deformable_groups), enumerate(np.ndindex(*w.shape[2:]))
        ):
            down, right = shifts[index, group, tap]
            channels_of = slice(group * part, (group + 1) * part)
            read[channels_of, tap] = _bilinear_at(
                x[index, channels_of],
                rows + place[0] * dilation[0] + down,
                columns + place[1] * dilation[1] + right,
            )
        product_ = np.matmul(matrix, read.reshape(groups, -1, height * width))
        out[index] = product_.reshape(out.shape[1:])
    result = to_product_dtype(out, data, out_dtype)
    return np.ascontiguousarray(result.transpose(to_layout(out_layout or data_layout, 2)))


def _correlation_type(data1: TensorType, data2: TensorType, *, attrs: Displacements) -> TensorType:
    """There are ``(2 * (max_displacement // stride2) + 1)**2`` displacements."""
    dtype = require_same_dtype(data1, data2)
    require_float(data1)
    if attrs.layout != "NCHW" or data1.rank != 4 or data2.rank != 4:
        raise TypeInferenceError(
            f"expected two images of layout NCHW, found {data1!r}, {attrs.layout}"
        )
    size, reach, strides = attrs.kernel_size, attrs.max_displacement, (attrs.stride1, attrs.stride2)
    if size < 1 or size % 2 == 0 or min(strides) < 1 or reach < 0:
        raise TypeInferenceError(
            f"kernel_size {size} must be odd, strides {strides[0]} and {strides[1]} positive and "
            f"max_displacement {reach} not negative"
        )
    batch, _, *space = (join_dim(a, b) for a, b in zip(data1.shape, data2.shape, strict=True))
    before, after = split_padding(attrs.padding, 2)
    border = attrs.max_displacement + attrs.kernel_size // 2
    lengths: list[Dim] = []
    for length, b, a in zip(space, before, after, strict=True):
        room = length + (b + a - 2 * border)
        if type(room) is int and room < 1:
            raise TypeInferenceError(f"a length of {length} leaves no room for the displacements")
        lengths.append((room + (attrs.stride1 - 1)) // attrs.stride1)
    reach = 2 * (attrs.max_displacement // attrs.stride2) + 1
    return TensorType((batch, reach * reach, *lengths), dtype)


def _decompose_correlation(data1: Expr, data2: Expr, *, attrs: Displacements) -> Expr:
    """A mean over channels for each displacement, then one over patches of all of them."""
    dtype = tensor_type(data1).dtype
    wide = "float64" if dtype == "float64" else "float32"
    sides = ((0, 0), (0, 0), *zip(*split_padding(attrs.padding, 2), strict=True))
    images = [call("cast", each, dtype=wide) if dtype != wide else each for each in (data1, data2)]
    if any(map(any, sides)):
        images = [call("nn.pad", each, const(0, wide), pad_width=sides) for each in images]

    def shifted(image: Expr, shift: Sequence[int]) -> Expr:
        """Return an image without a border, the cut moved down and to the right."""
        begin = [attrs.max_displacement + each for each in shift]
        end = [
            each - attrs.max_displacement if each < attrs.max_displacement else 2**31 - 1
            for each in shift
        ]
        return call("strided_slice", image, begin=begin, end=end, strides=[1, 1], axes=[2, 3])

    reach, middle = attrs.max_displacement // attrs.stride2, shifted(images[0], (0, 0))
    steps = [step * attrs.stride2 for step in range(-reach, reach + 1)]
    maps = []
    for shift in product(steps, repeat=2):
        name = "multiply" if attrs.is_multiply else "subtract"
        likeness = call(name, middle, shifted(images[1], shift))
        likeness = likeness if attrs.is_multiply else call("abs", likeness)
        maps.append(call("mean", likeness, axis=(1,), keepdims=True))
    result = call("concatenate", maps, axis=1)
    if attrs.kernel_size > 1 or attrs.stride1 > 1:
        size, strides = (attrs.kernel_size,) * 2, (attrs.stride1,) * 2
        result = call("nn.avg_pool2d", result, pool_size=size, strides=strides)
    return result if dtype == wide else call("cast", result, dtype=dtype)


@relay_op(
    "nn.correlation", traits=(pairs(factor=8), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),),
    infer=_correlation_type,
    decompose=_decompose_correlation,
    samples=[
        sample((1, 3, 7, 8), (1, 3, 7, 8), max_displacement=2, padding=(2, 2)),
        sample(tensor((2, 2, 9, 9)), (2, 2, 9, 9), kernel_size=3, max_displacement=2, stride1=2,
               stride2=2, padding=(3,), is_multiply=False),
    ],
    arguments=Arguments(
        convert={"padding": partial(per_axis, rank=2)},
        required=(
            "kernel_size",
            "max_displacement",
            "stride1",
            "stride2",
            "padding",
            "is_multiply",
            "layout",
        ),
    ),
)  # fmt: skip
def correlation(data1: Array, data2: Array, *, attrs: Displacements) -> Array:
    """``y[d, i] = mean_ck(data1[c, i * stride1 + k] * data2[c, i * stride1 + k + d])``.

    Each displacement d is a channel; k runs over a patch of `kernel_size` and c over the input
    channels. With `is_multiply` false the mean is of ``abs(data1 - data2)``. Source: FlowNet, 2015.
    """
    before, after = split_padding(attrs.padding, 2)
    a = pad_sides(widen(data1), before, after)
    b = pad_sides(widen(data2), before, after)
    channels = a.shape[1]
    border = attrs.max_displacement + attrs.kernel_size // 2
    counts = [-(-(n - 2 * border) // attrs.stride1) for n in a.shape[2:]]
    reach = attrs.max_displacement // attrs.stride2
    steps = [step * attrs.stride2 for step in range(-reach, reach + 1)]
    maps = []
    for down, right in product(steps, repeat=2):
        total: Array = np.zeros((a.shape[0], *counts), a.dtype)
        for row, column in product(range(attrs.kernel_size), repeat=2):
            y, x = attrs.max_displacement + row, attrs.max_displacement + column
            first = _grid(a, (y, x), counts, attrs.stride1)
            second = _grid(b, (y + down, x + right), counts, attrs.stride1)
            likeness = first * second if attrs.is_multiply else np.abs(first - second)
            total += likeness.sum(1)
        maps.append(total)
    scale = a.dtype.type(attrs.kernel_size * attrs.kernel_size * channels)
    return (np.stack(maps, 1) / scale).astype(data1.dtype, copy=False)


def _grid(image: Array, start: Sequence[int], counts: Sequence[int], step: int) -> Array:
    spans = [slice(s, s + expand(n, step), step) for s, n in zip(start, counts, strict=True)]
    return image[(slice(None), slice(None), *spans)]

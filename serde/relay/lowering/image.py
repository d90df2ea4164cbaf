"""Images as slices, sums and moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any as AnyValue

import serde.core.allocation as allocation
from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.relay.ir import Any, Dim, Expr, as_dtype, call, const, lowest, split_padding, tensor_type
from serde.relay.lowering.layout import arranged
from serde.relay.lowering.lengths import LAST

__all__ = [
    "decompose_depth_to_space", "decompose_dilation2d", "decompose_space_to_depth", "named_dims",
]  # fmt: skip


def decompose_dilation2d(
    data: Expr,
    weight: Expr,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilations: tuple[int, ...],
    data_layout: str,
    kernel_layout: str,
    out_dtype: AnyValue,
) -> Expr:
    """Every element of the window is added to a slice of the images; the greatest stays."""
    given = tensor_type(data).dtype
    dtype = given if out_dtype is None else dtype_name(out_dtype)
    images = arranged(data, data_layout, "NCHW")
    sides = ((0, 0), (0, 0), *zip(*split_padding(padding, 2), strict=True))
    if any(map(any, sides)):
        images = call("nn.pad", images, const(lowest(given), given), pad_width=sides)
    images = as_dtype(images, dtype)
    window = as_dtype(arranged(weight, kernel_layout, "IHW"), dtype)
    size = [length for length in tensor_type(window).shape[1:] if isinstance(length, int)]
    if len(size) < 2:
        raise Unsupported(f"a window {tensor_type(window)!r} of open lengths")
    allocation.iterations(math.prod(size), f"a window of {size}")
    sums = []
    for place in product(*map(range, size)):
        begin = [at * gap for at, gap in zip(place, dilations, strict=True)]
        behind = [(n - 1 - at) * d for n, at, d in zip(size, place, dilations, strict=True)]
        end = [-each if each else LAST for each in behind]
        part = _cut(images, begin, end, strides, (2, 3))
        element = _cut(window, place, [at + 1 for at in place], (1, 1), (1, 2))
        sums.append(call("add", part, call("expand_dims", element, axis=0)))
    return arranged(reduce(lambda a, b: call("maximum", a, b), sums), "NCHW", data_layout)


def _cut(
    x: Expr, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], axes: tuple[int, int]
) -> Expr:
    return call(
        "strided_slice", x, begin=tuple(begin), end=tuple(end), strides=tuple(strides), axes=axes
    )


def named_dims(x: Expr) -> tuple[Dim, ...]:
    """Return the lengths of a tensor."""
    type_ = tensor_type(x)
    if any(isinstance(dim, Any) for dim in type_.shape):
        raise Unsupported(f"blocks of {type_!r}, whose lengths have no names")
    return type_.shape


def _moved(
    data: Expr, layout: str, parts: Sequence[Dim], axes: Sequence[int], shape: Sequence[Dim]
) -> Expr:
    """Return planar data cut into parts whose axes are put in order and joined, in a layout."""
    moved = call("transpose", call("reshape", data, newshape=tuple(parts)), axes=tuple(axes))
    return arranged(call("reshape", moved, newshape=tuple(shape)), "NCHW", layout)


def decompose_depth_to_space(data: Expr, *, block_size: int, layout: str, mode: str) -> Expr:
    planar = arranged(data, layout, "NCHW")
    n, c, h, w = named_dims(planar)
    b, channels = block_size, c // (block_size * block_size)
    shape = (n, channels, h * b, w * b)
    if mode == "CRD":
        return _moved(planar, layout, (n, channels, b, b, h, w), (0, 1, 4, 2, 5, 3), shape)
    return _moved(planar, layout, (n, b, b, channels, h, w), (0, 3, 4, 1, 5, 2), shape)


def decompose_space_to_depth(data: Expr, *, block_size: int, layout: str, mode: str) -> Expr:
    planar = arranged(data, layout, "NCHW")
    n, c, h, w = named_dims(planar)
    b = block_size
    parts, shape = (n, c, h // b, b, w // b, b), (n, c * b * b, h // b, w // b)
    return _moved(planar, layout, parts, (0, 3, 5, 1, 2, 4), shape)

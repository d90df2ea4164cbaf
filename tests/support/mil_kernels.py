"""Operators of MIL that order, scatter and rearrange elements, in NumPy, and the table of all.

They share nothing with the bridge: each follows MIL's documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray
KERNELS: dict[str, Callable[..., Any]] = {}
"""What computes each operator."""


def kernel(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Register a function under its own name, which is the operator's, or under another."""
    KERNELS[name or function.__name__] = function
    return function


def kernels(functions: Mapping[str, Callable[..., Any]], names: Sequence[str]) -> None:
    """Register functions that take their inputs by position, which are called `names`."""
    for each, function in functions.items():

        def found(function: Callable[..., Any] = function, **given: Any) -> Any:
            return function(*(given[name] for name in names))

        KERNELS[each] = found


def _placed(target: Array, places: tuple[Array, ...], updates: Array, mode: str) -> Array:
    found = target.copy()
    if mode == "update":
        found[places] = updates
        return found
    how = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
        "max": np.maximum, "min": np.minimum,
    }  # fmt: skip
    how[mode].at(found, places, updates)
    return found


@kernel
def scatter_along_axis(
    data: Array, indices: Array, updates: Array, axis: int = 0, mode: str = "add", **_: Any
) -> Array:
    places = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    places[axis] = indices
    return _placed(data, tuple(places), updates, mode)


@kernel
def scatter(
    data: Array, indices: Array, updates: Array, axis: int = 0, mode: str = "add", **_: Any
) -> Array:
    moved = _placed(np.moveaxis(data, axis, 0), (indices,), np.moveaxis(updates, axis, 0), mode)
    return np.moveaxis(moved, 0, axis)


@kernel
def scatter_nd(data: Array, indices: Array, updates: Array, mode: str = "add", **_: Any) -> Array:
    return _placed(data, tuple(np.moveaxis(indices, -1, 0)), updates, mode)


@kernel
def cumsum(x: Array, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Array:
    rows = np.moveaxis(x, axis, 0)
    rows = rows[::-1] if reverse else rows
    found = np.zeros_like(rows)
    total = np.zeros(rows.shape[1:], rows.dtype)
    for place, row in enumerate(rows):
        found[place] = total if exclusive else total + row
        total = total + row
    return np.moveaxis(found[::-1] if reverse else found, 0, axis)


@kernel
def reverse_sequence(x: Array, lengths: Array, seq_axis: int = 0, batch_axis: int = 0) -> Array:
    found = x.copy()
    for batch, length in enumerate(lengths):
        where: list[Any] = [slice(None)] * x.ndim
        where[batch_axis], where[seq_axis] = slice(batch, batch + 1), slice(length)
        found[tuple(where)] = np.flip(x[tuple(where)], seq_axis)
    return found


@kernel
def sliding_windows(x: Array, axis: int, size: int, stride: int = 1) -> Array:
    axis %= x.ndim
    count = (x.shape[axis] - size) // stride + 1
    parts = [np.take(x, range(i * stride, i * stride + size), axis) for i in range(count)]
    return np.stack(parts, axis)


@kernel
def depth_to_space(x: Array, block_size: int) -> Array:
    n, c, h, w = x.shape
    b = block_size
    found = np.zeros((n, c // (b * b), h * b, w * b), x.dtype)
    for row in range(b):
        for column in range(b):
            first = (row * b + column) * (c // (b * b))
            found[:, :, row::b, column::b] = x[:, first : first + c // (b * b)]
    return found


@kernel
def space_to_depth(x: Array, block_size: int) -> Array:
    b = block_size
    return np.concatenate([x[:, :, i::b, j::b] for i in range(b) for j in range(b)], axis=1)


@kernel
def pixel_shuffle(x: Array, upscale_factor: int) -> Array:
    n, c, h, w = x.shape
    b = upscale_factor
    found = np.zeros((n, c // (b * b), h * b, w * b), x.dtype)
    for row in range(b):
        for column in range(b):
            found[:, :, row::b, column::b] = x[:, row * b + column :: b * b]
    return found


@kernel
def pixel_unshuffle(x: Array, downscale_factor: int) -> Array:
    b = downscale_factor
    n, c, h, w = x.shape
    found = np.zeros((n, c * b * b, h // b, w // b), x.dtype)
    for row in range(b):
        for column in range(b):
            found[:, row * b + column :: b * b] = x[:, :, row::b, column::b]
    return found


@kernel
def space_to_batch(x: Array, block_shape: Array, paddings: Array) -> Array:
    rows, columns = (int(each) for each in block_shape)
    padded = np.pad(x, [(0, 0), (0, 0), *(tuple(map(int, pair)) for pair in paddings)])
    parts = [padded[:, :, i::rows, j::columns] for i in range(rows) for j in range(columns)]
    return np.concatenate(parts, axis=0)


@kernel
def batch_to_space(x: Array, block_shape: Array, crops: Array) -> Array:
    rows, columns = (int(each) for each in block_shape)
    n, c, h, w = x.shape
    images = n // (rows * columns)
    found = np.zeros((images, c, h * rows, w * columns), x.dtype)
    for i in range(rows):
        for j in range(columns):
            first = (i * columns + j) * images
            found[:, :, i::rows, j::columns] = x[first : first + images]
    (top, bottom), (left, right) = (tuple(map(int, pair)) for pair in crops)
    return found[:, :, top : h * rows - bottom, left : w * columns - right]


@kernel
def one_hot(
    indices: Array, one_hot_vector_size: int, axis: int = -1, on_value: Any = 1, off_value: Any = 0
) -> Array:
    codes = np.full((*np.shape(indices), int(one_hot_vector_size)), off_value)
    for place in np.ndindex(*np.shape(indices)):
        codes[(*place, np.asarray(indices)[place])] = on_value
    return np.moveaxis(codes, -1, axis)


@kernel
def reshape_like(
    x: Array, ref_tensors: list[Array], begins: list[int], ends: list[int], end_masks: list[bool]
) -> Array:
    shape: list[int] = []
    for tensor, begin, end, mask in zip(ref_tensors, begins, ends, end_masks, strict=True):
        shape += tensor.shape[begin:] if mask else tensor.shape[begin:end]
    return x.reshape(shape)


@kernel
def squeeze(x: Array, axes: Array | None = None) -> Any:
    """Of a matrix of one element coremltools gives a row."""
    gone = range(x.ndim) if axes is None else [axis % x.ndim for axis in axes]
    found = x.reshape([n for axis, n in enumerate(x.shape) if axis not in gone or n != 1])
    return found if found.shape else found[()]


@kernel
def argsort(x: Array, axis: int = -1, ascending: bool = False) -> Array:
    """Of equal elements coremltools gives any order."""
    order = np.argsort(x if ascending else -x, axis, kind="stable")
    return order.astype(np.int32)


@kernel
def topk(
    x: Array, k: int = 1, axis: int = -1, ascending: bool = False, return_indices: bool = True,
    **_: Any,
) -> Any:  # fmt: skip
    order = argsort(x, axis, ascending)
    places = np.take(order, range(x.shape[axis] if k == -1 else k), axis)
    values = np.take_along_axis(x, places, axis)
    return (values, places) if return_indices else values

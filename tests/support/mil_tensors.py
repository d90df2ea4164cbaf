"""Operators of MIL that make, move, select and join elements, and its lists, in NumPy.

They follow MIL's documentation and share nothing with the bridge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from support.mil_kernels import kernel

Array = np.ndarray

SINCE_17 = 17
"""From here on a negative index is outside the tensor."""


def _ints(values: Any) -> list[int]:
    return [int(each) for each in np.ravel(values)]


@kernel
def shape(x: Array) -> Array:
    return np.array(x.shape, np.int32)


@kernel
def reshape(x: Array, shape: Array) -> Array:
    """A zero stands for the length at the same place, counted from the last; iOS15's too."""
    lengths = _ints(shape)
    for place in range(-len(lengths), 0):
        if lengths[place] == 0:
            lengths[place] = x.shape[place] if -place <= x.ndim else 1
    return np.reshape(x, lengths)


@kernel
def transpose(x: Array, perm: Array) -> Array:
    return np.transpose(x, _ints(perm))


@kernel
def expand_dims(x: Array, axes: Array) -> Array:
    return np.expand_dims(x, tuple(_ints(axes)))


@kernel
def flatten2d(x: Array, axis: int = 1) -> Array:
    return np.reshape(x, (math.prod(x.shape[: int(axis)]), -1))


@kernel
def tile(x: Array, reps: Array) -> Array:
    return np.tile(x, _ints(reps))


@kernel
def reverse(x: Array, axes: Any = None) -> Array:
    return np.flip(x, None if axes is None else tuple(_ints(axes)))


@kernel
def concat(values: Sequence[Array], axis: int, interleave: Any = False) -> Array:
    if not interleave:
        rows = [np.atleast_1d(each) for each in values]  # numbers make a vector
        return np.concatenate(rows, int(axis))
    place = int(axis) % values[0].ndim
    lengths = list(values[0].shape)
    lengths[place] *= len(values)
    return np.reshape(np.stack(values, place + 1), lengths)


@kernel
def stack(values: Sequence[Array], axis: int) -> Array:
    return np.stack(values, int(axis))


@kernel
def split(
    x: Array, axis: int, num_splits: int | None = None, split_sizes: Any = None
) -> tuple[Array, ...]:
    if split_sizes is None:
        return tuple(np.split(x, int(num_splits or 1), int(axis)))
    return tuple(np.split(x, np.cumsum(_ints(split_sizes))[:-1], int(axis)))


@kernel
def pad(x: Array, pad: Array, mode: str = "constant", constant_val: Any = 0) -> Array:
    pairs = np.reshape(pad, (-1, 2)).tolist()
    pairs = [[0, 0]] * (x.ndim - len(pairs)) + pairs
    if mode == "constant":
        return np.pad(x, pairs, constant_values=constant_val)
    return np.pad(x, pairs, {"reflect": "reflect", "replicate": "edge"}[mode])  # type: ignore[call-overload]


def _slices(
    lengths: Sequence[int], begin: Any, end: Any, stride: Any, begin_mask: Any, end_mask: Any,
    squeeze_mask: Any,
) -> tuple[Any, ...]:  # fmt: skip
    rank = len(lengths)
    first, last = _ints(begin), _ints(end)
    steps = [1] * rank if stride is None else _ints(stride)
    open_first, open_last, single = (
        [False] * rank if mask is None else [bool(each) for each in np.ravel(mask)]
        for mask in (begin_mask, end_mask, squeeze_mask)
    )
    found: list[Any] = []
    for axis in range(rank):
        if single[axis]:
            found.append(first[axis])
            continue
        low = None if open_first[axis] else first[axis]
        high = None if open_last[axis] else last[axis]
        found.append(slice(low, high, steps[axis]))
    return tuple(found)


@kernel
def slice_by_index(
    x: Array, begin: Array, end: Array, stride: Any = None, begin_mask: Any = None,
    end_mask: Any = None, squeeze_mask: Any = None,
) -> Array:  # fmt: skip
    return x[_slices(x.shape, begin, end, stride, begin_mask, end_mask, squeeze_mask)]


@kernel
def slice_update(
    x: Array, update: Array, begin: Array, end: Array, stride: Any = None,
    begin_mask: Any = None, end_mask: Any = None, squeeze_mask: Any = None,
) -> Array:  # fmt: skip
    found = x.copy()
    found[_slices(x.shape, begin, end, stride, begin_mask, end_mask, squeeze_mask)] = update
    return found


@kernel
def slice_by_size(x: Array, begin: Array, size: Array) -> Array:
    where = []
    for n, first, count in zip(x.shape, _ints(begin), _ints(size), strict=True):
        start = first + n if first < 0 else first
        stop = n if count == -1 else start + count
        if not 0 <= start <= stop <= n:
            raise IndexError(f"elements {start} to {stop} of {n}")
        where.append(slice(start, stop))
    return x[tuple(where)]


def _poisoned(found: Array, outside: Array) -> Array:
    """What nothing may use: an element from outside a tensor is undefined."""
    if not outside.any():
        return found
    wrong = {"f": np.nan, "b": True}.get(found.dtype.kind, np.iinfo(np.int8).max)
    return np.where(outside, np.array(wrong, found.dtype), found)


def _held(indices: Array, length: int, opset: int) -> tuple[Array, Array]:
    """Indices inside a tensor, and which were not."""
    indices = np.asarray(indices).astype(np.int64)
    outside = (indices >= length) | (indices < (0 if opset >= SINCE_17 else -length))
    return np.where(outside, 0, indices % max(length, 1)), outside


@kernel
def gather(
    x: Array, indices: Array, opset: int, axis: int = 0, batch_dims: int = 0,
    validate_indices: Any = None,
) -> Array:  # fmt: skip
    axis, batch = int(axis) % x.ndim, int(batch_dims)
    if batch:
        rows = [gather(a, b, opset, axis - 1, batch - 1) for a, b in zip(x, indices, strict=True)]
        return np.stack(rows)
    held, outside = _held(indices, x.shape[axis], opset)
    mask = outside.reshape((*[1] * axis, *outside.shape, *[1] * (x.ndim - axis - 1)))
    return _poisoned(np.take(x, held, axis), mask)


@kernel
def gather_along_axis(
    x: Array, indices: Array, opset: int, axis: int = 0, validate_indices: Any = None
) -> Array:
    held, outside = _held(indices, x.shape[int(axis)], opset)
    return _poisoned(np.take_along_axis(x, held, int(axis)), outside)


@kernel
def gather_nd(
    x: Array, indices: Array, opset: int, batch_dims: int = 0, validate_indices: Any = None
) -> Array:
    if int(batch_dims):
        pairs = zip(x, indices, strict=True)
        return np.stack([gather_nd(a, b, opset, int(batch_dims) - 1) for a, b in pairs])
    places, outside = [], np.zeros(indices.shape[:-1], bool)
    for axis, each in enumerate(np.moveaxis(indices, -1, 0)):
        held, wrong = _held(each, x.shape[axis], opset)
        places.append(held)
        outside |= wrong
    found = x[tuple(places)]
    return _poisoned(found, outside.reshape((*outside.shape, *[1] * (found.ndim - outside.ndim))))


@kernel
def non_zero(x: Array) -> Array:
    return np.argwhere(x).astype(np.int32)


@kernel
def band_part(x: Array, lower: Any = -1, upper: Any = -1) -> Array:
    apart = np.arange(x.shape[-2])[:, None] - np.arange(x.shape[-1])
    kept = ((lower < 0) | (apart <= lower)) & ((upper < 0) | (-apart <= upper))
    return np.where(kept, x, np.zeros((), x.dtype))


_ZERO = np.float32(0)


@kernel
def fill(shape: Array, value: Any = _ZERO) -> Array:
    return np.full(_ints(shape), value)


@kernel
def fill_like(ref_tensor: Array, value: Any = _ZERO) -> Array:
    return np.full(ref_tensor.shape, value)


@kernel
def range_1d(start: Any, end: Any, step: Any) -> Array:
    return np.arange(start, end, step).astype(np.asarray(start).dtype)


def _spread(count: int, corners: bool) -> Array:
    """Places between -1 and 1, which are the outer pixels' centres or their outer edges."""
    return np.linspace(-1, 1, count) if corners else (2 * np.arange(count) + 1) / count - 1


@kernel
def affine(
    x: Array, transform_matrix: Array, output_height: Any, output_width: Any,
    sampling_mode: str, padding_mode: str, padding_value: Any, coordinates_mode: str,
    align_corners: Any,
) -> Array:  # fmt: skip
    from support.mil_layers import resample

    y, x_ = np.meshgrid(
        *(_spread(int(n), bool(align_corners)) for n in (output_height, output_width)),
        indexing="ij",
    )
    grid = np.stack([x_, y, np.ones_like(y)], -1)
    places = np.einsum("hwk,dck->dhwc", grid, transform_matrix.reshape(-1, 2, 3))
    places = np.broadcast_to(places, (x.shape[0], *places.shape[1:]))
    return resample(
        x, places, sampling_mode, padding_mode, padding_value, coordinates_mode, align_corners
    )


@dataclass(frozen=True)
class TensorList:
    """A list of tensors of one shape; a place that nothing was written to holds None."""

    elements: tuple[Array | None, ...]

    def written(self, index: int, value: Array) -> TensorList:
        """The list with another element, longer if that lies behind its end."""
        missing = (None,) * (index + 1 - len(self.elements))
        found = [*self.elements, *missing]
        found[index] = value
        return replace(self, elements=tuple(found))

    def read(self, index: int) -> Array:
        """An element that was written."""
        found = self.elements[index]
        if found is None:
            raise IndexError(f"nothing was written to element {index} of a list")
        return found


@kernel
def make_list(
    init_length: Any = 1, dynamic_length: Any = True, elem_shape: Any = None, dtype: str = "fp32"
) -> TensorList:
    return TensorList((None,) * int(init_length))


@kernel
def list_length(ls: TensorList) -> Array:
    return np.array(len(ls.elements), np.int32)


@kernel
def list_write(ls: TensorList, index: Any, value: Array) -> TensorList:
    return ls.written(int(index), value)


@kernel
def list_read(ls: TensorList, index: Any) -> Array:
    return ls.read(int(index))


@kernel
def list_gather(ls: TensorList, indices: Array) -> Array:
    return np.stack([ls.read(index) for index in _ints(indices)])


@kernel
def list_scatter(ls: TensorList, indices: Array, value: Array) -> TensorList:
    for index, each in zip(_ints(indices), value, strict=True):
        ls = ls.written(index, each)
    return ls


@kernel
def classify(probabilities: Array, classes: Sequence[Any]) -> tuple[Any, dict[Any, float]]:
    scores = np.ravel(probabilities)
    labels = [each.item() if isinstance(each, np.generic) else each for each in classes]
    return labels[int(np.argmax(scores))], dict(zip(labels, scores.tolist(), strict=True))

"""Operators of MIL that quantise, and that make weights of compressed constants, in NumPy.

They follow MIL's documentation and share nothing with the bridge.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from support.mil_kernels import kernel

Array = np.ndarray


def _along(values: Any, x: Array, axis: Any) -> Array:
    """A scalar, or a vector that goes along an axis."""
    found = np.asarray(values)
    if found.ndim == 0 or axis is None:
        return found
    return found.reshape([-1 if n == int(axis) % x.ndim else 1 for n in range(x.ndim)])


@kernel
def quantize(
    input: Array, scale: Any, output_dtype: str, zero_point: Any = 0, axis: Any = None
) -> Array:
    limits = np.iinfo(output_dtype)
    steps = np.rint(input / _along(scale, input, axis))
    shifted = steps + _along(zero_point, input, axis).astype(np.float32)
    return np.clip(shifted, limits.min, limits.max).astype(output_dtype)


@kernel
def dequantize(input: Array, scale: Any, zero_point: Any = 0, axis: Any = None) -> Array:
    steps = input.astype(np.float32) - _along(zero_point, input, axis).astype(np.float32)
    return steps * _along(scale, input, axis)


@kernel
def constexpr_affine_dequantize(
    quantized_data: Array, zero_point: Any, scale: Any, axis: Any
) -> Array:
    return dequantize(quantized_data, scale, zero_point, axis)


@kernel
def constexpr_cast(source_val: Array, output_dtype: str) -> Array:
    return source_val.astype({"fp32": "float32", "fp16": "float16"}[output_dtype])


def _bits(data: Array, width: int, count: int) -> Array:
    """Numbers of some bits each, packed from the lowest bit up."""
    bits = np.unpackbits(np.asarray(data, np.uint8).reshape(-1), bitorder="little")
    rows = bits[: count * width].reshape(count, width)
    return rows.astype(np.int64) @ (1 << np.arange(width))


def _lengths(shape: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in np.ravel(shape))


def _blocks(values: Array, shape: tuple[int, ...]) -> Array:
    """Each value repeated over its block of a tensor."""
    for axis, length in enumerate(shape):
        values = np.repeat(values, length // values.shape[axis], axis)
    return values


@kernel
def constexpr_lut_to_dense(
    indices: Array, lut: Array, shape: Any = None, vector_axis: Any = None
) -> Array:
    """Before iOS18 the indices are packed, and there is one table."""
    if shape is not None:
        lengths = _lengths(shape)
        width = int(np.log2(lut.size))
        return lut.reshape(-1)[_bits(indices, width, int(np.prod(lengths)))].reshape(lengths)
    places = indices.astype(np.int64)
    table = _blocks(lut, places.shape)
    found = np.take_along_axis(table, places[..., None, None], -2)[..., 0, :]
    if lut.shape[-1] == 1:
        return found[..., 0]
    axis = int(vector_axis) % places.ndim
    lengths = tuple(n * lut.shape[-1] if i == axis else n for i, n in enumerate(places.shape))
    return np.moveaxis(found, -1, axis + 1).reshape(lengths)


@kernel
def constexpr_lut_to_sparse(
    indices_mask: Array, indices_nonzero_data: Array, lut: Array, vector_axis: Any = None
) -> tuple[Array, Array]:
    places = np.zeros(indices_mask.shape, np.int64)
    places[indices_mask.astype(bool)] = indices_nonzero_data
    dense = constexpr_lut_to_dense(places, lut, None, vector_axis)
    mask = indices_mask
    if lut.shape[-1] > 1:
        mask = np.repeat(mask, lut.shape[-1], int(vector_axis))
    return mask, dense[mask.astype(bool)]


@kernel
def constexpr_blockwise_shift_scale(data: Array, scale: Array, offset: Any = None) -> Array:
    values = data.astype(np.float32)
    if offset is not None:
        values = values - _blocks(offset, data.shape).astype(np.float32)
    return values * _blocks(scale, data.shape)


@kernel
def constexpr_sparse_blockwise_shift_scale(
    data_mask: Array, nonzero_data: Array, scale: Array, offset: Any = None
) -> tuple[Array, Array]:
    kept = data_mask.astype(bool)
    dense = np.zeros(kept.shape, np.float32)
    dense[kept] = nonzero_data
    return data_mask, constexpr_blockwise_shift_scale(dense, scale, offset)[kept]


@kernel
def constexpr_sparse_to_dense(nonzero_data: Array, mask: Array, shape: Any = None) -> Array:
    """Before iOS18 the mask is packed."""
    if shape is not None:
        lengths = _lengths(shape)
        mask = _bits(mask, 1, int(np.prod(lengths))).reshape(lengths)
    found = np.zeros(mask.shape, nonzero_data.dtype)
    found[mask.astype(bool)] = nonzero_data
    return found

"""Sparse tensors as dense ones: only the values that are there lie in the file.

Axes are stored in an order of their own, those of blocks behind the others; each is dense, or a row
of segments and indices as in compressed sparse rows.
"""

from __future__ import annotations

import numpy as np

from serde.core.limits import budget
from serde.core.weights import Array, ArrayWeight, Weight, numpy_dtype
from serde.errors import FormatError
from serde.tflite.model import Sparsity, Tensor

__all__ = ["dense_weight"]


def dense_weight(tensor: Tensor) -> Weight:
    """Return the values of a sparse tensor, zeros filled in.

    Raises:
        FormatError: Indices lead out of the tensor, or values are missing.
        LimitError: It would take more than the limits allow.
    """
    sparse, stored = tensor.sparsity, tensor.values
    if sparse is None or stored is None:
        raise FormatError(f"{tensor.name}: a tensor that is not sparse")
    rank, blocks = len(tensor.shape), len(sparse.blocks)
    if (
        sorted(sparse.order) != list(range(rank + blocks))
        or len(sparse.dimensions) != rank + blocks
    ):
        raise FormatError(f"{tensor.name}: {rank + blocks} axes were to be stored")
    budget().check("constants", int(np.prod(tensor.shape)) * 8, f"{tensor.name}: a sparse tensor")
    values = np.frombuffer(stored.array().tobytes(), numpy_dtype(tensor.dtype))
    places = _places(tensor.name, sparse, len(values))
    axes = dict(zip(sparse.order, places.T, strict=True))
    index = []
    for axis in range(rank):
        place = axes[axis]
        for number, divided in enumerate(sparse.blocks):
            if divided == axis:
                place = place * _block(tensor.name, sparse, rank + number) + axes[rank + number]
        index.append(place)
    dense = np.zeros(tensor.shape, values.dtype)
    try:
        dense[tuple(index)] = values
    except IndexError as error:
        raise FormatError(f"{tensor.name}: {error}") from None
    return ArrayWeight(dense)


def _block(name: str, sparse: Sparsity, axis: int) -> int:
    """Return the length of an axis of blocks."""
    length = sparse.dimensions[sparse.order.index(axis)]
    if not isinstance(length, int):
        raise FormatError(f"{name}: blocks that are sparse within")
    return length


def _places(name: str, sparse: Sparsity, count: int) -> Array:
    """Return where each value stands along the stored axes."""
    rows = np.zeros((1, 0), np.int64)
    for each in sparse.dimensions:
        if isinstance(each, int):
            if each < 1 or len(rows) * each > count:
                raise FormatError(f"{name}: an axis of {each} with {count} values")
            along = np.tile(np.arange(each), len(rows))
            rows = np.column_stack([np.repeat(rows, each, axis=0), along])
            continue
        segments, indices = each
        lengths = np.diff(segments)
        if len(lengths) != len(rows) or (lengths < 0).any() or lengths.sum() != len(indices):
            raise FormatError(f"{name}: segments that do not fit their indices")
        rows = np.column_stack([np.repeat(rows, lengths, axis=0), indices])
    if len(rows) != count:
        raise FormatError(f"{name}: {len(rows)} places for {count} values")
    return rows

"""The partial inverse of max pooling."""

from __future__ import annotations

from math import prod

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Dim, Expr, InRange, TensorType, Values, product, ranges, tensor_type
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, require_window, split_padding

__all__ = ["MaxUnpool"]


@dataclass(frozen=True, kw_only=True)
class MaxUnpool:
    """Attributes of ``serde.max_unpool``.

    Attributes:
        pool_size: Lengths of the window.
        strides: Its steps; 1 each if None.
        padding: What was added to each axis; see ``nn.max_pool2d``.
        output_shape: Lengths of the result after the first two axes; the least that pool to
            those of `data` if None.
    """

    pool_size: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    padding: tuple[int, ...] = (0,)
    output_shape: tuple[Dim, ...] | None = None


def unpooled_shape(shape: tuple[Dim, ...], window: MaxUnpool) -> tuple[Dim, ...]:
    """Return the shape that was pooled to `shape`."""
    pool_size, output_shape = window.pool_size, window.output_shape
    rank = len(pool_size)
    if len(shape) != rank + 2:
        raise TypeInferenceError(f"a window of rank {rank} needs {rank + 2} axes, not {len(shape)}")
    steps = window.strides or (1,) * rank
    require_window(rank, pool_size=pool_size, strides=steps)
    if output_shape is not None:
        if len(output_shape) != rank:
            raise TypeInferenceError(f"output_shape: expected {rank} lengths: {output_shape}")
        return (*shape[:2], *output_shape)
    before, after = split_padding(window.padding, rank)
    windows = zip(shape[2:], steps, pool_size, before, after, strict=True)
    return (*shape[:2], *((n - 1) * s + k - b - a for n, s, k, b, a in windows))


def _unpool_type(data: TensorType, indices: TensorType, *, window: MaxUnpool) -> TensorType:
    if indices.rank != data.rank or indices.dtype not in ("int32", "int64"):
        raise TypeInferenceError(f"expected an integer for each element, found {indices!r}")
    for a, b in zip(data.shape, indices.shape, strict=True):
        join_dim(a, b)
    shape = unpooled_shape(data.shape, window)
    return TensorType(shape, data.dtype)


def _decompose_unpool(data: Expr, indices: Expr, *, window: MaxUnpool) -> Expr:
    type_ = tensor_type(data)
    shape = unpooled_shape(type_.shape, window)
    if any(isinstance(dim, Any) for dim in shape):
        raise TypeInferenceError(f"a length of {type_!r} is unknown, so the places mean nothing")
    empty = call("zeros", shape=(product(shape),), dtype=type_.dtype)
    places = call("cast", call("reshape", indices, newshape=(-1,)), dtype="int64")
    rows = call("reshape", data, newshape=(-1,))
    filled = call("scatter_elements", empty, places, rows, axis=0, reduction="update")
    return call("reshape", filled, newshape=shape)


_PLACES = np.array([[[[5, 7], [13, 15]], [[16, 19], [24, 31]]]], np.int64)


@relay_op(
    "serde.max_unpool",
    traits=(Values(0), InRange(ranges.pooled_indices)),
    infer=_unpool_type,
    decompose=_decompose_unpool,
    samples=[
        sample((1, 2, 2, 2), _PLACES, pool_size=(2, 2), strides=(2, 2)),
        sample((1, 2, 2, 2), _PLACES, pool_size=(2, 2), strides=(2, 2), output_shape=(5, 4)),
        sample((1, 1, 3), np.array([[[1, 2, 4]]], np.int64), pool_size=(3,), padding=(0,)),
        sample(
            tensor((1, 1, 2, 2), "float64"),
            np.array([[[[0, 2], [6, 8]]]], np.int32),
            pool_size=(3, 3),
            strides=(2, 2),
            padding=(1, 1),
        ),
    ],
)
def max_unpool(data: Array, indices: Array, *, window: MaxUnpool) -> Array:
    """The elements back at their places in what was pooled, zeros elsewhere.

    Args:
        data: (batch, channels, ...): what max pooling yielded.
        indices: The place of each element in the whole result, its elements numbered row by row,
            batch and channels included.
        window: What was pooled by.
    """
    shape = unpooled_shape(data.shape, window)
    lengths = [int(dim) for dim in shape if isinstance(dim, int)]
    places = indices.reshape(-1)
    if places.size and not 0 <= places.min() <= places.max() < prod(lengths):
        raise IndexError(f"a place is outside a tensor of {prod(lengths)} elements")
    result = np.zeros(prod(lengths), data.dtype)
    result[places] = data.reshape(-1)
    return result.reshape(lengths)

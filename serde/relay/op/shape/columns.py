"""Windows that slide over a tensor, and images put together from columns of their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Expr, TupleGetItem, call, const, relay_op, sample, tensor, widen
from serde.relay.ir.dims import Any, Dim, product
from serde.relay.ir.shapes import join_dim, normalize_axis, pool_dim, require_window, split_padding
from serde.relay.ir.traits import Fusion, FusionPattern, Moves
from serde.relay.ir.types import TensorType
from serde.relay.lowering.shape import decompose_sliding_window

__all__ = ["Columns"]

_MOST_BLOCKS: Final = 4096


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Attributes of ``serde.col2im``.

    Attributes:
        image_shape: Lengths of the images.
        block_shape: Lengths of a block.
        strides: Steps from one block to the next; 1 each if None.
        padding: Elements around the image that blocks cover too, and that are dropped: one for
            all sides, one for each axis, or all those before and then all those after.
        dilation: Steps between the elements of a block; 1 each if None.
    """

    image_shape: tuple[Dim, ...]
    block_shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    padding: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] | None = None


class _Blocks:
    """How blocks lie on an image, one item for each of its axes.

    Attributes:
        counts: Number of blocks.
        strides: Steps from one to the next.
        dilation: Steps between the elements of one.
        before: Elements of the padding before the image.
        after: Elements of the padding after it.
    """

    def __init__(self, col2im: Columns) -> None:
        image_shape, block_shape = col2im.image_shape, col2im.block_shape
        rank = len(block_shape)
        if not rank or len(image_shape) != rank:
            raise TypeInferenceError(f"blocks of {block_shape} do not cover an image {image_shape}")
        self.strides = col2im.strides or (1,) * rank
        self.dilation = col2im.dilation or (1,) * rank
        require_window(rank, block_shape=block_shape, strides=self.strides, dilation=self.dilation)
        self.before, self.after = split_padding(col2im.padding, rank)
        sides = (self.strides, self.dilation, self.before, self.after)
        spans = zip(image_shape, block_shape, *sides, strict=True)
        self.counts = [(n + b + a - d * (k - 1) - 1) // s + 1 for n, k, s, d, b, a in spans]
        if any(isinstance(count, int) and count < 1 for count in self.counts):
            raise TypeInferenceError(f"no block of {block_shape} fits an image of {image_shape}")


def _col2im_type(data: TensorType, *, col2im: Columns) -> TensorType:
    blocks = _Blocks(col2im)
    if data.rank != 3:
        raise TypeInferenceError(f"expected (batch, channels and elements, blocks), found {data!r}")
    join_dim(data.shape[2], product(blocks.counts))
    rows, size = data.shape[1], prod(col2im.block_shape)
    if isinstance(rows, int) and rows % size:
        raise TypeInferenceError(f"{rows} rows are no whole number of blocks of {size} elements")
    return TensorType((data.shape[0], rows // size, *col2im.image_shape), data.dtype)


def _decompose_col2im(data: Expr, *, col2im: Columns) -> Expr:
    """Every element of a block is an image of its own, spread and moved; they are added."""
    blocks = _Blocks(col2im)
    type_, size = data.type, prod(col2im.block_shape)
    lengths = [dim for dim in col2im.image_shape if isinstance(dim, int)]
    counts = [count for count in blocks.counts if isinstance(count, int)]
    if not isinstance(type_, TensorType) or len(lengths) != len(col2im.image_shape):
        raise TypeInferenceError("the image needs fixed lengths to be put together")
    if size > _MOST_BLOCKS or isinstance(type_.shape[1], Any):
        raise TypeInferenceError(f"blocks of {size} elements are too large to be taken apart")
    rest = range(2, 2 + len(lengths))
    apart = call("reshape", data, newshape=(0, type_.shape[1] // size, size, *counts))
    parts = call("split", apart, indices_or_sections=size, axis=2)
    total: Expr | None = None
    for number, place in enumerate(np.ndindex(*col2im.block_shape)):
        part: Expr = call("squeeze", TupleGetItem(parts, number), axis=(2,))
        if max(blocks.strides) > 1:
            part = call("nn.dilate", part, strides=(1, 1, *blocks.strides))
        widths = [(0, 0), (0, 0)]
        for axis, length in enumerate(lengths):
            before = place[axis] * blocks.dilation[axis]
            span = (counts[axis] - 1) * blocks.strides[axis] + 1
            whole = length + blocks.before[axis] + blocks.after[axis]
            widths.append((before, whole - before - span))
        part = call("nn.pad", part, const(0, type_.dtype), pad_width=widths)
        total = part if total is None else call("add", total, part)
    if total is None:
        raise TypeInferenceError("a block without elements")
    ends = [before + length for before, length in zip(blocks.before, lengths, strict=True)]
    ones = (1,) * len(lengths)
    return call(
        "strided_slice", total, begin=blocks.before, end=ends, strides=ones, axes=tuple(rest)
    )


@relay_op(
    "serde.col2im",
    infer=_col2im_type,
    decompose=_decompose_col2im,
    samples=[
        sample((2, 6, 9), image_shape=(4, 5), block_shape=(2, 3)),
        sample((1, 9, 4), image_shape=(5, 5), block_shape=(3, 3), strides=(2, 2)),
        sample(
            (1, 8, 16),
            image_shape=(5, 5),
            block_shape=(2, 2),
            padding=(1, 0, 0, 0),
            dilation=(2, 1),
        ),
        sample(tensor((1, 4, 5), "float64"), image_shape=(10,), block_shape=(2,), strides=(2,)),
        sample((1, 8, 2), image_shape=(3, 2, 2), block_shape=(2, 2, 2)),
    ],
)
def col2im(data: Array, *, col2im: Columns) -> Array:
    """Images in which blocks lie next to or over each other; what lies over each other is added.

    Args:
        data: (batch, channels times elements of a block, blocks), blocks and their elements in
            row-major order.
        col2im: Where blocks lie.

    Returns:
        (batch, channels, image), as ``fold`` of PyTorch and Col2Im of ONNX yield.
    """
    blocks = _Blocks(col2im)
    counts = [int(count) for count in blocks.counts if isinstance(count, int)]
    lengths = [int(dim) for dim in col2im.image_shape if isinstance(dim, int)]
    wide = widen(data)
    columns = wide.reshape(len(data), -1, prod(col2im.block_shape), *counts)
    around = [n + b + a for n, b, a in zip(lengths, blocks.before, blocks.after, strict=True)]
    result = np.zeros((*columns.shape[:2], *around), wide.dtype)
    whole = (slice(None), slice(None))
    for number, place in enumerate(np.ndindex(*col2im.block_shape)):
        spots = zip(place, counts, blocks.strides, blocks.dilation, strict=True)
        cuts = tuple(slice(p * d, p * d + (n - 1) * s + 1, s) for p, n, s, d in spots)
        result[(*whole, *cuts)] += columns[:, :, number]
    inner = tuple(slice(b, b + n) for b, n in zip(blocks.before, lengths, strict=True))
    return result[(*whole, *inner)].astype(data.dtype)


def _window_type(
    data: TensorType, *, axis: int, window_shape: Sequence[int], strides: Sequence[int]
) -> TensorType:
    first = normalize_axis(axis, data.rank)
    axes = data.shape[first:]
    if not len(axes) == len(window_shape) == len(strides):
        raise TypeInferenceError(f"expected a window over {len(axes)} axes, found {window_shape}")
    if min(window_shape) < 1:
        raise TypeInferenceError(f"a window of {window_shape} is empty")
    sizes = zip(axes, window_shape, strides, strict=True)
    counts = [pool_dim(dim, width, by, 0, 1, ceil_mode=False) for dim, width, by in sizes]
    return TensorType((*data.shape[:first], *counts, *window_shape), data.dtype)


@relay_op(
    "sliding_window",
    traits=(Moves(), Fusion(FusionPattern.OPAQUE)),
    infer=_window_type,
    decompose=decompose_sliding_window,
    samples=[
        sample((2, 3, 7, 8), axis=1, window_shape=[3, 3, 4], strides=[1, 2, 2]),
        sample((9,), axis=-1, window_shape=[4], strides=[3]),
    ],
)
def sliding_window(
    data: Array, *, axis: int, window_shape: tuple[int, ...], strides: tuple[int, ...]
) -> Array:
    """All windows over the axes from `axis` on; their own axes come last."""
    first = axis % data.ndim
    axes = tuple(range(first, data.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(data, window_shape, axis=axes)  # type: ignore[call-overload]
    steps = (slice(None),) * first + tuple(slice(None, None, by) for by in strides)
    return windows[steps].copy()

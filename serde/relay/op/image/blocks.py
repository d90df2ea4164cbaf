"""Blocks of pixels moved between space and channels, or between space and batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from serde.core.weights import numpy_dtype
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Constant, Dim, Expr, TensorType, layout_axes, tensor_type
from serde.relay.ir.registry import Arguments, Array, builder, call, relay_op, sample
from serde.relay.ir.traits import Fusion, FusionPattern, Layout, Moves, Values
from serde.relay.lowering.image import decompose_depth_to_space, decompose_space_to_depth


def _image_shape(data: TensorType, layout: str) -> tuple[Dim, Dim, Dim, Dim]:
    axes = layout_axes(layout, "NCHW")
    if data.rank != 4:
        raise TypeInferenceError(f"expected data of layout {layout}, found {data!r}")
    n, c, h, w = (data.shape[axis] for axis in axes)
    return n, c, h, w


def _divide(length: Dim, by: int, what: str) -> Dim:
    if by < 1 or (type(length) is int and length % by):
        raise TypeInferenceError(f"{what} of {length} does not divide by {by}")
    return length // by


def _restore(shape: tuple[Dim, ...], layout: str) -> tuple[Dim, ...]:
    return tuple(shape["NCHW".index(letter)] for letter in layout)


def _depth_to_space_type(
    data: TensorType, *, block_size: int, layout: str, mode: str
) -> TensorType:
    n, c, h, w = _image_shape(data, layout)
    channels = _divide(c, block_size * block_size, "a number of channels")
    shape = (n, channels, h * block_size, w * block_size)
    return TensorType(_restore(shape, layout), data.dtype)


@relay_op(
    "nn.depth_to_space",
    traits=(Moves(all=True), Layout()),
    infer=_depth_to_space_type,
    samples=[
        sample((1, 8, 3, 4), block_size=2),
        sample((1, 8, 3, 4), block_size=2, mode="CRD"),
        sample((1, 3, 4, 9), block_size=3, layout="NHWC"),
    ],
    decompose=decompose_depth_to_space,
    arguments=Arguments(
        required=("block_size",), convert={"mode": lambda mode: "CRD" if mode == "CDR" else mode}
    ),
)
def depth_to_space(
    data: Array,
    *,
    block_size: int = 1,
    layout: str = "NCHW",
    mode: Literal["DCR", "CRD", ""] = "DCR",
) -> Array:
    """Channels moved into square blocks of pixels.

    In mode CRD the channels of a block are adjacent, in mode DCR (also the empty one)
    they are as far apart as the result has channels. TVM says CDR for CRD.
    """
    x = data.transpose(layout_axes(layout, "NCHW"))
    n, c, h, w = x.shape
    b, channels = block_size, c // (block_size * block_size)
    if mode == "CRD":
        parts = x.reshape(n, channels, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        parts = x.reshape(n, b, b, channels, h, w).transpose(0, 3, 4, 1, 5, 2)
    return parts.reshape(n, channels, h * b, w * b).transpose(layout_axes("NCHW", layout))


def _space_to_depth_type(
    data: TensorType, *, block_size: int, layout: str, mode: str
) -> TensorType:
    n, c, h, w = _image_shape(data, layout)
    height = _divide(h, block_size, "a height")
    width = _divide(w, block_size, "a width")
    shape = (n, c * (block_size * block_size), height, width)
    return TensorType(_restore(shape, layout), data.dtype)


@relay_op(
    "nn.space_to_depth",
    traits=(Moves(all=True), Layout()),
    infer=_space_to_depth_type,
    samples=[
        sample((1, 2, 4, 6), block_size=2, mode=""),
        sample((1, 6, 3, 2), block_size=3, layout="NHWC"),
    ],
    decompose=decompose_space_to_depth,
)
def space_to_depth(
    data: Array, *, block_size: int = 1, layout: str = "NCHW", mode: Literal["DCR", ""] = "DCR"
) -> Array:
    """Square blocks of pixels moved into channels: undoes ``nn.depth_to_space`` in mode DCR."""
    x = data.transpose(layout_axes(layout, "NCHW"))
    n, c, h, w = x.shape
    b = block_size
    parts = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return parts.reshape(n, c * b * b, h // b, w // b).transpose(layout_axes("NCHW", layout))


@builder("nn.space_to_depth")
def build_space_to_depth(data: Expr, block_size: int, layout: str = "NCHW") -> Expr:
    """Build ``nn.space_to_depth``; as in TVM, its mode is left empty."""
    return call("nn.space_to_depth", data, block_size=block_size, layout=layout, mode="")


def _require_pairs(name: str, pairs: Sequence[Sequence[int]], block_shape: Sequence[int]) -> None:
    bad = any(side < 0 for pair in pairs for side in pair)
    if bad or len(pairs) != len(block_shape) or any(block < 1 for block in block_shape):
        raise TypeInferenceError(
            f"{name}: expected a pair of 0 or more for each of the blocks {list(block_shape)}, "
            f"found {[list(pair) for pair in pairs]}"
        )


def _space_to_batch_type(
    data: TensorType,
    *,
    block_shape: tuple[int, ...],
    paddings: tuple[tuple[int, int], ...],
    pad_value: float,
) -> TensorType:
    _require_pairs("paddings", paddings, block_shape)
    rank = len(block_shape)
    if data.rank <= rank:
        raise TypeInferenceError(f"{data!r} has fewer than {rank} axes after the batch")
    batch = data.shape[0] * int(np.prod(block_shape, dtype=np.int64))
    space = [
        _divide(length + sum(pair), block, "a padded length")
        for length, pair, block in zip(data.shape[1:], paddings, block_shape, strict=False)
    ]
    return TensorType((batch, *space, *data.shape[1 + rank :]), data.dtype)


def _reshape(x: Expr, *steps: tuple[int, ...], right: bool = False) -> Expr:
    """Return `x` reshaped by codes, step by step, or at once where all lengths have names.

    What has none is known by the axes around it alone, one for each step; `right` counts these
    from the last axis.
    """
    found = x
    for codes in steps:
        found = call("contrib_reverse_reshape" if right else "reshape", found, newshape=codes)
    shape = tensor_type(found).shape
    if any(isinstance(length, Any) for length in shape):
        return found
    return call("reshape", x, newshape=shape)


def _decompose_space_to_batch(
    data: Expr,
    *,
    block_shape: tuple[int, ...],
    paddings: tuple[tuple[int, int], ...],
    pad_value: float,
) -> Expr:
    """Each axis is cut in two, and the places within the blocks go to the front."""
    type_, count = tensor_type(data), len(block_shape)
    rest = type_.rank - 1 - count
    if any(map(any, paddings)):
        value = Constant(np.asarray(pad_value).astype(numpy_dtype(type_.dtype)))
        data = call("nn.pad", data, value, pad_width=((0, 0), *paddings, *[(0, 0)] * rest))
    zeros = [(0,) * index for index in range(1, 2 * count, 2)]
    steps = [(*z, -4, -1, block, -2) for z, block in zip(zeros, block_shape, strict=True)]
    parts = _reshape(data, *steps)
    places, blocks = range(1, 2 * count, 2), range(2, 2 * count + 1, 2)
    order = (*blocks, 0, *places, *range(2 * count + 1, 2 * count + 1 + rest))
    moved = call("transpose", parts, axes=order)
    return _reshape(moved, (-1, *[0] * (count + rest)), right=True)


@relay_op(
    "nn.space_to_batch_nd",
    traits=(Values(0), Fusion(FusionPattern.INJECTIVE)),
    infer=_space_to_batch_type,
    decompose=_decompose_space_to_batch,
    samples=[
        sample((1, 4, 6, 1), block_shape=(2, 2), paddings=((0, 0), (2, 0))),
        sample((2, 5, 3), block_shape=(3,), paddings=((1, 0),), pad_value=0.5),
    ],
    arguments=Arguments(order=("block_shape", "paddings", "pad_value")),
)
def space_to_batch_nd(
    data: Array,
    *,
    block_shape: tuple[int, ...] = (1, 1),
    paddings: tuple[tuple[int, int], ...],
    pad_value: float = 0.0,
) -> Array:
    """The axes after the first padded, then every element of a block made a sample of its own."""
    rank = len(block_shape)
    rest = data.ndim - 1 - rank
    value = np.asarray(pad_value).astype(data.dtype)
    padded = np.pad(data, ((0, 0), *paddings, *[(0, 0)] * rest), constant_values=value)
    split: list[int] = [padded.shape[0]]
    for length, block in zip(padded.shape[1:], block_shape, strict=False):
        split += [length // block, block]
    tail = padded.shape[1 + rank :]
    places, blocks = range(1, 2 * rank, 2), range(2, 2 * rank + 1, 2)
    order = (*blocks, 0, *places, *range(2 * rank + 1, 2 * rank + 1 + rest))
    moved = padded.reshape(*split, *tail).transpose(order)
    return moved.reshape(-1, *(split[axis] for axis in places), *tail)


def _batch_to_space_type(
    data: TensorType, *, block_shape: tuple[int, ...], crops: tuple[tuple[int, int], ...]
) -> TensorType:
    _require_pairs("crops", crops, block_shape)
    rank = len(block_shape)
    if data.rank <= rank:
        raise TypeInferenceError(f"{data!r} has fewer than {rank} axes after the batch")
    batch = _divide(data.shape[0], int(np.prod(block_shape, dtype=np.int64)), "a batch")
    space: list[Dim] = []
    for length, pair, block in zip(data.shape[1:], crops, block_shape, strict=False):
        kept = length * block - sum(pair)
        if type(kept) is int and kept < 0:
            raise TypeInferenceError(f"crops {list(pair)} leave a length of {kept}")
        space.append(kept)
    return TensorType((batch, *space, *data.shape[1 + rank :]), data.dtype)


def _decompose_batch_to_space(
    data: Expr, *, block_shape: tuple[int, ...], crops: tuple[tuple[int, int], ...]
) -> Expr:
    """The places within the blocks come back behind their axes, which are then cut."""
    rank, count = tensor_type(data).rank, len(block_shape)
    kept = [0] * (rank - 1)
    parts = _reshape(data, (*block_shape, -1, *kept), right=True)
    pairs = [axis for place in range(count) for axis in (count + 1 + place, place)]
    order = (count, *pairs, *range(2 * count + 1, count + rank))
    moved = call("transpose", parts, axes=order)
    whole = _reshape(moved, *[((0,) * (1 + place) + (-3, -2)) for place in range(count)])
    cut = [place for place, pair in enumerate(crops) if any(pair)]
    if not cut:
        return whole
    begin, end = zip(*(crops[place] for place in cut), strict=True)
    return call(
        "strided_slice",
        whole,
        begin=begin,
        end=[-each if each else 2**31 - 1 for each in end],
        strides=[1] * len(cut),
        axes=[1 + place for place in cut],
    )


@relay_op(
    "nn.batch_to_space_nd",
    traits=(Moves(),),
    infer=_batch_to_space_type,
    decompose=_decompose_batch_to_space,
    samples=[
        sample((4, 2, 3, 1), block_shape=(2, 2), crops=((0, 0), (1, 0))),
        sample((6, 2, 3), block_shape=(3,), crops=((1, 2),)),
    ],
    arguments=Arguments(order=("block_shape", "crops")),
)
def batch_to_space_nd(
    data: Array, *, block_shape: tuple[int, ...] = (1, 1), crops: tuple[tuple[int, int], ...]
) -> Array:
    """Samples put back as the elements of blocks, then cropped: undoes ``nn.space_to_batch_nd``."""
    rank = len(block_shape)
    tail = data.shape[1 + rank :]
    lengths = data.shape[1 : 1 + rank]
    parts = data.reshape(*block_shape, -1, *lengths, *tail)
    order = [rank]
    for axis in range(rank):
        order += [rank + 1 + axis, axis]
    order += range(2 * rank + 1, parts.ndim)
    spread = [length * block for length, block in zip(lengths, block_shape, strict=True)]
    whole = parts.transpose(order).reshape(parts.shape[rank], *spread, *tail)
    kept = (slice(b, n - a) for n, (b, a) in zip(spread, crops, strict=True))
    return whole[(slice(None), *kept)]

"""Operators that pick elements by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, broadcast, is_float, join_dim, normalize_axis, ranges
from serde.relay.ir.registry import Arguments, Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.traits import Fusion, FusionPattern, InRange, Moves, Values
from serde.relay.ir.types import TensorType
from serde.relay.lowering.index import decompose_adv_index, decompose_unravel_index

__all__ = ["index_depth", "require_integers"]


def require_integers(*operands: TensorType) -> None:
    """Refuse indices that are not integers."""
    for operand in operands:
        if is_float(operand.dtype) or operand.dtype == "bool":
            raise TypeInferenceError(f"expected integer indices, found {operand.dtype}")


def _batch(batch_dims: int, indices: int, axis: int) -> int:
    """Return the number of leading axes that data and indices share."""
    count = batch_dims + indices if batch_dims < 0 else batch_dims
    if not 0 <= count <= min(indices, axis):
        raise TypeInferenceError(f"batch_dims {batch_dims} is more than the axes before {axis}")
    return count


def _take_type(
    data: TensorType, indices: TensorType, *, batch_dims: int, axis: int | None, mode: str
) -> TensorType:
    require_integers(indices)
    if axis is None:
        if batch_dims:
            raise TypeInferenceError("batch_dims needs an axis")
        return TensorType(indices.shape, data.dtype)
    along = normalize_axis(axis, data.rank)
    shared = _batch(batch_dims, indices.rank, along)
    for expected, found in zip(data.shape[:shared], indices.shape[:shared], strict=True):
        join_dim(expected, found)
    shape = (*data.shape[:along], *indices.shape[shared:], *data.shape[along + 1 :])
    return TensorType(shape, data.dtype)


@relay_op(
    "take",
    traits=(Moves(), InRange(ranges.along_axis(1, "axis"))),
    infer=_take_type,
    samples=[
        sample((5, 6), tensor((2,), "int32", low=-9, high=99), mode="wrap"),
        sample((5, 6), tensor((2, 3), "int64", low=-3, high=9), axis=0),
        sample((5, 6), tensor((), "int32", low=0, high=5), axis=-1, mode="fast"),
        sample((2, 3, 4), tensor((2, 5), "int32", low=0, high=3), batch_dims=1, axis=2),
        sample((2, 3, 4), tensor((2, 3, 2), "int32", low=0, high=3), batch_dims=-1, axis=2),
        sample((2, 3), tensor((2,), "int32", low=-1, high=3), batch_dims=1, axis=1),
    ],
    arguments=Arguments(order=("axis",)),
)
def take(
    data: Array,
    indices: Array,
    *,
    batch_dims: int = 0,
    axis: int | None = None,
    mode: Literal["clip", "wrap", "fast"] = "clip",
) -> Array:
    """The entries of `axis`, or of the flat tensor, at `indices`.

    An index out of range is clipped, wraps around, or ("fast") must not occur.
    """
    source, along = (data.reshape(-1), 0) if axis is None else (data, axis % data.ndim)
    bound: Literal["clip", "wrap"] = "wrap" if mode == "wrap" else "clip"
    wide = indices.astype(np.int64, copy=False)
    if batch_dims == 0:
        return np.take(source, wide, axis=along, mode=bound)
    shared = _batch(batch_dims, indices.ndim, along)
    length = source.shape[along]
    place = wide % length if bound == "wrap" else np.clip(wide, 0, length - 1)
    before, after = source.shape[shared:along], source.shape[along + 1 :]
    rows = int(np.prod(source.shape[:shared]))
    table = source.reshape(rows, int(np.prod(before)), length, int(np.prod(after)))
    picked = table[np.arange(rows)[:, None], :, place.reshape(rows, -1)]
    shape = (*source.shape[:along], *indices.shape[shared:], *after)
    return picked.transpose(0, 2, 1, 3).reshape(shape)


def _gather_type(data: TensorType, indices: TensorType, *, axis: int | None) -> TensorType:
    require_integers(indices)
    if axis is None:
        raise TypeInferenceError("attribute axis must name an axis")
    along = normalize_axis(axis, data.rank)
    if indices.rank != data.rank:
        raise TypeInferenceError(f"expected indices of rank {data.rank}, found {indices!r}")
    for i, (have, want) in enumerate(zip(data.shape, indices.shape, strict=True)):
        if i != along and isinstance(have, int) and isinstance(want, int) and want > have:
            raise TypeInferenceError(f"indices {indices!r} reach beyond {data!r}")
    return TensorType(indices.shape, data.dtype)


@relay_op(
    "gather",
    traits=(Moves(), InRange(ranges.along_axis(1, "axis", below=True))),
    infer=_gather_type,
    samples=[
        sample((3, 4), tensor((3, 2), "int64", low=-4, high=3), axis=1),
        sample((3, 4), tensor((5, 2), "int32", low=0, high=2), axis=-2),
    ],
)
def gather(data: Array, indices: Array, *, axis: int | None = None) -> Array:
    """Along `axis` the entry that each index names, elsewhere that of the same place."""
    along = (axis or 0) % data.ndim
    window = tuple(slice(None) if i == along else slice(n) for i, n in enumerate(indices.shape))
    return np.take_along_axis(data[window], indices.astype(np.int64), along)


@builder("gather")
def build_gather(data: Expr, axis: int, indices: Expr) -> Expr:
    """Return the entries of `data` that `indices` names along `axis`."""
    return call("gather", data, indices, axis=axis)


def index_depth(indices: TensorType, hint: int | None = None) -> int:
    """Return how many axes an index in the first axis of `indices` names."""
    if not indices.rank:
        raise TypeInferenceError("expected indices with the index in the first axis")
    depth = indices.shape[0]
    if isinstance(depth, int):
        return depth
    if hint is None:
        raise TypeInferenceError("the length of an index is not known; give index_rank")
    return hint


def _gather_nd_type(
    data: TensorType, indices: TensorType, *, batch_dims: int, index_rank: int | None
) -> TensorType:
    require_integers(indices)
    depth = index_depth(indices, index_rank)
    if batch_dims < 0 or batch_dims >= max(indices.rank, 1) or batch_dims + depth > data.rank:
        raise TypeInferenceError(
            f"indices of {depth} behind {batch_dims} shared axes do not fit {data!r}"
        )
    for expected, found in zip(data.shape[:batch_dims], indices.shape[1:], strict=False):
        join_dim(expected, found)
    return TensorType((*indices.shape[1:], *data.shape[batch_dims + depth :]), data.dtype)


@relay_op(
    "gather_nd",
    traits=(Moves(), InRange(ranges.coordinates(batch="batch_dims", last=False))),
    infer=_gather_nd_type,
    samples=[
        sample((3, 4, 5), tensor((2, 7), "int32", low=0, high=2)),
        sample((3, 4, 5), tensor((1, 3, 7), "int32", low=0, high=3), batch_dims=1),
        sample((3, 4), tensor((2,), "int64", low=0, high=2), index_rank=2),
    ],
)
def gather_nd(
    data: Array, indices: Array, *, batch_dims: int = 0, index_rank: int | None = None
) -> Array:
    """The slices at the indices, each of which lies along the first axis of `indices`."""
    grid = np.indices(indices.shape[1:], sparse=True)[:batch_dims]
    batch = (np.broadcast_to(each, indices.shape[1:]) for each in grid)
    return np.asarray(data[(*batch, *indices)])


def _adv_index_type(inputs: Sequence[TensorType]) -> TensorType:
    if len(inputs) < 2 or len(inputs) - 1 > inputs[0].rank:
        raise TypeInferenceError("expected a tensor and an index for each of its leading axes")
    data, indices = inputs[0], inputs[1:]
    require_integers(*indices)
    shape = broadcast(*(index.shape for index in indices))
    return TensorType((*shape, *data.shape[len(indices) :]), data.dtype)


@relay_op(
    "adv_index",
    traits=(Values(0), Fusion(FusionPattern.INJECTIVE), InRange(ranges.advanced_indices)),
    infer=_adv_index_type,
    decompose=decompose_adv_index,
    samples=[
        sample([(5, 6), tensor((3,), "int64", low=0, high=4), tensor((3,), "int64", low=0)]),
        sample([(5, 6, 2), tensor((3, 1), "int32", low=0), tensor((4,), "int32", low=0)]),
    ],
)
def adv_index(inputs: tuple[Array, ...]) -> Array:
    """The first tensor at the indices, which broadcast against each other."""
    return np.asarray(inputs[0][inputs[1:]])


def _unravel_type(data: TensorType, shape: TensorType) -> TensorType:
    require_integers(data, shape)
    if shape.rank != 1:
        raise TypeInferenceError(f"expected a vector of lengths, found {shape!r}")
    rank: Dim = shape.shape[0]
    return TensorType((rank, *data.shape), data.dtype)


@relay_op(
    "unravel_index",
    traits=(Fusion(FusionPattern.INJECTIVE), InRange(ranges.flat_indices)),
    infer=_unravel_type,
    decompose=decompose_unravel_index,
    samples=[
        sample(tensor((3,), "int64", low=0, high=11), np.array([3, 4])),
        sample(tensor((), "int32", low=0, high=23), np.array([2, 3, 4], np.int32)),
    ],
)
def unravel_index(data: Array, shape: Array) -> Array:
    """The coordinates, along a new first axis, of row-major places in a tensor of `shape`."""
    lengths = shape.astype(np.int64)
    strides = np.cumprod(np.concatenate([lengths[1:], [1]])[::-1])[::-1]
    columns = (data.ndim) * (1,)
    places = data[None] // strides.reshape(-1, *columns) % lengths.reshape(-1, *columns)
    return np.asarray(places).astype(data.dtype)

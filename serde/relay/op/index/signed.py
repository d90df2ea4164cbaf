"""Picking by indices of which the negative ones count from the end, as in NumPy and ONNX.

Relay's own operators leave negative indices undefined, clip them or ignore them. An index
outside the axis on either side must not occur, but for ``serde.one_hot``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, const, join_dim, normalize_axis, ranges, tensor_type
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.traits import Fusion, FusionPattern, InRange, Moves
from serde.relay.ir.types import TensorType
from serde.relay.lowering.index import from_start
from serde.relay.op.index.gather import require_integers


def _lengths(data: Expr, axes: Sequence[int], dtype: str) -> Expr:
    """Return a vector of lengths of axes, a constant where they are fixed."""
    dims = [tensor_type(data).shape[axis] for axis in axes]
    if all(isinstance(dim, int) for dim in dims):
        return const(np.array(dims), dtype)
    shape = call("shape_of", data, dtype="int64")
    return call("cast", call("take", shape, const(np.array(axes), "int64"), axis=0), dtype=dtype)


def _take_type(data: TensorType, indices: TensorType, *, axis: int) -> TensorType:
    require_integers(indices)
    along = normalize_axis(axis, data.rank)
    shape = (*data.shape[:along], *indices.shape, *data.shape[along + 1 :])
    return TensorType(shape, data.dtype)


def _decompose_take(data: Expr, indices: Expr, *, axis: int) -> Expr:
    along = axis % tensor_type(data).rank
    length = call("squeeze", _lengths(data, [along], tensor_type(indices).dtype), axis=(0,))
    return call("take", data, from_start(indices, length), axis=along, mode="fast")


@relay_op(
    "serde.take",
    traits=(Moves(), InRange(ranges.along_axis(1, "axis", below=True))),
    infer=_take_type,
    decompose=_decompose_take,
    samples=[
        sample((5, 6), tensor((2, 3), "int64", low=-5, high=4)),
        sample((2, 5, 6), tensor((), "int32", low=-5, high=4), axis=1),
        sample(tensor((4,), "int64"), np.array([-1, 0, -4, 3]), axis=-1),
    ],
)
def take(data: Array, indices: Array, *, axis: int = 0) -> Array:
    """The entries of `axis` at `indices`, negative ones counted from the end.

    Raises:
        IndexError: An index is outside the axis.
    """
    return np.asarray(np.take(data, indices, axis=axis))


def _gather_nd_type(data: TensorType, indices: TensorType, *, batch_dims: int) -> TensorType:
    require_integers(indices)
    depth = indices.shape[-1] if indices.rank else None
    if not isinstance(depth, int) or depth < 1:
        raise TypeInferenceError(f"expected a fixed number of indices a place, found {indices!r}")
    if not 0 <= batch_dims < indices.rank or batch_dims + depth > data.rank:
        raise TypeInferenceError(
            f"indices of {depth} behind {batch_dims} shared axes do not fit {data!r}"
        )
    shape: list[Dim] = list(indices.shape[:-1])
    for axis in range(batch_dims):
        shape[axis] = join_dim(shape[axis], data.shape[axis])
    return TensorType((*shape, *data.shape[batch_dims + depth :]), data.dtype)


def _decompose_gather_nd(data: Expr, indices: Expr, *, batch_dims: int) -> Expr:
    type_ = tensor_type(indices)
    depth, rank = type_.shape[-1], type_.rank
    if not isinstance(depth, int):
        raise TypeInferenceError(f"expected a fixed number of indices a place, found {type_!r}")
    lengths = _lengths(data, range(batch_dims, batch_dims + depth), type_.dtype)
    places = from_start(indices, lengths)
    if rank > 1:
        places = call("transpose", places, axes=(rank - 1, *range(rank - 1)))
    return call("gather_nd", data, places, batch_dims=batch_dims, index_rank=depth)


@relay_op(
    "serde.gather_nd",
    traits=(Moves(), InRange(ranges.coordinates(batch="batch_dims", last=True))),
    infer=_gather_nd_type,
    decompose=_decompose_gather_nd,
    samples=[
        sample((3, 4, 5), tensor((7, 2), "int64", low=-3, high=2)),
        sample((3, 4, 5), tensor((3, 7, 1), "int64", low=-4, high=3), batch_dims=1),
        sample((3, 4), np.array([-1, -4])),
    ],
)
def gather_nd(data: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    """The slices at the indices, each of which lies along the last axis of `indices`.

    Raises:
        IndexError: An index is outside its axis.
    """
    grid = np.indices(indices.shape[:-1], sparse=True)
    return np.asarray(data[(*grid[:batch_dims], *np.moveaxis(indices, -1, 0))])


def _one_hot_type(indices: TensorType, values: TensorType, *, depth: int, axis: int) -> TensorType:
    require_integers(indices)
    if depth < 1 or values.rank != 1:
        raise TypeInferenceError(
            f"expected a positive depth, two values; found {depth}, {values!r}"
        )
    join_dim(values.shape[0], 2)
    at = normalize_axis(axis, indices.rank + 1)
    return TensorType((*indices.shape[:at], depth, *indices.shape[at:]), values.dtype)


def _decompose_one_hot(indices: Expr, values: Expr, *, depth: int, axis: int) -> Expr:
    """Relay counts its axis with that of the classes, and ignores what is no class."""
    at = normalize_axis(axis, tensor_type(indices).rank + 1)
    places = from_start(indices, const(depth, tensor_type(indices).dtype))
    off, on = (call("take", values, const(each, "int64"), axis=0) for each in (0, 1))
    dtype = tensor_type(values).dtype
    return call("one_hot", places, on, off, depth=depth, axis=at, dtype=dtype)


_OFF_ON = np.array([0, 1], np.float32)


@relay_op(
    "serde.one_hot",
    traits=(Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE), InRange(ranges.below_depth, exact=False)),
    infer=_one_hot_type,
    decompose=_decompose_one_hot,
    samples=[
        sample(tensor((2, 3), "int64", low=-7, high=7), _OFF_ON, depth=5),
        sample(tensor((2, 3), "int64", low=-3, high=2), tensor((2,)), depth=3, axis=1),
        sample(tensor((), "int64", low=0, high=3), np.array([2, 7]), depth=4),
    ],
)
def one_hot(indices: Array, values: Array, *, depth: int, axis: int = -1) -> Array:
    """The second of `values` at each index along a new axis of `depth`, elsewhere the first.

    An index outside the axis on either side has the first everywhere.
    """
    at = axis % (indices.ndim + 1)
    wide = np.expand_dims(indices.astype(np.int64), at)
    steps = np.arange(depth).reshape([-1 if i == at else 1 for i in range(indices.ndim + 1)])
    return np.where(np.where(wide < 0, wide + depth, wide) == steps, values[1], values[0])

"""Operators that place or accumulate elements by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, InRange, TensorType, Values, const, ranges, tensor_type
from serde.relay.ir.registry import Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, normalize_axis, require_same_dtype
from serde.relay.lowering.sparse import decompose_sparse_to_dense
from serde.relay.op.index.gather import index_depth, require_integers
from serde.relay.op.shape.reshape import integers, lengths

Places = tuple[Array, ...]


def _write(target: Array, places: Places, updates: Array, how: str) -> Array:
    """Return `target` with `updates` written, the last where several meet, or accumulated."""
    accumulate: dict[str, np.ufunc] = {
        "add": np.add,
        "mul": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
    }
    if how == "mean":
        return _mean(target, places, updates)
    result = target.copy()
    if how == "update":
        result[places] = updates
    else:
        accumulate[how].at(result, places, updates)
    return result


def _mean(target: Array, places: Places, updates: Array) -> Array:
    """Return the mean of each element and all that is written to its place."""
    wide = np.promote_types(target.dtype, np.float64)
    total = target.astype(wide)
    np.add.at(total, places, updates.astype(wide))
    count = np.ones(target.shape)
    np.add.at(count, places, 1)
    return (total / count).astype(target.dtype)


def _elements_type(
    data: TensorType, indices: TensorType, updates: TensorType, *, axis: int, reduction: str
) -> TensorType:
    require_integers(indices)
    require_same_dtype(data, updates)
    normalize_axis(axis, data.rank)
    if not data.rank == indices.rank == updates.rank:
        raise TypeInferenceError(f"ranks differ: {data!r}, {indices!r} and {updates!r}")
    for a, b in zip(indices.shape, updates.shape, strict=True):
        join_dim(a, b)
    return data


_PLACES = tensor((2, 4), "int64", low=-3, high=2)


@relay_op(
    "scatter_elements",
    traits=(Values(0, 2), InRange(ranges.along_axis(1, "axis", below=True))),
    infer=_elements_type,
    meta_class="relay.attrs.ScatterElementsAttrs",
    samples=[
        sample((3, 4), _PLACES, (2, 4)),
        sample((3, 4), _PLACES, (2, 4), reduction="add"),
        sample((3, 4), tensor((3, 2), "int32", low=0, high=3), (3, 2), axis=-1, reduction="mul"),
        sample((3, 4), _PLACES, (2, 4), reduction="min"),
        sample((3, 4), _PLACES, (2, 4), reduction="max"),
        sample((3, 4), _PLACES, (2, 4), reduction="mean"),
    ],
)
def scatter_elements(
    data: Array,
    indices: Array,
    updates: Array,
    *,
    axis: int = 0,
    reduction: Literal["update", "add", "mul", "mean", "min", "max"] = "update",
) -> Array:
    """`data` with each update at the place that its index names along `axis`.

    Accumulation includes what `data` holds there.
    """
    along = axis % data.ndim
    places = list(np.indices(indices.shape, sparse=True))
    wide = indices.astype(np.int64, copy=False)
    places[along] = np.where(wide < 0, wide + data.shape[along], wide)
    return _write(data, tuple(places), updates, reduction)


def _nd_type(
    data: TensorType, indices: TensorType, updates: TensorType, *, mode: str
) -> TensorType:
    require_integers(indices)
    require_same_dtype(data, updates)
    depth = index_depth(indices)
    expected = (*indices.shape[1:], *data.shape[depth:])
    if depth > data.rank or len(expected) != updates.rank:
        raise TypeInferenceError(f"updates {updates!r} and indices {indices!r} do not fit {data!r}")
    for a, b in zip(expected, updates.shape, strict=True):
        join_dim(a, b)
    return data


_CELLS = tensor((2, 5), "int32", low=0, high=2)


@relay_op(
    "scatter_nd",
    traits=(Values(0, 2), InRange(ranges.coordinates(batch=None, last=False))),
    infer=_nd_type,
    meta_class="relay.attrs.ScatterNDAttrs",
    samples=[
        sample((3, 4), _CELLS, (5,)),
        sample((3, 4), _CELLS, (5,), mode="add"),
        sample((3, 4), tensor((1, 2), "int64", low=0, high=2), (2, 4), mode="mul"),
        sample((3, 4), _CELLS, (5,), mode="min"),
        sample((3, 4), _CELLS, (5,), mode="max"),
    ],
)
def scatter_nd(
    data: Array,
    indices: Array,
    updates: Array,
    *,
    mode: Literal["update", "add", "mul", "min", "max"] = "update",
) -> Array:
    """`data` with each update at its index, which lies along the first axis of `indices`.

    Accumulation includes what `data` holds there.
    """
    return _write(data, tuple(indices), updates, mode)


def require_coordinates(
    sparse_indices: TensorType, sparse_values: TensorType, default_value: TensorType
) -> None:
    """Refuse what are no indices, one a row, with a value for each or one for all."""
    require_integers(sparse_indices)
    require_same_dtype(sparse_values, default_value)
    if default_value.rank or sparse_values.rank > 1 or sparse_indices.rank > 2:
        raise TypeInferenceError(
            f"expected a table of indices, a vector of values and a scalar, found "
            f"{sparse_indices!r}, {sparse_values!r} and {default_value!r}"
        )
    if sparse_values.rank:
        join_dim(sparse_indices.shape[0] if sparse_indices.rank else 1, sparse_values.shape[0])


def _sparse_type(
    sparse_indices: TensorType,
    sparse_values: TensorType,
    default_value: TensorType,
    *,
    output_shape: Sequence[Dim],
) -> TensorType:
    require_coordinates(sparse_indices, sparse_values, default_value)
    depth: Dim = sparse_indices.shape[1] if sparse_indices.rank == 2 else 1
    if isinstance(depth, int) and depth != len(output_shape):
        raise TypeInferenceError(f"indices of {depth} do not fit an output of {output_shape}")
    return TensorType(output_shape, sparse_values.dtype)


@relay_op(
    "sparse_to_dense",
    infer=_sparse_type,
    decompose=decompose_sparse_to_dense,
    samples=[
        sample(np.array([1, 4, 7]), (3,), np.array(0, np.float32), output_shape=[9]),
        sample(np.array([[0, 1], [2, 2]]), (2,), np.array(-1, np.float32), output_shape=[3, 4]),
        sample(np.array(2), (), np.array(0, np.float32), output_shape=[3]),
        sample(np.array([0, 2]), (), np.array(0, np.float32), output_shape=[3]),
    ],
)
def sparse_to_dense(
    sparse_indices: Array,
    sparse_values: Array,
    default_value: Array,
    *,
    output_shape: tuple[Dim, ...],
) -> Array:
    """A tensor of `default_value` with the values at the indices, one index a row."""
    shape = lengths(output_shape)
    result = np.full(shape, default_value, sparse_values.dtype)
    result[tuple(sparse_indices.reshape(-1, len(shape)).T)] = sparse_values
    return result


@builder("sparse_to_dense")
def build_sparse_to_dense(
    sparse_indices: Expr, output_shape: AnyValue, sparse_values: Expr, default_value: AnyValue = 0
) -> Expr:
    """Return a dense tensor of `output_shape` with the values at the indices."""
    fill = default_value
    if not isinstance(fill, Expr):
        values = sparse_values.checked_type
        if not isinstance(values, TensorType):
            raise TypeInferenceError(f"sparse_to_dense: expected a tensor, found {values!r}")
        fill = const(fill, values.dtype)
    shape = integers(output_shape)
    if isinstance(shape, Expr):
        return call("dyn.sparse_to_dense", sparse_indices, sparse_values, fill, shape)
    return call("sparse_to_dense", sparse_indices, sparse_values, fill, output_shape=shape)


@builder("segment_sum")
def build_segment_sum(data: Expr, segment_ids: Expr, num_segments: AnyValue = None) -> Expr:
    """Return the sums of the rows of `data` that have the same number in `segment_ids`.

    Args:
        data: Rows along its first axis.
        segment_ids: The number of each row's segment, from 0 on.
        num_segments: How many there are, a number or an expression; by default one more than the
            greatest number.
    """
    if num_segments is None:
        most = call("max", segment_ids, axis=(0,), keepdims=True)
        count: Expr = call("add", call("cast", most, dtype="int64"), const([1], "int64"))
    elif isinstance(num_segments, Expr):
        count = call("reshape", call("cast", num_segments, dtype="int64"), newshape=(1,))
    else:
        count = const([num_segments], "int64")
    rest = call(
        "strided_slice",
        call("shape_of", data, dtype="int64"),
        begin=(1,),
        end=(2**31 - 1,),
        strides=(1,),
        axes=None,
    )
    shape = call("concatenate", [count, rest], axis=0)
    zeros = call("dyn.zeros", shape, dtype=tensor_type(data).dtype)
    rows = call("expand_dims", segment_ids, axis=0)
    return call("scatter_nd", zeros, rows, data, mode="add")

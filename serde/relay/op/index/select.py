"""Operators that turn conditions, counts and indices into places, masks and codes."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Expr, TensorType, const, join_dim, normalize_axis, ranges
from serde.relay.ir.registry import Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.traits import Fusion, FusionPattern, InRange, Ordering, Selects, Values
from serde.relay.lowering.index import (
    decompose_invert_permutation,
    decompose_one_hot,
    decompose_sequence_mask,
)
from serde.relay.op.index.gather import require_integers
from serde.relay.op.shape.reshape import integers


def _argwhere_type(condition: TensorType) -> TensorType:
    return TensorType((Any(), condition.rank), "int32")


@relay_op(
    "argwhere",
    traits=(Selects,),
    infer=_argwhere_type,
    samples=[sample(tensor((2, 3), "bool")), sample((4,))],
)
def argwhere(condition: Array) -> Array:
    """The coordinates of the elements that are true or not zero, one a row."""
    return np.argwhere(condition).astype(np.int32)


def _one_hot_type(
    indices: TensorType,
    on_value: TensorType,
    off_value: TensorType,
    *,
    depth: int,
    axis: int,
    dtype: AnyValue,
) -> TensorType:
    require_integers(indices)
    if depth < 1 or on_value.rank or off_value.rank:
        raise TypeInferenceError(
            f"expected a positive depth and scalars, found {depth}, {on_value!r}, {off_value!r}"
        )
    if dtype is None:
        raise TypeInferenceError("attribute dtype must name the dtype of the result")
    at = normalize_axis(axis, indices.rank + 1)
    return TensorType((*indices.shape[:at], depth, *indices.shape[at:]), dtype)


_ON, _OFF = np.array(1, np.float32), np.array(0, np.float32)


@relay_op(
    "one_hot",
    traits=(Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE), InRange(ranges.below_depth, exact=False)),
    infer=_one_hot_type,
    decompose=decompose_one_hot,
    samples=[
        sample(tensor((2, 3), "int32"), _ON, _OFF, depth=5, dtype="float32"),
        sample(tensor((2, 3), "int64", low=0), _ON, _OFF, depth=3, axis=1, dtype="int32"),
        sample(tensor((), "int32", low=0), (), (), depth=4, dtype="float32"),
    ],
)
def one_hot(
    indices: Array,
    on_value: Array,
    off_value: Array,
    *,
    depth: int = 1,
    axis: int = -1,
    dtype: np.dtype[AnyValue] | None = None,
) -> Array:
    """`on_value` at each index along a new axis of `depth`, elsewhere `off_value`."""
    at = axis % (indices.ndim + 1)
    steps = np.arange(depth).reshape([-1 if i == at else 1 for i in range(indices.ndim + 1)])
    return np.where(np.expand_dims(indices, at) == steps, on_value, off_value).astype(dtype)


@builder("one_hot")
def build_one_hot(
    indices: Expr,
    on_value: AnyValue,
    off_value: AnyValue,
    depth: AnyValue,
    axis: int,
    dtype: AnyValue,
) -> Expr:
    """Return codes of `indices`; the two values are numbers or expressions."""
    values = (on_value, off_value)
    scalars = [value if isinstance(value, Expr) else const(value, dtype) for value in values]
    length = integers(depth)
    if isinstance(length, Expr):
        return call("dyn.one_hot", indices, *scalars, length, axis=axis, dtype=dtype)
    return call("one_hot", indices, *scalars, depth=length, axis=axis, dtype=dtype)


def _sequence_mask_type(
    data: TensorType, valid_length: TensorType, *, mask_value: float, axis: int
) -> TensorType:
    if data.rank < 2 or axis not in (0, 1):
        raise TypeInferenceError(f"expected the time axis 0 or 1 of {data!r}, found {axis}")
    if valid_length.rank != 1:
        raise TypeInferenceError(f"expected a vector of lengths, found {valid_length!r}")
    join_dim(data.shape[1 - axis], valid_length.shape[0])
    return data


@relay_op(
    "sequence_mask",
    traits=(
        Values(0),
        Fusion(FusionPattern.INJECTIVE),
        InRange(ranges.along_axis(1, "axis", least=1)),
    ),
    infer=_sequence_mask_type,
    decompose=decompose_sequence_mask,
    samples=[
        sample((4, 3, 2), tensor((3,), "int32", low=0, high=4), mask_value=-1.0),
        sample((3, 4), tensor((3,), low=0, high=4), axis=1),
    ],
)
def sequence_mask(
    data: Array, valid_length: Array, *, mask_value: float = 0.0, axis: int = 0
) -> Array:
    """`data` with `mask_value` from step `valid_length[b]` on, for each batch index b.

    Time is axis 0 and batch axis 1, or the other way round.
    """
    steps = np.arange(data.shape[axis])
    inside = steps[:, None] < valid_length if axis == 0 else steps < valid_length[:, None]
    mask = inside.reshape(inside.shape + (1,) * (data.ndim - 2))
    return np.where(mask, data, data.dtype.type(mask_value))


def _permutation_type(data: TensorType) -> TensorType:
    require_integers(data)
    if data.rank != 1:
        raise TypeInferenceError(f"expected a vector, found {data!r}")
    return data


@relay_op(
    "invert_permutation",
    traits=(Ordering, Fusion(FusionPattern.INJECTIVE)),
    infer=_permutation_type,
    decompose=decompose_invert_permutation,
    samples=[sample(np.array([2, 0, 3, 1], np.int32)), sample(np.array([0, 1]))],
)
def invert_permutation(data: Array) -> Array:
    """The permutation that undoes `data`."""
    return np.argsort(data, kind="stable").astype(data.dtype)

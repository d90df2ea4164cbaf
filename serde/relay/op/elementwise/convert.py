"""Conversion of element types."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, TensorType, ranges, relay_op, sample, tensor
from serde.relay.ir.shapes import itemsize
from serde.relay.ir.traits import (
    BitLevel,
    Elementwise,
    Fusion,
    FusionPattern,
    SameAxes,
    TypeOnly,
    UsuallyInRange,
    Values,
)

_NIBBLES = frozenset({"int2", "uint2", "int4", "uint4"})


def _cast_type(data: TensorType, *, dtype: np.dtype[AnyValue]) -> TensorType:
    return TensorType(data.shape, dtype)


def _convert(data: Array, dtype: np.dtype[AnyValue]) -> Array:
    with np.errstate(all="ignore"):
        if {data.dtype.name, dtype.name} <= _NIBBLES:  # which ml_dtypes does not convert
            data = data.astype(np.int8)
        return data.astype(dtype)


@relay_op(
    "cast",
    traits=(Elementwise, Values(0), UsuallyInRange(ranges.cast_to_bool)),
    infer=_cast_type,
    samples=[
        sample((2, 3), dtype="int8"),
        sample((2, 3), dtype="float16"),
        sample(tensor((3,), "int64"), dtype="float32"),
        sample(tensor((3,), "int32"), dtype="bool"),
        sample(tensor((), "bool"), dtype="float64"),
    ],
)
def cast(data: Array, *, dtype: np.dtype[AnyValue]) -> Array:
    """The values in another dtype: to integers towards zero, to bool whether not zero."""
    return _convert(data, dtype)


def _cast_like_type(data: TensorType, dtype_like: TensorType) -> TensorType:
    return TensorType(data.shape, dtype_like.dtype)


@relay_op(
    "cast_like",
    traits=(Values(0), TypeOnly(1), SameAxes(), Fusion(FusionPattern.ELEMWISE)),
    infer=_cast_like_type,
    samples=[sample((2, 3), tensor((1,), "int64")), sample(tensor((4,), "int32"), ())],
)
def cast_like(data: Array, dtype_like: Array) -> Array:
    """The values in the dtype of the second operand."""
    return _convert(data, dtype_like.dtype)


def _reinterpret_type(data: TensorType, *, dtype: np.dtype[AnyValue]) -> TensorType:
    if itemsize(data.dtype) != dtype.itemsize:
        raise TypeInferenceError(f"{data.dtype} and {dtype.name} have not the same width")
    return TensorType(data.shape, dtype)


@relay_op(
    "reinterpret",
    traits=(Elementwise, BitLevel),
    infer=_reinterpret_type,
    samples=[sample((2, 3), dtype="int32"), sample(tensor((), "int64"), dtype="float64")],
)
def reinterpret(data: Array, *, dtype: np.dtype[AnyValue]) -> Array:
    """The same bits read as another dtype of the same width."""
    return np.array(data, order="C").view(dtype)

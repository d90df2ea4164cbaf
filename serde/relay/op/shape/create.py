"""Operators that make a tensor: filled with one value, or counting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Dim, Expr, TensorType, const, ranges, tensor_type
from serde.relay.ir.registry import Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.traits import (
    Elementwise,
    Float32,
    Fusion,
    FusionPattern,
    InRange,
    TypeOnly,
    Values,
)
from serde.relay.lowering.lengths import length_of
from serde.relay.op.shape.reshape import integers, lengths

__all__ = ["positions_along"]


def _require_shape(shape: Sequence[Dim] | None) -> Sequence[Dim]:
    if shape is None:
        raise TypeInferenceError("attribute shape must be given")
    return shape


def _init_type(*, shape: Sequence[Dim] | None, dtype: AnyValue) -> TensorType:
    if dtype is None:
        raise TypeInferenceError("attribute dtype must name the dtype of the result")
    return TensorType(_require_shape(shape), dtype)


@relay_op(
    "zeros",
    traits=(Fusion(FusionPattern.ELEMWISE),),
    infer=_init_type,
    samples=[sample(shape=[2, 3], dtype="float32"), sample(shape=[], dtype="int64")],
)
def zeros(*, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None = None) -> Array:
    """Zeros."""
    return np.zeros(lengths(shape or ()), dtype)


@builder("zeros")
def build_zeros(shape: AnyValue, dtype: AnyValue) -> Expr:
    """Return zeros; `shape` is integers, dimensions or an expression."""
    given = integers(shape)
    if isinstance(given, Expr):
        return call("dyn.zeros", given, dtype=dtype)
    return call("zeros", shape=given, dtype=dtype)


@relay_op(
    "ones",
    traits=(Fusion(FusionPattern.ELEMWISE),),
    infer=_init_type,
    samples=[sample(shape=[2, 3], dtype="float32"), sample(shape=[], dtype="bool")],
)
def ones(*, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None = None) -> Array:
    """Ones."""
    return np.ones(lengths(shape or ()), dtype)


@builder("ones")
def build_ones(shape: AnyValue, dtype: AnyValue) -> Expr:
    """Return ones; `shape` is integers, dimensions or an expression."""
    given = integers(shape)
    if isinstance(given, Expr):
        return call("dyn.ones", given, dtype=dtype)
    return call("ones", shape=given, dtype=dtype)


def _require_scalar(operand: TensorType) -> None:
    if operand.rank:
        raise TypeInferenceError(f"expected a scalar, found {operand!r}")


def _full_type(
    fill_value: TensorType, *, shape: Sequence[Dim] | None, dtype: AnyValue
) -> TensorType:
    _require_scalar(fill_value)
    return TensorType(_require_shape(shape), dtype or fill_value.dtype)


@relay_op(
    "full",
    traits=(Values(0), Fusion(FusionPattern.ELEMWISE)),
    infer=_full_type,
    samples=[sample((), shape=[2, 3]), sample(np.array(2, np.int32), shape=[2], dtype="int64")],
)
def full(
    fill_value: Array, *, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None = None
) -> Array:
    """One value everywhere, in its own dtype or in `dtype`."""
    return np.full(lengths(shape or ()), fill_value, dtype or fill_value.dtype)


@builder("full")
def build_full(fill_value: Expr, shape: AnyValue = (), dtype: AnyValue = "") -> Expr:
    """Return a tensor of one value; `shape` is integers, dimensions or a constant."""
    given = integers(shape)
    if isinstance(given, Expr):
        return call("dyn.full", fill_value, given, dtype=dtype)
    return call("full", fill_value, shape=given, dtype=dtype)


def _full_like_type(data: TensorType, fill_value: TensorType) -> TensorType:
    _require_scalar(fill_value)
    return data


@relay_op(
    "full_like",
    traits=(Elementwise, Values(1), TypeOnly(0), Fusion(FusionPattern.ELEMWISE)),
    infer=_full_like_type,
    samples=[sample((2, 3), ()), sample(tensor((2,), "int32"), tensor((), "int32"))],
)
def full_like(data: Array, fill_value: Array) -> Array:
    """One value everywhere, in the shape and dtype of the first operand."""
    return np.full_like(data, fill_value)


def _count(start: AnyValue, end: AnyValue, step: AnyValue) -> int:
    """Return how many values there are; integers are counted exactly."""
    if step == 0:
        raise TypeInferenceError("the step is 0")
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return max(0, -((start - end) // step))
    count = (end - start) / step
    if not math.isfinite(count):
        raise TypeInferenceError(f"no number of steps of {step} leads from {start} to {end}")
    return max(0, math.ceil(count))


def _arange_type(
    start: Array | TensorType,
    end: Array | TensorType,
    step: Array | TensorType,
    *,
    dtype: np.dtype[AnyValue],
) -> TensorType:
    operands = (start, end, step)
    for operand in operands:
        if tuple(operand.shape) or np.dtype(operand.dtype) != dtype:
            raise TypeInferenceError(f"expected scalars of {dtype.name}, found {operand!r}")
    values = [operand.item() for operand in operands if isinstance(operand, np.ndarray)]
    return TensorType([_count(*values) if len(values) == 3 else Any()], dtype)


@relay_op(
    "arange",
    traits=(Float32(), InRange(ranges.increasing_range, exact=False)),
    infer=_arange_type,
    by_value=["start", "end", "step"],
    samples=[
        sample(*(np.array(v, np.int32) for v in (0, 10, 3)), dtype="int32"),
        sample(*(np.array(v, np.float32) for v in (1.0, -0.5, -0.25)), dtype="float32"),
        sample(*(np.array(v, np.int64) for v in (3, 1, 1)), dtype="int64"),
        sample(
            tensor((), "int32", low=0, high=2),
            np.array(9, np.int32),
            np.array(2, np.int32),
            dtype="int32",
        ),
    ],
)
def arange(start: Array, end: Array, step: Array, *, dtype: np.dtype[AnyValue]) -> Array:
    """`start`, `start` + `step` and so on, as long as it is before `end`."""
    first, by = start.item(), step.item()
    return (first + np.arange(_count(first, end.item(), by)) * by).astype(dtype)


@builder("arange")
def build_arange(
    start: AnyValue, stop: AnyValue = None, step: AnyValue = None, dtype: AnyValue = "float32"
) -> Expr:
    """Return the values from `start` to before `stop`; with one bound, from 0 to before it."""
    first, last = (0, start) if stop is None else (start, stop)
    bounds = (first, last, 1 if step is None else step)
    scalars = [bound if isinstance(bound, Expr) else const(bound, dtype) for bound in bounds]
    return call("arange", *scalars, dtype=dtype)


def positions_along(data: Expr, axis: int, dtype: str) -> Expr:
    """Return 0, 1 and so on below the length of an axis."""
    length = tensor_type(data).shape[axis]
    if isinstance(length, int):
        return const(allocation.arange(length), dtype)
    end = length_of(data, axis)
    found = call("arange", const(0, "int64"), end, const(1, "int64"), dtype="int64")
    return found if dtype == "int64" else call("cast", found, dtype=dtype)

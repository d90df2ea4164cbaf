"""Places of what is not zero, ones along a diagonal, rotation, and sums from either end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Array, Expr, call, const, relay_op, sample, tensor, tensor_type
from serde.relay.ir.shapes import is_float, normalize_axes, normalize_axis
from serde.relay.ir.traits import (
    Fusion,
    FusionPattern,
    Moves,
    SameAxes,
    SameType,
    Selects,
    Truth,
    TypeOnly,
)
from serde.relay.ir.types import TensorType
from serde.relay.lowering.lengths import positions


def _nonzero_type(data: TensorType) -> TensorType:
    if data.rank == 0:
        raise TypeInferenceError("a scalar has no places")
    return TensorType((data.rank, Any()), "int64")


def _decompose_nonzero(data: Expr) -> Expr:
    rows = call("argwhere", data)
    return call("cast", call("transpose", rows, axes=(1, 0)), dtype="int64")


@relay_op(
    "serde.nonzero",
    traits=(Selects,),
    infer=_nonzero_type,
    decompose=_decompose_nonzero,
    samples=[
        sample(tensor((2, 3), "bool")),
        sample(np.array([0, 3, 0, -1], np.float32)),
        sample(tensor((2, 3, 2), "int32", low=0, high=1)),
    ],
)
def nonzero(data: Array) -> Array:
    """The coordinates of the elements that are true or not zero, one a column."""
    return np.array(np.nonzero(data), np.int64)


def _eye_like_type(data: TensorType, *, k: int, dtype: np.dtype[AnyValue] | None) -> TensorType:
    if data.rank != 2:
        raise TypeInferenceError(f"expected a matrix, found {data!r}")
    return TensorType(data.shape, data.dtype if dtype is None else dtype_name(dtype))


def _decompose_eye_like(data: Expr, *, k: int, dtype: np.dtype[AnyValue] | None) -> Expr:
    rows, columns = (positions(data, axis) for axis in (0, 1))
    apart = call("subtract", columns, call("expand_dims", rows, axis=1))
    wanted = tensor_type(data).dtype if dtype is None else dtype_name(dtype)
    return call("cast", call("equal", apart, const(k, "int64")), dtype=wanted)


@relay_op(
    "serde.eye_like",
    traits=(TypeOnly(0), Truth, Fusion(FusionPattern.ELEMWISE)),
    infer=_eye_like_type,
    decompose=_decompose_eye_like,
    samples=[
        sample((3, 4)),
        sample(tensor((3, 3), "int32"), k=1),
        sample((4, 3), k=-2, dtype="float64"),
    ],
)
def eye_like(data: Array, *, k: int = 0, dtype: np.dtype[AnyValue] | None = None) -> Array:
    """A matrix of the shape of `data` with ones on its diagonal `k` to the right, else zeros."""
    rows, columns = data.shape
    return np.eye(rows, columns, k, dtype=data.dtype if dtype is None else dtype)


def _roll_type(data: TensorType, *, shift: tuple[int, ...], axes: tuple[int, ...]) -> TensorType:
    normalize_axes(axes, data.rank)
    if len(shift) != len(axes):
        raise TypeInferenceError(f"{len(shift)} shifts do not fit {len(axes)} axes")
    return data


def _decompose_roll(data: Expr, *, shift: tuple[int, ...], axes: tuple[int, ...]) -> Expr:
    """Each axis is looked up where its entries were."""
    result = data
    for axis, steps in zip(normalize_axes(axes, tensor_type(data).rank), shift, strict=True):
        places = call("subtract", positions(data, axis), const(steps, "int64"))
        length = tensor_type(data).shape[axis]
        if isinstance(length, int):
            places = call("floor_mod", places, const(max(length, 1), "int64"))
        result = call("take", result, places, axis=axis, mode="wrap")
    return result


@relay_op(
    "serde.roll",
    traits=(Moves(all=True),),
    infer=_roll_type,
    decompose=_decompose_roll,
    samples=[
        sample((2, 5), shift=1, axes=1),
        sample((4, 3, 2), shift=[-1, 7], axes=[0, -2]),
        sample(tensor((3,), "int32"), shift=[], axes=[]),
    ],
)
def roll(data: Array, *, shift: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """`data` moved along each axis by its shift; what leaves at one end enters at the other."""
    return np.roll(data, shift, axes) if axes else data


def _cumsum_type(data: TensorType, *, axis: int, **_: AnyValue) -> TensorType:
    if data.dtype == "bool":
        raise TypeInferenceError("expected a tensor of numbers, found bool")
    normalize_axis(axis, data.rank)
    return data


def _decompose_scan(data: Expr, *, name: str, axis: int, exclusive: bool, reverse: bool) -> Expr:
    along = axis % tensor_type(data).rank
    given = call("reverse", data, axis=along) if reverse else data
    total = call(name, given, axis=along, exclusive=exclusive)
    return call("reverse", total, axis=along) if reverse else total


_SCANNED = [
    sample((2, 5), axis=1, reverse=True),
    sample((2, 5), axis=-2, exclusive=True, reverse=True),
    sample(tensor((4,), "int32"), axis=0),
    sample(tensor((4,), "float16"), axis=0, reverse=True),
]


@relay_op(
    "serde.cumsum",
    traits=(SameAxes(("axis",)), SameType),
    infer=_cumsum_type,
    decompose=partial(_decompose_scan, name="cumsum"),
    samples=_SCANNED,
)
def cumsum(data: Array, *, axis: int, exclusive: bool = False, reverse: bool = False) -> Array:
    """``y[i] = sum(x[j] for j <= i)`` along `axis`, with `reverse` for j >= i.

    `exclusive` leaves out j = i.
    """
    return _accumulate(np.cumsum, 0, data, axis, exclusive, reverse)


@relay_op(
    "serde.cumprod",
    traits=(SameAxes(("axis",)), SameType),
    infer=_cumsum_type,
    decompose=partial(_decompose_scan, name="cumprod"),
    samples=_SCANNED,
)
def cumprod(data: Array, *, axis: int, exclusive: bool = False, reverse: bool = False) -> Array:
    """``y[i] = prod(x[j] for j <= i)`` along `axis`, with `reverse` for j >= i.

    `exclusive` leaves out j = i.
    """
    return _accumulate(np.cumprod, 1, data, axis, exclusive, reverse)


def _accumulate(
    scan: Callable[..., Array], first: int, data: Array, axis: int, exclusive: bool, reverse: bool
) -> Array:
    """Return running results that start from `first`; narrow numbers are computed in float32."""
    narrow = is_float(data.dtype.name) and data.dtype.itemsize < 4
    wide = np.dtype(np.float32) if narrow else data.dtype
    moved = np.moveaxis(np.flip(data, axis) if reverse else data, axis, 0).astype(wide)
    if exclusive:
        moved = np.concatenate([np.full_like(moved[:1], first), moved[:-1]])
    total = np.moveaxis(scan(moved, axis=0, dtype=wide), 0, axis)
    total = np.flip(total, axis) if reverse else total
    return np.ascontiguousarray(total).astype(data.dtype, copy=False)

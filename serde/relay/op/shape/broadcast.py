"""Operators that spread a tensor over a larger shape, and sum it back to a smaller one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Array, Dim, Expr, builder, call, const, relay_op, sample, tensor
from serde.relay.ir.shapes import broadcast_dim, is_float
from serde.relay.ir.traits import Elementwise, Fusion, FusionPattern, Moves, TypeOnly
from serde.relay.ir.types import TensorType
from serde.relay.lowering.shape import decompose_collapse_sum_like, decompose_collapse_sum_to
from serde.relay.op.shape.reshape import integers, lengths


def _require_fit(small: Sequence[Dim], large: Sequence[Dim]) -> None:
    """Refuse a shape that does not broadcast to exactly `large`."""
    fits = len(small) <= len(large)
    for a, b in zip(small[::-1], large[::-1], strict=False):
        fits = fits and (a == 1 or b == a or not isinstance(a, int) or not isinstance(b, int))
    if not fits:
        shown = " to ".join(f"({', '.join(map(str, shape))})" for shape in (small, large))
        raise TypeInferenceError(f"no broadcast from {shown}")


def _target(data: TensorType, shape: Sequence[Dim]) -> TensorType:
    """Return the type of `data` broadcast to `shape`; an anonymous length takes the input's."""
    _require_fit(data.shape, shape)
    offset = len(shape) - data.rank
    known = [
        broadcast_dim(dim, data.shape[i - offset]) if isinstance(dim, Any) and i >= offset else dim
        for i, dim in enumerate(shape)
    ]
    return TensorType(known, data.dtype)


def _require_dtype(data: TensorType, dtype: np.dtype[AnyValue] | None) -> None:
    if dtype is not None and dtype.name != data.dtype:
        raise TypeInferenceError(f"dtype {dtype.name} is not the operand's {data.dtype}")


def _broadcast_to_type(
    data: TensorType, *, shape: Sequence[Dim] | None, dtype: np.dtype[AnyValue] | None
) -> TensorType:
    if shape is None:
        raise TypeInferenceError("attribute shape must be given")
    _require_dtype(data, dtype)
    return _target(data, shape)


@relay_op(
    "broadcast_to",
    traits=(Moves(all=True), Fusion(FusionPattern.BROADCAST)),
    infer=_broadcast_to_type,
    samples=[sample((3, 1), shape=[2, 3, 4]), sample((), shape=[2]), sample((2,), shape=[2])],
)
def broadcast_to(
    data: Array, *, shape: tuple[Dim, ...] | None, dtype: np.dtype[AnyValue] | None = None
) -> Array:
    """`data` spread over `shape`."""
    return np.broadcast_to(data, lengths(shape or ())).copy()


@builder("broadcast_to")
def build_broadcast_to(data: Expr, shape: AnyValue) -> Expr:
    """Return `data` spread over `shape`: integers, dimensions or an expression."""
    given = integers(shape)
    if isinstance(given, Expr):
        return call("dyn.broadcast_to", data, given)
    return call("broadcast_to", data, shape=given)


def _broadcast_to_like_type(data: TensorType, broadcast_type: TensorType) -> TensorType:
    return _target(data, broadcast_type.shape)


@relay_op(
    "broadcast_to_like",
    traits=(Elementwise, Moves(all=True), TypeOnly(1)),
    infer=_broadcast_to_like_type,
    samples=[sample((3, 1), (2, 3, 4)), sample(tensor((), "int32"), (2,))],
)
def broadcast_to_like(data: Array, broadcast_type: Array) -> Array:
    """`data` spread over the shape of the second operand."""
    return np.broadcast_to(data, broadcast_type.shape).copy()


def _collapse(data: Array, shape: Sequence[int]) -> Array:
    offset = data.ndim - len(shape)
    short = [i + offset for i, n in enumerate(shape) if n == 1 and data.shape[i + offset] != 1]
    wide = np.float32 if is_float(data.dtype.name) and data.itemsize < 4 else data.dtype
    total = data.sum(axis=(*range(offset), *short), keepdims=True, dtype=wide)
    return total.astype(data.dtype).reshape(shape)


def _collapse_like_type(data: TensorType, collapse_type: TensorType) -> TensorType:
    _require_fit(collapse_type.shape, data.shape)
    return TensorType(collapse_type.shape, data.dtype)


@relay_op(
    "collapse_sum_like",
    traits=(TypeOnly(1), Fusion(FusionPattern.COMM_REDUCE)),
    infer=_collapse_like_type,
    decompose=decompose_collapse_sum_like,
    samples=[sample((2, 3, 4), (3, 1)), sample((2, 3), ()), sample((2, 3), (2, 3))],
)
def collapse_sum_like(data: Array, collapse_type: Array) -> Array:
    """`data` summed down to the shape of the second operand, from which it would broadcast."""
    return _collapse(data, collapse_type.shape)


def _collapse_to_type(
    data: TensorType, shape: Array | TensorType, *, dtype: np.dtype[AnyValue] | None
) -> TensorType:
    _require_dtype(data, dtype)
    if isinstance(shape, TensorType):
        if shape.rank != 1 or not isinstance(shape.shape[0], int):
            raise TypeInferenceError(f"expected a vector of known length, found {shape!r}")
        if shape.shape[0] > data.rank:
            raise TypeInferenceError(f"{shape.shape[0]} lengths for a tensor of {data.rank} axes")
        return TensorType([Any()] * shape.shape[0], data.dtype)
    if shape.ndim != 1 or shape.dtype.kind not in "iu":
        raise TypeInferenceError(f"expected a vector of lengths, found {shape!r}")
    wanted = [int(n) for n in shape]
    _require_fit(wanted, data.shape)
    return TensorType(wanted, data.dtype)


@relay_op(
    "collapse_sum_to",
    traits=(Fusion(FusionPattern.COMM_REDUCE),),
    infer=_collapse_to_type,
    decompose=decompose_collapse_sum_to,
    by_value=["shape"],
    meta_class="relay.attrs.InitOpAttrs",
    samples=[sample((2, 3, 4), np.array([3, 1])), sample((2, 3), np.array([2, 3]))],
)
def collapse_sum_to(data: Array, shape: Array, *, dtype: np.dtype[AnyValue] | None = None) -> Array:
    """`data` summed down to `shape`, from which it would broadcast."""
    return _collapse(data, [int(n) for n in shape])


@builder("collapse_sum_to")
def build_collapse_sum_to(data: Expr, shape: AnyValue) -> Expr:
    """Return `data` summed down to `shape`: integers or an expression."""
    wanted = shape if isinstance(shape, Expr) else const(list(shape), "int32")
    return call("collapse_sum_to", data, wanted)

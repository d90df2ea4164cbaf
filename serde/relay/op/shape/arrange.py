"""Operators that repeat elements, or put them in another order, as other layouts do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, TensorType, is_float, join_dim, normalize_axis, ranges
from serde.relay.ir.layout import LayoutPlan, change_layout
from serde.relay.ir.registry import Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.traits import Fusion, FusionPattern, InRange, Moves, SameAxes, Values
from serde.relay.lowering.shape import decompose_layout_transform, decompose_repeat
from serde.relay.op.shape.reshape import integers


def _tile_type(data: TensorType, *, reps: Sequence[int]) -> TensorType:
    if any(count < 0 for count in reps):
        raise TypeInferenceError(f"reps {list(reps)} must not be negative")
    rank = max(data.rank, len(reps))
    shape: list[Dim] = [*[1] * (rank - data.rank), *data.shape]
    counts = [*[1] * (rank - len(reps)), *reps]
    return TensorType([dim * count for dim, count in zip(shape, counts, strict=True)], data.dtype)


@relay_op(
    "tile",
    traits=(Moves(all=True), Fusion(FusionPattern.BROADCAST)),
    infer=_tile_type,
    samples=[sample((2, 3), reps=[2, 1, 2]), sample((2, 3), reps=[2]), sample((), reps=[3])],
)
def tile(data: Array, *, reps: tuple[int, ...]) -> Array:
    """The whole tensor repeated along each axis, aligned at the last."""
    return np.tile(data, reps)


@builder("tile")
def build_tile(data: Expr, reps: AnyValue) -> Expr:
    """Return `data` repeated as `reps`, integers or an expression, says."""
    counts = integers(reps)
    if isinstance(counts, Expr):
        return call("dyn.tile", data, counts)
    return call("tile", data, reps=counts)


def _repeat_type(data: TensorType, *, repeats: int, axis: int | None) -> TensorType:
    if repeats < 1:
        raise TypeInferenceError(f"repeats {repeats} must be positive")
    if axis is None:
        return TensorType([data.size * repeats], data.dtype)
    along = normalize_axis(axis, data.rank)
    shape = [dim * repeats if i == along else dim for i, dim in enumerate(data.shape)]
    return TensorType(shape, data.dtype)


@relay_op(
    "repeat",
    traits=(Moves(all=True), SameAxes(("axis",)), Fusion(FusionPattern.BROADCAST)),
    infer=_repeat_type,
    decompose=decompose_repeat,
    samples=[
        sample((2, 3), repeats=2, axis=1),
        sample((2, 3), repeats=3),
        sample((0, 3), repeats=2, axis=1),
    ],
)
def repeat(data: Array, *, repeats: int, axis: int | None = None) -> Array:
    """Each entry of `axis`, or each element of the flat tensor, `repeats` times in a row."""
    return np.repeat(data, repeats, axis)


def _reverse_sequence_type(
    data: TensorType, seq_lengths: TensorType, *, seq_axis: int, batch_axis: int
) -> TensorType:
    time, batch = normalize_axis(seq_axis, data.rank), normalize_axis(batch_axis, data.rank)
    if time == batch:
        raise TypeInferenceError(f"seq_axis and batch_axis are both {time}")
    if seq_lengths.rank != 1 or is_float(seq_lengths.dtype):
        raise TypeInferenceError(f"expected a vector of integers, found {seq_lengths!r}")
    join_dim(data.shape[batch], seq_lengths.shape[0])
    return data


@relay_op(
    "reverse_sequence",
    traits=(Moves(all=True), InRange(ranges.along_axis(1, "seq_axis", least=1))),
    infer=_reverse_sequence_type,
    samples=[
        sample((4, 3), tensor((3,), "int32", low=0, high=4), seq_axis=0, batch_axis=1),
        sample((3, 5, 2), tensor((3,), "int64", low=0, high=5)),
        sample((4, 3), tensor((4,), "int32", low=-2, high=9)),
    ],
)
def reverse_sequence(
    data: Array, seq_lengths: Array, *, seq_axis: int = 1, batch_axis: int = 0
) -> Array:
    """The first `seq_lengths[b]` entries of `seq_axis` reversed, for each batch index b.

    As in TVM, a length below 1 is 1, and one beyond the axis its whole.
    """
    moved = np.moveaxis(data, (batch_axis, seq_axis), (0, 1))
    steps = np.arange(moved.shape[1])
    length = np.minimum(seq_lengths, moved.shape[1]).astype(np.int64)[:, None]
    source = np.where(steps < length, length - 1 - steps, steps)
    picked = moved[np.arange(moved.shape[0])[:, None], source]
    return np.ascontiguousarray(np.moveaxis(picked, (0, 1), (batch_axis, seq_axis)))


def _layout_type(data: TensorType, *, src_layout: str, dst_layout: str) -> TensorType:
    plan = LayoutPlan(data.shape, src_layout, dst_layout, filled=True)
    return TensorType(plan.shape, data.dtype)


@relay_op(
    "layout_transform",
    traits=(Values(0), Fusion(FusionPattern.INJECTIVE)),
    infer=_layout_type,
    decompose=decompose_layout_transform,
    samples=[
        sample((1, 4, 2, 3), src_layout="NCHW", dst_layout="NHWC"),
        sample((1, 4, 2, 3), src_layout="NCHW", dst_layout="NCHW2c"),
        sample((1, 2, 2, 3, 2), src_layout="NCHW2c", dst_layout="NHWC"),
        sample((4, 8, 1, 1), src_layout="OIHW", dst_layout="OIHW2i4o2i"),
    ],
)
def layout_transform(data: Array, *, src_layout: str, dst_layout: str) -> Array:
    """The axes of `src_layout` in the order and the blocks of `dst_layout`.

    Zeros fill the last block of an axis that does not divide into blocks.
    """
    return change_layout(data, src_layout, dst_layout)

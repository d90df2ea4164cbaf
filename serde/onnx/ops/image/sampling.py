"""Images sampled between their pixels, spelled out in arithmetic and one Gather, and upsampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.core import Array, arange, dataclass
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.image.resize import ResizeAttributes, build_resize
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.shape.reshape import squeeze, unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr


@dataclass(frozen=True)
class Taps:
    """Neighbours of a position along an axis.

    Attributes:
        offsets: Their distances from the whole number at or before the position.
        weights: For each, the coefficients of its weight, a polynomial of its distance from
            the position, from the highest power on.
    """

    offsets: Sequence[int]
    weights: Array


LINEAR = Taps((0, 1), np.array([[-1.0, 1.0]] * 2))


def _make_cubic_taps(alpha: float) -> Taps:
    near = [alpha + 2, -(alpha + 3), 0, 1]
    far = [alpha, -5 * alpha, 8 * alpha, -4 * alpha]
    return Taps((-1, 0, 1, 2), np.array([far, near, near, far]))


CUBIC = _make_cubic_taps(-0.75)
"""Keys' cubic convolution as samplers of grids have it."""


def length_as_float64(ctx: Export, dim: Dim) -> Value:
    """Return a length as one number of float64."""
    if isinstance(dim, int):
        return ctx.const([dim], np.float64)
    return cast(ctx, ctx.shape([dim]), np.float64)


def flatten_pixels(ctx: Export, x: Value, shape: Sequence[Dim]) -> Value:
    """Return ``(pixels, channels)`` of images whose channels are on axis 1 of `shape`."""
    order = [0, *range(2, len(shape)), 1]
    moved = ctx.emit("Transpose", x, perm=order)
    return ctx.emit("Reshape", moved, ctx.shape([-1, shape[1]]))


def emit_arange(ctx: Export, count: Dim, rank: int) -> Value:
    """Return 0, 1, ... below `count` as float64 on the first of `rank` axes."""
    shape = [-1] + [1] * (rank - 1)
    if isinstance(count, int):
        return ctx.const(arange(count).reshape(shape), np.float64)
    end = ctx.emit("Reshape", ctx.shape([count]), ctx.const(np.zeros(0), np.int64))
    steps = ctx.emit("Range", ctx.const(0, np.int64), end, ctx.const(1, np.int64))
    return ctx.emit("Reshape", cast(ctx, steps, np.float64), ctx.ints(shape))


def round_half_away(ctx: Export, position: Value) -> Value:
    """Return the nearest whole number, of two the one further from zero."""
    raised = ctx.emit("Add", ctx.emit("Abs", position), ctx.const([0.5], np.float64))
    whole = ctx.emit("Floor", raised)
    negative = ctx.emit("Less", position, ctx.const([0], np.float64))
    return ctx.emit("Where", negative, ctx.emit("Neg", whole), whole)


def clamp(ctx: Export, position: Value, last: Value) -> Value:
    """Return ``min(max(position, 0), last)``."""
    return ctx.emit("Max", ctx.emit("Min", position, last), ctx.const([0], np.float64))


def is_outside(ctx: Export, position: Value, last: Value) -> Value:
    """Return whether positions are before the first or behind the last pixel."""
    before = ctx.emit("Less", position, ctx.const([0], np.float64))
    return ctx.emit("Or", before, ctx.emit("Greater", position, last))


def sample(
    ctx: Export,
    table: Value,
    images: Value,
    indices: Sequence[Value],
    rank: int,
    lengths: Sequence[Value],
    taps: Taps | None,
    dtype: str,
    *,
    fold: Callable[[Value, Value], Value] | None = None,
    zeros: bool = False,
) -> Value:
    """Return ``(n, *space, channels)`` of the values at positions between pixels.

    Args:
        ctx: Where nodes are written.
        table: ``(pixels, channels)`` of all images.
        images: Number of the image of each sample, float64 of shape ``(n, 1, ...)``.
        indices: For each spatial axis ``(n, *space)`` of float64; shapes may broadcast.
        rank: Number of axes of a position.
        lengths: Lengths of the spatial axes, of float64.
        taps: Which neighbours are read; None if positions are whole already.
        dtype: Dtype of the table, in which neighbours are weighted one axis after another.
        fold: Takes a neighbour's position and the last of its axis, and returns which is read.
        zeros: Whether a neighbour outside the image counts as zero; it is else the nearest.
    """
    own = [] if taps is None else list(range(1, 1 + len(indices)))
    index = unsqueeze(ctx, images, own) if own else images
    weights: list[Value] = []
    for axis, (position, length) in enumerate(zip(indices, lengths, strict=True)):
        last = ctx.emit("Sub", length, ctx.const([1], np.float64))
        corner, weight = position, None
        if taps is not None:
            shape = [1] * (rank + len(indices))
            shape[1 + axis] = len(taps.offsets)
            corner, weight = _find_neighbours(ctx, unsqueeze(ctx, position, own), taps, shape)
        corner = corner if fold is None else fold(corner, last)
        if zeros:
            inside = cast(ctx, ctx.emit("Not", is_outside(ctx, corner, last)), np.float64)
            weight = inside if weight is None else ctx.emit("Mul", weight, inside)
        if weight is not None:
            weights.append(unsqueeze(ctx, cast(ctx, weight, dtype), [rank + len(own)]))
        start = ctx.emit("Mul", index, length)
        index = ctx.emit("Add", start, clamp(ctx, corner, last))
    values = ctx.emit("Gather", table, cast(ctx, index, np.int64), axis=0)
    for axis, weight in enumerate(weights):
        values = ctx.emit("Mul", values, weight)
        values = emit_reduce(ctx, "ReduceSum", values, own[axis : axis + 1], True)
    return squeeze(ctx, values, own) if own else values


def _find_neighbours(
    ctx: Export, position: Value, taps: Taps, shape: Sequence[int]
) -> tuple[Value, Value]:
    """Return the neighbours of positions along an axis of their own, and their weights."""
    offsets = ctx.const(np.reshape(np.array(taps.offsets), shape), np.float64)
    whole = ctx.emit("Floor", position)
    distance = ctx.emit("Abs", ctx.emit("Sub", ctx.emit("Sub", position, whole), offsets))
    powers = [ctx.const(np.reshape(power, shape), np.float64) for power in taps.weights.T]
    weight = powers[0]
    for power in powers[1:]:
        weight = ctx.emit("Add", ctx.emit("Mul", weight, distance), power)
    return ctx.emit("Add", whole, offsets), weight


UpsampleMode = Literal["nearest", "linear", "bilinear"]


def _const_scales(values: Sequence[AnyValue]) -> Expr:
    return relay.const(np.array(values, np.float32))


@OPS.imports("Upsample", since=(9, 10))
def import_upsample(ctx: Import, x: Expr, scales: Expr, *, mode: UpsampleMode = "nearest") -> Expr:
    resize = ResizeAttributes(
        coordinate_transformation_mode="asymmetric",
        mode="nearest" if mode == "nearest" else "linear",
        nearest_mode="floor",
    )
    return build_resize(ctx, x, scales, resize=resize)


@OPS.imports("Upsample", since=7)
def import_upsample_v7(
    ctx: Import, x: Expr, *, scales: tuple[float, ...], mode: UpsampleMode = "nearest"
) -> Expr:
    return import_upsample(ctx, x, _const_scales(scales), mode=mode)


@OPS.imports("Upsample", since=1)
def import_upsample_v1(
    ctx: Import, x: Expr, *, height_scale: float, width_scale: float, mode: UpsampleMode = "nearest"
) -> Expr:
    return import_upsample(ctx, x, _const_scales([1.0, 1.0, height_scale, width_scale]), mode=mode)

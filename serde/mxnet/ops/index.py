"""Slicing and looking up. MXNet's indices are floats as a rule and are cut towards zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.converters import ImportContext as Ctx
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS
from serde.relay.dims import Dim
from serde.relay.expr import Expr
from serde.relay.shapes import is_float, normalize_axis

FLOAT32 = np.dtype("float32")

Bounds = tuple[int | None, ...]

LAST = 2**31 - 1
"""Stands for the end of an axis, whatever its length."""


def as_index(ctx: Ctx, indices: Expr) -> Expr:
    """Return indices as integers."""
    if is_float(ctx.type(indices).dtype):
        return relay.cast(indices, "int32")
    return indices


@OPS.imports("slice")
def import_slice(ctx: Ctx, data: Expr, *, begin: Bounds, end: Bounds, step: Bounds = ()) -> Expr:
    """A missing bound is the end that the step comes from or goes to."""
    if len(end) != len(begin) or len(step) not in (0, len(begin)):
        raise Unsupported("begin, end and step differ in length")
    steps = [each or 1 for each in step] or [1] * len(begin)
    starts, stops = [], []
    for first, last, by in zip(begin, end, steps, strict=True):
        starts.append((0 if by > 0 else LAST) if first is None else first)
        stops.append((LAST if by > 0 else -LAST) if last is None else last)
    return relay.strided_slice(data, starts, stops, steps)


@OPS.imports("slice_axis")
def import_slice_axis(ctx: Ctx, data: Expr, *, axis: int, begin: int, end: int | None) -> Expr:
    axis = normalize_axis(axis, ctx.type(data).rank)
    return relay.strided_slice(data, [begin], [LAST if end is None else end], [1], axes=[axis])


@OPS.imports("slice_like")
def import_slice_like(
    ctx: Ctx, data: Expr, shape_like: Expr, *, axes: tuple[int, ...] = ()
) -> Expr:
    return relay.slice_like(data, shape_like, axes or None)


@OPS.imports("Crop")
def import_crop(
    ctx: Ctx,
    data: Expr,
    crop_like: Expr | None = None,
    *,
    num_args: int = 1,
    offset: tuple[int, ...] = (0, 0),
    h_w: tuple[int, ...] = (0, 0),
    center_crop: bool = False,
) -> Expr:
    """Cuts height and width to ``h_w`` or to those of the second input."""
    if crop_like is not None and not center_crop and not any(offset):
        return relay.slice_like(data, crop_like, (2, 3))
    wanted = h_w if crop_like is None else ctx.type(crop_like).shape[2:]
    lengths = ctx.type(data).shape[2:]
    known = [length for length in (*wanted, *lengths) if isinstance(length, int)]
    if not center_crop and crop_like is not None and len(known) < 4:
        tail = relay.strided_slice(data, list(offset), [LAST, LAST], [1, 1], axes=[2, 3])
        return relay.slice_like(tail, crop_like, (2, 3))
    if center_crop and len(known) < 4:
        return _centre(data, crop_like, h_w)
    starts: Sequence[Dim] = offset
    if center_crop:
        starts = [(own - cut) // 2 for own, cut in zip(lengths, wanted, strict=True)]
    stops = [start + cut for start, cut in zip(starts, wanted, strict=True)]
    return relay.strided_slice(data, starts, stops, [1, 1], axes=[2, 3])


def _centre(data: Expr, crop_like: Expr | None, h_w: Sequence[int]) -> Expr:
    """Cut height and width, of which one is a symbol, on both sides alike."""
    own = relay.strided_slice(relay.shape_of(data, "int64"), [2], [4])
    if crop_like is None:
        wanted = relay.const(np.array(h_w, np.int64))
    else:
        wanted = relay.strided_slice(relay.shape_of(crop_like, "int64"), [2], [4])
    surplus = relay.subtract(own, wanted)
    starts = relay.floor_divide(surplus, relay.const(2, "int64"))
    cut = relay.strided_slice(data, starts, relay.add(starts, wanted), axes=[2, 3])
    if crop_like is None:
        return relay.reshape(cut, (0, 0, *h_w))
    return relay.slice_like(cut, crop_like, (2, 3))


@OPS.imports("Embedding", ignored=("sparse_grad",))
def import_embedding(
    ctx: Ctx,
    data: Expr,
    weight: Expr,
    *,
    input_dim: int,
    output_dim: int,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    return relay.take(weight, as_index(ctx, data), axis=0, mode="clip")


@OPS.imports("take")
def import_take(
    ctx: Ctx,
    a: Expr,
    indices: Expr,
    *,
    axis: int = 0,
    mode: Literal["clip", "raise", "wrap"] = "clip",
) -> Expr:
    """``raise`` differs from ``clip`` only where MXNet would stop with an error."""
    return relay.take(
        a, as_index(ctx, indices), axis=axis, mode="wrap" if mode == "wrap" else "clip"
    )


@OPS.imports("one_hot")
def import_one_hot(
    ctx: Ctx,
    indices: Expr,
    *,
    depth: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    on, off = (relay.const(np.array(value, dtype=dtype)) for value in (on_value, off_value))
    return relay.one_hot(as_index(ctx, indices), on, off, depth, -1, dtype)


@OPS.imports("gather_nd")
def import_gather_nd(ctx: Ctx, data: Expr, indices: Expr) -> Expr:
    return relay.gather_nd(data, as_index(ctx, indices))


@OPS.imports("SequenceMask")
def import_sequence_mask(
    ctx: Ctx,
    data: Expr,
    sequence_length: Expr | None = None,
    *,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
) -> Expr:
    if not use_sequence_length or sequence_length is None:
        return data
    return relay.sequence_mask(data, as_index(ctx, sequence_length), mask_value=value, axis=axis)

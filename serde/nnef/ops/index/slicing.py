"""Regions of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, normalize_axes
from serde.relay.op.index.slicing import StridedSlice

_FAR: Final = 2**31 - 1
"""The end of an axis, whatever its length."""


@OPS.imports("slice")
def import_slice(
    ctx: Import,
    input: Expr,
    *,
    axes: tuple[int, ...],
    begin: tuple[int, ...],
    end: tuple[int, ...],
    stride: tuple[int, ...] = (),
) -> Expr:
    """Bounds count as in Python, but that an end of 0 is that of the axis at a stride of 1."""
    steps = ctx.per_axis(input, stride, 1, len(axes))
    if not len(axes) == len(begin) == len(end) == len(steps):
        raise Unsupported("axes, begin, end and stride differ in length")
    if not axes:
        return input
    lengths = [ctx.type(input).shape[each] for each in normalize_axes(axes, ctx.rank(input))]
    for length, axis, start, stop, step in zip(lengths, axes, begin, end, steps, strict=True):
        _require_valid(length, axis, start, stop, step)
    ends = [_FAR if (stop, step) == (0, 1) else stop for stop, step in zip(end, steps, strict=True)]
    return relay.strided_slice(input, begin, ends, steps, axes)


def _require_valid(length: Dim, axis: int, begin: int, end: int, stride: int) -> None:
    """Refuse bounds that the specification calls invalid, which Python would cut to the axis."""
    if not isinstance(length, int) or not stride:
        return
    first = min(begin + length if begin < 0 else begin, length)
    last = max(min(end + length if end < 0 else end, length), -1)
    if (end, stride) == (0, 1):
        last = length
    valid = 0 <= first <= last if stride > 0 else last <= first < length
    if not valid:
        raise Unsupported(
            f"no slice from {begin} to {end} with stride {stride} of axis {axis} of {length}"
        )


@OPS.exports("strided_slice")
def export_strided_slice(ctx: Export, data: Value, *, region: StridedSlice) -> Value:
    return _slice(ctx, data, region.cuts(ctx.type(data).rank))


@OPS.exports("slice_like", ignored=("axes",))
def export_slice_like(ctx: Export, data: Value, shape_like: Value) -> Value:
    wanted = ctx.static_shape(Value("", ctx.result_type()))
    return _slice(ctx, data, {axis: (0, length, 1) for axis, length in enumerate(wanted)})


def _slice(ctx: Export, data: Value, cuts: Mapping[int, tuple[int, int, int]]) -> Value:
    """Write a slice, of begin, end and stride of some axes as Python counts them."""
    lengths = ctx.static_shape(data)
    found = {}
    for axis, cut in sorted(cuts.items()):
        bounds = _spell_bounds(lengths[axis], *slice(*cut).indices(lengths[axis]))
        if bounds != (0, lengths[axis], 1):
            found[axis] = bounds
    if not found:
        return data
    begin, end, stride = map(list, zip(*found.values(), strict=True))
    if set(stride) == {1}:
        stride = []
    return ctx.emit("slice", data, axes=list(found), begin=begin, end=end, stride=stride)


def _spell_bounds(length: int, start: int, stop: int, step: int) -> tuple[int, int, int]:
    """Return the bounds as NNEF has them; the end of a slice to the first element lies before."""
    if not range(start, stop, step):
        return length, length, 1
    return start, stop if stop >= 0 else -length - 1, step

"""Slices as they are written: PyTorch's steps are positive, so others are of what is flipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from serde.relay.ir.dims import Dim, same_length
from serde.relay.op.index.slicing import StridedSlice
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import in_signed

FAR: Final = 2**31 - 1
"""More than an axis has elements."""


def write_slices(ctx: ExportContext, x: Value, slices: Sequence[slice]) -> Value:
    """Return the region of `x` that slices of the leading axes name, steps being positive."""
    found = list(slices)
    while found and found[-1] == slice(None):
        found.pop()
    if not found:
        return x
    return ctx.index(x, tuple(found) if len(found) > 1 else found[0])


def _forward(length: Dim, first: int, last: int, step: int) -> slice:
    """Return a slice of positive step, its ends left out where they are those of the axis."""
    if isinstance(length, int):
        start, stop, step = slice(first, last, step).indices(length)
        return slice(start or None, None if stop == length else max(start, stop), _step(step))
    begin = None if first == 0 or first <= -FAR else first
    return slice(begin, None if last >= FAR else last, _step(step))


def _step(step: int) -> int | None:
    return None if step == 1 else step


def _backward(length: Dim, first: int, last: int, step: int) -> slice:
    """Return the slice of a flipped axis that a slice of negative step is of the axis itself."""
    if isinstance(length, int):
        places = range(*slice(first, last, step).indices(length))
        if not places:
            return slice(None, 0)
        start, stop = length - 1 - places[0], length - places[-1]
        return slice(start or None, None if stop == length else stop, _step(-step))
    begin = None if first >= FAR or first == -1 else -1 - first
    end = None if last <= -FAR else -1 - last
    return slice(begin, end, _step(-step))


@OPS.exports("strided_slice")
@in_signed
def export_strided_slice(ctx: ExportContext, data: Value, *, region: StridedSlice) -> Value:
    shape = ctx.type(data).shape
    slices, flipped = [slice(None)] * len(shape), []
    for axis, (first, last, step) in region.cuts(len(shape)).items():
        if step > 0:
            slices[axis] = _forward(shape[axis], first, last, step)
        else:
            slices[axis] = _backward(shape[axis], first, last, step)
            flipped.append(axis)
    if flipped:
        data = ctx.method(data, "flip", *flipped)
    return write_slices(ctx, data, slices)


@OPS.exports("slice_like")
def export_slice_like(
    ctx: ExportContext, data: Value, shape_like: Value, *, axes: tuple[int, ...] | None
) -> Value:
    shape, like = ctx.type(data).shape, ctx.type(shape_like).shape
    chosen = [axis % len(shape) for axis in axes] if axes else range(len(shape))
    slices = [slice(None)] * len(shape)
    for axis in chosen:
        if not same_length(shape[axis], like[axis]):
            slices[axis] = slice(None, ctx.size(shape_like, axis))
    return write_slices(ctx, data, slices)

"""Ranges of axes, read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core import Array, dataclass
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, normalize_axis, same_length
from serde.relay.lowering.lengths import LAST
from serde.relay.op.index.slicing import StridedSlice

Numbers = tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The slices of the leading axes."""

    begin: Numbers
    end: Numbers
    step: Numbers | None = None

    def of_axes(self) -> list[tuple[int | None, int | None, int | None]]:
        """Return beginning, end and step along each leading axis."""
        count = len(self.begin)
        step = self.step or (None,) * count
        if len(self.end) != count or len(step) != count:
            raise Unsupported("begin, end and step differ in length")
        return list(zip(self.begin, self.end, step, strict=True))

    def ranges(self, ctx: Import, data: Expr) -> list[range | None]:
        """Return the indices along each leading axis, None for all of an axis."""
        found: list[range | None] = []
        for axis, (begin, end, step) in enumerate(self.of_axes()):
            if begin is None and end is None and step in (None, 1):
                found.append(None)
                continue
            (length,) = ctx.static_lengths(data, [axis])
            found.append(range(*slice(begin, end, step).indices(length)))
        return found


MOST_SLICED = 5
"""Rank of what MXNet slices, at most; of others, elements are looked up along each axis."""


@OPS.imports("slice")
def import_slice(ctx: Import, data: Expr, *, bounds: Bounds) -> Expr:
    """A missing bound is the end that the step comes from or goes to."""
    starts, stops, steps = [], [], []
    for first, last, step in bounds.of_axes():
        by = step or 1
        steps.append(by)
        starts.append((0 if by > 0 else LAST) if first is None else first)
        stops.append((LAST if by > 0 else -LAST) if last is None else last)
    return relay.strided_slice(data, starts, stops, steps)


@OPS.imports("slice_axis")
def import_slice_axis(ctx: Import, data: Expr, *, axis: int, begin: int, end: int | None) -> Expr:
    axis = normalize_axis(axis, ctx.type(data).rank)
    return relay.strided_slice(data, [begin], [LAST if end is None else end], [1], axes=[axis])


@OPS.imports("slice_like")
def import_slice_like(
    ctx: Import, data: Expr, shape_like: Expr, *, axes: tuple[int, ...] = ()
) -> Expr:
    return relay.slice_like(data, shape_like, axes or None)


def slice_bounds(length: Dim, first: int, last: int, step: int) -> tuple[int | None, int | None]:
    """Return the bounds of a slice as MXNet takes them: inside the axis, or open."""
    if isinstance(length, int):
        first, last, step = slice(first, last, step).indices(length)
        return first, None if last in (-1, length) else last
    far = LAST if step > 0 else -LAST
    start = None if first == (0 if step > 0 else -1) or first == -far else first
    return start, None if last == far or abs(last) >= LAST else last


@OPS.exports("strided_slice")
def export_strided_slice(ctx: Export, data: Value, *, region: StridedSlice) -> Value:
    """A bound at or past the end that the step goes to is left open; one outside is cut.

    Floats of which nothing is left would go to oneDNN, which fails on that; bytes do not.
    """
    type_ = ctx.type(data)
    starts: list[int | None] = [None] * type_.rank
    stops: list[int | None] = [None] * type_.rank
    steps: list[int | None] = [None] * type_.rank
    for axis, (first, last, step) in region.cuts(type_.rank).items():
        starts[axis], stops[axis] = slice_bounds(type_.shape[axis], first, last, step)
        steps[axis] = step
    if type_.rank > MOST_SLICED:
        cuts = [slice(*each) for each in zip(starts, stops, steps, strict=True)]
        return ctx.spell(lambda x: _take_along_each(x, _indices(ctx, data, cuts)), data)
    if 0 not in ctx.result_type().shape:
        return ctx.emit_bytes("slice", data, begin=starts, end=stops, step=steps)
    cut = ctx.emit("slice", ctx.cast(data, "uint8"), begin=starts, end=stops, step=steps)
    return ctx.emit("Cast", cut, dtype=type_.dtype)


def _indices(ctx: Export, data: Value, cuts: Sequence[slice]) -> dict[int, Array]:
    """Return what slices take of an axis, for those that are not taken whole."""
    found = {}
    for axis, cut in enumerate(cuts):
        if cut.start or cut.stop is not None or cut.step not in (None, 1):
            (length,) = ctx.static_lengths(data, [axis])
            found[axis] = allocation.arange(length)[cut]
    return found


def _take_along_each(x: Expr, indices: Mapping[int, Array]) -> Expr:
    for axis, places in indices.items():
        x = relay.take(x, relay.Constant(places), axis=axis, mode="clip")
    return x


@OPS.exports("slice_like")
def export_slice_like(
    ctx: Export, data: Value, shape_like: Value, *, axes: tuple[int, ...] | None
) -> Value:
    own, lengths = ctx.type(data).shape, ctx.result_type().shape
    if len(own) > MOST_SLICED:
        cuts = [
            slice(None)
            if same_length(length, own[axis])
            else slice(None, *ctx.static_lengths(shape_like, [axis]))
            for axis, length in enumerate(lengths)
        ]
        return ctx.spell(lambda x: _take_along_each(x, _indices(ctx, data, cuts)), data)
    return ctx.emit_bytes("slice_like", data, shape_like, axes=axes or None)


@OPS.imports("Crop")
def import_crop(
    ctx: Import, data: Expr, crop_like: Expr | None = None,
    *, num_args: int = 1, offset: tuple[int, ...] = (0, 0), h_w: tuple[int, ...] = (0, 0),
    center_crop: bool = False,
) -> Expr:  # fmt: skip
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
    sizes = known[:2]
    starts: Sequence[int] = offset
    if center_crop:
        starts = [(own - cut) // 2 for own, cut in zip(known[2:], sizes, strict=True)]
    stops = [start + cut for start, cut in zip(starts, sizes, strict=True)]
    return relay.strided_slice(data, starts, stops, [1, 1], axes=[2, 3])


def _centre(data: Expr, crop_like: Expr | None, h_w: Sequence[int]) -> Expr:
    """Cut height and width, of which one is a symbol, on both sides alike."""
    own = relay.strided_slice(relay.shape_of(data, "int64"), [2], [4])
    wanted: Expr = relay.Constant(np.array(h_w, np.int64))
    if crop_like is not None:
        wanted = relay.strided_slice(relay.shape_of(crop_like, "int64"), [2], [4])
    surplus = relay.subtract(own, wanted)
    starts = relay.floor_divide(surplus, relay.const(2, "int64"))
    cut = relay.strided_slice(data, starts, relay.add(starts, wanted), axes=[2, 3])
    if crop_like is None:
        return relay.reshape(cut, (0, 0, *h_w))
    return relay.slice_like(cut, crop_like, (2, 3))


FAR = 2**31 - 1
"""More than an axis has elements."""


@OPS.imports("_slice_assign")
def import_slice_assign(ctx: Import, lhs: Expr, rhs: Expr, *, bounds: Bounds) -> Expr:
    indices = bounds.ranges(ctx, lhs)
    if any(each is not None and not each for each in indices):
        return lhs
    whole = range(FAR)
    cuts = [whole if each is None else each for each in indices]
    # An end in front of the first element is not -1, which would be the last element.
    stops = [-FAR if each.stop < 0 else each.stop for each in cuts]
    return relay.strided_set(
        lhs, rhs, [each.start for each in cuts], stops, [each.step for each in cuts]
    )


@OPS.imports("_slice_assign_scalar")
def import_slice_assign_scalar(
    ctx: Import, data: Expr, *, scalar: float = 0.0, bounds: Bounds
) -> Expr:
    """A mask over the axes that are cut, which broadcasts over the others."""
    indices = bounds.ranges(ctx, data)
    shape = [1] * ctx.type(data).rank
    for axis, each in enumerate(indices):
        if each is not None:
            (shape[axis],) = ctx.static_lengths(data, [axis])
    mask = allocation.zeros(shape, np.bool_)
    mask[np.ix_(*(range(1) if each is None else each for each in indices))] = True
    return relay.where(relay.Constant(mask), scalar_like(ctx, data, scalar), data)


@OPS.exports("strided_set")
def export_strided_set(
    ctx: Export, data: Value, v: Value, begin: Value, end: Value, strides: Value
) -> Value:
    starts: list[int | None] = []
    stops: list[int | None] = []
    steps = [int(step) for step in ctx.constant(strides)]
    bounds = zip(ctx.constant(begin), ctx.constant(end), steps, strict=False)
    lengths = ctx.static_lengths(data, range(len(steps)))
    region = list(ctx.type(data).shape)
    for axis, (first, last, step) in enumerate(bounds):
        region[axis] = len(range(*slice(int(first), int(last), step).indices(lengths[axis])))
        start, stop = slice_bounds(lengths[axis], int(first), int(last), step)
        starts.append(start)
        stops.append(stop)
    if 0 in region:
        return data
    if len(region) > MOST_SLICED:
        cuts = [slice(*each) for each in zip(starts, stops, steps, strict=True)]
        return _write_along_each(ctx, data, v, region, _indices(ctx, data, cuts))
    block = ctx.spell(lambda x: relay.broadcast_to(x, region), v)
    return ctx.emit_bytes("_slice_assign", data, block, begin=starts, end=stops, step=steps)


def _write_along_each(
    ctx: Export, data: Value, v: Value, region: Sequence[Dim], indices: Mapping[int, Array]
) -> Value:
    """Choose between the data and what is written, spread to a shape where they lie alike."""
    rank = len(region)
    chosen: Array = allocation.ones([1] * rank, np.bool_)
    sources: dict[int, Array] = {}
    for axis, places in indices.items():
        (length,) = ctx.static_lengths(data, [axis])
        sources[axis] = allocation.zeros([length], np.int64)
        sources[axis][places] = allocation.arange(len(places))
        hit = allocation.zeros([length], np.bool_)
        hit[places] = True
        chosen = chosen & hit.reshape([-1 if i == axis else 1 for i in range(rank)])

    def build(x: Expr, block: Expr) -> Expr:
        moved = _take_along_each(relay.broadcast_to(block, region), sources)
        return relay.where(relay.Constant(chosen), moved, x)

    return ctx.spell(build, data, v)

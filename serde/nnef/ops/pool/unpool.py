"""Sums and means that are spread over windows again: the transposes of poolings."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core import Array, dataclass
from serde.errors import Unsupported
from serde.nnef.ops.conv.transposed import continue_input, transpose_windows, unpooled_geometry
from serde.nnef.ops.conv.windows import per_axis
from serde.nnef.ops.pool.window import Axis, PoolAttributes, Windows, slide, volume_of
from serde.nnef.ops.table import OPS, Import
from serde.relay.ir.expr import Expr

__all__ = ["UnpoolAttributes", "read_unpool"]


@dataclass(frozen=True, kw_only=True)
class UnpoolAttributes(PoolAttributes):
    """Attributes that the transposed poolings share."""

    output_shape: tuple[int, ...] = ()


def read_unpool(ctx: Import, x: Expr, unpool: UnpoolAttributes) -> tuple[Windows, tuple[int, ...]]:
    """Return the windows over the axes of a result, and its shape.

    What lies before and behind the result is cut off what windows cover, or added to it if it is
    less than nothing.
    """
    lengths = ctx.static_shape(x)
    rank = len(lengths)
    if not unpool.size or len(unpool.output_shape) not in (0, rank):
        given = list(unpool.size), list(unpool.output_shape)
        raise Unsupported(f"size {given[0]} and output_shape {given[1]} of {rank} axes")
    size = per_axis(unpool.size, rank, "size")
    strides = per_axis(unpool.stride, rank, "stride")
    dilation = per_axis(unpool.dilation, rank, "dilation")
    windows = [Axis(*each) for each in zip(size, strides, dilation, strict=True)]
    reach = [each.reach for each in windows]
    begin, wanted = unpooled_geometry(lengths, reach, strides, unpool.padding, unpool.output_shape)
    for axis, (first, length, n) in enumerate(zip(begin, wanted, lengths, strict=True)):
        rest = windows[axis].cover(n) - first - length
        windows[axis] = windows[axis]._replace(before=first, after=rest)
    return tuple(windows), tuple(wanted)


def _spread_windows(ctx: Import, x: Expr, windows: Windows, normalize: bool) -> Expr:
    """Return the sums of what windows spread: each element, or its share of a window."""

    def build(part: Expr, over: Windows) -> Expr:
        """Every channel is by itself."""
        shape = ctx.type(part).shape
        (channels,) = ctx.static_lengths(part, [1])
        share = 1 / volume_of(over) if normalize else 1.0
        filters = allocation.full((channels, 1, *(each.size for each in over)), share)
        return transpose_windows(
            ctx,
            part,
            relay.const(filters, ctx.type(part).dtype),
            strides=[each.stride for each in over],
            dilation=[each.dilation for each in over],
            begin=[each.before for each in over],
            wanted=[
                each.cover(n)
                for each, n in zip(
                    over, ctx.static_lengths(part, range(2, len(shape))), strict=True
                )
            ],
            groups=channels,
        )

    return slide(ctx, x, windows, build, Axis.cover)


def _coverage(windows: Windows, lengths: tuple[int, ...], wanted: tuple[int, ...]) -> Array:
    """Return how many windows cover each element of a result, 1 where none does."""
    counts = allocation.ones(wanted, np.int64)
    for axis, (each, length, n) in enumerate(zip(windows, lengths, wanted, strict=True)):
        starts = allocation.arange(length) * each.stride - each.before
        steps = allocation.arange(each.size) * each.dilation
        places = allocation.outer_sum(starts, steps).reshape(-1)
        inside = places[(places >= 0) & (places < n)]
        row = allocation.bincount(inside, minlength=n)
        counts *= row.reshape([-1 if index == axis else 1 for index in range(len(wanted))])
    return np.maximum(counts, 1)


@OPS.imports("debox")
def import_debox(
    ctx: Import, input: Expr, *, unpool: UnpoolAttributes, normalize: bool = False
) -> Expr:
    """Means are of whole windows, or, where the border is ignored, of those that meet."""
    windows, wanted = read_unpool(ctx, input, unpool)
    lengths = ctx.static_shape(input)
    begin = [each.before for each in windows]
    reach, strides = [each.reach for each in windows], [each.stride for each in windows]
    x, begin = continue_input(ctx, input, begin, wanted, reach, strides, unpool.border)
    longer = zip(windows, begin, wanted, ctx.static_shape(x), strict=True)
    moved = tuple(
        each._replace(before=first, after=each._replace(before=0, after=0).cover(n) - first - m)
        for each, first, m, n in longer
    )
    whole = normalize and unpool.border != "ignore"
    result = _spread_windows(ctx, x, moved, whole)
    if not normalize or whole:
        return result
    counts = _coverage(windows, lengths, wanted)
    return relay.divide(result, relay.const(counts, ctx.type(input).dtype))


@OPS.imports("avg_unpool")
def import_avg_unpool(ctx: Import, input: Expr, *, unpool: UnpoolAttributes) -> Expr:
    """No fragment of the standard; Khronos' parser has it."""
    return import_debox(ctx, input, unpool=unpool, normalize=True)

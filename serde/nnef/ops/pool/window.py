"""Maximum, sum and mean over sliding windows, which in NNEF are windows over all axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any as AnyValue, NamedTuple, TypeAlias

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.nnef.ops.conv.windows import (
    SPATIAL,
    WindowAttributes,
    pad_border,
    per_axis,
    reach_of,
    same_padding,
    steps,
)
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, as_dtype, call, split_padding, tensor_type
from serde.relay.op.pool.reduction import Pooling
from serde.walk.expansion.pool import USUAL

__all__ = ["Axis", "PoolAttributes", "Windows", "read_windows", "slide", "volume_of"]


@dataclass(frozen=True, kw_only=True)
class PoolAttributes(WindowAttributes):
    """Attributes that the poolings share, one entry for each axis of the tensor."""

    size: tuple[int, ...]


class Axis(NamedTuple):
    """Windows along one axis; as it is, they do nothing."""

    size: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0

    @property
    def reach(self) -> int:
        """How many elements a window spans."""
        return (self.size - 1) * self.dilation + 1

    @property
    def is_idle(self) -> bool:
        """Whether windows do nothing."""
        return self.size == self.stride == 1 and self.before == self.after == 0

    def count(self, length: int) -> int:
        """Return how many windows there are."""
        found = (length + self.before + self.after - self.reach) // self.stride + 1
        if found < 1:
            raise Unsupported(f"a window that spans {self.reach} does not fit a length of {length}")
        return found

    def cover(self, length: int) -> int:
        """Return how many elements windows cover, less what is added to the axis."""
        return (length - 1) * self.stride + self.reach - self.before - self.after


Windows: TypeAlias = tuple[Axis, ...]
"""Windows over the axes of a tensor."""


def volume_of(windows: Windows) -> int:
    """Return the number of elements of a window."""
    return math.prod(axis.size for axis in windows)


def read_windows(ctx: Import, x: Expr, pool: PoolAttributes) -> Windows:
    """Return the windows over the axes of a tensor, with the padding that is not told."""
    rank = ctx.rank(x)
    if not pool.size or len(pool.padding) not in (0, rank):
        raise Unsupported(f"size {list(pool.size)} and padding {list(pool.padding)} of {rank} axes")
    size = per_axis(pool.size, rank, "size")
    strides = per_axis(pool.stride, rank, "stride")
    dilation = per_axis(pool.dilation, rank, "dilation")
    windows = [Axis(*each) for each in zip(size, strides, dilation, strict=True)]
    if pool.padding:
        pairs = list(pool.padding)
    else:
        pairs = [(0, 0)] * rank
        for axis, each in enumerate(windows):
            if not each.is_idle:
                lengths = ctx.static_lengths(x, [axis])
                (pairs[axis],) = same_padding(lengths, [each.reach], [each.stride])
    return tuple(
        each._replace(before=before, after=after)
        for each, (before, after) in zip(windows, pairs, strict=True)
    )


Slide = Callable[[Expr, Windows], Expr]
"""Returns what windows over the spatial axes of (N, C, ...) come to, of one to three axes."""


def slide(
    ctx: Import,
    x: Expr,
    windows: Windows,
    build: Slide,
    measure: Callable[[Axis, int], int] = Axis.count,
) -> Expr:
    """Return what windows over any axes come to, where it is one axis after the other.

    Windows over the axes behind the first two are Relay's own. Other tensors are seen as such:
    axes without windows that lie side by side are one.

    Args:
        ctx: The context.
        x: The tensor.
        windows: The windows over its axes.
        build: Makes the result for windows over spatial axes.
        measure: Tells the length of an axis of the result by that of the tensor.
    """
    active = [axis for axis, each in enumerate(windows) if not each.is_idle]
    rank = len(windows)
    if not active:
        return x
    if 3 <= rank <= 5 and active[0] >= 2:
        return build(x, windows[2:])
    if len(active) > 3:
        first, last = (
            tuple(each if axis in kept else Axis() for axis, each in enumerate(windows))
            for kept in (active[:3], active[3:])
        )
        return slide(ctx, slide(ctx, x, first, build, measure), last, build, measure)
    groups = _group_axes(active, rank)
    if len(groups) > 4:
        order = [axis for axis in range(rank) if axis not in active] + active
        there = tuple(windows[axis] for axis in order)
        moved = slide(ctx, relay.transpose(x, order), there, build, measure)
        return relay.transpose(moved, [order.index(axis) for axis in range(rank)])
    lengths = ctx.static_shape(x)
    front, *space = [math.prod(lengths[axis] for axis in group) for group in groups]
    view = relay.reshape(x, (front, 1, *space))
    found = build(view, tuple(windows[g[0]] if g[0] in active else Axis() for g in groups[1:]))
    shape = [measure(each, length) for each, length in zip(windows, lengths, strict=True)]
    return relay.reshape(found, shape)


def _group_axes(active: Sequence[int], rank: int) -> list[list[int]]:
    """Return axes without windows side by side as one, and in front one that may be none."""
    groups: list[list[int]] = [[]]
    for axis in range(rank):
        if axis in active or (groups[-1] and groups[-1][-1] in active):
            groups.append([axis])
        else:
            groups[-1].append(axis)
    return groups


def _pad_all(ctx: Import, x: Expr, windows: Windows, border: str) -> tuple[Expr, Windows]:
    """Return the tensor with all its padding, and the windows over it."""
    padded = pad_border(ctx, x, [(each.before, each.after) for each in windows], border)
    return padded, tuple(each._replace(before=0, after=0) for each in windows)


def _crop(ctx: Import, x: Expr, windows: Windows) -> tuple[Expr, Windows]:
    """Return the tensor without what negative padding cuts off, and the windows over it."""
    cut = [(min(0, each.before), min(0, each.after)) for each in windows]
    kept = (each._replace(before=max(0, each.before), after=max(0, each.after)) for each in windows)
    return pad_border(ctx, x, cut, "constant"), tuple(kept)


def _make_slide(kind: str, **attrs: AnyValue) -> Slide:
    """Return what builds a pooling of Relay."""

    def build(x: Expr, windows: Windows) -> Expr:
        ndim = len(windows)
        return call(
            f"nn.{kind}_pool{ndim}d",
            x,
            pool_size=tuple(each.size for each in windows),
            strides=tuple(each.stride for each in windows),
            dilation=tuple(each.dilation for each in windows),
            padding=tuple(each[side] for side in (3, 4) for each in windows),
            layout=USUAL[ndim],
            **attrs,
        )

    return build


def max_windows(ctx: Import, x: Expr, windows: Windows, border: str) -> Expr:
    """Return the maximum of each window; zeros beyond the data take part, if they are there."""
    x, windows = _crop(ctx, x, windows) if border == "ignore" else _pad_all(ctx, x, windows, border)
    return slide(ctx, x, windows, _make_slide("max"))


def mean_windows(ctx: Import, x: Expr, windows: Windows, border: str) -> Expr:
    """Return the mean of each window, of what lies inside the data if the border is ignored."""
    if volume_of(windows) == 1 and border != "ignore":
        return _pick(ctx, *_pad_all(ctx, x, windows, border))
    plain = border in ("constant", "ignore")
    x, windows = _crop(ctx, x, windows) if plain else _pad_all(ctx, x, windows, border)
    return slide(ctx, x, windows, _make_slide("avg", count_include_pad=border != "ignore"))


def _pick(ctx: Import, x: Expr, windows: Windows) -> Expr:
    """Return the elements that lie strides apart."""
    axes = [axis for axis, each in enumerate(windows) if each.stride > 1]
    if not axes:
        return x
    end = list(ctx.static_lengths(x, axes))
    strides = [windows[axis].stride for axis in axes]
    return relay.strided_slice(x, [0] * len(axes), end, strides, axes=axes)


def sum_windows(ctx: Import, x: Expr, windows: Windows, border: str) -> Expr:
    """Return the sum of each window; what is ignored adds nothing, as zeros do."""
    mean = mean_windows(ctx, x, windows, "constant" if border == "ignore" else border)
    volume = volume_of(windows)
    if volume == 1:
        return mean
    return relay.multiply(mean, relay.const(volume, ctx.type(x).dtype))


@OPS.imports("max_pool")
def import_max_pool(ctx: Import, input: Expr, *, pool: PoolAttributes) -> Expr:
    return max_windows(ctx, input, read_windows(ctx, input, pool), pool.border)


@OPS.imports("avg_pool")
def import_avg_pool(ctx: Import, input: Expr, *, pool: PoolAttributes) -> Expr:
    return mean_windows(ctx, input, read_windows(ctx, input, pool), pool.border)


@OPS.imports("rms_pool")
def import_rms_pool(ctx: Import, input: Expr, *, pool: PoolAttributes) -> Expr:
    windows = read_windows(ctx, input, pool)
    return relay.sqrt(mean_windows(ctx, relay.multiply(input, input), windows, pool.border))


@OPS.imports("box")
def import_box(ctx: Import, input: Expr, *, pool: PoolAttributes, normalize: bool = False) -> Expr:
    reduce = mean_windows if normalize else sum_windows
    return reduce(ctx, input, read_windows(ctx, input, pool), pool.border)


class RelayPool(Pooling):
    """Attributes of Relay's poolings."""

    def to_nnef(self, ctx: Export, data: Value, border: str) -> dict[str, AnyValue]:
        """Return the windows over all axes; where lengths are rounded up there is more padding."""
        ndim = len(self.pool_size)
        before, after = split_padding(self.padding, ndim)
        pairs = []
        spans = reach_of(self.pool_size, self.dilation)
        for axis, length in enumerate(ctx.static_shape(data)[2:]):
            past = (length + before[axis] + after[axis] - spans[axis]) % self.strides[axis]
            missing = self.strides[axis] - past if self.ceil_mode and past else 0
            pairs.append((before[axis], after[axis] + missing))
        return {
            "size": [1, 1, *self.pool_size],
            "border": border if any(map(any, pairs)) else "constant",
            "padding": [(0, 0), (0, 0), *pairs],
            "stride": steps(self.strides, 2),
            "dilation": steps(self.dilation, 2),
        }


_NARROW = ("int8", "uint8", "int16", "uint16")
"""Integers of which every one is a scalar, so that the greatest is found among scalars."""


def _is_of_scalars(node: Call) -> bool:
    return tensor_type(node.args[0]).dtype not in _NARROW


_POOLS = {kind: [f"nn.{kind}_pool{ndim}d" for ndim in SPATIAL] for kind in ("max", "avg")}


@OPS.exports(*_POOLS["max"], when=_is_of_scalars)
def export_max_pool(ctx: Export, data: Value, *, pool: RelayPool) -> Value:
    return ctx.emit("max_pool", data, **pool.to_nnef(ctx, data, "ignore"))


@OPS.exports(*_POOLS["avg"])
def export_avg_pool(ctx: Export, data: Value, *, pool: RelayPool, count_include_pad: bool) -> Value:
    """A window without elements has no mean in NNEF; in Relay it is zero."""
    if not count_include_pad:
        window = pool.window
        lengths = ctx.static_shape(data)[2:]
        if not all(window.counts(axis, length).all() for axis, length in enumerate(lengths)):
            raise Unsupported("a mean of windows that lie beyond the data")
    border = "constant" if count_include_pad else "ignore"
    return ctx.emit("avg_pool", data, **pool.to_nnef(ctx, data, border))


@OPS.expands(*_POOLS["max"])
def expand_max_pool(data: Expr, **attrs: AnyValue) -> Expr:
    """The greatest of narrow integers is found among scalars."""
    name = f"nn.max_pool{len(attrs['pool_size'])}d"
    result = call(name, as_dtype(data, "float32"), **attrs)
    return as_dtype(result, tensor_type(data).dtype)

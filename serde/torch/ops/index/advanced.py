"""Indices of several axes at once, masks among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call
from serde.relay.lowering.index import from_start
from serde.torch.ops.index.gather import as_index
from serde.torch.ops.shape.arrange import transpose
from serde.torch.ops.shape.lengths import broadcast, multiply_lengths, reshape, sizes_of, spread
from serde.torch.ops.table import OPS, Export, Import, Scalar, SymInt, Value

__all__ = ["count_from_start", "index_tensor"]

_MASKS = ("bool", "uint8")


@dataclass(frozen=True)
class _Places:
    """Indices of some axes, of one shape.

    Attributes:
        axes: The axes, in order.
        indices: A tensor of integers for each of them.
    """

    axes: tuple[int, ...]
    indices: tuple[Expr, ...]

    @property
    def first(self) -> int:
        """Axis at which those of the indices stand in the result."""
        last = self.axes[-1] - self.axes[0] + 1
        return self.axes[0] if last == len(self.axes) else 0


def count_from_start(ctx: Import, indices: Expr, length: SymInt) -> Expr:
    """Return indices of which the negative ones were counted from the end."""
    dtype = ctx.dtype(indices)
    known = ctx.known(indices)
    if known is not None and (not known.size or known.min() >= 0):
        return indices
    return ctx.fold(from_start(indices, ctx.scalar(length, dtype)))


def _expand_masks(ctx: Import, indices: Sequence[Expr | None]) -> list[Expr | None]:
    """Return indices with each mask as the places of what is true, one tensor an axis of it."""
    found: list[Expr | None] = []
    for each in indices:
        if each is None or ctx.dtype(each) not in _MASKS:
            found.append(each)
            continue
        rank = ctx.type(each).rank
        if rank == 1:
            rows = relay.cast(relay.argwhere(each), "int64")
            found.append(relay.squeeze(rows, axis=(1,)))
        elif rank:
            rows = relay.cast(relay.argwhere(each), "int64")
            columns = relay.split(rows, rank, axis=1)
            found += [relay.squeeze(column, axis=(1,)) for column in columns]
    return found


def _places(ctx: Import, x: Expr, indices: Sequence[Expr | None]) -> _Places:
    """Return the indices that are given, broadcast."""
    whole = _expand_masks(ctx, indices)
    if len(whole) > ctx.type(x).rank:
        raise Unsupported(f"{len(whole)} indices of a tensor of rank {ctx.type(x).rank}")
    given = [(axis, each) for axis, each in enumerate(whole) if each is not None]
    tensors = [each for _, each in given]
    if len(tensors) > 1:
        wide = [ctx.cast(each, "int64") for each in tensors]
        tensors = spread(ctx, *wide)
    return _Places(tuple(axis for axis, _ in given), tuple(tensors))


def _only_mask(ctx: Import, indices: Sequence[Expr | None]) -> tuple[int, Expr] | None:
    """Return the mask that is the only index, and its first axis; None where it is not one."""
    given = [(axis, each) for axis, each in enumerate(indices) if each is not None]
    if len(given) != 1 or ctx.dtype(given[0][1]) not in _MASKS or not ctx.type(given[0][1]).rank:
        return None
    return given[0]


def index_tensor(ctx: Import, x: Expr, indices: Sequence[Expr | None]) -> Expr:
    """Return the elements that indices name, as NumPy's advanced indexing has them."""
    only = _only_mask(ctx, indices)
    if only is not None:
        return _take_marked(ctx, x, *only)
    places = _places(ctx, x, indices)
    if not places.axes:
        return x
    if len(places.axes) == 1:
        return _take_along(ctx, x, places.indices[0], places.axes[0])
    rank, count = ctx.type(x).rank, len(places.axes)
    rest = [axis for axis in range(rank) if axis not in places.axes]
    moved = transpose(ctx, x, [*places.axes, *rest])
    rows = ctx.fold(relay.stack(places.indices, axis=-1))
    found = call("serde.gather_nd", moved, rows)
    new = ctx.type(places.indices[0]).rank
    before = places.first
    order = [*range(new, new + before), *range(new), *range(new + before, new + rank - count)]
    return transpose(ctx, found, order)


def _take_marked(ctx: Import, x: Expr, axis: int, mask: Expr) -> Expr:
    """Return the entries that a mask marks, which covers as many axes as it has."""
    rank = ctx.type(mask).rank
    flat, marks = x, ctx.cast(mask, "bool")
    if rank > 1:
        sizes = sizes_of(ctx, x)
        whole = multiply_lengths(ctx, *sizes[axis : axis + rank])
        flat = reshape(ctx, x, [*sizes[:axis], whole, *sizes[axis + rank :]])
        marks = reshape(ctx, marks, [-1])
    return call("serde.compress", flat, marks, axis=axis)


def _take_along(ctx: Import, x: Expr, indices: Expr, axis: int) -> Expr:
    length, known = ctx.type(x).shape[axis], ctx.known(indices)
    if known is None or not isinstance(length, int):
        return call("serde.take", x, indices, axis=axis)
    if known.size and not -length <= known.min() <= known.max() < length:
        raise Unsupported(f"an index outside a length of {length}")
    return relay.take(x, Constant(known % max(length, 1)), axis=axis, mode="fast")


@OPS.imports("aten::index", "aten::_unsafe_index")
def import_index(ctx: Import, self: Expr, *indices: Expr | None) -> Expr:
    return index_tensor(ctx, self, indices)


@OPS.imports("aten::_unsafe_masked_index")
def import_masked_index(
    ctx: Import, self: Expr, mask: Expr, *indices: Expr | None, fill: Scalar
) -> Expr:
    """Indices where the mask is false may be outside: they are taken into the tensor."""
    inside = [_clamp(ctx, self, axis, each) for axis, each in enumerate(indices)]
    found = index_tensor(ctx, self, inside)
    return relay.where(mask, found, ctx.scalar(fill, ctx.dtype(self)))


def _clamp(ctx: Import, x: Expr, axis: int, indices: Expr | None) -> Expr | None:
    if indices is None:
        return None
    dtype = ctx.dtype(indices)
    last = relay.subtract(ctx.scalar(ctx.size(x, axis), dtype), relay.const(1, dtype))
    return relay.minimum(relay.maximum(indices, relay.const(0, dtype)), last)


@OPS.imports(
    "aten::index_put", "aten::_unsafe_index_put", "aten::_index_put_impl", ignored=("unsafe",)
)
def import_index_put(
    ctx: Import, self: Expr, values: Expr, *indices: Expr | None, accumulate: bool = False
) -> Expr:
    """Values broadcast to what the indices name; where several meet, the last one stays."""
    new = ctx.cast(values, ctx.dtype(self))
    only = _only_mask(ctx, indices)
    if only is not None and ctx.type(new).rank <= _rank_behind(ctx, self, *only):
        return _put_marked(ctx, self, new, *only, accumulate=accumulate)
    places = _places(ctx, self, indices)
    if not places.axes:
        spread_out = broadcast(ctx, new, sizes_of(ctx, self))
        return _add(ctx, self, spread_out) if accumulate else spread_out
    return _put(ctx, self, new, places, accumulate=accumulate)


def _add(ctx: Import, one: Expr, other: Expr) -> Expr:
    return (relay.logical_or if ctx.dtype(one) == "bool" else relay.add)(one, other)


def _rank_behind(ctx: Import, x: Expr, axis: int, mask: Expr) -> int:
    """Return how many axes follow those that a mask covers."""
    return ctx.type(x).rank - axis - ctx.type(mask).rank


def _put_marked(
    ctx: Import, x: Expr, values: Expr, axis: int, mask: Expr, *, accumulate: bool
) -> Expr:
    """Return `x` with the same values in every entry that a mask marks."""
    behind = _rank_behind(ctx, x, axis, mask)
    marks = ctx.cast(mask, "bool")
    if behind:
        marks = relay.expand_dims(marks, axis=-1, num_newaxis=behind)
    return relay.where(marks, _add(ctx, x, values) if accumulate else values, x)


def _put(ctx: Import, x: Expr, values: Expr, places: _Places, *, accumulate: bool) -> Expr:
    """Return `x` with values at places, the indexed axes in front meanwhile."""
    sizes, rank = sizes_of(ctx, x), ctx.type(x).rank
    rest = [axis for axis in range(rank) if axis not in places.axes]
    order = [*places.axes, *rest]
    own = sizes_of(ctx, places.indices[0])
    before, new = places.first, len(own)
    others = [sizes[axis] for axis in rest]
    wide = broadcast(ctx, values, [*others[:before], *own, *others[before:]])
    front = [*range(before, before + new), *range(before), *range(before + new, new + len(rest))]
    rows = [
        count_from_start(ctx, each, sizes[axis])
        for axis, each in zip(places.axes, places.indices, strict=True)
    ]
    found = relay.scatter_nd(
        transpose(ctx, x, order),
        ctx.fold(relay.stack(rows, axis=0)),
        transpose(ctx, wide, front),
        "add" if accumulate else "update",
    )
    return transpose(ctx, found, [int(each) for each in np.argsort(order)])


@OPS.imports("aten::_unsafe_masked_index_put_accumulate")
def import_masked_index_put(
    ctx: Import, self: Expr, mask: Expr, values: Expr, *indices: Expr | None
) -> Expr:
    inside = [_clamp(ctx, self, axis, each) for axis, each in enumerate(indices)]
    kept = relay.where(mask, values, relay.const(0, ctx.dtype(values)))
    return import_index_put(ctx, self, kept, *inside, accumulate=True)


@OPS.exports("adv_index")
def export_adv_index(ctx: Export, inputs: tuple[Value, ...]) -> Value:
    data, *indices = inputs
    return ctx.index(data, tuple(as_index(ctx, each) for each in indices))

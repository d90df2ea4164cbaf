"""Rectangular regions, cut or overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, TypeVar

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass
from serde.coreml.mlprogram.operators import MOVE_DTYPES, cast_to, compute_dtype, emit_in
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Any, Call, Dim, Expr, TensorType, call, is_absent, tensor_type
from serde.relay.op.index.slicing import StridedSlice
from serde.walk.takes import CONSTANT, Takes

FAR = 2**31 - 1
"""From here on a bound is the end of its axis, whatever its length."""

Flags = tuple[bool, ...] | bool
T = TypeVar("T")


@dataclass(frozen=True)
class Region:
    """What is cut out, axis by axis, in MIL's terms.

    Attributes:
        begin: Where each axis starts.
        end: Where it ends.
        stride: Its steps.
        begin_mask: Whether it starts at its end that comes first.
        end_mask: Whether it goes on to the other.
    """

    begin: list[int]
    end: list[int]
    stride: list[int]
    begin_mask: list[bool]
    end_mask: list[bool]

    @classmethod
    def of(cls, shape: Sequence[Dim], cuts: dict[int, tuple[int, int, int]]) -> Region:
        """Return the region that cuts, (begin, end, stride) by axis, leave of a shape."""
        found = cls([], [], [], [], [])
        for axis, length in enumerate(shape):
            begin, end, stride = cuts.get(axis, (0, FAR, 1))
            if isinstance(length, int):
                found._add_fixed(length, begin, end, stride)
            else:
                found._add_open(begin, end, stride)
        return found

    def _add_fixed(self, length: int, begin: int, end: int, stride: int) -> None:
        steps = range(*slice(begin, end, stride).indices(length))
        if not len(steps):
            raise Unsupported("a slice without elements")
        stop = steps[-1] + (1 if stride > 0 else -1)
        whole = len(steps) == length and stride == 1
        self._add(steps[0], max(stop, 0), stride, begin_mask=whole, end_mask=whole or stop < 0)

    def _add_open(self, begin: int, end: int, stride: int) -> None:
        if stride > 0:
            first, last = begin == 0, end >= FAR
        else:
            first, last = begin == -1 or begin >= FAR, end <= -FAR
        bounds = 0 if first else begin, 0 if last else end
        self._add(*bounds, stride, begin_mask=first, end_mask=last)

    def _add(self, begin: int, end: int, stride: int, *, begin_mask: bool, end_mask: bool) -> None:
        self.begin.append(begin)
        self.end.append(end)
        self.stride.append(stride)
        self.begin_mask.append(begin_mask)
        self.end_mask.append(end_mask)

    @property
    def inputs(self) -> dict[str, AnyValue]:
        """The inputs of an operation that say so."""
        found: dict[str, AnyValue] = {"begin": self.begin, "end": self.end}
        if any(step != 1 for step in self.stride):
            found["stride"] = self.stride
        if any(self.begin_mask):
            found["begin_mask"] = self.begin_mask
        if any(self.end_mask):
            found["end_mask"] = self.end_mask
        return found


def _flags(given: Flags, rank: int) -> tuple[bool, ...]:
    found = given if isinstance(given, tuple) else (given,)
    return _one_an_axis(found or (False,) * rank, rank)


def _numbers(given: tuple[int, ...] | int, rank: int) -> list[int]:
    found = given if isinstance(given, tuple) else (given,)
    return list(_one_an_axis(found or (1,) * rank, rank))


def _one_an_axis(given: tuple[T, ...], rank: int) -> tuple[T, ...]:
    if len(given) != rank:
        raise Unsupported(f"{len(given)} numbers for a tensor of {rank} axes")
    return given


def _resolve_bound(ctx: Import, bound: Expr, mask: Sequence[bool], far: Sequence[int]) -> AnyValue:
    """Return a bound of a slice, those that are masked at their end: integers or an expression."""
    known = ctx.dims(bound)
    if known is not None and all(isinstance(each, int) for each in known):
        given = _one_an_axis(tuple(known), len(far))
        return [end if masks else each for each, masks, end in zip(given, mask, far, strict=True)]
    if not any(mask):
        return bound
    ends = relay.const(np.array(far), ctx.type(bound).dtype)
    return relay.where(relay.Constant(np.array(mask)), ends, bound)


@dataclass(frozen=True, kw_only=True)
class SliceAttributes:
    """Attributes of MIL's ``slice_by_index`` and ``slice_update``."""

    stride: tuple[int, ...] | int = ()
    begin_mask: Flags = ()
    end_mask: Flags = ()
    squeeze_mask: Flags = ()


@dataclass(frozen=True)
class _Slice:
    """What a slice of MIL says, in Relay's terms: integers or expressions.

    Attributes:
        begin: Where each axis starts.
        end: Where it ends.
        steps: Its steps.
        gone: Axes of which one element is taken.
    """

    begin: AnyValue
    end: AnyValue
    steps: list[int]
    gone: list[int]

    @classmethod
    def of(cls, ctx: Import, begin: Expr, end: Expr, attrs: SliceAttributes, rank: int) -> _Slice:
        """Return a slice of a tensor of some rank."""
        masks = (attrs.begin_mask, attrs.end_mask, attrs.squeeze_mask)
        begins, ends, squeezes = (_flags(mask, rank) for mask in masks)
        gone = [axis for axis, mark in enumerate(squeezes) if mark]
        steps = _numbers(attrs.stride, rank)
        steps = [1 if axis in gone else step for axis, step in enumerate(steps)]
        first = _resolve_bound(ctx, begin, begins, [0 if step > 0 else FAR for step in steps])
        last = _resolve_bound(ctx, end, ends, [FAR if step > 0 else -FAR for step in steps])
        for axis in gone:
            first, last = _one(ctx, first, last, axis)
        return cls(first, last, steps, gone)


@OPS.imports("slice_by_index", since=(1, 17))
def import_slice_by_index(
    ctx: Import, x: Expr, begin: Expr, end: Expr, *, attrs: SliceAttributes
) -> Expr:
    """What is squeezed is one element, whose end does not count."""
    rank = ctx.type(x).rank
    found = _Slice.of(ctx, begin, end, attrs, rank)
    axes = list(range(rank))
    cut = relay.strided_slice(x, found.begin, found.end, found.steps, axes=axes)
    return relay.squeeze(cut, axis=found.gone) if found.gone else cut


def _one(ctx: Import, begin: AnyValue, end: AnyValue, axis: int) -> tuple[AnyValue, AnyValue]:
    """Return bounds between which an axis has one element: that at its begin."""
    if isinstance(begin, list) and isinstance(end, list):
        stop = FAR if begin[axis] == -1 else begin[axis] + 1
        return begin, [*end[:axis], stop, *end[axis + 1 :]]
    if isinstance(begin, list):
        begin = relay.const(np.array(begin, np.int32))
    rank = ctx.static_shape(begin)[0]
    dtype = ctx.type(begin).dtype
    if isinstance(end, list):
        end = relay.const(np.array(end), dtype)
    chosen = relay.const(allocation.arange(rank) == axis)
    after = relay.add(begin, relay.const(1, dtype))
    wrapped = relay.equal(begin, relay.const(-1, dtype))
    stop = relay.where(wrapped, relay.const(FAR, dtype), after)
    return begin, relay.where(chosen, stop, end)


@OPS.exports("strided_slice")
def export_strided_slice(ctx: Export, data: Value, *, region: StridedSlice) -> Value:
    type_ = ctx.type(data)
    inputs = Region.of(type_.shape, region.cuts(type_.rank)).inputs
    return emit_in(ctx, MOVE_DTYPES, "slice_by_index", {"x": data}, **inputs)


@OPS.exports("dyn.strided_slice")
def export_dyn_strided_slice(
    ctx: Export, data: Value, begin: Value, end: Value, strides: Value,
    *, slice_mode: str, axes: tuple[int, ...] | None,
) -> Value:  # fmt: skip
    """Bounds that are computed are those of all axes; in mode "size" the ends are lengths."""
    rank = ctx.type(data).rank
    (count,) = ctx.static_lengths(begin, [0])
    positions = [axis % rank for axis in axes] if axes is not None else list(range(count))
    steps = [1] * rank
    if slice_mode == "end":
        for place, step in zip(positions, ctx.constant(strides).tolist(), strict=True):
            steps[place] = step
    bounds = [_of_all(ctx, bound, positions, rank) for bound in (begin, end)]
    masks = [place not in positions for place in range(rank)]
    if slice_mode == "size":
        wide = TensorType((rank,), "int32")
        zero = ctx.const(0, "int32")
        truth = TensorType((rank,), "bool")
        rest = ctx.emit("less", truth, x=bounds[1], y=zero)
        stop = ctx.emit("add", wide, x=bounds[0], y=bounds[1])
        far = ctx.const(allocation.full(rank, FAR), "int32")
        bounds[1] = ctx.emit("select", wide, cond=rest, a=far, b=stop)
    inputs: dict[str, AnyValue] = {"begin": bounds[0], "end": bounds[1]}
    if any(step != 1 for step in steps):
        inputs["stride"] = steps
    if any(masks):
        inputs |= {"begin_mask": masks, "end_mask": masks}
    return emit_in(ctx, MOVE_DTYPES, "slice_by_index", {"x": data}, **inputs)


def _of_all(ctx: Export, bound: Value, positions: Sequence[int], rank: int) -> Value:
    """Return bounds of some axes as those of all, 0 for the others.

    Ends beyond int32 stand for all that follows, as the greatest int64 does.
    """
    near = bound if bound.data is None else ctx.const(np.clip(bound.data, -FAR, FAR))
    given = cast_to(ctx, near, "int32")
    if list(positions) == list(range(rank)):
        return given
    padded = ctx.const(np.zeros(1), "int32")
    longer = TensorType((len(positions) + 1,), "int32")
    wide = ctx.emit("concat", longer, values=[given, padded], axis=0)
    order = [positions.index(axis) if axis in positions else len(positions) for axis in range(rank)]
    made = TensorType((rank,), "int32")
    return ctx.emit("gather", made, x=wide, indices=ctx.const(order, "int32"), axis=0)


@OPS.imports("slice_by_size", since=(1, 17))
def import_slice_by_size(ctx: Import, x: Expr, begin: Expr, size: Expr) -> Expr:
    """A size of -1 is all that follows."""
    axes = list(range(ctx.type(x).rank))
    first, count = ctx.dims(begin), ctx.dims(size)
    fixed = [bound for bound in (first, count) if bound is not None]
    if len(fixed) == 2 and all(isinstance(each, int) for bound in fixed for each in bound):
        starts, sizes = ctx.ints(begin), ctx.ints(size)
        ends = [FAR if n < 0 else b + n for b, n in zip(starts, sizes, strict=True)]
        ends = [FAR if b < 0 <= e else e for b, e in zip(starts, ends, strict=True)]
        return relay.strided_slice(x, starts, ends, axes=axes)
    dtype = ctx.type(begin).dtype
    lengths = relay.cast(size, dtype)
    own = relay.shape_of(x, dtype=dtype)
    zero = relay.const(0, dtype)
    start = relay.where(relay.less(begin, zero), relay.add(begin, own), begin)
    stop = relay.where(relay.less(lengths, zero), own, relay.add(start, lengths))
    ones = relay.const(allocation.ones(len(axes)), dtype)
    return call("dyn.strided_slice", x, start, stop, ones, slice_mode="end", axes=axes)


@OPS.exports("slice_like")
def export_slice_like(
    ctx: Export, data: Value, shape_like: Value, *, axes: tuple[int, ...] | None
) -> Value:
    rank, dims = ctx.type(data).rank, list(ctx.result_type().shape)
    zeros = ctx.const(allocation.zeros(rank), "int32")
    if any(isinstance(dim, Any) for dim in dims):
        if axes or ctx.type(shape_like).rank != rank:
            raise Unsupported("a cut to lengths that have no names")
        size = ctx.emit("shape", TensorType((rank,), "int32"), x=shape_like)
    else:
        size = ctx.shape(dims)
    return emit_in(ctx, MOVE_DTYPES, "slice_by_size", {"x": data}, begin=zeros, size=size)


@OPS.imports("slice_update", since=18)
def import_slice_update(
    ctx: Import, x: Expr, update: Expr, begin: Expr, end: Expr, *, attrs: SliceAttributes
) -> Expr:
    """Axes that are squeezed have length 1 in the region."""
    rank = ctx.type(x).rank
    found = _Slice.of(ctx, begin, end, attrs, rank)
    for axis in found.gone:
        update = relay.expand_dims(update, axis=axis)
    vectors = [
        bound if isinstance(bound, Expr) else relay.const(np.array(bound, np.int32))
        for bound in (found.begin, found.end, found.steps)
    ]
    return relay.strided_set(x, update, *vectors)


@OPS.exports("strided_set", since=18, takes=Takes(begin=CONSTANT, end=CONSTANT, strides=CONSTANT))
def export_strided_set(
    ctx: Export, data: Value, v: Value, begin: Value, end: Value, strides: Value
) -> Value:
    type_ = ctx.type(data)
    bounds = [ctx.constant(bound).tolist() for bound in (begin, end, strides)]
    begins, ends, steps = bounds
    cuts = StridedSlice(begin=begins, end=ends, strides=steps, axes=None).cuts(type_.rank)
    region = Region.of(type_.shape, cuts)
    work = compute_dtype(ctx, type_.dtype, MOVE_DTYPES)
    tensors = {"x": cast_to(ctx, data, work), "update": cast_to(ctx, v, work)}
    found = ctx.emit("slice_update", TensorType(type_.shape, work), **tensors, **region.inputs)
    return cast_to(ctx, found, type_.dtype)


def _has_one_place(node: Call) -> bool:
    """Whether all rows go behind one place, and none beyond the end."""
    single = tensor_type(node.args[0]).shape[0] == 1 and not is_absent(node.args[2])
    return single and node.attrs["mode"] == "linear"


@OPS.exports("serde.tensor_scatter", since=18, when=_has_one_place, ignored=("mode",))
def export_tensor_scatter(
    ctx: Export, data: Value, update: Value, write_indices: Value, *, axis: int
) -> Value:
    type_, dims = ctx.type(data), ctx.type(update).shape
    along, zero = axis % type_.rank, ctx.lengths([0])
    parts = [zero] * type_.rank
    parts[along] = cast_to(ctx, write_indices, "int32")
    begin = ctx.join_lengths(parts)
    end = ctx.emit("add", TensorType((type_.rank,), "int32"), x=begin, y=ctx.shape(dims))
    tensors = {"x": data, "update": update}
    return emit_in(ctx, MOVE_DTYPES, "slice_update", tensors, begin=begin, end=end)

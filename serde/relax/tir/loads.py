"""Loads from buffers, as slices, reshapes and transpositions of them, or as a gather."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

import serde.relay as relay
from serde.core import Array, allocation
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext
from serde.relax.tir.indexing import Frame, count_digits, flat_index
from serde.relax.tir.stages import Axis, Node, post_order
from serde.relay.ir import Any, Call, Constant, Dim, Expr, get
from serde.relay.ir.dims import product, same_length
from serde.relay.lowering.lengths import LAST, permuted
from serde.relay.transform.evaluate_constants import EvaluateConstants

__all__ = ["Buffer", "Loads", "Spread", "fold"]

fold: Final = EvaluateConstants(max_bytes=2**24).fold
"""Evaluates a call on constants, unless they are large."""


class Buffer(NamedTuple):
    """A tensor with its lengths in the names of ``Lengths``."""

    expr: Expr
    shape: tuple[Dim, ...]


class Spread(NamedTuple):
    """A tensor whose axes are some of those of a frame, in their order."""

    expr: Expr
    axes: tuple[Axis, ...]


class _Slice(NamedTuple):
    """A slice of an axis, from its end where the step is negative, which is axes of a frame."""

    begin: int
    end: int
    step: int
    axes: list[Axis]


class _Slot(NamedTuple):
    """An axis of a tensor on its way to axes of a frame, with the index that is wanted."""

    length: Dim
    wanted: Dim
    node: Node | None = None
    slice: _Slice = _Slice(0, LAST, 1, [])


class Loads(ABC):
    """What loads are of what is in :attr:`buffers`, by their handles."""

    def __init__(self, ctx: ImportContext) -> None:
        self.ctx = ctx
        self.buffers: dict[int, Buffer] = {}

    @abstractmethod
    def compute(self, node: Node, frame: Frame) -> Spread:
        """Return an expression for all positions of a frame."""

    @abstractmethod
    def align(self, spreads: Sequence[Spread], frame: Frame) -> tuple[list[Expr], tuple[Axis, ...]]:
        """Return tensors that broadcast against each other, and the axes of what that gives."""

    def load(self, node: Node, frame: Frame) -> Spread:
        """Return the elements of a buffer that an expression reads."""
        indices = [frame.index(each) for each in node.args]
        found = self.view(self.buffer(node), indices, frame, node.args)
        if found is None:
            raise Unsupported("an index that cannot be computed")
        return found

    def buffer(self, node: Node) -> Buffer:
        """Return what a load reads of."""
        found = self.buffers.get(node.held)
        if found is None or len(found.shape) != len(node.args):
            raise Unsupported("a buffer is read before it is filled, or in another shape")
        return found

    def view(
        self, buffer: Buffer, indices: Sequence[Dim], frame: Frame, nodes: Sequence[Node] = ()
    ) -> Spread | None:
        """Return elements of a buffer at indices that are polynomials, where they are some.

        Others are computed from their nodes. Without nodes, None stands for what is not told.
        """
        expr, own = buffer.expr, [*nodes, *[None] * len(indices)]
        given = slots = list(map(_Slot, buffer.shape, indices, own))
        for group in _groups([_depends(slot, frame) for slot in given]):
            places = [i for i, x in enumerate(slots) if any(x is given[place] for place in group)]
            first, behind, rest = places[0], places[0] + len(places), range(len(slots))
            order = [*rest[:first], *places, *(i for i in rest[first:] if i not in places)]
            expr, slots = permuted(expr, order), [slots[place] for place in order]
            merged = _merge(slots[first:behind], frame)
            if merged is not None:
                slots[first:behind] = [merged]
                expr = self.reshape(expr, [each.length for each in slots])
            elif nodes:
                expr, slots = self._gather(expr, slots, first, behind, frame)
            else:
                return None
        slices = [each.slice for each in slots]
        cut = [
            (i, x) for i, x in enumerate(slices) if (x.begin, x.end, abs(x.step)) != (0, LAST, 1)
        ]
        if cut:
            begins, ends = [x.begin for _, x in cut], [x.end for _, x in cut]
            steps, places = [abs(x.step) for _, x in cut], [place for place, _ in cut]
            expr = relay.strided_slice(expr, begins, ends, steps, axes=places)
        for place in (place for place, each in enumerate(slices) if each.step < 0):
            expr = relay.reverse(expr, axis=place)
        axes = [axis for each in slices for axis in each.axes]
        expr = self.reshape(expr, [each.extent for each in axes])
        wanted = [each for each in frame.axes if each in axes]
        return Spread(permuted(expr, [axes.index(each) for each in wanted]), tuple(wanted))

    def reshape(self, expr: Expr, dims: Sequence[Dim]) -> Expr:
        """Return a tensor in another shape, itself where that is its own."""
        return self.of_shape(expr, dims) or fold(self.ctx.reshape(expr, dims))

    def of_shape(self, expr: Expr, dims: Sequence[Dim]) -> Expr | None:
        """Return a tensor, or what it is a reshape of, if that is of a shape."""
        reshaped = isinstance(expr, Call) and expr.op == get("reshape")
        found = expr.args[0] if isinstance(expr, Call) and reshaped else expr
        shape, known = self.ctx.type(found).shape, map(self.ctx.lengths.known, dims)
        if len(shape) != len(dims) or sum(map(same_length, known, shape)) < len(dims) - 1:
            return None
        return found  # The count of elements is the same: so is a length that is not known.

    # What is computed.

    def _gather(
        self, expr: Expr, slots: Sequence[_Slot], first: int, behind: int, frame: Frame
    ) -> tuple[Expr, list[_Slot]]:
        """Return elements at indices that are computed, or constants."""
        members = slots[first:behind]
        spreads = [self.compute(each.node, frame) for each in members if each.node is not None]
        index, length = spreads[0], product(each.length for each in members)
        if len(members) > 1:
            along = self._gather_along(expr, slots, spreads, frame)
            if along is not None:
                return along
            dims = [each.length for each in slots]
            expr = self.ctx.reshape(expr, [*dims[:first], length, *dims[behind:]])
            index = self._flat(members, spreads, frame)
        if isinstance(index.expr, Constant) and isinstance(length, int):
            # TVM masks some elements only after it has read them from outside.
            where = np.clip(index.expr.data.astype(np.int64), 0, max(length - 1, 0))
            before, after, mode = _padded(where, length) or (0, 0, "")
            widths = [(before, after) if place == first else (0, 0) for place in range(len(slots))]
            if mode:
                expr = relay.nn.pad(expr, widths, pad_mode=mode)
            else:
                expr = relay.take(expr, Constant(where), axis=first)
        else:
            expr = relay.take(expr, self._wide(index.expr), axis=first)
        return fold(expr), [*slots[:first], *map(_whole, index.axes), *slots[behind:]]

    def _wide(self, index: Expr) -> Expr:
        return index if self.ctx.dtype(index) in ("int32", "int64") else relay.cast(index, "int64")

    def _flat(self, members: Sequence[_Slot], spreads: Sequence[Spread], frame: Frame) -> Spread:
        """Return indices of several axes as one of them together; each is inside of its axis."""
        exprs, axes = self.align(spreads, frame)
        zero = Constant(np.zeros((), np.int64))
        total: Expr = zero
        for place, (index, slot) in enumerate(zip(exprs, members, strict=True)):
            last = self.ctx.lengths.tensor(slot.length - 1)
            index = fold(relay.maximum(fold(relay.cast(index, "int64")), zero))
            index = fold(relay.minimum(index, last))
            behind = self.ctx.lengths.tensor(product(each.length for each in members[place + 1 :]))
            total = fold(relay.add(total, fold(relay.multiply(index, behind))))
        return Spread(total, axes)

    def _gather_along(
        self, expr: Expr, slots: Sequence[_Slot], spreads: Sequence[Spread], frame: Frame
    ) -> tuple[Expr, list[_Slot]] | None:
        """Return elements that are computed along one axis and those of all positions else."""
        whole = [frame.digits(slot.wanted, slot.length) or [] for slot in slots]
        free = [place for place, axes in enumerate(whole) if len(axes) != 1]
        if len(free) != 1 or len(spreads) != len(slots):
            return None
        index, known = spreads[free[0]], [axis for axes in whole for axis in axes]
        whole[free[0]] = [each for each in index.axes if each not in known]
        order = [axis for axes in whole for axis in axes]
        if len(order) != len(slots) or set(order) != set(index.axes):
            return None
        indices = permuted(index.expr, [index.axes.index(each) for each in order])
        return relay.gather(expr, free[0], self._wide(indices)), list(map(_whole, order))


def _whole(axis: Axis) -> _Slot:
    """Return an axis of a frame."""
    return _Slot(axis.extent, Any(), slice=_Slice(0, LAST, 1, [axis]))


def _merge(members: Sequence[_Slot], frame: Frame) -> _Slot | None:
    """Return axes as one of which a slice is wanted, None if it is none that is known."""
    lengths, indices = [each.length for each in members], [each.wanted for each in members]
    if frame.guarded and not all(map(frame.is_inside, indices, lengths)):
        return None
    index, length = flat_index(indices, lengths), product(lengths)
    axes = frame.digits(index, length)
    if axes is not None:
        return _Slot(length, index, slice=_Slice(0, LAST, 1, axes))
    start, factors = frame.affine(index) or (Any(), {})
    numbers = {axis: each for axis, each in factors.items() if isinstance(each, int)}
    steps = [each for axis, each in numbers.items() if axis.extent != 1] or [1]
    step, count = min(steps), product(each.extent for each in factors)
    one_way = step > 0 or (step < 0 and len(steps) == 1)
    if len(numbers) < len(factors) or not one_way or any(each % step for each in steps):
        return None
    axes = count_digits({axis: each // step for axis, each in numbers.items()}, count)
    begin = start + (count - 1) * min(step, 0)
    end = begin + (count - 1) * abs(step) + 1
    inside = not isinstance(length, int) or (isinstance(end, int) and end <= length)
    end = LAST if end == length else end
    if axes is None or not inside or not isinstance(begin, int) or not isinstance(end, int):
        return None
    return _Slot(length, index, slice=_Slice(begin, end, step, axes)) if begin >= 0 else None


def _depends(slot: _Slot, frame: Frame) -> set[Axis]:
    """Return the axes that an index depends on."""
    if slot.node is None or not isinstance(slot.wanted, Any):
        return set(frame.axes_of(slot.wanted))
    places = post_order(slot.node, "axis")
    return {axis for each in places for axis in frame.axes_of(frame.index(each))}


def _groups(needs: Sequence[set[Axis]]) -> list[list[int]]:
    """Return which axes share what they depend on."""
    groups: list[tuple[set[Axis], list[int]]] = []
    for place, need in enumerate(needs):
        shared = [each for each in groups if each[0] & need]
        groups = [each for each in groups if not each[0] & need]
        places = [place, *(other for _, places in shared for other in places)]
        groups.append((need.union(*(axes for axes, _ in shared)), places))
    return [places for _, places in groups]


def _padded(index: Array, length: int) -> tuple[int, int, str] | None:
    """Return how an axis is padded where indices say so: before, behind, and the mode."""
    if index.ndim != 1 or index.size <= length or length < 2 or 0 not in index:
        return None
    for before, mode in ((int(np.flatnonzero(index == 0)[-1]), "edge"), (int(index[0]), "reflect")):
        after = index.size - length - before
        if after >= 0 and max(before, after) < (length if mode == "reflect" else index.size):
            wanted = allocation.pad(allocation.positions(length), [(before, after)], mode)
            if np.array_equal(wanted, index):
                return before, after, mode
    return None

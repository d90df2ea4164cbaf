"""Loads from buffers, as slices, reshapes and transpositions of them, or as a gather."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

import serde.relay as relay
from serde.core import allocation
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext
from serde.relax.tir.indexing import Frame, count_digits, flat_index
from serde.relax.tir.stages import Axis, Node, post_order
from serde.relay.ir import Any, Constant, Dim, Expr
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


class _Slot(NamedTuple):
    """An axis of a tensor on its way to axes of a frame.

    Attributes:
        length: Its length.
        index: Which element is wanted, as a polynomial.
        node: The index as an expression, None where only the polynomial is known.
        axis: The axis of the frame that it is already.
    """

    length: Dim
    index: Dim
    node: Node | None = None
    axis: Axis | None = None


class Loads(ABC):
    """What loads are.

    Args:
        ctx: The call.

    Attributes:
        buffers: What is in the buffers, by their handles.
    """

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
        """Return elements of a buffer.

        Args:
            buffer: The buffer.
            indices: Which, as polynomials, anonymous where they are none.
            frame: The frame.
            nodes: The indices; without them only polynomials are followed.

        Returns:
            The elements; None where polynomials alone do not tell them.
        """
        expr, own = buffer.expr, nodes or [None] * len(indices)
        given = list(map(_Slot, buffer.shape, indices, own))
        slots = list(given)
        for group in _groups([_depends(slot, frame) for slot in given]):
            members = [given[place] for place in group]
            merged = _merge(members, frame)
            if merged is None and not nodes:
                return None
            if len(members) > 1:
                places = [next(i for i, x in enumerate(slots) if x is each) for each in members]
                first, rest = places[0], [i for i in range(len(slots)) if i not in places]
                order = [*(i for i in rest if i < first), *places, *(i for i in rest if i > first)]
                expr, slots = permuted(expr, order), [slots[place] for place in order]
            if merged is None:
                expr, slots = self._gather(expr, slots, members, frame)
            elif len(members) > 1:
                first = next(i for i, each in enumerate(slots) if each is members[0])
                slots[first : first + len(members)] = [merged]
                expr = self.ctx.reshape(expr, [each.length for each in slots])
        expr, axes = self._slice(expr, slots, frame)
        wanted = [each for each in frame.axes if each in axes]
        return Spread(permuted(expr, [axes.index(each) for each in wanted]), tuple(wanted))

    def _slice(self, expr: Expr, slots: Sequence[_Slot], frame: Frame) -> tuple[Expr, list[Axis]]:
        """Return slices of axes, and which axes of the frame they are."""
        bounds, flipped, axes = [], [], list[Axis]()
        for place, slot in enumerate(slots):
            found = _slice_of(slot, frame)
            if found is None:
                raise Unsupported("an index that is no slice")
            axes += found.axes
            if found.step < 0:
                flipped.append(place)
            if (found.begin, found.end, abs(found.step)) != (0, LAST, 1):
                bounds.append((place, found.begin, found.end, abs(found.step)))
        if bounds:
            places, begins, ends, steps = zip(*bounds, strict=True)
            expr = relay.strided_slice(expr, begins, ends, steps, axes=places)
        for place in flipped:
            expr = relay.reverse(expr, axis=place)
        return self.reshape(expr, [each.extent for each in axes]), axes

    def reshape(self, expr: Expr, dims: Sequence[Dim]) -> Expr:
        """Return a tensor in another shape, itself where that is its own."""
        shape = self.ctx.type(expr).shape
        known = [self.ctx.lengths.known(each) for each in dims]
        alike = len(shape) == len(dims) and list(map(same_length, known, shape))
        if alike is not False and sum(map(bool, alike)) >= len(dims) - 1:
            return expr  # The count of elements is the same: so is the one that is not known.
        return fold(self.ctx.reshape(expr, dims))

    # What is computed.

    def _gather(
        self, expr: Expr, slots: list[_Slot], members: Sequence[_Slot], frame: Frame
    ) -> tuple[Expr, list[_Slot]]:
        """Return elements at indices that are computed, or constants."""
        place = next(i for i, each in enumerate(slots) if each is members[0])
        spreads = [self.compute(each.node, frame) for each in members if each.node is not None]
        length = product(each.length for each in members)
        index = spreads[0]
        if len(members) > 1:
            along = self._gather_along(expr, slots, spreads, frame)
            if along is not None:
                return along
            dims = [each.length for each in slots]
            dims[place : place + len(members)] = [length]
            expr = self.ctx.reshape(expr, dims)
            index = self._flat(members, spreads, frame)
        if isinstance(index.expr, Constant) and isinstance(length, int):
            where = np.clip(index.expr.data.astype(np.int64), 0, max(length - 1, 0))
            padded = _padded(where, length)
            if padded is None:
                expr = relay.take(expr, Constant(where), axis=place)
            else:
                widths = [(0, 0)] * len(slots)
                widths[place] = padded[:2]
                expr = relay.nn.pad(expr, widths, pad_mode=padded[2])
        else:
            expr = relay.take(expr, self._wide(index.expr), axis=place)
        made = [_Slot(each.extent, Any(), axis=each) for each in index.axes]
        return fold(expr), [*slots[:place], *made, *slots[place + len(members) :]]

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
        whole = [frame.digits(slot.index, slot.length) or [] for slot in slots]
        free = [place for place, axes in enumerate(whole) if len(axes) != 1]
        if len(free) != 1 or len(spreads) != len(slots):
            return None
        index, known = spreads[free[0]], [axis for axes in whole for axis in axes]
        whole[free[0]] = [each for each in index.axes if each not in known]
        order = [axis for axes in whole for axis in axes]
        if len(order) != len(slots) or set(order) != set(index.axes):
            return None
        indices = permuted(index.expr, [index.axes.index(each) for each in order])
        made = relay.gather(expr, free[0], self._wide(indices))
        return made, [_Slot(each.extent, Any(), axis=each) for each in order]


class _Slice(NamedTuple):
    """A slice of an axis, from its end where the step is negative, which is axes of a frame."""

    begin: int
    end: int
    step: int
    axes: list[Axis]


def _slice_of(slot: _Slot, frame: Frame) -> _Slice | None:
    """Return the slice that an index is, None if it is none that is known."""
    axes = [slot.axis] if slot.axis else frame.digits(slot.index, slot.length)
    if axes is not None:
        return _Slice(0, LAST, 1, axes)
    found = frame.affine(slot.index)
    if found is None or not all(isinstance(each, int) for each in found[1].values()):
        return None
    begin, factors = found
    steps = [int(f) for axis, f in factors.items() if axis.extent != 1]  # type: ignore[arg-type]
    step = min(steps, default=1)
    if len(steps) == 1 and step < 0:
        begin = begin + (product(each.extent for each in factors) - 1) * step
    if step == 0 or (step < 0 and len(steps) > 1) or any(each % step for each in steps):
        return None
    count: Dim = product(each.extent for each in factors)
    axes = count_digits({axis: factor // step for axis, factor in factors.items()}, count)
    end = begin + (count - 1) * abs(step) + 1
    fits = not isinstance(slot.length, int) or (isinstance(end, int) and end <= slot.length)
    end = LAST if end == slot.length else end
    if axes is None or not fits or not isinstance(end, int) or not isinstance(begin, int):
        return None
    return _Slice(begin, end, step, axes) if begin >= 0 else None


def _merge(members: Sequence[_Slot], frame: Frame) -> _Slot | None:
    """Return axes as one that a slice tells, None if they are none."""
    if any(isinstance(each.index, Any) for each in members):
        return None
    if frame.guarded and not all(frame.is_inside(each.index, each.length) for each in members):
        return None
    lengths, indices = [each.length for each in members], [each.index for each in members]
    slot = _Slot(product(lengths), flat_index(indices, lengths))
    return None if _slice_of(slot, frame) is None else slot


def _depends(slot: _Slot, frame: Frame) -> set[Axis]:
    """Return the axes that an index depends on."""
    if slot.node is None or not isinstance(slot.index, Any):
        return frame.axes_of(slot.index)
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
    return [sorted(places) for _, places in groups]


def _padded(
    index: np.ndarray[tuple[int, ...], np.dtype[np.int64]], length: int
) -> tuple[int, int, str] | None:
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

"""Loads from buffers, as slices, reshapes and transpositions of them, or as a gather."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any as AnyValue, Final, NamedTuple

import numpy as np

import serde.relay as relay
from serde.core import allocation
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext
from serde.relax.tir.indexing import Affine, Frame, flat_index
from serde.relax.tir.stages import Axis, Load, Node, Position, post_order
from serde.relay.ir import Any, Constant, Dim, Expr, TensorType
from serde.relay.ir.dims import product
from serde.relay.ir.visit import rewrite
from serde.relay.lowering.lengths import LAST, permuted
from serde.relay.transform.evaluate_constants import EvaluateConstants

__all__ = ["Buffer", "Loads", "Spread", "fold"]

_MOST_BYTES: Final = 2**24
"""Larger constants are left to be computed."""

fold: Final = EvaluateConstants(max_bytes=_MOST_BYTES).fold
"""Evaluates a call on constants."""


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
        index: Which element is wanted; None if it is the axis of the frame already.
        nodes: What index it was computed from, and the lengths: several that are merged.
        axis: The axis of the frame.
    """

    length: Dim
    index: Dim | None
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

    def load(self, node: Load, frame: Frame) -> Spread:
        """Return the elements of a buffer that an expression reads."""
        if node.buffer not in self.buffers:
            raise Unsupported("a buffer is read before it is filled")
        buffer = self.buffers[node.buffer]
        indices = [frame.index(each) for each in node.indices]
        found = self.view(buffer, indices, frame, node.indices)
        if found is None:
            raise Unsupported("an index that cannot be computed")
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
        expr, slots = buffer.expr, []
        if len(indices) != len(buffer.shape):
            raise Unsupported("a buffer is read with another number of indices than it has axes")
        own = nodes or [None] * len(indices)
        for length, index, node in zip(buffer.shape, indices, own, strict=True):
            slots.append(_Slot(length, index, node))
        given = list(slots)
        for group in _groups([self._depends(slot, frame) for slot in slots]):
            members = [given[place] for place in group]
            merged = self._merge(members, frame)
            if merged is None and not nodes:
                return None
            expr, slots, place = _together(expr, slots, members)
            if len(members) > 1 and merged is not None:
                dims = [each.length for each in slots]
                dims[place : place + len(members)] = [merged.length]
                expr = self.ctx.reshape(expr, dims)
                slots[place : place + len(members)] = [merged]
            elif merged is None:
                expr, slots = self._gather(expr, slots, place, len(members), frame)
        expr, axes = self._slice(expr, slots, frame)
        wanted = [each for each in frame.axes if each in axes]
        return Spread(permuted(expr, [axes.index(each) for each in wanted]), tuple(wanted))

    def _depends(self, slot: _Slot, frame: Frame) -> frozenset[Axis]:
        if slot.index is not None and not isinstance(slot.index, Any):
            return frozenset(frame.axes_of(slot.index))
        if slot.node is None:
            return frozenset()
        positions = [x for x in post_order(slot.node) if isinstance(x, Position)]
        return frozenset(axis for x in positions for axis in frame.axes_of(frame.index(x)))

    # What polynomials tell.

    def _merge(self, members: Sequence[_Slot], frame: Frame) -> _Slot | None:
        """Return axes as one that a slice tells, None if they are none."""
        indices = [each.index for each in members if each.index is not None]
        if any(isinstance(each, Any) for each in indices):
            return None
        if frame.guarded and not all(
            frame.is_inside(index, slot.length)
            for index, slot in zip(indices, members, strict=True)
        ):
            return None
        lengths = [each.length for each in members]
        index = indices[0] if len(members) == 1 else flat_index(indices, lengths)
        slot = _Slot(product(lengths), index)
        return None if _slice_of(slot, frame) is None else slot

    def _slice(self, expr: Expr, slots: Sequence[_Slot], frame: Frame) -> tuple[Expr, list[Axis]]:
        """Return slices of axes, and which axes of the frame they are."""
        begins, ends, steps, sliced, flipped = [], [], [], [], []
        axes, dims = list[Axis](), list[Dim]()
        for place, slot in enumerate(slots):
            if slot.axis is not None:
                axes.append(slot.axis)
                dims.append(slot.length)
                continue
            found = _slice_of(slot, frame)
            if found is None:
                raise Unsupported("an index that is no slice")
            axes += found.axes
            dims += [each.extent for each in found.axes]
            if found.flipped:
                flipped.append(place)
            if not found.whole:
                sliced.append(place)
                begins.append(found.begin)
                ends.append(found.end)
                steps.append(found.step)
        if sliced:
            expr = relay.strided_slice(expr, begins, ends, steps, axes=sliced)
        for place in flipped:
            expr = relay.reverse(expr, axis=place)
        if len(dims) != len(slots) or any(slot.axis is None for slot in slots):
            expr = self.reshape(expr, dims)
        return fold(expr), axes

    def reshape(self, expr: Expr, dims: Sequence[Dim]) -> Expr:
        """Return a tensor in another shape, itself where that is its own."""
        type_ = expr.type
        if isinstance(type_, TensorType) and type_.rank == len(dims):
            known = [self.ctx.lengths.known(each) for each in dims]
            pairs = list(zip(known, type_.shape, strict=True))
            if all(one == other and not isinstance(one, Any) for one, other in pairs):
                return expr
            if sum(one != other or isinstance(one, Any) for one, other in pairs) <= 1:
                return expr  # The count of elements is the same.
        return fold(self.ctx.reshape(expr, dims))

    # What is computed.

    def _gather(
        self, expr: Expr, slots: list[_Slot], place: int, count: int, frame: Frame
    ) -> tuple[Expr, list[_Slot]]:
        """Return elements at indices that are computed, or constants."""
        members = slots[place : place + count]
        spreads = [self.compute(each.node, frame) for each in members if each.node is not None]
        along = self._gather_along(expr, slots, spreads, frame) if count == len(slots) else None
        if along is not None:
            return along
        if count > 1:
            dims = [each.length for each in slots]
            length = product(each.length for each in members)
            dims[place : place + count] = [length]
            expr = self.ctx.reshape(expr, dims)
            index = self._flat(members, spreads, frame)
        else:
            (index,), length = spreads, members[0].length
        constant = index.expr.data if isinstance(index.expr, Constant) else None
        if constant is not None and isinstance(length, int):
            constant = np.clip(constant.astype(np.int64), 0, max(length - 1, 0))
            padded = _padded(constant, length)
            if padded is not None:
                widths = [(0, 0)] * len(slots)
                widths[place] = padded[:2]
                expr = relay.nn.pad(expr, widths, pad_mode=padded[2])
            else:
                expr = relay.take(expr, Constant(constant), axis=place)
        else:
            expr = relay.take(expr, self._index(index.expr), axis=place)
        made = [_Slot(each.extent, None, axis=each) for each in index.axes]
        return fold(expr), [*slots[:place], *made, *slots[place + count :]]

    def _index(self, index: Expr) -> Expr:
        return index if self.ctx.dtype(index) in ("int32", "int64") else relay.cast(index, "int64")

    def _flat(self, members: Sequence[_Slot], spreads: Sequence[Spread], frame: Frame) -> Spread:
        """Return indices of several axes as one of them together; each is inside of its axis."""
        total, axes = None, spreads[0].axes
        exprs, axes = self.align(spreads, frame)
        for place, (index, slot) in enumerate(zip(exprs, members, strict=True)):
            last = self.ctx.lengths.tensor(slot.length - 1)
            index = relay.minimum(relay.maximum(relay.cast(index, "int64"), _zero()), last)
            behind = product(each.length for each in members[place + 1 :])
            if behind != 1:
                index = relay.multiply(index, self.ctx.lengths.tensor(behind))
            total = index if total is None else relay.add(total, index)
        if total is None:
            raise Unsupported("no index")
        return Spread(_fold_all(total), axes)

    def _gather_along(
        self, expr: Expr, slots: Sequence[_Slot], spreads: Sequence[Spread], frame: Frame
    ) -> tuple[Expr, list[_Slot]] | None:
        """Return elements that are computed along one axis and those of all positions else."""
        free = []
        for place, slot in enumerate(slots):
            own = frame.affine(slot.index) if slot.index is not None else None
            whole = own == Affine(0, dict.fromkeys(own.factors, 1)) if own else False
            axes = list(own.factors) if own and whole else []
            free.append(axes[0] if len(axes) == 1 and axes[0].extent == slot.length else None)
        if free.count(None) != 1:
            return None
        place = free.index(None)
        index = spreads[place]
        known = {each for each in free if each is not None}
        new = [each for each in index.axes if each not in known]
        if len(new) != 1 or len(index.axes) != len(slots):
            return None
        order = [new[0] if each is None else each for each in free]
        indices = permuted(index.expr, [index.axes.index(each) for each in order])
        made = relay.gather(expr, place, self._index(indices))
        return made, [_Slot(each.extent, None, axis=each) for each in order]


class _Slice(NamedTuple):
    """A slice of an axis, which is several axes of a frame."""

    begin: int
    end: int
    step: int
    axes: list[Axis]
    flipped: bool
    whole: bool


def _slice_of(slot: _Slot, frame: Frame) -> _Slice | None:
    """Return the slice that an index is, None if it is none that is known."""
    if slot.index is None:
        return None
    whole = frame.digits(slot.index, slot.length)
    if whole is not None:
        return _Slice(0, LAST, 1, whole, False, True)
    found = frame.affine(slot.index)
    if found is None:
        return None
    begin, factors = found
    flipped = len(factors) == 1 and min(factors.values()) < 0
    if flipped:
        ((axis, factor),) = factors.items()
        begin, factors = begin + (axis.extent - 1) * factor, {axis: -factor}
    step = min((f for axis, f in factors.items() if axis.extent != 1), default=1)
    if step < 1 or any(factor % step for factor in factors.values()):
        return None
    count: Dim = product(each.extent for each in factors)
    digits = frame.digits_of({axis: factor // step for axis, factor in factors.items()}, count)
    end = begin + (count - 1) * step + 1
    if digits is None or not isinstance(begin, int) or begin < 0:
        return None
    if isinstance(slot.length, int) and isinstance(end, int) and end > slot.length:
        return None
    if end == slot.length:
        end = LAST
    if not isinstance(end, int):
        return None
    is_whole = begin == 0 and step == 1 and end == LAST
    return _Slice(begin, end, step, digits, flipped, is_whole)


def _groups(needs: Sequence[frozenset[Axis]]) -> list[list[int]]:
    """Return which axes share what they depend on."""
    groups: list[tuple[set[Axis], list[int]]] = []
    for place, need in enumerate(needs):
        joined, places = set(need), [place]
        apart = []
        for axes, others in groups:
            if axes & joined:
                joined |= axes
                places = others + places
            else:
                apart.append((axes, others))
        groups = [*apart, (joined, places)]
    return [sorted(places) for _, places in groups]


def _together(
    expr: Expr, slots: list[_Slot], members: Iterable[_Slot]
) -> tuple[Expr, list[_Slot], int]:
    """Return a tensor in which some axes stand next to each other, and where the first is."""
    own = [next(i for i, slot in enumerate(slots) if slot is each) for each in members]
    first = own[0]
    rest = [each for each in range(len(slots)) if each not in own]
    order = [*[e for e in rest if e < first], *own, *[e for e in rest if e > first]]
    return permuted(expr, order), [slots[each] for each in order], first


def _padded(index: AnyValue, length: int) -> tuple[int, int, str] | None:
    """Return how an axis is padded where indices say so: before, behind, and the mode."""
    if index.ndim != 1 or index.size <= length or length < 2:
        return None
    before = int(np.flatnonzero(index == 0)[-1]) if (index == 0).any() else 0
    for start, mode in ((before, "edge"), (int(index[0]), "reflect")):
        after = index.size - length - start
        most = length - 1 if mode == "reflect" else index.size
        if 0 <= start <= most and 0 <= after <= most:
            wanted = allocation.pad(np.arange(length), [(start, after)], mode)
            if np.array_equal(wanted, index):
                return start, after, mode
    return None


def _zero() -> Constant:
    return Constant(np.zeros((), np.int64))


def _fold_all(expr: Expr) -> Expr:
    """Return an expression of constants as its value."""
    return rewrite(expr, lambda _node, new: fold(new))

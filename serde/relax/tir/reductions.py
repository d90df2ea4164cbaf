"""Reductions: products of matrices, convolutions, pooling, and what is computed and combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Final, NamedTuple

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.tir.expressions import FUNCTIONS, Expressions
from serde.relax.tir.indexing import Frame, loads_of
from serde.relax.tir.loads import Buffer, Spread, fold
from serde.relax.tir.stages import Apply, Axis, Load, Node, Number, Stage
from serde.relay.ir import Call, Constant, Dim, Expr, call, get, is_float, symbol
from serde.relay.ir.dims import product
from serde.relay.ir.precision import limits, lowest
from serde.relay.lowering.conv import CONVOLUTIONS
from serde.relay.lowering.lengths import permuted

__all__ = ["Reductions"]

_REDUCTIONS: Final = {
    "Add": relay.sum, "Mul": relay.prod, "Max": relay.max, "Min": relay.min,
    "And": relay.all, "Or": relay.any, "argmax": relay.argmax, "argmin": relay.argmin,
}  # fmt: skip

_MAX_POOLS: Final = ("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")
_AVG_POOLS: Final = ("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")

_MOST_ELEMENTS: Final = 2**22
_MOST_TIMES: Final = 64
"""How many times the elements of its operands a reduction may combine that is no known one."""


class _Window(NamedTuple):
    """An axis of a buffer over which a window moves.

    Attributes:
        place: Which axis of the buffer.
        outer: What counts the windows.
        inner: What counts inside of one.
        stride: From one window to the next.
        dilation: From one element of a window to the next.
        start: The first element of the first window.
    """

    place: int
    outer: Axis
    inner: Axis
    stride: int
    dilation: int
    start: int

    @property
    def covers(self) -> Dim:
        """How many elements all windows together reach over."""
        last = (self.outer.extent - 1) * self.stride
        return last + (self.inner.extent - 1) * self.dilation + 1


class Reductions(Expressions):
    """What stages are; see :class:`Expressions`."""

    def stage(self, stage: Stage) -> Expr:
        """Return what a stage fills its buffer with.

        Raises:
            Unsupported: Relay cannot say it.
        """
        frame = Frame(stage.axes)
        if not stage.combine:
            if stage.condition is not None:
                raise Unsupported(f"block {stage.name} runs under a condition")
            spread = self.over(stage.value, frame)
        else:
            spread = self._reduce(stage, frame)
        order = list[Axis]()
        for node, length in zip(stage.indices, stage.shape, strict=True):
            digits = frame.digits(frame.index(node), length)
            if digits is None or any(each.reduced for each in digits):
                raise Unsupported("only a part of a buffer is filled")
            order += digits
        units = [each for each in spread.axes if each not in order]
        once = {each for each in stage.axes if each.extent != 1 and not each.reduced} <= set(order)
        if len(set(order)) != len(order) or not once or any(each.extent != 1 for each in units):
            raise Unsupported("elements of a buffer are filled more than once")
        axes = [each for each in order if each in spread.axes]
        expr = permuted(spread.expr, [spread.axes.index(each) for each in (*units, *axes)])
        if units:
            expr = relay.squeeze(expr, axis=list(range(len(units))))
        return self._shaped(Spread(expr, tuple(axes)), order, stage)

    def _shaped(self, spread: Spread, order: Sequence[Axis], stage: Stage) -> Expr:
        """Return a tensor over axes of the buffer as the buffer."""
        whole = self.broadcast(spread, order) if order else spread.expr
        whole = self.reshape(whole, stage.shape)
        if self.ctx.dtype(whole) != stage.dtype:
            raise Unsupported(f"a buffer of {stage.dtype} filled with {self.ctx.dtype(whole)}")
        return whole

    def _reduce(self, stage: Stage, frame: Frame) -> Spread:
        """Return a reduction, with what it begins with."""
        indices = (frame.index(i) for load in loads_of(stage.value) for i in load.indices)
        inner = frame.split(indices)
        found = None
        if stage.condition is None:
            found = self._product(stage, inner) or self._pool(stage, inner)
        if found is not None:
            found = self.merge(found, inner, frame)
        else:
            found = self._combine(stage, frame)
        begun = self._begun(stage, frame)
        if begun is None:
            return found
        exprs, axes = self.align([begun, found], frame)
        return Spread(fold(FUNCTIONS[stage.combine](*exprs)), axes)

    def _begun(self, stage: Stage, frame: Frame) -> Spread | None:
        """Return what a reduction begins with, None where that changes nothing."""
        if stage.init is None:
            return self.load(Load(stage.dtype, stage.buffer, stage.indices), frame)
        if stage.combine.startswith("arg"):
            return None
        if isinstance(stage.init, Number) and _is_neutral(stage.combine, stage.init):
            return None
        return self.compute(stage.init, frame)

    def _combine(self, stage: Stage, frame: Frame) -> Spread:
        """Return what is computed everywhere, and then combined."""
        value = stage.value
        if stage.condition is not None:
            neutral = Number(value.dtype, _neutral(stage.combine, value.dtype))
            value = Apply(value.dtype, "where", (stage.condition, value, neutral))
        spread = self.over(value, frame)
        reduced = [each for each in frame.axes if each.reduced]
        axes = [each for each in frame.axes if each in spread.axes or each.reduced]
        self._check_size(stage, axes)
        expr = self.broadcast(spread, axes)
        places = [axes.index(each) for each in reduced]
        kept = tuple(each for each in axes if not each.reduced)
        if not stage.combine.startswith("arg"):
            return Spread(fold(_REDUCTIONS[stage.combine](expr, axis=places)), kept)
        position = None if stage.position is None else frame.index(stage.position)
        length = product(each.extent for each in reduced)
        order = None if position is None else frame.digits(position, length)
        if order is None:
            raise Unsupported("a place that does not count what is compared")
        expr = permuted(expr, [axes.index(each) for each in (*kept, *order)])
        expr = self.reshape(expr, [*(each.extent for each in kept), length])
        made = _REDUCTIONS[stage.combine](expr, axis=len(kept), select_last_index=stage.last)
        return Spread(fold(relay.cast(made, stage.dtype)), kept)

    def _check_size(self, stage: Stage, axes: Sequence[Axis]) -> None:
        """Refuse what would take far more memory than its operands."""
        count = product(each.extent for each in axes if isinstance(each.extent, int))
        shapes = [self.buffers[x.buffer].shape for x in loads_of(stage.value)]
        sizes = [product(dim for dim in shape if isinstance(dim, int)) for shape in shapes]
        largest = max((each for each in sizes if isinstance(each, int)), default=1)
        if isinstance(count, int) and count > max(_MOST_ELEMENTS, _MOST_TIMES * largest):
            raise Unsupported(f"a reduction over {count} elements that is no known operator")

    # Products.

    def _product(self, stage: Stage, frame: Frame) -> Spread | None:
        """Return a sum of products as a convolution or a product of matrices, None if it is none."""
        factors = _factors(stage.value) if stage.combine == "Add" else []
        if len(factors) < 2:
            return None
        if len(factors) == 2:
            for data, weight in (factors, factors[::-1]):
                found = self._convolution(data, weight, frame)
                if found is not None:
                    return found
        if not is_float(stage.dtype) and len(factors) > 2:
            return None
        spreads = [self.compute(each, frame) for each in factors]
        return self._contract(spreads, frame)

    def _contract(self, spreads: Sequence[Spread], frame: Frame) -> Spread | None:
        """Return a sum of products as a product of stacks of matrices."""
        sides = list[Spread]()
        for each in sorted(spreads, key=lambda x: -len(x.axes)):
            place = next(
                (i for i, side in enumerate(sides) if set(each.axes) <= set(side.axes)), None
            )
            if place is None:
                sides.append(each)
            else:
                exprs, axes = self.align([sides[place], each], frame)
                sides[place] = Spread(fold(relay.multiply(*exprs)), axes)
        if len(sides) != 2:
            return None
        one, other = sides
        shared = [each for each in frame.axes if each in one.axes and each in other.axes]
        summed = [each for each in shared if each.reduced]
        reduced = {each for each in frame.axes if each.reduced}
        if not summed or reduced - set(summed):
            return None
        batch = [each for each in shared if not each.reduced]
        rows = [each for each in one.axes if each not in shared]
        columns = [each for each in other.axes if each not in shared]
        stacks = [[each] for each in batch]
        left = self._stacked(one, [*stacks, rows, summed], [])
        right = self._stacked(other, [*stacks, summed, columns], [])
        made = call("serde.matmul", left, right)
        return self._ordered(made, [*batch, *rows, *columns], frame)

    def _ordered(self, expr: Expr, axes: Sequence[Axis], frame: Frame) -> Spread:
        """Return a tensor over axes in any order, some of them merged, as one over a frame."""
        whole = self.reshape(expr, [each.extent for each in axes])
        kept = tuple(each for each in frame.axes if each in axes)
        return Spread(fold(permuted(whole, [axes.index(each) for each in kept])), kept)

    # Windows.

    def _windows(self, load: Load, frame: Frame, fixed: Sequence[Axis] | None) -> list[_Window]:
        """Return the windows that move over a buffer.

        Args:
            load: What is read of the buffer.
            frame: The frame.
            fixed: The axes of the weight, None where there is none.
        """
        found = []
        for place, node in enumerate(load.indices):
            index = frame.affine(frame.index(node))
            if index is None or len(index.factors) != 2:
                continue
            (one, other) = sorted(index.factors, key=lambda axis: axis.reduced)
            steps = index.factors[one], index.factors[other]
            fits = fixed is None or (one not in fixed and other in fixed)
            start = index.start
            if other.reduced and not one.reduced and fits and min(steps) > 0:
                if isinstance(start, int) and isinstance(other.extent, int) and start >= 0:
                    found.append(_Window(place, one, other, *steps, start))
        return found

    def _moved(
        self, load: Load, windows: Sequence[_Window], frame: Frame, fill: AnyValue
    ) -> tuple[Spread, list[Axis], list[int]] | None:
        """Return the data that windows move over, its axes of windows, and how it is padded.

        Args:
            load: What is read.
            windows: The windows.
            frame: The frame.
            fill: What the data may be padded with; such padding is told and not done.
        """
        buffer = self.buffers.get(load.buffer)
        if buffer is None:
            return None
        buffer, widths = _unpadded(buffer, windows, fill)
        indices = [frame.index(each) for each in load.indices]
        axes = [e for e in frame.axes if not any(e in (w.outer, w.inner) for w in windows)]
        moving = []
        for window in windows:
            padded = sum(widths[window.place])
            length = buffer.shape[window.place]
            extent = length if _reaches(window, length + padded) else window.covers - padded
            axis = Axis(f"{window.outer.name}_moved", extent)
            indices[window.place] = symbol(axis.name) + window.start
            moving.append(axis)
        inside = Frame([*axes, *moving], guarded=frame.guarded)
        spread = self.view(buffer, indices, inside)
        if spread is None or not set(moving) <= set(spread.axes):
            return None
        sides = [widths[window.place] for window in windows]
        return spread, moving, [each[0] for each in sides] + [each[1] for each in sides]

    def _convolution(self, data: Node, weight: Node, frame: Frame) -> Spread | None:
        """Return a convolution over one to three axes, None if it is none."""
        load = data.args[0] if isinstance(data, Apply) and data.op == "cast" else data
        if not isinstance(load, Load):
            return None
        kernel = self.compute(weight, frame)
        windows = self._windows(load, frame, kernel.axes)
        if not 0 < len(windows) <= len(CONVOLUTIONS):
            return None
        moved = self._moved(load, windows, frame, 0)
        if moved is None:
            return None
        image, moving, padding = moved
        others = [each for each in image.axes if each not in moving]
        shared = [each for each in others if each in kernel.axes]
        groups = [each for each in shared if not each.reduced]
        channels = [each for each in shared if each.reduced]
        batch = [each for each in others if each not in shared]
        inner = [window.inner for window in windows]
        made = [each for each in kernel.axes if each not in shared and each not in inner]
        used = {*channels, *inner}
        if any(each.reduced and each not in used for each in (*frame.axes, *batch, *made)):
            return None
        if set(inner) - set(kernel.axes):
            return None
        expr = self._stacked(image, [batch, [*groups, *channels]], moving)
        if load is not data:
            expr = relay.cast(expr, data.dtype)
        weights = self._stacked(kernel, [[*groups, *made], channels], inner)
        expr = call(
            CONVOLUTIONS[len(windows) - 1], expr, weights,
            strides=tuple(each.stride for each in windows),
            dilation=tuple(each.dilation for each in windows),
            padding=tuple(padding),
            groups=_number(product(each.extent for each in groups)),
        )  # fmt: skip
        outer = [each.outer for each in windows]
        return self._ordered(expr, [*batch, *groups, *made, *outer], frame)

    def _stacked(
        self, spread: Spread, groups: Sequence[Sequence[Axis]], rest: Sequence[Axis]
    ) -> Expr:
        """Return a tensor with one axis for each group, and the rest as they are."""
        whole = [*(axis for group in groups for axis in group), *rest]
        dims = [product(axis.extent for axis in group) for group in groups]
        expr = permuted(spread.expr, [spread.axes.index(each) for each in whole])
        return self.reshape(expr, [*dims, *(each.extent for each in rest)])

    def _pool(self, stage: Stage, frame: Frame) -> Spread | None:
        """Return the largest values or the sums of windows, None if it is something else."""
        load = stage.value
        is_sum = stage.combine == "Add" and is_float(stage.dtype)
        if not isinstance(load, Load) or not (is_sum or stage.combine == "Max"):
            return None
        windows = self._windows(load, frame, None)
        inner = [window.inner for window in windows]
        if not 0 < len(windows) <= len(_MAX_POOLS) or inner != [e for e in frame.axes if e.reduced]:
            return None
        moved = self._moved(load, windows, frame, 0 if is_sum else lowest(stage.dtype))
        if moved is None:
            return None
        image, moving, padding = moved
        others = [each for each in image.axes if each not in moving]
        if any(each.reduced for each in others):
            return None
        expr = self._stacked(image, [others[:1], others[1:]], moving)
        size = tuple(_number(each.extent) for each in inner)
        more = {"count_include_pad": True} if is_sum else {}
        expr = call(
            (_AVG_POOLS if is_sum else _MAX_POOLS)[len(windows) - 1], expr,
            pool_size=size,
            strides=tuple(each.stride for each in windows),
            dilation=tuple(each.dilation for each in windows),
            padding=tuple(padding),
            **more,
        )  # fmt: skip
        if is_sum:
            expr = relay.multiply(expr, self.ctx.const(_number(product(size)), stage.dtype))
        return self._ordered(expr, [*others, *(each.outer for each in windows)], frame)


def _factors(value: Node) -> list[Node]:
    """Return the factors of a product."""
    if isinstance(value, Apply) and value.op == "Mul":
        return [factor for each in value.args for factor in _factors(each)]
    return [value]


def _neutral(combine: str, dtype: str) -> AnyValue:
    """Return the number with which combining changes nothing."""
    if combine in ("Max", "Min"):
        info = limits(dtype)
        bound = info.min if combine == "Max" else info.max
        return float(bound) if is_float(dtype) else int(bound)
    if combine not in ("Add", "Mul", "And", "Or"):
        raise Unsupported("only some values are compared")
    return int(combine in ("Mul", "And"))


def _is_neutral(combine: str, init: Number) -> bool:
    """Whether combining with a number changes nothing."""
    infinite = {"Max": -np.inf, "Min": np.inf}.get(combine)
    return init.value in (_neutral(combine, init.dtype), infinite)


def _reaches(window: _Window, length: Dim) -> bool:
    """Whether as many windows as there are fit into a length, from its first element on."""
    room = length - (window.inner.extent - 1) * window.dilation - 1
    return window.start == 0 and room // window.stride + 1 == window.outer.extent


def _unpadded(
    buffer: Buffer, windows: Sequence[_Window], fill: AnyValue
) -> tuple[Buffer, list[tuple[int, int]]]:
    """Return a buffer without padding that the windows can do themselves, and that."""
    none = [(0, 0)] * len(buffer.shape)
    expr = buffer.expr
    if not isinstance(expr, Call) or expr.op != get("nn.pad"):
        return buffer, none
    attrs = get("nn.pad").bind(expr.attrs)
    data, value = expr.args
    if attrs["pad_mode"] != "constant" or not isinstance(value, Constant) or value.data != fill:
        return buffer, none
    widths = [tuple(each) for each in attrs["pad_width"]]
    by_place = {window.place: window for window in windows}
    for place, sides in enumerate(widths):
        window = by_place.get(place)
        if any(sides) and (window is None or not _reaches(window, buffer.shape[place])):
            return buffer, none
    shape = [dim - sum(sides) for dim, sides in zip(buffer.shape, widths, strict=True)]
    return Buffer(data, tuple(shape)), widths


def _number(dim: Dim) -> int:
    if not isinstance(dim, int):
        raise Unsupported("a window or a group of a length that is not fixed")
    return dim

"""Reductions: products of matrices, convolutions, pooling, and what is computed and combined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any as AnyValue, Final, NamedTuple

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.tir.expressions import FUNCTIONS, Expressions
from serde.relax.tir.indexing import Frame
from serde.relax.tir.loads import Spread, fold
from serde.relax.tir.stages import Axis, Node, Stage, post_order
from serde.relay.ir import Call, Expr, call, get, is_float, symbol
from serde.relay.ir.dims import product
from serde.relay.ir.precision import limits
from serde.relay.lowering.lengths import permuted
from serde.relay.tvm.passes.fold_explicit_padding import absorb_padding

__all__ = ["Reductions"]

_REDUCTIONS: Final[Mapping[str, Callable[..., Expr]]] = {
    "Add": relay.sum, "Mul": relay.prod, "Max": relay.max, "Min": relay.min,
    "And": relay.all, "Or": relay.any, "argmax": relay.argmax, "argmin": relay.argmin,
}  # fmt: skip

_MOST_WINDOWS: Final = 3
"""Axes over which convolutions and pooling move."""

_MOST_ELEMENTS: Final = 2**22
_MOST_TIMES: Final = 64
"""How many times the elements of its operands a reduction may combine that is no known one."""


class _Window(NamedTuple):
    """What moves over an axis of a buffer: what counts the windows, and what is inside of one."""

    place: int
    outer: Axis
    inner: Axis
    stride: int
    dilation: int
    start: int


class Reductions(Expressions):
    """What stages are; see :class:`Expressions`."""

    def stage(self, stage: Stage) -> Expr:
        """Return what a stage fills its buffer with.

        Raises:
            Unsupported: Relay cannot say it.
        """
        frame = Frame(stage.axes).split([], stage.indices)
        if not stage.combine and stage.condition is not None:
            raise Unsupported(f"block {stage.name} runs under a condition")
        spread = self._reduce(stage, frame) if stage.combine else self.over(stage.value, frame)
        order = list[Axis]()
        for node, length in zip(stage.indices, stage.shape, strict=True):
            digits = frame.digits(frame.index(node), length)
            if digits is None or any(each.reduced for each in digits):
                raise Unsupported("only a part of a buffer is filled")
            order += digits
        units = [each for each in spread.axes if each not in order]
        once = {each for each in frame.axes if each.extent != 1 and not each.reduced} <= set(order)
        if len(set(order)) != len(order) or not once:
            raise Unsupported("elements of a buffer are filled more than once")
        axes = [each for each in order if each in spread.axes]
        expr = permuted(spread.expr, [spread.axes.index(each) for each in (*units, *axes)])
        expr = self.reshape(expr, [each.extent for each in axes])
        expr = self.reshape(self.broadcast(Spread(expr, tuple(axes)), order), stage.shape)
        if self.ctx.dtype(expr) != stage.dtype:
            raise Unsupported(f"a buffer of {stage.dtype} filled with {self.ctx.dtype(expr)}")
        return expr

    def _reduce(self, stage: Stage, frame: Frame) -> Spread:
        """Return a reduction, with what it begins with."""
        inner, found = frame.split([stage.value]), None
        if stage.condition is None:
            found = self._product(stage, inner) or self._pool(stage, inner)
        found = self.merge(found, inner, frame) if found else self._combine(stage, frame)
        if stage.init is None:
            load = Node("load", stage.dtype, stage.indices, stage.buffer)
            begun = self.load(load, frame)
        elif stage.position or _is_neutral(stage.combine, stage.init):
            return found
        else:
            begun = self.compute(stage.init, frame)
        exprs, axes = self.align([begun, found], frame)
        return Spread(fold(FUNCTIONS[stage.combine](*exprs)), axes)

    def _combine(self, stage: Stage, frame: Frame) -> Spread:
        """Return what is computed everywhere, and then combined."""
        value = stage.value
        if stage.condition is not None:
            neutral = Node("number", value.dtype, held=_neutral(stage.combine, value.dtype))
            value = Node("where", value.dtype, (stage.condition, value, neutral))
        spread = self.over(value, frame)
        reduced = [each for each in frame.axes if each.reduced]
        axes = [each for each in frame.axes if each in spread.axes or each.reduced]
        self._check_size(stage, axes)
        kept = tuple(each for each in axes if not each.reduced)
        expr = self.broadcast(spread, axes)
        if stage.position is None or not stage.combine.startswith("arg"):
            places = [axes.index(each) for each in reduced]
            moved = _order_of(expr)
            left = [each for place, each in enumerate(moved) if place not in places]
            if isinstance(expr, Call) and moved and left == sorted(left):
                expr, places = expr.args[0], [moved[place] for place in places]
            return Spread(fold(_REDUCTIONS[stage.combine](expr, axis=places)), kept)
        length = product(each.extent for each in reduced)
        order = frame.digits(frame.index(stage.position), length)
        if order is None:
            raise Unsupported("a place that does not count what is compared")
        expr = permuted(expr, [axes.index(each) for each in (*kept, *order)])
        expr = self.reshape(expr, [*(each.extent for each in kept), length])
        more = {"select_last_index": stage.last}
        made = _REDUCTIONS[stage.combine](expr, axis=len(kept), **more)
        return Spread(fold(relay.cast(made, stage.dtype)), kept)

    def _check_size(self, stage: Stage, axes: Sequence[Axis]) -> None:
        """Refuse what would take far more memory than its operands."""
        shapes = [self.buffer(each).shape for each in post_order(stage.value, "load")]
        sizes = [prod(n for n in shape if isinstance(n, int)) for shape in shapes]
        most = max(_MOST_ELEMENTS, *(_MOST_TIMES * size for size in sizes), 0)
        count = prod(each.extent for each in axes if isinstance(each.extent, int))
        if count > most:
            raise Unsupported(f"a reduction over {count} elements that is no known operator")

    # Products.

    def _product(self, stage: Stage, frame: Frame) -> Spread | None:
        """Return a sum of products as a convolution or a product of matrices, None if none."""
        factors = _factors(stage.value) if stage.combine == "Add" else []
        for place, data in enumerate(factors[: len(factors) if len(factors) > 1 else 0]):
            rest = [*factors[:place], *factors[place + 1 :]]
            weight = reduce(lambda a, b: Node("Mul", stage.dtype, (a, b)), rest)
            found = self._multiplied(data, self.compute(weight, frame), frame)
            if found is not None:
                return found
        return None

    def _multiplied(self, data: Node, kernel: Spread, frame: Frame) -> Spread | None:
        """Return data times a weight, summed, None if that is no known operator."""
        load = data.args[0] if data.op == "cast" else data
        windows = self._windows(load, frame, kernel.axes) if load.op == "load" else []
        moved = self._moved(load, windows, frame) if windows else (self.compute(data, frame), [])
        if moved is None:
            return None
        image, moving = moved
        inner, outer = [x.inner for x in windows], [x.outer for x in windows]
        others = [each for each in image.axes if each not in moving]
        shared = [each for each in others if each in kernel.axes]
        groups = [each for each in shared if not each.reduced]
        channels = [each for each in shared if each.reduced]
        batch = [each for each in others if each not in shared]
        made = [each for each in kernel.axes if each not in (*shared, *inner)]
        summed = {each for each in frame.axes if each.reduced}
        if summed != {*channels, *inner} or not (windows or batch or made):
            return None
        if not windows:
            stacks = [[each] for each in groups]
            left = self._stacked(image, [*stacks, batch, channels])
            right = self._stacked(kernel, [*stacks, channels, made])
            return self._ordered(call("serde.matmul", left, right), [*groups, *batch, *made], frame)
        expr = self._stacked(image, [batch, [*groups, *channels]], moving)
        expr = expr if load is data else relay.cast(expr, data.dtype)
        weight = self._stacked(kernel, [[*groups, *made], channels], inner)
        count = product(each.extent for each in groups)
        expr = _slide(f"nn.conv{len(windows)}d", [expr, weight], windows, groups=count)
        return self._ordered(expr, [*batch, *groups, *made, *outer], frame)

    def _stacked(
        self, spread: Spread, groups: Sequence[Sequence[Axis]], rest: Sequence[Axis] = ()
    ) -> Expr:
        """Return a tensor with one axis for each group, and the rest as they are."""
        whole = [*(axis for group in groups for axis in group), *rest]
        dims = [product(axis.extent for axis in group) for group in groups]
        expr = permuted(spread.expr, [spread.axes.index(each) for each in whole])
        return self.reshape(expr, [*dims, *(each.extent for each in rest)])

    def _ordered(self, expr: Expr, axes: Sequence[Axis], frame: Frame) -> Spread:
        """Return a tensor over axes in any order, some of them merged, as one over a frame."""
        whole = self.reshape(expr, [each.extent for each in axes])
        kept = tuple(each for each in frame.axes if each in axes)
        return Spread(fold(permuted(whole, [axes.index(each) for each in kept])), kept)

    # Windows.

    def _windows(self, load: Node, frame: Frame, fixed: Sequence[Axis] | None) -> list[_Window]:
        """Return the windows that move over a buffer, of which a weight has the inner axes only."""
        found = list[_Window]()
        for place, node in enumerate(load.args):
            start, factors = frame.affine(frame.index(node)) or (0, {})
            outer, inner, *more = *sorted(factors, key=lambda axis: axis.reduced), None, None
            if (
                outer is None
                or inner is None
                or len(more) > 2
                or not inner.reduced
                or outer.reduced
            ):
                continue
            numbers = factors[outer], factors[inner], start
            fits = fixed is None or (outer not in fixed and inner in fixed)
            known = all(isinstance(each, int) and each >= 0 for each in (*numbers, inner.extent))
            if known and fits:
                found.append(_Window(place, outer, inner, *numbers))
        return found if len(found) <= _MOST_WINDOWS else []

    def _moved(
        self, load: Node, windows: Sequence[_Window], frame: Frame
    ) -> tuple[Spread, list[Axis]] | None:
        """Return the data that windows move over, and its axes of windows."""
        buffer = self.buffer(load)
        indices = [frame.index(each) for each in load.args]
        gone = {each for window in windows for each in (window.outer, window.inner)}
        moving = list[Axis]()
        for place, outer, inner, stride, dilation, start in windows:
            length, reach = buffer.shape[place], (inner.extent - 1) * dilation + 1
            covered = (outer.extent - 1) * stride + reach
            fits = start == 0 and (length - reach) // stride + 1 == outer.extent
            axis = Axis(f"{outer.name}_moved", length if fits else covered)
            indices[place] = symbol(axis.name) + start
            moving.append(axis)
        axes = [*(each for each in frame.axes if each not in gone), *moving]
        spread = self.view(buffer, indices, Frame(axes, guarded=frame.guarded))
        return (spread, moving) if spread and set(moving) <= set(spread.axes) else None

    def _pool(self, stage: Stage, frame: Frame) -> Spread | None:
        """Return the largest values or the sums of windows, None if it is something else."""
        is_sum, load = stage.combine == "Add", stage.value
        if load.op != "load" or not (stage.combine == "Max" or (is_sum and is_float(stage.dtype))):
            return None
        windows = self._windows(load, frame, None)
        inner = [window.inner for window in windows]
        moved = self._moved(load, windows, frame) if windows else None
        if moved is None or inner != [each for each in frame.axes if each.reduced]:
            return None
        image, moving = moved
        others = [each for each in image.axes if each not in moving]
        expr: Expr = self._stacked(image, [others[:1], others[1:]], moving)
        size = tuple(each.extent for each in inner)
        name = f"nn.{'avg' if is_sum else 'max'}_pool{len(windows)}d"
        more = {"count_include_pad": True} if is_sum else {}
        expr = _slide(name, [expr], windows, pool_size=size, **more)
        if is_sum:
            expr = relay.multiply(expr, self.ctx.const(product(size), stage.dtype))
        return self._ordered(expr, [*others, *(each.outer for each in windows)], frame)


def _slide(
    op: str, args: Sequence[Expr], windows: Sequence[_Window], **attributes: AnyValue
) -> Expr:
    """Return an operator that moves windows, with the padding of its data."""
    strides = tuple(each.stride for each in windows)
    dilation = tuple(each.dilation for each in windows)
    attributes |= {"strides": strides, "dilation": dilation, "padding": (0, 0) * len(windows)}
    return absorb_padding(call(op, *args, **attributes))


def _order_of(expr: Expr) -> list[int]:
    """Return the order of axes of what only moves axes, nothing for anything else."""
    moves = isinstance(expr, Call) and expr.op == get("transpose")
    return list(expr.attrs["axes"]) if isinstance(expr, Call) and moves else []


def _factors(value: Node) -> list[Node]:
    """Return the factors of a product."""
    if value.op == "Mul":
        return [factor for each in value.args for factor in _factors(each)]
    return [value]


def _neutral(combine: str, dtype: str) -> AnyValue:
    """Return the number with which combining changes nothing."""
    if combine in ("Max", "Min"):
        info = limits(dtype)
        bound = info.min if combine == "Max" else info.max
        return float(bound) if is_float(dtype) else int(bound)
    if combine not in FUNCTIONS:
        raise Unsupported("only some values are compared")
    return int(combine in ("Mul", "And"))


def _is_neutral(combine: str, init: Node) -> bool:
    """Whether combining with a number changes nothing."""
    infinite = {"Max": -np.inf, "Min": np.inf}.get(combine)
    return init.op == "number" and init.held in (_neutral(combine, init.dtype), infinite)

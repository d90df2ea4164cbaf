"""Scalar expressions over axes as Relay: element by element, or on parts that are put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

import serde.relay as relay
from serde.core import allocation, budget
from serde.core.weights import Array, numpy_dtype
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext
from serde.relax.tir.indexing import Frame, loads_of
from serde.relax.tir.loads import Loads, Spread, fold
from serde.relax.tir.stages import Apply, Axis, Length, Load, Node, Number, Position, post_order
from serde.relay.ir import Any, Constant, Dim, Expr, Tuple, call, is_float
from serde.walk.expansion.functions import arctan2

__all__ = ["Expressions"]

_SAME: Final = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log2",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
"""Functions that TIR and Relay call the same."""

FUNCTIONS: Final[Mapping[str, Callable[..., Expr]]] = {
    **{name: getattr(relay, name) for name in _SAME},
    "Add": relay.add, "Sub": relay.subtract, "Mul": relay.multiply,
    "FloorDiv": relay.floor_divide, "FloorMod": relay.floor_mod,
    "Min": relay.minimum, "Max": relay.maximum, "pow": relay.power,
    "EQ": relay.equal, "NE": relay.not_equal, "LT": relay.less, "LE": relay.less_equal,
    "GT": relay.greater, "GE": relay.greater_equal,
    "And": relay.logical_and, "Or": relay.logical_or, "Not": relay.logical_not,
    "BitwiseAnd": relay.bitwise_and, "bitwise_and": relay.bitwise_and,
    "BitwiseOr": relay.bitwise_or, "bitwise_or": relay.bitwise_or,
    "BitwiseXor": relay.bitwise_xor, "bitwise_xor": relay.bitwise_xor,
    "BitwiseNot": relay.bitwise_not, "bitwise_not": relay.bitwise_not,
    "LShift": relay.left_shift, "shift_left": relay.left_shift,
    "RShift": relay.right_shift, "shift_right": relay.right_shift,
    "where": relay.where, "fabs": relay.abs, "abs": relay.abs,
    "nearbyint": partial(call, "serde.round_even"), "round": partial(call, "serde.round_even"),
    "log1p": partial(call, "serde.log1p"), "atan2": arctan2,
}  # fmt: skip
"""What functions of TIR are in Relay."""


class _Run(NamedTuple):
    """Values of an axis in equal distances."""

    start: Dim
    step: int
    count: Dim


class Expressions(Loads):
    """What expressions are; see :class:`Loads`."""

    def __init__(self, ctx: ImportContext) -> None:
        super().__init__(ctx)
        self._made: dict[tuple[Frame, Node], Spread] = {}

    def compute(self, node: Node, frame: Frame) -> Spread:
        """Return an expression for all positions of a frame."""
        key = frame, node
        if key not in self._made:
            budget().draw("elements", 100, "the expressions of functions of TIR")
            self._made[key] = self._compute(node, frame)
        return self._made[key]

    def _compute(self, node: Node, frame: Frame) -> Spread:
        match node:
            case Number(dtype, value):
                return Spread(self.ctx.const(value, dtype), ())
            case Length(dtype, dim):
                return self._integer(dim, frame, dtype)
            case Position(dtype):
                return self._integer(frame.index(node), frame, dtype)
            case Load():
                return self.load(node, frame)
            case Apply(dtype, "where", (condition, one, other)):
                return self._choose(dtype, condition, one, other, frame)
            case Apply(dtype, op, args):
                spreads = [self.compute(each, frame) for each in args]
                exprs, axes = self.align(spreads, frame)
                return Spread(self._apply(dtype, op, exprs), axes)
        raise Unsupported(f"an expression of the kind {type(node).__name__}")

    def _apply(self, dtype: str, op: str, args: Sequence[Expr]) -> Expr:
        given = self.ctx.dtype(args[0])
        if op == "cast":
            made = args[0] if given == dtype else relay.cast(args[0], dtype)
        elif op == "reinterpret":
            made = relay.reinterpret(args[0], dtype)
        elif op in ("Div", "Mod"):
            exact = relay.divide if is_float(given) else relay.trunc_divide
            made = (exact if op == "Div" else relay.trunc_mod)(*args)
        elif op in FUNCTIONS:
            made = FUNCTIONS[op](*args)
        else:
            raise Unsupported(f"the function {op} of scalars")
        if self.ctx.dtype(made) != dtype:
            raise Unsupported(f"{op} of {given} that gives {dtype}")
        return fold(made)

    def _integer(self, dim: Dim, frame: Frame, dtype: str) -> Spread:
        """Return a sum of axes and lengths."""
        found = frame.affine(dim)
        if found is None:
            raise Unsupported("a variable that is no sum of others")
        parts = [Spread(self._scalar(found.start, dtype), ())]
        for axis, factor in found.factors.items():
            values: Expr
            if isinstance(axis.extent, int):
                counted = allocation.positions(axis.extent) * factor
                values = Constant(counted.astype(numpy_dtype(dtype)))
            else:
                last = self.ctx.lengths.tensor(axis.extent)
                values = relay.arange(_int64(0), last, _int64(1), dtype="int64")
                values = relay.cast(relay.multiply(values, _int64(factor)), dtype)
            parts.append(Spread(values, (axis,)))
        if found.start == 0 and len(parts) > 1:
            del parts[0]
        exprs, axes = self.align(parts, frame)
        total = exprs[0]
        for each in exprs[1:]:
            total = fold(relay.add(total, each))
        return Spread(total, axes)

    def _scalar(self, dim: Dim, dtype: str) -> Expr:
        return fold(relay.cast(self.ctx.lengths.tensor(dim), dtype))

    def most(self, node: Node, frame: Frame) -> int:
        """Return the largest value that an expression has.

        Raises:
            Unsupported: It is only known when the model runs.
        """
        found = self.compute(node, frame).expr
        if not isinstance(found, Constant) or not found.data.size:
            raise Unsupported("a loop as long as only data tell")
        return int(found.data.max())

    # Axes.

    def align(self, spreads: Sequence[Spread], frame: Frame) -> tuple[list[Expr], tuple[Axis, ...]]:
        """Return tensors that broadcast against each other, and the axes of what that gives."""
        used = {axis for each in spreads for axis in each.axes}
        axes = tuple(each for each in frame.axes if each in used)
        return [self._expand(each, axes) for each in spreads], axes

    def _expand(self, spread: Spread, axes: Sequence[Axis]) -> Expr:
        """Return a tensor with axes of one element where it has none, but those in front."""
        if not spread.axes:
            return spread.expr
        expr = spread.expr
        first = axes.index(spread.axes[0])
        for place, axis in enumerate(axes[first:]):
            if axis not in spread.axes:
                expr = fold(relay.expand_dims(expr, place))
        return expr

    def broadcast(self, spread: Spread, axes: Sequence[Axis]) -> Expr:
        """Return a tensor that has all of some axes."""
        if len(spread.axes) == len(axes):
            return spread.expr
        dims = [each.extent for each in axes]
        return fold(self.ctx.broadcast_to(self._expand(spread, axes), dims))

    def merge(self, spread: Spread, inner: Frame, frame: Frame) -> Spread:
        """Return what was computed over digits of axes over these axes themselves."""
        axes, kept = list[Axis](), list[Axis]()
        for outer in frame.axes:
            digits = inner.parts.get(outer, [outer])
            if any(each in spread.axes for each in digits):
                axes += digits
                kept.append(outer)
        whole = self.broadcast(spread, axes)
        if len(axes) != len(kept):
            whole = self.reshape(whole, [each.extent for each in kept])
        return Spread(whole, tuple(kept))

    def over(self, node: Node, frame: Frame) -> Spread:
        """Return an expression, computed over digits of axes where its loads divide them."""
        inner = frame.split(frame.index(i) for load in loads_of(node) for i in load.indices)
        return self.merge(self.compute(node, inner), inner, frame)

    # Conditions.

    def _choose(self, dtype: str, condition: Node, one: Node, other: Node, frame: Frame) -> Spread:
        """Return one of two values, each computed where it is wanted if that is a part."""
        runs = self._runs(condition, frame)
        if runs is not None:
            if any(run.count == 0 for run in runs.values()):
                return self.compute(other, frame)
            runs = {axis: run for axis, run in runs.items() if run != (0, 1, axis.extent)}
            if not runs:
                return self.compute(one, frame)
            made = self._pad(one, other, runs, frame) or self._join(one, other, runs, frame)
            if made is not None:
                return made
        loose = frame.loosened()
        spreads = [self.compute(each, loose) for each in (condition, one, other)]
        exprs, axes = self.align(spreads, frame)
        return Spread(self._apply(dtype, "where", exprs), axes)

    def _runs(self, condition: Node, frame: Frame) -> dict[Axis, _Run] | None:
        """Return which values of axes, each by itself, make a condition true."""
        parts, pending = list[Node](), [condition]
        while pending:
            each = pending.pop()
            if isinstance(each, Apply) and each.op == "And":
                pending += each.args
            else:
                parts.append(each)
        masks: dict[Axis, Array] = {}
        runs: dict[Axis, _Run] = {}
        for part in parts:
            nodes = list(post_order(part))
            if any(isinstance(each, Load) for each in nodes):
                return None
            places = [frame.index(each) for each in nodes if isinstance(each, Position)]
            used = {axis for each in places for axis in frame.axes_of(each)}
            if len(used) != 1:
                return None
            (axis,) = used
            if isinstance(axis.extent, int):
                mask = self.compute(part, frame)
                if not isinstance(mask.expr, Constant):
                    return None
                held = np.broadcast_to(mask.expr.data, (axis.extent,))
                masks[axis] = masks[axis] & held if axis in masks else held
            else:
                found = _interval(part, axis, frame)
                if found is None or (axis in runs and runs[axis] != found):
                    found = None if found is None else _intersect(runs[axis], found, frame)
                if found is None:
                    return None
                runs[axis] = found
        for axis, mask_ in masks.items():
            run = _run_of(mask_)
            if run is None:
                return None
            runs[axis] = run
        return runs

    def _pad(
        self, one: Node, other: Node, runs: Mapping[Axis, _Run], frame: Frame
    ) -> Spread | None:
        """Return a part of a tensor between one and the same number."""
        if any(isinstance(each, (Load, Position)) for each in post_order(other)):
            return None
        fill = self.compute(other, frame).expr
        steps, widths = dict[Axis, int](), dict[Axis, tuple[int, int]]()
        inner, parts = frame, dict[Axis, Axis]()
        for axis, run in runs.items():
            behind = axis.extent - run.start - (run.count - 1) * run.step - 1
            if not isinstance(run.start, int) or not isinstance(behind, int):
                return None
            if run.step > 1:
                steps[axis] = run.step
            widths[axis] = run.start, behind
            inner, parts[axis] = inner.restricted(axis, run.start, run.step, run.count)
        if steps and not isinstance(fill, Constant):
            return None
        found = self.over(one, inner)
        back = {part: axis for axis, part in parts.items()}
        axes = [each for each in inner.axes if each in found.axes or each in back]
        expr = self.broadcast(found, axes)
        kept = tuple(back.get(each, each) for each in axes)
        if steps and isinstance(fill, Constant):
            strides = [steps.get(each, 1) for each in kept]
            expr = relay.nn.dilate(expr, strides, dilation_value=float(fill.data))
        if any(any(each) for each in widths.values()):
            expr = relay.nn.pad(expr, [widths.get(each, (0, 0)) for each in kept], fill)
        return Spread(fold(expr), kept)

    def _join(
        self, one: Node, other: Node, runs: Mapping[Axis, _Run], frame: Frame
    ) -> Spread | None:
        """Return two parts behind each other."""
        if len(runs) != 1:
            return None
        ((axis, run),) = runs.items()
        end = run.start + run.count
        if run.step != 1 or (run.start != 0 and end != axis.extent):
            return None
        if run.start == 0:
            sides = [(one, run.start, run.count), (other, end, axis.extent - run.count)]
        else:
            sides = [(other, 0, run.start), (one, run.start, run.count)]
        spreads, whole = [], set[Axis]()
        for node, start, count in sides:
            inner, part = frame.restricted(axis, start, 1, count)
            found = self.over(node, inner)
            axes = [each for each in inner.axes if each in found.axes or each is part]
            kept = tuple(axis if each is part else each for each in axes)
            spreads.append((Spread(self.broadcast(found, axes), kept), part))
            whole.update(kept)
        ordered = [each for each in frame.axes if each in whole]
        exprs = []
        for spread, part in spreads:
            axes = [part if each is axis else each for each in ordered]
            own = tuple(part if each is axis else each for each in spread.axes)
            exprs.append(self.broadcast(Spread(spread.expr, own), axes))
        made = relay.concatenate(Tuple(exprs), axis=ordered.index(axis))
        return Spread(fold(made), tuple(ordered))


def _int64(value: int) -> Constant:
    return Constant(np.array(value, np.int64))


def _run_of(mask: Array) -> _Run | None:
    """Return where a mask is true, if that is in equal distances."""
    places = np.flatnonzero(mask)
    if places.size < 2:
        return _Run(int(places[0]) if places.size else 0, 1, int(places.size))
    step = int(places[1] - places[0])
    if (np.diff(places) != step).any():
        return None
    return _Run(int(places[0]), step, int(places.size))


def _interval(part: Node, axis: Axis, frame: Frame) -> _Run | None:
    """Return the values of an axis of any length for which a comparison is true."""
    if not isinstance(part, Apply) or len(part.args) != 2:
        return None
    one, other = (frame.index(each) for each in part.args)
    least = {
        "LT": other - one - 1, "LE": other - one, "GT": one - other - 1, "GE": one - other,
    }.get(part.op, Any())  # fmt: skip
    found = frame.affine(least)
    if found is None or found.factors.get(axis) not in (1, -1) or len(found.factors) != 1:
        return None
    begin: Dim
    if found.factors[axis] == 1:
        begin, end = found.start * -1, axis.extent
    else:
        begin, end = 0, found.start + 1
    if not frame.is_inside(begin, axis.extent + 1) or not frame.is_inside(end, axis.extent + 1):
        return None
    return _Run(begin, 1, end - begin)


def _intersect(one: _Run, other: _Run, frame: Frame) -> _Run | None:
    """Return where two intervals overlap, if it is known which begins and ends where."""
    begins, ends = (one.start, other.start), (one.start + one.count, other.start + other.count)
    begin = _extreme(begins, frame, largest=True)
    end = _extreme(ends, frame, largest=False)
    if begin is None or end is None or not frame.is_at_most(begin, end):
        return None
    return _Run(begin, 1, end - begin)


def _extreme(pair: Sequence[Dim], frame: Frame, *, largest: bool) -> Dim | None:
    one, other = pair
    if frame.is_at_most(other, one):
        return one if largest else other
    return (other if largest else one) if frame.is_at_most(one, other) else None

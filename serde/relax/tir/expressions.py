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
from serde.relax.tir.indexing import Frame
from serde.relax.tir.loads import Loads, Spread, fold
from serde.relax.tir.stages import Axis, Node, post_order
from serde.relay.ir import Any, Constant, Dim, Expr, Tuple, call, is_float
from serde.walk.expansion.functions import arctan2

__all__ = ["FUNCTIONS", "Expressions"]

_SAME: Final = (
    "abs acos acosh asin asinh atan atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil cos "
    "cosh erf exp floor isfinite isinf isnan log log10 log2 rsqrt sigmoid sin sinh sqrt tan tanh "
    "trunc where"
)
"""Functions that TIR and Relay call the same."""

FUNCTIONS: Final[Mapping[str, Callable[..., Expr]]] = {
    **{name: getattr(relay, name) for name in _SAME.split(" ")},
    "Add": relay.add, "Sub": relay.subtract, "Mul": relay.multiply,
    "FloorDiv": relay.floor_divide, "FloorMod": relay.floor_mod,
    "Min": relay.minimum, "Max": relay.maximum, "pow": relay.power,
    "EQ": relay.equal, "NE": relay.not_equal, "LT": relay.less, "LE": relay.less_equal,
    "GT": relay.greater, "GE": relay.greater_equal,
    "And": relay.logical_and, "Or": relay.logical_or, "Not": relay.logical_not,
    "BitwiseAnd": relay.bitwise_and, "BitwiseOr": relay.bitwise_or,
    "BitwiseXor": relay.bitwise_xor, "BitwiseNot": relay.bitwise_not,
    "LShift": relay.left_shift, "shift_left": relay.left_shift,
    "RShift": relay.right_shift, "shift_right": relay.right_shift,
    "fabs": relay.abs, "atan2": arctan2, "log1p": partial(call, "serde.log1p"),
    "nearbyint": partial(call, "serde.round_even"), "round": partial(call, "serde.round_even"),
}  # fmt: skip
"""What functions of TIR are in Relay."""


class _Run(NamedTuple):
    """Values of an axis in equal distances."""

    start: Dim
    step: int
    size: Dim


class Expressions(Loads):
    """What expressions are; see :class:`Loads`."""

    def __init__(self, ctx: ImportContext) -> None:
        super().__init__(ctx)
        self._made: dict[tuple[Frame, Node], Spread] = {}

    def over(self, node: Node, frame: Frame) -> Spread:
        """Return an expression, computed over digits of axes where its loads divide them."""
        inner = frame.split([node])
        return self.merge(self.compute(node, inner), inner, frame)

    def compute(self, node: Node, frame: Frame) -> Spread:
        """Return an expression for all positions of a frame."""
        key = frame, node
        if key not in self._made:
            budget().draw("elements", 100, "the expressions of functions of TIR")
            self._made[key] = self._compute(node, frame)
        return self._made[key]

    def _compute(self, node: Node, frame: Frame) -> Spread:
        if node.op == "number":
            return Spread(self.ctx.const(node.held, node.dtype), ())
        if node.op in ("axis", "length"):
            return self._integer(frame.index(node), frame, node.dtype)
        if node.op == "load":
            return self.load(node, frame)
        made = self._part(node, frame) if node.op == "where" else None
        if made is not None:
            return made
        inner = frame.loosened() if node.op in ("where", "And", "Or") else frame
        exprs, axes = self.align([self.compute(each, inner) for each in node.args], frame)
        return Spread(self._apply(node, exprs), axes)

    def _apply(self, node: Node, args: Sequence[Expr]) -> Expr:
        given, op = self.ctx.dtype(args[0]), node.op
        if op == "cast":
            made = args[0] if given == node.dtype else relay.cast(args[0], node.dtype)
        elif op == "reinterpret":
            made = relay.reinterpret(args[0], node.dtype)
        elif op in ("Div", "Mod"):
            exact = relay.divide if is_float(given) else relay.trunc_divide
            made = (exact if op == "Div" else relay.trunc_mod)(*args)
        elif op in FUNCTIONS:
            made = FUNCTIONS[op](*args)
        else:
            raise Unsupported(f"the function {op} of scalars")
        if self.ctx.dtype(made) != node.dtype:
            raise Unsupported(f"{op} of {given} that gives {node.dtype}")
        return fold(made)

    def _integer(self, dim: Dim, frame: Frame, dtype: str) -> Spread:
        """Return a sum of axes and lengths."""
        found = frame.affine(dim)
        if found is None:
            raise Unsupported("a variable that is no sum of others")
        total = Spread(fold(relay.cast(self.ctx.lengths.tensor(found[0]), dtype)), ())
        for axis, factor in found[1].items():
            values: Expr
            if isinstance(axis.extent, int) and isinstance(factor, int):
                counted = allocation.positions(axis.extent) * factor
                values = Constant(counted.astype(numpy_dtype(dtype)))
            else:
                first, last, step = map(self.ctx.lengths.tensor, (0, axis.extent, 1))
                values = relay.arange(first, last, step, "int64")
                values = relay.multiply(values, self.ctx.lengths.tensor(factor))
                values = relay.cast(values, dtype)
            exprs, axes = self.align([total, Spread(values, (axis,))], frame)
            total = Spread(fold(relay.add(*exprs)), axes)
        return total

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
        axes = tuple(e for e in frame.axes if any(e in spread.axes for spread in spreads))
        return [self._expand(each, axes) for each in spreads], axes

    def _expand(self, spread: Spread, axes: Sequence[Axis]) -> Expr:
        """Return a tensor with axes of one element where it has none, but those in front."""
        expr = spread.expr
        first = axes.index(spread.axes[0]) if spread.axes else len(axes)
        dims = [each.extent if each in spread.axes else 1 for each in axes[first:]]
        whole = self.of_shape(expr, dims)
        if whole is not None:
            return whole
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
        digits = {axis: inner.parts.get(axis, [axis]) for axis in frame.axes}
        kept = tuple(e for e in frame.axes if any(each in spread.axes for each in digits[e]))
        whole = self.broadcast(spread, [each for axis in kept for each in digits[axis]])
        return Spread(self.reshape(whole, [each.extent for each in kept]), kept)

    # Conditions.

    def _part(self, node: Node, frame: Frame) -> Spread | None:
        """Return one of two values where a condition holds in a part, None if it is no part."""
        condition, one, other = node.args
        runs = self._runs(condition, frame)
        if runs is None and condition.op == "And":
            first, second = condition.args
            if not any(True for _ in post_order(condition, "load")):
                inner = Node("where", node.dtype, (second, one, other))
                return self._part(Node("where", node.dtype, (first, inner, other)), frame)
        if runs is None:
            return None
        if any(run.size == 0 for run in runs.values()):
            return self.compute(other, frame)
        runs = {axis: run for axis, run in runs.items() if run != (0, 1, axis.extent)}
        if not runs:
            return self.compute(one, frame)
        return self._pad(one, other, runs, frame) or self._join(one, other, runs, frame)

    def _runs(self, condition: Node, frame: Frame) -> dict[Axis, _Run] | None:
        """Return which values of axes, each by itself, make a condition true."""
        masks, runs = dict[Axis, Array](), dict[Axis, _Run | None]()
        pending = [condition]
        while pending:
            part = pending.pop()
            if part.op == "And":
                pending += part.args
                continue
            places = [frame.index(each) for each in post_order(part, "axis")]
            used = {axis for each in places for axis in frame.axes_of(each)}
            if len(used) != 1 or any(True for _ in post_order(part, "load")):
                return None
            (axis,) = used
            if not isinstance(axis.extent, int):
                if axis in runs:
                    return None
                runs[axis] = _interval(part, axis, frame)
                continue
            mask = self.compute(part, frame).expr
            if not isinstance(mask, Constant):
                return None
            masks[axis] = np.logical_and(masks.get(axis, True), mask.data)
            runs[axis] = _run_of(np.broadcast_to(masks[axis], (axis.extent,)))
        found = {axis: run for axis, run in runs.items() if run is not None}
        return found if len(found) == len(runs) else None

    def _pad(
        self, one: Node, other: Node, runs: Mapping[Axis, _Run], frame: Frame
    ) -> Spread | None:
        """Return a part of a tensor between one and the same number."""
        fill = self.compute(other, frame) if other.op in ("number", "cast") else None
        if fill is None or fill.axes:
            return None
        inner, parts = frame, dict[Axis, Axis]()
        widths = dict[Axis, tuple[int, int]]()
        for axis, run in runs.items():
            behind = axis.extent - run.start - (run.size - 1) * run.step - 1
            if not isinstance(run.start, int) or not isinstance(behind, int):
                return None
            widths[axis] = run.start, behind
            inner, part = inner.restricted(axis, *run)
            parts[part] = axis
        found = self.over(one, inner)
        axes = [each for each in inner.axes if each in found.axes or each in parts]
        expr = self.broadcast(found, axes)
        kept = tuple(parts.get(each, each) for each in axes)
        steps = [runs[each].step if each in runs else 1 for each in kept]
        if any(step > 1 for step in steps):
            if not isinstance(fill.expr, Constant):
                return None
            expr = relay.nn.dilate(expr, steps, dilation_value=float(fill.expr.data))
        sides = [widths.get(each, (0, 0)) for each in kept]
        expr = relay.nn.pad(expr, sides, fill.expr) if any(map(any, sides)) else expr
        return Spread(fold(expr), kept)

    def _join(
        self, one: Node, other: Node, runs: Mapping[Axis, _Run], frame: Frame
    ) -> Spread | None:
        """Return two parts behind each other."""
        ((axis, run), *more) = runs.items()
        end = run.start + run.size
        if more or run.step != 1 or (run.start != 0 and end != axis.extent):
            return None
        sides = [(other, 0, run.start), (one, run.start, run.size)]
        if run.start == 0:
            sides = [(one, 0, run.size), (other, end, axis.extent - run.size)]
        found, parts = list[Spread](), list[Axis]()
        for node, start, count in sides:
            inner, part = frame.restricted(axis, start, 1, count)
            found.append(self.over(node, inner))
            parts.append(part)
        whole = tuple(e for e in frame.axes if e is axis or any(e in x.axes for x in found))
        exprs = [
            self.broadcast(spread, [part if each is axis else each for each in whole])
            for spread, part in zip(found, parts, strict=True)
        ]
        return Spread(fold(relay.concatenate(Tuple(exprs), axis=whole.index(axis))), whole)


def _run_of(mask: Array) -> _Run | None:
    """Return where a mask is true, if that is in equal distances."""
    places = np.flatnonzero(mask)
    if places.size < 2:
        return _Run(int(places[0]) if places.size else 0, 1, int(places.size))
    step = int(places[1] - places[0])
    return None if (np.diff(places) != step).any() else _Run(int(places[0]), step, places.size)


def _interval(part: Node, axis: Axis, frame: Frame) -> _Run | None:
    """Return the values of an axis of any length for which a comparison is true."""
    if part.op not in ("LT", "LE", "GT", "GE"):
        return None
    less, more = map(frame.index, part.args if part.op[0] == "L" else part.args[::-1])
    found = frame.affine(more - less - (part.op[1] == "T"))
    if found is None or found[1] not in ({axis: 1}, {axis: -1}):
        return None
    begin, end = (found[0] * -1, axis.extent) if found[1][axis] == 1 else (0, found[0] + 1)
    fits = frame.is_at_most(0, begin) and frame.is_at_most(begin, end)
    known = fits and frame.is_at_most(end, axis.extent) and not isinstance(end, Any)
    return _Run(begin, 1, end - begin) if known else None

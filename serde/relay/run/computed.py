"""Weights that are Relay expressions over other weights, evaluated when they are written.

:class:`ComputedWeight` evaluates ranges of rows (entries of axis 0) where
every operator between the sources and the result lets it, so that a scaled or
converted tensor of any size passes through memory in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import Array, ArrayWeight, Weight, dataclass, numpy_dtype
from serde.errors import RelayError
from serde.relay.ir import OpDef, TensorType, called_name, free_vars, infer_function
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.run.interpreter import apply_kernel, evaluate
from serde.relay.run.rows import RowRule, row_rule

__all__ = ["ComputedWeight", "computed"]


@dataclass(slots=True)
class _Step:
    """One value on the way: an expression, where it reads from, and how it splits into rows."""

    expr: Expr
    inputs: tuple[int, ...] = ()
    weight: Weight | None = None
    rule: RowRule | None = None

    @property
    def splits(self) -> bool:
        """Whether single rows can be had."""
        return self.rule is not None or isinstance(self.expr, (Var, Constant))


class ComputedWeight(Weight):
    """The value of an expression whose variables are weights.

    Args:
        expr: An expression of concrete shape; its free variables are keys of `sources`.
        sources: Weight of each variable; one may be computed itself.

    Raises:
        RelayError: A variable has no source or one of another type, or the shape of
            `expr` is not concrete.
    """

    def __init__(self, expr: Expr, sources: Mapping[Var, Weight]) -> None:
        if expr.type is None:
            infer_function(Function(free_vars(expr), expr))
        type_ = expr.type
        shape = type_.concrete_shape if isinstance(type_, TensorType) else None
        if not isinstance(type_, TensorType) or shape is None:
            raise RelayError(f"a weight needs a tensor of concrete shape, found {type_!r}")
        self.shape = shape
        self.dtype = type_.dtype
        self.expr = expr
        self.sources = dict(sources)
        for variable in free_vars(expr):
            _check_source(variable, self.sources)
        self._built: _Schedule | None = None

    def _schedule(self) -> _Schedule:
        if self._built is None:
            self._built = _Schedule(self)
        return self._built

    @property
    def whole(self) -> bool:
        """Whether a tensor with the rows of the result must be evaluated as one."""
        return self._schedule().whole and self._transposed() is None

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0, evaluated now.

        Raises:
            FormatError: The file of a source no longer holds it.
            RelayError: A kernel refuses its operands.
        """
        schedule = self._schedule()
        return self._rows(schedule, schedule.fixed(), start, stop)

    def chunks(self) -> Iterator[memoryview]:
        """Yield the bytes in order; what every piece needs is evaluated once."""
        source = self._transposed()
        if source is not None:
            yield from _transposed_chunks(source)
            return
        schedule = self._schedule()
        fixed = schedule.fixed()
        for start, stop in self.row_ranges():
            piece = np.ascontiguousarray(self._rows(schedule, fixed, start, stop))
            yield from ArrayWeight(piece).chunks()

    def _transposed(self) -> Weight | None:
        """Return the matrix that is transposed, where it has rows and is too large to be held."""
        weight, node = _resolve((self, self.expr))
        if self.nbytes <= _MOST_HELD or called_name(node) != "transpose" or len(self.shape) != 2:
            return None
        if not isinstance(node, Call) or node.attrs["axes"] not in ((1, 0), None):
            return None
        weight, below = _resolve((weight, node.args[0]))
        if isinstance(below, Var):
            return weight.sources[below]
        source = ComputedWeight(below, weight.sources)
        return None if source.whole else source

    def _rows(
        self, schedule: _Schedule, fixed: Mapping[int, AnyValue], start: int, stop: int
    ) -> Array:
        with np.errstate(all="ignore"):
            value = schedule.piece(fixed, start, stop)
        if value.dtype != numpy_dtype(self.dtype):
            raise RelayError(f"{self.expr!r}: expected {self.dtype}, the kernel gave {value.dtype}")
        return value


def computed(make: Callable[..., Expr], *sources: Weight) -> ComputedWeight:
    """Return the weight that a function makes of variables that stand for weights."""
    variables = [Var("", TensorType(each.shape, each.dtype)) for each in sources]
    return ComputedWeight(make(*variables), dict(zip(variables, sources, strict=True)))


_MOST_HELD: Final = 2**27
"""Bytes of a transposed matrix up to which it is evaluated as one."""


def _transposed_chunks(source: Weight) -> Iterator[memoryview]:
    """Yield the bytes of a transposed matrix, which is read once for each block of columns."""
    height, width = source.shape
    dtype = numpy_dtype(source.dtype)
    count = max(_MOST_HELD // (height * dtype.itemsize), 1)
    for first in range(0, width, count):
        block = np.empty((min(count, width - first), height), dtype)
        for start, stop in source.row_ranges():
            block[:, start:stop] = source.rows(start, stop)[:, first : first + count].T
        yield from ArrayWeight(block).chunks()


def _check_source(variable: Var, sources: Mapping[Var, Weight]) -> None:
    source = sources.get(variable)
    if source is None:
        raise RelayError(f"{variable!r} has no weight")
    found = TensorType(source.shape, source.dtype)
    if variable.type is not None and variable.type != found:
        raise RelayError(f"{variable!r}: expected {variable.type!r}, found {found!r}")


_Key = tuple[ComputedWeight, Expr]


class _Schedule:
    """The steps of a weight, those of computed sources included, children first.

    Attributes:
        whole: Whether a step that is wanted by rows cannot give rows.
    """

    def __init__(self, weight: ComputedWeight) -> None:
        self._steps: list[_Step] = []
        self._numbers: dict[_Key, int] = {}
        self._build(weight)
        self._root = len(self._steps) - 1
        self._by_rows: set[int] = set()
        self._needed: set[int] = set()
        self.whole = False
        self._classify()

    def _build(self, weight: ComputedWeight) -> None:
        stack: list[_Key] = [_resolve((weight, weight.expr))]
        while stack:
            key = stack[-1]
            if key in self._numbers:
                stack.pop()
                continue
            below = [_resolve((key[0], child)) for child in _inputs(key[1])]
            waiting = [child for child in below if child not in self._numbers]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            step = _Step(key[1], tuple(self._numbers[child] for child in below))
            if isinstance(step.expr, Var):
                step.weight = key[0].sources[step.expr]
            else:
                step.rule = row_rule(step.expr, [self._steps[n].expr.type for n in step.inputs])
            self._numbers[key] = len(self._steps)
            self._steps.append(step)

    def _classify(self) -> None:
        """Decide top-down which steps are wanted by rows and which as one."""
        wanted_by_rows = {self._root}
        wanted = set()
        for number in range(self._root, -1, -1):
            step = self._steps[number]
            if number in wanted_by_rows and not step.splits:
                self.whole = True
                wanted.add(number)
            if number in wanted:
                wanted.update(step.inputs)
            elif number in wanted_by_rows:
                self._by_rows.add(number)
                if step.rule is None:
                    continue
                for child, aligned in zip(step.inputs, step.rule.aligned, strict=True):
                    (wanted_by_rows if aligned else wanted).add(child)
        self._needed = wanted
        self._read = {child for number in self._by_rows for child in self._steps[number].inputs} | {
            self._root
        }

    def fixed(self) -> dict[int, AnyValue]:
        """Return the values that are wanted as one and that steps by rows read."""
        values: dict[int, AnyValue] = {}
        last_use = {child: n for n in sorted(self._needed) for child in self._steps[n].inputs}
        ending: dict[int, list[int]] = {}
        for child, number in last_use.items():
            if child not in self._read:
                ending.setdefault(number, []).append(child)
        with np.errstate(all="ignore"):
            for number in sorted(self._needed):
                step = self._steps[number]
                values[number] = _evaluate(step, [values[child] for child in step.inputs])
                for child in ending.get(number, ()):
                    del values[child]
        return values

    def piece(self, fixed: Mapping[int, AnyValue], start: int, stop: int) -> Array:
        """Return rows `start` to `stop` of the result."""
        if self._root in fixed:
            return _slice(fixed[self._root], start, stop)
        ranges: dict[int, tuple[int, int]] = {self._root: (start, stop)}
        order = sorted(self._by_rows)
        for number in reversed(order):
            for child, wanted in self._find_wanted_rows(number, ranges[number]):
                if wanted is None or child in fixed:
                    continue
                low, high = ranges.get(child, wanted)
                ranges[child] = (min(low, wanted[0]), max(high, wanted[1]))
        uses: dict[int, int] = {}
        for number in order:
            for child in self._steps[number].inputs:
                uses[child] = uses.get(child, 0) + 1
        values: dict[int, Array] = {}
        for number in order:
            values[number] = self._compute(number, ranges, values, fixed)
            for child in self._steps[number].inputs:
                uses[child] -= 1
                if not uses[child]:
                    values.pop(child, None)
        return values[self._root]

    def _find_wanted_rows(
        self, number: int, rows: tuple[int, int]
    ) -> list[tuple[int, tuple[int, int] | None]]:
        step = self._steps[number]
        if step.rule is None:
            return []
        return list(zip(step.inputs, step.rule.wanted(*rows), strict=True))

    def _compute(
        self,
        number: int,
        ranges: Mapping[int, tuple[int, int]],
        values: Mapping[int, Array],
        fixed: Mapping[int, AnyValue],
    ) -> Array:
        """Return the rows of a step that `ranges` wants, from those of its inputs."""
        step = self._steps[number]
        start, stop = ranges[number]
        if step.weight is not None:
            return step.weight.rows(start, stop)
        if isinstance(step.expr, Constant):
            return _slice(np.asarray(step.expr.data), start, stop)
        operands = []
        for child, wanted in self._find_wanted_rows(number, (start, stop)):
            value = fixed[child] if child in fixed else values[child]
            if wanted is not None:
                first = 0 if child in fixed else ranges[child][0]
                value = _slice(value, wanted[0] - first, wanted[1] - first)
            operands.append(value)
        if step.rule is None:
            raise RelayError(f"{step.expr!r} cannot be evaluated by rows")
        return step.rule.compute(operands, start, stop)


def _resolve(key: _Key) -> _Key:
    """Follow variables to the expressions of computed sources, and fields to tuples' fields."""
    weight, node = key
    while True:
        if isinstance(node, Var):
            source = weight.sources[node]
            if not isinstance(source, ComputedWeight):
                return weight, node
            weight, node = source, source.expr
        elif isinstance(node, TupleGetItem) and isinstance(node.tuple_value, Tuple):
            node = node.tuple_value.fields[node.index]
        else:
            return weight, node


def _inputs(node: Expr) -> tuple[Expr, ...]:
    """Return what a step reads: operands, the fields of tuple operands, free variables."""
    if isinstance(node, (Var, Constant)):
        return ()
    if isinstance(node, TupleGetItem):
        return (node.tuple_value,) if not _is_split(node) else _inputs(node.tuple_value)
    if isinstance(node, Tuple):
        return node.fields
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return tuple(free_vars(node))
    below: list[Expr] = []
    for argument in node.args:
        below.extend(argument.fields if isinstance(argument, Tuple) else (argument,))
    return tuple(below)


def _is_split(node: TupleGetItem) -> bool:
    value = node.tuple_value
    return isinstance(value, Call) and isinstance(value.op, OpDef) and value.op.name == "split"


def _evaluate(step: _Step, values: list[AnyValue]) -> AnyValue:
    """Return the whole value of a step, given those it reads."""
    node = step.expr
    if step.weight is not None:
        return step.weight.array()
    if isinstance(node, Constant):
        return np.asarray(node.data)
    if isinstance(node, Tuple):
        return tuple(values)
    if isinstance(node, TupleGetItem):
        if _is_split(node) and isinstance(node.tuple_value, Call):
            return _apply(node.tuple_value, values)[node.index]
        return values[0][node.index]
    if isinstance(node, Call) and isinstance(node.op, OpDef):
        return _apply(node, values)
    return evaluate(node, dict(zip(free_vars(node), values, strict=True)))


def _apply(node: Call, values: list[AnyValue]) -> AnyValue:
    if not isinstance(node.op, OpDef):
        raise RelayError(f"{node!r} is no call of an operator")
    pending = iter(values)
    args = [
        tuple(next(pending) for _ in argument.fields)
        if isinstance(argument, Tuple)
        else next(pending)
        for argument in node.args
    ]
    return apply_kernel(node.op, args, node.attrs)


def _slice(value: Array, start: int, stop: int) -> Array:
    return value[start:stop] if value.ndim else value

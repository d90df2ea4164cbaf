"""Sums of products, recognised by their computation: dense layers, attention, convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any as AnyValue, Final

from serde.core import dataclass
from serde.relax.framework import Framework

__all__ = ["Axes", "Contraction", "Env", "Expressions", "find_contraction", "is_reduction"]

_REDUCTION: Final = 2
"""TVM's number of the kind of an index that is summed over."""

Env = dict[AnyValue, AnyValue]
Axes = Sequence[tuple[AnyValue, AnyValue]]
"""Indices with their lengths, which are one together, the slowest first."""


class Expressions:
    """What is asked of expressions of TIR."""

    def __init__(self, framework: Framework) -> None:
        self.framework, self.tir = framework, framework.tir

    def number(self, value: AnyValue) -> AnyValue:
        """Return a length or index as TVM's."""
        return self.tir.IntImm("int64", value) if isinstance(value, int) else value

    def known(self, value: AnyValue) -> int | None:
        """Return a length as a number where it is one."""
        return int(value) if isinstance(value, (int, self.tir.IntImm)) else None

    def simplify(self, value: AnyValue) -> AnyValue:
        """Return a length or index in fewer operations."""
        return self.framework.simplify(self.number(value))

    def at(self, exprs: Sequence[AnyValue], env: Mapping[AnyValue, AnyValue]) -> list[AnyValue]:
        """Return expressions in which variables are replaced."""
        given = [self.number(each) for each in env.values()]
        return list(self.tir.IndexMap([*env], list(exprs), None).map_indices(given))

    def size(self, axes: Axes) -> AnyValue:
        """Return how many places there are."""
        return self.simplify(reduce(lambda x, y: x * y[1], axes, self.number(1)))

    def places(self, axes: Axes, index: AnyValue) -> Env:
        """Return each index at one of all places."""
        found: Env = {}
        for position, (variable, length) in reversed([*enumerate(axes)]):
            found[variable] = self.simplify(index % length if position else index)
            index = self.simplify(index // length)
        return found

    def source(self, expr: AnyValue) -> AnyValue:
        """Return the buffer that an expression reads, None if it is something else."""
        return getattr(expr, "source", getattr(expr, "buffer", None))

    def slope(self, expr: AnyValue, axes: Axes, zeros: Env) -> int | None:
        """Return how far apart in memory neighbours along axes are, None if that varies."""
        source = self.source(expr)
        if source is None or not axes:
            return None
        lengths = zip(expr.indices, source.shape, strict=True)
        flat = reduce(lambda sum_, each: sum_ * each[1] + each[0], lengths, self.number(0))
        step = self.tir.Var("step", "int64")
        here, there = (
            self.at([flat], {**zeros, **self.places(axes, x)})[0] for x in (step, step + 1)
        )
        return self.known(self.simplify(there - here))


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum of products: its function, its block, and those before and behind it.

    One number at a time is taken of the operand `broadcast`, whose indices are the rows. The
    columns, of `vector`, lie next to each other in the result. Indices of length one are zeros.
    """

    function: AnyValue
    before: Sequence[AnyValue]
    main: AnyValue
    after: Sequence[AnyValue]
    broadcast: AnyValue
    vector: AnyValue
    batch: Axes
    rows: Axes
    columns: Axes
    sum: Axes
    zeros: Env


def is_reduction(block: AnyValue) -> bool:
    """Whether a block sums, or the like."""
    return any(each.iter_type == _REDUCTION for each in block.iter_vars)


def _inlined(schedule: AnyValue) -> list[AnyValue]:
    """Inline what is elementwise and return the blocks that are left."""
    root = schedule.get_sblock("root")
    for block in schedule.get_child_blocks(root):
        found = schedule.get(block)
        edge = "if_then_else" in str(getattr(getattr(found.body, "value", None), "op", ""))
        if not is_reduction(found) and not edge:  # Edges are asked for once.
            with suppress(Exception):  # Of the result.
                schedule.compute_inline(block)
    return [schedule.get(each) for each in schedule.get_child_blocks(root)]


def find_contraction(exprs: Expressions, schedule: AnyValue) -> Contraction | None:
    """Return the sum of products that a function computes, None if it is something else."""
    blocks = _inlined(schedule)
    at = [index for index, each in enumerate(blocks) if is_reduction(each)]
    if len(at) != 1:
        return None
    main = blocks[at[0]]
    sum_: AnyValue = getattr(main.body, "value", None)
    begin = getattr(main.init, "value", None)
    if type(sum_).__name__ != "Add" or type(sum_.b).__name__ != "Mul":
        return None
    if not main.body.buffer.same_as(exprs.source(sum_.a)) or getattr(begin, "value", 1) != 0:
        return None
    lengths = [(each.var, each.dom.extent) for each in main.iter_vars]
    summed = [x for x, y in zip(lengths, main.iter_vars, strict=True) if y.iter_type == _REDUCTION]
    spatial = [x for x in lengths if x not in summed]
    if any(not x.same_as(y) for x, (y, _) in zip(main.body.indices, spatial, strict=True)):
        return None
    operands = sum_.b.a, sum_.b.b
    several = [each for each in spatial if exprs.known(each[1]) != 1]
    used = [exprs.tir.analysis.undefined_vars(exprs.tir.Evaluate(x), []) for x in operands]
    own = [[any(v.same_as(u) for u in each) for v, _ in several] for each in used]
    if several and own[0][-1] and not own[1][-1]:
        operands, own = operands[::-1], own[::-1]
    first = next((i for i in range(len(several), 0, -1) if own[0][i - 1] or not own[1][i - 1]), 0)
    in_rows = [x and not y for x, y in zip(*own, strict=True)]
    rows = [x for x, chosen in zip(several, in_rows, strict=True) if chosen]
    batch = [x for x, chosen in zip(several[:first], in_rows, strict=False) if not chosen]
    long = [each for each in summed if exprs.known(each[1]) != 1] or summed[:1]
    zeros = {x[0]: 0 for x in lengths if exprs.known(x[1]) == 1 and x not in long}
    return Contraction(
        schedule.mod["main"], blocks[: at[0]], main, blocks[at[0] + 1 :], *operands,
        batch, rows, several[first:], long, zeros,
    )  # fmt: skip

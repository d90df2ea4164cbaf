"""Reductions, recognised by their computation: dense layers, convolutions, norms, pooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any as AnyValue, Final

from serde.core import dataclass, replace
from serde.relax.framework import Framework

__all__ = [
    "Axes", "Contraction", "Env", "Expressions", "axes_of", "find_contraction", "find_reductions",
    "inline", "is_reduction",
]  # fmt: skip

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
        """Return how far apart in memory neighbours along axes are, None if that varies.

        What an expression reads several times, or of several buffers, lies equally far apart, or
        is the same for neighbours.
        """
        loads = self.framework.loads_of(expr)
        if not loads or not axes:
            return None
        step, found = self.tir.Var("step", "int64"), set[int | None]()
        for load in loads:
            lengths = zip(load.indices, self.source(load).shape, strict=True)
            flat = reduce(lambda sum_, each: sum_ * each[1] + each[0], lengths, self.number(0))
            here, there = (
                self.at([flat], {**zeros, **self.places(axes, x)})[0] for x in (step, step + 1)
            )
            found.add(self.known(self.simplify(there - here)))
        several = found - {0}
        return several.pop() if len(several) == 1 else None if several else 0


@dataclass(frozen=True, slots=True)
class Contraction:
    """A reduction: what it begins with and how it goes on, and the blocks before and behind it.

    One number at a time is taken of the operand `broadcast`, whose indices are the rows; there is
    none where no products are summed. The columns, of `vector`, lie next to each other in the
    result, which `store` writes. Indices of length one are zeros.
    """

    before: Sequence[AnyValue]
    after: Sequence[AnyValue]
    store: AnyValue
    combine: AnyValue
    begin: AnyValue
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


def axes_of(block: AnyValue, *, summed: bool = False) -> list[tuple[AnyValue, AnyValue]]:
    """Return the indices of what a block writes with their lengths, or those it sums over."""
    chosen = (each for each in block.iter_vars if (each.iter_type == _REDUCTION) is summed)
    return [(each.var, each.dom.extent) for each in chosen]


def inline(schedule: AnyValue) -> list[AnyValue]:
    """Inline what is elementwise and return the blocks that are left, none if more is left.

    Where there are several reductions, that is done only for what is read by one block.
    """
    children = schedule.get_child_blocks(schedule.get_sblock("root"))
    several = sum(is_reduction(schedule.get(each)) for each in children) > 1
    for block in children:
        found = schedule.get(block)
        edge = "if_then_else" in str(getattr(getattr(found.body, "value", None), "op", ""))
        shared = several and len(schedule.get_consumers(block)) > 1
        if not is_reduction(found) and not edge and not shared:  # Edges are asked for once.
            with suppress(Exception):  # Of the result.
                schedule.compute_inline(block)
    statements, blocks = schedule.mod["main"].body.block.body, list[AnyValue]()
    for each in getattr(statements, "seq", [statements]):
        block, loops = each, list[AnyValue]()
        while hasattr(block, "loop_var"):
            loops.append(block.loop_var)
            block = block.body
        if not _is_plain(block, loops):
            return []
        blocks.append(block.block)
    return blocks


def _is_plain(statement: AnyValue, loops: Sequence[AnyValue]) -> bool:
    """Whether a statement in loops is a block of stores, whose indices they are."""
    if len(getattr(statement, "iter_values", [None])) != len(loops):
        return False
    indices = zip(statement.iter_values, loops, strict=True)
    stores = getattr(statement.block.body, "seq", [statement.block.body])
    return (
        all(x.same_as(y) for x, y in indices)
        and all(each.iter_type in (0, _REDUCTION) for each in statement.block.iter_vars)
        and all(hasattr(each, "value") for each in stores)
    )


def find_reductions(exprs: Expressions, block: AnyValue, batch: int) -> list[Contraction]:
    """Return what a block reduces, one for each result, the first of whose indices are a batch.

    There is none if the block is none, or does something else.
    """
    found: list[Contraction] = []
    spatial, summed = axes_of(block), axes_of(block, summed=True)
    parts, begins = (getattr(x, "seq", [x]) for x in (block.body, block.init))
    values = {each.var: each.value for each in parts if hasattr(each, "var")}
    stores = [each for each in parts if not hasattr(each, "var")]
    long = [each for each in summed if exprs.known(each[1]) != 1] or summed[:1]
    several = [each for each in spatial[batch:] if exprs.known(each[1]) != 1]
    zeros = {x[0]: 0 for x in [*spatial, *summed] if exprs.known(x[1]) == 1 and x not in long}
    for store, begin in zip(stores, begins, strict=True) if summed else ():
        node, start = values.get(store.value, store.value), getattr(begin.value, "value", None)
        kind = type(node).__name__
        wanted = {"Add": (0,), "Mul": (1,), "Max": (start,), "Min": (start,)}.get(kind, ())
        own = start in wanted and store.buffer.same_as(exprs.source(node.a))
        if not own or any(not x.same_as(y) for x, (y, _) in zip(store.indices, spatial, strict=True)):
            return []
        found.append(
            Contraction(
                [], [], store, type(node), begin.value, None, node.b,
                spatial[:batch], [], several, long, zeros,
            )
        )  # fmt: skip
    return found


def find_contraction(exprs: Expressions, blocks: Sequence[AnyValue]) -> Contraction | None:
    """Return the sum of products that blocks compute, None if it is something else."""
    at = [index for index, each in enumerate(blocks) if is_reduction(each)]
    found = find_reductions(exprs, blocks[at[0]], 0) if len(at) == 1 else []
    if len(found) != 1 or (found[0].combine.__name__, type(found[0].vector).__name__) != ("Add", "Mul"):
        return None
    operands, several = (found[0].vector.a, found[0].vector.b), found[0].columns
    used = [exprs.tir.analysis.undefined_vars(exprs.tir.Evaluate(x), []) for x in operands]
    own = [[any(v.same_as(u) for u in each) for v, _ in several] for each in used]
    if several and own[0][-1] and not own[1][-1]:
        operands, own = operands[::-1], own[::-1]
    first = next((i for i in range(len(several), 0, -1) if own[0][i - 1] or not own[1][i - 1]), 0)
    in_rows = [x and not y for x, y in zip(*own, strict=True)]
    rows = [x for x, chosen in zip(several, in_rows, strict=True) if chosen]
    batch = [x for x, chosen in zip(several[:first], in_rows, strict=False) if not chosen]
    return replace(
        found[0], before=blocks[: at[0]], after=blocks[at[0] + 1 :], broadcast=operands[0],
        vector=operands[1], batch=batch, rows=rows, columns=several[first:],
    )  # fmt: skip

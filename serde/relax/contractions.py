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
    "inline", "stores_of",
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

    def loads(self, expr: AnyValue) -> list[AnyValue]:
        """Return what an expression reads."""
        found: list[AnyValue] = []

        def note(node: AnyValue) -> AnyValue:
            if hasattr(node, "indices"):
                found.append(node)
            return node

        self.framework.change_nodes(self.tir.Evaluate(expr), note)
        return found

    def slope(self, expr: AnyValue, axes: Axes, zeros: Env) -> int | None:
        """Return how far apart in memory neighbours along axes are, None if that varies.

        What an expression reads several times, or of several buffers, lies equally far apart, or
        is the same for neighbours.
        """
        loads = self.loads(expr)
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


def axes_of(block: AnyValue, *, summed: bool = False) -> list[tuple[AnyValue, AnyValue]]:
    """Return the indices of what a block writes with their lengths, or those it sums over."""
    chosen = (each for each in block.iter_vars if (each.iter_type == _REDUCTION) is summed)
    return [(each.var, each.dom.extent) for each in chosen]


def stores_of(block: AnyValue) -> list[AnyValue]:
    """Return the statements of a block that store, where it does nothing else."""
    statements = getattr(block.body, "seq", [block.body])
    plain = all(hasattr(each, "value") for each in statements)
    return [each for each in statements if plain and not hasattr(each, "var")]


def inline(schedule: AnyValue) -> list[AnyValue]:
    """Inline what is elementwise and return the blocks that are left, none if more is left.

    Where there are several reductions, that is done only for what is read by one block.
    """
    children = schedule.get_child_blocks(schedule.get_sblock("root"))
    several = sum(bool(axes_of(schedule.get(each), summed=True)) for each in children) > 1
    for block in children:
        found = schedule.get(block)
        edge = "if_then_else" in str(getattr(getattr(found.body, "value", None), "op", ""))
        shared = several and len(schedule.get_consumers(block)) > 1
        if not axes_of(found, summed=True) and not edge and not shared:  # Edges are asked once.
            with suppress(Exception):  # Of the result.
                schedule.compute_inline(block)
    children = schedule.get_child_blocks(schedule.get_sblock("root"))
    body, blocks = schedule.mod["main"].body.block.body, [schedule.get(each) for each in children]
    kinds = {each.iter_type for block in blocks for each in block.iter_vars}
    whole = len(getattr(body, "seq", [body])) == len(blocks) and all(map(stores_of, blocks))
    return blocks if whole and kinds <= {0, _REDUCTION} else []


def find_reductions(exprs: Expressions, block: AnyValue, batch: int) -> list[Contraction]:
    """Return what a block reduces, one for each result, the first of whose indices are a batch.

    There is none if the block is none, or does something else.
    """
    spatial, summed = axes_of(block), axes_of(block, summed=True)
    if not summed:
        return []
    values = {
        each.var: each.value for each in getattr(block.body, "seq", ()) if hasattr(each, "var")
    }
    long = [each for each in summed if exprs.known(each[1]) != 1] or summed[:1]
    several = [each for each in spatial[batch:] if exprs.known(each[1]) != 1]
    zeros = {x[0]: 0 for x in [*spatial, *summed] if exprs.known(x[1]) == 1 and x not in long}
    found, stores = list[Contraction](), stores_of(block)
    for store, begin in zip(stores, getattr(block.init, "seq", [block.init]), strict=True):
        node, start = values.get(store.value, store.value), getattr(begin.value, "value", None)
        neutral = {"Add": (0,), "Mul": (1,), "Max": (start,), "Min": (start,)}
        own = start in neutral.get(type(node).__name__, ())
        own = own and store.buffer.same_as(exprs.source(node.a))
        own = own and all(x.same_as(y) for x, (y, _) in zip(store.indices, spatial, strict=True))
        read = map(exprs.source, exprs.loads(node.b) if own else ())
        if not own or any(x.buffer.same_as(y) for y in read for x in stores):
            return []
        kinds = type(node), begin.value, None, node.b
        found.append(Contraction([], [], store, *kinds, spatial[:batch], [], several, long, zeros))
    return found


def find_contraction(exprs: Expressions, blocks: Sequence[AnyValue]) -> Contraction | None:
    """Return the sum of products that blocks compute, None if it is something else."""
    at = [index for index, each in enumerate(blocks) if axes_of(each, summed=True)]
    found = find_reductions(exprs, blocks[at[0]], 0) if len(at) == 1 else []
    kinds = [(each.combine.__name__, type(each.vector).__name__) for each in found]
    if kinds != [("Add", "Mul")]:
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

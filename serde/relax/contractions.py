"""Sums of products: dense layers, attention, convolutions of every kind.

TVM computes them as they are defined, an element at a time. Here one is recognised by its
computation, and not by its operator: some indices of the result occur in one operand, some in the
other, some in both. No weight has to be reordered beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any as AnyValue, Final

from serde.core import dataclass, replace
from serde.relax.framework import Framework

__all__ = [
    "Axes", "Contraction", "Expressions", "find_contraction", "indices_of_sum",
    "is_reduction",
]  # fmt: skip

_REDUCTION: Final = 2
"""TVM's number of the kind of an index that is summed over."""

Env = dict[AnyValue, AnyValue]


class Expressions:
    """What is asked of expressions of TIR.

    Args:
        framework: TVM.
    """

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        self.tir = framework.tir

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

    def dtype(self, expr: AnyValue) -> str:
        """Return the type of an expression's value."""
        return str(getattr(expr, "dtype", None) or expr.ty.dtype)

    def source(self, expr: AnyValue) -> AnyValue:
        """Return what an expression reads, if it is nothing but that."""
        if not hasattr(expr, "indices"):
            return None
        return expr.source if hasattr(expr, "source") else expr.buffer

    def uses(self, expr: AnyValue, variable: AnyValue) -> bool:
        """Whether a variable occurs."""
        found = self.tir.analysis.undefined_vars(self.tir.Evaluate(expr), [])
        return any(variable.same_as(each) for each in found)

    def slope(self, expr: AnyValue, axes: Axes, rest: Env) -> int | None:
        """Return how far apart in memory neighbours along an axis are, None if that varies."""
        source = self.source(expr)
        if source is None:
            return None
        lengths = zip(expr.indices, source.shape, strict=True)
        flat = reduce(lambda sum_, each: sum_ * each[1] + each[0], lengths, self.number(0))
        step = self.tir.Var("step", "int64")
        here, there = (
            self.at([flat], {**rest, **axes.at(self, index)})[0] for index in (step, step + 1)
        )
        return self.known(self.simplify(there - here))

    def replaced(self, expr: AnyValue, source: AnyValue, value: AnyValue) -> AnyValue:
        """Return an expression in which what it reads of a buffer is a value."""

        def again(expr: AnyValue) -> AnyValue:
            found = self.source(expr)
            if found is not None:
                return value if found.same_as(source) else expr
            if hasattr(expr, "a"):
                return type(expr)(*(again(x) for x in (expr.a, *([expr.b] * hasattr(expr, "b")))))
            if hasattr(expr, "args"):
                args = [again(each) for each in expr.args]
                return self.tir.call_intrin(self.dtype(expr), expr.op, *args)
            if hasattr(expr, "true_value"):
                parts = expr.condition, expr.true_value, expr.false_value
                return type(expr)(*map(again, parts))
            if hasattr(expr, "value") and hasattr(expr.value, "same_as"):
                return type(expr)(self.dtype(expr), again(expr.value))
            return expr

        return again(expr)


@dataclass(frozen=True, slots=True)
class Axes:
    """Several indices as one, the slowest first.

    Attributes:
        indices: Variables with their lengths.
    """

    indices: tuple[tuple[AnyValue, AnyValue], ...]

    def size(self, exprs: Expressions) -> AnyValue:
        """Return how many there are in all."""
        lengths = (length for _, length in self.indices)
        return exprs.simplify(reduce(lambda x, y: x * y, lengths, exprs.number(1)))

    def at(self, exprs: Expressions, index: AnyValue) -> Env:
        """Return each index at one of all."""
        found: Env = {}
        for position, (variable, length) in reversed([*enumerate(self.indices)]):
            found[variable] = exprs.simplify(index % length if position else index)
            index = exprs.simplify(index // length)
        return found


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum of products.

    Attributes:
        function: What computes it, all that is elementwise in one place behind it.
        before: Blocks that come before it: operands with an edge around them.
        main: Its block.
        last: What is made of the sums; None if they are the result.
        broadcast: The operand of which one number at a time is taken.
        vector: The operand that is read in vectors.
        batch: Indices of both operands, or of none.
        rows: Those of `broadcast`.
        columns: Those of `vector` that lie next to each other in the result.
        sum: Those that are summed over.
        ones: Indices of length one, which are zero.
    """

    function: AnyValue
    before: tuple[AnyValue, ...]
    main: AnyValue
    last: AnyValue
    broadcast: AnyValue
    vector: AnyValue
    batch: Axes
    rows: Axes
    columns: Axes
    sum: Axes
    ones: Env

    @property
    def result(self) -> AnyValue:
        """The buffer of the sums."""
        return self.main.body.buffer

    def row_by_row(self) -> Contraction:
        """Return it with the last index of the columns alone, the others in the batch."""
        *others, last = self.columns.indices
        batch = Axes((*self.batch.indices, *others))
        return replace(self, batch=batch, columns=Axes((last,)))


def _blocks(schedule: AnyValue) -> list[AnyValue]:
    return list(schedule.get_child_blocks(schedule.get_sblock("root")))


def is_reduction(block: AnyValue) -> bool:
    return any(each.iter_type == _REDUCTION for each in block.iter_vars)


def _inlined(exprs: Expressions, schedule: AnyValue) -> list[AnyValue]:
    """Inline what is elementwise and return the blocks that are left."""
    for block in _blocks(schedule):
        found = schedule.get(block)
        value = getattr(found.body, "value", None)
        padded = "if_then_else" in str(getattr(value, "op", ""))  # Its edges are asked once.
        if not is_reduction(found) and not padded:
            try:
                schedule.compute_inline(block)
            except Exception:  # noqa: S112  # It is the result.
                continue
    return [schedule.get(each) for each in _blocks(schedule)]


def find_contraction(exprs: Expressions, schedule: AnyValue) -> Contraction | None:
    """Return the sum of products that a function computes, None if it is something else.

    Args:
        exprs: For expressions.
        schedule: Of the function, which is changed.
    """
    blocks = _inlined(exprs, schedule)
    at = [index for index, each in enumerate(blocks) if is_reduction(each)]
    if len(at) != 1 or len(blocks) > at[0] + 2:
        return None
    main, last = blocks[at[0]], [*blocks[at[0] + 1 :], None][0]
    operands = _operands(exprs, main)
    lengths = {each.var: each.dom.extent for each in main.iter_vars}
    spatial = [each.var for each in main.iter_vars if each.iter_type != _REDUCTION]
    if operands is None or not _same(main.body.indices, spatial):
        return None
    if last is not None and not _is_pointwise(exprs, last, main):
        return None
    several = [each for each in spatial if exprs.known(lengths[each]) != 1]
    own = [[exprs.uses(each, variable) for variable in several] for each in operands]
    is_first = bool(several) and own[0][-1] and not own[1][-1]
    vector, broadcast = operands if is_first else operands[::-1]
    of_vector, of_broadcast = own if is_first else own[::-1]
    alone = [x and not y for x, y in zip(of_vector, of_broadcast, strict=True)]
    first = len(alone) - next((i for i, x in enumerate(reversed(alone)) if not x), len(alone))
    rows = [y and not x for x, y in zip(of_vector, of_broadcast, strict=True)]

    def axes(variables: Sequence[AnyValue]) -> Axes:
        return Axes(tuple((each, lengths[each]) for each in variables))

    summed = [each.var for each in main.iter_vars if each.iter_type == _REDUCTION]
    long = [each for each in summed if exprs.known(lengths[each]) != 1] or summed[:1]
    ones = [x for x in lengths if exprs.known(lengths[x]) == 1 and not any(map(x.same_as, long))]
    in_rows = [each for each, chosen in zip(several, rows, strict=True) if chosen]
    in_batch = [each for each, chosen in zip(several[:first], rows, strict=False) if not chosen]
    return Contraction(
        schedule.mod["main"], tuple(blocks[: at[0]]), main, last, broadcast, vector,
        axes(in_batch), axes(in_rows), axes(several[first:]), axes(long),
        dict.fromkeys(ones, exprs.number(0)),
    )  # fmt: skip


def _same(indices: Sequence[AnyValue], variables: Sequence[AnyValue]) -> bool:
    pairs = zip(indices, variables, strict=False)
    return len(indices) == len(variables) and all(x.same_as(y) for x, y in pairs)


def _operands(exprs: Expressions, main: AnyValue) -> tuple[AnyValue, AnyValue] | None:
    """Return the factors of what a block sums, which begins at zero."""
    sum_, init = getattr(main.body, "value", None), getattr(main.init, "value", None)
    if type(sum_).__name__ != "Add" or type(sum_.b).__name__ != "Mul":
        return None
    if not main.body.buffer.same_as(exprs.source(sum_.a)):
        return None
    return (sum_.b.a, sum_.b.b) if getattr(init, "value", None) == 0 else None


def _is_pointwise(exprs: Expressions, last: AnyValue, main: AnyValue) -> bool:
    """Whether a block makes one element of each sum."""
    indices = indices_of_sum(last, main)
    several = [each.var for each in last.iter_vars if exprs.known(each.dom.extent) != 1]
    if indices is None or any(exprs.known(each) not in (None, 0) for each in indices):
        return False
    variables = [each for each in indices if exprs.known(each) is None]
    known = [each.var for each in last.iter_vars]
    return all(any(map(x.same_as, known)) for x in variables) and all(
        sum(map(x.same_as, variables)) == 1 for x in several
    )


def indices_of_sum(last: AnyValue, main: AnyValue) -> list[AnyValue] | None:
    """Return where a block reads the sums, None if that is more than one place."""
    for each in last.reads:
        if getattr(each, "source", getattr(each, "buffer", None)).same_as(main.body.buffer):
            one = all(getattr(length.extent, "value", None) == 1 for length in each.region)
            return [length.min for length in each.region] if one else None
    return None

"""Bindings in dataflow blocks, as TVM's passes want them.

TVM's own pass that makes them simplifies at once what it finds: it loses variables where lengths
are symbols, or recurses without end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, groupby
from typing import Any as AnyValue

from serde.relax.framework import Framework
from serde.relax.reflection import handle_of, name_of

__all__ = ["with_dataflow"]


def with_dataflow(framework: Framework, builder: AnyValue, function: AnyValue) -> AnyValue:
    """Return a function whose bindings lie in dataflow blocks, all but conditionals.

    Args:
        framework: TVM.
        builder: What gives new calls their types.
        function: A function without effects.
    """
    blocks = _Blocks(framework)
    blocks.note(function.body)
    made = framework.relax.Function(
        function.params,
        blocks.rebuild(function.body),
        framework.result_type(function),
        function.is_pure,
        function.attrs,
    )
    return builder.normalize(made)


class _Blocks:
    """Bindings of one function, put into blocks.

    Attributes:
        seen: Variables that other blocks use, or that are results: they are no block's own.
    """

    def __init__(self, framework: Framework) -> None:
        self.seen: set[int] = set()
        self._framework = framework
        self._homes: dict[int, int] = {}
        self._own: dict[int, AnyValue] = {}
        self._numbers = count()

    def note(self, sequence: AnyValue) -> None:
        """Note which variables are seen from outside of the block that binds them."""
        for has_branches, bindings in self._runs(sequence):
            number = next(self._numbers)
            for each in bindings:
                self._note_uses(each.value, number)
                self._homes[handle_of(each.var)] = number
                if has_branches:
                    self.seen.add(handle_of(each.var))
                    self.note(each.value.true_branch)
                    self.note(each.value.false_branch)
        self._note_uses(sequence.body, next(self._numbers))

    def rebuild(self, sequence: AnyValue) -> AnyValue:
        """Return bindings in blocks, and what they give."""
        relax = self._framework.relax
        blocks = []
        for has_branches, bindings in self._runs(sequence):
            kind = relax.BindingBlock if has_branches else relax.DataflowBlock
            blocks.append(kind([self._rebind(each) for each in bindings]))
        return relax.SeqExpr(blocks, sequence.body)

    def _runs(self, sequence: AnyValue) -> Iterator[tuple[bool, Iterator[AnyValue]]]:
        """Yield bindings that may lie in one block, and whether they are conditionals."""
        conditional = self._framework.relax.If
        bindings = (each for block in sequence.blocks for each in block.bindings)
        yield from groupby(bindings, lambda each: isinstance(each.value, conditional))

    def _note_uses(self, expr: AnyValue, number: int) -> None:
        relax = self._framework.relax
        pending = [expr]
        while pending:
            each = pending.pop()
            if isinstance(each, relax.Call):
                pending.extend(each.args)
            elif isinstance(each, relax.Var):
                handle = handle_of(each)
                if self._homes.get(handle) != number:
                    self.seen.add(handle)
            elif isinstance(each, relax.Tuple):
                pending.extend(each.fields)
            elif isinstance(each, relax.TupleGetItem):
                pending.append(each.tuple_value)
            elif isinstance(each, relax.If):
                pending.append(each.cond)

    def _rebind(self, binding: AnyValue) -> AnyValue:
        framework = self._framework
        value, variable = self._replace(binding.value), binding.var
        handle = handle_of(variable)
        if handle not in self.seen:
            type_ = framework.type_of(variable)
            variable = framework.relax.DataflowVar(name_of(variable), type_)
            self._own[handle] = variable
        if isinstance(binding, framework.relax.MatchCast):
            return framework.relax.MatchCast(variable, value, framework.type_of(binding))
        return framework.relax.VarBinding(variable, value)

    def _replace(self, expr: AnyValue) -> AnyValue:
        """Return an expression of the variables that blocks have as their own."""
        relax = self._framework.relax
        if isinstance(expr, relax.Var):
            return self._own.get(handle_of(expr), expr)
        if isinstance(expr, relax.Call):
            args = [self._replace(each) for each in expr.args]
            return relax.Call(expr.op, args, expr.attrs, self._framework.type_args(expr))
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self._replace(each) for each in expr.fields])
        if isinstance(expr, relax.TupleGetItem):
            return relax.TupleGetItem(self._replace(expr.tuple_value), expr.index)
        if isinstance(expr, relax.If):
            branches = self.rebuild(expr.true_branch), self.rebuild(expr.false_branch)
            return relax.If(self._replace(expr.cond), *branches)
        return expr

"""Stacks of recurrent layers in frameworks that have whole stacks as one operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import serde.relay as relay
from serde.core.records import dataclass
from serde.relay.ir import Call, Constant, Expr, Function, OpDef, Tuple, TupleGetItem, Var
from serde.relay.ir.visit import children, post_order, rewrite_function
from serde.relay.transform.base import FunctionPass

__all__ = ["MergeStacks", "is_given"]


@dataclass(frozen=True)
class MergeStacks(FunctionPass):
    """Make one stack of stacks of which each is fed by all of the one below and nothing else is.

    A stack is a call of data, weights, and states and cells before the first step, empty tuples
    where there are none; its results are the outputs and the states after the last step.

    Attributes:
        stack: The operator, with the attributes ``mode``, ``hidden_size``, ``num_layers``,
            ``bidirectional`` and ``projection_size``.
        fits: Whether the weights of one stack can follow those of another.
        merge: Returns the results of one stack for several.
    """

    name: ClassVar[str] = "MergeStacks"
    stack: OpDef
    fits: Callable[[Call, Call], bool]
    merge: Callable[[Sequence[Call]], list[Expr]]

    def transform(self, function: Function) -> Function:
        """Merge the longest chains."""
        chains = self._chains(function)
        if not chains:
            return function
        place = {each: (chain, i) for chain in chains for i, each in enumerate(chain)}
        memo: dict[Expr, Expr] = {}
        merged: dict[Call, list[Expr]] = {}

        def replace(old: Expr, new: Expr) -> Expr:
            if not isinstance(old, TupleGetItem) or old.tuple_value not in place:
                return new
            chain, level = place[old.tuple_value]
            if old.index == 0 and level < len(chain) - 1:
                return new
            head = memo[chain[0]]
            if chain[0] not in merged and isinstance(head, Call):
                merged[chain[0]] = self.merge([head, *chain[1:]])
            whole = merged[chain[0]][old.index]
            if old.index == 0:
                return whole
            rows = 2 if chain[0].attrs["bidirectional"] else 1
            layers = [each.attrs["num_layers"] * rows for each in chain]
            begin = sum(layers[:level])
            return relay.strided_slice(whole, [begin], [begin + layers[level]], [1], axes=[0])

        return rewrite_function(function, replace, memo)

    def _chains(self, function: Function) -> list[list[Call]]:
        """Return the stacks that follow each other, each alone reading the outputs below."""
        nodes = post_order(function.body)
        readers: dict[Expr, list[Expr]] = {}
        for node in nodes:
            for child in children(node):
                below = child.tuple_value if isinstance(child, TupleGetItem) else None
                if isinstance(child, TupleGetItem) and child.index == 0 and self._is_stack(below):
                    readers.setdefault(child.tuple_value, []).append(node)
        above: dict[Call, Call] = {}
        for below, (upper, *others) in readers.items():
            if others or not isinstance(below, Call) or not isinstance(upper, Call):
                continue
            if self._joins(below, upper):
                above[below] = upper
        joined = set(above.values())
        chains = []
        for node in nodes:
            if isinstance(node, Call) and node in above and node not in joined:
                chain = [node]
                while chain[-1] in above:
                    chain.append(above[chain[-1]])
                chains.append(chain)
        return chains

    def _is_stack(self, node: Expr | None) -> bool:
        return isinstance(node, Call) and node.op is self.stack

    def _joins(self, below: Call, above: Call) -> bool:
        """Whether one stack goes on as the other begins, and takes its states from elsewhere."""
        if not self._is_stack(above) or any(below.attrs[n] != above.attrs[n] for n in _ALIKE):
            return False
        data, _, *states = above.args
        entering = isinstance(data, TupleGetItem) and data.tuple_value is below
        absent = [each.fields == () if isinstance(each, Tuple) else False for each in states]
        other = [each.fields == () if isinstance(each, Tuple) else False for each in below.args[2:]]
        given = all(is_given(each, self.stack) for each in states)
        return entering and absent == other and given and self.fits(below, above)


_ALIKE: Final = ("mode", "hidden_size", "bidirectional", "projection_size")

_NEAR: Final = 500
"""So many nodes are looked at to tell where a state comes from."""


def is_given(x: Expr, stack: OpDef) -> bool:
    """Whether a tensor is a parameter or constant, or parts of these, looked at a little."""
    pending, seen = [x], 0
    while pending:
        node = pending.pop()
        seen += 1
        if isinstance(node, (Var, Constant, OpDef)):
            continue
        if seen > _NEAR or (isinstance(node, Call) and node.op is stack):
            return False
        pending.extend(children(node))
    return True

"""Groups of units as functions of their own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from serde.core.weights import Weight
from serde.relay.ir import IRModule, ModelMeta, RelayModel, rewrite
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, Span, Tuple, Var
from serde.target.units import Unit, UnitGraph

__all__ = ["Cutting", "keep"]


def keep(_node: Expr, new: Expr) -> Expr:
    """Return a node as it is with its new children."""
    return new


class Cutting:
    """Which tensors go between groups of units, and what each group is by itself.

    Args:
        model: The model.
        graph: Its ``main`` as units.
        groups: Number of each unit's group, None for what is in none; the numbers are those of
            the order of evaluation, from 0 on.

    Attributes:
        groups: Likewise.
        members: The units of each group, in the order of evaluation.
        inputs: The tensors and weights that each group reads from outside.
        outputs: The tensors of each group that are read outside.
    """

    def __init__(self, model: RelayModel, graph: UnitGraph, groups: list[int | None]) -> None:
        self.model = model
        self.graph = graph
        self.groups = groups
        count = max((number for number in groups if number is not None), default=-1) + 1
        self.members: list[list[Unit]] = [[] for _ in range(count)]
        for unit in graph.units:
            number = groups[unit.number]
            if number is not None:
                self.members[number].append(unit)
        self.inputs: list[dict[Expr, None]] = [{} for _ in range(count)]
        self.outputs: list[dict[Expr, None]] = [{} for _ in range(count)]
        for unit in graph.units:
            for leaf in unit.operands:
                self._connect(leaf, groups[unit.number])
        for leaf in graph.results:
            self._connect(leaf, None)

    def is_weight(self, leaf: Expr) -> bool:
        """Whether an expression is a weight of the model."""
        return isinstance(leaf, Var) and leaf.name_hint in self.model.params

    def fed(self, number: int) -> list[Expr]:
        """Return the tensors that a group reads from outside, weights aside."""
        return [leaf for leaf in self.inputs[number] if not self.is_weight(leaf)]

    def _connect(self, leaf: Expr, reader: int | None) -> None:
        """Note that a group, or what is in none, reads a tensor."""
        if isinstance(leaf, Constant):
            return
        unit = self.graph.producer(leaf)
        source = None if unit is None else self.groups[unit.number]
        if source == reader and (unit is not None or reader is None):
            return
        if reader is not None:
            self.inputs[reader][leaf] = None
        if source is not None:
            self.outputs[source][leaf] = None

    def part(
        self,
        number: int,
        prefix: str,
        *,
        numbered: bool = False,
        others: Mapping[GlobalVar, Function] | None = None,
    ) -> RelayModel:
        """Return a group as a model of its own.

        Args:
            number: Its number.
            prefix: What the names of its inputs and outputs begin with.
            others: The global functions that it may call.
            numbered: Whether every node has the number of its unit for a name.
        """
        memo: dict[Expr, Expr] = {}
        params: dict[str, Weight] = {}
        free = self._free_names(f"{prefix}_i")
        for leaf in self.inputs[number]:
            if isinstance(leaf, Var) and leaf.name_hint in self.model.params:
                params[leaf.name_hint] = self.model.params[leaf.name_hint]
                memo[leaf] = Var(leaf.name_hint, leaf.type, leaf.span)
            else:
                memo[leaf] = Var(next(free), leaf.type, leaf.span)
        variables = [each for each in memo.values() if isinstance(each, Var)]
        outputs = list(self.outputs[number])
        owner = self._owners(number) if numbered else {}

        def replace(node: Expr, new: Expr) -> Expr:
            return _rename(new, f"unit{owner[node]}") if node in owner else new

        root = outputs[0] if len(outputs) == 1 else Tuple(outputs)
        body = rewrite(root, replace, memo)
        main = Function(variables, body)
        mod = IRModule({GlobalVar("main", main.type): main, **(others or {})}, checked=True)
        names = tuple(itertools.islice(self._free_names(f"{prefix}_o"), len(outputs)))
        inputs = tuple(each.name_hint for each in variables if each.name_hint not in params)
        return RelayModel(mod, params, ModelMeta(inputs, names))

    def _free_names(self, prefix: str) -> Iterator[str]:
        """Yield numbered names that no weight has."""
        names = (f"{prefix}{index}" for index in itertools.count())
        return (name for name in names if name not in self.model.params)

    def _owners(self, number: int) -> dict[Expr, int]:
        return {
            node: unit.number
            for unit in self.members[number]
            for node in (unit.inner or (unit.root,))
        }


def _rename(node: Expr, name: str) -> Expr:
    """Return a call under another name."""
    if not isinstance(node, Call):
        return node
    renamed = Call(node.op, node.args, node.attrs, span=Span(name))
    renamed.type = node.type
    return renamed

"""What of a model the inputs of a check reached: sides of clips, thresholds, branches.

A part that no input reaches computes nothing: a target without it gives the same numbers. The
exact run tells (:class:`serde.relay.ir.traits.Cases` says what an operator's parts are), so that
inputs can be drawn that reach more, and what stays out of reach can be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any as AnyValue

import numpy as np

from serde.relay.ir import Call, Cases, Expr, Function, If, OpDef, all_nodes, has_trait
from serde.relay.run.arithmetic import Application, Exact

__all__ = ["ObservedExact", "has_cases"]


def has_cases(functions: Iterable[Function]) -> bool:
    """Whether a graph has parts that inputs may not reach."""
    nodes = all_nodes(*(function.body for function in functions))
    return any(isinstance(node, If) or has_trait(node, Cases) for node in nodes)


class ObservedExact(Exact):
    """Computes exactly, and keeps in mind which parts of operators any run has reached.

    Attributes:
        largest: The largest finite magnitude of any result.
    """

    def __init__(self) -> None:
        self._reached: dict[Call, dict[str, bool]] = {}
        self._called: set[Call] = set()
        self.largest = 0.0

    def apply(self, made: Application) -> AnyValue:
        """Return what the operator yields in float64."""
        self._called.add(made.node)
        said = made.definition.trait(Cases)
        if said is None:
            value = super().apply(made)
        else:
            given: list[AnyValue] = []

            def kept(op: OpDef, wide: Sequence[AnyValue], values: AnyValue) -> AnyValue:
                given.extend(wide)
                return made.run(op, wide, values)

            value = super().apply(replace(made, run=kept))
            known = self._reached.setdefault(made.node, {})
            for part, reached in said.rule(made.attrs, given, value):
                known[part] = known.get(part, False) or reached
        self._measure(value)
        return value

    def copy(self) -> tuple[AnyValue, ...]:
        """Return what was reached so far, for :meth:`restore`."""
        return {node: dict(parts) for node, parts in self._reached.items()}, set(self._called)

    def restore(self, known: tuple[AnyValue, ...]) -> None:
        """Forget what was reached since."""
        self._reached, self._called = known

    def missed(self, functions: Iterable[Function]) -> list[str]:
        """Return what no run has reached, as ``clip relu6_1: above 6``, or ``branch ...``."""
        nodes = all_nodes(*(function.body for function in functions))
        found = []
        for node in nodes:
            if isinstance(node, If):
                found += [f"branch {_name(node)}: {side}" for side in self._untaken(node)]
            elif isinstance(node, Call):
                said = node.op.trait(Cases) if isinstance(node.op, OpDef) else None
                parts = self._reached.get(node, {})
                noun = "" if said is None else said.noun
                found += [
                    f"{noun} {_name(node)}: {p}" for p, reached in parts.items() if not reached
                ]
        return found

    def _untaken(self, node: If) -> Iterator[str]:
        """Yield the sides of a branch of which no operator was called, though it has some."""
        sides = (("true", node.true_branch), ("false", node.false_branch))
        calls = {side: _calls(branch) for side, branch in sides}
        for side, other in (("true", "false"), ("false", "true")):
            own = calls[side] - calls[other]
            if own and not own & self._called:
                yield side

    def _measure(self, value: AnyValue) -> None:
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(each, np.ndarray) and each.dtype.kind == "f" and each.size:
                finite = np.abs(each[np.isfinite(each)])
                self.largest = max(self.largest, float(finite.max(initial=0.0)))


def _calls(branch: Expr) -> set[Call]:
    return {node for node in all_nodes(branch) if isinstance(node, Call)}


def _name(node: Expr) -> str:
    if node.span is not None:
        return node.span.source_name
    return node.op.name if isinstance(node, Call) and isinstance(node.op, OpDef) else "if"

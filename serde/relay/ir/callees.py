"""Which functions of a module call which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from serde.relay.ir.bodies import all_nodes
from serde.relay.ir.expr import Call, GlobalVar
from serde.relay.ir.module import IRModule

__all__ = ["Callees", "callees_first", "find_callees", "recursive_functions"]

Callees = Mapping[GlobalVar, Sequence[GlobalVar]]
"""The functions that each function of a module calls, or holds as values."""


def find_callees(mod: IRModule) -> Callees:
    """Return what each function calls or names, in order of appearance."""
    names = {variable.name_hint: variable for variable in mod.functions}
    calls: dict[GlobalVar, list[GlobalVar]] = {}
    for variable, function in mod.functions.items():
        used = (node.op if isinstance(node, Call) else node for node in all_nodes(function))
        found = (names.get(u.name_hint) for u in used if isinstance(u, GlobalVar))
        calls[variable] = [callee for callee in found if callee is not None]
    return calls


def callees_first(calls: Callees) -> list[GlobalVar]:
    """Return the functions, each behind those it calls but for recursion."""
    order: list[GlobalVar] = []
    seen: set[GlobalVar] = set()
    for root in calls:
        stack: list[tuple[GlobalVar, Iterator[GlobalVar]]] = []
        if root not in seen:
            seen.add(root)
            stack.append((root, iter(calls[root])))
        while stack:
            variable, pending = stack[-1]
            callee = next((each for each in pending if each not in seen), None)
            if callee is None:
                order.append(variable)
                stack.pop()
            else:
                seen.add(callee)
                stack.append((callee, iter(calls[callee])))
    return order


def recursive_functions(calls: Callees, order: Sequence[GlobalVar]) -> set[GlobalVar]:
    """Return the functions on a cycle of calls (Kosaraju's second walk, callers backwards).

    Args:
        calls: Who calls whom.
        order: The functions, as :func:`callees_first` gives them.
    """
    callers: dict[GlobalVar, list[GlobalVar]] = {variable: [] for variable in calls}
    for variable, callees in calls.items():
        for callee in callees:
            callers[callee].append(variable)
    component: dict[GlobalVar, GlobalVar] = {}
    for root in reversed(order):
        pending = [root]
        while pending:
            variable = pending.pop()
            if variable not in component:
                component[variable] = root
                pending.extend(callers[variable])
    sizes: dict[GlobalVar, int] = {}
    for root in component.values():
        sizes[root] = sizes.get(root, 0) + 1
    return {v for v in calls if sizes[component[v]] > 1 or v in calls[v]}

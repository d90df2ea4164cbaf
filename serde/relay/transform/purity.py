"""Which calls must not be evaluated beforehand, and which nodes depend on constants alone."""

from __future__ import annotations

from collections.abc import Callable, Collection

from serde.relay.ir import OpDef, SymDim, all_nodes, carried, children, has_trait, post_order
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.traits import Decompresses, Foreign, Random, Trait

__all__ = [
    "closed_nodes", "compressed", "has_symbol", "is_random", "is_unrepeatable", "must_wait",
    "unpacks",
]  # fmt: skip


def is_random(call: Call) -> bool:
    """Whether a call draws numbers anew each time, and so does a loop around it.

    Relay's own random operators take a key and are functions of it; those without an operand
    called ``key`` draw.
    """
    return _has(call, Random)


def is_unrepeatable(call: Call) -> bool:
    """Whether a call must neither be merged with an equal one nor evaluated beforehand.

    That is so for random numbers, and for a foreign operator, of which nobody knows.
    """
    return _has(call, Random, Foreign)


def _has(call: Call, *kinds: type[Trait]) -> bool:
    bodies = carried(call)
    return has_trait(call, *kinds) or (
        bool(bodies) and any(has_trait(node, *kinds) for node in all_nodes(*bodies))
    )


def must_wait(call: Call) -> bool:
    """Whether a call must not be evaluated before the model runs.

    That is so for random numbers; for loops, which may take any time or never end; and for what
    unpacks compressed weights: evaluated beforehand, they would be several times as large, and a
    runtime would not know that they were compressed.
    """
    return has_trait(call, Decompresses, Random, Foreign) or bool(carried(call))


def unpacks(node: Expr) -> bool:
    """Whether a node makes a weight of what is compressed."""
    return has_trait(node, Decompresses)


def compressed(root: Expr, is_weight: Callable[[Var], bool]) -> list[Expr]:
    """Return what unpacks weights and constants, without what it unpacks them from.

    Args:
        root: Where to look.
        is_weight: Whether a variable stands for a weight.
    """
    closed: set[Expr] = set()
    inner: set[Expr] = set()
    nodes = []
    for node in post_order(root):
        below = children(node)
        if isinstance(node, Var):
            known = is_weight(node)
        else:
            known = isinstance(node, (Call, Constant, Tuple)) and closed.issuperset(below)
        if known:
            closed.add(node)
        if unpacks(node):
            inner.update(below)
            nodes += [node] if known else []
    return [node for node in nodes if node not in inner]


def closed_nodes(function: Function, weights: Collection[str]) -> set[Expr]:
    """Return the nodes whose value is known once the weights are.

    Args:
        function: The entry function.
        weights: Names of its parameters that are weights.
    """
    closed: set[Expr] = {param for param in function.params if param.name_hint in weights}
    for node in post_order(function)[:-1]:
        if isinstance(node, Constant) or (closed.issuperset(node.below) and _is_plain(node)):
            closed.add(node)
    return closed


def _is_plain(node: Expr) -> bool:
    if isinstance(node, Call):
        if not isinstance(node.op, OpDef) or must_wait(node):
            return False
        return not any(map(has_symbol, node.attrs.values()))
    return isinstance(node, (Tuple, TupleGetItem)) and not isinstance(node, Var)


def has_symbol(value: object) -> bool:
    """Whether an attribute has a length that only the inputs tell."""
    if isinstance(value, tuple):
        return any(map(has_symbol, value))
    return isinstance(value, SymDim)

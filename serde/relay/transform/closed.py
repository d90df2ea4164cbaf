"""Which nodes depend on weights and constants alone."""

from __future__ import annotations

from collections.abc import Collection

from serde.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.registry import OpDef
from serde.relay.transform.purity import must_wait
from serde.relay.visit import children, post_order

__all__ = ["closed_nodes"]


def closed_nodes(function: Function, weights: Collection[str]) -> set[Expr]:
    """Return the nodes whose value is known once the weights are.

    Args:
        function: The entry function.
        weights: Names of its parameters that are weights.
    """
    closed: set[Expr] = {param for param in function.params if param.name_hint in weights}
    for node in post_order(function.body):
        if isinstance(node, Constant) or (_is_plain(node) and _all_in(node, closed)):
            closed.add(node)
    return closed


def _is_plain(node: Expr) -> bool:
    if isinstance(node, Call):
        return isinstance(node.op, OpDef) and not must_wait(node)
    return isinstance(node, (Tuple, TupleGetItem)) and not isinstance(node, Var)


def _all_in(node: Expr, closed: set[Expr]) -> bool:
    return all(child in closed for child in children(node))

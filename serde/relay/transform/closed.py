"""Which nodes depend on weights and constants alone."""

from __future__ import annotations

from collections.abc import Collection

from serde.relay.ir.dims import SymDim
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import OpDef
from serde.relay.ir.visit import post_order
from serde.relay.transform.purity import must_wait

__all__ = ["closed_nodes"]


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
        return not any(map(_has_symbol, node.attrs.values()))
    return isinstance(node, (Tuple, TupleGetItem)) and not isinstance(node, Var)


def _has_symbol(value: object) -> bool:
    """Whether an attribute has a length that only the inputs tell."""
    if isinstance(value, tuple):
        return any(map(_has_symbol, value))
    return isinstance(value, SymDim)

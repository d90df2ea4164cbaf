"""Parts of a program as programs of their own."""

from __future__ import annotations

from serde.errors import RelayError
from serde.relay.ir import Call, Expr, IRModule, Tuple, TupleGetItem, Var, is_call
from serde.relay.ir.visit import post_order as operands_first
from serde.relay.tvm.analysis.variables import post_order

__all__ = ["extract_intermdeiate_expr", "search_fc_transpose"]


def extract_intermdeiate_expr(mod: IRModule, expr_id: int) -> IRModule:
    """Return a module that computes one intermediate value of ``main``; TVM spells it so.

    Args:
        mod: The module.
        expr_id: Which value: calls, tuples and fields of tuples are numbered in the order in
            which they are computed, as temporaries are in the text of ``main``.

    Raises:
        RelayError: There are not as many.
    """
    kinds = (Call, Tuple, TupleGetItem)
    values = [node for node in operands_first(mod["main"]) if isinstance(node, kinds)]
    if not 0 <= expr_id < len(values):
        raise RelayError(f"main has {len(values)} intermediate values, and none is {expr_id}")
    return IRModule.from_expr(values[expr_id])


def search_fc_transpose(expr: Expr) -> list[str]:
    """Return the names of weights that reach ``nn.dense`` through a ``transpose``."""
    found: dict[str, None] = {}
    for node in post_order(expr):
        if not is_call(node, "nn.dense"):
            continue
        weight = node.args[1]
        if is_call(weight, "transpose") and isinstance(weight.args[0], Var):
            found[weight.args[0].name_hint] = None
    return list(found)

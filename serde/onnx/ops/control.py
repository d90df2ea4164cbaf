"""Control flow."""

from __future__ import annotations

import onnx

import serde.relay as relay
from serde.onnx.context import ImportContext as ImportCtx
from serde.onnx.ops.table import OPS
from serde.relay.expr import Expr, If, Tuple, TupleGetItem
from serde.relay.transform.infer_type import infer_if


@OPS.imports("If", since=(1, 11, 13, 16, 19, 21, 23, 24, 25))
def import_if(
    ctx: ImportCtx,
    cond: Expr,
    *,
    then_branch: onnx.GraphProto,
    else_branch: onnx.GraphProto,
) -> list[Expr]:
    """A condition that is known leaves its branch only; one of one element counts as a scalar."""
    known = ctx.known(cond)
    if known is not None and known.size == 1:
        taken = then_branch if known.item() else else_branch
        return ctx.subgraph(taken, label="then" if known.item() else "else")
    scalar = relay.reshape(cond, newshape=()) if ctx.type(cond).rank else cond
    branches = ctx.subgraphs({"then": then_branch, "else": else_branch})
    single = all(len(branch) == 1 for branch in branches)
    yes, no = (branch[0] if single else Tuple(branch) for branch in branches)
    node = If(scalar, yes, no)
    node.type = infer_if(node)
    return [node] if single else [TupleGetItem(node, index) for index in range(len(branches[0]))]

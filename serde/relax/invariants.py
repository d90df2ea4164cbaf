"""What a loop computes in each turn alike, computed once."""

from __future__ import annotations

from collections.abc import Sequence

from serde.relax.export_context import ExportContext, Value
from serde.relay.ir.expr import Call, Expr, Function, Var
from serde.relay.ir.registry import call, get
from serde.relay.ir.types import FuncType, TensorType
from serde.relay.ir.visit import children, post_order, rewrite

__all__ = ["transpose_outside"]


def transpose_outside(
    ctx: ExportContext, body: Function, captures: Sequence[Value]
) -> tuple[Function, tuple[Value, ...]]:
    """Return a body whose dense layers take their weights as Relax multiplies by them.

    Relax has no layer that takes a weight transposed, so each turn would transpose it.

    Args:
        ctx: Where the loop is written.
        body: Its body.
        captures: Values of the last parameters of that.

    Returns:
        The body, and what it captures.
    """
    first = len(body.params) - len(captures)
    params, given = list(body.params), list(captures)
    layers: dict[Expr, Var] = {}
    for place, value in enumerate(captures, start=first):
        found = _layers_of(body, params[place])
        if not found:
            continue
        type_ = ctx.type(value)
        turned = TensorType(type_.shape[::-1], type_.dtype)
        given[place - first] = ctx.typed(ctx.emit("permute_dims", value), turned)
        own = body.params[place].checked_type
        shape = own.shape[::-1] if isinstance(own, TensorType) else turned.shape
        params[place] = Var(params[place].name_hint, TensorType(shape, type_.dtype))
        layers.update(dict.fromkeys(found, params[place]))
    if not layers:
        return body, tuple(captures)

    def multiply(node: Expr, new: Expr) -> Expr:
        weight = layers.get(node)
        if weight is None or not isinstance(new, Call):
            return new
        attributes = {key: new.attrs[key] for key in ("units", "out_dtype") if key in new.attrs}
        made = call("nn.matmul", new.args[0], weight, **attributes)
        made.span = new.span
        return made

    result = rewrite(body.body, multiply)
    made = Function(params, result, body.ret_type)
    made.type = FuncType([each.checked_type for each in params], result.checked_type)
    return made, tuple(given)


def _layers_of(body: Function, weight: Var) -> list[Call]:
    """Return the dense layers whose weight a parameter is; none where it is anything else too."""
    dense, found = get("nn.dense"), []
    for node in post_order(body.body):
        uses = sum(child is weight for child in children(node))
        if not uses:
            continue
        if not isinstance(node, Call) or node.op is not dense or uses > 1:
            return []
        if node.args[1] is not weight or _rank(node.args[0]) != 2:
            return []
        found.append(node)
    return found


def _rank(x: Expr) -> int:
    return x.type.rank if isinstance(x.type, TensorType) else -1

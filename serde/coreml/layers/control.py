"""Branches and layers of users."""

from __future__ import annotations

import serde.relay as relay
from serde.coreml.layers.table import LAYERS
from serde.coreml.networks import LayerContext as Ctx
from serde.coreml.networks import number
from serde.coreml.parts import Part
from serde.errors import Unsupported
from serde.relay.expr import Expr, If, Tuple, TupleGetItem
from serde.relay.types import TensorType


@LAYERS.imports("custom", ignored=["weights", "parameters", "description"])
def import_custom(ctx: Ctx, *xs: Expr, class_name: str = "") -> Expr:
    """What it does is in the code of an app."""
    raise Unsupported(f"a layer of the user's class {class_name}")


@LAYERS.imports("branch")
def import_branch(
    ctx: Ctx,
    condition: Expr,
    *,
    if_branch: Part | None = None,
    else_branch: Part | None = None,
) -> list[Expr]:
    """Tensors that both branches give, or that one gives anew, are those of the whole after it."""
    if if_branch is None:
        raise Unsupported("a branch without layers")
    before = ctx.values()
    one = ctx.network(if_branch)
    other = dict(before) if else_branch is None else ctx.network(else_branch)
    names = [
        name for name in one if name in other and not (one[name] is before.get(name) is other[name])
    ]
    for name in names:
        types = one[name].type, other[name].type
        if not all(isinstance(each, TensorType) for each in types) or types[0] != types[1]:
            raise Unsupported(f"{name} is {types[0]!r} in one branch and {types[1]!r} in the other")
    if not names:
        return []
    holds = relay.greater(relay.abs(condition), number(1e-6))
    if ctx.type(condition).rank:
        holds = relay.reshape(holds, ())
    found = If(holds, Tuple([one[name] for name in names]), Tuple([other[name] for name in names]))
    for index, name in enumerate(names):
        ctx.define(name, TupleGetItem(found, index))
    return []

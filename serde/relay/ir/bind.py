"""Values in the place of variables."""

from __future__ import annotations

from collections.abc import Mapping

from serde.errors import RelayError
from serde.relay.ir.expr import Expr, Function, Var
from serde.relay.ir.visit import bound_vars, free_vars, post_order, rewrite

__all__ = ["bind"]


def bind(expr: Expr, binds: Mapping[Var, Expr]) -> Expr:
    """Return `expr` with expressions for some of its variables.

    A function loses the parameters that get a value; variables that the values bring along become
    its last parameters. Otherwise variables are free.

    Args:
        expr: A function or another expression.
        binds: Expressions by variable, each a parameter of `expr` or free in it.

    Raises:
        RelayError: A variable is bound inside `expr`.
    """
    memo: dict[Expr, Expr] = dict(binds.items())
    if not isinstance(expr, Function):
        _refuse_inner(expr, binds)
        return rewrite(expr, lambda _node, new: new, memo)
    _refuse_inner(expr.body, binds)
    body = rewrite(expr.body, lambda _node, new: new, memo)
    params = [param for param in expr.params if param not in binds]
    if body is expr.body and len(params) == len(expr.params):
        return expr
    known = {*params, *free_vars(expr)}
    params += [variable for variable in free_vars(body) if variable not in known]
    return Function(params, body, expr.ret_type, expr.type_params, expr.attrs, expr.span)


def _refuse_inner(expr: Expr, binds: Mapping[Var, Expr]) -> None:
    for variable in bound_vars(post_order(expr)):
        if variable in binds:
            raise RelayError(f"%{variable.name_hint} is bound inside the expression")

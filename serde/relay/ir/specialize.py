"""Polymorphic functions for the types that they are called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serde.relay.ir.expr import Call, Expr, Function, Var
from serde.relay.ir.generic import find_type_args
from serde.relay.ir.types import FuncType, Type, TypeVar, bind_type_vars
from serde.relay.ir.visit import bound_vars, post_order, rewrite

__all__ = ["specialize", "specialize_for"]


def specialize(function: Function, types: Mapping[TypeVar, Type]) -> Function:
    """Return a function with types for its type parameters, and fresh bound variables.

    Args:
        function: A polymorphic function.
        types: What each of its type parameters stands for.
    """
    nodes = post_order(function)
    memo: dict[Expr, Expr] = {}
    for variable in bound_vars(nodes):
        annotation = variable.type_annotation
        bound = None if annotation is None else bind_type_vars(annotation, types)
        fresh = Var(variable.name_hint, bound, variable.span)
        if variable.type is not None:
            fresh.type = bind_type_vars(variable.type, types)
        memo[variable] = fresh

    def replace(node: Expr, new: Expr) -> Expr:
        if isinstance(new, Function):
            result = None if new.ret_type is None else bind_type_vars(new.ret_type, types)
            params = [each for each in new.type_params if each not in types]
            new = Function(new.params, new.body, result, params, new.attrs, new.span)
        elif new is node and isinstance(node, Call):
            new = Call(node.op, node.args, node.attrs, node.given_type_args, node.span)
        if node.type is not None and new is not node and not isinstance(node, Function):
            new.type = bind_type_vars(node.type, types)
        return new

    found = rewrite(function, replace, memo)
    return found if isinstance(found, Function) else function


def specialize_for(function: Function, args: Sequence[Expr], result: Type | None) -> Function:
    """Return a function as it is where it is called; itself where that is not known.

    Args:
        function: The function.
        args: The arguments of the call.
        result: The type of the call, where it is known.
    """
    if not function.type_params or not isinstance(function.type, FuncType):
        return function
    node = Call(function, args)
    node.type = result
    types = find_type_args(node, function.type)
    return function if types is None else specialize(function, types)

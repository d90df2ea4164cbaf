"""Type variables of expressions and of types."""

from __future__ import annotations

from collections.abc import Iterator

from serde.relay.analysis.variables import post_order
from serde.relay.ir.adt import Constructor
from serde.relay.ir.expr import Call, Expr, Function, TupleWrapper, Var
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import FuncType, Type, TypeVar, walk_type

__all__ = ["all_type_vars", "bound_type_vars", "free_type_vars"]


def free_type_vars(expr: Expr | TupleWrapper | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """Return the type variables that nothing in an expression or a type binds."""
    met, bound = _collect(expr, mod)
    return [each for each in met if each not in bound]


def bound_type_vars(expr: Expr | TupleWrapper | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """Return the type variables that functions, their types or data types bind.

    Args:
        expr: An expression or a type.
        mod: The module that defines data types whose constructors `expr` names.
    """
    return list(_collect(expr, mod)[1])


def all_type_vars(expr: Expr | TupleWrapper | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """Return all type variables in an expression or a type."""
    return list(_collect(expr, mod)[0])


Found = dict[TypeVar, None]


def _collect(expr: Expr | TupleWrapper | Type, mod: IRModule | None) -> tuple[Found, Found]:
    """Return the type variables that are met and those that are bound, each in order."""
    met: Found = {}
    bound: Found = {}
    if not isinstance(expr, (Expr, TupleWrapper)):
        _add_type(expr, met, bound)
        return met, bound
    for node in reversed(post_order(expr)):
        binds: tuple[TypeVar, ...] = ()
        if isinstance(node, Function):
            binds = node.type_params
        elif isinstance(node, Constructor) and mod is not None:
            binds = tuple(mod.type_definitions[node.belong_to].type_vars)
        bound.update(dict.fromkeys(binds))
        met.update(dict.fromkeys(binds))
        for type_ in _types(node):
            _add_type(type_, met, bound)
    return met, bound


def _types(node: Expr) -> Iterator[Type]:
    """Yield the types that a node itself states."""
    found: tuple[Type | None, ...] = ()
    if isinstance(node, Function):
        found = (*(param.type_annotation for param in node.params), node.ret_type)
    elif isinstance(node, Var):
        found = (node.type_annotation,)
    elif isinstance(node, Call):
        found = node.given_type_args or ()
    yield from (type_ for type_ in found if type_ is not None)


def _add_type(type_: Type, met: Found, bound: Found) -> None:
    for part in walk_type(type_):
        if isinstance(part, FuncType):
            bound.update(dict.fromkeys(part.type_params))
            met.update(dict.fromkeys(part.type_params))
        elif isinstance(part, TypeVar):
            met.setdefault(part)

"""Walks over expressions and types: every node, variables, type variables, dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from serde.relay.ir import Constructor, IRModule, Match, children
from serde.relay.ir.expr import Call, Expr, Function, Let, TupleWrapper, Var, astuple
from serde.relay.ir.types import FuncType, TensorType, TupleType, Type, TypeVar, walk_type

__all__ = [
    "all_dtypes", "all_type_vars", "all_vars", "bound_type_vars", "bound_vars",
    "free_type_vars", "free_vars", "parts", "post_order", "post_order_visit",
]  # fmt: skip


def parts(node: Expr) -> tuple[Expr, ...]:
    """Return what is directly below a node in TVM's order: a callee, then its operands."""
    return (node.op, *node.args) if isinstance(node, Call) else children(node)


def post_order(expr: Expr | TupleWrapper) -> list[Expr]:
    """Return every node of an expression once, operators too, each after what it needs."""
    root = astuple(expr)
    order: list[Expr] = []
    seen = {root}
    stack = [(root, iter(parts(root)))]
    while stack:
        node, pending = stack[-1]
        child = next((each for each in pending if each not in seen), None)
        if child is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(child)
            stack.append((child, iter(parts(child))))
    return order


def post_order_visit(expr: Expr | TupleWrapper, fvisit: Callable[[Expr], object]) -> None:
    """Call `fvisit` with every node of an expression once, each after what it needs.

    Args:
        expr: The expression.
        fvisit: The function; what it returns does not matter.
    """
    for node in post_order(expr):
        fvisit(node)


def _pre_order(expr: Expr | TupleWrapper) -> Iterator[Expr]:
    """Yield every node of an expression once, each before what is below it."""
    stack: list[Iterator[Expr]] = [iter((astuple(expr),))]
    seen: set[Expr] = set()
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
        elif node not in seen:
            seen.add(node)
            yield node
            stack.append(iter(parts(node)))


def _variables(expr: Expr | TupleWrapper) -> tuple[list[Var], list[Var]]:
    """Return all variables and those bound, both in the order in which they are met first."""
    met: dict[Var, None] = {}
    bound: dict[Var, None] = {}
    for node in _pre_order(expr):
        if isinstance(node, Var):
            met.setdefault(node)
        elif isinstance(node, Function):
            bound.update(dict.fromkeys(node.params))
        elif isinstance(node, Let):
            bound.setdefault(node.var)
        elif isinstance(node, Match):
            bound.update(dict.fromkeys(each for one in node.clauses for each in one.variables))
    return list(met), list(bound)


def free_vars(expr: Expr | TupleWrapper) -> list[Var]:
    """Return the variables that nothing in `expr` binds, in order of appearance."""
    met, bound = _variables(expr)
    hidden = set(bound)
    return [variable for variable in met if variable not in hidden]


def bound_vars(expr: Expr | TupleWrapper) -> list[Var]:
    """Return the variables that functions, lets and patterns bind, in order of appearance."""
    return _variables(expr)[1]


def all_vars(expr: Expr | TupleWrapper) -> list[Var]:
    """Return all variables in `expr`, in order of appearance."""
    return _variables(expr)[0]


def all_dtypes(expr: Expr | TupleWrapper) -> set[str]:
    """Return the dtypes of all tensors in a typed expression."""
    found: set[str] = set()
    pending: list[Type] = [node.type for node in post_order(expr) if node.type is not None]
    known: set[Type] = set()
    while pending:
        type_ = pending.pop()
        if type_ in known:
            continue
        known.add(type_)
        if isinstance(type_, TensorType):
            found.add(type_.dtype)
        elif isinstance(type_, TupleType):
            pending.extend(type_.fields)
        elif isinstance(type_, FuncType):
            pending.extend((*type_.arg_types, type_.ret_type))
    return found


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
    for node in _pre_order(expr):
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

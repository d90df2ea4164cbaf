"""Nodes again with some of their fields replaced, or with values in the place of variables.

What is None stays as it is. A node of which nothing changes is returned itself.
"""

# ruff: noqa: N802 (the names are TVM's)

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any as AnyValue, TypeVar as NodeVar

from serde.errors import RelayError
from serde.relay.ir.expr import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    Tuple,
    TupleGetItem,
    Var,
)
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.span import Span
from serde.relay.ir.types import Type, TypeVar
from serde.relay.ir.visit import bound_vars, free_vars, post_order, rewrite

__all__ = [
    "CallWithFields", "ConstantWithFields", "FunctionWithFields", "IfWithFields",
    "LetWithFields", "RefCreateWithFields", "RefReadWithFields", "RefWriteWithFields",
    "TupleGetItemWithFields", "TupleWithFields", "VarWithFields", "bind",
]  # fmt: skip

Node = NodeVar("Node", bound=Expr)


def _copy(node: Node, device: AnyValue, span: Span | None, **fields: AnyValue) -> Node:
    """Return a node with the fields that are not None."""
    if device is not None:
        raise RelayError("virtual devices of nodes have no counterpart here")
    old = {name: _field(node, name) for name in fields}
    new = {name: old[name] if value is None else value for name, value in fields.items()}
    if span in (None, node.span) and all(_same(old[name], new[name]) for name in fields):
        return node
    make: AnyValue = type(node)
    return make(**new, span=node.span if span is None else span)


def _field(node: Expr, name: str) -> AnyValue:
    given = isinstance(node, Call) and name == "type_args"
    return getattr(node, "given_type_args" if given else name)


def _same(old: AnyValue, new: AnyValue) -> bool:
    if isinstance(old, tuple) and isinstance(new, (tuple, list)):
        return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))
    return old is new


def ConstantWithFields(
    constant: Constant,
    data: AnyValue = None,
    virtual_device: AnyValue = None,
    span: Span | None = None,
) -> Constant:
    """Return a constant with other fields."""
    return _copy(constant, virtual_device, span, data=data)


def TupleWithFields(
    tup: Tuple,
    fields: Iterable[Expr] | None = None,
    virtual_device: AnyValue = None,
    span: Span | None = None,
) -> Tuple:
    """Return a tuple with other fields."""
    return _copy(tup, virtual_device, span, fields=fields)


def VarWithFields(
    variable: Var,
    vid: str | Var | None = None,
    type_annotation: Type | None = None,
    virtual_device: AnyValue = None,
    span: Span | None = None,
) -> Var:
    """Return another variable; `vid` is its name, or a variable that has it."""
    name = vid.name_hint if isinstance(vid, Var) else vid
    return _copy(variable, virtual_device, span, name_hint=name, type_annotation=type_annotation)


def CallWithFields(
    call: Call,
    op: Expr | None = None,
    args: Iterable[Expr] | None = None,
    attrs: Attrs | None = None,
    type_args: Iterable[Type] | None = None,
    virtual_device: AnyValue = None,
    span: Span | None = None,
) -> Call:
    """Return a call with other fields; its type is not inferred."""
    return _copy(call, virtual_device, span, op=op, args=args, attrs=attrs, type_args=type_args)


def LetWithFields(
    let: Let,
    var: Var | None = None,
    value: Expr | None = None,
    body: Expr | None = None,
    virtual_device: AnyValue = None,
    span: Span | None = None,
) -> Let:
    """Return a let with other fields."""
    return _copy(let, virtual_device, span, var=var, value=value, body=body)


def IfWithFields(
    if_expr: If,
    cond: Expr | None = None,
    true_branch: Expr | None = None,
    false_branch: Expr | None = None,
    virtual_device: AnyValue = None,
    span: Span | None = None,
) -> If:
    """Return a choice with other fields."""
    parts = {"cond": cond, "true_branch": true_branch, "false_branch": false_branch}
    return _copy(if_expr, virtual_device, span, **parts)


def TupleGetItemWithFields(
    tuple_get_item: TupleGetItem,
    tuple_value: Expr | None = None,
    index: int | None = None,
    virtual_device: AnyValue = None,
    span: Span | None = None,
) -> TupleGetItem:
    """Return a field of a tuple with other fields."""
    return _copy(tuple_get_item, virtual_device, span, tuple_value=tuple_value, index=index)


def RefCreateWithFields(
    ref_create: RefCreate,
    value: Expr | None = None,
    virtual_device: AnyValue = None,
    span: Span | None = None,
) -> RefCreate:
    """Return what makes a reference, with other fields."""
    return _copy(ref_create, virtual_device, span, value=value)


def RefReadWithFields(
    ref_read: RefRead,
    ref: Expr | None = None,
    virtual_device: AnyValue = None,
    span: Span | None = None,
) -> RefRead:
    """Return what reads a reference, with other fields."""
    return _copy(ref_read, virtual_device, span, ref=ref)


def RefWriteWithFields(
    ref_write: RefWrite,
    ref: Expr | None = None,
    value: Expr | None = None,
    virtual_device: AnyValue = None,
    span: Span | None = None,
) -> RefWrite:
    """Return what writes a reference, with other fields."""
    return _copy(ref_write, virtual_device, span, ref=ref, value=value)


def FunctionWithFields(
    function: Function,
    params: Iterable[Var] | None = None,
    body: Expr | None = None,
    ret_type: Type | None = None,
    ty_params: Iterable[TypeVar] | None = None,
    attrs: Mapping[str, AnyValue] | None = None,
    virtual_device: AnyValue = None,
    span: Span | None = None,
) -> Function:
    """Return a function with other fields."""
    fields = {"params": params, "body": body, "ret_type": ret_type, "type_params": ty_params}
    return _copy(function, virtual_device, span, **fields, attrs=attrs)


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
    return expr.evolve(params=params, body=body)


def _refuse_inner(expr: Expr, binds: Mapping[Var, Expr]) -> None:
    for variable in bound_vars(post_order(expr)):
        if variable in binds:
            raise RelayError(f"%{variable.name_hint} is bound inside the expression")

"""Models whose inputs and outputs are declared otherwise than they are computed with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from serde.relay.ir import IRModule, OpDef, RelayModel, TensorType, TupleType, rewrite
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var

__all__ = ["Inner", "rewrite_interface", "uncast"]

Inner: TypeAlias = tuple[Var, Expr]
"""An input as it is declared, and what stands for it inside of the model."""


def rewrite_interface(
    model: RelayModel,
    inner: Callable[[Var, TensorType], Inner | None],
    outer: Callable[[int, Expr, TensorType], Expr],
) -> RelayModel:
    """Return a model with other inputs and outputs.

    Args:
        model: The model.
        inner: Returns another variable for an input, and what stands for the input inside;
            None to leave it.
        outer: Returns what an output becomes.
    """
    main = model.main
    memo: dict[Expr, Expr] = {}
    params = list(main.params)
    for index, param in enumerate(params):
        if param.name_hint in model.params or not isinstance(param.type, TensorType):
            continue
        found = inner(param, param.type)
        if found is not None:
            params[index], memo[param] = found
    inside = set(memo.values())

    def shorten(_node: Expr, new: Expr) -> Expr:
        short = uncast(new) if _cast_of(new) in inside else None
        return new if short is None else short

    body = rewrite(main.body, shorten, memo) if memo else main.body
    if isinstance(body.type, TupleType) and not isinstance(body, Tuple):
        body = Tuple([TupleGetItem(body, index) for index in range(len(body.type.fields))])
    fields = list(body.fields) if isinstance(body, Tuple) else [body]
    ends = [
        outer(index, each, each.type) if isinstance(each.type, TensorType) else each
        for index, each in enumerate(fields)
    ]
    if ends == fields and not memo:
        return model
    result = Tuple(ends) if isinstance(body, Tuple) else ends[0]
    return model.evolve(mod=IRModule({"main": Function(params, result)}))


def _cast_of(node: Expr) -> Expr | None:
    """Return what a cast is of, if it is a cast."""
    whole = isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name == "cast"
    return node.args[0] if whole and isinstance(node, Call) else None


def uncast(node: Expr) -> Expr | None:
    """Return the value that a cast of a wider copy of it gives back, if it is one."""
    copy = _cast_of(node)
    value = None if copy is None else _cast_of(copy)
    if value is None or copy is None:
        return None
    types = value.type, copy.type, node.type
    if not all(isinstance(each, TensorType) for each in types) or types[0] != types[2]:
        return None
    pair = [each.dtype for each in types[:2] if isinstance(each, TensorType)]
    return value if pair == ["float16", "float32"] else None

"""Loops as TVM's users write them: a condition and new values, as a function that calls itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from serde.errors import TypeInferenceError
from serde.relay.ir.expr import Call, Expr, Function, If, Let, Tuple, Var, astuple
from serde.relay.ir.types import FuncType, TupleType

__all__ = ["while_loop"]


def while_loop(
    cond: Callable[..., Expr],
    loop_vars: Sequence[Expr],
    loop_bodies: Callable[..., Sequence[Expr] | Expr],
) -> Let:
    """Return a function that computes new values while a condition holds, and yields the last.

    Call it with the first values: ``while_loop(...)(first, second)`` is a tuple of the last ones.
    ``transform.RaiseRecursion`` turns it into ``serde.loop``.

    Args:
        cond: Gets the variables of the loop; returns a scalar of bool.
        loop_vars: Typed expressions, one for each variable, which takes its type and name; a
            length that changes is anonymous.
        loop_bodies: Gets the variables of the loop; returns the next value of each.

    Raises:
        TypeInferenceError: A variable has no type, or there is not one value for each variable.
    """
    types = [variable.type for variable in loop_vars if variable.type is not None]
    if len(types) != len(loop_vars):
        raise TypeInferenceError("while_loop: every variable needs a type")
    names = [
        each.name_hint if isinstance(each, Var) else f"arg{index}"
        for index, each in enumerate(loop_vars)
    ]
    variables = [Var(name, type_) for name, type_ in zip(names, types, strict=True)]
    following = loop_bodies(*variables)
    if isinstance(following, Expr):
        following = following.fields if isinstance(following, Tuple) else (following,)
    if len(following) != len(types):
        raise TypeInferenceError(
            f"while_loop: expected {len(types)} new values, found {len(following)}"
        )
    result = TupleType(types)
    loop = Var("while_loop", FuncType(types, result))
    again = Call(loop, [astuple(value) for value in following])
    again.type = result
    choice = If(cond(*variables), again, Tuple(variables))
    return Let(loop, Function(variables, choice, result), loop)

"""What importers of conditionals and loops make of the graphs inside a node."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import Unsupported
from serde.relay.ir import (
    Expr,
    Function,
    If,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    call,
    infer_function,
    infer_if,
    instantiate,
)

__all__ = ["as_scalar", "choose_branch", "infer_closure", "make_loop_body", "only_result"]


def choose_branch(test: Expr, yes: Sequence[Expr], no: Sequence[Expr]) -> list[Expr]:
    """Return the results of a conditional, of which the branches give equally many."""
    single = len(yes) == len(no) == 1
    one, other = (each[0] if single else Tuple(each) for each in (yes, no))
    node = If(test, one, other)
    node.type = infer_if(node)
    return [node] if single else [TupleGetItem(node, i) for i in range(len(yes))]


def only_result(results: Sequence[Expr]) -> Expr:
    """Return what a condition gives.

    Raises:
        Unsupported: It gives more, or nothing.
    """
    if len(results) != 1:
        raise Unsupported(f"a condition of {len(results)} results")
    return results[0]


def as_scalar(x: Expr) -> Expr:
    """Return a tensor of one element without axes."""
    rank = x.type.rank if isinstance(x.type, TensorType) else 0
    return call("reshape", x, newshape=()) if rank else x


def infer_closure(closure: tuple[Function, list[Expr]]) -> tuple[Function, list[Expr]]:
    """Return a graph as a function that has its type, and what it captures."""
    function, captures = closure
    return function if function.type is not None else infer_function(function), captures


def make_loop_body(state: Sequence[Var], step: Function, test: Function) -> Function:
    """Return the body of a loop: whether to go on, and the next variables."""
    inner, outer = step.params[len(state) :], test.params[len(state) :]
    following = instantiate(step, [*state, *inner])
    fields = following.fields if isinstance(following, Tuple) else (following,)
    kept = [Var(each.name_hint, each.type) for each in outer]
    asked = instantiate(test, [*fields, *kept])
    question = asked.fields[0] if isinstance(asked, Tuple) else asked
    number = Var("i", TensorType((), "int64"))
    result = Tuple([as_scalar(question), *fields])
    return infer_function(Function([number, *state, *inner, *kept], result))

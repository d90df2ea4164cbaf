"""Loops that end when a counter reaches a bound, as loops with a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from serde.core.records import dataclass
from serde.relay.ir import (
    OpDef,
    Reshape,
    TensorType,
    call,
    has_trait,
    infer_function,
    is_absent,
    is_call,
)
from serde.relay.ir.bodies import substitute
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var, const
from serde.relay.ir.visit import rewrite_function
from serde.relay.transform.base import FunctionPass

__all__ = ["CountLoops"]

_SWAPPED = {"greater": "less", "greater_equal": "less_equal"}


class CountLoops(FunctionPass):
    """Give a ``serde.loop`` without a limit the one that its condition amounts to.

    That is where a state begins at a constant integer, grows by a constant in each iteration, and
    the loop goes on as long as it is below a constant. The state is then made of the number of
    the iteration, and the loop goes on unless something else ends it.
    """

    name: ClassVar[str] = "CountLoops"
    changes: ClassVar[Sequence[str | type]] = ("serde.loop",)

    def transform(self, function: Function) -> Function:
        """Rewrite loops bottom-up."""
        return rewrite_function(function, lambda _node, new: _rewrite_loop(new) or new)


@dataclass(frozen=True)
class _Count:
    """A state that counts: its place, where it begins, its step, and the number of iterations."""

    place: int
    begin: Constant
    step: int
    iterations: int


def _rewrite_loop(node: Expr) -> Expr | None:
    """Return what stands for a loop whose iterations are counted by a state; None for others."""
    if not is_call(node, "serde.loop"):
        return None
    limit, going, state, captures = node.args
    body = node.attrs["body"]
    if not isinstance(limit, Tuple) or not isinstance(state, Tuple):
        return None
    if not isinstance(captures, Tuple) or not isinstance(body.body, Tuple):
        return None
    begins = isinstance(going, Constant) and bool(going.data.all())
    if not begins and not is_absent(going):
        return None
    found = _count(body, state, captures)
    # Without a condition before it the first iteration takes place in any case.
    if found is None or found.iterations < 1:
        return None
    return _with_limit(node, body, state, captures, found)


def _count(body: Function, state: Tuple, captures: Tuple) -> _Count | None:
    """Return the state that counts up to a bound, and how often; None if none does."""
    again, *following = body.body.fields if isinstance(body.body, Tuple) else ()
    outer = dict(zip(body.params[1 + len(state) :], captures.fields, strict=True))
    question = _strip_reshapes(again)
    if not isinstance(question, Call) or len(question.args) != 2:
        return None
    name = question.op.name if isinstance(question.op, OpDef) else ""
    left, right = (_strip_reshapes(each) for each in question.args)
    if name in _SWAPPED:
        name, left, right = _SWAPPED[name], right, left
    bound = _integer(outer.get(right, right) if isinstance(right, Var) else right)
    if name not in ("less", "less_equal") or bound is None:
        return None
    for index, begin in enumerate(state.fields):
        step = _step(following[index], body.params[1 + index])
        first = _integer(begin)
        if (
            _strip_reshapes(following[index]) is not left
            or step is None
            or first is None
            or step < 1
        ):
            continue
        if first < np.iinfo(np.int32).min:
            continue
        last = bound if name == "less" else bound + 1
        iterations = -(-(last - first) // step)
        if not isinstance(begin, Constant) or not _holds(begin, first + step * iterations):
            return None
        return _Count(index, begin, step, iterations)
    return None


def _holds(like: Constant, value: int) -> bool:
    """Whether the dtype of a constant has a number, where it would start again from the least."""
    return value <= np.iinfo(like.data.dtype).max


def _strip_reshapes(x: Expr) -> Expr:
    """Return what an expression of one element holds, whatever its axes and width."""
    while isinstance(x, Call) and (is_call(x, "cast") or has_trait(x, Reshape)):
        if not _single(x) or not _keeps(x, x.args[0]):
            break
        x = x.args[0]
    return x


def _single(x: Expr) -> bool:
    return isinstance(x.type, TensorType) and all(dim == 1 for dim in x.type.shape)


def _keeps(x: Expr, source: Expr) -> bool:
    """Whether the dtype of `x` holds every number of another's, or at least those that count."""
    if not isinstance(x.type, TensorType) or not isinstance(source.type, TensorType):
        return False
    dtype, given = x.type.dtype, source.type.dtype
    if given == "bool" or dtype == given:
        return "int" in given or given == "bool"
    return "int" in given and dtype in ("int32", "int64")


def _integer(x: Expr) -> int | None:
    if isinstance(x, Constant) and x.data.size == 1 and x.data.dtype.kind in "iu":
        return int(x.data.reshape(()))
    return None


def _step(following: Expr, param: Var) -> int | None:
    """Return by how much a state grows; None where it does something else."""
    total = _strip_reshapes(following)
    if not is_call(total, "add") or not _single(total):
        return None
    left, right = (_strip_reshapes(each) for each in total.args)
    if right is param:
        left, right = right, left
    return _integer(right) if left is param else None


def _with_limit(node: Call, body: Function, state: Tuple, captures: Tuple, found: _Count) -> Expr:
    """Return the fields of a loop with a limit and without the state that counts."""
    number, place = body.params[0], found.place
    counter = body.params[1 + place]
    dtype = found.begin.data.dtype
    passed = call("cast", number, dtype=dtype)
    value = call("add", found.begin, call("multiply", passed, const(found.step, dtype.name)))
    fields = body.body.fields if isinstance(body.body, Tuple) else ()
    kept = [index for index in range(len(state)) if index != place]
    stacks = range(len(state), len(fields) - 1)
    result = Tuple([const(True, "bool"), *(fields[1 + i] for i in (*kept, *stacks))])
    params = [number, *(body.params[1 + i] for i in kept), *body.params[1 + len(state) :]]
    inner = infer_function(Function(params, substitute(result, {counter: value})))
    loop = call(
        "serde.loop", const(found.iterations, "int64"), None, tuple(state.fields[i] for i in kept),
        captures.fields, body=inner, span=node.span,
    )  # fmt: skip
    last = Constant(np.asarray(found.begin.data + dtype.type(found.step * found.iterations), dtype))
    results: list[Expr] = [TupleGetItem(loop, i) for i in range(len(fields) - 2)]
    results.insert(place, last)
    return Tuple(results)

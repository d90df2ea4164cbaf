"""Branches, loops and calls of other graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.bodies import instantiate
from serde.relay.ir.expr import Expr, Function, If, Tuple, TupleGetItem, Var
from serde.relay.ir.infer import infer_function, infer_if
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.op.control.body import join, results
from serde.tflite.ops.table import OPS, ImportContext


@OPS.imports("IF")
def import_if(
    ctx: ImportContext,
    condition: Expr,
    *values: Expr,
    then_subgraph_index: int = 0,
    else_subgraph_index: int = 0,
) -> Sequence[Expr]:
    """A condition that is known leaves its branch only."""
    known = ctx.known(condition)
    if known is not None and known.size == 1:
        taken = then_subgraph_index if known.item() else else_subgraph_index
        return ctx.subgraph(taken, *values)
    branches = [
        ctx.subgraph(each, *values, label=label)
        for each, label in ((then_subgraph_index, "then"), (else_subgraph_index, "else"))
    ]
    single = all(len(branch) == 1 for branch in branches)
    yes, no = (branch[0] if single else Tuple(branch) for branch in branches)
    node = If(_scalar(condition), yes, no)
    node.type = infer_if(node)
    return [node] if single else [TupleGetItem(node, i) for i in range(len(branches[0]))]


@OPS.imports("CALL")
def import_call(ctx: ImportContext, *values: Expr, subgraph: int = 0) -> Sequence[Expr]:
    return ctx.subgraph(subgraph, *values)


@OPS.imports("STABLEHLO_COMPOSITE", ignored=("name", "version", "composite_attributes_format"))
def import_composite(
    ctx: ImportContext,
    *values: Expr,
    decomposition_subgraph_index: int = 0,
    composite_attributes: AnyValue = None,
) -> Sequence[Expr]:
    """What it is made of counts."""
    return ctx.subgraph(decomposition_subgraph_index, *values)


@OPS.imports("WHILE")
def import_while(
    ctx: ImportContext, *values: Expr, cond_subgraph_index: int = 0, body_subgraph_index: int = 0
) -> Sequence[Expr]:
    """The condition is a graph of its own: it is asked before the loop, and at its end."""
    types = [ctx.type(each) for each in values]
    going = ctx.fold(_scalar(ctx.subgraph(cond_subgraph_index, *values, label="cond")[0]))
    while True:
        again, state = _variables(types), _variables(types)
        test, more = _inferred(ctx.closure(cond_subgraph_index, again, label="cond"))
        step, captures = _inferred(ctx.closure(body_subgraph_index, state, label="body"))
        later = results(step)
        if len(later) != len(types):
            raise Unsupported(f"a loop of {len(types)} variables whose body gives {len(later)}")
        joined = [join(ctx.type(a), b) for a, b in zip(values, later, strict=True)]
        if joined == types:
            break
        types = [each for each in joined if isinstance(each, TensorType)]
    body = _loop_body(state, step, test)
    found = call("serde.loop", None, going, list(values), (*captures, *more), body=body)
    return [TupleGetItem(found, index) for index in range(len(types))]


def _variables(types: Sequence[TensorType]) -> list[Var]:
    return [Var(f"state{i}", type_) for i, type_ in enumerate(types)]


def _inferred(closure: tuple[Function, list[Expr]]) -> tuple[Function, list[Expr]]:
    function, captures = closure
    return function if function.type is not None else infer_function(function), captures


def _scalar(x: Expr) -> Expr:
    rank = x.type.rank if isinstance(x.type, TensorType) else 0
    return relay.reshape(x, newshape=()) if rank else x


def _loop_body(state: Sequence[Var], step: Function, test: Function) -> Function:
    """Return the body of a loop in Relay: whether to go on, and the next variables."""
    inner, outer = step.params[len(state) :], test.params[len(state) :]
    following = instantiate(step, [*state, *inner])
    fields = following.fields if isinstance(following, Tuple) else (following,)
    kept = [Var(each.name_hint, each.type) for each in outer]
    asked = instantiate(test, [*fields, *kept])
    question = asked.fields[0] if isinstance(asked, Tuple) else asked
    number = Var("i", TensorType((), "int64"))
    result = Tuple([_scalar(question), *fields])
    return infer_function(Function([number, *state, *inner, *kept], result))

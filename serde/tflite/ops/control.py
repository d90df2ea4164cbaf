"""Branches, loops and calls of other graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Any, TensorType, call
from serde.relay.ir.expr import Expr, Function, TupleGetItem, Var, tensor_type
from serde.relay.ir.leaves import leaves
from serde.relay.lowering.lengths import LAST
from serde.relay.op.control.body import SCALAR_BOOL, SCALAR_INT, join, results
from serde.tflite.graph import MAX_LEVEL, GraphScope, taken
from serde.tflite.ops.table import OPS, Export, Import, Value
from serde.walk.bodies import as_scalar, choose_branch, infer_closure, make_loop_body
from serde.walk.export_context import Writing


@OPS.imports("IF")
def import_if(
    ctx: Import,
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
    return choose_branch(as_scalar(condition), *branches)


OPS.refuses("STABLEHLO_CUSTOM_CALL", reason="what another runtime computes")


@OPS.imports("STABLEHLO_CASE")
def import_case(
    ctx: Import, index: Expr, *values: Expr, branch_subgraph_indices: AnyValue = None
) -> Sequence[Expr]:
    """An index that has no branch takes the last."""
    numbers = ctx.numbers(branch_subgraph_indices)
    if not 0 < len(numbers) <= _MOST_BRANCHES:
        raise Unsupported(f"{len(numbers)} branches")
    *others, found = (
        ctx.subgraph(each, *values, label=f"branch{i}") for i, each in enumerate(numbers)
    )
    for i, branch in reversed(list(enumerate(others))):
        chosen = relay.equal(as_scalar(index), ctx.const(i, ctx.type(index).dtype))
        found = list(choose_branch(as_scalar(chosen), branch, found))
    return found


_MOST_BRANCHES = 256


@OPS.imports("CALL")
def import_call(ctx: Import, *values: Expr, subgraph: int = 0) -> Sequence[Expr]:
    return ctx.subgraph(subgraph, *values)


@OPS.imports("STABLEHLO_COMPOSITE", ignored=("name", "version", "composite_attributes_format"))
def import_composite(
    ctx: Import,
    *values: Expr,
    decomposition_subgraph_index: int = 0,
    composite_attributes: AnyValue = None,
) -> Sequence[Expr]:
    """What it is made of counts."""
    return ctx.subgraph(decomposition_subgraph_index, *values)


@OPS.imports("WHILE", "STABLEHLO_WHILE")
def import_while(
    ctx: Import, *values: Expr, cond_subgraph_index: int = 0, body_subgraph_index: int = 0
) -> Sequence[Expr]:
    """The condition is a graph of its own: it is asked before the loop, and at its end."""
    types = [ctx.type(each) for each in values]
    going = ctx.fold(as_scalar(ctx.subgraph(cond_subgraph_index, *values, label="cond")[0]))
    while True:
        again, state = _variables(types), _variables(types)
        test, more = infer_closure(ctx.closure(cond_subgraph_index, again, label="cond"))
        step, captures = infer_closure(ctx.closure(body_subgraph_index, state, label="body"))
        later = results(step)
        if len(later) != len(types):
            raise Unsupported(f"a loop of {len(types)} variables whose body gives {len(later)}")
        joined = [join(ctx.type(a), b) for a, b in zip(values, later, strict=True)]
        if joined == types:
            break
        types = [each for each in joined if isinstance(each, TensorType)]
    body = make_loop_body(state, step, test)
    found = call("serde.loop", None, going, list(values), (*captures, *more), body=body)
    return [TupleGetItem(found, index) for index in range(len(types))]


def _variables(types: Sequence[TensorType]) -> list[Var]:
    return [Var(f"state{i}", type_) for i, type_ in enumerate(types)]


@dataclass(frozen=True, slots=True)
class _Part:
    """A graph of a loop that is written, with what goes round and what it gives."""

    scope: GraphScope
    inputs: Sequence[Value]
    outputs: Sequence[int]


@OPS.exports("serde.loop")
def export_loop(
    ctx: Export,
    limit: Value | None,
    going: Value | None,
    state: tuple[Value, ...],
    captures: tuple[Value, ...],
    *,
    body: Function,
) -> Writing[tuple[Value, ...]]:
    """What is stacked goes round whole, and so does what the graphs of the loop take."""
    made, count = ctx.result_types(), len(state)
    if not made:
        return ()
    types = [SCALAR_INT, *map(tensor_type, body.params[1 : 1 + count])]
    types += map(_varied, made[count:])
    begin = [ctx.const(0, "int64"), *state, *(_blank(ctx, each) for each in made[count:])]
    step = yield from _write_step(ctx, types, captures, body)
    if len(step.inputs) > len(types):
        begin.append(ctx.const(True, "bool") if going is None else going)
        types.append(SCALAR_BOOL)
        going = None
    test = _write_test(ctx, types, len(types) > 1 + len(made), limit, going)
    around = taken((test.scope, step.scope))
    kept = [*step.outputs, *map(step.scope.number, around)]
    options = {
        "cond_subgraph_index": ctx.close(test.scope.close(test.inputs, around, test.outputs)),
        "body_subgraph_index": ctx.close(step.scope.close(step.inputs, around, kept)),
    }
    types = [SCALAR_INT, *made[:count], *types[1 + count :], *map(ctx.type, around)]
    found = ctx.append("WHILE", [*begin, *around], types, options)[1 : 1 + len(made)]
    stacks = zip(found[count:], made[count:], strict=True)
    return *found[:count], *(_without_blank(ctx, *each) for each in stacks)


def _write_step(
    ctx: Export, types: Sequence[TensorType], captures: Sequence[Value], body: Function
) -> Writing[_Part]:
    """Write what a loop does; whether to go on is the last of what goes round, if it asks that."""
    scope = GraphScope(ctx.scope, f"{ctx.source}/body")
    scope.require_level(MAX_LEVEL)
    count = len(body.params) - len(captures)
    with ctx.inside(scope):
        inputs = ctx.graph_inputs(types, "state")
        number, stacks = inputs[0], inputs[count:]
        found = yield from ctx.body(body, [*inputs[:count], *captures])
        goes_on, *later = leaves(found)
        following = ctx.spell(lambda i: relay.add(i, relay.const(1, "int64")), number)
        rows = zip(stacks, later[count - 1 :], strict=True)
        later[count - 1 :] = [_put(ctx, stack, row, number) for stack, row in rows]
        if goes_on.data is None or not goes_on.data:
            later.append(goes_on)
            inputs += ctx.graph_inputs([SCALAR_BOOL], "going")
        return _Part(scope, inputs, ctx.outputs([following, *later]))


def _write_test(
    ctx: Export, types: Sequence[TensorType], asks: bool, limit: Value | None, going: Value | None
) -> _Part:
    """Write whether a loop goes on: below its limit, where the last of what goes round says so."""
    scope = GraphScope(ctx.scope, f"{ctx.source}/cond")
    with ctx.inside(scope):
        inputs = ctx.graph_inputs(types, "state")
        tests = [] if limit is None else [ctx.spell(relay.less, inputs[0], limit)]
        tests += inputs[-1:] if asks else []
        if going is not None and not (going.data is not None and going.data):
            tests.append(going)
        if not tests:
            raise Unsupported("a loop that nothing ends")
        last = tests[0] if len(tests) == 1 else ctx.spell(relay.logical_and, *tests)
        return _Part(scope, inputs, ctx.outputs([last]))


def _is_counted(stack: TensorType) -> bool:
    """Whether it is known how many rows a loop stacks; if not, they are joined one by one."""
    return isinstance(stack.shape[0], int) and stack.shape[0] > 0


def _blank(ctx: Export, stack: TensorType) -> Value:
    """Return what a loop writes its rows into, or joins them to: a row, as WHILE takes no fewer."""
    shape = ctx.shape([stack.shape[0] if _is_counted(stack) else 1, *stack.shape[1:]])
    return ctx.emit_as(_varied(stack), "FILL", shape, ctx.const(0, stack.dtype))


def _varied(stack: TensorType) -> TensorType:
    """Return the type of a stack inside of the loop."""
    return stack if _is_counted(stack) else TensorType((Any(), *stack.shape[1:]), stack.dtype)


def _put(ctx: Export, stack: Value, row: Value, number: Value) -> Value:
    """Write a row of what a loop stacks."""
    type_ = ctx.type(stack)
    update = ctx.spell(lambda x: relay.expand_dims(x, 0), row)
    if not _is_counted(type_):
        return ctx.emit_as(type_, "CONCATENATION", stack, update, axis=0)
    start = ctx.spell(lambda i: relay.reshape(relay.cast(i, "int32"), (1,)), number)
    if type_.rank > 1:
        start = ctx.join_lengths([start, ctx.ints([0] * (type_.rank - 1))])
    return ctx.emit_as(type_, "DYNAMIC_UPDATE_SLICE", stack, update, start)


def _without_blank(ctx: Export, stack: Value, type_: TensorType) -> Value:
    if _is_counted(type_):
        return stack
    return ctx.spell(lambda x: relay.strided_slice(x, [1], [LAST], axes=[0]), stack)

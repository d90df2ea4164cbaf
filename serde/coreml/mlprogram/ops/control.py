"""Branches, loops, states, and the end of a classifier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.coreml.mlprogram.operators import NUMBERS, cast_to, compute_dtype
from serde.coreml.mlprogram.ops.shape.reshape import transpose
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.coreml.mlprogram.tensor_lists import give_shape, is_shapeless, operand_of
from serde.errors import Unsupported
from serde.relay.ir import Any, Dim, TensorType, Type, call
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var, tensor_type
from serde.relay.ir.leaves import leaves
from serde.relay.op.control.body import join, results
from serde.walk.bodies import as_scalar, choose_branch, infer_closure, make_loop_body
from serde.walk.export_context import Writing


@OPS.imports("cond")
def import_cond(ctx: Import, pred: Expr) -> list[Expr]:
    """A condition that is known leaves its branch only."""
    known = ctx.known(pred)
    if known is not None and known.size == 1:
        return ctx.subgraph(ctx.graph(0 if known.item() else 1))
    scalar = relay.reshape(pred, newshape=()) if ctx.type(pred).rank else pred
    branches = _alike(ctx.subgraph(ctx.graph(0)), ctx.subgraph(ctx.graph(1)))
    return choose_branch(scalar, *branches)


def _alike(yes: Sequence[Expr], no: Sequence[Expr]) -> list[list[Expr]]:
    """Return what two branches give: a list without a shape takes that of the other branch."""
    if len(yes) != len(no):
        raise Unsupported(f"branches that give {len(yes)} and {len(no)} values")
    pairs = [
        (_give_shape(a, tensor_type(b)), _give_shape(b, tensor_type(a)))
        for a, b in zip(yes, no, strict=True)
    ]
    return [list(each) for each in zip(*pairs, strict=True)] if pairs else [[], []]


@OPS.imports("while_loop")
def import_while_loop(ctx: Import, *loop_vars: Expr) -> list[Expr]:
    """The condition is a block of its own: it is asked before the loop, and at its end."""
    given = list(loop_vars)
    types = [ctx.type(each) for each in given]
    going = ctx.fold(as_scalar(ctx.subgraph(ctx.graph(0), *loop_vars)[0]))
    while True:
        again = [Var(f"state{i}", type_) for i, type_ in enumerate(types)]
        test, more = infer_closure(ctx.closure(ctx.graph(0), again))
        state = [Var(f"state{i}", type_) for i, type_ in enumerate(types)]
        for variable, value in zip(state, given, strict=True):
            ctx.lists.follow(variable, value)
        _note_bounds(ctx, state, test, more)
        step, captures = infer_closure(ctx.closure(ctx.graph(1), state))
        later = results(step)
        if len(later) != len(types):
            raise Unsupported(f"a loop of {len(types)} variables whose body gives {len(later)}")
        told = [_give_shape(value, type_) for value, type_ in zip(given, later, strict=True)]
        joined = [join(ctx.type(a), b) for a, b in zip(told, later, strict=True)]
        if joined == types:
            break
        given, types = told, [each for each in joined if isinstance(each, TensorType)]
    body = make_loop_body(state, step, test)
    found = call("serde.loop", None, going, given, (*captures, *more), body=body)
    fields = [TupleGetItem(found, index) for index in range(len(types))]
    return [ctx.lists.follow(a, b) for a, b in zip(fields, given, strict=True)]


def _give_shape(value: Expr, later: Type) -> Expr:
    """Return what a loop begins with: of a list without a shape, one with that of its body's."""
    if not is_shapeless(value) or not isinstance(later, TensorType):
        return value
    return give_shape(value, later.shape[1:])


def _note_bounds(
    ctx: Import, state: Sequence[Var], test: Function, captured: Sequence[Expr]
) -> None:
    """Record what variables of a loop are less than whenever its body runs."""
    values = dict[Expr, Expr](zip(test.params[len(state) :], captured, strict=True))
    asked = test.body.fields if isinstance(test.body, Tuple) else (test.body,)
    pending = list(asked[:1])
    while pending:
        node = pending.pop()
        if operand_of(node, "logical_and") is not None and isinstance(node, Call):
            pending.extend(node.args)
        if operand_of(node, "less") is None or not isinstance(node, Call):
            continue
        number, end = node.args
        dims = ctx.dims(values.get(end, end))
        for variable, param in zip(state, test.params, strict=False):
            if param is number and dims is not None and len(dims) == 1:
                ctx.lists.bounds[variable] = dims[0]


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
    """Whether to go on is a variable of the loop, and so are the stacks that grow in it.

    A stack has its full length from the first: what is not reached is cut off behind the loop.
    """
    wanted = ctx.result_types()
    stacks = wanted[len(state) :]
    most = None if limit is None or limit.data is None else int(limit.data.reshape(()))
    if stacks and (limit is None or most == 0 or (most or 0) > _MOST):
        how = "no limit" if limit is None or most else "no iterations"
        raise Unsupported(f"a loop of {how} that stacks {stacks[0]!r}")
    length: Dim = Any() if most is None else most
    rows = [TensorType((length, *each.shape[1:]), each.dtype) for each in stacks]
    total = ctx.spell(_as_length, limit) if limit is not None and rows else None
    scalar = TensorType((), "int64")
    carried = [
        ctx.const(np.zeros((), np.int64)),
        ctx.const(np.array(True)) if going is None else going,
        *state,
        *(_zeros(ctx, each, total) for each in rows if total is not None),
    ]
    types = [scalar, TensorType((), "bool"), *wanted[: len(state)], *rows]

    def ask(values: Sequence[Value]) -> list[Value]:
        number, further = values[0], values[1]
        if limit is None:
            return [further]
        return [
            ctx.spell(
                lambda i, n, g: relay.logical_and(relay.less(i, n), g), number, limit, further
            )
        ]

    def iterate(values: Sequence[Value]) -> Writing[list[Value]]:
        number, rows = values[0], values[2 + len(state) :]
        found = yield from ctx.body(body, [number, *values[2 : 2 + len(state)], *captures])
        further, *later = leaves(found)
        following = ctx.spell(lambda i: relay.add(i, relay.Constant(np.array(1, np.int64))), number)
        grown = [
            _put_at(ctx, row, number, new)
            for row, new in zip(rows, later[len(state) :], strict=True)
        ]
        return [following, further, *later[: len(state)], *grown]

    found = yield from ctx.loop(carried, types, ask, iterate)
    count, finals = found[0], found[2 : 2 + len(state)]
    made = [
        row if each.shape[0] == most else ctx.spell(_first, row, count)
        for row, each in zip(found[2 + len(state) :], stacks, strict=True)
    ]
    return (*finals, *made)


def _as_length(limit: Expr) -> Expr:
    """Return a limit as a vector of one length."""
    return relay.reshape(relay.cast(relay.maximum(limit, relay.const(0, "int64")), "int32"), [1])


@OPS.exports("serde.scan")
def export_scan(
    ctx: Export, state: tuple[Value, ...], scanned: tuple[Value, ...], captures: tuple[Value, ...],
    *, body: Function, axes: tuple[int, ...], reverse: tuple[bool, ...], out_axes: tuple[int, ...],
    out_reverse: tuple[bool, ...],
) -> Writing[tuple[Value, ...]]:  # fmt: skip
    """A loop over the number of a slice, into stacks that have their full length from the first.

    Rows are placed by their number, so that a stack that begins at its end needs no turning.
    """
    wanted, count = ctx.result_types(), len(state)
    ranks = [ctx.type(each).rank for each in scanned]
    along = [axis % rank for axis, rank in zip(axes or [0] * len(ranks), ranks, strict=True)]
    if ctx.type(scanned[0]).shape[along[0]] == 0:
        raise Unsupported(f"a walk along no slices of {ctx.type(scanned[0])!r}")
    total = _length(ctx, scanned[0], along[0])
    rows = [
        _row_first(each, axis)
        for each, axis in zip(wanted[count:], out_axes or [0] * len(wanted[count:]), strict=True)
    ]
    number = ctx.const(np.zeros(1, np.int32))
    carried = [number, *state, *(_zeros(ctx, each, total) for each in rows)]
    types = [ctx.type(number), *wanted[:count], *rows]
    backwards = out_reverse or (False,) * len(rows)
    last = ctx.spell(lambda n: relay.subtract(n, _ONE), total)

    def ask(values: Sequence[Value]) -> list[Value]:
        return [ctx.spell(lambda i, n: relay.squeeze(relay.less(i, n), [0]), values[0], total)]

    def iterate(values: Sequence[Value]) -> Writing[list[Value]]:
        place, stacks = values[0], values[1 + count :]
        turned = any((*reverse, *backwards))
        places = [place, ctx.spell(relay.subtract, last, place) if turned else place]
        slices = [
            _slice(ctx, each, places[flag], axis)
            for each, axis, flag in zip(
                scanned, along, reverse or (False,) * len(scanned), strict=True
            )
        ]
        found = leaves((yield from ctx.body(body, [*values[1 : 1 + count], *slices, *captures])))
        grown = [
            _put_at(ctx, stack, places[flag], row)
            for stack, flag, row in zip(stacks, backwards, found[count:], strict=True)
        ]
        return [ctx.spell(lambda i: relay.add(i, _ONE), place), *found[:count], *grown]

    found = yield from ctx.loop(carried, types, ask, iterate)
    placed = zip(found[1 + count :], out_axes or [0] * len(rows), strict=True)
    return (*found[1 : 1 + count], *(_move_stack_axis(ctx, stack, axis) for stack, axis in placed))


_MOST = np.iinfo(np.int32).max
"""No axis is longer; a larger limit stands for none."""

_SMALL = 10
"""A stack of fewer elements is a constant."""

_ONE = relay.const(np.ones(1, np.int32))


def _length(ctx: Export, x: Value, axis: int) -> Value:
    """Return the length of an axis, a vector of one int32, wherever it comes from."""
    dim = ctx.type(x).shape[axis]
    if isinstance(dim, int):
        return ctx.const(np.array([dim], np.int32))
    whole = ctx.emit("shape", TensorType((ctx.type(x).rank,), "int32"), x=x)
    return ctx.emit("slice_by_size", TensorType((1,), "int32"), x=whole, begin=[axis], size=[1])


def _row_first(type_: TensorType, axis: int) -> TensorType:
    """Return the type of a stack with the axis that it was made along before the others."""
    dims = list(type_.shape)
    dims.insert(0, dims.pop(axis))
    return TensorType(dims, type_.dtype)


def _move_stack_axis(ctx: Export, stack: Value, axis: int) -> Value:
    order = list(range(1, ctx.type(stack).rank))
    order.insert(axis % ctx.type(stack).rank, 0)
    return transpose(ctx, stack, order)


def _zeros(ctx: Export, type_: TensorType, total: Value) -> Value:
    """Return a stack of zeros with a row for each slice; a large one is no part of the file."""
    lengths = type_.shape
    if isinstance(type_.size, int) and type_.size < _SMALL:
        return ctx.const(allocation.zeros(type_.concrete_shape or (), numpy_dtype(type_.dtype)))
    work = compute_dtype(ctx, type_.dtype, NUMBERS)
    parts = [total, *([ctx.shape(lengths[1:])] if lengths[1:] else [])]
    shape = ctx.emit("concat", TensorType((len(lengths),), "int32"), values=parts, axis=0)
    zero = ctx.const(0, work)
    made = ctx.emit("fill", TensorType(lengths, work), shape=shape, value=zero)
    return cast_to(ctx, made, type_.dtype)


def _slice(ctx: Export, x: Value, place: Value, axis: int) -> Value:
    """Return the slice of a tensor at a place, which is within it."""

    def taken(data: Expr, index: Expr) -> Expr:
        return relay.squeeze(relay.take(data, index, axis=axis, mode="fast"), [axis])

    return ctx.spell(taken, x, place)


def _put_at(ctx: Export, stack: Value, place: Value, row: Value) -> Value:
    """Return a stack with a row at a place."""

    def put(data: Expr, index: Expr, update: Expr) -> Expr:
        rows = relay.expand_dims(update, 0)
        return relay.scatter_nd(data, relay.reshape(index, [1, 1]), rows, "update")

    return ctx.spell(put, stack, place, row)


def _first(stack: Expr, count: Expr) -> Expr:
    """Return the first rows of a stack, as many as a loop made."""
    end = relay.reshape(count, [1])
    zero, one = (relay.Constant(np.array([value], np.int64)) for value in (0, 1))
    return call("dyn.strided_slice", stack, zero, end, one, axes=(0,))


@OPS.imports("read_state", since=18)
def import_read_state(ctx: Import, *, input: str) -> Expr:
    return ctx.read_state(input)


@OPS.imports("write_state", since=18)
def import_write_state(ctx: Import, data: Expr, *, input: str) -> list[Expr]:
    ctx.write_state(input, data)
    return []


@OPS.imports("classify")
def import_classify(ctx: Import, probabilities: Expr, *, classes: tuple[str | int, ...]) -> Expr:
    """The tensor of probabilities stands for the dictionary; the class follows from it."""
    ctx.note_labels(classes)
    return probabilities

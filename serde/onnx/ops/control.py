"""Conditionals and loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx

import serde.relay as relay
from serde.core.allocation import iterations
from serde.errors import Unsupported
from serde.onnx.builder import SEQUENCE_SUBGRAPHS, ValueType, require_sequences
from serde.onnx.interface import declared_shape
from serde.onnx.ops.sequence import is_empty
from serde.onnx.ops.shape.reshape import as_scalar
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.onnx.undecided import differ_in_rank
from serde.relay.ir import Any, SequenceType, TensorType, TupleType, call, normalize_axis
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.op.control.body import join, results, tensors
from serde.walk.bodies import choose_branch
from serde.walk.export_context import Writing


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
    """Without a condition to begin with, ONNX does not ask the body's either."""
    inner = yield from ctx.subgraph(body, captures)
    results = ctx.result_value_types()
    if not results:
        return ()
    require_sequences("Loop", results, ctx.version, SEQUENCE_SUBGRAPHS)
    number, *states = inner.inputs
    condition = TensorType((), "bool")
    carried, stacks = results[: len(state)], results[len(state) :]
    elements = [
        TensorType(each.shape[1:], each.dtype) for each in stacks if isinstance(each, TensorType)
    ]
    inputs = [number, ctx.input("going", condition), *_widen_types(states, carried)]
    found = ctx.emit_tuple(
        "Loop",
        limit,
        ctx.const(True) if going is None else going,
        *state,
        outputs=len(results),
        body=ctx.graph(inner, inputs, [condition, *carried, *elements]),
    )
    if _begins(limit, going):
        return found
    rows = zip(found[len(state) :], stacks, strict=True)
    return *found[: len(state)], *[_tell_lengths(ctx, x, type_) for x, type_ in rows]


def _begins(limit: Value | None, going: Value | None) -> bool:
    """Whether a loop is known to run once at least."""
    given = [each for each in (limit, going) if each is not None]
    return all(each.data is not None and bool(np.all(each.data > 0)) for each in given)


def _tell_lengths(ctx: Export, stack: Value, type_: ValueType) -> Value:
    """Return what a loop stacked, which ONNX Runtime gives rows of open lengths of 0 if it is none.

    Lengths that nothing outside of the loop tells stay so.
    """
    if not isinstance(type_, TensorType) or all(isinstance(d, int) for d in type_.shape[1:]):
        return stack
    try:
        rows = ctx.shape(type_.shape[1:])
    except Unsupported:
        return stack
    # Not a concatenation: ONNX Runtime fuses one into a Reshape to (0, -1).
    return ctx.emit("Reshape", stack, ctx.emit("Pad", rows, ctx.ints([1, 0])))


@OPS.imports("Loop", since=(1, 11, 13, 16, 19, 21, 23, 24, 25))
def import_loop(
    ctx: Import,
    m: Expr | None = None,
    cond: Expr | None = None,
    *v_initial: Expr,
    body: onnx.GraphProto,
) -> list[Expr]:
    """An iteration only begins where its condition holds: inside, that is true."""
    count = len(v_initial)
    if len(body.input) != 2 + count or len(body.output) < 1 + count:
        raise Unsupported(f"a body of {len(body.input)} inputs for {count} states")
    v_initial = _type_empty_sequences(ctx, v_initial, body)
    types = [_type_of_state(ctx, each) for each in v_initial]
    limit = None if m is None else ctx.fold(as_scalar(ctx, m))
    going = None if cond is None else ctx.fold(as_scalar(ctx, cond))
    while True:
        number = Var(body.input[0].name, TensorType((), "int64"))
        names = [each.name for each in body.input[2:]]
        state = [Var(name, type_) for name, type_ in zip(names, types, strict=True)]
        function, captures = ctx.closure(body, [number, *state], [
            _reshape_as_declared(body.input[0], number),
            _reshape_as_declared(body.input[1], relay.const(True, "bool")),
            *state,
        ], label="body")  # fmt: skip
        function = _make_condition_scalar(ctx, function)
        later = results(function)[1 : 1 + count]
        joined = [join(a, b) for a, b in zip(types, later, strict=True)]
        if joined == types:
            break
        types = joined
    found = call("serde.loop", limit, going, v_initial, tuple(captures), body=function)
    return [TupleGetItem(found, index) for index in range(len(body.output) - 1)]


def _has_slices(call: Call) -> bool:
    """Whether there is a slice, as far as is known: ONNX Runtime refuses to scan none."""
    scanned = call.args[1].type
    axes = call.attrs["axes"] or (0,)
    first = scanned.fields[0] if isinstance(scanned, TupleType) else None
    return isinstance(first, TensorType) and first.shape[axes[0]] != 0


@OPS.exports("serde.scan", when=_has_slices)
def export_scan(
    ctx: Export, state: tuple[Value, ...], scanned: tuple[Value, ...], captures: tuple[Value, ...],
    *, body: Function, axes: tuple[int, ...], reverse: tuple[bool, ...], out_axes: tuple[int, ...],
    out_reverse: tuple[bool, ...],
) -> Writing[tuple[Value, ...]]:  # fmt: skip
    """Slices and stacked results lose the axis that is scanned or stacked along."""
    inner = yield from ctx.subgraph(body, captures)
    results = ctx.result_types()
    if not results:
        return ()
    carried, stacks = results[: len(state)], results[len(state) :]
    slices = [
        _drop_axis(ctx.type(each), axis)
        for each, axis in zip(scanned, axes or (0,) * len(scanned), strict=True)
    ]
    elements = [
        _drop_axis(each, axis)
        for each, axis in zip(stacks, out_axes or (0,) * len(stacks), strict=True)
    ]
    inputs = _widen_types(inner.inputs, [*carried, *slices])
    return ctx.emit_tuple(
        "Scan",
        *state,
        *scanned,
        outputs=len(results),
        body=ctx.graph(inner, inputs, [*carried, *elements]),
        num_scan_inputs=len(scanned),
        scan_input_axes=list(axes) or None,
        scan_input_directions=[int(each) for each in reverse] or None,
        scan_output_axes=list(out_axes) or None,
        scan_output_directions=[int(each) for each in out_reverse] or None,
    )


@OPS.imports("Scan", since=(9, 11, 16, 19, 21, 23, 24, 25))
def import_scan(
    ctx: Import, *inputs: Expr, body: onnx.GraphProto, num_scan_inputs: int,
    scan_input_axes: tuple[int, ...] = (), scan_input_directions: tuple[int, ...] = (),
    scan_output_axes: tuple[int, ...] = (), scan_output_directions: tuple[int, ...] = (),
) -> list[Expr]:  # fmt: skip
    """States have the types that join those before and behind the body, found by iterating."""
    count = len(inputs) - num_scan_inputs
    outputs = len(body.output) - count
    if count < 0 or len(body.input) != len(inputs) or outputs < 0:
        raise Unsupported(f"a body of {len(body.input)} inputs for {len(inputs)} inputs")
    state, scanned = inputs[:count], inputs[count:]
    for name, given, wanted in (
        ("scan_input_axes", scan_input_axes, len(scanned)),
        ("scan_input_directions", scan_input_directions, len(scanned)),
        ("scan_output_axes", scan_output_axes, outputs),
        ("scan_output_directions", scan_output_directions, outputs),
    ):
        if len(given) not in (0, wanted):
            raise Unsupported(f"{name}: expected {wanted} numbers, found {len(given)}")
    axes = scan_input_axes or (0,) * num_scan_inputs
    rows = [_drop_axis(ctx.type(each), axis) for each, axis in zip(scanned, axes, strict=True)]
    types = [ctx.type(each) for each in state]
    while True:
        names = [each.name for each in body.input]
        params = [Var(n, type_) for n, type_ in zip(names, [*types, *rows], strict=True)]
        function, captures = ctx.closure(body, params, label="body")
        later = results(function)[:count]
        joined = tensors("state", [join(a, b) for a, b in zip(types, later, strict=True)])
        if joined == types:
            break
        types = joined
    found = call(
        "serde.scan", state, scanned, tuple(captures), body=function, axes=axes,
        reverse=tuple(map(bool, scan_input_directions)) or (False,) * num_scan_inputs,
        out_axes=scan_output_axes or (0,) * outputs,
        out_reverse=tuple(map(bool, scan_output_directions)) or (False,) * outputs,
    )  # fmt: skip
    return [TupleGetItem(found, index) for index in range(len(body.output))]


@OPS.imports("Scan", since=8)
def import_scan_v8(
    ctx: Import,
    sequence_lens: Expr | None = None,
    *inputs: Expr,
    body: onnx.GraphProto,
    num_scan_inputs: int,
    directions: tuple[int, ...] = (),
) -> list[Expr]:
    """The first version has a batch axis in front of everything, and scans each sample."""
    if sequence_lens is not None:
        raise Unsupported("sequences of lengths of their own")
    (samples,) = ctx.static_lengths(ctx.first(inputs), [0])
    found = [
        import_scan(
            ctx,
            *[relay.take(x, relay.const(sample, "int32"), axis=0, mode="fast") for x in inputs],
            body=body,
            num_scan_inputs=num_scan_inputs,
            scan_input_directions=directions,
        )
        for sample in iterations(samples, "the samples of a scan")
    ]
    return [relay.stack(each, axis=0) for each in zip(*found, strict=True)]


def _widen_types(inputs: Sequence[Value], types: Sequence[ValueType]) -> list[Value]:
    """Return inputs of a body with types as wide as what goes round: in the symbols outside."""
    return [replace(value, type=type_) for value, type_ in zip(inputs, types, strict=True)]


def _drop_axis(type_: TensorType, axis: int) -> TensorType:
    """Return the type of one entry of an axis."""
    shape = list(type_.shape)
    del shape[normalize_axis(axis, type_.rank)]
    return TensorType(shape, type_.dtype)


@OPS.imports("If", since=(1, 11, 13, 16, 19, 21, 23, 24, 25))
def import_if(
    ctx: Import, cond: Expr, *, then_branch: onnx.GraphProto, else_branch: onnx.GraphProto
) -> list[Expr]:
    """A condition that is known leaves its branch only; one of one element counts as a scalar.

    Branches that differ in rank stay undecided until it is known which of them holds.
    """
    known = ctx.known(cond)
    if known is not None and known.size == 1:
        taken = then_branch if known.item() else else_branch
        return ctx.subgraph(taken, label="then" if known.item() else "else")
    scalar = as_scalar(ctx, cond)
    branches = ctx.subgraphs({"then": then_branch, "else": else_branch})
    if len(branches) == 1:
        return branches[0]
    if len(branches[0]) != len(branches[1]):
        raise Unsupported(f"branches of {len(branches[0])} and {len(branches[1])} results")
    if differ_in_rank(*branches):
        return [ctx.undecided(scalar, yes, no) for yes, no in zip(*branches, strict=True)]
    optional = [all(map(ctx.is_optional, pair)) for pair in zip(*branches, strict=False)]
    found = choose_branch(scalar, *branches)
    return [ctx.as_optional(x) if o else x for x, o in zip(found, optional, strict=True)]


def _type_of_state(ctx: Import, x: Expr) -> ValueType:
    return x.type if isinstance(x.type, SequenceType) else ctx.type(x)


def _type_empty_sequences(
    ctx: Import, given: tuple[Expr, ...], body: onnx.GraphProto
) -> tuple[Expr, ...]:
    """Return states, of which sequences that begin empty have the elements that the body adds."""
    if not any(map(is_empty, given)):
        return given
    number = Var(body.input[0].name, TensorType((), "int64"))
    states = [
        each if is_empty(each) else Var(f"state{i}", _type_of_state(ctx, each))
        for i, each in enumerate(given)
    ]
    first = [
        _reshape_as_declared(body.input[0], number),
        _reshape_as_declared(body.input[1], relay.const(True)),
    ]
    params = [number, *(each for each in states if isinstance(each, Var))]
    function, _ = ctx.closure(body, params, [*first, *states], label="body")
    found = []
    for each, type_ in zip(given, results(function)[1:], strict=False):
        if is_empty(each) and isinstance(type_, SequenceType):
            element = type_.element
            shape = tuple(dim if isinstance(dim, int) else Any() for dim in element.shape)
            each = call("serde.sequence_empty", shape=shape, dtype=element.dtype)
        found.append(each)
    return tuple(found)


def _reshape_as_declared(value: onnx.ValueInfoProto, x: Expr) -> Expr:
    """Return a scalar as its subgraph declares it: some have one axis of length 1."""
    shape = declared_shape(value.type)
    return relay.reshape(x, newshape=(1,)) if shape is not None and len(shape) == 1 else x


def _make_condition_scalar(ctx: Import, function: Function) -> Function:
    fields = function.body.fields if isinstance(function.body, Tuple) else ()
    going = ctx.fold(as_scalar(ctx, fields[0]))
    return Function(function.params, Tuple([going, *fields[1:]]))

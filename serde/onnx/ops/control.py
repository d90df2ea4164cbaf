"""Loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from serde.onnx.builder import SEQUENCE_SUBGRAPHS, ValueType, require_sequences
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.expr import Call, Function
from serde.relay.types import TensorType, TupleType


@OPS.exports("serde.loop")
def export_loop(
    ctx: Ctx,
    limit: Value | None,
    going: Value | None,
    state: tuple[Value, ...],
    captures: tuple[Value, ...],
    *,
    body: Function,
) -> tuple[Value, ...]:
    """Without a condition to begin with, ONNX does not ask the body's either."""
    inner = ctx.subgraph(body)
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
    inputs = [number, ctx.input("going", condition), *_declared(states, carried)]
    return ctx.emit_tuple(
        "Loop",
        limit,
        ctx.const(True) if going is None else going,
        *state,
        outputs=len(results),
        body=ctx.graph(inner, inputs, [condition, *carried, *elements]),
    )


def _has_slices(call: Call) -> bool:
    """Whether there is a slice, as far as is known: ONNX Runtime refuses to scan none."""
    scanned = call.args[1].type
    axes = call.attrs["axes"] or (0,)
    first = scanned.fields[0] if isinstance(scanned, TupleType) else None
    return isinstance(first, TensorType) and first.shape[axes[0]] != 0


@OPS.exports("serde.scan", when=_has_slices)
def export_scan(
    ctx: Ctx,
    state: tuple[Value, ...],
    scanned: tuple[Value, ...],
    captures: tuple[Value, ...],
    *,
    body: Function,
    axes: tuple[int, ...],
    reverse: tuple[bool, ...],
    out_axes: tuple[int, ...],
    out_reverse: tuple[bool, ...],
) -> tuple[Value, ...]:
    inner = ctx.subgraph(body)
    results = ctx.result_types()
    if not results:
        return ()
    carried, stacks = results[: len(state)], results[len(state) :]
    slices = [
        _without(ctx.type(each), axis)
        for each, axis in zip(scanned, axes or (0,) * len(scanned), strict=True)
    ]
    elements = [
        _without(each, axis)
        for each, axis in zip(stacks, out_axes or (0,) * len(stacks), strict=True)
    ]
    inputs = _declared(inner.inputs, [*carried, *slices])
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


def _declared(inputs: Sequence[Value], types: Sequence[ValueType]) -> list[Value]:
    """Return inputs of a body with types as wide as what goes round: in the symbols outside."""
    return [replace(value, type=type_) for value, type_ in zip(inputs, types, strict=True)]


def _without(type_: TensorType, axis: int) -> TensorType:
    shape = list(type_.shape)
    del shape[axis]
    return TensorType(shape, type_.dtype)

"""Cumulative sums and products, and steps that are taken one after another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any as AnyValue

import numpy as np
from onnx import helper

import serde.relay as relay
from serde.core import dataclass, field, numpy_dtype
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import cast, compute_dtype, fill
from serde.onnx.ops.shape.reshape import emit_lengths
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, call
from serde.walk.takes import Takes, dtypes


@dataclass(frozen=True)
class Step:
    """A node in the body of a Scan, with names that hold inside."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attrs: dict[str, AnyValue] = field(default_factory=dict)


@dataclass(frozen=True)
class ScanInput:
    """An operand of a Scan: what it is called inside the body, and the axis that is walked."""

    name: str
    value: Value
    dtype: str
    axis: int = 0


def emit_scan(
    ctx: Export,
    state: ScanInput,
    items: Sequence[ScanInput],
    steps: Sequence[Step],
    *,
    after: str,
    kept: str | None = None,
) -> Value:
    """Walk along the axes of `items` and change `state` at each step.

    Args:
        ctx: The context of the converter.
        state: The operand that the steps change.
        items: Operands of which each round sees one entry.
        steps: The body.
        after: Name of the state behind the body.
        kept: Name of what each round leaves behind, put together along the axis of the first
            item; None returns the last state.
    """
    prefix = ctx.reserve("scan")

    def local(name: str) -> str:
        return f"{prefix}/{name}"

    def info(name: str, dtype: str) -> AnyValue:
        element = helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype))
        return helper.make_tensor_value_info(local(name), element, None)

    nodes = [
        helper.make_node(
            step.op, [local(each) for each in step.inputs], [local(step.output)], **step.attrs
        )
        for step in steps
    ]
    results = [info(after, state.dtype)]
    if kept is not None:
        results.append(info(kept, state.dtype))
    operands = [state, *items]
    body = helper.make_graph(
        nodes, prefix, [info(each.name, each.dtype) for each in operands], results
    )
    found = ctx.emit_tuple(
        "Scan",
        *[each.value for each in operands],
        outputs=len(results),
        body=body,
        num_scan_inputs=len(items),
        scan_input_axes=[each.axis for each in items],
        scan_output_axes=[items[0].axis] if kept is not None else None,
    )
    return found[-1]


def _flatten(ctx: Export, x: Value, axis: int | None) -> tuple[Value, int]:
    """Return the tensor to be walked, and its axis: no axis stands for the flat tensor."""
    if axis is None:
        return ctx.emit("Reshape", x, ctx.ints([-1])), 0
    return x, axis % ctx.type(x).rank


@OPS.exports("cumsum", ignored=("dtype",))
def export_cumsum(ctx: Export, x: Value, *, axis: int | None, exclusive: bool) -> Value:
    """ONNX Runtime sums in the four dtypes of 32 and 64 bits; in others the sum is rounded once."""
    given, wanted = ctx.type(x).dtype, ctx.result_type().dtype
    x, position = _flatten(ctx, x, axis)
    work = compute_dtype(wanted)
    if work != given:
        x = cast(ctx, x, work)
    result = ctx.emit("CumSum", x, ctx.const(position, "int64"), exclusive=int(exclusive) or None)
    return result if work == wanted else cast(ctx, result, wanted)


@OPS.exports("cumprod", ignored=("dtype",))
def export_cumprod(ctx: Export, x: Value, *, axis: int | None, exclusive: bool) -> Value:
    """CumProd came with 26; a Scan multiplies in the same order."""
    type_, wanted = ctx.type(x), ctx.result_type().dtype
    others = [each for each in range(type_.rank) if axis is not None and each != axis % type_.rank]
    shape = emit_lengths(ctx, x, others)
    x, position = _flatten(ctx, x, axis)
    work = compute_dtype(wanted)
    if work != type_.dtype:
        x = cast(ctx, x, work)
    if ctx.version >= 26:
        result = ctx.emit(
            "CumProd", x, ctx.const(position, "int64"), exclusive=int(exclusive) or None
        )
    else:
        first = fill(ctx, shape, 1, work)
        steps = [
            Step("Mul", ("before", "item"), "after"),
            Step("Identity", ("before" if exclusive else "after",), "kept"),
        ]
        items = [ScanInput("item", x, work, position)]
        result = emit_scan(
            ctx, ScanInput("before", first, work), items, steps, after="after", kept="kept"
        )
    return result if work == wanted else cast(ctx, result, wanted)


_WIDE = Takes(data=dtypes("int32", "int64", "float32", "float64"))
"""Dtypes in which ONNX Runtime accumulates."""


def _export_either_way(
    ctx: Export, x: Value, *, op: str, axis: int, exclusive: bool, reverse: bool
) -> Value:
    position = ctx.const(axis, np.int64)
    return ctx.emit(op, x, position, exclusive=int(exclusive) or None, reverse=int(reverse) or None)


OPS.exports("serde.cumsum", takes=_WIDE)(partial(_export_either_way, op="CumSum"))


OPS.exports("serde.cumprod", since=26, takes=_WIDE)(partial(_export_either_way, op="CumProd"))


def _import_accumulated(
    ctx: Import, x: Expr, axis: Expr, *, name: str, exclusive: bool = False, reverse: bool = False
) -> Expr:
    """Where the axis is computed, all of them are taken and one is chosen."""
    rank = ctx.type(x).rank
    if not rank:
        raise Unsupported("a scalar has no axis")
    if ctx.is_constant(axis) or rank == 1:
        only = ctx.item(axis) if rank > 1 else 0
        return call(name, x, axis=only, exclusive=exclusive, reverse=reverse)
    number = relay.reshape(relay.cast(axis, "int64"), newshape=())
    position = relay.floor_mod(number, relay.Constant(np.int64(rank)))
    found = [call(name, x, axis=i, exclusive=exclusive, reverse=reverse) for i in range(rank)]
    chosen: Expr = found[0]
    for i in range(1, rank):
        chosen = relay.where(relay.equal(position, relay.Constant(np.int64(i))), found[i], chosen)
    return chosen


OPS.imports("CumSum", since=(11, 14))(partial(_import_accumulated, name="serde.cumsum"))


OPS.imports("CumProd", since=26)(partial(_import_accumulated, name="serde.cumprod"))

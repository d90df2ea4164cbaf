"""Running sums and products, and steps that are taken one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any as AnyValue

import numpy as np
from onnx import helper

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.elementwise.convert import cast, filled, working
from serde.onnx.ops.shape.reshape import lengths
from serde.onnx.ops.table import OPS
from serde.weights import numpy_dtype


@dataclass(frozen=True)
class Step:
    """A node in the body of a Scan, with names that hold inside."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attrs: dict[str, AnyValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Scanned:
    """An operand of a Scan: what it is called inside the body, and the axis that is walked."""

    name: str
    value: Value
    dtype: str
    axis: int = 0


def scan(
    ctx: ExportContext,
    state: Scanned,
    items: Sequence[Scanned],
    steps: Sequence[Step],
    *,
    after: str,
    kept: str | None = None,
) -> Value:
    """Walk along the axes of `items` and change `state` at each place.

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


def _flat(ctx: ExportContext, x: Value, axis: int | None) -> tuple[Value, int]:
    """Return the tensor to be walked, and its axis: no axis stands for the flat tensor."""
    if axis is None:
        return ctx.emit("Reshape", x, ctx.ints([-1])), 0
    return x, axis % ctx.type(x).rank


@OPS.exports("cumsum")
def export_cumsum(
    ctx: ExportContext,
    x: Value,
    *,
    axis: int | None,
    dtype: np.dtype[AnyValue] | None,
    exclusive: bool,
) -> Value:
    """ONNX Runtime sums in the four dtypes of 32 and 64 bits; in others the sum is rounded once."""
    given, wanted = ctx.type(x).dtype, ctx.result_type().dtype
    x, place = _flat(ctx, x, axis)
    work = working(wanted)
    if work != given:
        x = cast(ctx, x, work)
    result = ctx.emit("CumSum", x, ctx.const(place, "int64"), exclusive=int(exclusive) or None)
    return result if work == wanted else cast(ctx, result, wanted)


@OPS.exports("cumprod")
def export_cumprod(
    ctx: ExportContext,
    x: Value,
    *,
    axis: int | None,
    dtype: np.dtype[AnyValue] | None,
    exclusive: bool,
) -> Value:
    """CumProd came with 26; a Scan multiplies in the same order."""
    type_, wanted = ctx.type(x), ctx.result_type().dtype
    others = [each for each in range(type_.rank) if axis is not None and each != axis % type_.rank]
    shape = lengths(ctx, x, others)
    x, place = _flat(ctx, x, axis)
    work = working(wanted)
    if work != type_.dtype:
        x = cast(ctx, x, work)
    if ctx.version >= 26:
        result = ctx.emit("CumProd", x, ctx.const(place, "int64"), exclusive=int(exclusive) or None)
    else:
        first = filled(ctx, shape, 1, work)
        steps = [
            Step("Mul", ("before", "item"), "after"),
            Step("Identity", ("before" if exclusive else "after",), "kept"),
        ]
        items = [Scanned("item", x, work, place)]
        result = scan(ctx, Scanned("before", first, work), items, steps, after="after", kept="kept")
    return result if work == wanted else cast(ctx, result, wanted)

"""Reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call
from serde.relay.op.reduce.plain import ReducedAxes
from serde.tflite.ops.table import OPS, Export, Import, Value

_REDUCTIONS = {
    "MEAN": "mean",
    "REDUCE_ALL": "all",
    "REDUCE_ANY": "any",
    "REDUCE_MAX": "max",
    "REDUCE_MIN": "min",
    "REDUCE_PROD": "prod",
    "SUM": "sum",
}


def _reader(operator: str) -> Callable[..., Expr]:
    def read(ctx: Import, x: Expr, axes: Expr, *, keep_dims: bool = False) -> Expr:
        """Without axes nothing is reduced."""
        found = ctx.ints(axes)
        return call(operator, x, axis=found, keepdims=keep_dims) if found else x

    return read


for _name, _operator in _REDUCTIONS.items():
    OPS.imports(_name)(_reader(_operator))


def _export_reduction(ctx: Export, data: Value, *, op: str, reduced: ReducedAxes) -> Value:
    axes = reduced.axes(ctx.type(data).rank)
    return ctx.emit(op, data, ctx.ints(axes), keep_dims=reduced.keepdims)


for _name, _operator in _REDUCTIONS.items():
    OPS.exports(_operator)(partial(_export_reduction, op=_name))


_COMBINED = {
    "add": "sum", "logical_and": "all", "logical_or": "any", "maximum": "max", "minimum": "min",
    "multiply": "prod",
}  # fmt: skip
"""Reductions by what combines two elements."""

_WINDOWED = {
    1: "add", 2: "multiply", 3: "minimum", 4: "maximum", 5: "logical_and", 6: "logical_or",
}  # fmt: skip


def _reduced(x: Expr, axes: Sequence[int], name: str, start: Expr) -> Expr:
    if name not in _COMBINED:
        raise Unsupported("a reduction by what is not one operator of two values")
    found = call(_COMBINED[name], x, axis=tuple(axes)) if axes else x
    return call(name, found, start)


@OPS.imports("STABLEHLO_REDUCE")
def import_stablehlo_reduce(
    ctx: Import, *values: Expr, dimensions: AnyValue = None, body_subgraph_index: int = 0
) -> Expr:
    if len(values) != 2:
        raise Unsupported(f"a reduction of {len(values) // 2} tensors together")
    x, start = values
    name = ctx.combination(body_subgraph_index, ctx.type(x).dtype)
    return _reduced(x, ctx.axes(dimensions, ctx.rank(x)), name, start)


def _windows(x: Expr, size: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Expr:
    """Return the windows, whose own axes come last."""
    if min([*size, *strides, *dilation], default=1) < 1:
        raise Unsupported(
            f"windows of {list(size)} by {list(strides)}, dilated by {list(dilation)}"
        )
    spans = [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    found = relay.sliding_window(x, 0, spans, strides)
    if max(dilation, default=1) == 1:
        return found
    axes = range(len(size), 2 * len(size))
    return relay.strided_slice(found, [0] * len(size), spans, dilation, axes=axes)


@OPS.imports("REDUCE_WINDOW")
def import_reduce_window(
    ctx: Import, x: Expr, start: Expr, size: Expr, strides: Expr, dilation: Expr,
    *, reduce_function: int = 0,
) -> Expr:  # fmt: skip
    rank, name = ctx.rank(x), _WINDOWED.get(reduce_function)
    if name is None or not rank:
        raise Unsupported(f"windows of the function {reduce_function}")
    rows = (ctx.numbers(ctx.ints(each), rank) for each in (size, strides, dilation))
    return _reduced(_windows(x, *rows), range(rank, 2 * rank), name, start)


@OPS.imports("STABLEHLO_REDUCE_WINDOW")
def import_stablehlo_reduce_window(
    ctx: Import, x: Expr, start: Expr,
    *, window_dimensions: AnyValue = None, window_strides: AnyValue = None,
    base_dilations: AnyValue = None, window_dilations: AnyValue = None, padding: AnyValue = None,
    body_subgraph_index: int = 0,
) -> Expr:  # fmt: skip
    """Padding, between elements too, has the value that the reduction begins with."""
    rank = ctx.rank(x)
    name = ctx.combination(body_subgraph_index, ctx.type(x).dtype)
    parts = (window_dimensions, window_strides, window_dilations)
    size, strides, dilation = (ctx.numbers(each, rank) for each in parts)
    spread, pads = ctx.numbers(base_dilations, rank), ctx.numbers(padding, 2 * rank, 0)
    if min(pads, default=0) < 0 or min(spread, default=1) < 1 or not rank:
        raise Unsupported(f"padding {pads} of elements that are {spread} apart")
    if max(spread) > 1:
        x = relay.nn.dilate(x, spread, float(ctx.item(start)))
    if any(pads):
        x = relay.nn.pad(x, list(zip(pads[::2], pads[1::2], strict=True)), start)
    return _reduced(_windows(x, size, strides, dilation), range(rank, 2 * rank), name, start)

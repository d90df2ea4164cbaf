"""Reductions, which keep the axes that they reduce."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.export_context import ExportContext, Value
from serde.nnef.import_context import ImportContext
from serde.nnef.model import Ref
from serde.nnef.ops.elementwise.integers import SCALARS
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.op.reduce.plain import ReducedAxes
from serde.walk.takes import Takes

__all__ = ["Reduction"]

Axes = tuple[int, ...]

REDUCTIONS: Final = {
    "mean_reduce": "mean",
    "max_reduce": "max",
    "min_reduce": "min",
    "any_reduce": "any",
    "all_reduce": "all",
    "argmax_reduce": "argmax",
    "argmin_reduce": "argmin",
}
"""Fragments that reduce axes, and Relay's operators.

Of several axes both count the elements in their order, the last axis fastest.
"""


def _import_reduction(ctx: ImportContext, input: Expr, *, target: str, axes: Axes) -> Expr:
    return call(target, input, axis=axes, keepdims=True)


for _name, _target in REDUCTIONS.items():
    OPS.imports(_name)(partial(_import_reduction, target=_target))


@OPS.imports("sum_reduce")
def import_sum_reduce(
    ctx: ImportContext, input: Expr, *, axes: Axes, normalize: bool = False
) -> Expr:
    return call("mean" if normalize else "sum", input, axis=axes, keepdims=True)


@OPS.imports("moments")
def import_moments(ctx: ImportContext, input: Expr, *, axes: Axes) -> tuple[Expr, Expr]:
    mean = relay.mean(input, axis=axes, keepdims=True)
    return mean, relay.variance(input, axis=axes, keepdims=True, with_mean=mean)


@dataclass(frozen=True, kw_only=True)
class Reduction(ReducedAxes):
    """Attributes that the reductions of Relay share, of which fragments keep the axes."""

    def emit(self, ctx: ExportContext, op: str, data: Value) -> Value:
        """Write a fragment that reduces."""
        axes = self.axes(ctx.type(data).rank)
        return self.finish(ctx, ctx.emit(op, data, axes=list(axes)) if axes else data, axes)

    def finish(self, ctx: ExportContext, found: Value, axes: Sequence[int]) -> Value:
        """Return a reduction without the axes that Relay does not keep."""
        return found if self.keepdims or not axes else ctx.emit("squeeze", found, axes=list(axes))


def _export_reduction(ctx: ExportContext, data: Value, *, op: str, reduction: Reduction) -> Value:
    return reduction.emit(ctx, op, data)


for _name in ("sum", "mean", "any", "all"):
    OPS.exports(_name)(partial(_export_reduction, op=f"{_name}_reduce"))
for _name in ("max", "min"):
    _exporter = partial(_export_reduction, op=f"{_name}_reduce")
    OPS.exports(_name, takes=Takes(data=SCALARS))(_exporter)


def _export_arg(
    ctx: ExportContext, data: Value, *, op: str, reduction: Reduction, select_last_index: bool
) -> Value:
    """Of truth values, true is the greater; among equals the first counts."""
    type_ = ctx.type(data)
    if type_.dtype == "bool":
        data = ctx.emit("select", data, 1.0, 0.0)
    axes = reduction.axes(type_.rank)
    return reduction.finish(ctx, ctx.emit(op, data, axes=list(axes)), axes)


_FIRST = Takes(data=SCALARS, select_last_index=False)
for _name in ("argmax", "argmin"):
    OPS.exports(_name, takes=Takes(data=SCALARS, select_last_index=False))(
        partial(_export_arg, op=f"{_name}_reduce")
    )


@OPS.exports("variance")
def export_variance(
    ctx: ExportContext, data: Value, mean: Value, *, reduction: Reduction, unbiased: bool
) -> Value:
    axes = reduction.axes(ctx.type(data).rank)
    spread = _join_moments(ctx, data, mean, axes)
    if spread is None:
        distance = ctx.emit("sqr", ctx.emit("sub", data, mean))
        spread = ctx.emit("mean_reduce", distance, axes=list(axes)) if axes else distance
    if unbiased:
        shape = ctx.static_shape(data)
        count = math.prod(shape[axis] for axis in axes)
        if count < 2:
            raise Unsupported("the unbiased variance of a single value")
        factor = ctx.const(count / (count - 1), ctx.type(data).dtype)
        spread = ctx.emit("mul", spread, factor)
    return reduction.finish(ctx, spread, axes)


def _join_moments(
    ctx: ExportContext, data: Value, mean: Value, axes: Sequence[int]
) -> Value | None:
    """Return the variance that the fragment gives beside the mean, if that was written as one."""
    for place, each in reversed(list(enumerate(ctx.operations))):
        if each.outputs == (mean.name,):
            given = each.op, each.inputs.get("input"), each.attributes.get("axes")
            if given != ("mean_reduce", Ref(data.name), list(axes)):
                return None
            name = ctx.identifiers.claim(ctx.source)
            ctx.operations[place] = replace(each, op="moments", outputs=(mean.name, name))
            return Value(name)
    return None

"""Reductions, which keep the axes that they reduce, and those that NNEF has no fragment for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any as AnyValue, Final

import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.nnef.model import Ref
from serde.nnef.ops.elementwise.arithmetic import SCALARS, narrow_as_scalars
from serde.nnef.ops.index.gather import require_exact
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, call, is_float, reduced_axes, tensor_type
from serde.relay.op.reduce.plain import ReducedAxes
from serde.walk.expansion.tensors import fixed_shape
from serde.walk.takes import Takes

__all__ = ["Reduction"]


@OPS.expands("prod")
def expand_prod(data: Expr, *, axis: tuple[int, ...] | None, keepdims: bool, exclude: bool) -> Expr:
    """One half of an axis is multiplied by the other until one element is left."""
    axes = reduced_axes(len(fixed_shape(data)), axis, exclude)
    for place in axes:
        data = _multiply_along(data, place)
    return data if keepdims or not axes else relay.squeeze(data, axis=axes)


def _multiply_along(data: Expr, axis: int) -> Expr:
    """Return the product along an axis, which stays."""
    shape = list(fixed_shape(data))
    if not shape[axis]:
        shape[axis] = 1
        return relay.ones(shape, tensor_type(data).dtype)
    length = shape[axis]
    while length > 1:
        half = length // 2

        def part(begin: int, end: int, x: Expr = data) -> Expr:
            return relay.strided_slice(x, [begin], [end], axes=[axis])

        product = relay.multiply(part(0, half), part(half, 2 * half))
        rest = [part(2 * half, length)] if length % 2 else []
        data = relay.concatenate((product, *rest), axis=axis) if rest else product
        length = half + length % 2
    return data


def _expand_extreme(
    data: Expr, *, name: str, axis: tuple[int, ...] | None, keepdims: bool, exclude: bool
) -> Expr:
    """Return an extreme of integers that scalars hold."""
    numbers = narrow_as_scalars(data)
    found = call(name, numbers, axis=axis, keepdims=keepdims, exclude=exclude)
    return relay.cast(found, tensor_type(data).dtype)


def _expand_place(
    data: Expr,
    *,
    name: str,
    axis: tuple[int, ...] | None,
    keepdims: bool,
    select_last_index: bool,
    exclude: bool,
) -> Expr:
    """Return the place of an extreme of integers, or that of the last of equals."""
    dtype = tensor_type(data).dtype
    numbers = data if is_float(dtype) or dtype == "bool" else narrow_as_scalars(data)
    attributes: dict[str, AnyValue] = {"axis": axis, "keepdims": keepdims, "exclude": exclude}
    if not select_last_index:
        return call(name, numbers, **attributes)
    shape = fixed_shape(data)
    axes = reduced_axes(len(shape), axis, exclude)
    for each in axes:
        numbers = relay.reverse(numbers, axis=each)
    count = prod(shape[each] for each in axes)
    scalar = dtype if is_float(dtype) else "float32"
    require_exact(count, scalar)
    first = relay.cast(call(name, numbers, **attributes), scalar)
    return relay.cast(relay.subtract(relay.const(count - 1, scalar), first), "int32")


for _name in ("max", "min"):
    OPS.expands(_name)(partial(_expand_extreme, name=_name))
for _name in ("argmax", "argmin"):
    OPS.expands(_name)(partial(_expand_place, name=_name))


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


def _import_reduction(ctx: Import, input: Expr, *, target: str, axes: Axes) -> Expr:
    return call(target, input, axis=axes, keepdims=True)


for _name, _target in REDUCTIONS.items():
    OPS.imports(_name)(partial(_import_reduction, target=_target))


@OPS.imports("sum_reduce")
def import_sum_reduce(ctx: Import, input: Expr, *, axes: Axes, normalize: bool = False) -> Expr:
    return call("mean" if normalize else "sum", input, axis=axes, keepdims=True)


@OPS.imports("moments")
def import_moments(ctx: Import, input: Expr, *, axes: Axes) -> tuple[Expr, Expr]:
    mean = relay.mean(input, axis=axes, keepdims=True)
    return mean, relay.variance(input, axis=axes, keepdims=True, with_mean=mean)


@dataclass(frozen=True, kw_only=True)
class Reduction(ReducedAxes):
    """Attributes that the reductions of Relay share, of which fragments keep the axes."""

    def emit(self, ctx: Export, op: str, data: Value) -> Value:
        """Write a fragment that reduces."""
        axes = self.axes(ctx.type(data).rank)
        return self.finish(ctx, ctx.emit(op, data, axes=list(axes)) if axes else data, axes)

    def finish(self, ctx: Export, found: Value, axes: Sequence[int]) -> Value:
        """Return a reduction without the axes that Relay does not keep."""
        return found if self.keepdims or not axes else ctx.emit("squeeze", found, axes=list(axes))


def _export_reduction(ctx: Export, data: Value, *, op: str, reduction: Reduction) -> Value:
    return reduction.emit(ctx, op, data)


for _name in ("sum", "mean", "any", "all"):
    OPS.exports(_name)(partial(_export_reduction, op=f"{_name}_reduce"))
for _name in ("max", "min"):
    _exporter = partial(_export_reduction, op=f"{_name}_reduce")
    OPS.exports(_name, takes=Takes(data=SCALARS))(_exporter)


def _export_arg(
    ctx: Export, data: Value, *, op: str, reduction: Reduction, select_last_index: bool
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
    ctx: Export, data: Value, mean: Value, *, reduction: Reduction, unbiased: bool
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


def _join_moments(ctx: Export, data: Value, mean: Value, axes: Sequence[int]) -> Value | None:
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

"""Reductions and losses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.ops.table import OPS, Export, Import, Shape, Value
from serde.relax.precision import compute_wide, make_wide_expansion, widen
from serde.relay.ir import Expr, call, is_float, reduced_axes
from serde.walk import FLOATS, Takes, reads


@OPS.imports("relax.nn.cross_entropy_with_logits")
def import_cross_entropy_with_logits(ctx: Import, predictions: Expr, labels: Expr) -> Expr:
    """The sum is divided by the number of samples."""
    total = relay.negative(relay.sum(relay.multiply(predictions, labels)))
    if ctx.rank(predictions) < 2:
        return total
    (count,) = ctx.static_lengths(predictions, [0])
    return relay.divide(total, ctx.like(total, count))


@OPS.imports("relax.nn.nll_loss")
def import_nll_loss(
    ctx: Import,
    predictions: Expr,
    targets: Expr,
    weights: Expr | None = None,
    *,
    reduction: Literal["mean", "sum", "none"],
    ignore_index: int,
) -> Expr:
    if weights is None:
        (classes,) = ctx.static_lengths(predictions, [1 if ctx.rank(predictions) > 1 else 0])
        weights = ctx.const(allocation.ones(classes), ctx.dtype(predictions))
    return relay.nn.nll_loss(
        predictions, targets, weights, reduction=reduction, ignore_index=ignore_index
    )


Axes = tuple[int, ...] | None

_TRUTH: Final = {"all": "min", "any": "max"}

_OF_SUMS: Final = (
    "serde.logsumexp",
    "serde.reduce_l1",
    "serde.reduce_l2",
    "serde.reduce_log_sum",
    "serde.reduce_sum_square",
)

for _name in _OF_SUMS:
    OPS.expands(_name)(make_wide_expansion(_name))


def _export_sum(
    ctx: Export, data: Value, *, op: str, axis: Axes, keepdims: bool, exclude: bool
) -> Value:
    axes = reduced_axes(ctx.type(data).rank, axis, exclude)
    if not axes:
        return data
    return compute_wide(ctx, lambda x: ctx.emit(op, x, axis=list(axes), keepdims=keepdims), data)


for _name in ("sum", "prod"):
    OPS.exports(_name)(partial(_export_sum, op=_name))


def _extreme_of_floats(
    ctx: Export, op: str, data: Value, axes: Sequence[int], *, keepdims: bool
) -> Value:
    """Return the extreme of halves, twice.

    TVM begins with the finite number that is least or greatest, which is none of theirs: of
    infinities alone twice that one is their infinity.
    """
    dtype = ctx.type(data).dtype
    half = ctx.emit("multiply", data, ctx.const(0.5, dtype))
    found = ctx.emit(op, half, axis=list(axes), keepdims=keepdims)
    return ctx.emit("multiply", found, ctx.const(2, dtype))


def _export_extreme(
    ctx: Export, data: Value, *, op: str, axis: Axes, keepdims: bool, exclude: bool
) -> Value:
    """Truth values are compared as numbers, which they are not in Relax."""
    type_ = ctx.type(data)
    axes = reduced_axes(type_.rank, axis, exclude)
    if not axes:
        return data
    if is_float(type_.dtype):
        return _extreme_of_floats(ctx, op, data, axes, keepdims=keepdims)
    if type_.dtype != "bool":
        return ctx.emit(op, data, axis=list(axes), keepdims=keepdims)
    if any(type_.shape[each] == 0 for each in axes):
        shape = ctx.shape_expr(ctx.result_type().shape)
        return ctx.emit("zeros" if op == "max" else "ones", shape, "bool")
    number = ctx.emit("astype", data, "uint8")
    return ctx.emit("astype", ctx.emit(op, number, axis=list(axes), keepdims=keepdims), "bool")


for _name, _op in {"max": "max", "min": "min", **_TRUTH}.items():
    OPS.exports(_name)(partial(_export_extreme, op=_op))


@OPS.exports("mean", takes=Takes(data=FLOATS))
def export_mean(ctx: Export, data: Value, *, axis: Axes, keepdims: bool, exclude: bool) -> Value:
    """Of no numbers it is none."""
    type_ = ctx.type(data)
    axes = reduced_axes(type_.rank, axis, exclude)
    if not axes:
        return data
    if any(type_.shape[each] == 0 for each in axes):
        none = ctx.emit("sum", data, axis=list(axes), keepdims=keepdims)
        return ctx.emit("multiply", none, ctx.const(np.nan, type_.dtype))
    return compute_wide(
        ctx, lambda x: ctx.emit("mean", x, axis=list(axes), keepdims=keepdims), data
    )


def _export_place(
    ctx: Export, data: Value,
    *, op: str, axis: Axes, keepdims: bool, select_last_index: bool, exclude: bool,
) -> Value:  # fmt: skip
    """Relax reduces one axis, or all, and takes the first of equals.

    TVM begins with the least number of the dtype, or the greatest, at place -1, where it stays
    if nothing else is found.
    """
    type_ = ctx.type(data)
    axes = reduced_axes(type_.rank, axis, exclude)
    if not axes:
        return ctx.emit("zeros_like", data, "int32")
    number = ctx.emit("astype", data, "uint8") if type_.dtype == "bool" else data
    if type_.dtype == "bfloat16":
        number = widen(ctx, data)
    if select_last_index or len(axes) not in (1, type_.rank):
        function = getattr(ctx.framework.topi, op)
        options = {"keepdims": keepdims, "select_last_index": select_last_index}
        found = ctx.emit_te(function, number, axis=list(axes), **options)
    else:
        along = None if len(axes) == type_.rank else axes[0]
        found = ctx.emit(op, number, axis=along, keepdims=keepdims)
    place = ctx.emit("astype", found, "int32")
    return ctx.emit("maximum", place, ctx.const(0, "int32"))


for _name in ("argmax", "argmin"):
    OPS.exports(_name)(partial(_export_place, op=_name))

_SAME: Final = ("max", "min", "mean", "prod", "sum")


@OPS.imports("relax.variance")
def import_variance(ctx: Import, x: Expr, *, axis: Axes, keepdims: bool) -> Expr:
    return relay.variance(x, axis=axis, keepdims=keepdims)


@OPS.imports("relax.std")
def import_std(ctx: Import, x: Expr, *, axis: Axes, keepdims: bool) -> Expr:
    return relay.sqrt(relay.variance(x, axis=axis, keepdims=keepdims))


@OPS.imports("relax.argmax")
def import_argmax(ctx: Import, x: Expr, *, axis: int | None, keepdims: bool) -> Expr:
    return relay.cast(relay.argmax(x, axis=axis, keepdims=keepdims), "int64")


@OPS.imports("relax.argmin")
def import_argmin(ctx: Import, x: Expr, *, axis: int | None, keepdims: bool) -> Expr:
    return relay.cast(relay.argmin(x, axis=axis, keepdims=keepdims), "int64")


@OPS.imports("relax.median")
def import_median(ctx: Import, data: Expr, *, axis: Axes, keepdims: bool) -> list[Expr]:
    """Of an even count it is the lower of the middle ones; along an axis its place comes, too."""
    if axis is not None and len(axis) > 1:
        raise Unsupported("the median along several axes at once")
    rank = ctx.rank(data)
    along = axis[0] % rank if axis else 0
    x = data if axis else relay.reshape(data, (-1,))
    (length,) = ctx.static_lengths(x, [along])
    if not length:
        raise Unsupported("the median of nothing")
    middle = ctx.const([(length - 1) // 2], "int64")
    order = relay.take(relay.argsort(x, axis=along, dtype="int64"), middle, axis=along)
    values = relay.gather(x, along, order)
    results = [values, order] if axis else [values]
    if axis and keepdims:
        return results
    found = [relay.squeeze(each, axis=[along]) for each in results]
    if keepdims:
        found = [relay.reshape(each, (1,) * rank) for each in found]
    return found


@OPS.imports("relax.collapse_sum_to")
def import_collapse_sum_to(ctx: Import, data: Expr, *, shape: Shape) -> Expr:
    return call("collapse_sum_to", data, ctx.shape_tensor(shape))


OPS.pairs(
    *(reads(f"relax.{op}", op, "keepdims", axis=None) for op in _SAME),
    reads("relax.collapse_sum_like", "collapse_sum_like"),
)

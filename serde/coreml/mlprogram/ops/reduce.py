"""Reductions: sums, extremes, norms, truth, and the places of extremes."""

from __future__ import annotations

from functools import partial
from typing import Literal

import serde.relay as relay
from serde.coreml.mlprogram.operators import NUMBERS, cast_to, compute_dtype, emit_in
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, TensorType, call, is_float, reduced_axes
from serde.relay.op.reduce.plain import ReducedAxes, reduces_one_axis
from serde.walk.takes import Takes

REDUCTIONS = {
    "reduce_l1_norm": "serde.reduce_l1",
    "reduce_l2_norm": "serde.reduce_l2",
    "reduce_log_sum": "serde.reduce_log_sum",
    "reduce_log_sum_exp": "serde.logsumexp",
    "reduce_max": "max",
    "reduce_mean": "mean",
    "reduce_min": "min",
    "reduce_prod": "prod",
    "reduce_sum": "sum",
    "reduce_sum_square": "serde.reduce_sum_square",
}
"""MIL's operator: Relay's."""

OF_INTEGERS = ("max", "min", "prod", "sum")
"""Those that mean the same of integers."""

IMPORTED_OF_INTEGERS = (*OF_INTEGERS, "mean", "serde.reduce_l1", "serde.reduce_sum_square")

TRUTH = {"all": "reduce_min", "any": "reduce_max"}
EXTREMES = {"reduce_argmax": "argmax", "reduce_argmin": "argmin"}


def _import_reduction(
    ctx: Import,
    x: Expr,
    *,
    target: str,
    axes: tuple[int, ...] | int | None = None,
    keep_dims: bool = False,
) -> Expr:
    wanted = (axes,) if isinstance(axes, int) else axes
    if not is_float(ctx.type(x).dtype) and target not in IMPORTED_OF_INTEGERS:
        raise Unsupported(f"{target} of {ctx.type(x).dtype}")
    return call(target, x, axis=wanted, keepdims=keep_dims)


def _export_reduction(ctx: Export, data: Value, *, op: str, reduction: ReducedAxes) -> Value:
    axes = reduction.axes(ctx.type(data).rank)
    if not axes:
        return data
    return emit_in(ctx, NUMBERS, op, {"x": data}, axes=list(axes), keep_dims=reduction.keepdims)


def _is_real(node: Call) -> bool:
    """Whether there are floats to reduce, and axes to reduce them over."""
    type_ = node.args[0].type
    if not isinstance(type_, TensorType) or not is_float(type_.dtype):
        return False
    return bool(ReducedAxes(**node.attrs).axes(type_.rank))


for _op, _target in REDUCTIONS.items():
    OPS.imports(_op)(partial(_import_reduction, target=_target))
    _when = None if _target in OF_INTEGERS else _is_real
    OPS.exports(_target, when=_when)(partial(_export_reduction, op=_op))


@OPS.expands("serde.logsumexp")
def expand_logsumexp(
    data: Expr, *, axis: tuple[int, ...] | None, keepdims: bool, exclude: bool
) -> Expr:
    """Over no axes, the logarithm of the exponential."""
    type_ = data.checked_type
    if not isinstance(type_, TensorType) or reduced_axes(type_.rank, axis, exclude):
        raise Unsupported(f"a logarithm of {type_!r}")
    return data


for _target, _op in TRUTH.items():
    OPS.exports(_target)(partial(_export_reduction, op=_op))


def _import_extreme(
    ctx: Import,
    x: Expr,
    *,
    target: str,
    axis: int = -1,
    keep_dims: bool = False,
    output_dtype: Literal["int32", "uint16"] = "int32",
) -> Expr:
    found = call(target, x, axis=(axis,), keepdims=keep_dims)
    return found if output_dtype == "int32" else relay.cast(found, output_dtype)


def _export_extreme(
    ctx: Export, data: Value, *, op: str, reduction: ReducedAxes, select_last_index: bool
) -> Value:
    """MIL takes the first of equals."""
    (axis,) = reduction.axes(ctx.type(data).rank)
    x = cast_to(ctx, data, compute_dtype(ctx, ctx.type(data).dtype, NUMBERS))
    return ctx.emit(op, ctx.result_type(), x=x, axis=axis, keep_dims=reduction.keepdims)


_FIRST = Takes(select_last_index=False)
for _op, _target in EXTREMES.items():
    OPS.imports(_op, since=(1, 17))(partial(_import_extreme, target=_target))
    OPS.exports(_target, takes=Takes(select_last_index=False), when=reduces_one_axis)(
        partial(_export_extreme, op=_op)
    )

"""Reductions. Their axes are an attribute before 13 (ReduceSum) or 18 (the others)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.core import numpy_dtype, ones
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import as_dtype, cast, compute_dtype, scalar_like
from serde.onnx.ops.shape.reshape import squeeze, unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, If, TensorType, call, infer_if, is_float, normalize_axis
from serde.relay.lowering.index import from_start
from serde.relay.op.reduce.plain import ReducedAxes, reduces_one_axis
from serde.walk import Takes, writes


def emit_reduce(ctx: Export, op: str, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    """Return `x` reduced over `axes`; over none, `x` itself."""
    if not axes:
        return x
    if isinstance(x.type, TensorType) and not ctx.takes(op, x.type.dtype):
        dtype = x.type.dtype
        return cast(
            ctx, emit_reduce(ctx, op, cast(ctx, x, compute_dtype(dtype)), axes, keepdims), dtype
        )
    if ctx.version >= (13 if op == "ReduceSum" else 18):
        return ctx.emit(op, x, ctx.ints(axes), keepdims=int(keepdims))
    return ctx.emit(op, x, axes=list(axes), keepdims=int(keepdims))


def _export_reduction(ctx: Export, x: Value, *, op: str, reduction: ReducedAxes) -> Value:
    return emit_reduce(ctx, op, x, reduction.axes(ctx.type(x).rank), reduction.keepdims)


for _name, _op in {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "prod": "ReduceProd",
}.items():
    OPS.exports(_name)(partial(_export_reduction, op=_op))


def _has_counterpart(node: Call) -> bool:
    """Over no axis ONNX leaves a tensor alone; narrow integers are none of its norms."""
    data = node.args[0].type
    if not isinstance(data, TensorType):
        return False
    axes = ReducedAxes(**node.attrs).axes(data.rank)
    wide = is_float(data.dtype) or data.dtype in ("int32", "int64", "uint32", "uint64")
    return bool(axes) and wide


for _name, _op in {
    "serde.logsumexp": "ReduceLogSumExp",
    "serde.reduce_l1": "ReduceL1",
    "serde.reduce_l2": "ReduceL2",
    "serde.reduce_log_sum": "ReduceLogSum",
    "serde.reduce_sum_square": "ReduceSumSquare",
}.items():
    OPS.exports(_name, when=_has_counterpart)(partial(_export_reduction, op=_op))


@OPS.exports("all")
def export_all(ctx: Export, x: Value, *, reduction: ReducedAxes) -> Value:
    axes = reduction.axes(ctx.type(x).rank)
    return cast(
        ctx,
        emit_reduce(ctx, "ReduceMin", cast(ctx, x, np.int32), axes, reduction.keepdims),
        np.bool_,
    )


@OPS.exports("any")
def export_any(ctx: Export, x: Value, *, reduction: ReducedAxes) -> Value:
    """Of no elements ONNX gives the least integer."""
    axes = reduction.axes(ctx.type(x).rank)
    greatest = emit_reduce(ctx, "ReduceMax", cast(ctx, x, np.int32), axes, reduction.keepdims)
    return ctx.emit("Greater", greatest, ctx.const(0, np.int32))


ARG_DTYPES = {"bool": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64"}
"""Dtypes of which ONNX Runtime has no ArgMax, and one that holds each."""


def _export_arg(
    ctx: Export, x: Value, *, op: str, reduction: ReducedAxes, select_last_index: bool
) -> Value:
    """ONNX counts in int64, Relay in int32."""
    dtype = ctx.type(x).dtype
    (axis,), last = reduction.axes(ctx.type(x).rank), int(select_last_index) or None
    rows = as_dtype(ctx, x, ARG_DTYPES.get(dtype, dtype))
    found = ctx.emit(op, rows, axis=axis, keepdims=int(reduction.keepdims), select_last_index=last)
    return cast(ctx, found, np.int32)


for _name, _op in {"argmax": "ArgMax", "argmin": "ArgMin"}.items():
    OPS.exports(_name, takes=Takes(select_last_index=False), when=reduces_one_axis)(
        partial(_export_arg, op=_op)
    )
    OPS.exports(_name, since=12, when=reduces_one_axis)(partial(_export_arg, op=_op))


@OPS.exports("nn.nll_loss", since=12)
def export_nll_loss(
    ctx: Export, x: Value, targets: Value, weights: Value, *, reduction: str, ignore_index: int
) -> Value:
    """ONNX has a batch axis; a vector is a batch of one, and its loss has one axis."""
    single = ctx.type(x).rank == 1
    if single:
        x, targets = unsqueeze(ctx, x, [0]), unsqueeze(ctx, targets, [0])
    found = ctx.emit(
        "NegativeLogLikelihoodLoss",
        x,
        targets,
        weights,
        reduction=reduction,
        ignore_index=ignore_index,
    )
    return squeeze(ctx, found, [0]) if single and reduction == "none" else found


@OPS.imports("NegativeLogLikelihoodLoss", since=(12, 13, 22))
def import_nll_loss(
    ctx: Import,
    x: Expr,
    target: Expr,
    weight: Expr | None = None,
    *,
    ignore_index: int | None = None,
    reduction: Literal["none", "mean", "sum"] = "mean",
) -> Expr:
    """Without `ignore_index` no class is ignored, since none is negative."""
    if weight is None:
        (classes,) = ctx.static_lengths(x, [1])
        weight = relay.const(ones(classes), ctx.type(x).dtype)
    skipped = -1 if ignore_index is None else ignore_index
    return relay.nn.nll_loss(x, target, weight, reduction=reduction, ignore_index=skipped)


def _build_log_sum_exp(ctx: Import, x: Expr, axes: Sequence[int]) -> Expr:
    """The greatest is taken out first, and counts as 0 where it is infinite."""
    top = relay.max(x, axis=tuple(axes), keepdims=True)
    top = relay.where(relay.isfinite(top), top, relay.zeros_like(top))
    total = relay.sum(relay.exp(relay.subtract(x, top)), axis=tuple(axes), keepdims=True)
    return relay.add(relay.log(total), top)


def _pad_with_identity(ctx: Import, op: str, x: Expr, axes: Sequence[int]) -> Expr:
    """Return `x` with one element on each empty axis that is reduced, which changes nothing."""
    type_ = ctx.type(x)
    if is_float(type_.dtype):
        value = np.inf if op == "min" else -np.inf
    elif type_.dtype == "bool":
        value = op == "min"
    elif numpy_dtype(type_.dtype).kind not in "iu":
        raise Unsupported(f"no element of {type_.dtype} stands for the {op} of none")
    else:
        limits = np.iinfo(type_.dtype)
        value = limits.max if op == "min" else limits.min
    widths = [(0, int(a in axes and n == 0)) for a, n in enumerate(type_.shape)]
    return relay.nn.pad(x, widths, relay.Constant(np.array(value, numpy_dtype(type_.dtype))))


def _reduce_axes(ctx: Import, op: str, x: Expr, axes: Sequence[int]) -> Expr:
    """Return one of the reductions that can be done axis by axis; the axes stay, of length 1."""
    shape = ctx.type(x).shape
    if op in ("max", "min", "logsumexp") and any(shape[axis] == 0 for axis in axes):
        x = _pad_with_identity(ctx, op, x, axes)
    if op == "logsumexp":
        return _build_log_sum_exp(ctx, x, axes)
    name = {"max": "any", "min": "all"}.get(op, op) if ctx.type(x).dtype == "bool" else op
    return call(name, x, axis=tuple(axes), keepdims=True, exclude=False)


STEPS: dict[str, tuple[Callable[[Expr], Expr] | None, str, Callable[[Expr], Expr] | None]] = {
    "ReduceL1": (relay.abs, "sum", None),
    "ReduceL2": (lambda x: relay.multiply(x, x), "sum", relay.sqrt),
    "ReduceLogSum": (None, "sum", relay.log),
    "ReduceLogSumExp": (None, "logsumexp", None),
    "ReduceMax": (None, "max", None),
    "ReduceMean": (None, "mean", None),
    "ReduceMin": (None, "min", None),
    "ReduceProd": (None, "prod", None),
    "ReduceSum": (None, "sum", None),
    "ReduceSumSquare": (lambda x: relay.multiply(x, x), "sum", None),
}
"""For each operator what is done before, the reduction, and what is done after it."""


BY_ATTRIBUTE = {"ReduceMax": (1, 11, 12, 13), "ReduceMin": (1, 11, 12, 13), "ReduceSum": (1, 11)}


BY_INPUT = {
    "ReduceLogSum": (18, 28),
    "ReduceLogSumExp": (18, 28),
    "ReduceMax": (18, 20),
    "ReduceMin": (18, 20),
    "ReduceSum": (13,),
}


def _build_reduction(
    ctx: Import, op: str, x: Expr, axes: Sequence[int], keepdims: bool, *, noop: bool = False
) -> Expr:
    """Return an ONNX reduction over `axes`; over none, over all unless it is to do nothing."""
    before, fold, after = STEPS[op]
    rank = ctx.type(x).rank
    along = sorted({normalize_axis(axis, rank) for axis in axes})
    along = along or ([] if noop else list(range(rank)))
    found = x if before is None else before(x)
    if along:
        found = _reduce_axes(ctx, fold, found, along)
    found = found if after is None else after(found)
    return found if keepdims or not along else relay.squeeze(found, axis=along)


def _import_reduction_v1(
    ctx: Import, x: Expr, *, op: str, axes: tuple[int, ...] = (), keepdims: bool = True
) -> Expr:
    return _build_reduction(ctx, op, x, axes, keepdims)


def _import_reduction(
    ctx: Import,
    x: Expr,
    axes: Expr | None = None,
    *,
    op: str,
    keepdims: bool = True,
    noop_with_empty_axes: bool = False,
) -> Expr:
    if axes is None or ctx.type(axes).shape == (0,):
        return _build_reduction(ctx, op, x, (), keepdims, noop=noop_with_empty_axes)
    if ctx.is_constant(axes):
        return _build_reduction(ctx, op, x, ctx.ints(axes), keepdims, noop=noop_with_empty_axes)
    return _reduce_computed_axes(ctx, op, x, axes, keepdims)


def _reduce_computed_axes(ctx: Import, op: str, x: Expr, axes: Expr, keepdims: bool) -> Expr:
    """Axes that are computed are asked for one after the other."""
    before, fold, after = STEPS[op]
    count, rank = ctx.axis_count(axes), ctx.type(x).rank
    wanted = from_start(axes, scalar_like(ctx, axes, rank))
    found = x if before is None else before(x)
    for axis in range(rank):
        asked = relay.any(relay.equal(wanted, scalar_like(ctx, axes, axis)))
        node = If(asked, _reduce_axes(ctx, fold, found, [axis]), found)
        node.type = infer_if(node)
        found = node
    found = found if after is None else after(found)
    return found if keepdims or not count else call("dyn.squeeze", found, wanted)


for _name in STEPS:
    OPS.imports(_name, since=BY_ATTRIBUTE.get(_name, (1, 11, 13)))(
        partial(_import_reduction_v1, op=_name)
    )
    OPS.imports(_name, since=BY_INPUT.get(_name, (18,)))(partial(_import_reduction, op=_name))


def _import_arg(
    ctx: Import,
    x: Expr,
    *,
    target: str,
    axis: int = 0,
    keepdims: bool = True,
    select_last_index: bool = False,
) -> Expr:
    """ONNX counts in int64, Relay in int32."""
    found = call(target, x, axis=(axis,), keepdims=keepdims, select_last_index=select_last_index)
    return relay.cast(found, "int64")


OPS.imports("ArgMax", since=(1, 11, 12, 13))(partial(_import_arg, target="argmax"))


OPS.imports("ArgMin", since=(1, 11, 12, 13))(partial(_import_arg, target="argmin"))


@OPS.imports("SoftmaxCrossEntropyLoss", since=(12, 13))
def import_softmax_cross_entropy_loss(
    ctx: Import,
    scores: Expr,
    labels: Expr,
    weights: Expr | None = None,
    *,
    ignore_index: int | None = None,
    reduction: Literal["none", "mean", "sum"] = "mean",
) -> list[Expr]:
    found = call(
        "serde.softmax_cross_entropy_loss",
        scores,
        labels,
        weights,
        reduction=reduction,
        ignore_index=ignore_index,
    )
    return [relay.TupleGetItem(found, each) for each in range(2)]


OPS.pairs(
    writes(
        "SoftmaxCrossEntropyLoss",
        "serde.softmax_cross_entropy_loss",
        "reduction",
        "ignore_index",
        since=12,
    )
)

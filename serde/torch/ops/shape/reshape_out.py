"""Reshaping, transposition, and axes of length 1, as they are written."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import Unsupported
from serde.relay.ir.dims import Any, Dim, product
from serde.relay.ir.layout import LayoutPlan
from serde.relay.ir.types import TensorType
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import DType, dims_of, in_signed, permute, unsqueeze


def write_reshape(ctx: ExportContext, x: Value, dims: Sequence[Dim]) -> Value:
    """Return `x` with the shape `dims`, in the words that say most of it."""
    own = ctx.type(x).shape
    if tuple(own) == tuple(dims):
        return x
    flat = _flattened(own, dims)
    if flat is not None:
        first, last = flat
        ends = (first,) if last == len(own) - 1 else (first, last)
        return ctx.method(x, "flatten", *([] if ends == (0,) else ends))
    parted = _unflattened(own, dims)
    if parted is not None:
        axis, parts = parted
        return ctx.method(x, "unflatten", axis, tuple(ctx.sizes(parts)))
    return ctx.method(x, "reshape", _lengths(ctx, x, dims))


def _flattened(own: Sequence[Dim], dims: Sequence[Dim]) -> tuple[int, int] | None:
    """Return the first and the last axis of those that become one."""
    count = len(own) - len(dims)
    if count < 1 or not dims:
        return None
    for first in range(len(dims)):
        last = first + count
        if list(own[:first]) != list(dims[:first]):
            return None
        if list(own[last + 1 :]) == list(dims[first + 1 :]):
            whole = product(own[first : last + 1])
            if whole == dims[first] and not isinstance(whole, Any):
                return first, last
            if isinstance(dims[first], Any):
                return first, last
    return None


def _unflattened(own: Sequence[Dim], dims: Sequence[Dim]) -> tuple[int, list[Dim]] | None:
    """Return the axis that becomes several, and their lengths."""
    count = len(dims) - len(own)
    if count < 1 or not own:
        return None
    for axis in range(len(own)):
        if list(own[:axis]) != list(dims[:axis]):
            return None
        stop = axis + count + 1
        parts = list(dims[axis:stop])
        if list(own[axis + 1 :]) == list(dims[stop:]) and product(parts) == own[axis]:
            computed = [i for i, each in enumerate(parts) if not isinstance(each, int)]
            if own[axis] == 0 or len(computed) > 1 or 0 in parts:
                return None
            return axis, [-1 if i in computed else each for i, each in enumerate(parts)]
    return None


def _lengths(ctx: ExportContext, x: Value, dims: Sequence[Dim]) -> object:
    """Return lengths for ``reshape``: one that is not a number is -1 where it can be."""
    own = ctx.type(x).shape
    if not dims:
        return ()
    computed = [i for i, each in enumerate(dims) if not isinstance(each, int)]
    if 0 in dims or not computed:
        return tuple(ctx.sizes(dims))
    inferred = next((i for i in computed if isinstance(dims[i], Any)), None)
    if inferred is None:
        sums = [i for i in computed if dims[i].name is None]  # type: ignore[union-attr]
        inferred = (sums or computed)[-1]
    found: list[object] = []
    for place, each in enumerate(dims):
        if place == inferred:
            found.append(-1)
        elif isinstance(each, Any):
            found.append(ctx.size(x, _axis_of(own, each)))
        else:
            found += ctx.sizes([each])
    return tuple(found)


def _axis_of(own: Sequence[Dim], dim: Any) -> int:
    for axis, each in enumerate(own):
        if each is dim:
            return axis
    raise Unsupported("needs a length that is not known before the model runs")


@OPS.exports("reshape", "contrib_reverse_reshape")
def export_reshape(
    ctx: ExportContext, data: Value, *, newshape: tuple[Dim, ...], allowzero: bool
) -> Value:
    return write_reshape(ctx, data, ctx.result_type().shape)


@OPS.exports("nn.batch_flatten")
def export_batch_flatten(ctx: ExportContext, data: Value) -> Value:
    if ctx.type(data).rank == 1:
        return ctx.method(data, "unsqueeze", 1)
    return data if ctx.type(data).rank == 2 else ctx.method(data, "flatten", 1)


@OPS.exports("reshape_like")
def export_reshape_like(
    ctx: ExportContext,
    data: Value,
    shape_like: Value,
    *,
    lhs_begin: int,
    lhs_end: int | None,
    rhs_begin: int,
    rhs_end: int | None,
) -> Value:
    if (lhs_begin, lhs_end, rhs_begin, rhs_end) == (0, None, 0, None):
        return ctx.method(data, "reshape_as", shape_like)
    return write_reshape(ctx, data, ctx.result_type().shape)


@OPS.exports("transpose")
def export_transpose(ctx: ExportContext, data: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(data).rank
    order = [axis % rank for axis in axes] if axes else list(reversed(range(rank)))
    return permute(ctx, data, order)


@OPS.exports("layout_transform")
def export_layout_transform(
    ctx: ExportContext, data: Value, *, src_layout: str, dst_layout: str
) -> Value:
    """The pieces of each axis are brought together, made one, parted anew and spread."""
    type_ = ctx.type(data)
    plan = LayoutPlan(type_.shape, src_layout, dst_layout)
    if len(plan.parts) == len(plan.gather) == len(plan.merged):
        return permute(ctx, data, [plan.gather[i] for i in plan.spread])
    whole = permute(ctx, data, plan.gather)
    whole = ctx.typed(whole, TensorType([type_.shape[i] for i in plan.gather], type_.dtype))
    return permute(ctx, write_reshape(ctx, whole, plan.parts), plan.spread)


@OPS.exports("expand_dims")
def export_expand_dims(ctx: ExportContext, data: Value, *, axis: int, num_newaxis: int) -> Value:
    first = axis % (ctx.type(data).rank + 1)
    if num_newaxis == 1:
        return ctx.method(data, "unsqueeze", axis)
    return unsqueeze(ctx, data, range(first, first + num_newaxis))


@OPS.exports("squeeze")
def export_squeeze(ctx: ExportContext, data: Value, *, axis: tuple[int, ...] | None) -> Value:
    if axis is None:
        return ctx.method(data, "squeeze")
    return ctx.method(data, "squeeze", dims_of(axis)) if axis else data


@OPS.exports("shape_of")
def export_shape_of(ctx: ExportContext, data: Value, *, dtype: DType | None) -> Value:
    lengths = [ctx.size(data, axis) for axis in range(ctx.type(data).rank)]
    return ctx.call("torch.tensor", lengths, dtype=ctx.dtype(ctx.result_type().dtype))


@OPS.exports("ndarray_size")
def export_ndarray_size(ctx: ExportContext, data: Value, *, dtype: DType | None) -> Value:
    count = ctx.method(data, "numel")
    return ctx.call("torch.tensor", count, dtype=ctx.dtype(ctx.result_type().dtype))


@OPS.exports("reverse")
@in_signed
def export_reverse(ctx: ExportContext, data: Value, *, axis: int | None) -> Value:
    return ctx.method(data, "flip", axis)

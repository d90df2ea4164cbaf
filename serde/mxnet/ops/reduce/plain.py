"""Reductions, norms and losses. Reducing every axis, none kept, leaves one axis of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.mxnet.axis_groups import split_axes
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TensorType, TupleGetItem, call, is_float, normalize_axes
from serde.relay.op.reduce.plain import ReducedAxes, reduces_one_axis
from serde.walk.takes import Takes

FLOAT32 = np.dtype("float32")

Axes = int | tuple[int, ...] | None


def reduced_axes(rank: int, axis: Axes, exclude: bool = False) -> tuple[int, ...]:
    """Return the axes that MXNet reduces; none named means all."""
    if axis is None or axis == ():
        return tuple(range(rank))
    named = normalize_axes((axis,) if isinstance(axis, int) else axis, rank)
    return tuple(a for a in range(rank) if a not in named) if exclude else named


def with_axis(ctx: Import, data: Expr, result: Expr, axes: tuple[int, ...], keepdims: bool) -> Expr:
    """Return `result` as MXNet shapes it: never a scalar."""
    if keepdims or len(axes) < ctx.type(data).rank:
        return result
    return relay.expand_dims(result, 0)


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """Attributes that the reductions of MXNet share."""

    axis: Axes = None
    keepdims: bool = False
    exclude: bool = False

    def build(self, ctx: Import, target: str, data: Expr) -> Expr:
        """Return a reduction by an operator of Relay."""
        axes = reduced_axes(ctx.type(data).rank, self.axis, self.exclude)
        result = getattr(relay, target)(data, axis=axes, keepdims=self.keepdims)
        return with_axis(ctx, data, result, axes, self.keepdims)


def _import_reduction(ctx: Import, data: Expr, *, target: str, reduction: Reduction) -> Expr:
    return reduction.build(ctx, target, data)


for _target in ("sum", "mean", "max", "min", "prod"):
    OPS.imports(_target)(partial(_import_reduction, target=_target))


def _declare_import_without_nan(name: str, target: str, identity: float) -> None:
    @OPS.imports(name)
    def import_reduction(ctx: Import, data: Expr, *, reduction: Reduction) -> Expr:
        dtype = ctx.type(data).dtype
        if is_float(dtype):
            data = relay.where(relay.isnan(data), relay.const(identity, dtype), data)
        return reduction.build(ctx, target, data)


_declare_import_without_nan("nansum", "sum", 0.0)

_declare_import_without_nan("nanprod", "prod", 1.0)


@OPS.imports("_square_sum")
def import_square_sum(ctx: Import, data: Expr, *, reduction: Reduction) -> Expr:
    """MXNet has it of row-sparse matrices alone, which are dense here."""
    return reduction.build(ctx, "sum", relay.multiply(data, data))


@OPS.imports("moments")
def import_moments(
    ctx: Import, data: Expr, *, axes: Axes = None, keepdims: bool = False
) -> list[Expr]:
    if axes is None or axes == ():
        raise Unsupported("no axes, of which MXNet has no moments", hint="name all of them")
    chosen = reduced_axes(ctx.type(data).rank, axes)
    found = relay.mean_variance(data, chosen, keepdims)
    return [with_axis(ctx, data, each, chosen, keepdims) for each in found]


def _import_arg_reduction(
    ctx: Import, data: Expr, *, target: str, axis: int | None = None, keepdims: bool = False
) -> Expr:
    """The index comes as float32; without an axis it counts through the flat tensor."""
    if axis is None:
        flat = relay.reshape(data, (-1,))
        axes = ctx.type(data).rank if keepdims else 1
        result = relay.expand_dims(getattr(relay, target)(flat, axis=(0,)), 0, max(axes, 1))
    else:
        result = getattr(relay, target)(data, axis=(axis,), keepdims=keepdims)
        result = with_axis(ctx, data, result, (axis,), keepdims)
    return relay.cast(result, FLOAT32)


for _target in ("argmax", "argmin"):
    OPS.imports(_target)(partial(_import_arg_reduction, target=_target))


@OPS.imports("argmax_channel")
def import_argmax_channel(ctx: Import, data: Expr) -> Expr:
    return relay.cast(relay.argmax(data, axis=(1,)), FLOAT32)


_OF_NOTHING = {"sum": 0.0, "prod": 1.0, "mean": np.nan}
"""What a reduction gives of no elements."""


def _export_reduction(ctx: Export, data: Value, *, name: str, reduction: ReducedAxes) -> Value:
    """MXNet adds up float16 in float16, and reduces no axis of length 0."""
    type_, lengths = ctx.type(data), ctx.result_type().concrete_shape
    if 0 in type_.shape and lengths is not None and name in _OF_NOTHING:
        return ctx.const(allocation.full(lengths, _OF_NOTHING[name], type_.dtype))
    axes, keepdims = reduction.axes(type_.rank), reduction.keepdims
    if type_.rank == 0 or not axes:
        return data
    if type_.dtype == "float16" and name in ("sum", "mean", "prod"):
        build = getattr(relay, name)
        return ctx.spell(
            lambda x: relay.cast(build(relay.cast(x, FLOAT32), axes, keepdims), "float16"), data
        )
    parts = split_axes(axes, type_.rank)
    if len(parts) == 1:
        return _emit_reduction(ctx, name, data, axes, keepdims)
    return ctx.spell(lambda x: _reduce_in_turn(name, x, parts, keepdims), data)


def _reduce_in_turn(name: str, x: Expr, parts: Sequence[tuple[int, ...]], keepdims: bool) -> Expr:
    """Reduce one part of the axes after the other, the last ones first, which moves no others."""
    for axes in reversed(parts):
        x = getattr(relay, name)(x, axes, keepdims)
    return x


def _emit_reduction(
    ctx: Export, op: str, data: Value, axes: int | tuple[int, ...], keepdims: bool
) -> Value:
    """Emit a reduction; one of all axes to a scalar keeps them first."""
    result = ctx.result_type()
    if result.shape or not ctx.np_shape:
        return ctx.emit(op, data, axis=axes, keepdims=keepdims)
    kept = ctx.emit(op, data, axis=axes, keepdims=True)
    return ctx.reshape(replace(kept, type=TensorType((1,), result.dtype)), ())


for _name in ("sum", "mean", "max", "min", "prod"):
    OPS.exports(_name)(partial(_export_reduction, name=_name))


def _export_truth(ctx: Export, data: Value, *, target: str, reduction: ReducedAxes) -> Value:
    reduce = partial(getattr(relay, target), **vars(reduction))
    return ctx.spell(lambda x: relay.cast(reduce(relay.cast(x, "uint8")), "bool"), data)


OPS.exports("all")(partial(_export_truth, target="min"))

OPS.exports("any")(partial(_export_truth, target="max"))

EXACT = 2**24
"""Up to here float32 counts every integer."""


def _export_arg(
    ctx: Export, data: Value, *, name: str, reduction: ReducedAxes, select_last_index: bool
) -> Value:
    """MXNet finds the first along one axis, and tells where in the dtype of the data."""
    (along,), keepdims = reduction.axes(ctx.type(data).rank), reduction.keepdims
    length = ctx.type(data).shape[along]
    if not isinstance(length, int) or length > EXACT:
        wide = ctx.emit_bytes(f"_npi_{name}", data, axis=along, keepdims=True)
        kept = tuple(1 if i == along else n for i, n in enumerate(ctx.type(data).shape))
        whole = ctx.cast(replace(wide, type=TensorType(kept, "int64")), "int32")
        return ctx.reshape(whole, ctx.result_type().shape)
    if ctx.type(data).dtype in ("float16", "uint8", "int8", "bool"):
        data = ctx.cast(data, "float32")
    return ctx.emit("Cast", _emit_reduction(ctx, name, data, along, keepdims), dtype="int32")


_FIRST = Takes(select_last_index=False)
for _name in ("argmax", "argmin"):
    OPS.exports(_name, takes=Takes(select_last_index=False), when=reduces_one_axis)(
        partial(_export_arg, name=_name)
    )


def _import_arg(
    ctx: Import, data: Expr, *, name: str, axis: int | None = None, keepdims: bool = False
) -> Expr:
    return relay.cast(getattr(relay, name)(data, axis=axis, keepdims=keepdims), "int64")


for _name in ("argmax", "argmin"):
    OPS.imports(f"_npi_{_name}")(partial(_import_arg, name=_name))


@OPS.imports("norm", ignored=("out_dtype",))
def import_norm(
    ctx: Import, data: Expr, *, ord: int = 2, axis: Axes = None, keepdims: bool = False
) -> Expr:
    axes = reduced_axes(ctx.type(data).rank, axis)
    if ord == 1:
        result = relay.sum(relay.abs(data), axis=axes, keepdims=keepdims)
    elif ord == 2:
        result = relay.sqrt(relay.sum(relay.multiply(data, data), axis=axes, keepdims=keepdims))
    else:
        raise Unsupported(f"ord={ord}; MXNet has 1 and 2")
    return with_axis(ctx, data, result, axes, keepdims)


WHOLE, FROBENIUS, NUCLEAR = -2, 1, 2
"""Flags of ``_npi_norm``: of all elements, of a matrix as of a vector, of the singular values."""


@OPS.imports("_npi_norm")
def import_npi_norm(
    ctx: Import,
    data: Expr,
    *,
    ord: float = 2.0,
    axis: Axes = None,
    keepdims: bool = False,
    flag: int = -1,
) -> Expr:
    """One axis has vectors, two have matrices; without any, those are the last two."""
    type_ = ctx.type(data)
    if not is_float(type_.dtype):
        raise Unsupported(f"norms of {type_.dtype}, which MXNet rounds at every element")
    if flag == WHOLE:
        return call("serde.reduce_l2", data, keepdims=keepdims)
    named = tuple(range(max(0, type_.rank - 2), type_.rank)) if axis is None else axis
    axes = normalize_axes((named,) if isinstance(named, int) else named, type_.rank)
    if len(axes) == 1:
        return _of_vectors(data, ord, axes, keepdims)
    if len(axes) != 2:
        raise Unsupported(f"axis={axis}: MXNet has norms of vectors and of matrices")
    if flag == FROBENIUS:
        return call("serde.reduce_l2", data, axis=axes, keepdims=keepdims)
    if flag == NUCLEAR or abs(ord) == 2:
        return _of_values(ctx, data, "sum" if flag == NUCLEAR else _extreme(ord), axes, keepdims)
    if abs(ord) != 1:
        raise Unsupported(f"ord={ord:g} of matrices, which is no norm")
    columns = call("serde.reduce_l1", data, axis=axes[:1], keepdims=True)
    found = call(_extreme(ord), columns, axis=axes[1:], keepdims=True)
    return found if keepdims else relay.squeeze(found, axes)


def _extreme(ord: float) -> str:
    return "max" if ord > 0 else "min"


def _of_vectors(data: Expr, ord: float, axes: tuple[int, ...], keepdims: bool) -> Expr:
    """Return a root of the sum of powers; a zero adds nothing, whatever the power."""
    if ord in (1, 2):
        return call(f"serde.reduce_l{int(ord)}", data, axis=axes, keepdims=keepdims)
    dtype = data.checked_type.dtype  # type: ignore[union-attr]
    zero, one = relay.const(0.0, dtype), relay.const(1.0, dtype)
    size = relay.abs(data)
    present = relay.greater(size, zero)
    if ord == 0:
        return relay.sum(relay.where(present, one, zero), axis=axes, keepdims=keepdims)
    powers = relay.power(relay.where(present, size, one), relay.const(ord, dtype))
    total = relay.sum(relay.where(present, powers, zero), axis=axes, keepdims=keepdims)
    return relay.power(total, relay.const(1 / ord, dtype))


def _of_values(
    ctx: Import, data: Expr, reduction: str, axes: tuple[int, ...], keepdims: bool
) -> Expr:
    """Return what a reduction makes of the singular values."""
    rank = ctx.type(data).rank
    order = [*(axis for axis in range(rank) if axis not in axes), *axes]
    matrices = data if order == sorted(order) else relay.transpose(data, order)
    values = TupleGetItem(call("serde.svd", matrices), 1)
    found: Expr = call(reduction, values, axis=(rank - 2,))
    for axis in sorted(axes) if keepdims else ():
        found = relay.expand_dims(found, axis)
    return found


LEAST = float(np.float32(1e-8))
"""Probabilities below count as this one, in whatever dtype."""


@OPS.imports("softmax_cross_entropy")
def import_softmax_cross_entropy(ctx: Import, data: Expr, label: Expr) -> Expr:
    """The sum over all rows, with probabilities kept away from zero."""
    type_ = ctx.type(data)
    if type_.rank != 2:
        raise Unsupported(f"expected a matrix of scores, found {type_!r}")
    indices = relay.expand_dims(relay.cast(label, "int64"), 1)
    chosen = relay.gather(relay.nn.softmax(data, axis=1), 1, indices)
    kept = relay.maximum(chosen, relay.const(LEAST, type_.dtype))
    total = relay.sum(relay.negative(relay.log(kept)), axis=(0, 1))
    return relay.expand_dims(total, 0)

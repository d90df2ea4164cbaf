"""Norms of vectors and matrices."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.reduce.plain import Axes, reduced_axes, with_axis
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr, TupleGetItem
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float, normalize_axes


@OPS.imports("norm", ignored=("out_dtype",))
def import_norm(
    ctx: ImportContext, data: Expr, *, ord: int = 2, axis: Axes = None, keepdims: bool = False
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
    ctx: ImportContext,
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
    ctx: ImportContext, data: Expr, reduction: str, axes: tuple[int, ...], keepdims: bool
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

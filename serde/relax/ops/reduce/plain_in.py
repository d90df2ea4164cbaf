"""Importers of what is computed along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext, Shape
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call

__all__: list[str] = []

Axes = tuple[int, ...] | None

_SAME: Final = ("max", "min", "mean", "prod", "sum")


def _import_reduction(op: str) -> Callable[..., Expr]:
    build = getattr(relay, op)

    def convert(ctx: ImportContext, x: Expr, *, axis: Axes, keepdims: bool) -> Expr:
        return build(x, axis=axis, keepdims=keepdims)

    return convert


for _op in _SAME:
    OPS.imports(f"relax.{_op}")(_import_reduction(_op))


@OPS.imports("relax.variance")
def import_variance(ctx: ImportContext, x: Expr, *, axis: Axes, keepdims: bool) -> Expr:
    return relay.variance(x, axis=axis, keepdims=keepdims)


@OPS.imports("relax.std")
def import_std(ctx: ImportContext, x: Expr, *, axis: Axes, keepdims: bool) -> Expr:
    return relay.sqrt(relay.variance(x, axis=axis, keepdims=keepdims))


@OPS.imports("relax.argmax")
def import_argmax(ctx: ImportContext, x: Expr, *, axis: int | None, keepdims: bool) -> Expr:
    return relay.cast(relay.argmax(x, axis=axis, keepdims=keepdims), "int64")


@OPS.imports("relax.argmin")
def import_argmin(ctx: ImportContext, x: Expr, *, axis: int | None, keepdims: bool) -> Expr:
    return relay.cast(relay.argmin(x, axis=axis, keepdims=keepdims), "int64")


@OPS.imports("relax.cumsum")
def import_cumsum(
    ctx: ImportContext, data: Expr, *, axis: int | None, dtype: str | None, exclusive: bool
) -> Expr:
    return relay.cumsum(data, axis=axis, dtype=dtype or ctx.dtype(data), exclusive=exclusive)


@OPS.imports("relax.cumprod")
def import_cumprod(
    ctx: ImportContext, data: Expr, *, axis: int | None, dtype: str | None, exclusive: bool
) -> Expr:
    return relay.cumprod(data, axis=axis, dtype=dtype or ctx.dtype(data), exclusive=exclusive)


@OPS.imports("relax.median")
def import_median(ctx: ImportContext, data: Expr, *, axis: Axes, keepdims: bool) -> list[Expr]:
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
def import_collapse_sum_to(ctx: ImportContext, data: Expr, *, shape: Shape) -> Expr:
    return call("collapse_sum_to", data, ctx.shape_tensor(shape))


@OPS.imports("relax.collapse_sum_like")
def import_collapse_sum_like(ctx: ImportContext, data: Expr, collapse_target: Expr) -> Expr:
    return relay.collapse_sum_like(data, collapse_target)

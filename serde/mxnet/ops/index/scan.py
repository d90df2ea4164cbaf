"""Differences and running totals along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core import dataclass, iterations
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TensorType, normalize_axis
from serde.relay.lowering.lengths import LAST


def _differences(data: Expr, axis: int) -> Expr:
    after = relay.strided_slice(data, [1], [LAST], [1], axes=[axis])
    return relay.subtract(after, relay.strided_slice(data, [0], [-1], [1], axes=[axis]))


@OPS.imports("_npi_diff")
def import_diff(ctx: Import, a: Expr, *, n: int = 1, axis: int = -1) -> Expr:
    if n < 0:
        raise Unsupported(f"n={n} is negative")
    along = normalize_axis(axis, ctx.type(a).rank)
    length = ctx.type(a).shape[along]
    for _ in iterations(min(n, length) if isinstance(length, int) else n, f"n={n}"):
        a = _differences(a, along)
    return a


@OPS.imports("_npi_ediff1d")
def import_ediff1d(
    ctx: Import,
    input1: Expr,
    *ends: Expr,
    to_begin_arr_given: bool = False,
    to_end_arr_given: bool = False,
    to_begin_scalar: float | None = None,
    to_end_scalar: float | None = None,
) -> Expr:
    """Tensors to put at the ends follow the data, as many as are given."""
    tensors = list(ends)
    flat = relay.reshape(input1, (-1,))
    parts = [_differences(flat, 0)]
    if len(ends) != to_begin_arr_given + to_end_arr_given:
        raise Unsupported(f"{len(ends)} tensors for the ends, but the attributes say otherwise")
    if to_begin_arr_given:
        parts.insert(0, relay.reshape(tensors.pop(0), (-1,)))
    elif to_begin_scalar is not None:
        parts.insert(0, _single(ctx, input1, to_begin_scalar))
    if to_end_arr_given:
        parts.append(relay.reshape(tensors.pop(0), (-1,)))
    elif to_end_scalar is not None:
        parts.append(_single(ctx, input1, to_end_scalar))
    return relay.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def _single(ctx: Import, data: Expr, value: float) -> Expr:
    return relay.Constant(np.reshape(ctx.constant(scalar_like(ctx, data, value)), (1,)))


@OPS.imports("_np_cumsum")
def import_cumsum(
    ctx: Import, a: Expr, *, axis: int | None = None, dtype: np.dtype[AnyValue] | None = None
) -> Expr:
    """Booleans become int64."""
    if dtype is None and ctx.type(a).dtype == "bool":
        dtype = np.dtype(np.int64)
    return relay.cumsum(a, axis=axis, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class Scan:
    """Attributes of Relay's running totals."""

    axis: int | None
    dtype: np.dtype[AnyValue] | None
    exclusive: bool


def _shift(data: Expr, axis: int, offset: int, value: float) -> Expr:
    """Return `data` moved by `offset` along an axis, the first of it filled.

    What falls off is cut last: MXNet fails on empty arrays, such as all but one of one element.
    """
    type_ = data.checked_type
    if not isinstance(type_, TensorType):
        raise Unsupported(f"expected a tensor, found {type_!r}")
    first = relay.strided_slice(data, [0], [offset], [1], axes=[axis])
    fill = relay.full_like(first, relay.const(value, type_.dtype))
    return relay.strided_slice(relay.concatenate([fill, data], axis), [0], [-offset], axes=[axis])


def _spell_scan(
    ctx: Export, data: Value, attrs: Scan, scan: Callable[[Expr, int], Expr], identity: float
) -> Value:
    """Spell a running total out: float16 in float32, an exclusive one of shifted data."""
    result = ctx.result_type().dtype
    wide = "float32" if result == "float16" else result
    axis, exclusive = attrs.axis, attrs.exclusive
    along = 0 if axis is None else axis % ctx.type(data).rank
    length = ctx.result_type().shape[along]

    def build(x: Expr) -> Expr:
        moved = relay.cast(relay.reshape(x, (-1,)) if axis is None else x, wide)
        if exclusive and length == 1:
            return relay.full_like(relay.cast(moved, result), relay.const(identity, result))
        if exclusive:
            moved = _shift(moved, along, 1, identity)
        return relay.cast(scan(moved, along), result)

    return ctx.spell(build, data)


@OPS.exports("cumsum")
def export_cumsum(ctx: Export, data: Value, *, scan: Scan) -> Value:
    type_, result = ctx.type(data), ctx.result_type()
    narrow = result.dtype in ("float16", "bool") or type_.dtype != result.dtype
    if scan.axis is None or scan.exclusive or narrow:
        return _spell_scan(ctx, data, scan, lambda x, along: relay.cumsum(x, axis=along), 0.0)
    return ctx.emit("_np_cumsum", data, axis=scan.axis % type_.rank)


def _scan_product(data: Expr, axis: int) -> Expr:
    """Return running products by multiplying what is 1, 2, 4... elements apart."""
    type_ = data.checked_type
    length = type_.shape[axis] if isinstance(type_, TensorType) else None
    if not isinstance(length, int):
        raise Unsupported(f"running products along an axis of length {length}")
    offset = 1
    while offset < length:
        data = relay.multiply(data, _shift(data, axis, offset, 1.0))
        offset *= 2
    return data


@OPS.exports("cumprod")
def export_cumprod(ctx: Export, data: Value, *, scan: Scan) -> Value:
    return _spell_scan(ctx, data, scan, _scan_product, 1.0)

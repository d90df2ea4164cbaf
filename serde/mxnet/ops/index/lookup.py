"""Coordinates: several indices at once, places in a flat tensor."""

from __future__ import annotations

from math import prod

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.layout import converted
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import normalize_axes
from serde.relay.ir.types import TensorType


def wrapped(places: Expr, length: int) -> Expr:
    """Return `places` counted from the start of an axis."""
    dtype = places.checked_type.dtype if isinstance(places.checked_type, TensorType) else "int64"
    negative = relay.less(places, relay.const(0, dtype))
    return relay.where(negative, relay.add(places, relay.const(length, dtype)), places)


@OPS.exports("adv_index")
def export_adv_index(ctx: ExportContext, inputs: tuple[Value, ...]) -> Value:
    data, *indices = inputs
    lengths = ctx.static_lengths(data, range(len(indices)))
    free = ctx.type(data).rank - len(indices)
    result = ctx.result_type().shape
    shape = result[: len(result) - free]

    def spelled(x: Expr, *places: Expr) -> Expr:
        rows = [
            relay.broadcast_to(relay.cast(wrapped(place, length), "int64"), shape)
            for place, length in zip(places, lengths, strict=True)
        ]
        return relay.gather_nd(x, relay.stack(rows, 0))

    return ctx.spell(spelled, data, *indices)


@OPS.imports("_ravel_multi_index")
def import_ravel_multi_index(ctx: ImportContext, data: Expr, *, shape: tuple[int, ...]) -> Expr:
    """The length of the first axis does not count, and no index is too large."""
    steps = np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1]
    parts = relay.multiply(converted(data, "int64"), relay.Constant(steps[:, None].copy()))
    return converted(relay.sum(parts, axis=(0,)), ctx.type(data).dtype)


@OPS.imports("_unravel_index")
def import_unravel_index(ctx: ImportContext, data: Expr, *, shape: tuple[int, ...]) -> Expr:
    """The first coordinate grows without end; quotients are rounded towards zero."""
    if ctx.type(data).rank != 1:
        raise Unsupported(f"places {ctx.type(data)!r}: MXNet writes those of a vector alone")
    places = converted(data, "int64")
    rows = []
    for axis, length in enumerate(shape):
        step = prod(shape[axis + 1 :])
        row = relay.divide(places, relay.const(step, "int64")) if step != 1 else places
        rows.append(relay.trunc_mod(row, relay.const(length, "int64")) if axis else row)
    return converted(relay.stack(rows, 0), ctx.type(data).dtype)


@OPS.imports("_contrib_index_array")
def import_index_array(
    ctx: ImportContext, data: Expr, *, axes: tuple[int, ...] | int | None = None
) -> Expr:
    """Ones are summed up along each axis, so that lengths may be open."""
    shape = ctx.type(data).shape
    named = (axes,) if isinstance(axes, int) else axes
    over = range(len(shape)) if named is None else normalize_axes(named, len(shape))
    if not over:
        return relay.zeros([*shape, 0], "int64")
    ones = relay.ones_like(converted(data, "int64"))
    return relay.stack([relay.cumsum(ones, axis=axis, exclusive=True) for axis in over], -1)


@OPS.exports("unravel_index")
def export_unravel_index(ctx: ExportContext, data: Value, shape: Value) -> Value:
    """The lengths must be constants, as what comes before an axis is divided by them."""
    lengths = [int(length) for length in ctx.constant(shape)]
    dtype = ctx.type(data).dtype

    def spelled(places: Expr) -> Expr:
        rows = []
        for axis, length in enumerate(lengths):
            step = relay.const(prod(lengths[axis + 1 :]), dtype)
            row = relay.floor_divide(places, step) if axis + 1 < len(lengths) else places
            rows.append(relay.floor_mod(row, relay.const(length, dtype)))
        return relay.stack(rows, 0)

    return ctx.spell(spelled, data)


@OPS.exports("sparse_reshape")
def export_sparse_reshape(
    ctx: ExportContext, sparse_indices: Value, prev_shape: Value, new_shape: Value
) -> tuple[Value, Value]:
    before = [int(length) for length in ctx.constant(prev_shape)]
    wanted = ctx.constant(new_shape)
    after = wanted.copy()
    known = prod(int(length) for length in wanted if length >= 0)
    after[wanted < 0] = prod(before) // max(known, 1)
    dtype = ctx.type(sparse_indices).dtype
    steps = np.array([prod(before[axis + 1 :]) for axis in range(len(before))])

    def spelled(rows: Expr) -> Expr:
        parts = relay.multiply(rows, relay.Constant(steps.astype(dtype)))
        flat = relay.sum(parts, axis=(1,))
        moved = relay.unravel_index(flat, relay.Constant(after.astype(np.int64)))
        return relay.transpose(moved, [1, 0])

    return ctx.spell(spelled, sparse_indices), ctx.const(after)

"""Tensors made from numbers: filled ones, ranges, grids, triangles and diagonals."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.exporter import ExportContext as Out
from serde.mxnet.ops.table import OPS
from serde.relay.expr import Expr
from serde.weights import numpy_dtype


@OPS.exports("full_like")
def export_full_like(ctx: Out, data: Value, fill_value: Value) -> Value:
    type_ = ctx.type(data)
    value = ctx.cast(fill_value, type_.dtype)
    lengths = type_.concrete_shape
    if value.data is not None and lengths is not None:
        return ctx.const(np.broadcast_to(value.data, lengths))
    block = ctx.reshape(value, (1,) * type_.rank)
    return ctx.emit_bytes("broadcast_like", block, data) if type_.rank else block


@OPS.exports("arange")
def export_arange(
    ctx: Out, start: Value, end: Value, step: Value, *, dtype: np.dtype[AnyValue]
) -> Value:
    """A range of constant length is counted, whatever its ends are."""
    (length,) = ctx.result_type().shape
    if not isinstance(length, int):
        raise Unsupported("a range whose length is computed at run time")
    numbers = ctx.const(np.arange(length), "int64")
    wide = "float64" if ctx.type(start).dtype.startswith("float") else "int64"

    def spelled(first: Expr, by: Expr, places: Expr) -> Expr:
        steps = relay.multiply(relay.cast(places, wide), relay.cast(by, wide))
        return relay.cast(relay.add(relay.cast(first, wide), steps), dtype)

    return ctx.spell(spelled, start, step, numbers)


@OPS.exports("meshgrid")
def export_meshgrid(
    ctx: Out, data: tuple[Value, ...], *, indexing: Literal["ij", "xy"]
) -> tuple[Value, ...]:
    shape = ctx.result_types()[0].shape
    places = list(range(len(data)))
    if indexing == "xy":
        places[:2] = reversed(places[:2])

    def spread(place: int) -> Value:
        ones = tuple(length if axis == place else 1 for axis, length in enumerate(shape))
        return ctx.spell(
            lambda x: relay.broadcast_to(relay.reshape(x, ones), shape), data[places.index(place)]
        )

    return tuple(spread(place) for place in places)


@OPS.exports("ndarray_size")
def export_ndarray_size(ctx: Out, data: Value, *, dtype: AnyValue) -> Value:
    shape = ctx.type(data).concrete_shape
    result = ctx.result_type()
    if shape is not None:
        return ctx.const(np.prod(shape, dtype=np.int64), result.dtype)
    whole = ctx.emit("Cast", ctx.emit("size_array", data), dtype=result.dtype)
    return ctx.emit("_npx_reshape", whole, newshape=()) if ctx.np_shape else whole


@OPS.exports("trilu")
def export_trilu(ctx: Out, data: Value, k: Value, *, upper: bool) -> Value:
    """The two last axes must be fixed: their places are compared with `k`."""
    rows, columns = ctx.static_lengths(data, (-2, -1))
    offsets = ctx.const(np.arange(columns)[None, :] - np.arange(rows)[:, None], "int64")
    compare = relay.greater_equal if upper else relay.less_equal

    def spelled(x: Expr, diagonal: Expr, places: Expr) -> Expr:
        kept = compare(places, relay.cast(diagonal, "int64"))
        return relay.where(kept, x, relay.zeros_like(x))

    return ctx.spell(spelled, data, k, offsets)


@OPS.exports("matrix_set_diag")
def export_matrix_set_diag(
    ctx: Out,
    input: Value,
    diagonal: Value,
    *,
    k1: int,
    k2: int,
    super_diag_right_align: bool,
    sub_diag_right_align: bool,
) -> Value:
    """Every place of a diagonal takes its element of `diagonal`, whose two last axes are one."""
    rows, columns = ctx.static_lengths(input, (-2, -1))
    lines = ctx.type(diagonal).shape
    (width,) = ctx.static_lengths(diagonal, [-1])
    places = np.zeros((rows, columns), np.int64)
    on = np.zeros((rows, columns), np.bool_)
    for k in range(k1, k2 + 1):
        length = min(rows + min(k, 0), columns - max(k, 0))
        right = super_diag_right_align if k >= 0 else sub_diag_right_align
        steps = np.arange(max(length, 0))
        where = (steps - min(k, 0), steps + max(k, 0))
        places[where] = (k2 - k) * width + (width - length if right else 0) + steps
        on[where] = True
    outer = lines[:-1] if k1 == k2 else lines[:-2]
    flat = ctx.reshape(diagonal, (*outer, (k2 - k1 + 1) * width))

    def spelled(x: Expr, values: Expr) -> Expr:
        chosen = relay.take(values, relay.const(places), axis=-1, mode="clip")
        return relay.where(relay.const(on), chosen, x)

    return ctx.spell(spelled, input, flat)


@OPS.exports("reinterpret")
def export_reinterpret(ctx: Out, data: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    """MXNet reads no bits: only integers of one width, and constants, are converted."""
    source, target = numpy_dtype(ctx.type(data).dtype), numpy_dtype(ctx.result_type().dtype)
    if data.data is not None:
        return ctx.const(np.array(data.data, order="C").view(target))
    if source == target:
        return data
    if {source.kind, target.kind} <= {"i", "u"}:
        return ctx.emit("Cast", data, dtype=target)
    raise Unsupported(f"the bits of {source} as {target}: MXNet converts values, not bits")

"""Elements placed or accumulated by index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any as AnyValue, Final, Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.ops.index.gather import widen_indices
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relax.precision import NARROW
from serde.relay.ir import Dim, Expr, Tuple, tensor_type
from serde.walk.pairs import reads

_FLOATS: Final = (*NARROW, "float32", "float64")

_ORDERED: Final = ("min", "max")
"""Accumulations of which Relay's give what is no number, and TVM's do not."""


def _combine(tir: AnyValue, how: str, dtype: str, old: AnyValue, new: AnyValue) -> AnyValue:
    """Return what an element becomes when another meets it."""
    if how == "update":
        return new
    if how == "add":
        return old + new
    if how == "mul":
        return old * new
    if dtype not in _FLOATS:
        return tir.min(old, new) if how == "min" else tir.max(old, new)
    first = old < new if how == "min" else old > new
    nothing = tir.isnan(old.astype("float32") if dtype in NARROW else old)
    return tir.Select(tir.Or(first, nothing), old, new)


def _make_scatter(
    ctx: Export, how: str, locate: Callable[..., Sequence[AnyValue]]
) -> Callable[..., AnyValue]:
    """Return what writes each update at its place, in order.

    Args:
        ctx: The context.
        how: What becomes of an element that is met.
        locate: Returns a place of the result, axis by axis, for the reader of an index, the
            coordinates of an update and the lengths of the result.
    """
    framework = ctx.framework
    tir, statements = framework.tir, framework.statements

    def scatter(data: AnyValue, indices: AnyValue, updates: AnyValue) -> AnyValue:
        def write(given: AnyValue, places: AnyValue, new: AnyValue, out: AnyValue) -> None:
            with statements.serial(0, prod(data.shape, start=tir.IntImm("int64", 1))) as at:
                out[at] = given[at]
            with statements.serial(0, prod(updates.shape, start=tir.IntImm("int64", 1))) as at:
                own = _unravel(tir, at, updates.shape)

                def read(*axes: AnyValue) -> AnyValue:
                    return places[_ravel(axes, indices.shape)].astype("int64")

                place = _ravel(locate(read, own, data.shape), data.shape)
                out[place] = _combine(tir, how, str(data.dtype), out[place], new[at])

        operands = [data, indices, updates]
        return framework.extern("scatter", operands, [data.shape], [str(data.dtype)], write)[0]

    return scatter


def _unravel(tir: AnyValue, place: AnyValue, shape: Sequence[AnyValue]) -> list[AnyValue]:
    """Return the coordinates of a place in row-major order."""
    found = []
    for length in reversed(shape):
        found.append(tir.floormod(place, length))
        place = tir.floordiv(place, length)
    return found[::-1]


def _ravel(places: Sequence[AnyValue], shape: Sequence[AnyValue]) -> AnyValue:
    """Return the place in row-major order of coordinates."""
    found: AnyValue = 0
    for place, length in zip(places, shape, strict=True):
        found = found * length + place
    return found


def _accumulate(
    ctx: Export, write: Callable[[Value, Value, str], Value], data: Value, updates: Value, how: str
) -> Value:
    """Write an accumulation; of truth values it is one of the maxima or minima of numbers."""
    if 0 in ctx.extents(updates):
        return data
    if ctx.type(data).dtype != "bool" or how == "update":
        return write(data, updates, how)
    small = {"add": "max", "mul": "min"}.get(how, how)
    made = write(ctx.emit("astype", data, "uint8"), ctx.emit("astype", updates, "uint8"), small)
    return ctx.emit("astype", made, "bool")


@OPS.exports("scatter_elements")
def export_scatter_elements(
    ctx: Export, data: Value, indices: Value, updates: Value, *, axis: int, reduction: str
) -> Value:
    if reduction == "mean":
        return ctx.spell(lambda x, at, new: _mean(x, at, new, axis), data, indices, updates)
    tir = ctx.framework.tir
    along = axis % ctx.type(data).rank
    places = widen_indices(ctx, indices)

    def locate(read: AnyValue, own: Sequence[AnyValue], shape: AnyValue) -> list[AnyValue]:
        index = read(*own)
        index = tir.Select(index < 0, index + shape[along], index)
        return [index if place == along else each for place, each in enumerate(own)]

    def write(x: Value, new: Value, how: str) -> Value:
        if how in _ORDERED and ctx.type(data).dtype in _FLOATS:
            return ctx.emit_te(_make_scatter(ctx, how, locate), x, places, new)
        return ctx.emit("scatter_elements", x, places, new, along, how)

    return _accumulate(ctx, write, data, updates, reduction)


def _mean(data: Expr, indices: Expr, updates: Expr, axis: int) -> Expr:
    """The sum of what meets at a place, divided by how many meet."""

    def scatter(x: Expr, new: Expr) -> Expr:
        return relay.scatter_elements(x, indices, new, axis, "add")

    wide, new = (relay.cast(each, "float64") for each in (data, updates))
    count = scatter(relay.ones_like(wide), relay.ones_like(new))
    return relay.cast(relay.divide(scatter(wide, new), count), tensor_type(data).dtype)


@OPS.exports("scatter_nd")
def export_scatter_nd(
    ctx: Export, data: Value, indices: Value, updates: Value, *, mode: str
) -> Value:
    depth = ctx.extents(indices)[0]
    rank = ctx.type(indices).rank - 1

    def locate(read: AnyValue, own: Sequence[AnyValue], _shape: AnyValue) -> list[AnyValue]:
        named = [read(number, *own[:rank]) for number in range(depth)]
        return [*named, *own[rank:]]

    def write(x: Value, new: Value, how: str) -> Value:
        return ctx.emit_te(_make_scatter(ctx, how, locate), x, indices, new)

    return _accumulate(ctx, write, data, updates, mode)


@OPS.imports("relax.index_put")
def import_index_put(
    ctx: Import, data: Expr, indices: Expr, values: Expr, *, accumulate: bool
) -> Expr:
    places = ctx.fields(indices) if isinstance(indices, Tuple) else [indices]
    if len(places) != ctx.rank(data):
        raise Unsupported(f"{len(places)} indices of {ctx.rank(data)} axes")
    shape = _broadcast_shape(ctx, places)
    rows = relay.stack([relay.broadcast_to(each, shape) for each in places], axis=0)
    spread = relay.broadcast_to(values, shape)
    return relay.scatter_nd(data, rows, spread, mode="add" if accumulate else "update")


def _broadcast_shape(ctx: Import, operands: Sequence[Expr]) -> tuple[Dim, ...]:
    whole = operands[0]
    for each in operands[1:]:
        whole = relay.add(whole, each)
    return ctx.type(whole).shape


@OPS.imports("relax.scatter_nd")
def import_scatter_nd(
    ctx: Import,
    data: Expr,
    indices: Expr,
    updates: Expr,
    *,
    reduction: Literal["update", "add", "mul", "min", "max"],
) -> Expr:
    """An index lies along the last axis, in Relay along the first."""
    rank = ctx.rank(indices)
    first = relay.transpose(indices, axes=[rank - 1, *range(rank - 1)])
    return relay.scatter_nd(data, first, updates, mode=reduction)


OPS.pairs(reads("relax.scatter_elements", "scatter_elements", "axis", "reduction"))

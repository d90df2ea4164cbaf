"""Running sums, products and extremes along an axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call
from serde.torch.ops.elementwise.convert import widen
from serde.torch.ops.reduce.plain import DType, as_summed
from serde.torch.ops.table import OPS, Export, Import, Scalar, Value
from serde.torch.ops.written import in_signed
from serde.walk.expansion.functions import log_add_exp

MAX_STEPS = 16
"""How often the reach of a running result is doubled at most."""


def _register_running(op: str) -> None:
    @OPS.imports(f"aten::{op}")
    def import_running(ctx: Import, self: Expr, *, dim: int, dtype: DType = None) -> Expr:
        x = as_summed(ctx, self, dtype)
        axis = ctx.axis(x, dim)
        if not ctx.type(x).rank:
            return x
        return ctx.cast(call(op, widen(ctx, x), axis=axis), ctx.dtype(x))


_register_running("cumsum")
_register_running("cumprod")


def _make_scan_exporter(target: str, identity: int) -> Callable[..., Value]:
    def export_scan(
        ctx: Export, data: Value, *, axis: int | None, dtype: DType, exclusive: bool
    ) -> Value:
        wanted = ctx.result_type().dtype
        if wanted == "bool":
            raise Unsupported("running results of truth values")
        if axis is None:
            data, axis = ctx.method(data, "flatten"), 0
        found = ctx.method(data, target, axis, dtype=ctx.dtype(wanted))
        return ctx.call(ctx.helper("shift_scan"), found, axis, identity) if exclusive else found

    return export_scan


def _make_serde_scan_exporter(target: str, identity: int) -> Callable[..., Value]:
    def export_serde_scan(
        ctx: Export, data: Value, *, axis: int, exclusive: bool, reverse: bool
    ) -> Value:
        dtype = ctx.type(data).dtype
        given = ctx.method(data, "flip", axis) if reverse else data
        found = ctx.method(given, target, axis, dtype=ctx.dtype(dtype))
        if exclusive:
            found = ctx.call(ctx.helper("shift_scan"), found, axis, identity)
        return ctx.method(found, "flip", axis) if reverse else found

    return export_serde_scan


for _name, _identity in {"cumsum": 0, "cumprod": 1}.items():
    OPS.exports(_name)(in_signed(_make_scan_exporter(_name, _identity)))
    OPS.exports(f"serde.{_name}")(in_signed(_make_serde_scan_exporter(_name, _identity)))


def _length(ctx: Import, x: Expr, axis: int) -> int:
    length = ctx.type(x).shape[axis]
    if not isinstance(length, int) or length > 1 << MAX_STEPS:
        raise Unsupported(f"running results along an axis of length {length}")
    return length


def _slice(x: Expr, axis: int, begin: int, end: int) -> Expr:
    return relay.strided_slice(x, begin=[begin], end=[end], axes=[axis])


def _join(one: Expr, other: Expr, axis: int) -> Expr:
    return relay.concatenate([one, other], axis)


def _register_extreme(op: str, comparison: str) -> None:
    @OPS.imports(f"aten::{op}")
    def import_running_extreme(ctx: Import, self: Expr, *, dim: int) -> tuple[Expr, Expr]:
        """Of equal elements the last one counts, and NaN beats all; the reach is doubled."""
        axis = ctx.axis(self, dim)
        if not ctx.type(self).rank:
            return self, ctx.scalar(0, "int64")
        length = _length(ctx, self, axis)
        shape = [1] * ctx.type(self).rank
        shape[axis] = length
        places = Constant(allocation.arange(length).reshape(shape))
        place: Expr = relay.add(relay.zeros_like(relay.cast(self, "int64")), places)
        value, reach = self, 1
        while reach < length:
            before, own = _slice(value, axis, 0, length - reach), _slice(value, axis, reach, length)
            kept: Expr = call(comparison, own, before)
            kept = relay.logical_or(kept, relay.not_equal(own, own))
            kept = relay.logical_and(kept, _keeps_nan(own, before))
            pairs = [(value, before, own)]
            where = _slice(place, axis, 0, length - reach), _slice(place, axis, reach, length)
            pairs.append((place, *where))
            value, place = (
                _join(_slice(whole, axis, 0, reach), relay.where(kept, new, old), axis)
                for whole, old, new in pairs
            )
            reach *= 2
        return value, place


def _keeps_nan(own: Expr, before: Expr) -> Expr:
    """Whether an element is not beaten by a NaN before it, as only another NaN is not."""
    beaten = relay.logical_and(relay.not_equal(before, before), relay.equal(own, own))
    return relay.logical_not(beaten)


_register_extreme("cummax", "greater_equal")
_register_extreme("cummin", "less_equal")


def run_doubling(ctx: Import, x: Expr, axis: int, combine: Callable[[Expr, Expr], Expr]) -> Expr:
    """Return running results of an associative function, whose reach is doubled each step."""
    length, reach = _length(ctx, x, axis), 1
    while reach < length:
        joined = combine(_slice(x, axis, 0, length - reach), _slice(x, axis, reach, length))
        x = _join(_slice(x, axis, 0, reach), joined, axis)
        reach *= 2
    return x


@OPS.imports("aten::logcumsumexp", "aten::_logcumsumexp")
def import_logcumsumexp(ctx: Import, self: Expr, *, dim: int) -> Expr:
    axis = ctx.axis(self, dim)
    if not ctx.type(self).rank:
        return self
    found = run_doubling(ctx, widen(ctx, self), axis, log_add_exp)
    return ctx.cast(found, ctx.dtype(self))


@OPS.imports("aten::diff")
def import_diff(
    ctx: Import,
    self: Expr,
    prepend: Expr | None = None,
    append: Expr | None = None,
    *,
    n: int = 1,
    dim: int = -1,
) -> Expr:
    """The difference of truth values is whether they differ."""
    if n == 0:
        return self
    axis = ctx.axis(self, dim)
    parts = [x for x in (prepend, self, append) if x is not None]
    x = self if len(parts) == 1 else relay.concatenate(ctx.promote(*parts), axis)
    for _ in allocation.iterations(n, "the differences of differences"):
        after = relay.strided_slice(x, begin=[1], end=[np.iinfo(np.int64).max], axes=[axis])
        before = relay.strided_slice(x, begin=[0], end=[-1], axes=[axis])
        differ = relay.not_equal if ctx.dtype(x) == "bool" else relay.subtract
        x = differ(after, before)
    return x


def _trapezoids(ctx: Import, y: Expr, widths: Expr, axis: int) -> Expr:
    """Return the areas between neighbours along an axis."""
    after = relay.strided_slice(y, begin=[1], end=[np.iinfo(np.int64).max], axes=[axis])
    before = relay.strided_slice(y, begin=[0], end=[-1], axes=[axis])
    sums, factors = ctx.promote(relay.add(after, before), widths)
    return relay.divide(*ctx.promote(relay.multiply(sums, factors), ctx.number(2.0)))


def _widths(ctx: Import, y: Expr, x: Expr, axis: int) -> Expr:
    """Return the distances of points that are a vector or shaped as the values."""
    if ctx.type(x).rank == 1:
        following = ctx.type(y).rank - 1 - axis
        found = import_diff(ctx, x)
        return relay.expand_dims(found, 1, following) if following else found
    return import_diff(ctx, x, dim=axis - ctx.type(y).rank)


@OPS.imports("aten::trapezoid.x", "aten::trapz.x")
def import_trapezoid(ctx: Import, y: Expr, x: Expr, *, dim: int = -1) -> Expr:
    axis = ctx.axis(y, dim)
    areas = _trapezoids(ctx, y, _widths(ctx, y, x, axis), axis)
    return relay.sum(areas, axis=[axis - ctx.type(y).rank])


@OPS.imports("aten::trapezoid.dx", "aten::trapz.dx")
def import_even_trapezoid(ctx: Import, y: Expr, *, dx: Scalar = 1, dim: int = -1) -> Expr:
    axis = ctx.axis(y, dim)
    return relay.sum(_trapezoids(ctx, y, ctx.number(dx), axis), axis=[axis])


@OPS.imports("aten::cumulative_trapezoid.x")
def import_cumulative_trapezoid(ctx: Import, y: Expr, x: Expr, *, dim: int = -1) -> Expr:
    axis = ctx.axis(y, dim)
    areas = _trapezoids(ctx, y, _widths(ctx, y, x, axis), axis)
    return relay.cumsum(areas, axis=ctx.type(areas).rank + axis - ctx.type(y).rank)


@OPS.imports("aten::cumulative_trapezoid.dx")
def import_cumulative_even_trapezoid(
    ctx: Import, y: Expr, *, dx: Scalar = 1, dim: int = -1
) -> Expr:
    axis = ctx.axis(y, dim)
    return relay.cumsum(_trapezoids(ctx, y, ctx.number(dx), axis), axis=axis)

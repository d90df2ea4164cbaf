"""How many elements fall into each class."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.layout import converted
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.weights import numpy_dtype


@OPS.imports("_histogram")
def import_histogram(
    ctx: ImportContext,
    data: Expr,
    bins: Expr | None = None,
    *,
    bin_cnt: int | None = None,
    range: tuple[float, float] | None = None,
) -> list[Expr]:
    """Bins are half open, the last one is closed."""
    flat = relay.reshape(data, (-1,))
    if bins is not None:
        return [_counted(flat, bins), bins]
    if bin_cnt is None or range is None:
        raise Unsupported("neither bounds nor both a number of bins and a range")
    low, high = range
    steps = np.arange(bin_cnt + 1)
    bounds = (high * steps + low * (bin_cnt - steps)) / bin_cnt
    edges = relay.Constant(bounds.astype(numpy_dtype(ctx.type(data).dtype)))
    return [_counted_evenly(flat, edges, bin_cnt, low, high), edges]


def _counted(flat: Expr, bins: Expr) -> Expr:
    """The elements from a bound on, less those from the next on; none are above the last bound."""
    lows = relay.strided_slice(bins, [0], [-1], [1])
    last = relay.strided_slice(bins, [-1], [2**31 - 1], [1])
    column = relay.expand_dims(flat, 1)
    above = relay.logical_and(relay.greater_equal(column, lows), relay.less_equal(column, last))
    number = relay.sum(relay.cast(above, "int64"), axis=(0,))
    following = relay.strided_slice(number, [1], [2**31 - 1], [1])
    return relay.subtract(number, relay.nn.pad(following, [(0, 1)], relay.const(0, "int64")))


def _counted_evenly(flat: Expr, edges: Expr, count: int, low: float, high: float) -> Expr:
    """A bin is computed in float64 and then corrected by one, as the rounded bounds say."""
    wide = converted(flat, "float64")
    first, last, span = (relay.const(v, "float64") for v in (low, high, high - low))
    inside = relay.logical_and(relay.greater_equal(wide, first), relay.less_equal(wide, last))
    scaled = relay.multiply(relay.subtract(wide, first), relay.const(count, "float64"))
    raw = relay.floor(relay.divide(relay.where(inside, scaled, relay.const(0.0, "float64")), span))
    one, top = relay.const(1, "int64"), relay.const(count - 1, "int64")
    target = relay.minimum(relay.cast(raw, "int64"), top)
    below = relay.less(flat, relay.take(edges, target, axis=0, mode="fast"))
    target = relay.subtract(target, relay.cast(below, "int64"))
    above = relay.greater_equal(
        flat, relay.take(edges, relay.add(target, one), axis=0, mode="fast")
    )
    moves = relay.logical_and(above, relay.not_equal(target, top))
    target = relay.add(target, relay.cast(moves, "int64"))
    number = relay.where(inside, target, relay.const(-1, "int64"))
    hits = relay.equal(relay.expand_dims(number, 1), relay.Constant(np.arange(count)))
    return relay.sum(relay.cast(hits, "int64"), axis=(0,))


@OPS.imports("_npi_bincount")
def import_bincount(
    ctx: ImportContext,
    data: Expr,
    weights: Expr | None = None,
    *,
    minlength: int = 0,
    has_weights: bool = False,
) -> Expr:
    """The result is as long as the greatest element asks for; counts have the dtype of the data."""
    places = converted(data, "int64")
    least = relay.Constant(np.array([minlength - 1]))
    most = relay.max(relay.concatenate([places, least], 0), axis=(0,), keepdims=True)
    length = relay.add(most, relay.const(1, "int64"))
    given = weights if has_weights and weights is not None else relay.ones_like(data)
    blank = relay.zeros(length, ctx.type(given).dtype)
    return relay.scatter_nd(blank, relay.expand_dims(places, 0), given, mode="add")

"""Normalisation with recorded statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import serde.core.allocation as allocation
import serde.relay as relay
from serde.nnef.export_context import ExportContext, Value, is_exact
from serde.nnef.import_context import ImportContext
from serde.nnef.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call

__all__ = ["RelayNorm"]


@OPS.imports("batch_normalization")
def import_batch_normalization(
    ctx: ImportContext,
    input: Expr,
    mean: Expr,
    variance: Expr,
    offset: Expr,
    scale: Expr,
    *,
    epsilon: float,
) -> Expr:
    """Statistics along one axis are a layer of Relay; others broadcast."""
    given = [scale, offset, mean, variance]
    axis = _channel_axis(ctx, input, given)
    if axis is None:
        x, mean, variance, offset, scale = ctx.align(input, mean, variance, offset, scale)
        deviation = relay.sqrt(relay.add(variance, ctx.const(epsilon, ctx.type(variance).dtype)))
        centred = relay.multiply(scale, relay.subtract(x, mean))
        return relay.add(offset, relay.divide(centred, deviation))
    length = ctx.type(input).shape[axis]
    gamma, beta, *statistics = (ctx.fold(_as_vector(ctx, each, length)) for each in given)
    layer = call("nn.batch_norm", input, gamma, beta, *statistics, axis=axis, epsilon=epsilon)
    return relay.TupleGetItem(layer, 0)


def _channel_axis(ctx: ImportContext, x: Expr, given: Sequence[Expr]) -> int | None:
    """Return the one axis along which the statistics differ, axis 1 where they do nowhere."""
    data = ctx.type(x)
    shapes = [ctx.type(each).shape for each in given]
    long = {axis for shape in shapes for axis, length in enumerate(shape) if length != 1}
    if len(long) > 1 or data.rank < 2 or max(map(len, shapes)) > data.rank:
        return None
    (axis,) = long or {1}
    lengths = {shape[axis] for shape in shapes if axis < len(shape)}
    return axis if lengths <= {1, data.shape[axis]} else None


def _as_vector(ctx: ImportContext, x: Expr, length: Dim) -> Expr:
    shape = ctx.type(x).shape
    own = length if length in shape else 1
    vector = x if shape == (own,) else relay.reshape(x, (own,))
    return vector if own == length else relay.broadcast_to(vector, (length,))


@dataclass(frozen=True, kw_only=True)
class RelayNorm:
    """Attributes that the normalisations of Relay share."""

    axis: int
    epsilon: float
    center: bool
    scale: bool

    def spread(self, ctx: ExportContext, data: Value, vector: Value) -> Value:
        """Return a vector along the axis as NNEF aligns it, with axes of 1 before its own."""
        axis = self.axis % ctx.type(data).rank
        return ctx.reshape(vector, (*(1 for _ in range(axis)), *ctx.static_shape(vector)))

    def finish(
        self, ctx: ExportContext, data: Value, found: Value, gamma: Value, beta: Value
    ) -> Value:
        """Return ``found * gamma + beta`` as far as the layer has them."""
        if self.scale:
            found = ctx.emit("mul", found, self.spread(ctx, data, gamma))
        return ctx.emit("add", found, self.spread(ctx, data, beta)) if self.center else found


def _repeat(ctx: ExportContext, value: float, like: Value) -> Value:
    """Return a vector of one value: NNEF-Tools' interpreter takes no literal for one."""
    return ctx.const(allocation.full(ctx.static_shape(like), value), ctx.type(like).dtype)


@OPS.exports("nn.batch_norm")
def export_batch_norm(
    ctx: ExportContext,
    data: Value,
    gamma: Value,
    beta: Value,
    moving_mean: Value,
    moving_var: Value,
    *,
    norm: RelayNorm,
) -> tuple[Value, ...]:
    mean, variance = (norm.spread(ctx, data, each) for each in (moving_mean, moving_var))
    dtype = ctx.type(data).dtype
    if not is_exact(dtype, norm.epsilon):
        deviation = ctx.emit("sqrt", ctx.emit("add", variance, ctx.const(norm.epsilon, dtype)))
        found = ctx.emit("div", ctx.emit("sub", data, mean), deviation)
        return norm.finish(ctx, data, found, gamma, beta), moving_mean, moving_var
    found = ctx.emit(
        "batch_normalization",
        data,
        mean,
        variance,
        norm.spread(ctx, data, beta if norm.center else _repeat(ctx, 0.0, beta)),
        norm.spread(ctx, data, gamma if norm.scale else _repeat(ctx, 1.0, gamma)),
        epsilon=norm.epsilon,
    )
    return found, moving_mean, moving_var

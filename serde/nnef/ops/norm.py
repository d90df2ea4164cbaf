"""Normalisations: by recorded statistics or the tensor's own, of neighbours, to unit length."""

from __future__ import annotations

import math
from collections.abc import Sequence

import serde.core.allocation as allocation
import serde.relay as relay
from serde.nnef.export_context import EXACT, is_exact
from serde.nnef.ops.pool.window import PoolAttributes, import_box
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Dim, Expr, call, tensor_type
from serde.relay.op.norm.plain import ChannelNorm
from serde.walk.takes import Takes

__all__ = ["RelayNorm"]


@OPS.imports("batch_normalization")
def import_batch_normalization(
    ctx: Import, input: Expr, mean: Expr, variance: Expr, offset: Expr, scale: Expr,
    *, epsilon: float,
) -> Expr:  # fmt: skip
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


def _channel_axis(ctx: Import, x: Expr, given: Sequence[Expr]) -> int | None:
    """Return the one axis along which the statistics differ, axis 1 where they do nowhere."""
    data = ctx.type(x)
    shapes = [ctx.type(each).shape for each in given]
    long = {axis for shape in shapes for axis, length in enumerate(shape) if length != 1}
    if len(long) > 1 or data.rank < 2 or max(map(len, shapes)) > data.rank:
        return None
    (axis,) = long or {1}
    lengths = {shape[axis] for shape in shapes if axis < len(shape)}
    return axis if lengths <= {1, data.shape[axis]} else None


def _as_vector(ctx: Import, x: Expr, length: Dim) -> Expr:
    shape = ctx.type(x).shape
    own = length if length in shape else 1
    vector = x if shape == (own,) else relay.reshape(x, (own,))
    return vector if own == length else relay.broadcast_to(vector, (length,))


class RelayNorm(ChannelNorm):
    """Attributes that the normalisations of Relay share."""

    def spread(self, ctx: Export, data: Value, vector: Value) -> Value:
        """Return a vector along the axis as NNEF aligns it, with axes of 1 before its own."""
        axis = self.axis % ctx.type(data).rank
        return ctx.reshape(vector, (*(1 for _ in range(axis)), *ctx.static_shape(vector)))

    def finish(self, ctx: Export, data: Value, found: Value, gamma: Value, beta: Value) -> Value:
        """Return ``found * gamma + beta`` as far as the layer has them."""
        if self.scale:
            found = ctx.emit("mul", found, self.spread(ctx, data, gamma))
        return ctx.emit("add", found, self.spread(ctx, data, beta)) if self.center else found


def _repeat(ctx: Export, value: float, like: Value) -> Value:
    """Return a vector of one value: NNEF-Tools' interpreter takes no literal for one."""
    return ctx.const(allocation.full(ctx.static_shape(like), value), ctx.type(like).dtype)


@OPS.exports("nn.batch_norm")
def export_batch_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, moving_mean: Value, moving_var: Value,
    *, norm: RelayNorm,
) -> tuple[Value, ...]:  # fmt: skip
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


def _emit_standardized(ctx: Export, data: Value, axes: Sequence[int], epsilon: float) -> Value:
    """Write a tensor less its mean over axes, divided by its deviation."""
    mean, variance = ctx.emit_tuple("moments", data, axes=list(axes), outputs=2)
    stabilized = ctx.emit("add", variance, ctx.const(epsilon, ctx.type(data).dtype))
    return ctx.emit("div", ctx.emit("sub", data, mean), ctx.emit("sqrt", stabilized))


@OPS.exports("nn.layer_norm")
def export_layer_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, *, norm: RelayNorm
) -> Value:
    axis = norm.axis % ctx.type(data).rank
    found = _emit_standardized(ctx, data, [axis], norm.epsilon)
    return norm.finish(ctx, data, found, gamma, beta)


@OPS.exports("nn.instance_norm")
def export_instance_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, *, norm: RelayNorm
) -> Value:
    rank = ctx.type(data).rank
    axes = [axis for axis in range(1, rank) if axis != norm.axis % rank]
    found = _emit_standardized(ctx, data, axes, norm.epsilon)
    return norm.finish(ctx, data, found, gamma, beta)


@OPS.imports("local_response_normalization")
def import_local_response_normalization(
    ctx: Import,
    input: Expr,
    *,
    size: tuple[int, ...],
    alpha: float = 1.0,
    beta: float = 0.5,
    bias: float = 1.0,
) -> Expr:
    """Neighbours along one axis, as many on both sides, are a layer of Relay.

    It is one of images: runtimes of other formats have it for four axes only.
    """
    long = [axis for axis, length in enumerate(size) if length != 1]
    if len(size) == 4 and len(long) == 1 and size[long[0]] % 2:
        (axis,) = long
        return relay.nn.lrn(input, size=size[axis], axis=axis, bias=bias, alpha=alpha, beta=beta)
    power = _mean_of_neighbours(ctx, relay.multiply(input, input), size)
    sigma = relay.add(ctx.const(bias), relay.multiply(ctx.const(alpha), power))
    return relay.divide(input, relay.power(sigma, ctx.const(beta)))


@OPS.imports("local_mean_normalization")
def import_local_mean_normalization(ctx: Import, input: Expr, *, size: tuple[int, ...]) -> Expr:
    return relay.subtract(input, _mean_of_neighbours(ctx, input, size))


@OPS.imports("local_variance_normalization")
def import_local_variance_normalization(
    ctx: Import, input: Expr, *, size: tuple[int, ...], bias: float = 0.0, epsilon: float = 0.0
) -> Expr:
    power = _mean_of_neighbours(ctx, relay.multiply(input, input), size)
    sigma = relay.sqrt(power)
    if bias:
        sigma = relay.add(sigma, ctx.const(bias))
    return relay.divide(input, relay.maximum(sigma, ctx.const(epsilon)))


@OPS.imports("local_contrast_normalization")
def import_local_contrast_normalization(
    ctx: Import, input: Expr, *, size: tuple[int, ...], bias: float = 0.0, epsilon: float = 0.0
) -> Expr:
    centred = import_local_mean_normalization(ctx, input, size=size)
    return import_local_variance_normalization(ctx, centred, size=size, bias=bias, epsilon=epsilon)


def _mean_of_neighbours(ctx: Import, x: Expr, size: tuple[int, ...]) -> Expr:
    """Return the mean of as many elements around each, zeros beyond the ends included."""
    return import_box(ctx, x, pool=PoolAttributes(size=size), normalize=True)


@OPS.exports("nn.lrn", takes=Takes(bias=EXACT, alpha=EXACT, beta=EXACT))
def export_lrn(
    ctx: Export, data: Value, *, size: int, axis: int, bias: float, alpha: float, beta: float
) -> Value:
    type_ = ctx.type(data)
    window = [1] * type_.rank
    window[axis % type_.rank] = size
    return ctx.emit(
        "local_response_normalization", data, size=window, alpha=alpha, beta=beta, bias=bias
    )


@OPS.imports("l1_normalization")
def import_l1_normalization(
    ctx: Import, input: Expr, *, axes: tuple[int, ...], bias: float = 0.0, epsilon: float = 0.0
) -> Expr:
    length = relay.sum(relay.abs(input), axis=axes, keepdims=True)
    return _divide(ctx, input, length, bias, epsilon)


@OPS.imports("l2_normalization")
def import_l2_normalization(
    ctx: Import, input: Expr, *, axes: tuple[int, ...], bias: float = 0.0, epsilon: float = 0.0
) -> Expr:
    """Relay has a bound of the square: ``max(sqrt(s), e) == sqrt(max(s, e**2))``."""
    if axes and not bias and epsilon >= 0 and _has_square(epsilon):
        return relay.nn.l2_normalize(input, eps=epsilon**2, axis=axes)
    total = relay.sum(relay.multiply(input, input), axis=axes, keepdims=True)
    return _divide(ctx, input, relay.sqrt(total), bias, epsilon)


def _has_square(epsilon: float) -> bool:
    """Whether the square is a normal number of 32 bits, or zero for zero."""
    return not epsilon or 1.2e-38 < epsilon**2 < 3.4e38


def _divide(ctx: Import, x: Expr, length: Expr, bias: float, epsilon: float) -> Expr:
    """Return ``x / max(length + bias, epsilon)``."""
    if bias:
        length = relay.add(length, ctx.const(bias))
    return relay.divide(x, relay.maximum(length, ctx.const(epsilon)))


def _has_exact_bound(call: Call) -> bool:
    """Whether the text holds the bound of the length."""
    eps = call.attrs["eps"]
    return eps >= 0 and is_exact(tensor_type(call.args[0]).dtype, math.sqrt(eps))


@OPS.exports("nn.l2_normalize", when=_has_exact_bound)
def export_l2_normalize(ctx: Export, data: Value, *, eps: float, axis: tuple[int, ...]) -> Value:
    """No axis stands for all of them."""
    type_ = ctx.type(data)
    axes = sorted(each % type_.rank for each in axis) or list(range(type_.rank))
    return ctx.emit("l2_normalization", data, axes=axes, epsilon=math.sqrt(eps))

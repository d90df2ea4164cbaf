"""Normalisations of Relax, and values brought to mean 0 and variance 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import serde.relay as relay
from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.relax.ops.conv import cast, sum_dtype
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TupleGetItem, call
from serde.relay.op.norm.layer import StashedNorm
from serde.relay.op.norm.plain import ChannelNorm
from serde.walk.takes import SINGLE, Takes, at, ranks

__all__ = ["centre", "vectors"]


def centre(ctx: Export, x: Value, axes: Sequence[int]) -> Value:
    """Return a value less its mean.

    TVM's norms take the mean of squares less the square of the mean for the variance, which loses
    all digits where the mean is large; where it is 0 they lose none.
    """
    return ctx.emit("subtract", x, ctx.emit("mean", x, axis=list(axes), keepdims=True))


def vectors(
    ctx: Export, gamma: Value, beta: Value, dtype: str, *, center: bool, scale: bool
) -> list[Value]:
    """Return what scales and what shifts; TVM's norms do both always."""
    found = []
    for x, used, fill in ((gamma, scale, "ones"), (beta, center, "zeros")):
        type_ = ctx.type(x)
        if used:
            found.append(cast(ctx, x, type_.dtype, dtype))
        else:
            found.append(ctx.emit(fill, ctx.shape_expr(type_.shape), dtype))
    return found


@OPS.exports("nn.batch_norm")
def export_batch_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, moving_mean: Value, moving_var: Value,
    *, norm: ChannelNorm,
) -> tuple[Value, Value, Value]:  # fmt: skip
    """Relax's operands are of one dtype; what is recorded is returned as it is."""
    dtype = ctx.type(data).dtype
    wide = sum_dtype(dtype, None)
    channels = ctx.extents(data)[norm.axis]
    operands = [
        ctx.with_lengths(cast(ctx, each, ctx.type(each).dtype, wide), [channels])
        for each in (gamma, beta, moving_mean, moving_var)
    ]
    made = ctx.apply(
        "nn.batch_norm", cast(ctx, data, dtype, wide), *operands,
        axis=norm.axis % ctx.type(data).rank, epsilon=norm.epsilon, center=norm.center,
        scale=norm.scale, training=False,
    )  # fmt: skip
    result = ctx.bind(ctx.framework.relax.TupleGetItem(ctx.bind(made).expr, 0))
    return cast(ctx, result, wide, dtype), moving_mean, moving_var


@OPS.exports("nn.layer_norm", takes=Takes(data=SINGLE))
def export_layer_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, *, norm: ChannelNorm
) -> Value:
    type_ = ctx.type(data)
    axes = [norm.axis % type_.rank]
    made = centre(ctx, cast(ctx, data, type_.dtype, "float32"), axes)
    pair = vectors(ctx, gamma, beta, "float32", center=norm.center, scale=norm.scale)
    made = ctx.emit("nn.layer_norm", made, *pair, axes=axes, epsilon=norm.epsilon)
    return cast(ctx, made, "float32", type_.dtype)


@OPS.exports("nn.instance_norm", takes=Takes(data=(SINGLE, ranks(3, math.inf)), axis=at(1)))
def export_instance_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, *, norm: ChannelNorm
) -> Value:
    type_ = ctx.type(data)
    axes = list(range(2, type_.rank))
    made = centre(ctx, cast(ctx, data, type_.dtype, "float32"), axes)
    pair = vectors(ctx, gamma, beta, "float32", center=norm.center, scale=norm.scale)
    made = ctx.emit(
        "nn.instance_norm", made, *pair, channel_axis=1, axes=axes, epsilon=norm.epsilon
    )
    return cast(ctx, made, "float32", type_.dtype)


def _last_axes(ctx: Export, data: Value, axis: int) -> list[int]:
    rank = ctx.type(data).rank
    return list(range(axis % rank, rank))


@OPS.exports("serde.rms_norm")
def export_rms_norm(ctx: Export, data: Value, gamma: Value, *, axis: int, epsilon: float) -> Value:
    dtype = ctx.type(data).dtype
    wide = sum_dtype(dtype, None)
    x, weight = (cast(ctx, each, dtype, wide) for each in (data, gamma))
    axes = _last_axes(ctx, data, axis)
    # TVM's own operator, over all axes, reads a tensor of rank 1 by no index.
    if wide == "float64" or axes[0] == 0:
        power = ctx.emit("mean", ctx.emit("multiply", x, x), axis=axes, keepdims=True)
        root = ctx.emit("sqrt", ctx.emit("add", power, ctx.const(epsilon, wide)))
        return ctx.emit("multiply", ctx.emit("divide", x, root), weight)
    made = ctx.emit("nn.rms_norm", x, weight, axes=axes, epsilon=epsilon)
    return cast(ctx, made, wide, dtype)


@OPS.exports("serde.layer_norm")
def export_last_layer_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value | None, *, norm: StashedNorm
) -> tuple[Value, Value, Value]:
    """What nothing uses of the mean and the deviation is left out of the module."""
    type_, stash = ctx.type(data), dtype_name(norm.stash_dtype)
    axes = _last_axes(ctx, data, norm.axis)
    wide = sum_dtype(stash, None)
    x = _through(ctx, data, type_.dtype, stash, wide)
    mean = ctx.emit("mean", x, axis=axes, keepdims=True)
    centred = ctx.emit("subtract", x, mean)
    squares = ctx.emit("multiply", centred, centred)
    power = ctx.emit("mean", squares, axis=axes, keepdims=True)
    inverse = ctx.emit("rsqrt", ctx.emit("add", power, ctx.const(norm.epsilon, wide)))
    total = sum_dtype(type_.dtype, None)
    pair = [cast(ctx, each, type_.dtype, total) for each in (gamma, beta) if each is not None]
    if wide == total == "float32" and stash != "bfloat16":
        shape = ctx.shape_expr(ctx.type(gamma).shape)
        shift = pair[1:] or [ctx.emit("zeros", shape, total)]
        made = ctx.emit("nn.layer_norm", centred, pair[0], *shift, axes=axes, epsilon=norm.epsilon)
    else:
        made = ctx.emit("multiply", centred, inverse)
        made = ctx.emit("multiply", _through(ctx, made, wide, type_.dtype, total), pair[0])
        made = ctx.emit("add", made, pair[1]) if beta is not None else made
    found = cast(ctx, made, total, type_.dtype)
    return found, cast(ctx, mean, wide, stash), cast(ctx, inverse, wide, stash)


def _through(ctx: Export, x: Value, before: str, dtype: str, wide: str) -> Value:
    """Return a value rounded to a dtype, in another that holds it."""
    return cast(ctx, cast(ctx, x, before, dtype), dtype, wide)


@OPS.imports("relax.nn.batch_norm")
def import_batch_norm(
    ctx: Import, data: Expr, gamma: Expr, beta: Expr, moving_mean: Expr, moving_var: Expr,
    *, axis: int, epsilon: float, center: bool, scale: bool, momentum: float, training: bool,
) -> list[Expr]:  # fmt: skip
    """In training, the mean and the variance are those of the batch, and the others follow."""
    if not training:
        found = relay.nn.batch_norm(
            data, gamma, beta, moving_mean, moving_var,
            axis=axis, epsilon=epsilon, center=center, scale=scale,
        )  # fmt: skip
        return [found[0], moving_mean, moving_var]
    rank = ctx.rank(data)
    others = tuple(each for each in range(rank) if each != axis % rank)
    mean = relay.mean(data, axis=others)
    variance = relay.variance(data, axis=others)
    normal = relay.nn.batch_norm(
        data, gamma, beta, mean, variance,
        axis=axis, epsilon=epsilon, center=center, scale=scale,
    )[0]  # fmt: skip
    share, rest = ctx.like(data, momentum), ctx.like(data, 1 - momentum)
    pairs = ((moving_mean, mean), (moving_var, variance))
    moved = [relay.add(relay.multiply(rest, old), relay.multiply(share, new)) for old, new in pairs]
    return [normal, *moved]


@OPS.imports("relax.nn.layer_norm")
def import_layer_norm(
    ctx: Import, data: Expr, gamma: Expr, beta: Expr,
    *, axes: tuple[int, ...], epsilon: float, center: bool, scale: bool,
) -> Expr:  # fmt: skip
    rank = ctx.rank(data)
    axes = tuple(axis % rank for axis in axes)
    if len(axes) == 1:
        return relay.nn.layer_norm(
            data, gamma, beta, axis=axes[0], epsilon=epsilon, center=center, scale=scale
        )
    if axes == tuple(range(rank - len(axes), rank)) and center and scale:
        whole = call("serde.layer_norm", data, gamma, beta, axis=axes[0], epsilon=epsilon)
        return TupleGetItem(whole, 0)
    normal = _normalize(ctx, data, axes, epsilon)
    return _scale(ctx, normal, gamma if scale else None, beta if center else None, axes)


@OPS.imports("relax.nn.rms_norm")
def import_rms_norm(
    ctx: Import, data: Expr, weight: Expr, *, axes: tuple[int, ...], epsilon: float
) -> Expr:
    rank = ctx.rank(data)
    axes = tuple(axis % rank for axis in axes)
    if axes == tuple(range(rank - len(axes), rank)):
        return call("serde.rms_norm", data, weight, axis=axes[0], epsilon=epsilon)
    square = relay.mean(relay.multiply(data, data), axis=axes, keepdims=True)
    root = relay.sqrt(relay.add(square, ctx.like(data, epsilon)))
    return _scale(ctx, relay.divide(data, root), weight, None, axes)


@OPS.imports("relax.nn.group_norm")
def import_group_norm(
    ctx: Import, data: Expr, gamma: Expr, beta: Expr,
    *, num_groups: int, channel_axis: int, axes: tuple[int, ...], epsilon: float, center: bool,
    scale: bool,
) -> Expr:  # fmt: skip
    """Relay takes all axes but that of samples, which is the first one."""
    rank = ctx.rank(data)
    channel, axes = channel_axis % rank, tuple(sorted(axis % rank for axis in axes))
    if channel and axes == tuple(each for each in range(1, rank) if each != channel):
        return relay.nn.group_norm(
            data, gamma, beta, num_groups=num_groups, axis=channel, epsilon=epsilon,
            center=center, scale=scale,
        )  # fmt: skip
    shape = ctx.static_shape(data)
    if shape[channel] % num_groups:
        raise Unsupported(f"{shape[channel]} channels in {num_groups} groups")
    split = (*shape[:channel], num_groups, shape[channel] // num_groups, *shape[channel + 1 :])
    inner = [channel + 1, *(axis + (axis > channel) for axis in axes)]
    grouped = _normalize(ctx, relay.reshape(data, split), inner, epsilon)
    whole = relay.reshape(grouped, shape)
    return _scale(ctx, whole, gamma if scale else None, beta if center else None, [channel])


@OPS.imports("relax.nn.instance_norm")
def import_instance_norm(
    ctx: Import, data: Expr, gamma: Expr, beta: Expr,
    *, channel_axis: int, axes: tuple[int, ...], epsilon: float, center: bool, scale: bool,
) -> Expr:  # fmt: skip
    """Relay takes all axes but that of samples, which is the first one."""
    rank = ctx.rank(data)
    channel, axes = channel_axis % rank, tuple(sorted(axis % rank for axis in axes))
    if channel and axes == tuple(each for each in range(1, rank) if each != channel):
        return relay.nn.instance_norm(
            data, gamma, beta, axis=channel, epsilon=epsilon, center=center, scale=scale
        )
    whole = _normalize(ctx, data, axes, epsilon)
    return _scale(ctx, whole, gamma if scale else None, beta if center else None, [channel])


def _normalize(ctx: Import, x: Expr, axes: Sequence[int], epsilon: float) -> Expr:
    """Return a tensor with mean 0 and variance 1 along axes."""
    mean = relay.mean(x, axis=tuple(axes), keepdims=True)
    variance = relay.variance(x, axis=tuple(axes), keepdims=True, with_mean=mean)
    root = relay.sqrt(relay.add(variance, ctx.like(x, epsilon)))
    return relay.divide(relay.subtract(x, mean), root)


def _scale(
    ctx: Import, x: Expr, gamma: Expr | None, beta: Expr | None, axes: Sequence[int]
) -> Expr:
    """Return a tensor times a factor along axes, plus a summand."""
    if list(axes) != sorted(axes):
        raise Unsupported(f"axes {list(axes)} in another order than the tensor's")
    others = [axis for axis in range(ctx.rank(x)) if axis not in axes]

    def along(parameter: Expr) -> Expr:
        for axis in others:
            parameter = relay.expand_dims(parameter, axis)
        return parameter

    x = x if gamma is None else relay.multiply(x, along(gamma))
    return x if beta is None else relay.add(x, along(beta))

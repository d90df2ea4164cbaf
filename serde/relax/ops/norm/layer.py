"""Normalisations to mean 0 and variance 1, over axes, channels and groups of them."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.conv.windows import cast, sum_dtype
from serde.relax.ops.norm.standard import affine, centre, unit_variance, vectors
from serde.relax.ops.table import OPS
from serde.relay.op.norm.plain import ChannelNorm, GroupNorm
from serde.weights import dtype_name

__all__: list[str] = []


@OPS.exports("nn.batch_norm")
def export_batch_norm(
    ctx: ExportContext,
    data: Value,
    gamma: Value,
    beta: Value,
    moving_mean: Value,
    moving_var: Value,
    *,
    norm: ChannelNorm,
) -> tuple[Value, Value, Value]:
    """Relax's operands are of one dtype; what is recorded is returned as it is."""
    dtype = ctx.type(data).dtype
    wide = sum_dtype(dtype, None)
    channels = ctx.extents(data)[norm.axis]
    operands = [
        ctx.with_lengths(cast(ctx, each, ctx.type(each).dtype, wide), [channels])
        for each in (gamma, beta, moving_mean, moving_var)
    ]
    made = ctx.apply(
        "nn.batch_norm",
        cast(ctx, data, dtype, wide),
        *operands,
        axis=norm.axis % ctx.type(data).rank,
        epsilon=norm.epsilon,
        center=norm.center,
        scale=norm.scale,
        training=False,
    )
    result = ctx.bind(ctx.framework.relax.TupleGetItem(ctx.bind(made).expr, 0))
    return cast(ctx, result, wide, dtype), moving_mean, moving_var


@OPS.exports("nn.layer_norm")
def export_layer_norm(
    ctx: ExportContext, data: Value, gamma: Value, beta: Value, *, norm: ChannelNorm
) -> Value:
    axis = norm.axis
    type_ = ctx.type(data)
    rank, axis = type_.rank, axis % type_.rank
    wide = sum_dtype(type_.dtype, None)
    used = {"center": norm.center, "scale": norm.scale}
    made = centre(ctx, cast(ctx, data, type_.dtype, wide), [axis])
    if wide == "float64":
        made = unit_variance(ctx, made, [axis], norm.epsilon, wide)
        return affine(ctx, made, (gamma, beta), rank, axis, wide, **used)
    pair = vectors(ctx, gamma, beta, wide, **used)
    made = ctx.emit("nn.layer_norm", made, *pair, axes=[axis], epsilon=norm.epsilon)
    return cast(ctx, made, wide, type_.dtype)


@OPS.exports("nn.instance_norm")
def export_instance_norm(
    ctx: ExportContext, data: Value, gamma: Value, beta: Value, *, norm: ChannelNorm
) -> Value:
    axis = norm.axis
    type_ = ctx.type(data)
    rank, axis = type_.rank, axis % type_.rank
    wide = sum_dtype(type_.dtype, None)
    used = {"center": norm.center, "scale": norm.scale}
    axes = [each for each in range(1, rank) if each != axis]
    made = cast(ctx, data, type_.dtype, wide)
    made = centre(ctx, made, axes) if axes else ctx.emit("subtract", made, made)
    if wide == "float64" or axis != 1 or not axes:
        made = unit_variance(ctx, made, axes, norm.epsilon, wide) if axes else made
        made = affine(ctx, made, (gamma, beta), rank, axis, wide, **used)
    else:
        pair = vectors(ctx, gamma, beta, wide, **used)
        made = ctx.emit(
            "nn.instance_norm", made, *pair, channel_axis=axis, axes=axes, epsilon=norm.epsilon
        )
    return cast(ctx, made, wide, type_.dtype)


@OPS.exports("nn.group_norm")
def export_group_norm(
    ctx: ExportContext, data: Value, gamma: Value, beta: Value, *, norm: GroupNorm
) -> Value:
    """Groups are an axis of their own for the mean, and in single steps for the variance too."""
    axis = norm.axis
    type_ = ctx.type(data)
    rank, axis, shape = type_.rank, axis % type_.rank, ctx.named_shape(data)
    wide = sum_dtype(type_.dtype, None)
    used = {"center": norm.center, "scale": norm.scale}
    split = [*shape[:axis], norm.num_groups, shape[axis] // norm.num_groups, *shape[axis + 1 :]]
    axes = [each for each in range(1, rank + 1) if each != axis]
    made = cast(ctx, data, type_.dtype, wide)
    made = centre(ctx, ctx.emit("reshape", made, ctx.shape_expr(split)), axes)
    if wide == "float64" or axis != 1:
        made = unit_variance(ctx, made, axes, norm.epsilon, wide)
        made = ctx.emit("reshape", made, ctx.shape_expr(shape))
        made = affine(ctx, made, (gamma, beta), rank, axis, wide, **used)
    else:
        made = ctx.emit("reshape", made, ctx.shape_expr(shape))
        made = ctx.emit(
            "nn.group_norm",
            made,
            *vectors(ctx, gamma, beta, wide, **used),
            num_groups=norm.num_groups,
            channel_axis=axis,
            axes=list(range(2, rank)),
            epsilon=norm.epsilon,
        )
    return cast(ctx, made, wide, type_.dtype)


def _last_axes(ctx: ExportContext, data: Value, axis: int) -> list[int]:
    rank = ctx.type(data).rank
    return list(range(axis % rank, rank))


@OPS.exports("serde.rms_norm")
def export_rms_norm(
    ctx: ExportContext, data: Value, gamma: Value, *, axis: int, epsilon: float
) -> Value:
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
    ctx: ExportContext,
    data: Value,
    gamma: Value,
    beta: Value | None,
    *,
    axis: int,
    epsilon: float,
    stash_dtype: np.dtype[AnyValue],
) -> tuple[Value, Value, Value]:
    """What nothing uses of the mean and the deviation is left out of the module."""
    type_, stash = ctx.type(data), dtype_name(stash_dtype)
    axes = _last_axes(ctx, data, axis)
    wide = sum_dtype(stash, None)
    x = _through(ctx, data, type_.dtype, stash, wide)
    mean = ctx.emit("mean", x, axis=axes, keepdims=True)
    centred = ctx.emit("subtract", x, mean)
    squares = ctx.emit("multiply", centred, centred)
    power = ctx.emit("mean", squares, axis=axes, keepdims=True)
    inverse = ctx.emit("rsqrt", ctx.emit("add", power, ctx.const(epsilon, wide)))
    total = sum_dtype(type_.dtype, None)
    pair = [cast(ctx, each, type_.dtype, total) for each in (gamma, beta) if each is not None]
    if wide == total == "float32" and stash != "bfloat16":
        shape = ctx.shape_expr(ctx.type(gamma).shape)
        shift = pair[1:] or [ctx.emit("zeros", shape, total)]
        made = ctx.emit("nn.layer_norm", centred, pair[0], *shift, axes=axes, epsilon=epsilon)
    else:
        made = ctx.emit("multiply", centred, inverse)
        made = ctx.emit("multiply", _through(ctx, made, wide, type_.dtype, total), pair[0])
        made = ctx.emit("add", made, pair[1]) if beta is not None else made
    found = cast(ctx, made, total, type_.dtype)
    return found, cast(ctx, mean, wide, stash), cast(ctx, inverse, wide, stash)


def _through(ctx: ExportContext, x: Value, before: str, dtype: str, wide: str) -> Value:
    """Return a value rounded to a dtype, in another that holds it."""
    return cast(ctx, cast(ctx, x, before, dtype), dtype, wide)

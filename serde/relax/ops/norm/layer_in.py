"""Importers of normalisation."""

from __future__ import annotations

from collections.abc import Sequence

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Expr, TupleGetItem
from serde.relay.ir.registry import call

__all__: list[str] = []


@OPS.imports("relax.nn.batch_norm")
def import_batch_norm(
    ctx: ImportContext,
    data: Expr,
    gamma: Expr,
    beta: Expr,
    moving_mean: Expr,
    moving_var: Expr,
    *,
    axis: int,
    epsilon: float,
    center: bool,
    scale: bool,
    momentum: float,
    training: bool,
) -> list[Expr]:
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
    ctx: ImportContext,
    data: Expr,
    gamma: Expr,
    beta: Expr,
    *,
    axes: tuple[int, ...],
    epsilon: float,
    center: bool,
    scale: bool,
) -> Expr:
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
    ctx: ImportContext, data: Expr, weight: Expr, *, axes: tuple[int, ...], epsilon: float
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
    ctx: ImportContext,
    data: Expr,
    gamma: Expr,
    beta: Expr,
    *,
    num_groups: int,
    channel_axis: int,
    axes: tuple[int, ...],
    epsilon: float,
    center: bool,
    scale: bool,
) -> Expr:
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
    ctx: ImportContext,
    data: Expr,
    gamma: Expr,
    beta: Expr,
    *,
    channel_axis: int,
    axes: tuple[int, ...],
    epsilon: float,
    center: bool,
    scale: bool,
) -> Expr:
    """Relay takes all axes but that of samples, which is the first one."""
    rank = ctx.rank(data)
    channel, axes = channel_axis % rank, tuple(sorted(axis % rank for axis in axes))
    if channel and axes == tuple(each for each in range(1, rank) if each != channel):
        return relay.nn.instance_norm(
            data, gamma, beta, axis=channel, epsilon=epsilon, center=center, scale=scale
        )
    whole = _normalize(ctx, data, axes, epsilon)
    return _scale(ctx, whole, gamma if scale else None, beta if center else None, [channel])


def _normalize(ctx: ImportContext, x: Expr, axes: Sequence[int], epsilon: float) -> Expr:
    """Return a tensor with mean 0 and variance 1 along axes."""
    mean = relay.mean(x, axis=tuple(axes), keepdims=True)
    variance = relay.variance(x, axis=tuple(axes), keepdims=True, with_mean=mean)
    root = relay.sqrt(relay.add(variance, ctx.like(x, epsilon)))
    return relay.divide(relay.subtract(x, mean), root)


def _scale(
    ctx: ImportContext, x: Expr, gamma: Expr | None, beta: Expr | None, axes: Sequence[int]
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

"""Normalisation."""

from __future__ import annotations

import serde.relay as relay
from serde.coreml.layers.table import LAYERS
from serde.coreml.networks import LayerContext as Ctx
from serde.coreml.networks import images, number
from serde.coreml.parts import Part
from serde.errors import Unsupported
from serde.relay.expr import Expr


@LAYERS.imports("batchnorm")
def import_batchnorm(
    ctx: Ctx,
    x: Expr,
    *,
    channels: int = 0,
    compute_mean_var: bool = False,
    instance_normalization: bool = False,
    epsilon: float = 1e-5,
    gamma: Part | None = None,
    beta: Part | None = None,
    mean: Part | None = None,
    variance: Part | None = None,
) -> Expr:
    """Channels are the third axis from the last; statistics may be those of the data."""
    rank = len(ctx.at_least(x, 3))
    shape = (channels,)
    scale, shift = ctx.weight(gamma, shape), ctx.weight(beta, shape)
    if compute_mean_var and instance_normalization:
        data, restore = images(ctx, x)
        return restore(relay.nn.instance_norm(data, scale, shift, axis=1, epsilon=epsilon))
    if compute_mean_var:
        axes = tuple(axis for axis in range(rank) if axis != rank - 3)
        average, spread = relay.mean(x, axis=axes), relay.variance(x, axis=axes)
    else:
        average, spread = ctx.weight(mean, shape), ctx.weight(variance, shape)
    found = relay.nn.batch_norm(x, scale, shift, average, spread, axis=rank - 3, epsilon=epsilon)
    return found[0]


@LAYERS.imports("mvn")
def import_mvn(
    ctx: Ctx,
    x: Expr,
    *,
    across_channels: bool = False,
    normalize_variance: bool = False,
    epsilon: float = 1e-6,
) -> Expr:
    rank = len(ctx.at_least(x, 3))
    axes = tuple(range(rank - (3 if across_channels else 2), rank))
    centred = relay.subtract(x, relay.mean(x, axis=axes, keepdims=True))
    if not normalize_variance:
        return centred
    spread = relay.mean(relay.multiply(centred, centred), axis=axes, keepdims=True)
    return relay.divide(centred, relay.sqrt(relay.add(spread, number(epsilon))))


@LAYERS.imports("l2normalize")
def import_l2normalize(ctx: Ctx, x: Expr, *, epsilon: float = 1e-6) -> Expr:
    """The constant is added to the sum of squares, of which it is no lower bound."""
    rank = len(ctx.at_least(x, 3))
    total = relay.sum(relay.multiply(x, x), axis=tuple(range(rank - 3, rank)), keepdims=True)
    return relay.divide(x, relay.sqrt(relay.add(total, number(epsilon))))


@LAYERS.imports("lrn")
def import_lrn(
    ctx: Ctx,
    x: Expr,
    *,
    alpha: float = 0.0,
    beta: float = 0.0,
    local_size: int = 0,
    k: float = 1.0,
) -> Expr:
    axis = len(ctx.at_least(x, 3)) - 3
    return relay.nn.lrn(x, size=local_size, axis=axis, bias=k, alpha=alpha, beta=beta)


@LAYERS.imports("layerNormalization")
def import_layer_normalization(
    ctx: Ctx,
    x: Expr,
    *,
    normalized_shape: tuple[int, ...] = (),
    eps: float = 0.0,
    gamma: Part | None = None,
    beta: Part | None = None,
) -> Expr:
    rank = ctx.type(x).rank
    if not 1 <= len(normalized_shape) <= rank:
        raise Unsupported(f"{len(normalized_shape)} lengths for a tensor of {rank} axes")
    scale, shift = ctx.weight(gamma, normalized_shape), ctx.weight(beta, normalized_shape)
    found = relay.serde.layer_norm(x, scale, shift, axis=-len(normalized_shape), epsilon=eps)
    return found[0]

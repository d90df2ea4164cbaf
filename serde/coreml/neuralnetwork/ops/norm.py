"""Normalisation."""

from __future__ import annotations

import math

import serde.relay as relay
from serde.coreml.neuralnetwork.import_context import images, number
from serde.coreml.neuralnetwork.message_view import MessageView
from serde.coreml.neuralnetwork.ops.table import LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType


@LAYERS.imports("batchnorm")
def import_batchnorm(
    ctx: Import, x: Expr,
    *, channels: int = 0, compute_mean_var: bool = False, instance_normalization: bool = False,
    epsilon: float = 1e-5, gamma: MessageView | None = None, beta: MessageView | None = None,
    mean: MessageView | None = None, variance: MessageView | None = None,
) -> Expr:  # fmt: skip
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
    ctx: Import,
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
def import_l2normalize(ctx: Import, x: Expr, *, epsilon: float = 1e-6) -> Expr:
    """The constant is added to the sum of squares, of which it is no lower bound."""
    rank = len(ctx.at_least(x, 3))
    total = relay.sum(relay.multiply(x, x), axis=tuple(range(rank - 3, rank)), keepdims=True)
    return relay.divide(x, relay.sqrt(relay.add(total, number(epsilon))))


@LAYERS.imports("lrn")
def import_lrn(
    ctx: Import,
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
    ctx: Import,
    x: Expr,
    *,
    normalized_shape: tuple[int, ...] = (),
    eps: float = 0.0,
    gamma: MessageView | None = None,
    beta: MessageView | None = None,
) -> Expr:
    rank = ctx.type(x).rank
    if not 1 <= len(normalized_shape) <= rank:
        raise Unsupported(f"{len(normalized_shape)} lengths for a tensor of {rank} axes")
    scale, shift = ctx.weight(gamma, normalized_shape), ctx.weight(beta, normalized_shape)
    found = relay.serde.layer_norm(x, scale, shift, axis=-len(normalized_shape), epsilon=eps)
    return found[0]


def _to_images(ctx: Export, x: Value) -> tuple[Value, TensorType]:
    """Return data with its channels third from the last, and the type of a norm of it."""
    shape = x.type.shape
    if len(shape) == 4:
        return x, ctx.result_type()
    if len(shape) == 3:
        type_ = TensorType((*shape[:2], 1, shape[2]), x.type.dtype)
        return ctx.layer("expandDims", x, of=type_, axes=[2]), type_
    type_ = TensorType([shape[axis] for axis in TURNED], x.type.dtype)
    return ctx.layer("transpose", x, of=type_, axes=list(TURNED)), type_


TURNED = (0, 2, 1, 3, 4)
"""Five axes with depth before the channels, and back."""


def _emit_norm(ctx: Export, x: Value) -> Value:
    """Return a norm with the axes that the data had."""
    if ctx.result_type().rank == 4:
        return x
    if ctx.result_type().rank == 3:
        return ctx.layer("squeeze", x, axes=[2])
    return ctx.layer("transpose", x, axes=list(TURNED))


@LAYERS.exports("batch_norm")
def export_batch_norm(
    ctx: Export, x: Value, mean: Value, variance: Value, gamma: Value | None = None,
    beta: Value | None = None,
    *, epsilon: float = 1e-5,
) -> Value:  # fmt: skip
    """Channels are MIL's second axis, and a layer's third from the last."""
    (channels,) = ctx.static_shape(mean, 1)
    data, type_ = _to_images(ctx, x)
    found = ctx.layer(
        "batchnorm", data, of=type_, channels=channels, epsilon=epsilon,
        gamma=ctx.filled(1, channels) if gamma is None else ctx.parameter(gamma),
        beta=ctx.filled(0, channels) if beta is None else ctx.parameter(beta),
        mean=ctx.parameter(mean), variance=ctx.parameter(variance),
    )  # fmt: skip
    return _emit_norm(ctx, found)


@LAYERS.exports("instance_norm")
def export_instance_norm(
    ctx: Export,
    x: Value,
    gamma: Value | None = None,
    beta: Value | None = None,
    *,
    epsilon: float = 1e-5,
) -> Value:
    """A batch norm that computes its statistics."""
    (channels,) = ctx.static_lengths(x, [1])
    data, type_ = _to_images(ctx, x)
    found = ctx.layer(
        "batchnorm", data, of=type_, channels=channels, epsilon=epsilon, compute_mean_var=True,
        instance_normalization=True,
        gamma=ctx.filled(1, channels) if gamma is None else ctx.parameter(gamma),
        beta=ctx.filled(0, channels) if beta is None else ctx.parameter(beta),
    )  # fmt: skip
    return _emit_norm(ctx, found)


@LAYERS.exports("layer_norm")
def export_layer_norm(
    ctx: Export,
    x: Value,
    gamma: Value | None = None,
    beta: Value | None = None,
    *,
    axes: tuple[int, ...],
    epsilon: float = 1e-5,
) -> Value:
    """A layer has the last axes, of fixed lengths; others are spelled out, without factors."""
    rank = x.type.rank
    chosen = sorted(axis % rank for axis in axes)
    lengths = [x.type.shape[axis] for axis in chosen]
    fixed = [length for length in lengths if isinstance(length, int)]
    last = chosen == list(range(rank - len(chosen), rank))
    if not last or len(fixed) < len(lengths):
        if gamma is not None or beta is not None:
            raise Unsupported("factors of a norm over axes that are not the last")
        return _standardize(ctx, x, chosen, epsilon)
    count = math.prod(fixed)
    return ctx.layer(
        "layerNormalization",
        x,
        normalized_shape=fixed,
        eps=epsilon,
        gamma=ctx.filled(1, count) if gamma is None else ctx.parameter(gamma),
        beta=ctx.filled(0, count) if beta is None else ctx.parameter(beta),
    )


def _standardize(ctx: Export, x: Value, axes: list[int], epsilon: float) -> Value:
    shape = [1 if axis in axes else dim for axis, dim in enumerate(x.type.shape)]
    small = TensorType(shape, x.type.dtype)
    middle = ctx.layer("reduceMean", x, of=small, axes=axes, keep_dims=True)
    centred = ctx.layer("subtractBroadcastable", x, middle)
    squares = ctx.layer("multiplyBroadcastable", centred, centred)
    power = ctx.layer("reduceMean", squares, of=small, axes=axes, keep_dims=True)
    raised = ctx.layer("add", power, of=small, alpha=epsilon)
    scale = ctx.layer("unary", raised, of=small, type="POWER", alpha=-0.5, scale=1.0)
    return ctx.layer("multiplyBroadcastable", centred, scale)


@LAYERS.exports("local_response_norm")
def export_local_response_norm(
    ctx: Export, x: Value, *, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Value:
    data, type_ = _to_images(ctx, x)
    return _emit_norm(
        ctx, ctx.layer("lrn", data, of=type_, local_size=size, alpha=alpha, beta=beta, k=k)
    )

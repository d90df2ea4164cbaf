"""Normalisations at inference, and dropout."""

from __future__ import annotations

from typing import Any as AnyValue, Literal

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, normalize_axis
from serde.relay.op.norm.bodies import batch_norm_body
from serde.relay.op.norm.plain import ChannelNorm
from serde.walk import Takes, at, pair, reads


@dataclass(frozen=True, kw_only=True)
class BatchNormAttributes:
    """Attributes of a batch normalisation that bear on inference."""

    eps: float = 1e-3
    fix_gamma: bool = True
    output_mean_var: bool = False
    axis: int = 1


TRAINING = ("momentum", "use_global_stats", "cudnn_off", "min_calib_range", "max_calib_range")
"""Attributes of a batch normalisation that do not."""


@OPS.imports(
    "BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", ignored=(*TRAINING, "ndev", "key")
)
def import_batch_norm(
    ctx: Import, data: Expr, gamma: Expr, beta: Expr, moving_mean: Expr, moving_var: Expr,
    *, norm: BatchNormAttributes,
) -> list[Expr]:  # fmt: skip
    """``fix_gamma`` makes gamma ones, whatever the file holds.

    Statistics stay float32 when the data is float16. The further outputs are
    the mean and the reciprocal of the standard deviation.
    """
    dtype = ctx.type(data).dtype
    wide = ctx.type(gamma).dtype
    if norm.fix_gamma:
        gamma = relay.ones_like(gamma)
    if wide != dtype:
        data = relay.cast(data, wide)
    result: Expr = relay.nn.batch_norm(
        data, gamma, beta, moving_mean, moving_var, axis=norm.axis, epsilon=norm.eps
    )[0]
    if wide != dtype:
        result = relay.cast(result, dtype)
    if not norm.output_mean_var:
        return [result]
    deviation = relay.rsqrt(relay.add(moving_var, scalar_like(ctx, moving_var, norm.eps)))
    return [result, moving_mean, deviation]


@OPS.imports("_contrib_BatchNormWithReLU", ignored=TRAINING)
def import_batch_norm_with_relu(
    ctx: Import, data: Expr, gamma: Expr, beta: Expr, moving_mean: Expr, moving_var: Expr,
    *, norm: BatchNormAttributes,
) -> list[Expr]:  # fmt: skip
    result, *others = import_batch_norm(ctx, data, gamma, beta, moving_mean, moving_var, norm=norm)
    return [relay.nn.relu(result), *others]


@OPS.imports("LayerNorm")
def import_layer_norm(
    ctx: Import, data: Expr, gamma: Expr, beta: Expr,
    *, axis: int = -1, eps: float = 1e-5, output_mean_var: bool = False,
) -> AnyValue:  # fmt: skip
    """The further outputs are the mean and the standard deviation, their axis kept."""
    result = relay.nn.layer_norm(data, gamma, beta, axis=axis, epsilon=eps)
    if not output_mean_var:
        return result
    mean = relay.mean(data, axis=(axis,), keepdims=True)
    variance = relay.variance(data, axis=(axis,), keepdims=True)
    return [result, mean, relay.sqrt(relay.add(variance, scalar_like(ctx, variance, eps)))]


@OPS.imports("GroupNorm")
def import_group_norm(
    ctx: Import, data: Expr, gamma: Expr, beta: Expr,
    *, num_groups: int = 1, eps: float = 1e-5, output_mean_var: bool = False,
) -> Expr:  # fmt: skip
    """MXNet 1.x has one gamma and beta a group, 2.0 one a channel, as Relay has."""
    if output_mean_var:
        raise Unsupported("output_mean_var=True")
    (channels,) = ctx.static_shape(gamma, 1)
    if ctx.type(data).shape[1] != channels:
        if channels != num_groups:
            raise Unsupported(f"{channels} values of gamma for {num_groups} groups")
        times = ctx.static_lengths(data, (1,))[0] // num_groups
        gamma, beta = (relay.repeat(each, times, 0) for each in (gamma, beta))
    return relay.nn.group_norm(data, gamma, beta, num_groups=num_groups, axis=1, epsilon=eps)


@OPS.imports("L2Normalization")
def import_l2_normalization(
    ctx: Import,
    data: Expr,
    *,
    eps: float = 1e-10,
    mode: Literal["channel", "instance", "spatial"] = "instance",
) -> Expr:
    """MXNet adds `eps` to the sum of squares; Relay's operator takes the larger of both."""
    rank = ctx.type(data).rank
    axes = {
        "channel": (normalize_axis(1, rank),),
        "instance": tuple(range(1, rank)),
        "spatial": tuple(range(2, rank)),
    }[mode]
    total = relay.sum(relay.multiply(data, data), axis=axes, keepdims=True)
    return relay.divide(data, relay.sqrt(relay.add(total, scalar_like(ctx, total, eps))))


@OPS.imports("Dropout", ignored=("cudnn_off", "axes"))
def import_dropout(
    ctx: Import, data: Expr, *, p: float = 0.5, mode: Literal["training", "always"] = "training"
) -> Expr:
    if mode == "always" and p > 0:
        raise Unsupported("mode='always' drops at random when the model is used")
    return relay.nn.dropout(data, p)


class RelayNorm(ChannelNorm):
    """Attributes that the normalisations of Relay share."""

    def fill(self, ctx: Export, like: Value, gamma: Value, beta: Value) -> tuple[Value, Value]:
        """Return gamma and beta, or ones and zeros of the dtype of `like` in their place."""
        dtype, length = ctx.type(like).dtype, ctx.static_shape(gamma)
        return (
            gamma if self.scale else ctx.const(allocation.ones(length, dtype)),
            beta if self.center else ctx.const(allocation.zeros(length, dtype)),
        )


@OPS.exports("nn.batch_norm")
def export_batch_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, moving_mean: Value, moving_var: Value,
    *, norm: RelayNorm,
) -> list[Value]:  # fmt: skip
    """Statistics that are no weights cannot be states of MXNet's; they are computed with."""
    axis = normalize_axis(norm.axis, ctx.type(data).rank)
    if not (ctx.is_weight(moving_mean) and ctx.is_weight(moving_var)):
        result = ctx.spell(
            lambda *given: batch_norm_body(*given, **vars(norm)).fields[0],
            data, gamma, beta, moving_mean, moving_var,
        )  # fmt: skip
        return [result, moving_mean, moving_var]
    gamma, beta = norm.fill(ctx, gamma, gamma, beta)
    result = ctx.emit(
        "BatchNorm", data, gamma, beta, moving_mean, moving_var, axis=axis, eps=norm.epsilon,
        fix_gamma=False,
    )  # fmt: skip
    return [result, moving_mean, moving_var]


def _along(ctx: Export, vector: Value, data: Value, axis: int) -> Value:
    """Return a vector with axes of length 1 around it, so that it lies along `axis`."""
    shape: list[Dim] = [1] * ctx.type(data).rank
    shape[axis] = ctx.type(vector).shape[0]
    return ctx.reshape(vector, shape)


@OPS.exports("nn.instance_norm", takes=Takes(axis=at(1)))
def export_instance_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, *, norm: RelayNorm
) -> Value:
    gamma, beta = norm.fill(ctx, data, gamma, beta)
    return ctx.emit("InstanceNorm", data, gamma, beta, eps=norm.epsilon)


@OPS.exports("nn.group_norm", takes=Takes(axis=at(1)))
def export_group_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, *, num_groups: int, norm: RelayNorm
) -> Value:
    """MXNet 1.x scales and shifts by group; what differs by channel comes behind it."""
    dtype = ctx.type(data).dtype
    ones = ctx.const(allocation.ones(num_groups, dtype))
    zeros = ctx.const(allocation.zeros(num_groups, dtype))
    result = ctx.emit("GroupNorm", data, ones, zeros, num_groups=num_groups, eps=norm.epsilon)
    if norm.scale:
        result = ctx.emit("broadcast_mul", result, _along(ctx, gamma, data, 1))
    if norm.center:
        result = ctx.emit("broadcast_add", result, _along(ctx, beta, data, 1))
    return result


@OPS.exports("nn.layer_norm")
def export_layer_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, *, norm: RelayNorm
) -> Value:
    gamma, beta = norm.fill(ctx, data, gamma, beta)
    return ctx.emit("LayerNorm", data, gamma, beta, axis=norm.axis, eps=norm.epsilon)


@OPS.exports("nn.dropout")
def export_dropout(ctx: Export, data: Value, *, rate: float) -> list[Value]:
    """The mask is that of inference, where nothing is dropped."""
    mask = ctx.emit("ones_like", data)
    return [ctx.emit("Dropout", data, p=rate), mask]


OPS.pairs(
    reads("InstanceNorm", "nn.instance_norm", eps=0.001, renamed={"eps": "epsilon"}),
    pair(
        "LRN",
        "nn.lrn",
        "nsize",
        knorm=2.0,
        alpha=0.0001,
        beta=0.75,
        renamed={"nsize": "size", "knorm": "bias"},
        fixed={"axis": 1},
        takes=Takes(axis=at(1)),
    ),
)

"""Normalisations: of batches, instances, groups and last axes, to unit length or variance."""

from __future__ import annotations

from functools import partial

import onnx
from onnx import helper

import serde.relay as relay
from serde.core.allocation import full
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import fill, scalar_like
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Any, Expr, call, normalize_axis
from serde.relay.op.norm.layer import StashedNorm
from serde.relay.op.norm.plain import ChannelNorm
from serde.walk.pairs import pair, reads, writes
from serde.walk.takes import SINGLE, Takes, at, dtypes


@OPS.exports("serde.layer_norm", since=17, takes=Takes(stash_dtype=dtypes("float32", "bfloat16")))
def export_serde_layer_norm(
    ctx: Export, x: Value, gamma: Value, beta: Value | None, *, norm: StashedNorm
) -> tuple[Value, ...]:
    return ctx.emit_tuple(
        "LayerNormalization", x, gamma, beta, outputs=3, axis=norm.axis, epsilon=norm.epsilon,
        stash_type=helper.np_dtype_to_tensor_dtype(norm.stash_dtype),
    )  # fmt: skip


@OPS.imports("LayerNormalization", since=17)
def import_layer_norm(
    ctx: Import, x: Expr, scale: Expr, b: Expr | None = None,
    *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = onnx.TensorProto.FLOAT,
) -> list[Expr]:  # fmt: skip
    found = call(
        "serde.layer_norm",
        x,
        _broadcast_to_axes(ctx, x, scale, axis),
        None if b is None else _broadcast_to_axes(ctx, x, b, axis),
        axis=axis,
        epsilon=epsilon,
        stash_dtype=ctx.dtype(stash_type),
    )
    return [relay.TupleGetItem(found, each) for each in range(3)]


@OPS.imports("RMSNormalization", since=23, ignored=("stash_type",))
def import_rms_norm(
    ctx: Import, x: Expr, scale: Expr, *, axis: int = -1, epsilon: float = 1e-5
) -> Expr:
    factor = _broadcast_to_axes(ctx, x, scale, axis)
    return call("serde.rms_norm", x, factor, axis=axis, epsilon=epsilon)


@OPS.imports("SimplifiedLayerNormalization", ignored=("stash_type",))
def import_simplified_layer_norm(
    ctx: Import, x: Expr, scale: Expr, *, axis: int = -1, epsilon: float = 1e-5
) -> list[Expr]:
    """``y = x / sqrt(mean(x**2) + epsilon) * scale``; the second output is the inverse root."""
    found: list[Expr] = [call("serde.rms_norm", x, scale, axis=axis, epsilon=epsilon)]
    if not ctx.wants(1):
        return found
    rank = ctx.type(x).rank
    axes = tuple(range(axis % rank, rank))
    wide = relay.cast(x, "float32")
    square = relay.mean(relay.multiply(wide, wide), axis=axes, keepdims=True)
    return [*found, relay.rsqrt(relay.add(square, scalar_like(ctx, square, epsilon)))]


def _broadcast_to_axes(ctx: Import, x: Expr, scale: Expr, axis: int) -> Expr:
    """Return a factor of the axes from `axis` on, to whose lengths ONNX broadcasts it."""
    lengths = ctx.type(x).shape[normalize_axis(axis, ctx.type(x).rank) :]
    if ctx.type(scale).shape == lengths:
        return scale
    return relay.broadcast_to(scale, lengths)


OPS.pairs(
    writes(
        "RMSNormalization", "serde.rms_norm", "axis", "epsilon", since=23, takes=Takes(data=SINGLE)
    )
)


def _move_channel_second(ctx: Export, x: Value, axis: int) -> tuple[Value, list[int] | None]:
    """Return `x` with `axis` as axis 1, and the exchange that undoes it."""
    rank = ctx.type(x).rank
    if axis % rank == 1 or rank == 1:
        return x, None
    order = list(range(rank))
    order[1], order[axis % rank] = order[axis % rank], order[1]
    return ctx.emit("Transpose", x, perm=order), order


def _restore_axes(ctx: Export, x: Value, order: list[int] | None) -> Value:
    return x if order is None else ctx.emit("Transpose", x, perm=order)


def _repeat(ctx: Export, value: float, like: Value) -> Value:
    """Return a vector of one value, as long as `like`."""
    type_ = ctx.type(like)
    length = type_.shape[0]
    if isinstance(length, int):
        return ctx.const(full(length, value), type_.dtype)
    return fill(ctx, ctx.emit("Shape", like), value, type_.dtype)


class RelayNorm(ChannelNorm):
    """Attributes that the normalisations of Relay share."""

    def fill(self, ctx: Export, gamma: Value, beta: Value) -> tuple[Value, Value]:
        """Return gamma and beta; those that the layer leaves out are ones and zeros."""
        return (
            gamma if self.scale else _repeat(ctx, 1.0, gamma),
            beta if self.center else _repeat(ctx, 0.0, beta),
        )


@OPS.exports("nn.batch_norm")
def export_batch_norm(
    ctx: Export, x: Value, gamma: Value, beta: Value, mean: Value, var: Value, *, norm: RelayNorm
) -> tuple[Value, ...]:
    gamma, beta = norm.fill(ctx, gamma, beta)
    moved, order = _move_channel_second(ctx, x, norm.axis)
    result = ctx.emit("BatchNormalization", moved, gamma, beta, mean, var, epsilon=norm.epsilon)
    return _restore_axes(ctx, result, order), mean, var


def _require_inference(ctx: Import) -> None:
    """Before 14, a layer that gives statistics, too, is one that trains."""
    if ctx.wants(1):
        hint = "take away what reads its outputs behind the first: those are statistics of training"
        raise Unsupported("a batch normalisation that trains", hint=hint)


@OPS.imports("BatchNormalization", since=(1, 6, 7), ignored=("consumed_inputs", "momentum"))
def import_batch_norm_v1(
    ctx: Import, x: Expr, scale: Expr, b: Expr, mean: Expr, var: Expr,
    *, epsilon: float = 1e-5, is_test: bool = False, spatial: bool = True,
) -> Expr:  # fmt: skip
    """Before 9 statistics may belong to every element of a sample (``spatial`` 0)."""
    if not is_test and ctx.version < 7:
        raise Unsupported("a batch normalisation that trains", hint="set is_test=1")
    _require_inference(ctx)
    if spatial:
        return _build_batch_norm(ctx, x, scale, b, mean, var, epsilon)
    factor = relay.rsqrt(relay.add(var, scalar_like(ctx, var, epsilon)))
    centered = relay.multiply(relay.subtract(x, mean), relay.multiply(factor, scale))
    return relay.add(centered, b)


@OPS.imports("BatchNormalization", since=9, ignored=("momentum",))
def import_batch_norm_v9(
    ctx: Import, x: Expr, scale: Expr, b: Expr, mean: Expr, var: Expr, *, epsilon: float = 1e-5
) -> Expr:
    _require_inference(ctx)
    return _build_batch_norm(ctx, x, scale, b, mean, var, epsilon)


@OPS.imports("BatchNormalization", since=(14, 15))
def import_batch_norm(
    ctx: Import, x: Expr, scale: Expr, b: Expr, mean: Expr, var: Expr,
    *, epsilon: float = 1e-5, momentum: float = 0.9, training_mode: bool = False,
) -> list[Expr]:  # fmt: skip
    """In training, ``running = running * momentum + batch * (1 - momentum)``."""
    if not training_mode:
        return [_build_batch_norm(ctx, x, scale, b, mean, var, epsilon)]
    axes = tuple(axis for axis in range(ctx.type(x).rank) if axis != 1)
    own = relay.mean(x, axis=axes)
    spread = relay.variance(x, axis=axes)
    moved = [
        relay.add(
            relay.multiply(old, scalar_like(ctx, old, momentum)),
            relay.multiply(
                relay.cast(new, ctx.type(old).dtype), scalar_like(ctx, old, 1 - momentum)
            ),
        )
        for old, new in ((mean, own), (var, spread))
    ]
    return [_build_batch_norm(ctx, x, scale, b, own, spread, epsilon), *moved]


@OPS.exports("nn.instance_norm")
def export_instance_norm(
    ctx: Export, x: Value, gamma: Value, beta: Value, *, norm: RelayNorm
) -> Value:
    gamma, beta = norm.fill(ctx, gamma, beta)
    moved, order = _move_channel_second(ctx, x, norm.axis)
    result = ctx.emit("InstanceNormalization", moved, gamma, beta, epsilon=norm.epsilon)
    return _restore_axes(ctx, result, order)


@OPS.exports("nn.layer_norm", since=17, takes=Takes(data=SINGLE, axis=at(-1), scale=True))
def export_layer_norm(
    ctx: Export, x: Value, gamma: Value, beta: Value, *, norm: RelayNorm
) -> Value:
    shift = beta if norm.center else None
    return ctx.emit("LayerNormalization", x, gamma, shift, axis=-1, epsilon=norm.epsilon)


@OPS.exports("nn.group_norm", since=21)
def export_group_norm(
    ctx: Export, x: Value, gamma: Value, beta: Value, *, num_groups: int, norm: RelayNorm
) -> Value:
    """Up to 20, ONNX had one scale a group instead of one a channel."""
    gamma, beta = norm.fill(ctx, gamma, beta)
    moved, order = _move_channel_second(ctx, x, norm.axis)
    is_double = ctx.type(x).dtype == "float64"
    result = ctx.emit(
        "GroupNormalization", moved, gamma, beta, num_groups=num_groups, epsilon=norm.epsilon,
        stash_type=onnx.TensorProto.DOUBLE if is_double else None,
    )  # fmt: skip
    return _restore_axes(ctx, result, order)


@OPS.imports("GroupNormalization", since=21)
def import_group_norm(
    ctx: Import, x: Expr, scale: Expr, bias: Expr,
    *, num_groups: int, epsilon: float = 1e-5, stash_type: int = onnx.TensorProto.FLOAT,
) -> Expr:  # fmt: skip
    """Relay computes in float64 what is float64, and all else in float32."""
    dtype, stash = ctx.type(x).dtype, ctx.dtype(stash_type)
    norm = partial(relay.nn.group_norm, num_groups=num_groups, axis=1, epsilon=epsilon)
    if (dtype == "float64") == (stash == "float64"):
        return norm(x, scale, bias)
    vectors = (relay.cast(each, stash) for each in (scale, bias))
    unit = relay.cast(norm(relay.cast(x, stash), *vectors, center=False, scale=False), dtype)
    factor, shift = (
        relay.expand_dims(each, axis=1, num_newaxis=ctx.type(x).rank - 2) for each in (scale, bias)
    )
    return relay.add(relay.multiply(unit, factor), shift)


@OPS.imports("GroupNormalization", since=18)
def import_group_norm_v18(
    ctx: Import, x: Expr, scale: Expr, bias: Expr, *, num_groups: int, epsilon: float = 1e-5
) -> Expr:
    """Before 21, there is one scale a group."""
    channels = ctx.type(x).shape[1]
    if isinstance(channels, Any):
        raise Unsupported("a number of channels without a length or a name")
    wide = (num_groups, channels // num_groups)
    scale, bias = (
        relay.reshape(relay.broadcast_to(relay.expand_dims(each, axis=1), wide), (channels,))
        for each in (scale, bias)
    )
    return relay.nn.group_norm(x, scale, bias, num_groups=num_groups, axis=1, epsilon=epsilon)


@OPS.exports("nn.lrn")
def export_lrn(
    ctx: Export, x: Value, *, size: int, axis: int, bias: float, alpha: float, beta: float
) -> Value:
    moved, order = _move_channel_second(ctx, x, axis)
    result = ctx.emit("LRN", moved, size=size, bias=bias, alpha=alpha, beta=beta)
    return _restore_axes(ctx, result, order)


def _build_batch_norm(
    ctx: Import, x: Expr, scale: Expr, b: Expr, mean: Expr, var: Expr, epsilon: float
) -> Expr:
    """Return `x` normalised by statistics of each channel."""
    return relay.nn.batch_norm(x, scale, b, mean, var, axis=1, epsilon=epsilon)[0]


@OPS.imports("Dropout", since=(1, 6), ignored=("consumed_inputs",))
def import_dropout_v1(
    ctx: Import, x: Expr, *, is_test: bool = False, ratio: float = 0.5
) -> list[Expr]:
    dtype = ctx.type(x).dtype
    if is_test or ratio == 0:
        return _keep_all(ctx, x, dtype)
    found, mask = _drop(ctx, x, relay.const(ratio, dtype), None, None)
    return [found, relay.cast(mask, dtype)]


@OPS.imports("Dropout", since=(7, 10), ignored=("ratio",))
def import_dropout_v7(ctx: Import, x: Expr) -> list[Expr]:
    return _keep_all(ctx, x, ctx.type(x).dtype if ctx.version < 10 else "bool")


@OPS.imports("Dropout", since=(12, 13, 22))
def import_dropout(
    ctx: Import,
    x: Expr,
    ratio: Expr | None = None,
    training_mode: Expr | None = None,
    *,
    seed: int | None = None,
) -> list[Expr]:
    """Training drops other elements each time, as long as no seed is given."""
    if training_mode is None:
        return _keep_all(ctx, x, "bool")
    known = ctx.is_constant(training_mode)
    none = ratio is not None and ctx.is_constant(ratio) and not ctx.item(ratio)
    if none or (known and not ctx.item(training_mode)):
        return _keep_all(ctx, x, "bool")
    share = relay.const(0.5, ctx.type(x).dtype) if ratio is None else ratio
    return _drop(ctx, x, share, None if known else training_mode, seed)


def _drop(ctx: Import, x: Expr, ratio: Expr, trains: Expr | None, seed: float | None) -> list[Expr]:
    """Return what is left of `x`, scaled up by what is dropped, and which elements that are.

    Args:
        ctx: The context of the converter.
        x: What is dropped from.
        ratio: How much of it is, a scalar.
        trains: Whether anything is; that is sure if left out.
        seed: Of the numbers drawn.
    """
    type_ = ctx.type(x)
    share = relay.reshape(relay.cast(ratio, type_.dtype), newshape=())
    kept = relay.subtract(relay.const(1, type_.dtype), share)
    mask: Expr = call("serde.bernoulli", relay.full_like(x, kept), dtype="bool", seed=seed)
    scaled = relay.divide(x, kept)
    if trains is not None:
        asked = relay.reshape(trains, newshape=())
        mask = relay.logical_or(mask, relay.logical_not(asked))
        scaled = relay.where(asked, scaled, x)
    return [relay.where(mask, scaled, relay.zeros_like(x)), mask]


def _keep_all(ctx: Import, x: Expr, dtype: str) -> list[Expr]:
    """Return `x` and a mask that keeps all of it."""
    return [x, relay.cast(relay.ones_like(x), dtype)] if ctx.wants(1) else [x]


OPS.pairs(reads("LRN", "nn.lrn", "size", since=(1, 13), bias=1.0, alpha=0.0001, beta=0.75))


OPS.pairs(
    # The function that defines it has constants of float32.
    pair(
        "MeanVarianceNormalization",
        "serde.mean_variance_normalization",
        since=(9, 13),
        target=1,
        axes=(0, 2, 3),
        takes=Takes(data=dtypes("float32")),
    ),
    pair("LpNormalization", "serde.lp_normalization", since=(1, 22), axis=-1, p=2),
    reads(
        "InstanceNormalization",
        "nn.instance_norm",
        since=(1, 6, 22),
        fixed={"axis": 1},
        ignored="consumed_inputs",
        epsilon=1e-5,
    ),
)

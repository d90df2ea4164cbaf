"""Normalisation as it is written."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np

import serde.core.allocation as allocation
from serde.core.weights import numpy_dtype
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call
from serde.relay.ir.shapes import itemsize
from serde.relay.op.norm.plain import ChannelNorm, GroupNorm
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import DType, cast, dims_of
from serde.walk.expansion.tensors import tensor_type


def _on_axis(
    ctx: ExportContext, data: Value, axis: int, place: int, write: Callable[[Value], Value]
) -> Value:
    """Return what `write` makes of a tensor with one axis at another place, moved back again."""
    axis %= ctx.type(data).rank
    if axis == place % ctx.type(data).rank:
        return write(data)
    shape = list(ctx.type(data).shape)
    shape.insert(place % len(shape), shape.pop(axis))
    moved = ctx.typed(
        ctx.method(data, "movedim", axis, place), type(ctx.type(data))(shape, ctx.type(data).dtype)
    )
    return ctx.method(write(moved), "movedim", place, axis)


def _vector(ctx: ExportContext, like: Value, value: float) -> Value:
    (length,) = ctx.static_shape(like, 1)
    return ctx.const(allocation.full(length, value, numpy_dtype(ctx.type(like).dtype)))


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
    """A factor or a shift that does not count is the constant that it is, in a layer."""
    given = (moving_mean, moving_var, *norm.affine(gamma, beta))
    used = [each for each in given if each is not None]
    (count,) = ctx.type(moving_mean).shape
    always = bool(ctx.in_training().get("use_global_stats"))

    def write(x: Value) -> Value:
        rank = ctx.type(x).rank
        if always or not (ctx.is_weight(*used) and isinstance(count, int) and 2 <= rank <= 5):
            ctx.keep_fixed(moving_mean, moving_var)  # PyTorch refuses statistics that train
            return ctx.call(
                "F.batch_norm",
                x,
                moving_mean,
                moving_var,
                *norm.affine(gamma, beta),
                eps=norm.epsilon,
            )
        weights = {"running_mean": moving_mean, "running_var": moving_var}
        options: dict[str, object] = {} if norm.epsilon == 1e-5 else {"eps": norm.epsilon}
        options |= _momentum(ctx)
        if norm.scale or norm.center:
            weights["weight"] = gamma if norm.scale else _vector(ctx, gamma, 1.0)
            weights["bias"] = beta if norm.center else _vector(ctx, beta, 0.0)
        else:
            options["affine"] = False
        weights["num_batches_tracked"] = ctx.const(0, "int64")
        name = f"nn.BatchNorm{max(rank - 2, 1)}d"
        return ctx.layer(name, (x,), weights, num_features=count, **options)

    return _on_axis(ctx, data, norm.axis, 1, write), moving_mean, moving_var


def _momentum(ctx: ExportContext) -> dict[str, object]:
    """Return the share of a batch in the statistics, where others have what it leaves of them."""
    kept = ctx.in_training().get("momentum", 0.9)
    share = float(1 - Decimal(repr(kept)))
    return {} if share == 0.1 else {"momentum": share}


@OPS.exports("nn.dropout")
def export_dropout(ctx: ExportContext, data: Value, *, rate: float) -> tuple[Value, Value]:
    """Along some axes all is dropped or nothing: the mask has the length 1 there."""
    ones = ctx.call("torch.ones_like", data)
    axes = {axis % ctx.type(data).rank for axis in ctx.in_training().get("axes", ())}
    if not axes:
        return ctx.layer("nn.Dropout", (data,), {}, p=rate), ones
    lengths = [1 if axis in axes else ctx.size(data, axis) for axis in range(ctx.type(data).rank)]
    mask = ctx.layer("nn.Dropout", (ctx.method(data, "new_ones", lengths),), {}, p=rate)
    return ctx.infix("*", data, mask), ones


def _layer_norm(
    ctx: ExportContext,
    data: Value,
    gamma: Value | None,
    beta: Value | None,
    lengths: tuple[Dim, ...],
    epsilon: float,
) -> Value:
    fixed = [each for each in lengths if isinstance(each, int)]
    if gamma is not None and ctx.is_weight(gamma, *([] if beta is None else [beta])):
        shape = fixed[0] if len(fixed) == 1 else tuple(fixed)
        if len(fixed) == len(lengths):
            options: dict[str, object] = {} if epsilon == 1e-5 else {"eps": epsilon}
            weights = {"weight": gamma}
            if beta is None:
                options["bias"] = False
            else:
                weights["bias"] = beta
            return ctx.layer("nn.LayerNorm", (data,), weights, normalized_shape=shape, **options)
    return ctx.call("F.layer_norm", data, ctx.sizes(lengths), gamma, beta, epsilon)


@OPS.exports("nn.layer_norm")
def export_layer_norm(
    ctx: ExportContext, data: Value, gamma: Value, beta: Value, *, norm: ChannelNorm
) -> Value:
    """PyTorch normalises the last axes."""

    def write(x: Value) -> Value:
        lengths = (ctx.type(x).shape[-1],)
        return _layer_norm(ctx, x, *norm.affine(gamma, beta), lengths, norm.epsilon)

    return _on_axis(ctx, data, norm.axis, -1, write)


def _has_wide_statistics(call: Call) -> bool:
    """Whether statistics are computed in what PyTorch has for it: float32 or wider."""
    dtype = tensor_type(call.args[0]).dtype
    stash = np.dtype(call.attrs["stash_dtype"]).name
    return itemsize(stash) >= max(itemsize(dtype), 4) and stash in ("float32", "float64")


@OPS.exports("serde.layer_norm", when=_has_wide_statistics)
def export_serde_layer_norm(
    ctx: ExportContext,
    data: Value,
    gamma: Value,
    beta: Value | None,
    *,
    axis: int,
    epsilon: float,
    stash_dtype: DType,
) -> tuple[Value, Value, Value]:
    """Mean and inverse deviation are computed by themselves; most models use neither."""
    type_ = ctx.type(data)
    axes = tuple(range(axis % type_.rank, type_.rank))
    result = _layer_norm(ctx, data, gamma, beta, type_.shape[axes[0] :], epsilon)
    wide = cast(ctx, data, stash_dtype.name)
    mean = ctx.method(wide, "mean", dims_of(axes), keepdim=True)
    spread = ctx.method(wide, "var", dims_of(axes), unbiased=False, keepdim=True)
    return result, mean, ctx.call("torch.rsqrt", ctx.infix("+", spread, epsilon))


@OPS.exports("serde.rms_norm")
def export_rms_norm(
    ctx: ExportContext, data: Value, gamma: Value, *, axis: int, epsilon: float
) -> Value:
    lengths = ctx.type(data).shape[axis % ctx.type(data).rank :]
    if ctx.is_weight(gamma):
        shape = ctx.static_shape(gamma)
        return ctx.layer(
            "nn.RMSNorm",
            (data,),
            {"weight": gamma},
            normalized_shape=shape[0] if len(shape) == 1 else shape,
            eps=epsilon,
        )
    return ctx.call("F.rms_norm", data, ctx.sizes(lengths), gamma, epsilon)


@OPS.exports("nn.group_norm")
def export_group_norm(
    ctx: ExportContext, data: Value, gamma: Value, beta: Value, *, norm: GroupNorm
) -> Value:
    (count,) = ctx.type(gamma).shape

    def write(x: Value) -> Value:
        if norm.scale and norm.center and ctx.is_weight(gamma, beta) and isinstance(count, int):
            options = {} if norm.epsilon == 1e-5 else {"eps": norm.epsilon}
            weights = {"weight": gamma, "bias": beta}
            return ctx.layer(
                "nn.GroupNorm",
                (x,),
                weights,
                num_groups=norm.num_groups,
                num_channels=count,
                **options,
            )
        return ctx.call(
            "F.group_norm", x, norm.num_groups, *norm.affine(gamma, beta), norm.epsilon
        )  # fmt: skip

    return _on_axis(ctx, data, norm.axis, 1, write)


@OPS.exports("nn.instance_norm")
def export_instance_norm(
    ctx: ExportContext, data: Value, gamma: Value, beta: Value, *, norm: ChannelNorm
) -> Value:
    """The layer and its function refuse a single element; what they call does not."""
    (count,) = ctx.type(gamma).shape

    def write(x: Value) -> Value:
        rank = ctx.type(x).rank
        spatial = ctx.type(x).shape[2:]
        several = any(isinstance(length, int) and length > 1 for length in spatial)
        affine = norm.scale and norm.center and several and isinstance(count, int)
        if affine and 3 <= rank <= 5 and ctx.is_weight(gamma, beta):
            options = {} if norm.epsilon == 1e-5 else {"eps": norm.epsilon}
            weights = {"weight": gamma, "bias": beta}
            return ctx.layer(
                f"nn.InstanceNorm{rank - 2}d", (x,), weights, num_features=count, affine=True,
                **options,
            )  # fmt: skip
        given = norm.affine(gamma, beta)
        if several:
            return ctx.call("F.instance_norm", x, weight=given[0], bias=given[1], eps=norm.epsilon)
        return ctx.call(
            "torch.instance_norm", x, *given, None, None, True, 0.0, norm.epsilon, False
        )

    return _on_axis(ctx, data, norm.axis, 1, write)


@OPS.exports("nn.l2_normalize")
def export_l2_normalize(
    ctx: ExportContext, data: Value, *, eps: float, axis: tuple[int, ...]
) -> Value:
    """PyTorch's bound is that of the root of the sum; TorchScript takes one axis."""
    axes = dims_of(axis or range(ctx.type(data).rank))
    if isinstance(axes, int):
        return ctx.call("F.normalize", data, dim=axes, eps=math.sqrt(eps))
    length = ctx.call("torch.linalg.vector_norm", data, dim=axes, keepdim=True)
    return ctx.infix("/", data, ctx.call("torch.clamp", length, min=math.sqrt(eps)))


@OPS.exports("nn.lrn")
def export_lrn(
    ctx: ExportContext,
    data: Value,
    *,
    size: int,
    axis: int,
    bias: float,
    alpha: float,
    beta: float,
) -> Value:
    def write(x: Value) -> Value:
        return ctx.call("F.local_response_norm", x, size, alpha=alpha, beta=beta, k=bias)

    return _on_axis(ctx, data, axis, 1, write)

"""Normalisation by statistics of channels and groups."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.relay.ir import Expr, TupleGetItem, call
from serde.relay.op.norm.plain import ChannelNorm, GroupNorm
from serde.torch.ops.norm.layer import channel_vector, measure
from serde.torch.ops.reduce.plain import count
from serde.torch.ops.table import OPS, Export, Import, Value
from serde.torch.ops.written import on_axis


def _scaled(ctx: Import, x: Expr, weight: Expr | None, bias: Expr | None) -> tuple[Expr, ...]:
    """Return data with a factor and a shift for each channel, in its dtype."""
    dtype = ctx.dtype(x)
    return (
        x,
        channel_vector(ctx, x, 1, dtype) if weight is None else ctx.cast(weight, dtype),
        channel_vector(ctx, x, 0, dtype) if bias is None else ctx.cast(bias, dtype),
    )


def _normalize_channels(
    ctx: Import, x: Expr, weight: Expr | None, bias: Expr | None, mean: Expr, variance: Expr,
    eps: float,
) -> Expr:  # fmt: skip
    """Return data normalised by a mean and a variance for each channel."""
    dtype = ctx.dtype(mean)
    given = (
        channel_vector(ctx, x, 1, dtype) if weight is None else weight,
        channel_vector(ctx, x, 0, dtype) if bias is None else bias,
    )
    found = call(
        "nn.batch_norm", x, *given, mean, variance, axis=1, epsilon=eps, center=bias is not None,
        scale=weight is not None,
    )  # fmt: skip
    return TupleGetItem(found, 0)


def _batch_norm(
    ctx: Import, x: Expr, weight: Expr | None, bias: Expr | None, mean: Expr | None,
    variance: Expr | None, training: bool, eps: float,
) -> tuple[Expr, Expr, Expr]:  # fmt: skip
    """Return normalised data; the mean and inverse deviation of the batch, else empty tensors."""
    kind = ctx.dtype(x if weight is None else weight)
    if not training and mean is not None and variance is not None and ctx.type(x).rank > 1:
        none = relay.zeros((0,), kind)
        return _normalize_channels(ctx, x, weight, bias, mean, variance, eps), none, none
    own_mean, own_variance = measure(ctx, x, _all_but_channels(ctx, x))
    inverse = relay.rsqrt(relay.add(own_variance, ctx.scalar(eps, ctx.dtype(own_variance))))
    kept = ctx.cast(own_mean, kind), ctx.cast(inverse, kind)
    if ctx.type(x).rank < 2:
        return x, *kept
    return _normalize_channels(ctx, x, weight, bias, own_mean, own_variance, eps), *kept


def _all_but_channels(ctx: Import, x: Expr) -> list[int]:
    return [axis for axis in range(ctx.type(x).rank) if axis != 1]


def update_statistics(
    ctx: Import, x: Expr, mean: Expr, variance: Expr, momentum: float
) -> tuple[Expr, Expr]:
    """Return running statistics after a batch, of which the variance is that of a sample."""
    axes = _all_but_channels(ctx, x)
    own = measure(ctx, x, axes)
    dtype = ctx.dtype(variance)
    size, one = count(ctx, x, tuple(axes), "float64"), ctx.scalar(1, "float64")
    ratio = ctx.fold(relay.divide(size, relay.maximum(relay.subtract(size, one), one)))
    sample = relay.multiply(ctx.cast(own[1], dtype), ctx.cast(ratio, dtype))
    found = []
    for old, new in zip((mean, variance), (own[0], sample), strict=True):
        kept = relay.multiply(old, ctx.scalar(1 - momentum, ctx.dtype(old)))
        more = relay.multiply(ctx.cast(new, ctx.dtype(old)), ctx.scalar(momentum, ctx.dtype(old)))
        found.append(relay.add(kept, more))
    return found[0], found[1]


@OPS.imports("aten::batch_norm", ignored=("momentum", "cudnn_enabled"))
def import_batch_norm(
    ctx: Import, input: Expr, weight: Expr | None = None, bias: Expr | None = None,
    running_mean: Expr | None = None, running_var: Expr | None = None,
    *, training: bool, eps: float,
) -> Expr:  # fmt: skip
    """In training the statistics are those of the batch."""
    return _batch_norm(ctx, input, weight, bias, running_mean, running_var, training, eps)[0]


def _import_native(
    ctx: Import, input: Expr, weight: Expr | None = None, bias: Expr | None = None,
    running_mean: Expr | None = None, running_var: Expr | None = None,
    *, training: bool, momentum: float, eps: float, reserve: bool, updates: bool,
) -> tuple[Expr, ...]:  # fmt: skip
    """Beside the data mean and inverse deviation of the batch, of which inference has none.

    Behind them stand an empty reserve and the running statistics as they are at last, where the
    operator gives them. Without running statistics those of the batch are taken.
    """
    found: tuple[Expr, ...]
    found = _batch_norm(ctx, input, weight, bias, running_mean, running_var, training, eps)
    if reserve:
        found += (relay.zeros((0,), "uint8"),)
    if not updates or running_mean is None or running_var is None:
        return found
    if not training:
        return *found, running_mean, running_var
    return *found, *update_statistics(ctx, input, running_mean, running_var, momentum)


_native = partial(_import_native, reserve=False, updates=False)
_updating = partial(_import_native, updates=True)

OPS.imports(
    "aten::native_batch_norm", "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit.no_stats",
)(_native)  # fmt: skip
OPS.imports("aten::_native_batch_norm_legit_no_training")(partial(_native, training=False))
OPS.imports("aten::_batch_norm_no_update")(partial(_native, training=False, reserve=True))
OPS.imports("aten::_native_batch_norm_legit_functional")(partial(_updating, reserve=False))
OPS.imports("aten::_batch_norm_with_update_functional", "aten::_batch_norm_with_update")(
    partial(_updating, reserve=True, training=True)
)


@OPS.imports("aten::instance_norm", ignored=("momentum", "cudnn_enabled"))
def import_instance_norm(
    ctx: Import, input: Expr, weight: Expr | None = None, bias: Expr | None = None,
    running_mean: Expr | None = None, running_var: Expr | None = None,
    *, use_input_stats: bool, eps: float,
) -> Expr:  # fmt: skip
    if not use_input_stats and running_mean is not None and running_var is not None:
        return _normalize_channels(ctx, input, weight, bias, running_mean, running_var, eps)
    return call(
        "nn.instance_norm", *_scaled(ctx, input, weight, bias), axis=1, epsilon=eps,
        center=bias is not None, scale=weight is not None,
    )  # fmt: skip


def _group_norm(
    ctx: Import, x: Expr, weight: Expr | None, bias: Expr | None, groups: int, eps: float
) -> Expr:
    return call(
        "nn.group_norm", *_scaled(ctx, x, weight, bias), num_groups=groups, axis=1, epsilon=eps,
        center=bias is not None, scale=weight is not None,
    )  # fmt: skip


@OPS.imports("aten::group_norm", ignored=("cudnn_enabled",))
def import_group_norm(
    ctx: Import,
    input: Expr,
    weight: Expr | None = None,
    bias: Expr | None = None,
    *,
    num_groups: int,
    eps: float = 1e-5,
) -> Expr:
    return _group_norm(ctx, input, weight, bias, num_groups, eps)


@OPS.imports("aten::native_group_norm", ignored=("N", "C", "HxW"))
def import_native_group_norm(
    ctx: Import,
    input: Expr,
    weight: Expr | None = None,
    bias: Expr | None = None,
    *,
    group: int,
    eps: float,
) -> tuple[Expr, ...]:
    """Beside the data the mean and the inverse deviation of each sample and group."""
    found = _group_norm(ctx, input, weight, bias, group, eps)
    rows = relay.reshape(input, (0, group, -1))
    mean, variance = measure(ctx, rows, [2])
    inverse = relay.rsqrt(relay.add(variance, ctx.scalar(eps, ctx.dtype(variance))))
    kind = ctx.dtype(input if weight is None else weight)
    return found, ctx.cast(mean, kind), ctx.cast(inverse, kind)


def _vector(ctx: Export, like: Value, value: float) -> Value:
    (length,) = ctx.static_shape(like, 1)
    return ctx.const(allocation.full(length, value, numpy_dtype(ctx.type(like).dtype)))


@OPS.exports("nn.batch_norm")
def export_batch_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, moving_mean: Value, moving_var: Value,
    *, norm: ChannelNorm,
) -> tuple[Value, Value, Value]:  # fmt: skip
    """A factor or a shift that does not count is the constant that it is, in a layer."""
    given = (moving_mean, moving_var, *norm.affine(gamma, beta))
    used = [each for each in given if each is not None]
    (count,) = ctx.type(moving_mean).shape
    always = bool(ctx.in_training().get("use_global_stats"))

    def write(x: Value) -> Value:
        rank = ctx.type(x).rank
        if always or not (ctx.is_weight(*used) and isinstance(count, int) and 2 <= rank <= 5):
            ctx.keep_fixed(moving_mean, moving_var)  # PyTorch refuses statistics that train
            affine = norm.affine(gamma, beta)
            return ctx.call("F.batch_norm", x, moving_mean, moving_var, *affine, eps=norm.epsilon)
        weights = {"running_mean": moving_mean, "running_var": moving_var}
        options: dict[str, object] = {**_epsilon(norm), **_momentum(ctx)}
        if norm.scale or norm.center:
            weights["weight"] = gamma if norm.scale else _vector(ctx, gamma, 1.0)
            weights["bias"] = beta if norm.center else _vector(ctx, beta, 0.0)
        else:
            options["affine"] = False
        weights["num_batches_tracked"] = ctx.const(0, "int64")
        name = f"nn.BatchNorm{max(rank - 2, 1)}d"
        return ctx.layer(name, (x,), weights, num_features=count, **options)

    return on_axis(ctx, data, norm.axis, 1, write), moving_mean, moving_var


def _epsilon(norm: ChannelNorm | GroupNorm) -> dict[str, float]:
    return {} if norm.epsilon == 1e-5 else {"eps": norm.epsilon}


def _momentum(ctx: Export) -> dict[str, object]:
    """Return the share of a batch in the statistics, where others have what it leaves of them."""
    kept = ctx.in_training().get("momentum", 0.9)
    share = float(1 - Decimal(repr(kept)))
    return {} if share == 0.1 else {"momentum": share}


@OPS.exports("nn.dropout")
def export_dropout(ctx: Export, data: Value, *, rate: float) -> tuple[Value, Value]:
    """Along some axes all is dropped or nothing: the mask has the length 1 there."""
    ones = ctx.call("torch.ones_like", data)
    axes = {axis % ctx.type(data).rank for axis in ctx.in_training().get("axes", ())}
    if not axes:
        return ctx.layer("nn.Dropout", (data,), {}, p=rate), ones
    lengths = [1 if axis in axes else ctx.size(data, axis) for axis in range(ctx.type(data).rank)]
    mask = ctx.layer("nn.Dropout", (ctx.method(data, "new_ones", lengths),), {}, p=rate)
    return ctx.infix("*", data, mask), ones


@OPS.exports("nn.group_norm")
def export_group_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, *, norm: GroupNorm
) -> Value:
    (count,) = ctx.type(gamma).shape

    def write(x: Value) -> Value:
        if norm.scale and norm.center and ctx.is_weight(gamma, beta) and isinstance(count, int):
            weights = {"weight": gamma, "bias": beta}
            return ctx.layer(
                "nn.GroupNorm", (x,), weights, num_groups=norm.num_groups, num_channels=count,
                **_epsilon(norm),
            )  # fmt: skip
        return ctx.call(
            "F.group_norm", x, norm.num_groups, *norm.affine(gamma, beta), norm.epsilon
        )  # fmt: skip

    return on_axis(ctx, data, norm.axis, 1, write)


@OPS.exports("nn.instance_norm")
def export_instance_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, *, norm: ChannelNorm
) -> Value:
    """The layer and its function refuse a single element; what they call does not."""
    (count,) = ctx.type(gamma).shape

    def write(x: Value) -> Value:
        rank = ctx.type(x).rank
        spatial = ctx.type(x).shape[2:]
        several = any(isinstance(length, int) and length > 1 for length in spatial)
        affine = norm.scale and norm.center and several and isinstance(count, int)
        if affine and 3 <= rank <= 5 and ctx.is_weight(gamma, beta):
            weights = {"weight": gamma, "bias": beta}
            return ctx.layer(
                f"nn.InstanceNorm{rank - 2}d", (x,), weights, num_features=count, affine=True,
                **_epsilon(norm),
            )  # fmt: skip
        given = norm.affine(gamma, beta)
        if several:
            return ctx.call("F.instance_norm", x, weight=given[0], bias=given[1], eps=norm.epsilon)
        return ctx.call(
            "torch.instance_norm", x, *given, None, None, True, 0.0, norm.epsilon, False
        )

    return on_axis(ctx, data, norm.axis, 1, write)

"""Normalisations by statistics of the data, and gradients of these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Call, Dim, Expr, TupleGetItem, call, limits, tensor_type
from serde.relay.ir.shapes import is_float, itemsize
from serde.relay.op.norm.layer import StashedNorm
from serde.relay.op.norm.plain import ChannelNorm
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.ops.written import cast, dims_of, on_axis

__all__ = ["channel_vector", "measure", "wide_dtype"]


def wide_dtype(dtype: str) -> str:
    """Return the dtype in which sums of floats are taken."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def channel_vector(ctx: Import, x: Expr, value: float, dtype: str) -> Expr:
    """Return one value for each channel."""
    (channels,) = ctx.static_lengths(x, [1])
    return ctx.fold(relay.full(ctx.scalar(value, dtype), (channels,), dtype))


def measure(ctx: Import, x: Expr, axes: Sequence[int]) -> tuple[Expr, Expr]:
    """Return mean and biased variance over axes, which they do not keep."""
    wide = ctx.cast(x, wide_dtype(ctx.dtype(x)))
    mean = relay.mean(wide, axis=list(axes), keepdims=True)
    variance = relay.variance(wide, axis=list(axes))
    return relay.squeeze(mean, axis=list(axes)), variance


def _ones(ctx: Import, x: Expr, count: int) -> Expr:
    """Return ones for the last axes of data."""
    rank = ctx.type(x).rank
    lengths = ctx.static_lengths(x, range(rank - count, rank))
    return ctx.fold(relay.ones(lengths, ctx.dtype(x)))


def _layer_norm(
    ctx: Import, x: Expr, weight: Expr | None, bias: Expr | None, count: int, eps: float
) -> tuple[Expr, ...]:
    """Return the data, and mean and inverse deviation, computed in float32 at least."""
    dtype = ctx.dtype(x)
    stash = wide_dtype(dtype)
    found = call(
        "serde.layer_norm",
        x,
        _ones(ctx, x, count) if weight is None else ctx.cast(weight, dtype),
        None if bias is None else ctx.cast(bias, dtype),
        axis=-count,
        epsilon=eps,
        stash_dtype=np.dtype(stash),
    )
    kept = dtype if weight is None else ctx.dtype(weight)
    mean, inverse = (ctx.cast(ctx.fold(TupleGetItem(found, each)), kept) for each in (1, 2))
    return TupleGetItem(found, 0), mean, inverse


@OPS.imports("aten::layer_norm", ignored=("cudnn_enable",))
def import_layer_norm(
    ctx: Import,
    input: Expr,
    weight: Expr | None = None,
    bias: Expr | None = None,
    *,
    normalized_shape: tuple[SymInt, ...],
    eps: float = 1e-5,
) -> Expr:
    return _layer_norm(ctx, input, weight, bias, len(normalized_shape), eps)[0]


@OPS.imports("aten::native_layer_norm")
def import_native_layer_norm(
    ctx: Import,
    input: Expr,
    weight: Expr | None = None,
    bias: Expr | None = None,
    *,
    normalized_shape: tuple[SymInt, ...],
    eps: float,
) -> tuple[Expr, ...]:
    return _layer_norm(ctx, input, weight, bias, len(normalized_shape), eps)


@OPS.imports("aten::rms_norm")
def import_rms_norm(
    ctx: Import,
    input: Expr,
    weight: Expr | None = None,
    *,
    normalized_shape: tuple[SymInt, ...],
    eps: float | None = None,
) -> Expr:
    count, dtype = len(normalized_shape), ctx.dtype(input)
    if not is_float(dtype):
        raise Unsupported(f"a norm of {dtype}")
    epsilon = float(limits(wide_dtype(dtype)).eps) if eps is None else eps
    gamma = _ones(ctx, input, count) if weight is None else ctx.cast(weight, dtype)
    return call("serde.rms_norm", input, gamma, axis=-count, epsilon=epsilon)


def _write_layer_norm(
    ctx: Export,
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
    ctx: Export, data: Value, gamma: Value, beta: Value, *, norm: ChannelNorm
) -> Value:
    """PyTorch normalises the last axes."""

    def write(x: Value) -> Value:
        lengths = (ctx.type(x).shape[-1],)
        return _write_layer_norm(ctx, x, *norm.affine(gamma, beta), lengths, norm.epsilon)

    return on_axis(ctx, data, norm.axis, -1, write)


def _has_wide_statistics(call: Call) -> bool:
    """Whether statistics are computed in what PyTorch has for it: float32 or wider."""
    dtype = tensor_type(call.args[0]).dtype
    stash = np.dtype(call.attrs["stash_dtype"]).name
    return itemsize(stash) >= max(itemsize(dtype), 4) and stash in ("float32", "float64")


@OPS.exports("serde.layer_norm", when=_has_wide_statistics)
def export_serde_layer_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value | None, *, norm: StashedNorm
) -> tuple[Value, Value, Value]:
    """Mean and inverse deviation are computed by themselves; most models use neither."""
    type_ = ctx.type(data)
    axes = tuple(range(norm.axis % type_.rank, type_.rank))
    result = _write_layer_norm(ctx, data, gamma, beta, type_.shape[axes[0] :], norm.epsilon)
    wide = cast(ctx, data, norm.stash_dtype.name)
    mean = ctx.method(wide, "mean", dims_of(axes), keepdim=True)
    spread = ctx.method(wide, "var", dims_of(axes), unbiased=False, keepdim=True)
    return result, mean, ctx.call("torch.rsqrt", ctx.infix("+", spread, norm.epsilon))


@OPS.exports("serde.rms_norm")
def export_rms_norm(ctx: Export, data: Value, gamma: Value, *, axis: int, epsilon: float) -> Value:
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


@OPS.imports("aten::native_layer_norm_backward")
def import_layer_norm_backward(
    ctx: Import, grad_out: Expr, input: Expr, mean: Expr, rstd: Expr, weight: Expr | None = None,
    bias: Expr | None = None,
    *, normalized_shape: tuple[SymInt, ...], output_mask: tuple[bool, ...],
) -> tuple[Expr, ...]:  # fmt: skip
    """The gradients of data, weight and bias, of which none is asked for where a mask says so."""
    rank = ctx.type(input).rank
    start = rank - len(normalized_shape)
    inner, outer = list(range(start, rank)), list(range(start))
    level = relay.multiply(relay.subtract(input, mean), rstd)
    weighted = grad_out if weight is None else relay.multiply(grad_out, weight)
    of_mean = relay.mean(weighted, axis=inner, keepdims=True)
    of_level = relay.mean(relay.multiply(weighted, level), axis=inner, keepdims=True)
    rest = relay.add(of_mean, relay.multiply(level, of_level))
    found = [
        relay.multiply(rstd, relay.subtract(weighted, rest)),
        _sum(relay.multiply(grad_out, level), outer),
        _sum(grad_out, outer),
    ]
    return tuple(
        each if asked else ctx.unread() for each, asked in zip(found, output_mask, strict=True)
    )


def _sum(x: Expr, axes: list[int]) -> Expr:
    return relay.sum(x, axis=axes) if axes else x


@OPS.imports("aten::native_group_norm_backward", ignored=("N", "HxW"))
def import_group_norm_backward(
    ctx: Import,
    grad_out: Expr,
    input: Expr,
    mean: Expr,
    rstd: Expr,
    weight: Expr | None = None,
    *,
    C: SymInt,  # noqa: N803
    group: int,
    output_mask: tuple[bool, ...],
) -> tuple[Expr, ...]:
    """Groups of channels become an axis, over which and all behind it the statistics are."""
    if group < 1:
        raise Unsupported(f"{group} groups")
    each = ctx.fixed(C) // group
    data, grad = (relay.reshape(x, (0, group, each, -1)) for x in (input, grad_out))
    centre, inverse = (relay.reshape(x, (-1, group, 1, 1)) for x in (mean, rstd))
    level = relay.multiply(relay.subtract(data, centre), inverse)
    weighted = grad
    if weight is not None:
        weighted = relay.multiply(grad, relay.reshape(weight, (1, group, each, 1)))
    of_mean = relay.mean(weighted, axis=[2, 3], keepdims=True)
    of_level = relay.mean(relay.multiply(weighted, level), axis=[2, 3], keepdims=True)
    rest = relay.add(of_mean, relay.multiply(level, of_level))
    whole = relay.multiply(inverse, relay.subtract(weighted, rest))
    found = [
        relay.reshape_like(whole, input),
        relay.reshape(relay.sum(relay.multiply(grad, level), axis=[0, 3]), (-1,)),
        relay.reshape(relay.sum(grad, axis=[0, 3]), (-1,)),
    ]
    return tuple(
        one if asked else ctx.unread() for one, asked in zip(found, output_mask, strict=True)
    )

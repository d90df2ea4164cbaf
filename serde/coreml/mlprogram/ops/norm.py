"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import dtype_name, numpy_dtype
from serde.coreml.mlprogram.ops.elementwise import like
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, TupleGetItem, call, normalize_axes, normalize_axis, tensor_type
from serde.relay.ir.precision import as_dtype, limits, wide_dtype
from serde.relay.op.norm.bodies import batch_norm_body, standardize
from serde.relay.op.norm.layer import StashedNorm
from serde.relay.op.norm.plain import ChannelNorm
from serde.walk.expansion.tensors import along
from serde.walk.takes import Takes, at, ranks


def _ones(ctx: Import, like_: Expr, shape: Sequence[int]) -> Expr:
    return relay.Constant(allocation.ones(shape, numpy_dtype(ctx.type(like_).dtype)))


def _zeros(ctx: Import, like_: Expr, shape: Sequence[int]) -> Expr:
    return relay.Constant(allocation.zeros(shape, numpy_dtype(ctx.type(like_).dtype)))


@OPS.imports("batch_norm", since=(1, 17))
def import_batch_norm(
    ctx: Import, x: Expr, mean: Expr, variance: Expr, gamma: Expr | None = None,
    beta: Expr | None = None,
    *, epsilon: float = 1e-5,
) -> Expr:  # fmt: skip
    shape = ctx.static_shape(mean)
    gamma = _ones(ctx, mean, shape) if gamma is None else gamma
    beta = _zeros(ctx, mean, shape) if beta is None else beta
    scale, offset, centre, spread = (
        as_dtype(each, ctx.type(x).dtype) for each in (gamma, beta, mean, variance)
    )
    return relay.nn.batch_norm(x, scale, offset, centre, spread, epsilon=epsilon)[0]


def _epsilon(ctx: Export, epsilon: float, like_: Value) -> Value:
    """Return an epsilon in the dtype of a value; the least number there is for one too small.

    A transformer's 1e-12 is nothing in float16, and what is constant would be divided by it.
    """
    dtype = numpy_dtype(ctx.type(like_).dtype)
    least = limits(dtype).smallest_subnormal
    return ctx.const(max(dtype.type(epsilon), least) if epsilon > 0 else epsilon, dtype.name)


@OPS.exports("nn.batch_norm", takes=Takes(data=ranks(3, 5), axis=at(1)))
def export_batch_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, moving_mean: Value, moving_var: Value,
    *, norm: ChannelNorm,
) -> list[Value]:  # fmt: skip
    """Statistics that are computed are spelled out: MIL wants constants."""
    factors = norm.affine(gamma, beta)
    used = [moving_mean, moving_var, *(each for each in factors if each is not None)]
    dtypes = {ctx.type(each).dtype for each in used} - {ctx.type(data).dtype}
    if not all(each.is_constant for each in used) or (dtypes and ctx.version < 17):
        result = ctx.spell(
            lambda *given: batch_norm_body(*given, **vars(norm)).fields[0],
            data, gamma, beta, moving_mean, moving_var,
        )  # fmt: skip
        return [result, moving_mean, moving_var]
    result = ctx.emit(
        "batch_norm", ctx.result_types()[0], x=data, mean=moving_mean, variance=moving_var,
        gamma=factors[0], beta=factors[1], epsilon=_epsilon(ctx, norm.epsilon, moving_mean),
    )  # fmt: skip
    return [result, moving_mean, moving_var]


@OPS.imports("instance_norm", since=(1, 17))
def import_instance_norm(
    ctx: Import,
    x: Expr,
    gamma: Expr | None = None,
    beta: Expr | None = None,
    *,
    epsilon: float = 1e-5,
) -> Expr:
    dtype, shape = ctx.type(x).dtype, ctx.static_lengths(x, [1])
    scale = _ones(ctx, x, shape) if gamma is None else as_dtype(gamma, dtype)
    shift = _zeros(ctx, x, shape) if beta is None else as_dtype(beta, dtype)
    return relay.nn.instance_norm(x, scale, shift, epsilon=epsilon)


@OPS.exports("nn.instance_norm", takes=Takes(data=ranks(3, 4), axis=at(1)))
def export_instance_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, *, norm: ChannelNorm
) -> Value:
    """Factors that are computed come after the norm: MIL wants constants."""
    inside = _takes_factors(ctx, data, [gamma, beta])
    result = ctx.emit(
        "instance_norm",
        x=data,
        gamma=gamma if norm.scale and inside else None,
        beta=beta if norm.center and inside else None,
        epsilon=_epsilon(ctx, norm.epsilon, gamma if inside else data),
    )
    if inside or not (norm.scale or norm.center):
        return result
    return ctx.spell(
        lambda x, g, b: _scale_and_shift(x, *norm.affine(g, b), norm.axis), result, gamma, beta
    )


def _takes_factors(ctx: Export, data: Value, vectors: Sequence[Value]) -> bool:
    """Whether MIL takes the factors of a norm as they are: constants of the dtype of the data."""
    dtypes = {ctx.type(each).dtype for each in vectors}
    mixed = dtypes - {ctx.type(data).dtype}
    if not all(each.is_constant for each in vectors) or len(dtypes) > 1:
        return False
    return not mixed or ctx.version >= 17


def _scale_and_shift(x: Expr, gamma: Expr | None, beta: Expr | None, axis: int) -> Expr:
    """Return a tensor times a vector plus another, along one axis."""
    type_ = tensor_type(x)
    if gamma is not None:
        x = relay.multiply(x, along(as_dtype(gamma, type_.dtype), type_.rank, axis))
    if beta is not None:
        x = relay.add(x, along(as_dtype(beta, type_.dtype), type_.rank, axis))
    return x


@OPS.imports("layer_norm", since=(1, 17))
def import_layer_norm(
    ctx: Import,
    x: Expr,
    gamma: Expr | None = None,
    beta: Expr | None = None,
    *,
    axes: tuple[int, ...] | None = None,
    epsilon: float = 1e-5,
) -> Expr:
    """Relay has one axis, or the last ones; of others the norm is spelled out."""
    type_ = ctx.type(x)
    chosen = sorted(normalize_axes(range(type_.rank) if axes is None else axes, type_.rank))
    if not chosen:
        raise Unsupported("a norm over no axes")
    lengths = [type_.shape[axis] for axis in chosen]
    last = chosen == list(range(type_.rank - len(chosen), type_.rank))
    fixed = [length for length in lengths if isinstance(length, int)]
    if len(fixed) == len(lengths) and (last or len(chosen) == 1):
        scale = _ones(ctx, x, fixed) if gamma is None else as_dtype(gamma, type_.dtype)
        if len(chosen) == 1:
            shift = _zeros(ctx, x, fixed) if beta is None else as_dtype(beta, type_.dtype)
            return relay.nn.layer_norm(x, scale, shift, axis=chosen[0], epsilon=epsilon)
        vectors = [scale] if beta is None else [scale, as_dtype(beta, type_.dtype)]
        found = call("serde.layer_norm", x, *vectors, axis=chosen[0], epsilon=epsilon)
        return TupleGetItem(found, 0)
    wide = as_dtype(x, wide_dtype(type_.dtype))
    result = as_dtype(standardize(wide, chosen, epsilon), type_.dtype)
    for factor, build in ((gamma, relay.multiply), (beta, relay.add)):
        if factor is not None:
            result = build(
                result, _unsqueeze_to_rank(as_dtype(factor, type_.dtype), type_.rank, chosen)
            )
    return result


def _unsqueeze_to_rank(x: Expr, rank: int, axes: Sequence[int]) -> Expr:
    """Return a tensor with axes of length 1 wherever it has none of `axes`."""
    for axis in range(rank):
        if axis not in axes:
            x = relay.expand_dims(x, axis)
    return x


def _layer_norm(
    ctx: Export,
    data: Value,
    gamma: Value | None,
    beta: Value | None,
    axes: list[int],
    epsilon: float,
) -> Value:
    """Write a norm over axes; factors that are computed come after it, as MIL wants constants."""
    type_ = ctx.type(data)
    vectors = [each for each in (gamma, beta) if each is not None]
    inside = _takes_factors(ctx, data, vectors) and gamma is not None
    result = ctx.emit(
        "layer_norm",
        type_,
        x=data,
        axes=axes,
        gamma=gamma if inside else None,
        beta=beta if inside else None,
        epsilon=_epsilon(ctx, epsilon, vectors[0] if inside else data),
    )
    if inside:
        return result
    for vector, build in ((gamma, relay.multiply), (beta, relay.add)):
        if vector is None:
            continue

        def expand(x: Expr, v: Expr, build: AnyValue = build) -> Expr:
            return build(x, _unsqueeze_to_rank(as_dtype(v, type_.dtype), type_.rank, axes))

        result = ctx.spell(expand, result, vector)
    return result


@OPS.exports("nn.layer_norm")
def export_layer_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value, *, norm: ChannelNorm
) -> Value:
    axes = [normalize_axis(norm.axis, ctx.type(data).rank)]
    return _layer_norm(ctx, data, *norm.affine(gamma, beta), axes, norm.epsilon)


@OPS.exports("serde.layer_norm")
def export_serde_layer_norm(
    ctx: Export, data: Value, gamma: Value, beta: Value | None = None, *, norm: StashedNorm
) -> list[Value]:
    """Mean and deviation are written beside the norm; what nothing reads is dropped again."""
    type_ = ctx.type(data)
    axes = list(range(normalize_axis(norm.axis, type_.rank), type_.rank))
    stash = dtype_name(norm.stash_dtype)

    def mean(x: Expr) -> Expr:
        return relay.mean(as_dtype(x, stash), axis=tuple(axes), keepdims=True)

    def inverse(x: Expr) -> Expr:
        centred = relay.subtract(as_dtype(x, stash), mean(x))
        power = relay.mean(relay.multiply(centred, centred), axis=tuple(axes), keepdims=True)
        return relay.rsqrt(relay.add(power, relay.const(norm.epsilon, stash)))

    result = _layer_norm(ctx, data, gamma, beta, axes, norm.epsilon)
    return [result, ctx.spell(mean, data), ctx.spell(inverse, data)]


@OPS.imports("l2_norm", since=(1, 17))
def import_l2_norm(ctx: Import, x: Expr, *, epsilon: float = 1e-6) -> Expr:
    """Over the last three axes; what Relay takes the greater of, MIL adds."""
    total = relay.sum(relay.multiply(x, x), axis=(-3, -2, -1), keepdims=True)
    return relay.divide(x, relay.sqrt(relay.add(total, like(ctx, x, epsilon))))


@OPS.imports("local_response_norm", since=(1, 17))
def import_local_response_norm(
    ctx: Import, x: Expr, *, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Expr:
    if size % 2 == 0:
        raise Unsupported(f"{size} neighbours: MIL does not say which side has one more")
    return relay.nn.lrn(x, size=size, axis=1, bias=k, alpha=alpha, beta=beta)


@OPS.exports("nn.lrn", takes=Takes(data=ranks(3, 4), axis=at(1)))
def export_lrn(
    ctx: Export, data: Value, *, size: int, axis: int, bias: float, alpha: float, beta: float
) -> Value:
    return ctx.emit("local_response_norm", x=data, size=size, alpha=alpha, beta=beta, k=bias)

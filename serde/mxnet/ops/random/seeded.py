"""Numbers drawn at random; MXNet's own generator and its seed decide which.

Of Relay's own ``random`` operators MXNet has none: their key is of uint64.
"""

from __future__ import annotations

from dataclasses import replace

import serde.relay as relay
from serde.mxnet.ops.table import OPS, Export, Value
from serde.relay.ir import Expr, TensorType
from serde.relay.op.random.seeded import RandomNormal, RandomUniform


def _emit_draw(
    ctx: Export, op: str, like: Value | None, type_: TensorType, **spread: float
) -> Value:
    """Draw numbers of a type; lengths that are symbols are those of `like`."""
    shape = type_.concrete_shape
    if like is not None and shape is None:
        result = ctx.emit(f"{op}_like", ctx.cast(like, type_.dtype), **spread)
    elif shape:
        result = ctx.emit(op, shape=shape, dtype=type_.dtype, **spread)
    else:
        one = replace(
            ctx.emit(op, shape=(1,), dtype=type_.dtype, **spread),
            type=TensorType((1,), type_.dtype),
        )
        return ctx.reshape(one, ctx.static_shape(replace(one, type=type_)))
    return replace(result, type=type_)


@OPS.exports("serde.random_uniform")
def export_random_uniform(ctx: Export, like: Value | None, *, random: RandomUniform) -> Value:
    return _emit_draw(
        ctx, "_random_uniform", like, ctx.result_type(), low=random.low, high=random.high
    )


@OPS.exports("serde.random_normal")
def export_random_normal(ctx: Export, like: Value | None, *, random: RandomNormal) -> Value:
    return _emit_draw(
        ctx, "_random_normal", like, ctx.result_type(), loc=random.mean, scale=random.scale
    )


@OPS.exports("serde.bernoulli", ignored=("dtype", "seed"))
def export_bernoulli(ctx: Export, probs: Value) -> Value:
    type_ = TensorType(ctx.type(probs).shape, "float32")
    unit = _emit_draw(ctx, "_random_uniform", probs, type_, low=0.0, high=1.0)
    result = ctx.result_type().dtype

    def build(drawn: Expr, odds: Expr) -> Expr:
        return relay.cast(relay.less(drawn, relay.cast(odds, "float32")), result)

    return ctx.spell(build, unit, probs)


@OPS.exports("serde.multinomial", ignored=("dtype", "seed"))
def export_multinomial(ctx: Export, logits: Value, *, sample_size: int) -> Value:
    odds = ctx.spell(lambda x: relay.nn.softmax(relay.cast(x, "float32"), axis=-1), logits)
    drawn = ctx.emit("_sample_multinomial", odds, shape=(sample_size,), dtype="int32")
    return ctx.cast(ctx.typed(drawn, replace_dtype(ctx.result_type())), ctx.result_type().dtype)


def _emit_draw_each(ctx: Export, name: str, parameter: str, rate: Value, **further: float) -> Value:
    """Draw one number for each element of a rate that is spread over the result."""
    result = ctx.result_type()
    number = ctx.scalar(rate)
    if number is not None and result.concrete_shape is not None:
        return _emit_draw(ctx, f"_random_{name}", None, result, **{parameter: number}, **further)
    shape = result.shape or (1,)
    spread = rate
    if ctx.type(rate).shape != shape:
        spread = ctx.spell(lambda x: relay.broadcast_to(x, shape), rate)
    others = [ctx.spell(relay.ones_like, spread) for _ in further]
    drawn = ctx.emit(f"_sample_{name}", spread, *others, dtype=result.dtype)
    return ctx.reshape(ctx.typed(drawn, TensorType(shape, result.dtype)), result.shape)


@OPS.exports("serde.random_gamma", ignored=("shape", "seed"))
def export_random_gamma(ctx: Export, alpha: Value) -> Value:
    return _emit_draw_each(ctx, "gamma", "alpha", alpha, beta=1.0)


@OPS.exports("serde.random_poisson", ignored=("shape", "seed"))
def export_random_poisson(ctx: Export, lam: Value) -> Value:
    return _emit_draw_each(ctx, "poisson", "lam", lam)


def replace_dtype(type_: TensorType) -> TensorType:
    """Return a type in int32, in which MXNet counts classes."""
    return TensorType(type_.shape, "int32")

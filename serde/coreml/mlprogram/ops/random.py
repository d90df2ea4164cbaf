"""Random numbers, of which MIL tells the range, and the values are the runtime's."""

from __future__ import annotations

from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.core.weights import dtype_name
from serde.coreml.mlprogram.operators import HALVES
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType, as_dtype, call, tensor_type
from serde.relay.op.random.seeded import RandomNormal, RandomUniform
from serde.walk.takes import Takes

_FLOATS = ("float16", "float32")


def _to_relay_seed(seed: int) -> float | None:
    """Return a seed as Relay has it; -1 is none."""
    return None if seed == -1 else float(seed)


def _draw(
    ctx: Import, name: str, shape: Expr, bounds: dict[str, float], dtype: str, seed: int
) -> Expr:
    """Return numbers of a shape, which may be computed."""
    attrs: dict[str, AnyValue] = {**bounds, "dtype": np.dtype(dtype), "seed": _to_relay_seed(seed)}
    if ctx.is_constant(shape):
        return call(name, None, shape=ctx.ints(shape), **attrs)
    like = relay.zeros(shape, dtype)
    return call(name, like, **attrs)


def _dtype(ctx: Import, *bounds: Expr | None) -> str:
    """Return the dtype of what bounds the numbers, which is that of the numbers too."""
    known = [ctx.type(each).dtype for each in bounds if each is not None]
    return known[0] if known else "float32"


def _number(ctx: Import, bound: Expr | None, default: float) -> float:
    return default if bound is None else float(ctx.constant(bound).item())


@OPS.imports("random_uniform")
def import_random_uniform(
    ctx: Import, shape: Expr, low: Expr | None = None, high: Expr | None = None, *, seed: int = -1
) -> Expr:
    bounds = {"low": _number(ctx, low, 0.0), "high": _number(ctx, high, 1.0)}
    return _draw(ctx, "serde.random_uniform", shape, bounds, _dtype(ctx, low, high), seed)


@OPS.imports("random_normal")
def import_random_normal(
    ctx: Import,
    shape: Expr,
    mean: Expr | None = None,
    stddev: Expr | None = None,
    *,
    seed: int = -1,
) -> Expr:
    bounds = {"mean": _number(ctx, mean, 0.0), "scale": _number(ctx, stddev, 1.0)}
    return _draw(ctx, "serde.random_normal", shape, bounds, _dtype(ctx, mean, stddev), seed)


@OPS.imports("random_bernoulli")
def import_random_bernoulli(
    ctx: Import, shape: Expr, prob: Expr | None = None, *, seed: int = -1
) -> Expr:
    """One chance for all places."""
    dtype = _dtype(ctx, prob)
    chance = relay.const(_number(ctx, prob, 0.5), dtype)
    if ctx.is_constant(shape):
        probs = relay.full(chance, ctx.ints(shape), dtype)
    else:
        probs = relay.full(chance, shape, dtype)
    return relay.serde.bernoulli(probs, seed=_to_relay_seed(seed))


@OPS.imports("random_categorical")
def import_random_categorical(
    ctx: Import,
    x: Expr,
    *,
    mode: Literal["logits", "probs"] = "logits",
    size: int = 1,
    seed: int = -1,
) -> Expr:
    """Classes come in the dtype of the logits; Relay has rows of them."""
    type_ = ctx.type(x)
    logits = relay.log(x) if mode == "probs" else x
    rows = logits
    if type_.rank != 2:
        rows = relay.reshape(logits, [-1, ctx.static_lengths(x, [-1])[0]])
    found = relay.serde.multinomial(
        rows, sample_size=size, dtype="int32", seed=_to_relay_seed(seed)
    )
    found = relay.cast(found, type_.dtype)
    if type_.rank == 2:
        return found
    return relay.reshape(found, [*ctx.static_lengths(x, range(type_.rank - 1)), size])


def _export_drawn(
    ctx: Export, op: str, like: Value | None, bounds: dict[str, float], seed: float | None
) -> Value:
    type_ = ctx.result_type()
    if type_.concrete_shape is not None:
        shape = ctx.const(np.array(type_.concrete_shape, np.int32))
    elif like is not None:
        shape = ctx.emit("shape", TensorType((type_.rank,), "int32"), x=like)
    else:
        raise Unsupported(f"random numbers of the open shape {type_!r}")
    given = {name: ctx.const(value, type_.dtype) for name, value in bounds.items()}
    return ctx.emit(op, shape=shape, seed=_to_mil_seed(seed), **given)


def _to_mil_seed(seed: float | None) -> int:
    """Return a seed as MIL has it, an integer that is not negative; -1 where there is none."""
    if seed is None:
        return -1
    if seed == int(seed) and 0 <= seed < 2**31:
        return int(seed)
    return int(np.array(seed, np.float32).view(np.uint32)) & 0x7FFFFFFF


@OPS.exports("serde.random_uniform", takes=Takes(result=HALVES))
def export_random_uniform(
    ctx: Export, like: Value | None = None, *, random: RandomUniform
) -> Value:
    return _export_drawn(
        ctx, "random_uniform", like, {"low": random.low, "high": random.high}, random.seed
    )


@OPS.exports("serde.random_normal", takes=Takes(result=HALVES))
def export_random_normal(ctx: Export, like: Value | None = None, *, random: RandomNormal) -> Value:
    return _export_drawn(
        ctx, "random_normal", like, {"mean": random.mean, "stddev": random.scale}, random.seed
    )


@OPS.expands("serde.bernoulli")
def expand_bernoulli(probs: Expr, *, dtype: AnyValue, seed: float | None) -> Expr:
    """MIL has one chance for all places: evenly spread numbers are compared with theirs."""
    drawn = call("serde.random_uniform", probs, dtype=np.dtype("float32"), seed=seed)
    below = relay.less(drawn, as_dtype(probs, "float32"))
    return relay.cast(below, tensor_type(probs).dtype if dtype is None else dtype_name(dtype))


@OPS.exports("serde.multinomial", takes=Takes(logits=HALVES))
def export_multinomial(
    ctx: Export, logits: Value, *, sample_size: int, dtype: AnyValue, seed: float | None
) -> Value:
    """MIL gives classes in the dtype of the logits."""
    type_ = ctx.type(logits)
    found = ctx.emit(
        "random_categorical",
        TensorType((type_.shape[0], sample_size), type_.dtype),
        x=logits,
        mode="logits",
        size=sample_size,
        seed=_to_mil_seed(seed),
    )
    return ctx.cast(found, dtype_name(dtype))

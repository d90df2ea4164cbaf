"""Numbers of a distribution: of a shape, like a tensor, or for each of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.random import distributions
from serde.mxnet.ops.random.distributions import Distribution, Room
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.weights import dtype_name

__all__ = ["DType", "Size", "kind_of", "lengths", "room_like"]

DType = np.dtype[AnyValue]
Size = tuple[int, ...] | int | None

MAX_RANGE = 1 << 53
"""Integers of which a uniform float64 can name each."""


def kind_of(dtype: DType | None) -> str:
    """Return the name of a dtype, of which float32 is the default."""
    return "float32" if dtype is None else dtype_name(dtype)


def lengths(size: tuple[int, ...] | int) -> tuple[int, ...]:
    """Return a shape, of which MXNet writes one of rank 1 as a number, too."""
    return (size,) if isinstance(size, int) else size


def room_like(ctx: ImportContext, tensor: Expr, dtype: str) -> Room:
    """Return room for as many numbers as a tensor has."""
    shape = ctx.type(tensor).concrete_shape
    return Room(dtype, like=tensor) if shape is None else Room(dtype, shape)


def _room(ctx: ImportContext, data: Expr | None, shape: Size, dtype: DType | None) -> Room:
    if data is not None:
        return room_like(ctx, data, ctx.type(data).dtype)
    if shape is None:
        raise Unsupported("its shape is left to what uses it", hint="give it a shape")
    return Room(kind_of(dtype), lengths(shape))


@OPS.imports("_random_uniform", "_random_uniform_like", ignored=("ctx",))
def import_random_uniform(
    ctx: ImportContext,
    data: Expr | None = None,
    *,
    low: float = 0.0,
    high: float = 1.0,
    shape: Size = None,
    dtype: DType | None = None,
) -> Expr:
    return distributions.uniform(_room(ctx, data, shape, dtype), low, high)


@OPS.imports("_random_normal", "_random_normal_like", ignored=("ctx",))
def import_random_normal(
    ctx: ImportContext,
    data: Expr | None = None,
    *,
    loc: float = 0.0,
    scale: float = 1.0,
    shape: Size = None,
    dtype: DType | None = None,
) -> Expr:
    return distributions.normal(_room(ctx, data, shape, dtype), loc, scale)


@OPS.imports("_random_gamma", "_random_gamma_like", ignored=("ctx",))
def import_random_gamma(
    ctx: ImportContext,
    data: Expr | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    shape: Size = None,
    dtype: DType | None = None,
) -> Expr:
    """Here `beta` is a scale, in the density of the distribution it is a rate."""
    return distributions.gamma(_room(ctx, data, shape, dtype), alpha, beta)


@OPS.imports("_random_exponential", "_random_exponential_like", ignored=("ctx",))
def import_random_exponential(
    ctx: ImportContext,
    data: Expr | None = None,
    *,
    lam: float = 1.0,
    shape: Size = None,
    dtype: DType | None = None,
) -> Expr:
    return distributions.exponential(_room(ctx, data, shape, dtype), lam)


@OPS.imports("_random_poisson", "_random_poisson_like", ignored=("ctx",))
def import_random_poisson(
    ctx: ImportContext,
    data: Expr | None = None,
    *,
    lam: float = 1.0,
    shape: Size = None,
    dtype: DType | None = None,
) -> Expr:
    return distributions.poisson(_room(ctx, data, shape, dtype), lam)


@OPS.imports("_random_negative_binomial", "_random_negative_binomial_like", ignored=("ctx",))
def import_random_negative_binomial(
    ctx: ImportContext,
    data: Expr | None = None,
    *,
    k: int = 1,
    p: float = 1.0,
    shape: Size = None,
    dtype: DType | None = None,
) -> Expr:
    return distributions.negative_binomial(_room(ctx, data, shape, dtype), k, p)


@OPS.imports(
    "_random_generalized_negative_binomial",
    "_random_generalized_negative_binomial_like",
    ignored=("ctx",),
)
def import_random_generalized_negative_binomial(
    ctx: ImportContext,
    data: Expr | None = None,
    *,
    mu: float = 1.0,
    alpha: float = 1.0,
    shape: Size = None,
    dtype: DType | None = None,
) -> Expr:
    room = _room(ctx, data, shape, dtype)
    return distributions.generalized_negative_binomial(room, mu, alpha)


@OPS.imports("_random_randint", ignored=("ctx",))
def import_random_randint(
    ctx: ImportContext, *, low: int, high: int, shape: Size = None, dtype: DType | None = None
) -> Expr:
    if not 0 < high - low <= MAX_RANGE:
        raise Unsupported(f"integers from {low} to {high}: expected 1 to 2**53 of them")
    wanted = "int32" if dtype is None else dtype_name(dtype)
    unit = _room(ctx, None, shape, np.dtype(np.float64)).draw("serde.random_uniform")
    steps = relay.floor(relay.multiply(unit, relay.const(float(high - low), "float64")))
    whole = relay.add(relay.cast(steps, "int64"), relay.const(low, "int64"))
    return relay.cast(whole, wanted)


SAMPLED: dict[str, tuple[Distribution, int]] = {
    "uniform": (distributions.uniform, 2),
    "normal": (distributions.normal, 2),
    "gamma": (distributions.gamma, 2),
    "exponential": (distributions.exponential, 1),
    "poisson": (distributions.poisson, 1),
    "negative_binomial": (distributions.negative_binomial, 2),
    "generalized_negative_binomial": (distributions.generalized_negative_binomial, 2),
}
"""Distributions with tensors of parameters, and how many of these there are."""


def _sampled(
    ctx: ImportContext, draw: Distribution, params: Sequence[Expr], shape: Size, dtype: DType | None
) -> Expr:
    """Draw `shape` numbers for each element of the parameters."""
    wanted = lengths(shape or ())
    rank = len(wanted)
    if rank:
        params = [relay.expand_dims(param, axis=-1, num_newaxis=rank) for param in params]
    like = params[0]
    if rank:
        like = relay.add(like, relay.zeros(wanted, ctx.type(like).dtype))
    return draw(room_like(ctx, like, kind_of(dtype)), *params)


def _register_sampled(name: str, draw: Distribution, count: int) -> None:
    def import_one(
        ctx: ImportContext, param: Expr, *, shape: Size = (), dtype: DType | None = None
    ) -> Expr:
        return _sampled(ctx, draw, [param], shape, dtype)

    def import_two(
        ctx: ImportContext,
        first: Expr,
        second: Expr,
        *,
        shape: Size = (),
        dtype: DType | None = None,
    ) -> Expr:
        return _sampled(ctx, draw, [first, second], shape, dtype)

    OPS.imports(f"_sample_{name}")(import_one if count == 1 else import_two)


for _name, (_draw, _count) in SAMPLED.items():
    _register_sampled(_name, _draw, _count)

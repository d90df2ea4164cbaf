"""Numbers of a distribution: of a shape, like a tensor, or for each of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core import dataclass, dtype_name, replace
from serde.errors import Unsupported
from serde.mxnet.ops.random import distributions
from serde.mxnet.ops.random.distributions import Distribution, Sample
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir.expr import Expr

__all__ = ["DType", "Size", "dtype_or_float32", "lengths", "sample_like"]

DType = np.dtype[AnyValue]
Size = tuple[int, ...] | int | None

MAX_RANGE = 1 << 53
"""Integers of which a uniform float64 can name each."""


def dtype_or_float32(dtype: DType | None) -> str:
    """Return the name of a dtype, of which float32 is the default."""
    return "float32" if dtype is None else dtype_name(dtype)


def lengths(size: tuple[int, ...] | int) -> tuple[int, ...]:
    """Return a shape, of which MXNet writes one of rank 1 as a number, too."""
    return (size,) if isinstance(size, int) else size


def sample_like(ctx: Import, tensor: Expr, dtype: str) -> Sample:
    """Return what is drawn: as many numbers as a tensor has."""
    shape = ctx.type(tensor).concrete_shape
    return Sample(dtype, like=tensor) if shape is None else Sample(dtype, shape)


@dataclass(frozen=True, kw_only=True)
class Output:
    """Shape and dtype of what is drawn, where no tensor has them."""

    shape: Size = None
    dtype: DType | None = None


def _sample(ctx: Import, data: Expr | None, output: Output) -> Sample:
    if data is not None:
        return sample_like(ctx, data, ctx.type(data).dtype)
    if output.shape is None:
        raise Unsupported("its shape is left to what uses it", hint="give it a shape")
    return Sample(dtype_or_float32(output.dtype), lengths(output.shape))


@OPS.imports("_random_uniform", "_random_uniform_like", ignored=("ctx",))
def import_random_uniform(
    ctx: Import, data: Expr | None = None, *, low: float = 0.0, high: float = 1.0, output: Output
) -> Expr:
    return distributions.uniform(_sample(ctx, data, output), low, high)


@OPS.imports("_random_normal", "_random_normal_like", ignored=("ctx",))
def import_random_normal(
    ctx: Import, data: Expr | None = None, *, loc: float = 0.0, scale: float = 1.0, output: Output
) -> Expr:
    return distributions.normal(_sample(ctx, data, output), loc, scale)


@OPS.imports("_random_gamma", "_random_gamma_like", ignored=("ctx",))
def import_random_gamma(
    ctx: Import, data: Expr | None = None, *, alpha: float = 1.0, beta: float = 1.0, output: Output
) -> Expr:
    """Here `beta` is a scale, in the density of the distribution it is a rate."""
    return distributions.gamma(_sample(ctx, data, output), alpha, beta)


def _declare_rate(name: str, draw: Distribution) -> None:
    @OPS.imports(name, f"{name}_like", ignored=("ctx",))
    def import_rate(
        ctx: Import, data: Expr | None = None, *, lam: float = 1.0, output: Output
    ) -> Expr:
        return draw(_sample(ctx, data, output), lam)


_declare_rate("_random_exponential", distributions.exponential)
_declare_rate("_random_poisson", distributions.poisson)


@OPS.imports("_random_negative_binomial", "_random_negative_binomial_like", ignored=("ctx",))
def import_random_negative_binomial(
    ctx: Import, data: Expr | None = None, *, k: int = 1, p: float = 1.0, output: Output
) -> Expr:
    return distributions.negative_binomial(_sample(ctx, data, output), k, p)


@OPS.imports(
    "_random_generalized_negative_binomial",
    "_random_generalized_negative_binomial_like",
    ignored=("ctx",),
)
def import_random_generalized_negative_binomial(
    ctx: Import, data: Expr | None = None, *, mu: float = 1.0, alpha: float = 1.0, output: Output
) -> Expr:
    sample = _sample(ctx, data, output)
    return distributions.generalized_negative_binomial(sample, mu, alpha)


@OPS.imports("_random_randint", ignored=("ctx",))
def import_random_randint(ctx: Import, *, low: int, high: int, output: Output) -> Expr:
    if not 0 < high - low <= MAX_RANGE:
        raise Unsupported(f"integers from {low} to {high}: expected 1 to 2**53 of them")
    wanted = "int32" if output.dtype is None else dtype_name(output.dtype)
    in_float64 = replace(output, dtype=np.dtype(np.float64))
    unit = _sample(ctx, None, in_float64).draw("serde.random_uniform")
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


def _draw_for_each(ctx: Import, draw: Distribution, params: Sequence[Expr], output: Output) -> Expr:
    """Draw numbers of a shape for each element of the parameters."""
    wanted = lengths(output.shape or ())
    rank = len(wanted)
    if rank:
        params = [relay.expand_dims(param, axis=-1, num_newaxis=rank) for param in params]
    like = params[0]
    if rank:
        like = relay.add(like, relay.zeros(wanted, ctx.type(like).dtype))
    return draw(sample_like(ctx, like, dtype_or_float32(output.dtype)), *params)


def _declare_sample(name: str, draw: Distribution, count: int) -> None:
    def import_one(ctx: Import, param: Expr, *, output: Output) -> Expr:
        return _draw_for_each(ctx, draw, [param], output)

    def import_two(ctx: Import, first: Expr, second: Expr, *, output: Output) -> Expr:
        return _draw_for_each(ctx, draw, [first, second], output)

    OPS.imports(f"_sample_{name}")(import_one if count == 1 else import_two)


for _name, (_draw, _count) in SAMPLED.items():
    _declare_sample(_name, _draw, _count)

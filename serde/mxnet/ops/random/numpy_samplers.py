"""NumPy's samplers: each parameter is a number or a tensor, and all broadcast to the size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

import serde.relay as relay
from serde.core import dataclass, dtype_name
from serde.errors import Unsupported
from serde.mxnet.ops.random import distributions
from serde.mxnet.ops.random.distributions import Distribution, Sample
from serde.mxnet.ops.random.samplers import DType, Size, dtype_or_float32, lengths, sample_like
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir import Expr, TensorType, broadcast

FLOAT32 = np.dtype(np.float32)


def _parameters(inputs: Sequence[Expr], *numbers: float | None) -> list[float | Expr]:
    """Return the parameters: those that are no numbers are the tensors, in order."""
    if len(inputs) != sum(number is None for number in numbers):
        raise Unsupported(f"{len(inputs)} tensors for {numbers.count(None)} parameters")
    tensors = iter(inputs)
    return [next(tensors) if number is None else number for number in numbers]


def _broadcast_sample(
    ctx: Import, inputs: Sequence[Expr], size: Size, dtype: str = "float32"
) -> Sample:
    """Return what is drawn: `size` numbers, or without it what the parameters broadcast to."""
    if size is None:
        return _sample_for_each(ctx, inputs, (), dtype)
    shapes = [ctx.type(x).shape for x in inputs]
    whole = lengths(size)
    if broadcast(whole, *shapes) != whole:
        raise Unsupported(f"size {whole} for parameters that are larger")
    return Sample(dtype, whole)


def _sample_for_each(ctx: Import, inputs: Sequence[Expr], size: Size, dtype: str) -> Sample:
    """Return what is drawn: `size` numbers for each element that the parameters broadcast to."""
    front = () if size is None else lengths(size)
    shapes = [ctx.type(x).concrete_shape for x in inputs]
    fixed = [shape for shape in shapes if shape is not None]
    if len(fixed) == len(shapes):
        whole = TensorType(broadcast(*fixed)).concrete_shape
        return Sample(dtype, (*front, *(whole or ())))
    like = reduce(relay.add, [relay.cast(x, "float32") for x in inputs])
    if front:
        ones = (1,) * len(ctx.type(like).shape)
        like = relay.add(like, relay.zeros((*front, *ones), "float32"))
    return sample_like(ctx, like, dtype)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Parameters of a uniform distribution; None where a tensor holds them, as below."""

    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class LocScale:
    """Where a distribution lies, and how wide it is."""

    loc: float | None
    scale: float | None


@dataclass(frozen=True, kw_only=True)
class Typed:
    """How many numbers are drawn, and of which dtype."""

    size: Size = None
    dtype: DType | None = None


SHAPES: dict[str, Callable[[Import, Sequence[Expr], Size, str], Sample]] = {
    "": _broadcast_sample,
    "_n": _sample_for_each,
}
"""What ``size`` says, by the end of an operator's name: the whole shape, or one an element."""


def _declare_uniform(suffix: str) -> None:
    @OPS.imports(f"_npi_uniform{suffix}", ignored=("ctx",))
    def import_uniform(ctx: Import, *inputs: Expr, bounds: Bounds, typed: Typed) -> Expr:
        sample = SHAPES[suffix](ctx, inputs, typed.size, dtype_or_float32(typed.dtype))
        return distributions.uniform(sample, *_parameters(inputs, bounds.low, bounds.high))


def _declare_normal(suffix: str) -> None:
    @OPS.imports(f"_npi_normal{suffix}", ignored=("ctx",))
    def import_normal(ctx: Import, *inputs: Expr, where: LocScale, typed: Typed) -> Expr:
        sample = SHAPES[suffix](ctx, inputs, typed.size, dtype_or_float32(typed.dtype))
        return distributions.normal(sample, *_parameters(inputs, where.loc, where.scale))


for _suffix in SHAPES:
    _declare_uniform(_suffix)
    _declare_normal(_suffix)


@OPS.imports("_npi_gamma", ignored=("ctx",))
def import_gamma(
    ctx: Import, *inputs: Expr, shape: float | None, scale: float | None, typed: Typed
) -> Expr:
    sample = _broadcast_sample(ctx, inputs, typed.size, dtype_or_float32(typed.dtype))
    return distributions.gamma(sample, *_parameters(inputs, shape, scale))


def _declare_loc_scale(name: str, draw: Distribution) -> None:
    @OPS.imports(name, ignored=("ctx",))
    def import_loc_scale(ctx: Import, *inputs: Expr, where: LocScale, size: Size = None) -> Expr:
        sample = _broadcast_sample(ctx, inputs, size)
        return draw(sample, *_parameters(inputs, where.loc, where.scale))


_declare_loc_scale("_npi_gumbel", distributions.gumbel)
_declare_loc_scale("_npi_logistic", distributions.logistic)


def _declare_scale(name: str, draw: Distribution) -> None:
    @OPS.imports(name, ignored=("ctx",))
    def import_scale(
        ctx: Import, *inputs: Expr, scale: float | None = 1.0, size: Size = None
    ) -> Expr:
        return draw(_broadcast_sample(ctx, inputs, size), *_parameters(inputs, scale))


_declare_scale("_npi_exponential", distributions.scaled_exponential)
_declare_scale("_npi_rayleigh", distributions.rayleigh)


def _declare_exponent(name: str, draw: Distribution, ignored: Sequence[str] = ("ctx",)) -> None:
    @OPS.imports(name, ignored=ignored)
    def import_exponent(
        ctx: Import, *inputs: Expr, a: float | None = None, size: Size = None
    ) -> Expr:
        return draw(_broadcast_sample(ctx, inputs, size), *_parameters(inputs, a))


_declare_exponent("_npi_pareto", distributions.pareto)
_declare_exponent("_npi_powerd", distributions.power, ignored=())
_declare_exponent("_npi_weibull", distributions.weibull)


@OPS.imports("_npi_bernoulli", ignored=("ctx",))
def import_bernoulli(
    ctx: Import,
    *inputs: Expr,
    prob: float | None,
    logit: float | None,
    is_logit: bool,
    size: Size = None,
    dtype: DType = FLOAT32,
) -> Expr:
    """Of `prob` and `logit` only the one that `is_logit` names counts.

    Drawn here, as ONNX Runtime 1.31 gives one from a Bernoulli as often as zero should come up.
    """
    sample = _broadcast_sample(ctx, inputs, size)
    (given,) = _parameters(inputs, logit if is_logit else prob)
    odds = sample.value(given)
    odds = relay.sigmoid(odds) if is_logit else odds
    draws = relay.less(sample.draw("serde.random_uniform"), odds)
    return relay.cast(draws, dtype_name(dtype))

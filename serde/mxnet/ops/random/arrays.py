"""NumPy's samplers: each parameter is a number or a tensor, and all broadcast to the size."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.random import distributions
from serde.mxnet.ops.random.distributions import Room
from serde.mxnet.ops.random.draws import DType, Size, kind_of, lengths, room_like
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import broadcast
from serde.weights import dtype_name

FLOAT32 = np.dtype(np.float32)


def _given(inputs: Sequence[Expr], *numbers: float | None) -> list[float | Expr]:
    """Return the parameters: those that are no numbers are the tensors, in order."""
    if len(inputs) != sum(number is None for number in numbers):
        raise Unsupported(f"{len(inputs)} tensors for {numbers.count(None)} parameters")
    tensors = iter(inputs)
    return [next(tensors) if number is None else number for number in numbers]


def _room(ctx: ImportContext, inputs: Sequence[Expr], size: Size, dtype: str = "float32") -> Room:
    """Return room for `size` numbers, or without it for what the parameters broadcast to."""
    if size is None:
        return _room_for_each(ctx, inputs, (), dtype)
    shapes = [ctx.type(x).shape for x in inputs]
    whole = lengths(size)
    if broadcast(whole, *shapes) != whole:
        raise Unsupported(f"size {whole} for parameters that are larger")
    return Room(dtype, whole)


def _room_for_each(ctx: ImportContext, inputs: Sequence[Expr], size: Size, dtype: str) -> Room:
    """Return room for `size` numbers for each element that the parameters broadcast to."""
    front = () if size is None else lengths(size)
    shapes = [ctx.type(x).concrete_shape for x in inputs]
    fixed = [shape for shape in shapes if shape is not None]
    if len(fixed) == len(shapes):
        return Room(dtype, (*front, *np.broadcast_shapes(*fixed)))
    like = reduce(relay.add, [relay.cast(x, "float32") for x in inputs])
    if front:
        ones = (1,) * len(ctx.type(like).shape)
        like = relay.add(like, relay.zeros((*front, *ones), "float32"))
    return room_like(ctx, like, dtype)


@OPS.imports("_npi_uniform", ignored=("ctx",))
def import_uniform(
    ctx: ImportContext,
    *inputs: Expr,
    low: float | None,
    high: float | None,
    size: Size = None,
    dtype: DType | None = None,
) -> Expr:
    room = _room(ctx, inputs, size, kind_of(dtype))
    return distributions.uniform(room, *_given(inputs, low, high))


@OPS.imports("_npi_uniform_n", ignored=("ctx",))
def import_uniform_n(
    ctx: ImportContext,
    *inputs: Expr,
    low: float | None,
    high: float | None,
    size: Size = None,
    dtype: DType | None = None,
) -> Expr:
    room = _room_for_each(ctx, inputs, size, kind_of(dtype))
    return distributions.uniform(room, *_given(inputs, low, high))


@OPS.imports("_npi_normal", ignored=("ctx",))
def import_normal(
    ctx: ImportContext,
    *inputs: Expr,
    loc: float | None,
    scale: float | None,
    size: Size = None,
    dtype: DType | None = None,
) -> Expr:
    room = _room(ctx, inputs, size, kind_of(dtype))
    return distributions.normal(room, *_given(inputs, loc, scale))


@OPS.imports("_npi_normal_n", ignored=("ctx",))
def import_normal_n(
    ctx: ImportContext,
    *inputs: Expr,
    loc: float | None,
    scale: float | None,
    size: Size = None,
    dtype: DType | None = None,
) -> Expr:
    room = _room_for_each(ctx, inputs, size, kind_of(dtype))
    return distributions.normal(room, *_given(inputs, loc, scale))


@OPS.imports("_npi_gamma", ignored=("ctx",))
def import_gamma(
    ctx: ImportContext,
    *inputs: Expr,
    shape: float | None,
    scale: float | None,
    size: Size = None,
    dtype: DType | None = None,
) -> Expr:
    room = _room(ctx, inputs, size, kind_of(dtype))
    return distributions.gamma(room, *_given(inputs, shape, scale))


@OPS.imports("_npi_gumbel", ignored=("ctx",))
def import_gumbel(
    ctx: ImportContext, *inputs: Expr, loc: float | None, scale: float | None, size: Size = None
) -> Expr:
    return distributions.gumbel(_room(ctx, inputs, size), *_given(inputs, loc, scale))


@OPS.imports("_npi_logistic", ignored=("ctx",))
def import_logistic(
    ctx: ImportContext, *inputs: Expr, loc: float | None, scale: float | None, size: Size = None
) -> Expr:
    return distributions.logistic(_room(ctx, inputs, size), *_given(inputs, loc, scale))


@OPS.imports("_npi_exponential", ignored=("ctx",))
def import_exponential(
    ctx: ImportContext, *inputs: Expr, scale: float | None = 1.0, size: Size = None
) -> Expr:
    return distributions.scaled_exponential(_room(ctx, inputs, size), *_given(inputs, scale))


@OPS.imports("_npi_rayleigh", ignored=("ctx",))
def import_rayleigh(
    ctx: ImportContext, *inputs: Expr, scale: float | None = 1.0, size: Size = None
) -> Expr:
    return distributions.rayleigh(_room(ctx, inputs, size), *_given(inputs, scale))


@OPS.imports("_npi_pareto", ignored=("ctx",))
def import_pareto(
    ctx: ImportContext, *inputs: Expr, a: float | None = None, size: Size = None
) -> Expr:
    return distributions.pareto(_room(ctx, inputs, size), *_given(inputs, a))


@OPS.imports("_npi_powerd")
def import_powerd(
    ctx: ImportContext, *inputs: Expr, a: float | None = None, size: Size = None
) -> Expr:
    return distributions.power(_room(ctx, inputs, size), *_given(inputs, a))


@OPS.imports("_npi_weibull", ignored=("ctx",))
def import_weibull(
    ctx: ImportContext, *inputs: Expr, a: float | None = None, size: Size = None
) -> Expr:
    return distributions.weibull(_room(ctx, inputs, size), *_given(inputs, a))


@OPS.imports("_npi_bernoulli", ignored=("ctx",))
def import_bernoulli(
    ctx: ImportContext,
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
    room = _room(ctx, inputs, size)
    (given,) = _given(inputs, logit if is_logit else prob)
    odds = room.value(given)
    drawn = relay.less(room.draw("serde.random_uniform"), relay.sigmoid(odds) if is_logit else odds)
    return relay.cast(drawn, dtype_name(dtype))

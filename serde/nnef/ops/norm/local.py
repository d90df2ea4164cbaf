"""Normalisation by the neighbours of each element."""

from __future__ import annotations

import serde.relay as relay
from serde.nnef.export_context import EXACT, ExportContext, Value
from serde.nnef.import_context import ImportContext
from serde.nnef.ops.pool.window import PoolAttributes, import_box
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.walk.takes import Takes

__all__: list[str] = []


@OPS.imports("local_response_normalization")
def import_local_response_normalization(
    ctx: ImportContext,
    input: Expr,
    *,
    size: tuple[int, ...],
    alpha: float = 1.0,
    beta: float = 0.5,
    bias: float = 1.0,
) -> Expr:
    """Neighbours along one axis, as many on both sides, are a layer of Relay.

    It is one of images: runtimes of other formats have it for four axes only.
    """
    long = [axis for axis, length in enumerate(size) if length != 1]
    if len(size) == 4 and len(long) == 1 and size[long[0]] % 2:
        (axis,) = long
        return relay.nn.lrn(input, size=size[axis], axis=axis, bias=bias, alpha=alpha, beta=beta)
    power = _mean_of_neighbours(ctx, relay.multiply(input, input), size)
    sigma = relay.add(ctx.const(bias), relay.multiply(ctx.const(alpha), power))
    return relay.divide(input, relay.power(sigma, ctx.const(beta)))


@OPS.imports("local_mean_normalization")
def import_local_mean_normalization(
    ctx: ImportContext, input: Expr, *, size: tuple[int, ...]
) -> Expr:
    return relay.subtract(input, _mean_of_neighbours(ctx, input, size))


@OPS.imports("local_variance_normalization")
def import_local_variance_normalization(
    ctx: ImportContext,
    input: Expr,
    *,
    size: tuple[int, ...],
    bias: float = 0.0,
    epsilon: float = 0.0,
) -> Expr:
    power = _mean_of_neighbours(ctx, relay.multiply(input, input), size)
    sigma = relay.sqrt(power)
    if bias:
        sigma = relay.add(sigma, ctx.const(bias))
    return relay.divide(input, relay.maximum(sigma, ctx.const(epsilon)))


@OPS.imports("local_contrast_normalization")
def import_local_contrast_normalization(
    ctx: ImportContext,
    input: Expr,
    *,
    size: tuple[int, ...],
    bias: float = 0.0,
    epsilon: float = 0.0,
) -> Expr:
    centred = import_local_mean_normalization(ctx, input, size=size)
    return import_local_variance_normalization(ctx, centred, size=size, bias=bias, epsilon=epsilon)


def _mean_of_neighbours(ctx: ImportContext, x: Expr, size: tuple[int, ...]) -> Expr:
    """Return the mean of as many elements around each, zeros beyond the ends included."""
    return import_box(ctx, x, pool=PoolAttributes(size=size), normalize=True)


@OPS.exports("nn.lrn", takes=Takes(bias=EXACT, alpha=EXACT, beta=EXACT))
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
    type_ = ctx.type(data)
    window = [1] * type_.rank
    window[axis % type_.rank] = size
    return ctx.emit(
        "local_response_normalization", data, size=window, alpha=alpha, beta=beta, bias=bias
    )

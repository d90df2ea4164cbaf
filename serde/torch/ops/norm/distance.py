"""Distances and similarities of vectors, and weights as directions and lengths."""

from __future__ import annotations

import math

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.torch.ops.reduce.norm import vector_norm
from serde.torch.ops.shape.matrix import places_of
from serde.torch.ops.table import OPS, Export, Import, Value
from serde.torch.ops.written import dims_of, on_axis

__all__ = ["measure_pairs"]


def measure_pairs(ctx: Import, x1: Expr, x2: Expr, p: float, eps: float, *, keepdim: bool) -> Expr:
    """Return the norm of the differences of vectors on the last axis, `eps` added to each."""
    one, two = ctx.promote_to_float(x1, x2)
    difference = relay.subtract(one, two)
    moved = relay.add(difference, ctx.scalar(eps, ctx.dtype(difference)))
    return vector_norm(ctx, moved, p, (-1,), keepdim)


@OPS.imports("aten::pairwise_distance")
def import_pairwise_distance(
    ctx: Import, x1: Expr, x2: Expr, *, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Expr:
    return measure_pairs(ctx, x1, x2, p, eps, keepdim=keepdim)


@OPS.imports("aten::cosine_similarity")
def import_cosine_similarity(
    ctx: Import, x1: Expr, x2: Expr, *, dim: int = 1, eps: float = 1e-8
) -> Expr:
    """Each vector is divided by its length, which is `eps` at least."""
    given = ctx.promote_to_float(x1, x2)
    product = relay.multiply(*given)
    shape = ctx.type(product).shape
    axis = ctx.axis(product, dim)
    least = ctx.scalar(eps, ctx.dtype(product))
    for x in given:
        whole = x if ctx.type(x).shape == shape else relay.broadcast_to_like(x, product)
        length = vector_norm(ctx, whole, 2, (axis,) if shape else None, True)
        product = relay.divide(product, relay.maximum(length, least))
    return relay.sum(product, axis=[axis]) if shape else product


@OPS.imports("aten::cdist", "aten::_cdist_forward", ignored=("compute_mode",))
def import_cdist(ctx: Import, x1: Expr, x2: Expr, *, p: float = 2.0) -> Expr:
    for each in (x1, x2):
        ctx.require_rank(each, 2)
    rows = relay.expand_dims(x1, axis=ctx.type(x1).rank - 1)
    columns = relay.expand_dims(x2, axis=ctx.type(x2).rank - 2)
    return vector_norm(ctx, relay.subtract(rows, columns), p, (-1,), False)


@OPS.imports("aten::pdist", "aten::_pdist_forward")
def import_pdist(ctx: Import, self: Expr, *, p: float = 2.0) -> Expr:
    ctx.require_rank(self, 2, 2)
    (count,) = ctx.static_lengths(self, [0])
    pairs = places_of(np.triu(allocation.ones((count, count), bool), 1))
    one, two = (relay.take(self, relay.const(each, "int64"), axis=0, mode="fast") for each in pairs)
    return vector_norm(ctx, relay.subtract(one, two), p, (-1,), False)


def _lengths(ctx: Import, x: Expr, dim: int) -> Expr:
    """Return the length of each slice along an axis, or for -1 of all, as x has axes."""
    rank = ctx.type(x).rank
    axes = tuple(axis for axis in range(rank) if axis != dim)
    return vector_norm(ctx, x, 2, axes, True)


@OPS.imports("aten::_weight_norm")
def import_weight_norm(ctx: Import, v: Expr, g: Expr, *, dim: int = 0) -> Expr:
    return relay.multiply(v, relay.divide(g, _lengths(ctx, v, dim)))


@OPS.imports("aten::_weight_norm_interface")
def import_weight_norm_interface(
    ctx: Import, v: Expr, g: Expr, *, dim: int = 0
) -> tuple[Expr, Expr]:
    """The lengths beside it."""
    lengths = _lengths(ctx, v, dim)
    return relay.multiply(v, relay.divide(g, lengths)), lengths


@OPS.exports("nn.l2_normalize")
def export_l2_normalize(ctx: Export, data: Value, *, eps: float, axis: tuple[int, ...]) -> Value:
    """PyTorch's bound is that of the root of the sum; TorchScript takes one axis."""
    axes = dims_of(axis or range(ctx.type(data).rank))
    if isinstance(axes, int):
        return ctx.call("F.normalize", data, dim=axes, eps=math.sqrt(eps))
    length = ctx.call("torch.linalg.vector_norm", data, dim=axes, keepdim=True)
    return ctx.infix("/", data, ctx.call("torch.clamp", length, min=math.sqrt(eps)))


@OPS.exports("nn.lrn")
def export_lrn(
    ctx: Export, data: Value, *, size: int, axis: int, bias: float, alpha: float, beta: float
) -> Value:
    def write(x: Value) -> Value:
        return ctx.call("F.local_response_norm", x, size, alpha=alpha, beta=beta, k=bias)

    return on_axis(ctx, data, axis, 1, write)

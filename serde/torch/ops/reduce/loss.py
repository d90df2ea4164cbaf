"""Losses of elements and of pairs of vectors."""

from __future__ import annotations

import math
from typing import Final, Literal

import serde.relay as relay
from serde.relay.ir import Expr, call
from serde.torch.ops.norm.distance import measure_pairs
from serde.torch.ops.table import OPS, Import

__all__ = ["MEAN", "NONE", "SUM", "Reduction", "reduce_loss"]

NONE: Final = 0
MEAN: Final = 1
SUM: Final = 2
Reduction = Literal[0, 1, 2]
"""PyTorch's numbers of reductions."""


def reduce_loss(x: Expr, reduction: Reduction) -> Expr:
    """Return losses, or their mean or sum."""
    if reduction == NONE:
        return x
    return relay.mean(x) if reduction == MEAN else relay.sum(x)


def _difference(ctx: Import, one: Expr, other: Expr) -> Expr:
    return relay.subtract(*ctx.promote(one, other))


@OPS.imports("aten::mse_loss")
def import_mse_loss(ctx: Import, self: Expr, target: Expr, *, reduction: Reduction = 1) -> Expr:
    difference = _difference(ctx, self, target)
    return reduce_loss(relay.multiply(difference, difference), reduction)


@OPS.imports("aten::l1_loss")
def import_l1_loss(ctx: Import, self: Expr, target: Expr, *, reduction: Reduction = 1) -> Expr:
    return reduce_loss(relay.abs(_difference(ctx, self, target)), reduction)


@OPS.imports("aten::smooth_l1_loss")
def import_smooth_l1_loss(
    ctx: Import, self: Expr, target: Expr, *, reduction: Reduction = 1, beta: float = 1.0
) -> Expr:
    """``d**2 / (2 * beta)`` of a distance below `beta`, else ``d - beta / 2``."""
    far = relay.abs(_difference(ctx, self, target))
    if beta == 0:
        return reduce_loss(far, reduction)
    dtype = ctx.dtype(far)
    half, bound = ctx.scalar(0.5, dtype), ctx.scalar(beta, dtype)
    near = relay.divide(relay.multiply(relay.multiply(half, far), far), bound)
    rest = relay.subtract(far, ctx.scalar(0.5 * beta, dtype))
    return reduce_loss(relay.where(relay.less(far, bound), near, rest), reduction)


@OPS.imports("aten::huber_loss")
def import_huber_loss(
    ctx: Import, self: Expr, target: Expr, *, reduction: Reduction = 1, delta: float = 1.0
) -> Expr:
    """``d**2 / 2`` of a distance up to `delta`, else ``delta * (d - delta / 2)``."""
    far = relay.abs(_difference(ctx, self, target))
    dtype = ctx.dtype(far)
    bound = ctx.scalar(delta, dtype)
    near = relay.multiply(relay.multiply(ctx.scalar(0.5, dtype), far), far)
    rest = relay.multiply(bound, relay.subtract(far, ctx.scalar(0.5 * delta, dtype)))
    return reduce_loss(relay.where(relay.less_equal(far, bound), near, rest), reduction)


@OPS.imports("aten::soft_margin_loss")
def import_soft_margin_loss(
    ctx: Import, self: Expr, target: Expr, *, reduction: Reduction = 1
) -> Expr:
    x, wanted = ctx.promote(self, target)
    powers = relay.exp(relay.multiply(relay.negative(wanted), x))
    return reduce_loss(call("serde.log1p", powers), reduction)


@OPS.imports("aten::binary_cross_entropy")
def import_binary_cross_entropy(
    ctx: Import, self: Expr, target: Expr, weight: Expr | None = None, *, reduction: Reduction = 1
) -> Expr:
    """Logarithms are bounded by -100."""
    dtype = ctx.dtype(self)
    least, one = ctx.scalar(-100, dtype), ctx.scalar(1, dtype)
    wanted = ctx.cast(target, dtype)
    of_true = relay.maximum(relay.log(self), least)
    of_false = relay.maximum(call("serde.log1p", relay.negative(self)), least)
    rest = relay.multiply(relay.subtract(wanted, one), of_false)
    loss: Expr = relay.subtract(rest, relay.multiply(wanted, of_true))
    if weight is not None:
        loss = relay.multiply(loss, ctx.cast(weight, dtype))
    return reduce_loss(loss, reduction)


@OPS.imports("aten::binary_cross_entropy_with_logits")
def import_binary_cross_entropy_with_logits(
    ctx: Import,
    self: Expr,
    target: Expr,
    weight: Expr | None = None,
    pos_weight: Expr | None = None,
    *,
    reduction: Reduction = 1,
) -> Expr:
    x, wanted = ctx.promote_to_float(self, target)
    dtype = ctx.dtype(x)
    one = ctx.scalar(1, dtype)
    of_true: Expr = call("serde.log_sigmoid", x)
    if pos_weight is not None:
        more = relay.subtract(ctx.cast(pos_weight, dtype), one)
        of_true = relay.multiply(relay.add(relay.multiply(more, wanted), one), of_true)
    loss: Expr = relay.subtract(relay.multiply(relay.subtract(one, wanted), x), of_true)
    if weight is not None:
        loss = relay.multiply(*ctx.promote(loss, weight))
    return reduce_loss(loss, reduction)


def x_log_x(ctx: Import, x: Expr) -> Expr:
    """Return ``x * log(x)``, zero where x is."""
    zero = ctx.scalar(0, ctx.dtype(x))
    return relay.where(relay.equal(x, zero), zero, relay.multiply(x, relay.log(x)))


@OPS.imports("aten::kl_div")
def import_kl_div(
    ctx: Import, self: Expr, target: Expr, *, reduction: Reduction = 1, log_target: bool = False
) -> Expr:
    x, wanted = ctx.promote_to_float(self, target)
    if log_target:
        loss = relay.multiply(relay.exp(wanted), relay.subtract(wanted, x))
    else:
        loss = relay.subtract(x_log_x(ctx, wanted), relay.multiply(wanted, x))
    return reduce_loss(loss, reduction)


@OPS.imports("aten::poisson_nll_loss")
def import_poisson_nll_loss(
    ctx: Import, input: Expr, target: Expr,
    *, log_input: bool, full: bool, eps: float, reduction: Reduction,
) -> Expr:  # fmt: skip
    """With `full` Stirling's approximation of what targets above 1 add."""
    x, wanted = ctx.promote_to_float(input, target)
    dtype = ctx.dtype(x)
    if log_input:
        loss = relay.subtract(relay.exp(x), relay.multiply(wanted, x))
    else:
        inner = relay.log(relay.add(x, ctx.scalar(eps, dtype)))
        loss = relay.subtract(x, relay.multiply(wanted, inner))
    if full:
        half = relay.multiply(
            ctx.scalar(0.5, dtype),
            relay.log(relay.multiply(ctx.scalar(2 * math.pi, dtype), wanted)),
        )
        whole = relay.subtract(relay.multiply(wanted, relay.log(wanted)), wanted)
        above = relay.greater(wanted, ctx.scalar(1, dtype))
        more = relay.where(above, relay.add(whole, half), ctx.scalar(0, dtype))
        loss = relay.add(loss, more)
    return reduce_loss(loss, reduction)


def _positive(ctx: Import, x: Expr) -> Expr:
    return relay.maximum(x, ctx.scalar(0, ctx.dtype(x)))


@OPS.imports("aten::margin_ranking_loss")
def import_margin_ranking_loss(
    ctx: Import,
    input1: Expr,
    input2: Expr,
    target: Expr,
    *,
    margin: float = 0.0,
    reduction: Reduction = 1,
) -> Expr:
    wanted, difference = ctx.promote(target, _difference(ctx, input1, input2))
    product = relay.multiply(relay.negative(wanted), difference)
    product, far = ctx.promote(product, ctx.number(margin))
    return reduce_loss(_positive(ctx, relay.add(product, far)), reduction)


@OPS.imports("aten::hinge_embedding_loss")
def import_hinge_embedding_loss(
    ctx: Import, self: Expr, target: Expr, *, margin: float = 1.0, reduction: Reduction = 1
) -> Expr:
    """Targets are 1 and -1."""
    x, far = ctx.promote(self, ctx.number(margin))
    zero, kind = ctx.scalar(0, ctx.dtype(x)), ctx.dtype(target)
    below = _positive(ctx, relay.subtract(far, x))
    apart = relay.not_equal(target, ctx.scalar(1, kind))
    alike = relay.not_equal(target, ctx.scalar(-1, kind))
    loss = relay.add(relay.where(apart, below, zero), relay.where(alike, x, zero))
    return reduce_loss(loss, reduction)


@OPS.imports("aten::cosine_embedding_loss")
def import_cosine_embedding_loss(
    ctx: Import,
    input1: Expr,
    input2: Expr,
    target: Expr,
    *,
    margin: float = 0.0,
    reduction: Reduction = 1,
) -> Expr:
    """Squares are summed with 1e-12 each."""
    one, two = ctx.promote_to_float(input1, input2)
    dtype, kind, axis = ctx.dtype(one), ctx.dtype(target), ctx.type(target).rank
    tiny, zero = ctx.scalar(1e-12, dtype), ctx.scalar(0, dtype)
    squares = [relay.add(relay.sum(relay.multiply(x, x), axis=[axis]), tiny) for x in (one, two)]
    product = relay.sum(relay.multiply(one, two), axis=[axis])
    cosine = relay.divide(product, relay.sqrt(relay.multiply(*squares)))
    apart = _positive(ctx, relay.subtract(cosine, ctx.scalar(margin, dtype)))
    near = relay.subtract(ctx.scalar(1, dtype), cosine)
    alike = relay.where(relay.equal(target, ctx.scalar(1, kind)), near, zero)
    rest = relay.where(relay.equal(target, ctx.scalar(-1, kind)), apart, zero)
    return reduce_loss(relay.add(alike, rest), reduction)


@OPS.imports("aten::triplet_margin_loss")
def import_triplet_margin_loss(
    ctx: Import, anchor: Expr, positive: Expr, negative: Expr,
    *, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
    reduction: Reduction = 1,
) -> Expr:  # fmt: skip
    near = measure_pairs(ctx, anchor, positive, p, eps, keepdim=False)
    far = measure_pairs(ctx, anchor, negative, p, eps, keepdim=False)
    if swap:
        far = relay.minimum(far, measure_pairs(ctx, positive, negative, p, eps, keepdim=False))
    near, far, more = ctx.promote(near, far, ctx.number(margin))
    return reduce_loss(_positive(ctx, relay.subtract(relay.add(more, near), far)), reduction)

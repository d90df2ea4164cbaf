"""Losses of scores of classes."""

from __future__ import annotations

from typing import Final, Literal

import serde.core.allocation as allocation
import serde.relay as relay
from serde.relay.ir import Expr, TupleGetItem, call, is_float
from serde.torch.ops.reduce.loss import MEAN, NONE, SUM, Reduction, reduce_loss
from serde.torch.ops.table import OPS, Export, Import, Scalar, SymInt, Value
from serde.torch.ops.written import cast

_NAMES: Final[dict[int, Literal["none", "mean", "sum"]]] = {NONE: "none", MEAN: "mean", SUM: "sum"}


def _factors(ctx: Import, scores: Expr, weight: Expr | None) -> Expr:
    """Return the weight of each class, which lie on axis 1, of a vector on its only one."""
    dtype = ctx.dtype(scores)
    if weight is not None:
        return ctx.cast(weight, dtype)
    (classes,) = ctx.static_lengths(scores, [min(1, ctx.type(scores).rank - 1)])
    return ctx.fold(relay.ones((classes,), dtype))


def _labels(ctx: Import, target: Expr) -> Expr:
    return target if ctx.dtype(target) in ("int32", "int64") else ctx.cast(target, "int64")


@OPS.imports("aten::nll_loss", "aten::nll_loss2d", "aten::nll_loss_nd")
def import_nll_loss(
    ctx: Import,
    self: Expr,
    target: Expr,
    weight: Expr | None = None,
    *,
    reduction: Reduction = 1,
    ignore_index: SymInt = -100,
) -> Expr:
    return relay.nn.nll_loss(
        self,
        _labels(ctx, target),
        _factors(ctx, self, weight),
        reduction=_NAMES[reduction],
        ignore_index=ctx.fixed(ignore_index),
    )


def _weigh_labels(
    ctx: Import, scores: Expr, target: Expr, weight: Expr | None, ignore_index: SymInt
) -> Expr:
    """Return the weight of each label, zero of those that are ignored."""
    labels = _labels(ctx, target)
    kept = relay.not_equal(labels, ctx.scalar(ctx.fixed(ignore_index), ctx.dtype(labels)))
    if weight is None:
        return relay.cast(kept, ctx.dtype(scores))
    zero = ctx.scalar(0, ctx.dtype(labels))
    factors = _factors(ctx, scores, weight)
    found = relay.take(factors, relay.where(kept, labels, zero), axis=0, mode="fast")
    return relay.where(kept, found, ctx.scalar(0, ctx.dtype(scores)))


@OPS.imports("aten::nll_loss_forward", "aten::nll_loss2d_forward")
def import_nll_loss_forward(
    ctx: Import,
    self: Expr,
    target: Expr,
    weight: Expr | None,
    *,
    reduction: Reduction,
    ignore_index: SymInt,
) -> tuple[Expr, Expr]:
    """The sum of the labels' weights beside it, which is zero where nothing is reduced."""
    loss = import_nll_loss(
        ctx, self, target, weight, reduction=reduction, ignore_index=ignore_index
    )
    if reduction == NONE:
        return loss, ctx.scalar(0, ctx.dtype(self))
    return loss, relay.sum(_weigh_labels(ctx, self, target, weight, ignore_index))


@OPS.imports("aten::cross_entropy_loss")
def import_cross_entropy_loss(
    ctx: Import, self: Expr, target: Expr, weight: Expr | None = None,
    *, reduction: Reduction = 1, ignore_index: SymInt = -100, label_smoothing: float = 0.0,
) -> Expr:  # fmt: skip
    """Targets are classes or, of the shape of the scores, probabilities."""
    axis = min(1, ctx.type(self).rank - 1)
    if is_float(ctx.dtype(target)):
        return _soft_cross_entropy(ctx, self, target, weight, reduction, label_smoothing, axis)
    if not label_smoothing and axis == 1:
        found = call(
            "serde.softmax_cross_entropy_loss",
            self,
            _labels(ctx, target),
            None if weight is None else ctx.cast(weight, ctx.dtype(self)),
            reduction=_NAMES[reduction],
            ignore_index=ctx.fixed(ignore_index),
        )
        return TupleGetItem(found, 0)
    likelihood = relay.nn.log_softmax(self, axis=axis)
    loss = import_nll_loss(
        ctx, likelihood, target, weight, reduction=reduction, ignore_index=ignore_index
    )
    if not label_smoothing:
        return loss
    dtype = ctx.dtype(self)
    weighted = relay.negative(_weigh_classes(ctx, likelihood, weight, axis))
    kept = _weigh_labels(ctx, self, target, None, ignore_index)
    smooth = relay.multiply(relay.sum(weighted, axis=[axis]), kept)
    if reduction != NONE:
        smooth = relay.sum(smooth)
    if reduction == MEAN:
        total = relay.sum(_weigh_labels(ctx, self, target, weight, ignore_index))
        smooth = relay.divide(smooth, total)
    (classes,) = ctx.static_lengths(self, [axis])
    share = ctx.scalar(label_smoothing / classes, dtype)
    rest = ctx.scalar(1 - label_smoothing, dtype)
    return relay.add(relay.multiply(loss, rest), relay.multiply(smooth, share))


def _weigh_classes(ctx: Import, x: Expr, weight: Expr | None, axis: int) -> Expr:
    if weight is None:
        return x
    behind = ctx.type(x).rank - 1 - axis
    factors = ctx.cast(weight, ctx.dtype(x))
    if behind:
        factors = relay.expand_dims(factors, axis=1, num_newaxis=behind)
    return relay.multiply(x, factors)


def _soft_cross_entropy(
    ctx: Import, scores: Expr, target: Expr, weight: Expr | None, reduction: Reduction,
    smoothing: float, axis: int,
) -> Expr:  # fmt: skip
    """The mean is over samples, whatever their weights."""
    dtype = ctx.dtype(scores)
    likelihood = relay.nn.log_softmax(scores, axis=axis)
    wanted = ctx.cast(target, dtype)
    if smoothing:
        (classes,) = ctx.static_lengths(scores, [axis])
        kept = relay.multiply(wanted, ctx.scalar(1 - smoothing, dtype))
        wanted = relay.add(kept, ctx.scalar(smoothing / classes, dtype))
    product = relay.multiply(_weigh_classes(ctx, likelihood, weight, axis), wanted)
    loss = relay.negative(relay.sum(product, axis=[axis]))
    return reduce_loss(loss, reduction)


@OPS.imports("aten::multi_margin_loss")
def import_multi_margin_loss(
    ctx: Import, self: Expr, target: Expr, weight: Expr | None = None,
    *, p: Scalar = 1, margin: Scalar = 1, reduction: Reduction = 1,
) -> Expr:  # fmt: skip
    """The mean over classes of how far each comes within `margin` of the label's score."""
    dtype, rank = ctx.dtype(self), ctx.type(self).rank
    rows = self if rank == 2 else relay.reshape(self, (1, -1))
    labels = relay.reshape(target, (-1,))
    (classes,) = ctx.static_lengths(rows, [1])
    column = relay.expand_dims(labels, axis=1)
    own = relay.gather(rows, axis=1, indices=column)
    far = relay.add(relay.subtract(ctx.scalar(margin, dtype), own), rows)
    far = relay.maximum(far, ctx.scalar(0, dtype))
    if p == 2:
        far = relay.multiply(far, far)
    if weight is not None:
        factors = relay.take(ctx.cast(weight, dtype), labels, axis=0, mode="fast")
        far = relay.multiply(far, relay.expand_dims(factors, axis=1))
    others = relay.not_equal(_class_numbers(ctx, classes, ctx.dtype(labels)), column)
    total = relay.sum(relay.where(others, far, ctx.scalar(0, dtype)), axis=[1])
    loss = relay.divide(total, ctx.scalar(classes, dtype))
    if reduction != NONE:
        return reduce_loss(loss, reduction)
    return loss if ctx.type(target).rank else relay.squeeze(loss, axis=[0])


def _class_numbers(ctx: Import, classes: int, dtype: str) -> Expr:
    return relay.const(allocation.arange(classes)[None], dtype)


@OPS.imports("aten::multilabel_margin_loss")
def import_multilabel_margin_loss(
    ctx: Import, self: Expr, target: Expr, *, reduction: Reduction = 1
) -> Expr:
    return _multilabel_margin(ctx, self, target, reduction)[0]


@OPS.imports("aten::multilabel_margin_loss_forward")
def import_multilabel_margin_loss_forward(
    ctx: Import, self: Expr, target: Expr, *, reduction: Reduction
) -> tuple[Expr, Expr]:
    """Which classes are labels beside it."""
    return _multilabel_margin(ctx, self, target, reduction)


def _multilabel_margin(
    ctx: Import, x: Expr, target: Expr, reduction: Reduction
) -> tuple[Expr, Expr]:
    """The labels of a sample end before the first that is negative."""
    dtype, kind, rank = ctx.dtype(x), ctx.dtype(target), ctx.type(x).rank
    rows, labels = (each if rank == 2 else relay.reshape(each, (1, -1)) for each in (x, target))
    (classes,) = ctx.static_lengths(rows, [1])
    zero = ctx.scalar(0, dtype)
    ended = relay.cumsum(relay.cast(relay.less(labels, ctx.scalar(0, kind)), "int32"), axis=1)
    valid = relay.equal(ended, relay.const(0, "int32"))
    own = relay.gather(rows, axis=1, indices=relay.maximum(labels, ctx.scalar(0, kind)))
    numbers = relay.const(allocation.arange(classes)[None, None], kind)
    each = relay.expand_dims(labels, axis=2)
    hits = relay.logical_and(relay.equal(each, numbers), relay.expand_dims(valid, axis=2))
    is_label = relay.any(hits, axis=[1])
    one = ctx.scalar(1, dtype)
    far = relay.add(relay.expand_dims(relay.subtract(one, own), 2), relay.expand_dims(rows, 1))
    counted = relay.logical_and(
        relay.expand_dims(valid, axis=2), relay.expand_dims(relay.logical_not(is_label), axis=1)
    )
    total = relay.sum(relay.where(counted, relay.maximum(far, zero), zero), axis=[1, 2])
    loss = relay.divide(total, ctx.scalar(classes, dtype))
    if reduction != NONE:
        loss = reduce_loss(loss, reduction)
    elif rank < 2:
        loss = relay.squeeze(loss, axis=[0])
    found = relay.cast(is_label, dtype)
    return loss, found if rank == 2 else relay.reshape_like(found, target)


def _options(reduction: str, ignore_index: int | None) -> dict[str, object]:
    options: dict[str, object] = {}
    if ignore_index is not None and ignore_index != -100:
        options["ignore_index"] = ignore_index
    if reduction != "mean":
        options["reduction"] = reduction
    return options


def _untrained(ctx: Export, weights: Value) -> Value:
    """Return weights of classes as PyTorch takes them: without a gradient, of which it has none."""
    return weights if weights.data is not None else ctx.method(weights, "detach")


@OPS.exports("nn.nll_loss")
def export_nll_loss(
    ctx: Export,
    predictions: Value,
    targets: Value,
    weights: Value,
    *,
    reduction: str,
    ignore_index: int,
) -> Value:
    given = [predictions, cast(ctx, targets, "int64"), _untrained(ctx, weights)]
    return ctx.call("F.nll_loss", *given, **_options(reduction, ignore_index))


@OPS.exports("serde.softmax_cross_entropy_loss")
def export_softmax_cross_entropy_loss(
    ctx: Export,
    scores: Value,
    labels: Value,
    weights: Value | None,
    *,
    reduction: str,
    ignore_index: int | None,
) -> tuple[Value, Value]:
    given = [scores, cast(ctx, labels, "int64")]
    if weights is not None:
        given.append(_untrained(ctx, weights))
    loss = ctx.call("F.cross_entropy", *given, **_options(reduction, ignore_index))
    return loss, ctx.call("F.log_softmax", scores, dim=1)

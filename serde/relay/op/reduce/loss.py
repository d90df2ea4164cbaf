"""Losses: negative log likelihood and the cross entropy of a softmax."""

from __future__ import annotations

from typing import Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Expr, Fusion, FusionPattern, InRange, Tuple, const, ranges, tensor_type
from serde.relay.ir.precision import as_dtype, wide_dtype
from serde.relay.ir.registry import Arguments, Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.traits import Commutative
from serde.relay.ir.types import TensorType
from serde.relay.op.activation import log_softmax


def _nll_loss_type(
    predictions: TensorType,
    targets: TensorType,
    weights: TensorType,
    *,
    reduction: str,
    ignore_index: int,
) -> TensorType:
    require_float(predictions)
    dtype = require_same_dtype(predictions, weights)
    if predictions.rank != targets.rank + 1 or weights.rank != 1:
        raise TypeInferenceError(
            f"targets {targets!r} and weights {weights!r} do not fit predictions {predictions!r}"
        )
    if targets.dtype not in ("int32", "int64"):
        raise TypeInferenceError(f"expected classes as int32 or int64, found {targets!r}")
    classes = min(1, targets.rank)
    join_dim(predictions.shape[classes], weights.shape[0])
    rest = predictions.shape[:classes] + predictions.shape[classes + 1 :]
    shape = [join_dim(a, b) for a, b in zip(rest, targets.shape, strict=True)]
    return TensorType(shape if reduction == "none" else (), dtype)


def _decompose_nll_loss(
    predictions: Expr, targets: Expr, weights: Expr, *, reduction: str, ignore_index: int
) -> Expr:
    """What targets that are ignored name may lie outside the classes."""
    given, kind = tensor_type(predictions).dtype, tensor_type(targets).dtype
    wide = wide_dtype(given)
    axis = min(1, tensor_type(targets).rank)
    ignored = call("equal", targets, const(ignore_index, kind))
    classes = call("where", ignored, const(0, kind), targets)
    found = call("gather", predictions, call("expand_dims", classes, axis=axis), axis=axis)
    factors = as_dtype(call("take", weights, classes, axis=0, mode="fast"), wide)
    factors = call("where", ignored, const(0, wide), factors)
    scores = as_dtype(call("squeeze", found, axis=(axis,)), wide)
    losses = call("negative", call("multiply", scores, factors))
    if reduction != "none":
        losses = call("sum", losses)
    if reduction == "mean":
        losses = call("divide", losses, call("sum", factors))
    return as_dtype(losses, given)


_CLASSES = tensor((4,), "int32", low=0, high=4)


@relay_op(
    "nn.nll_loss",
    traits=(Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE), InRange(ranges.class_labels)),
    infer=_nll_loss_type,
    decompose=_decompose_nll_loss,
    samples=[
        sample((4, 5), _CLASSES, tensor((5,), low=0.5), ignore_index=-100),
        sample((4, 5), _CLASSES, tensor((5,), low=0.5), reduction="sum", ignore_index=2),
        sample(
            (2, 5, 3),
            np.array([[0, -1, 4], [-1, 2, 3]], np.int64),
            (5,),
            reduction="none",
            ignore_index=-1,
        ),
        sample((5,), tensor((), "int32", low=0, high=4), (5,), reduction="none", ignore_index=-1),
    ],
    arguments=Arguments(defaults={"ignore_index": -100}),
)
def nll_loss(
    predictions: Array,
    targets: Array,
    weights: Array,
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
    ignore_index: int,
) -> Array:
    """``y[n] = -weights[targets[n]] * predictions[n, targets[n]]``; 0 where that is ignored.

    Classes are on axis 1, of a vector on its only axis. The mean is ``sum(y) / sum(w)``, where
    ``w[n] = weights[targets[n]]``.
    """
    axis = min(1, targets.ndim)
    kept = targets != ignore_index
    classes = np.where(kept, targets, 0)
    found = np.take_along_axis(predictions, np.expand_dims(classes, axis), axis).squeeze(axis)
    factors = np.where(kept, weights[classes].astype(np.float64), 0)
    losses = -found * factors
    if reduction == "mean":
        losses = losses.sum() / factors.sum()
    elif reduction == "sum":
        losses = losses.sum()
    return np.asarray(losses).astype(predictions.dtype)


def _mean_entropy_type(x: TensorType, y: TensorType) -> TensorType:
    require_float(x)
    if x.rank != 2 or y.rank != 2:
        raise TypeInferenceError(f"expected two matrices, found {x!r} and {y!r}")
    _ = [join_dim(one, other) for one, other in zip(x.shape, y.shape, strict=True)]
    return TensorType((), require_same_dtype(x, y))


def _decompose_mean_entropy(x: Expr, y: Expr) -> Expr:
    wide = wide_dtype(tensor_type(x).dtype)
    products = call("multiply", *(as_dtype(each, wide) for each in (x, y)))
    mean = call("mean", call("sum", products, axis=(1,)))
    return as_dtype(call("negative", mean), tensor_type(x).dtype)


_TARGETS = tensor((3, 4), low=0, high=1)


@relay_op(
    "nn.cross_entropy_with_logits",
    traits=[Commutative],
    infer=_mean_entropy_type,
    decompose=_decompose_mean_entropy,
    samples=[sample((3, 4), _TARGETS)],
)
def cross_entropy_with_logits(x: Array, y: Array) -> Array:
    """``-sum(x * y) / n`` of log probabilities and targets, each of the shape ``(n, classes)``."""
    total = (x.astype(np.float64) * y).sum()
    return np.asarray(-total / np.float64(len(x))).astype(x.dtype)


@relay_op(
    "nn.cross_entropy",
    infer=_mean_entropy_type,
    decompose=lambda x, y: _decompose_mean_entropy(call("log", x), y),
    samples=[sample(tensor((3, 4), low=0.1, high=1), _TARGETS)],
)
def cross_entropy(x: Array, y: Array) -> Array:
    """``-sum(log(x) * y) / n`` of probabilities and targets, each of the shape ``(n, classes)``."""
    with np.errstate(divide="ignore"):
        return cross_entropy_with_logits(np.log(x), y)


def _cross_entropy_type(
    scores: TensorType,
    labels: TensorType,
    weights: TensorType | None,
    *,
    reduction: str,
    ignore_index: int | None,
) -> tuple[TensorType, TensorType]:
    if scores.rank < 2:
        raise TypeInferenceError(f"expected scores of rank 2 or more, found {scores!r}")
    factors = TensorType([scores.shape[1]], scores.dtype) if weights is None else weights
    loss = _nll_loss_type(
        scores, labels, factors, reduction=reduction, ignore_index=ignore_index or 0
    )
    return loss, scores


def _decompose_cross_entropy(
    scores: Expr, labels: Expr, weights: Expr | None, *, reduction: str, ignore_index: int | None
) -> Expr:
    """Without `ignore_index` no label is ignored, since none is negative."""
    type_ = tensor_type(scores)
    classes, dtype = type_.shape[1], type_.dtype
    if weights is not None:
        factors = weights
    elif isinstance(classes, int):
        factors = const(np.ones(classes), dtype)
    else:
        factors = call("ones_like", call("max", scores, axis=1, exclude=True))
    likelihood = call("nn.log_softmax", scores, axis=1)
    skipped = -1 if ignore_index is None else ignore_index
    loss = call(
        "nn.nll_loss", likelihood, labels, factors, reduction=reduction, ignore_index=skipped
    )
    return Tuple([loss, likelihood])


@relay_op(
    "serde.softmax_cross_entropy_loss", traits=(InRange(ranges.class_labels),),
    infer=_cross_entropy_type,
    decompose=_decompose_cross_entropy,
    samples=[
        sample((4, 5), _CLASSES),
        sample((4, 5), _CLASSES, tensor((5,), low=0.5), reduction="sum", ignore_index=2),
        sample((2, 5, 3), np.array([[0, -1, 4], [-1, 2, 3]], np.int64), tensor((5,), low=0.5),
               reduction="none", ignore_index=-1),
        sample((4, 5), _CLASSES, tensor((5,), low=0.5), ignore_index=1),
    ],
)  # fmt: skip
def softmax_cross_entropy_loss(
    scores: Array,
    labels: Array,
    weights: Array | None,
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
    ignore_index: int | None = None,
) -> tuple[Array, Array]:
    """``nll_loss(log_softmax(scores), labels, weights)``, and that log softmax, along axis 1.

    The mean divides by the sum of the labels' weights, of which each is one where none are
    given; a label equal to `ignore_index` has neither loss nor weight.
    """
    likelihood = log_softmax(scores, axis=1)
    factors = np.ones(scores.shape[1], scores.dtype) if weights is None else weights
    skipped = -1 if ignore_index is None else ignore_index
    loss = nll_loss(likelihood, labels, factors, reduction=reduction, ignore_index=skipped)
    return loss, likelihood

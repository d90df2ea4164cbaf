"""What classifiers and regressors share: rows of features, scores, labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.relay.ir.expr import Expr

_NEARLY_ZERO = 1e-7
"""Scores of which SOFTMAX_ZERO says that they are zero."""


_ERF_INV = 0.147
"""The constant of Winitzki's approximation of the inverse of erf."""


def to_feature_rows(ctx: ImportContext, x: Expr, dtype: str = "float32") -> Expr:
    """Return the features as floats, one row a sample; a vector is one sample."""
    rank = ctx.type(x).rank
    if rank not in (1, 2):
        raise Unsupported(f"features of rank {rank}; one row a sample is expected")
    rows = x if rank == 2 else relay.expand_dims(x, axis=0)
    return rows if ctx.type(rows).dtype == dtype else relay.cast(rows, dtype)


def cast_to_float32(ctx: ImportContext, x: Expr) -> Expr:
    """Return a tensor as float32, which most of these operators yield whatever they take."""
    return x if ctx.type(x).dtype == "float32" else relay.cast(x, "float32")


def transform(ctx: ImportContext, scores: Expr, name: str) -> Expr:
    """Return scores after a transformation that `post_transform` names, along the last axis."""
    if name not in _TRANSFORMS:
        raise Unsupported(f"post_transform {name!r} is unknown")
    return _TRANSFORMS[name](ctx, scores)


def refuse_transform(name: str, what: str) -> None:
    """Refuse a transformation of a single score, which ONNX Runtime leaves out."""
    if name != "NONE":
        raise Unsupported(f"post_transform {name!r} of {what}, which runtimes read differently")


def _softmax_zero(ctx: ImportContext, scores: Expr) -> Expr:
    """Return a softmax for which scores of zero count as zero."""
    highest = relay.max(scores, axis=-1, keepdims=True)
    zero = relay.less_equal(relay.abs(scores), scalar_like(ctx, scores, _NEARLY_ZERO))
    scaled = relay.multiply(scores, relay.exp(relay.negative(highest)))
    parts = relay.where(zero, scaled, relay.exp(relay.subtract(scores, highest)))
    return relay.divide(parts, relay.sum(parts, axis=-1, keepdims=True))


def _probit(ctx: ImportContext, scores: Expr) -> Expr:
    """Return the quantile of the normal distribution, by the approximation that runtimes use."""

    def scalar(value: float) -> Expr:
        return scalar_like(ctx, scores, value)

    x = relay.subtract(relay.multiply(scores, scalar(2.0)), scalar(1.0))
    log = relay.log(relay.multiply(relay.subtract(scalar(1.0), x), relay.add(scalar(1.0), x)))
    half = relay.add(scalar(2.0 / (math.pi * _ERF_INV)), relay.multiply(scalar(0.5), log))
    rest = relay.multiply(scalar(1.0 / _ERF_INV), log)
    root = relay.sqrt(relay.subtract(relay.multiply(half, half), rest))
    size = relay.sqrt(relay.subtract(root, half))
    signed = relay.where(relay.less(x, scalar(0.0)), relay.negative(size), size)
    return relay.multiply(scalar(math.sqrt(2.0)), signed)


_TRANSFORMS: Mapping[str, Callable[[ImportContext, Expr], Expr]] = MappingProxyType(
    {
        "NONE": lambda ctx, scores: scores,
        "SOFTMAX": lambda ctx, scores: relay.nn.softmax(scores, axis=-1),
        "LOGISTIC": lambda ctx, scores: relay.sigmoid(scores),
        "SOFTMAX_ZERO": _softmax_zero,
        "PROBIT": _probit,
    }
)


def read_labels(
    ctx: ImportContext, integers: Sequence[int], strings: Sequence[str]
) -> tuple[int, ...]:
    """Return the labels of the classes; indices stand for strings that nothing reads."""
    if bool(integers) == bool(strings):
        raise Unsupported("expected the labels of the classes as integers or as strings")
    if strings and ctx.wants(0):
        raise Unsupported(
            "labels that are strings have no counterpart in Relay",
            hint="take the label away from the outputs of the model, or train with integers",
        )
    return tuple(integers) or tuple(range(len(strings)))


def pick_labels(ctx: ImportContext, indices: Expr, labels: Sequence[int]) -> Expr:
    """Return the label of each index, as int64."""
    return relay.take(ctx.array(np.array(labels, np.int64)), indices, axis=0, mode="fast")

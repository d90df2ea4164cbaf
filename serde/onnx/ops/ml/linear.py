"""Linear models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.ml.scores import (
    pick_labels,
    read_labels,
    refuse_transform,
    to_feature_rows,
    transform,
)
from serde.onnx.ops.table import ML, Import
from serde.relay.ir.expr import Expr


@ML.imports("LinearRegressor")
def import_linear_regressor(
    ctx: Import,
    x: Expr,
    *,
    coefficients: tuple[float, ...],
    intercepts: tuple[float, ...] = (),
    targets: int = 1,
    post_transform: str = "NONE",
) -> Expr:
    scores = _apply_linear(ctx, to_feature_rows(ctx, x), coefficients, intercepts, targets)
    if targets == 1:
        refuse_transform(post_transform, "a single target")
    return transform(ctx, scores, post_transform)


@ML.imports("LinearClassifier", ignored=["multi_class"])
def import_linear_classifier(
    ctx: Import, x: Expr,
    *, coefficients: tuple[float, ...], intercepts: tuple[float, ...],
    classlabels_ints: tuple[int, ...] = (), classlabels_strings: tuple[str, ...] = (),
    post_transform: str = "NONE",
) -> list[Expr]:  # fmt: skip
    """One score for two classes is that of the second: the first has 1 less it, or its negative."""
    labels = read_labels(ctx, classlabels_ints, classlabels_strings)
    scores = _apply_linear(ctx, to_feature_rows(ctx, x), coefficients, intercepts, len(intercepts))
    if len(intercepts) > 1:
        if len(labels) != len(intercepts):
            raise Unsupported(f"{len(labels)} labels for {len(intercepts)} scores")
        best = relay.argmax(scores, axis=1)
        return [pick_labels(ctx, best, labels), transform(ctx, scores, post_transform)]
    if len(labels) != 2:
        raise Unsupported(f"{len(labels)} labels for one score")
    positive = relay.squeeze(relay.greater(scores, scalar_like(ctx, scores, 0.0)), axis=[1])
    label = pick_labels(ctx, relay.cast(positive, "int32"), labels)
    if post_transform == "LOGISTIC":
        return [label, relay.sigmoid(_concat_columns(relay.negative(scores), scores))]
    refuse_transform(post_transform, "a single score")
    return [label, _concat_columns(relay.subtract(scalar_like(ctx, scores, 1.0), scores), scores)]


def _concat_columns(first: Expr, second: Expr) -> Expr:
    return relay.concatenate([first, second], axis=1)


def _apply_linear(
    ctx: Import, x: Expr, coefficients: Sequence[float], intercepts: Sequence[float], rows: int
) -> Expr:
    """Return ``x @ coefficients.T + intercepts`` for coefficients of `rows` rows."""
    if rows < 1 or len(coefficients) % rows or len(intercepts) not in (0, rows):
        raise Unsupported(
            f"{len(coefficients)} coefficients and {len(intercepts)} intercepts for {rows} scores"
        )
    factors = np.array(coefficients, np.float32).reshape(rows, -1)
    scores = relay.nn.dense(x, ctx.array(factors))
    if not intercepts:
        return scores
    return relay.nn.bias_add(scores, ctx.array(np.array(intercepts, np.float32)), axis=-1)

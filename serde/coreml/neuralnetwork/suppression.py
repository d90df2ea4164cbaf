"""Apple's model that suppresses boxes, the last part of a detector's pipeline, as Relay.

Of boxes by centre, width and height it keeps those that score enough and overlap with no better
one, the best first. What a box scores is the greatest of its confidences.

Source: NonMaximumSuppression.proto of Apple's model format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr, as_dim, as_dtype, call, tensor_type

__all__ = ["THRESHOLDS", "suppression_to_relay", "thresholds_of"]

THRESHOLDS = {
    "iouThresholdInputFeatureName": "iouThreshold",
    "confidenceThresholdInputFeatureName": "confidenceThreshold",
}
"""Fields that name inputs for thresholds, by those that hold what counts without an input."""

_LEAST = float(np.finfo(np.float32).min)
_ENDLESS = 2**31 - 1


def thresholds_of(model: AnyValue) -> dict[str, float]:
    """Return the inputs that thresholds may be given by, with what counts if they are not."""
    own = model.nonMaximumSuppression
    named = {getattr(own, name): getattr(own, value) for name, value in THRESHOLDS.items()}
    return {name: value for name, value in named.items() if name}


def suppression_to_relay(model: AnyValue, values: Mapping[str, Expr]) -> dict[str, Expr]:
    """Return the outputs of a suppression by name.

    Args:
        model: Apple's message of the model.
        values: Boxes, confidences and perhaps thresholds, by the names that the model has.

    Raises:
        Unsupported: It suppresses in a way that is not known.
    """
    own = model.nonMaximumSuppression
    if own.WhichOneof("SuppressionMethod") != "pickTop":
        raise Unsupported("a suppression by no known method")
    names = own.coordinatesInputFeatureName, own.confidenceInputFeatureName
    missing = [name for name in names if name not in values]
    if missing:
        raise Unsupported(f"its input {missing[0]!r} is given by nothing")
    boxes, marks = (_matrix(values[name]) for name in names)
    if tensor_type(boxes).shape[1] != 4:
        raise Unsupported(f"boxes of {tensor_type(boxes)!r}, not of four numbers each")
    least, overlap = (
        values.get(getattr(own, name)) if getattr(own, name) else None
        for name in reversed(THRESHOLDS)
    )
    if least is None:
        least = relay.const(np.array([own.confidenceThreshold], np.float32))
    if overlap is None:
        overlap = relay.const(np.array([own.iouThreshold], np.float32))
    score = relay.max(as_dtype(marks, "float32"), axis=(1,))
    order = relay.argsort(relay.negative(score), axis=0, dtype="int32")
    boxes, marks, score = (relay.take(each, order, axis=0) for each in (boxes, marks, score))
    kept = _find_kept(boxes, marks, score, least, overlap, own.pickTop.perClass)
    lower, upper = _rows(model)
    outputs = own.coordinatesOutputFeatureName, own.confidenceOutputFeatureName
    return {
        name: _limit_rows(relay.take(each, kept, axis=0), lower, upper)
        for name, each in zip(outputs, (boxes, marks), strict=True)
    }


def _matrix(x: Expr) -> Expr:
    """Return a tensor of two axes that has axes of length 1 in front."""
    type_ = tensor_type(x)
    extra = type_.rank - 2
    if extra < 0 or any(length != 1 for length in type_.shape[:extra]):
        raise Unsupported(f"boxes or confidences as {type_!r}, not as rows")
    return relay.squeeze(x, list(range(extra))) if extra else x


def _find_kept(
    boxes: Expr, marks: Expr, score: Expr, least: Expr, overlap: Expr, per_class: bool
) -> Expr:
    """Return which rows stay; they are sorted by what they score."""
    count, classes = tensor_type(marks).shape
    lowest = relay.const(np.float32(_LEAST))
    counts = relay.greater_equal(score, relay.cast(relay.reshape(least, ()), "float32"))
    taken = relay.where(counts, score, lowest)
    rows = relay.expand_dims(relay.expand_dims(taken, 0), 0)
    if per_class and classes != 1:
        rows = _by_class(marks, taken)
    limit = count if isinstance(count, int) else _ENDLESS
    found = call(
        "serde.non_max_suppression",
        relay.expand_dims(as_dtype(boxes, "float32"), 0),
        rows,
        relay.const([limit], "int64"),
        relay.cast(relay.reshape(overlap, (1,)), "float32"),
        relay.const(np.array([_LEAST], np.float32)),
        center_point_box=True,
    )
    indices = relay.reshape(relay.strided_slice(found, [0, 2], [_ENDLESS, 3], [1, 1]), [-1])
    # Several classes follow one another there, and what stays is wanted by its score.
    ones = relay.ones_like(relay.cast(indices, "int32"))
    zeros = relay.zeros_like(relay.cast(score, "int32"))
    marked = relay.scatter_nd(zeros, relay.expand_dims(indices, 0), ones, "update")
    where = relay.serde.nonzero(relay.greater(marked, relay.const(np.int32(0))))
    return relay.cast(relay.reshape(where, [-1]), "int32")


def _by_class(marks: Expr, taken: Expr) -> Expr:
    """Return what rows score as (1, classes, rows), of other classes than their best nothing."""
    classes = tensor_type(marks).shape[1]
    if not isinstance(classes, int):
        raise Unsupported(f"confidences of {classes} classes")
    best = relay.argmax(as_dtype(marks, "float32"), axis=(1,))
    line = relay.const(allocation.arange(classes, dtype=np.int32)[:, None])
    own = relay.equal(line, relay.expand_dims(relay.cast(best, "int32"), 0))
    lowest = relay.const(np.float32(_LEAST))
    return relay.expand_dims(relay.where(own, relay.expand_dims(taken, 0), lowest), 0)


def _rows(model: AnyValue) -> tuple[int, int | None]:
    """Return how many rows come out at least and at most, as the outputs are declared."""
    lower, upper = 0, None
    for feature in model.description.output:
        array = feature.type.multiArrayType
        kind = array.WhichOneof("ShapeFlexibility")
        if kind == "shapeRange" and array.shapeRange.sizeRanges:
            first = array.shapeRange.sizeRanges[0]
            bounds = int(first.lowerBound), int(first.upperBound)
        elif kind == "enumeratedShapes":
            raise Unsupported(f"output {feature.name} of enumerated shapes")
        elif len(array.shape):
            bounds = int(array.shape[0]), int(array.shape[0])
        else:
            continue
        lower = max(lower, bounds[0])
        if bounds[1] >= 0:
            upper = bounds[1] if upper is None else min(upper, bounds[1])
    return lower, upper


def _limit_rows(rows: Expr, lower: int, upper: int | None) -> Expr:
    """Return the first `upper` rows at most, with zeros behind them up to `lower`."""
    if upper is not None:
        rows = relay.strided_slice(rows, [0], [upper], [1], axes=[0])
    if not lower:
        return rows
    type_ = tensor_type(rows)
    length = relay.shape_of(rows, dtype="int64")
    count = relay.strided_slice(length, [0], [1], [1])
    shape: list[Dim] = [lower, as_dim(type_.shape[1])]
    more = call("full", relay.const(0, type_.dtype), shape=tuple(shape))
    whole = relay.concatenate((rows, more), axis=0)
    if lower == upper:
        return relay.strided_slice(whole, [0], [lower], [1], axes=[0])
    end = relay.maximum(count, relay.const([lower], "int64"))
    begin, step = (relay.const([each], "int64") for each in (0, 1))
    return call("dyn.strided_slice", whole, begin, end, step, axes=(0,))

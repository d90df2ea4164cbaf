"""Suppression of boxes whose rows may be laid out in any way, as MXNet has it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Expr, TensorType, TupleGetItem, const, ranges, require_float
from serde.relay.ir.registry import Array, call, relay_op, sample
from serde.relay.ir.traits import Cases, Float32, Ordering
from serde.relay.ir.work import pairs
from serde.relay.op.vision.rows import columns

__all__ = ["BoxSuppression"]

Form = Literal["corner", "center"]


@dataclass(frozen=True, kw_only=True)
class BoxSuppression:
    """Attributes of ``serde.box_nms``."""

    iou_threshold: float = 0.5
    score_threshold: float = 0.0
    top_k: int = -1
    coord_start: int = 2
    score_index: int = 1
    id_index: int = -1
    background_id: int = -1
    force_suppress: bool = False
    in_format: Form = "corner"
    out_format: Form = "corner"


def _nms_type(data: TensorType, *, nms: BoxSuppression) -> TensorType:
    """The columns named must exist, and `top_k` must leave boxes."""
    require_float(data)
    if data.rank != 3:
        raise TypeInferenceError(f"expected rows of boxes of each image, found {data!r}")
    width = data.shape[2]
    last = max(nms.coord_start + 3, nms.score_index, nms.id_index)
    if min(nms.coord_start, nms.score_index) < 0 or (isinstance(width, int) and last >= width):
        raise TypeInferenceError(
            f"coord_start {nms.coord_start}, score_index {nms.score_index} or "
            f"id_index {nms.id_index} is "
            f"outside rows of {width}"
        )
    if nms.top_k == 0:
        raise TypeInferenceError("top_k 0 leaves no boxes; -1 takes all")
    return data


def _half(x: Expr, dtype: str) -> Expr:
    return call("multiply", x, const(0.5, dtype))


def _corners(boxes: Expr, form: str, dtype: str) -> list[Expr]:
    """Return the low and the high corners; a box whose ends are swapped becomes empty."""
    low, high = columns(boxes, 0, 2), columns(boxes, 2, 4)
    if form == "center":
        reach = _half(high, dtype)
        low, high = call("subtract", low, reach), call("add", low, reach)
    return [low, call("maximum", low, high)]


def _convert_boxes(rows: Expr, start: int, form: str, dtype: str, width: int) -> Expr:
    """Return rows whose boxes are in another form, those with a negative first number as is."""
    low, high = columns(rows, start, start + 2), columns(rows, start + 2, start + 4)
    if form == "center":
        parts = [_half(call("add", low, high), dtype), call("subtract", high, low)]
    else:
        reach = _half(high, dtype)
        parts = [call("subtract", low, reach), call("add", low, reach)]
    before = [columns(rows, 0, start)] if start else []
    after = [columns(rows, start + 4, width)] if start + 4 < width else []
    made = call("concatenate", [*before, *parts, *after], axis=2)
    stays = call("less", columns(rows, start, start + 1), const(0, dtype))
    return call("where", stays, rows, made)


def _take_rows(data: Expr, places: Expr, dtype: str) -> Expr:
    """Return the rows at places, -1 where a place is negative."""
    nowhere = const(0, "int32")
    found = call("take", data, call("maximum", places, nowhere), axis=1, batch_dims=1)
    gone = call("expand_dims", call("less", places, nowhere), axis=2)
    return call("where", gone, const(-1, dtype), found)


def _decompose_nms(data: Expr, *, nms: BoxSuppression) -> Expr:
    """Relay's suppression tells where the boxes are that stay; it needs positive scores."""
    type_ = data.type
    if not isinstance(type_, TensorType) or not isinstance(type_.shape[2], int):
        raise TypeInferenceError(f"needs rows of fixed width, found {type_!r}")
    if nms.iou_threshold < 0 or nms.score_threshold < 0:
        raise TypeInferenceError("a negative threshold has no decomposition")
    dtype, width = type_.dtype, type_.shape[2]
    score = columns(data, nms.score_index, nms.score_index + 1)
    class_ = score
    if nms.id_index >= 0:
        class_ = columns(data, nms.id_index, nms.id_index + 1)
        hidden = call("equal", class_, const(nms.background_id, dtype))
        score = call("where", hidden, const(-1, dtype), score)
    corners = _corners(columns(data, nms.coord_start, nms.coord_start + 4), nms.in_format, dtype)
    rows = call("concatenate", [class_, score, *corners], axis=2)
    counted = call(
        "vision.get_valid_counts", rows, const(nms.score_threshold, "float32"), id_index=-1,
        score_index=1,
    )  # fmt: skip
    kept = call(
        "vision.non_max_suppression",
        TupleGetItem(counted, 1),
        TupleGetItem(counted, 0),
        TupleGetItem(counted, 2),
        const(-1, "int32"),
        const(np.nextafter(np.float32(nms.iou_threshold), np.float32(np.inf)), "float32"),
        force_suppress=nms.force_suppress or nms.id_index < 0,
        top_k=nms.top_k,
    )
    result = _take_rows(data, TupleGetItem(kept, 0), dtype)
    if nms.in_format == nms.out_format:
        return result
    return _convert_boxes(result, nms.coord_start, nms.out_format, dtype, width)


_ROWS = np.array(
    [[[0, 0.8, 1, 20, 25, 45], [1, 0.7, 30, 60, 50, 80], [0, 0.4, 4, 21, 19, 40],
      [2, 0.9, 35, 61, 52, 79], [1, 0.5, 100, 60, 70, 110], [0, 0.1, 2, 20, 25, 45]],
     [[1, 0.2, 1, 1, 5, 5], [-1, 0.9, 1, 1, 5, 5], [1, 0.3, 1, 1, 4, 5], [2, 0.3, 1, 1, 4, 5],
      [1, 0.2, 3, 1, 6, 4], [1, 0.6, -3, 1, 6, 4]]], np.float32)  # fmt: skip


@relay_op(
    "serde.box_nms",
    traits=(pairs(), Float32(), Ordering, Cases("threshold", ranges.rows_suppressed())),
    infer=_nms_type,
    decompose=_decompose_nms,
    samples=[
        sample(_ROWS, id_index=0, top_k=4),
        sample(_ROWS, score_threshold=0.25, iou_threshold=0.2, id_index=0, background_id=1,
               out_format="center"),
        sample(_ROWS, id_index=0, force_suppress=True, in_format="center", out_format="corner"),
        sample(_ROWS[..., 1:], coord_start=1, score_index=0, iou_threshold=0.3),
    ],
)  # fmt: skip
def box_nms(data: Array, *, nms: BoxSuppression) -> Array:
    """The rows of the boxes that stay, the best of each image first, -1 behind them.

    A box takes part that scores above `score_threshold`, is not of the class `background_id` and
    among the best `top_k`, if that is positive. It goes if it overlaps with a better one that
    stays by more than `iou_threshold`, and both are of one class or `force_suppress` is set. A box
    is (left, top, right, bottom) or (x, y, width, height) around its centre; where the form
    changes, a box stays as it is whose first number is negative.
    """
    boxes = data[..., nms.coord_start : nms.coord_start + 4]
    result = np.full_like(data, -1)
    for image, rows in enumerate(data):
        marks = rows[:, nms.score_index]
        takes_part = marks > np.float32(nms.score_threshold)
        if nms.id_index >= 0:
            takes_part &= rows[:, nms.id_index] != nms.background_id
        order = np.flatnonzero(takes_part)
        order = order[np.argsort(-marks[order], kind="stable")]
        kept: list[int] = []
        for place in order[: nms.top_k] if nms.top_k > 0 else order:
            rivals = np.array(kept, np.int64)
            if nms.id_index >= 0 and not nms.force_suppress:
                rivals = rivals[rows[rivals, nms.id_index] == rows[place, nms.id_index]]
            found = _overlaps(boxes[image, place], boxes[image, rivals], nms.in_format)
            if not (found > np.float32(nms.iou_threshold)).any():
                kept.append(int(place))
        result[image, : len(kept)] = rows[kept]
    if nms.in_format != nms.out_format:
        _reform(result[..., nms.coord_start : nms.coord_start + 4], nms.out_format)
    return result


def _overlaps(box: Array, others: Array, form: str) -> Array:
    """Return the common part of a box and each of others, in parts of their union."""
    ends = []
    for each in (box, others):
        low, high = each[..., :2], each[..., 2:]
        size = high - low if form == "corner" else high
        if form == "center":
            low, high = low - size / each.dtype.type(2), low + size / each.dtype.type(2)
        ends.append((low, high, np.where((size < 0).any(-1), 0, size.prod(-1))))
    (low, high, area), (lows, highs, areas) = ends
    common = np.maximum(np.minimum(high, highs) - np.maximum(low, lows), 0).prod(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return common / (area + areas - common)


def _reform(boxes: Array, form: str) -> None:
    """Change the form of boxes in place."""
    low, high, two = boxes[..., :2], boxes[..., 2:], boxes.dtype.type(2)
    parts = [(low + high) / two, high - low]
    if form == "corner":
        parts = [low - high / two, low + high / two]
    boxes[...] = np.where(boxes[..., :1] < 0, boxes, np.concatenate(parts, -1))

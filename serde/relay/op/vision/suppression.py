"""Non-maximum suppression: of boxes that overlap, the best stays."""

from __future__ import annotations

from typing import Any as AnyValue, Literal, overload

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import TensorType, join_dim, ranges, require_float
from serde.relay.ir.expr import Constant, Expr, Tuple, TupleWrapper, const, tensor_type
from serde.relay.ir.registry import Arguments, Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.traits import Cases, Float32, Fractions, InRange, Ordering
from serde.relay.ir.work import pairs
from serde.relay.lowering.lengths import length_of
from serde.relay.op.shape.create import positions_along
from serde.relay.op.vision.rows import (
    column,
    columns,
    in_front,
    overlap_below,
    scalar,
    spread_by_class,
    stay_first,
    take_rows,
)

__all__ = ["Boxes", "Suppression", "require_scalars", "suppress"]


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """Attributes of ``vision.non_max_suppression``."""

    force_suppress: bool = False
    top_k: int = -1
    coord_start: int = 2
    score_index: int = 1
    id_index: int = 0
    return_indices: bool = True
    invalid_to_bottom: bool = False


class Boxes:
    """Boxes given by two opposite corners, in any order of these.

    Args:
        corners: ``(n, 4)``.
        extra: What belongs to a box beyond the difference of its edges.
    """

    def __init__(self, corners: Array, extra: float = 0) -> None:
        self.low = np.minimum(corners[:, :2], corners[:, 2:])
        self.high = np.maximum(corners[:, :2], corners[:, 2:]) + np.asarray(extra, corners.dtype)
        self.areas = (self.high - self.low).prod(1)

    def overlaps(self, index: int, others: Array) -> Array:
        """Return the common part of one box and each of some others, in parts of their union."""
        low = np.maximum(self.low[index], self.low[others])
        high = np.minimum(self.high[index], self.high[others])
        common = np.maximum(high - low, 0).prod(1)
        union = self.areas[index] + self.areas[others] - common
        return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def suppress(
    boxes: Boxes,
    threshold: float,
    *,
    strict: bool,
    limit: int | None = None,
    classes: Array | None = None,
) -> list[int]:
    """Return the boxes that stay, from the first on, which is the best.

    Args:
        boxes: In order of their scores.
        threshold: Overlap with a box that stays, from which on a box goes.
        strict: Whether it goes only above the threshold.
        limit: How many may stay.
        classes: Class of each box; others do not count as overlapping. None if all are of one.
    """
    kept: list[int] = []
    for index in range(len(boxes.areas)):
        if limit is not None and len(kept) >= limit:
            break
        others = np.array(kept, np.int64)
        if classes is not None:
            others = others[classes[others] == classes[index]]
        found = boxes.overlaps(index, others)
        bound = found.dtype.type(threshold)
        if not (found > bound if strict else found >= bound).any():
            kept.append(index)
    return kept


def require_scalars(*operands: TensorType) -> None:
    """Refuse what is no scalar."""
    for operand in operands:
        if operand.rank:
            raise TypeInferenceError(f"expected a scalar, found {operand!r}")


def _valid_counts_type(
    data: TensorType, score_threshold: TensorType, **attrs: AnyValue
) -> list[TensorType]:
    require_scalars(score_threshold)
    if data.rank != 3:
        raise TypeInferenceError(f"expected rows of boxes of each image, found {data!r}")
    _require_columns(data, score_index=attrs["score_index"], id_index=attrs["id_index"])
    batch, count, _ = data.shape
    return [TensorType((batch,), "int32"), data, TensorType((batch, count), "int32")]


def _require_columns(data: TensorType, *, id_index: int, **indices: int) -> None:
    width = data.shape[2]
    bound = width if isinstance(width, int) else np.inf
    for name, place in {**indices, "id_index": max(id_index, 0)}.items():
        if not 0 <= place < bound:
            raise TypeInferenceError(f"{name} {place} is outside rows of {width}")


def _decompose_valid_counts(
    data: Expr, score_threshold: Expr, *, id_index: int, score_index: int
) -> Expr:
    dtype = tensor_type(data).dtype
    valid = call("greater", column(data, score_index), call("cast", score_threshold, dtype=dtype))
    if id_index >= 0:
        known = call("greater_equal", column(data, id_index), const(0, dtype))
        valid = call("logical_and", valid, known)
    order, shown = stay_first(valid)
    counts = call("sum", call("cast", valid, dtype="int32"), axis=(1,))
    places = call("where", shown, call("cast", order, dtype="int32"), const(-1, "int32"))
    return Tuple([counts, in_front(data, order, shown), places])


@relay_op(
    "vision.get_valid_counts",
    traits=(Float32(), Ordering, Cases("threshold", ranges.scores_valid)),
    infer=_valid_counts_type,
    decompose=_decompose_valid_counts,
    meta_class="relay.attrs.GetValidCountsAttrs",
    samples=[
        sample((2, 7, 6), np.float32(0.1)),
        sample((2, 5, 5), np.float32(-0.5), id_index=-1, score_index=0),
    ],
    arguments=Arguments(convert={"score_threshold": lambda value: scalar(value, "float32")}),
)
def get_valid_counts(
    data: Array, score_threshold: Array, *, id_index: int = 0, score_index: int = 1
) -> tuple[Array, Array, Array]:
    """How many rows score more than a threshold and have a class; these rows; their places.

    They come first in their order, -1 follows. A negative class is none; a negative `id_index`
    means that there are no classes.
    """
    valid = data[..., score_index] > score_threshold
    if id_index >= 0:
        valid &= data[..., id_index] >= 0
    order = np.argsort(~valid, 1, kind="stable")
    first = np.take_along_axis(valid, order, 1)
    rows = np.take_along_axis(data, order[..., None], 1)
    result = np.where(first[..., None], rows, np.asarray(-1, data.dtype))
    places = np.where(first, order, -1).astype(np.int32)
    return valid.sum(1).astype(np.int32), result, places


def _nms_type(
    data: TensorType,
    valid_count: TensorType,
    indices: TensorType,
    max_output_size: TensorType,
    iou_threshold: TensorType,
    *,
    nms: Suppression,
) -> TensorType | list[TensorType]:
    """The columns named must exist; results are places or rows by `return_indices`."""
    require_scalars(max_output_size, iou_threshold)
    require_float(data)
    # TVM does not look at the places where it is not asked for places.
    if data.rank != 3 or valid_count.rank != 1 or (nms.return_indices and indices.rank != 2):
        raise TypeInferenceError(
            "expected rows of boxes, their numbers and places, found "
            f"{data!r}, {valid_count!r} and {indices!r}"
        )
    _require_columns(
        data, id_index=nms.id_index, score_index=nms.score_index, coord_start=nms.coord_start,
        last_coordinate=nms.coord_start + 3,
    )  # fmt: skip
    if not nms.return_indices:
        return data
    batch = join_dim(data.shape[0], join_dim(valid_count.shape[0], indices.shape[0]))
    count = join_dim(data.shape[1], indices.shape[1])
    return [TensorType((batch, count), "int32"), TensorType((batch, 1), "int32")]


def _decompose_nms(
    data: Expr,
    valid_count: Expr,
    indices: Expr,
    max_output_size: Expr,
    iou_threshold: Expr,
    *,
    nms: Suppression,
) -> Expr:
    """Boxes are sorted first; ranks in place of scores keep the order where scores are equal."""
    dtype = tensor_type(data).dtype
    bound, none = call("cast", iou_threshold, dtype="float32"), const(-1, dtype)
    active: Expr | None = call("greater", bound, const([0], "float32"))
    if isinstance(iou_threshold, Constant) and iou_threshold.data > 0:
        active = None
    places = positions_along(data, 1, "int64")
    count = call("expand_dims", call("cast", valid_count, dtype="int64"), axis=1)
    taken = call("less", places, count)
    keys = call("where", taken, column(data, nms.score_index), const(-np.inf, dtype))
    order: Expr = call("argsort", keys, axis=1, is_ascend=False, dtype="int64")
    if active is not None:
        order = call("where", active, order, places)
    if nms.top_k > 0:
        best = call("less", places, const(nms.top_k, "int64"))
        if active is not None:
            best = call("logical_or", best, call("logical_not", active))
        taken = call("logical_and", taken, best)
    rows = call("where", call("expand_dims", taken, axis=2), take_rows(data, order), none)
    positive = call("greater", column(rows, nms.score_index), const(0, dtype))
    takes_part = call("logical_and", taken, positive)
    length = length_of(data, 1, "int64")
    ranks = call("cast", call("subtract", length, places), dtype="float32")
    marks: Expr = call("where", takes_part, ranks, const(-1, "float32"))
    marks = call("expand_dims", marks, axis=1)
    if nms.id_index >= 0 and not nms.force_suppress:
        marks = spread_by_class(marks, column(rows, nms.id_index))
    corners = columns(rows, nms.coord_start, nms.coord_start + 4)
    kept = _select(corners, marks, length, bound, call("zeros_like", order))
    dropped = call("logical_and", takes_part, call("equal", kept, const(0, "int64")))
    if not isinstance(max_output_size, Constant) or max_output_size.data >= 0:
        most = call("cast", max_output_size, dtype="int64")
        dropped = call("logical_or", dropped, _is_late(kept, most))
    if active is not None:
        dropped = call("logical_and", dropped, active)
    if nms.return_indices:
        stays = call("logical_and", taken, call("logical_not", dropped))
        found = take_rows(call("cast", indices, dtype="int32"), order)
        stays = call("logical_and", stays, call("greater_equal", found, const(0, "int32")))
        number = call("sum", call("cast", stays, dtype="int32"), axis=(1,), keepdims=True)
        return Tuple([in_front(found, *stay_first(stays)), number])
    rows = call("where", call("expand_dims", dropped, axis=2), none, rows)
    if not nms.invalid_to_bottom:
        return rows
    stays = call("greater_equal", column(rows, 0), const(0, dtype))
    return in_front(rows, *stay_first(stays))


def _select(corners: Expr, marks: Expr, most: Expr, bound: Expr, nothing: Expr) -> Expr:
    """Return `nothing` with 1 for each box that stays of its class; float16 is widened."""
    if tensor_type(corners).dtype == "float16":
        corners = call("cast", corners, dtype="float32")
    limits = (most, overlap_below(bound), const(0, "float32"))
    found = call("serde.non_max_suppression", corners, marks, *limits)
    image, box = (call("take", found, const(n, "int64"), axis=1, mode="fast") for n in (0, 2))
    return call(
        "scatter_nd", nothing, call("stack", [image, box], axis=0), call("ones_like", image)
    )


def _is_late(kept: Expr, limit: Expr) -> Expr:
    """Return which rows are behind the last that may stay; a negative limit is none."""
    late = call("greater_equal", call("cumsum", kept, axis=1, exclusive=True), limit)
    return call("logical_and", late, call("greater_equal", limit, const([0], "int64")))


_ROWS = np.array(
    [[[0, 0.8, 1, 20, 25, 45], [1, 0.7, 30, 60, 50, 80], [0, 0.4, 4, 21, 19, 40],
      [2, 0.9, 35, 61, 52, 79], [1, 0.5, 100, 60, 70, 110]]], np.float32)  # fmt: skip
_COUNT = np.array([4], np.int32)
_PLACES = np.array([[0, 1, 3, 4, -1]], np.int32)
_LIMITS = (np.int32(-1), np.float32(0.5))


@relay_op(
    "vision.non_max_suppression",
    traits=(
        pairs(0, 4),
        Float32(),
        Ordering,
        Fractions(4),
        Cases("threshold", ranges.rows_suppressed(1)),
        InRange(ranges.along_operand(1, 0, 1, least=1)),
    ),
    infer=_nms_type,
    decompose=_decompose_nms,
    meta_class="relay.attrs.NonMaximumSuppressionAttrs",
    samples=[
        sample(_ROWS, _COUNT, _PLACES, *_LIMITS, force_suppress=True, top_k=2),
        sample(_ROWS, _COUNT, _PLACES, *_LIMITS, return_indices=False, invalid_to_bottom=True),
        sample(
            tensor((2, 6, 5), low=0.0),
            np.array([6, 3], np.int32),
            tensor((2, 6), "int32", low=0, high=5),
            np.int32(2),
            np.float32(0.3),
            coord_start=1,
            score_index=0,
            id_index=-1,
            return_indices=False,
        ),
        sample(_ROWS, _COUNT, _PLACES, np.int32(-1), np.float32(0)),
        *(sample(tensor((2, 6, 6), low=0.0), np.array([6, 3], np.int32), unused, *_LIMITS,
                 return_indices=False)
          for unused in (tensor((2, 6, 6)), np.array([6, 3], np.int32))),
    ],
)  # fmt: skip
def non_max_suppression(
    data: Array,
    valid_count: Array,
    indices: Array,
    max_output_size: Array,
    iou_threshold: Array,
    *,
    nms: Suppression,
) -> Array | tuple[Array, ...]:
    """The rows in order of their scores, those suppressed -1; or the places of those that stay.

    Of each image the first `valid_count` rows count, and of these the best `top_k`, if positive;
    at most `max_output_size` stay, if that is not negative. A row goes whose overlap with one
    that stays is at least the threshold, if both are of one class or `force_suppress` is set; no
    row goes for a threshold that is not positive. A row without a positive score takes no part
    and is left as it is. With `invalid_to_bottom` the rows that stay come first. Where rows are
    asked for, `indices` may be anything, as callers of TVM pass the rows once more.
    """
    rows = np.full_like(data, -1)
    places = np.full(data.shape[:2], -1, np.int32)
    indices = indices if nms.return_indices else places
    for image, count in enumerate(valid_count):
        number = int(count)
        order = np.arange(number)
        if iou_threshold > 0:
            order = np.argsort(-data[image, :number, nms.score_index], kind="stable")
            order = order[: nms.top_k if 0 < nms.top_k < number else number]
        rows[image, : len(order)] = data[image, order]
        places[image, : len(order)] = indices[image, order]
        if iou_threshold > 0:
            gone = _find_suppressed(
                rows[image, : len(order)],
                int(max_output_size),
                float(iou_threshold),
                slice(nms.coord_start, nms.coord_start + 4),
                nms.score_index,
                None if nms.force_suppress or nms.id_index < 0 else nms.id_index,
            )
            rows[image, gone] = -1
            places[image, gone] = -1
    if not nms.return_indices:
        return _first(rows, rows[..., 0] >= 0) if nms.invalid_to_bottom else rows
    stays = places >= 0
    return _first(places, stays), stays.sum(1, keepdims=True).astype(np.int32)


def _find_suppressed(
    rows: Array, limit: int, threshold: float, corners: slice, score: int, class_: int | None
) -> Array:
    """Return the places of the rows that go."""
    active = np.flatnonzero(rows[:, score] > 0)
    taking = rows[active]
    kept = suppress(
        Boxes(taking[:, corners]),
        threshold,
        strict=False,
        limit=limit if limit >= 0 else None,
        classes=None if class_ is None else taking[:, class_],
    )
    gone = np.delete(active, kept)
    if limit >= 0 and len(kept) >= limit:
        last = active[kept[-1]] if kept else -1
        gone = np.union1d(gone, np.arange(last + 1, len(rows)))
    return gone


def _first(data: Array, stays: Array) -> Array:
    """Return the entries of each image that stay in front, -1 behind them."""
    order = np.argsort(~stays, 1, kind="stable")
    mask = np.take_along_axis(stays, order, 1)
    if data.ndim == 3:
        order, mask = order[..., None], mask[..., None]
    return np.where(mask, np.take_along_axis(data, order, 1), np.asarray(-1, data.dtype))


@overload
def build_non_max_suppression(
    data: Expr, valid_count: Expr, indices: Expr, max_output_size: AnyValue = -1,
    iou_threshold: AnyValue = 0.5, force_suppress: bool = False, top_k: int = -1,
    coord_start: int = 2, score_index: int = 1, id_index: int = 0,
    return_indices: Literal[True] = True, invalid_to_bottom: bool = False,
) -> TupleWrapper: ...  # fmt: skip
@overload
def build_non_max_suppression(
    data: Expr, valid_count: Expr, indices: Expr, max_output_size: AnyValue = -1,
    iou_threshold: AnyValue = 0.5, force_suppress: bool = False, top_k: int = -1,
    coord_start: int = 2, score_index: int = 1, id_index: int = 0,
    *, return_indices: Literal[False], invalid_to_bottom: bool = False,
) -> Expr: ...  # fmt: skip
@overload
def build_non_max_suppression(
    data: Expr, valid_count: Expr, indices: Expr, max_output_size: AnyValue = -1,
    iou_threshold: AnyValue = 0.5, force_suppress: bool = False, top_k: int = -1,
    coord_start: int = 2, score_index: int = 1, id_index: int = 0,
    return_indices: bool = True, invalid_to_bottom: bool = False,
) -> Expr | TupleWrapper: ...  # fmt: skip
@builder("vision.non_max_suppression")
def build_non_max_suppression(
    data: Expr, valid_count: Expr, indices: Expr, max_output_size: AnyValue = -1,
    iou_threshold: AnyValue = 0.5, force_suppress: bool = False, top_k: int = -1,
    coord_start: int = 2, score_index: int = 1, id_index: int = 0, return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Expr | TupleWrapper:  # fmt: skip
    """Build ``vision.non_max_suppression``; limit and threshold are numbers or expressions."""
    result = call(
        "vision.non_max_suppression", data, valid_count, indices, scalar(max_output_size, "int32"),
        scalar(iou_threshold, "float32"), force_suppress=force_suppress, top_k=top_k,
        coord_start=coord_start, score_index=score_index, id_index=id_index,
        return_indices=return_indices, invalid_to_bottom=invalid_to_bottom,
    )  # fmt: skip
    return TupleWrapper(result, 2) if return_indices else result

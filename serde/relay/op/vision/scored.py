"""Region proposals with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir.expr import Expr, Tuple, TupleGetItem, const
from serde.relay.ir.registry import Array, call, relay_op
from serde.relay.ir.traits import Ordering
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import BY_VALUES
from serde.relay.op.vision.proposal import PROPOSALS, base_anchors, proposal_type, propose

__all__: list[str] = []


def _decompose_scored(
    cls_prob: Expr,
    bbox_pred: Expr,
    im_info: Expr,
    *,
    scales: Sequence[float],
    ratios: Sequence[float],
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> Expr:
    """The places of the boxes that stay tell their scores too; ranks stand for these meanwhile."""
    type_ = cls_prob.type
    space = type_.shape[2:] if isinstance(type_, TensorType) else ()
    if not isinstance(type_, TensorType) or not all(isinstance(n, int) for n in space):
        raise TypeInferenceError(f"needs a fixed shape to lay out anchors, found {type_!r}")
    if threshold < 0:
        raise TypeInferenceError("a negative threshold has no decomposition")
    height, width = (n for n in space if isinstance(n, int))
    base, dtype = base_anchors(ratios, scales, feature_stride), type_.dtype
    places = np.indices((height, width)).reshape(2, -1).repeat(len(base), 1)
    anchors = np.tile(base, (height * width, 1)) + places[[1, 0, 1, 0]].T * feature_stride
    boxes = _clip_boxes(
        _decode_boxes(bbox_pred, anchors, (height, width), iou_loss, dtype), im_info
    )
    objects = _slice(cls_prob, len(base), 2 * len(base), 1)
    marks = call("reshape", call("transpose", objects, axes=(0, 2, 3, 1)), newshape=(0, -1))
    boxes, small = _enlarge(boxes, im_info, rpn_min_size, dtype)
    for axis in (0, 1):
        size = call("divide", _slice(im_info, axis, axis + 1, 1), const(feature_stride, dtype))
        outside = call("greater_equal", const(places[axis][None], dtype), call("floor", size))
        small = call("logical_or", small, outside)
    marks = call("where", small, const(-1, dtype), marks)
    order: Expr = call("argsort", marks, axis=1, is_ascend=False, dtype="int32")
    most = len(anchors)
    if 0 < rpn_pre_nms_top_n < most:
        most = rpn_pre_nms_top_n
        order = _slice(order, 0, most, 1)
    best = _take_along(boxes, order)
    kept = _suppress_overlaps(best, order, most, threshold, dtype)
    turns = const(np.arange(rpn_post_nms_top_n)[None], "int32")
    turn = call("floor_mod", turns, TupleGetItem(kept, 1))
    chosen = _take_along(TupleGetItem(kept, 0), turn)
    scores = call("expand_dims", _take_along(_take_along(marks, order), chosen), axis=2)
    images = call("cumsum", call("ones_like", scores), axis=0, exclusive=True)
    rows = call("concatenate", [images, _take_along(best, chosen)], axis=2)
    return Tuple(
        [call("reshape", rows, newshape=(-1, 5)), call("reshape", scores, newshape=(-1, 1))]
    )


def _slice(x: Expr, begin: int, end: int, axis: int) -> Expr:
    return call("strided_slice", x, begin=[begin], end=[end], strides=[1], axes=[axis])


def _take_along(x: Expr, places: Expr) -> Expr:
    return call("take", x, places, axis=1, batch_dims=1, mode="fast")


def _decode_boxes(
    bbox_pred: Expr, anchors: Array, space: tuple[int, int], iou_loss: bool, dtype: str
) -> Expr:
    """Return ``(n, anchors, 4)`` of the boxes that offsets make of the anchors."""
    apart = call("reshape", bbox_pred, newshape=(0, -1, 4, *space))
    offsets = call("transpose", apart, axes=(0, 3, 4, 1, 2))
    offsets = call("reshape", offsets, newshape=(0, -1, 4))
    if iou_loss:
        return call("add", offsets, const(anchors[None], dtype))
    size = anchors[:, 2:] - anchors[:, :2] + 1
    middle = const((anchors[:, :2] + (size - 1) / 2)[None], dtype)
    wide, half = const(size[None], dtype), const(0.5, dtype)
    centre = call("add", call("multiply", _slice(offsets, 0, 2, 2), wide), middle)
    grown = call("multiply", call("exp", _slice(offsets, 2, 4, 2)), wide)
    reach = call("multiply", call("subtract", grown, const(1, dtype)), half)
    ends = [call("subtract", centre, reach), call("add", centre, reach)]
    return call("concatenate", ends, axis=2)


def _clip_boxes(boxes: Expr, im_info: Expr) -> Expr:
    """Return boxes within the images, whose heights come before their widths."""
    dtype = im_info.type.dtype if isinstance(im_info.type, TensorType) else "float32"
    ends = call("take", im_info, const(np.array([1, 0, 1, 0]), "int32"), axis=1, mode="fast")
    last = call("expand_dims", call("subtract", ends, const(1, dtype)), axis=1)
    return call("maximum", call("minimum", boxes, last), const(0, dtype))


def _enlarge(boxes: Expr, im_info: Expr, least: int, dtype: str) -> tuple[Expr, Expr]:
    """Return boxes, those that are too small being enlarged, and which are."""
    bound = call("multiply", _slice(im_info, 2, 3, 1), const(least, dtype))
    bound = call("expand_dims", bound, axis=2)
    size = call("subtract", _slice(boxes, 2, 4, 2), _slice(boxes, 0, 2, 2))
    short = call("less", call("add", size, const(1, dtype)), bound)
    small = call("any", short, axis=(2,), keepdims=True)
    more = call("multiply", bound, const(np.array([-0.5, -0.5, 0.5, 0.5]), dtype))
    wider = call("where", small, call("add", boxes, more), boxes)
    return wider, call("squeeze", small, axis=(2,))


def _suppress_overlaps(best: Expr, order: Expr, most: int, threshold: float, dtype: str) -> Expr:
    """Return the places of the boxes that stay, and how many; edges belong to a box."""
    low, high = _slice(best, 0, 2, 2), _slice(best, 2, 4, 2)
    beyond = call("add", call("maximum", low, high), const(1, dtype))
    marks = const(np.arange(most, 0, -1).reshape(1, -1, 1), dtype)
    ranks = call("broadcast_to_like", marks, _slice(best, 0, 1, 2))
    rows = call("concatenate", [ranks, call("minimum", low, high), beyond], axis=2)
    numbers = const(np.arange(most)[None], "int32")
    places = call("broadcast_to_like", numbers, order)
    counts = call("sum", call("ones_like", order), axis=(1,))
    return call(
        "vision.non_max_suppression",
        rows,
        counts,
        places,
        const(-1, "int32"),
        const(np.nextafter(np.float32(threshold), np.float32(np.inf)), "float32"),
        coord_start=1,
        score_index=0,
        id_index=-1,
    )


def _scored_type(
    cls_prob: TensorType, bbox_pred: TensorType, im_info: TensorType, **attrs: AnyValue
) -> list[TensorType]:
    rows = proposal_type(cls_prob, bbox_pred, im_info, **attrs)
    return [rows, TensorType((rows.shape[0], 1), rows.dtype)]


@relay_op(
    "serde.scored_proposal",
    traits=(
        BY_VALUES,
        Ordering,
    ),
    infer=_scored_type,
    decompose=_decompose_scored,
    samples=PROPOSALS,
)
def scored_proposal(
    cls_prob: Array,
    bbox_pred: Array,
    im_info: Array,
    *,
    scales: tuple[float, ...] = (4.0, 8.0, 16.0, 32.0),
    ratios: tuple[float, ...] = (0.5, 1.0, 2.0),
    feature_stride: int = 16,
    threshold: float = 0.7,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    rpn_min_size: int = 16,
    iou_loss: bool = False,
) -> tuple[Array, Array]:
    """The boxes of ``vision.proposal`` and the score of each, one a row."""
    return propose(
        cls_prob, bbox_pred, im_info, scales=scales, ratios=ratios, feature_stride=feature_stride,
        threshold=threshold, rpn_pre_nms_top_n=rpn_pre_nms_top_n,
        rpn_post_nms_top_n=rpn_post_nms_top_n, rpn_min_size=rpn_min_size, iou_loss=iou_loss,
    )  # fmt: skip

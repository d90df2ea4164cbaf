"""Region proposals, with their scores too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, Float32, Ordering, Tuple, TupleGetItem, const, tensor_type
from serde.relay.ir.registry import Arguments, Array, call, relay_op, sample
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import BY_VALUES
from serde.relay.lowering.lengths import length_of
from serde.relay.op.shape.create import positions_along
from serde.relay.op.vision.rows import columns, corners_of, take_rows
from serde.relay.op.vision.suppression import Boxes, suppress

__all__ = ["Proposal"]


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Attributes of ``vision.proposal`` and ``serde.scored_proposal``."""

    scales: tuple[float, ...] = (4.0, 8.0, 16.0, 32.0)
    ratios: tuple[float, ...] = (0.5, 1.0, 2.0)
    feature_stride: int = 16
    threshold: float = 0.7
    rpn_pre_nms_top_n: int = 6000
    rpn_post_nms_top_n: int = 300
    rpn_min_size: int = 16
    iou_loss: bool = False


def _proposal_type(
    cls_prob: TensorType, bbox_pred: TensorType, im_info: TensorType, *, proposal: Proposal
) -> TensorType:
    """Return the type of proposals: (images * boxes of each, 5)."""
    require_float(cls_prob)
    dtype = require_same_dtype(cls_prob, bbox_pred, im_info)
    if cls_prob.rank != 4 or bbox_pred.rank != 4 or im_info.rank != 2:
        raise TypeInferenceError(
            "expected scores, offsets and sizes of images, found "
            f"{cls_prob!r}, {bbox_pred!r} and {im_info!r}"
        )
    anchors = len(proposal.scales) * len(proposal.ratios)
    wanted: tuple[Dim, ...] = (2 * anchors, 4 * anchors, 3)
    found = (cls_prob.shape[1], bbox_pred.shape[1], im_info.shape[1])
    for a, b in (*zip(wanted, found, strict=True), (cls_prob.shape[0], im_info.shape[0])):
        join_dim(a, b)
    for axis in (0, 2, 3):
        join_dim(cls_prob.shape[axis], bbox_pred.shape[axis])
    if proposal.feature_stride < 1 or proposal.rpn_post_nms_top_n < 1:
        raise TypeInferenceError(
            f"feature_stride {proposal.feature_stride} and "
            f"rpn_post_nms_top_n {proposal.rpn_post_nms_top_n} "
            "must be positive"
        )
    return TensorType((cls_prob.shape[0] * proposal.rpn_post_nms_top_n, 5), dtype)


def _base_anchors(ratios: Sequence[float], scales: Sequence[float], base: int) -> Array:
    """Return (left, top, right, bottom) of each ratio and scale; edges belong to a box."""
    boxes = []
    for ratio in ratios:
        plain = np.floor(np.sqrt(np.floor(base * base / ratio)) + 0.5)
        for scale in scales:
            half = np.array([plain * scale - 1, np.floor(plain * ratio + 0.5) * scale - 1]) / 2
            centre = (base - 1) / 2
            boxes.append(np.concatenate([centre - half, centre + half]))
    return np.array(boxes)


def _decode_boxes(anchors: Array, offsets: Array, iou_loss: bool) -> Array:
    if iou_loss:
        return anchors + offsets
    size = anchors[..., 2:] - anchors[..., :2] + 1
    centre = anchors[..., :2] + (size - 1) / 2 + offsets[..., :2] * size
    half = (np.exp(offsets[..., 2:]) * size - 1) / 2
    return np.concatenate([centre - half, centre + half], -1)


_WORK: Final = "float64"
"""Boxes are computed in it whatever the dtype of the operands."""


def _decompose_scored(
    cls_prob: Expr, bbox_pred: Expr, im_info: Expr, *, proposal: Proposal
) -> Tuple:
    """The places of the boxes that stay tell their scores too; ranks stand for these meanwhile."""
    base = _base_anchors(proposal.ratios, proposal.scales, proposal.feature_stride)
    count, dtype = len(base), tensor_type(cls_prob).dtype
    cells = [
        call("expand_dims", positions_along(cls_prob, axis, _WORK), axis=1, num_newaxis=4 - axis)
        for axis in (2, 3)
    ]
    info = call("cast", im_info, dtype=_WORK)
    boxes = _clip(
        _predict(bbox_pred, base, cells, proposal.feature_stride, proposal.iou_loss), info
    )
    boxes, small = _enlarge(boxes, info, proposal.rpn_min_size)
    for axis, cell in enumerate(cells):
        size = call(
            "divide", columns(info, axis, axis + 1, 1), const(proposal.feature_stride, _WORK)
        )
        end = call("expand_dims", call("floor", size), axis=1, num_newaxis=2)
        small = call("logical_or", small, call("greater_equal", cell, end))
    objects = call("transpose", columns(cls_prob, count, 2 * count, 1), axes=(0, 2, 3, 1))
    marks = call("where", small, const(-1, dtype), objects)
    marks = call("reshape", marks, newshape=(0, -1))
    order: Expr = call("argsort", marks, axis=1, is_ascend=False, dtype="int64")
    order = (
        columns(order, 0, proposal.rpn_pre_nms_top_n, 1)
        if proposal.rpn_pre_nms_top_n > 0
        else order
    )
    boxes = call("reshape", boxes, newshape=(0, -1, 4))
    kept = _suppress_overlaps(take_rows(boxes, order), order, proposal.threshold)
    turns = const(np.arange(proposal.rpn_post_nms_top_n)[None], "int32")
    turn = call("floor_mod", turns, TupleGetItem(kept, 1))
    chosen = take_rows(TupleGetItem(kept, 0), turn)
    found = call("cast", take_rows(boxes, chosen), dtype=dtype)
    scores = call("expand_dims", take_rows(marks, chosen), axis=2)
    images = call("cumsum", call("ones_like", scores), axis=0, exclusive=True)
    rows = call("concatenate", [images, found], axis=2)
    flat = (call("reshape", x, newshape=(-1, n)) for x, n in ((rows, 5), (scores, 1)))
    return Tuple(flat)


def _predict(
    bbox_pred: Expr, base: Array, cells: Sequence[Expr], stride: int, iou_loss: bool
) -> Expr:
    """Return ``(n, height, width, anchors, 4)`` of the boxes that offsets make of the anchors."""
    offsets = call("reshape", bbox_pred, newshape=(0, -4, len(base), 4, 0, 0))
    offsets = call("cast", call("transpose", offsets, axes=(0, 3, 4, 1, 2)), dtype=_WORK)
    places = [call("expand_dims", each, axis=-1) for each in cells]
    ways = (const(stride * np.array(each), _WORK) for each in ((0, 1, 0, 1), (1, 0, 1, 0)))
    shifts = call("add", *(call("multiply", at, way) for at, way in zip(places, ways, strict=True)))
    if iou_loss:
        return call("add", call("add", shifts, const(base, _WORK)), offsets)
    size = base[:, 2:] - base[:, :2] + 1
    middle, wide = const(base[:, :2] + (size - 1) / 2, _WORK), const(size, _WORK)
    (shift, _), (near, far) = corners_of(shifts), corners_of(offsets)
    centre = call("add", call("add", shift, middle), call("multiply", near, wide))
    grown = call("multiply", call("exp", far), wide)
    reach = call("multiply", call("subtract", grown, const(1, _WORK)), const(0.5, _WORK))
    ends = [call("subtract", centre, reach), call("add", centre, reach)]
    return call("concatenate", ends, axis=-1)


def _clip(boxes: Expr, info: Expr) -> Expr:
    """Return boxes within the images, whose heights come before their widths."""
    ends = call("take", info, const(np.array([1, 0, 1, 0]), "int64"), axis=1, mode="fast")
    last = call("subtract", ends, const(1, _WORK))
    last = call("expand_dims", last, axis=1, num_newaxis=3)
    return call("maximum", call("minimum", boxes, last), const(0, _WORK))


def _enlarge(boxes: Expr, info: Expr, least: int) -> tuple[Expr, Expr]:
    """Return boxes, those that are too small being enlarged, and which are."""
    bound = call("multiply", columns(info, 2, 3, 1), const(least, _WORK))
    bound = call("expand_dims", bound, axis=1, num_newaxis=3)
    low, high = corners_of(boxes)
    size = call("add", call("subtract", high, low), const(1, _WORK))
    small = call("any", call("less", size, bound), axis=(-1,), keepdims=True)
    more = call("multiply", bound, const(np.array([-0.5, -0.5, 0.5, 0.5]), _WORK))
    wider = call("where", small, call("add", boxes, more), boxes)
    return wider, call("squeeze", small, axis=(-1,))


def _suppress_overlaps(best: Expr, order: Expr, threshold: float) -> Expr:
    """Return the places of the boxes that stay, and how many; edges belong to a box.

    Of a negative threshold the first box alone stays.
    """
    low, high = corners_of(best)
    beyond = call("add", call("maximum", low, high), const(1, _WORK))
    counts = call("sum", call("ones_like", order), axis=(1,))
    ranks = call("subtract", length_of(order, 1, "int64"), positions_along(order, 1, "int64"))
    ranks = call("broadcast_to_like", ranks, order)
    parts = [call("expand_dims", ranks, axis=2), call("minimum", low, high), beyond]
    return call(
        "vision.non_max_suppression",
        call("concatenate", [call("cast", each, dtype="float32") for each in parts], axis=2),
        counts,
        order,
        const(-1 if threshold >= 0 else 1, "int32"),
        const(np.nextafter(np.float32(max(threshold, 0)), np.float32(np.inf)), "float32"),
        coord_start=1,
        score_index=0,
        id_index=-1,
    )


def _decompose_proposal(*operands: Expr, proposal: Proposal) -> Expr:
    return _decompose_scored(*operands, proposal=proposal).fields[0]


_NET = {"scales": [8.0], "feature_stride": 16, "rpn_post_nms_top_n": 4, "rpn_min_size": 4}

_PROPOSALS = [
    sample((1, 6, 3, 4), (1, 12, 3, 4), np.array([[48, 64, 1]], np.float32), **_NET,
           rpn_pre_nms_top_n=9),
    sample((2, 2, 4, 4), (2, 4, 4, 4), np.array([[60, 40, 0.5], [64, 64, 1]], np.float32),
           scales=[1.0], ratios=[1.0], rpn_post_nms_top_n=40, threshold=0.3, iou_loss=True),
]  # fmt: skip


@relay_op(
    "vision.proposal",
    traits=(BY_VALUES, Float32(), Ordering),
    infer=_proposal_type,
    decompose=_decompose_proposal,
    meta_class="relay.attrs.ProposalAttrs",
    samples=_PROPOSALS,
    arguments=Arguments(
        required=(
            "scales",
            "ratios",
            "feature_stride",
            "threshold",
            "rpn_pre_nms_top_n",
            "rpn_post_nms_top_n",
            "rpn_min_size",
            "iou_loss",
        )
    ),
)
def proposal(cls_prob: Array, bbox_pred: Array, im_info: Array, *, proposal: Proposal) -> Array:
    """The best boxes of each image as (image, left, top, right, bottom), overlaps suppressed.

    `im_info` is height, width and scale of each image. A box smaller than `rpn_min_size` at that
    scale is enlarged by it and scores -1, as one outside the image does. If there are too few,
    they are repeated in turn.
    """
    return _propose(cls_prob, bbox_pred, im_info, proposal=proposal)[0]


def _propose(
    cls_prob: Array, bbox_pred: Array, im_info: Array, *, proposal: Proposal
) -> tuple[Array, Array]:
    """Return the rows of :func:`proposal` and the score of each, ``(rows, 1)``."""
    base = _base_anchors(proposal.ratios, proposal.scales, proposal.feature_stride)
    count, (height, width) = len(base), cls_prob.shape[2:]
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1) * proposal.feature_stride
    anchors = np.concatenate([grid, grid], -1)[:, :, None] + base
    out, found = [], []
    for image, (scores, offsets, info) in enumerate(
        zip(cls_prob, bbox_pred, im_info.astype(np.float64), strict=True)
    ):
        moved = offsets.astype(np.float64).reshape(count, 4, height, width).transpose(2, 3, 0, 1)
        boxes = _decode_boxes(anchors, moved, proposal.iou_loss)
        boxes = np.maximum(np.minimum(boxes, info[[1, 0, 1, 0]] - 1), 0)
        marks = scores[count:].transpose(1, 2, 0).astype(np.float64)
        marks[int(info[0] / proposal.feature_stride) :] = -1
        marks[:, int(info[1] / proposal.feature_stride) :] = -1
        least = info[2] * proposal.rpn_min_size
        small = (boxes[..., 2:] - boxes[..., :2] + 1 < least).any(-1)
        boxes[small] += np.array([-1, -1, 1, 1]) * least / 2
        marks[small] = -1
        order = np.argsort(-marks.reshape(-1), kind="stable")
        order = order[: proposal.rpn_pre_nms_top_n] if proposal.rpn_pre_nms_top_n > 0 else order
        best = boxes.reshape(-1, 4)[order]
        kept = suppress(Boxes(best, extra=1), proposal.threshold, strict=True)
        chosen = np.resize(kept, proposal.rpn_post_nms_top_n)
        out.append(np.insert(best[chosen], 0, image, 1))
        found.append(marks.reshape(-1, 1)[order[chosen]])
    dtype = cls_prob.dtype
    return np.concatenate(out).astype(dtype), np.concatenate(found).astype(dtype)


def _scored_type(
    cls_prob: TensorType, bbox_pred: TensorType, im_info: TensorType, *, proposal: Proposal
) -> list[TensorType]:
    rows = _proposal_type(cls_prob, bbox_pred, im_info, proposal=proposal)
    return [rows, TensorType((rows.shape[0], 1), rows.dtype)]


@relay_op(
    "serde.scored_proposal",
    traits=(BY_VALUES, Ordering),
    infer=_scored_type,
    decompose=_decompose_scored,
    samples=_PROPOSALS,
)
def scored_proposal(
    cls_prob: Array, bbox_pred: Array, im_info: Array, *, proposal: Proposal
) -> tuple[Array, Array]:
    """The boxes of ``vision.proposal`` and the score of each, one a row."""
    return _propose(cls_prob, bbox_pred, im_info, proposal=proposal)

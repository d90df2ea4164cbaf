"""Region proposals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Dim
from serde.relay.ir.registry import Arguments, Array, relay_op, sample
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.traits import Float32, Ordering
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import BY_VALUES
from serde.relay.op.vision.suppression import Boxes, suppress

__all__ = ["PROPOSALS", "base_anchors", "proposal_type", "propose"]


def proposal_type(
    cls_prob: TensorType,
    bbox_pred: TensorType,
    im_info: TensorType,
    *,
    scales: Sequence[float],
    ratios: Sequence[float],
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> TensorType:
    """Return the type of proposals: (images * boxes of each, 5)."""
    require_float(cls_prob)
    dtype = require_same_dtype(cls_prob, bbox_pred, im_info)
    if cls_prob.rank != 4 or bbox_pred.rank != 4 or im_info.rank != 2:
        raise TypeInferenceError(
            "expected scores, offsets and sizes of images, found "
            f"{cls_prob!r}, {bbox_pred!r} and {im_info!r}"
        )
    anchors = len(scales) * len(ratios)
    wanted: tuple[Dim, ...] = (2 * anchors, 4 * anchors, 3)
    found = (cls_prob.shape[1], bbox_pred.shape[1], im_info.shape[1])
    for a, b in (*zip(wanted, found, strict=True), (cls_prob.shape[0], im_info.shape[0])):
        join_dim(a, b)
    for axis in (0, 2, 3):
        join_dim(cls_prob.shape[axis], bbox_pred.shape[axis])
    if feature_stride < 1 or rpn_post_nms_top_n < 1:
        raise TypeInferenceError(
            f"feature_stride {feature_stride} and rpn_post_nms_top_n {rpn_post_nms_top_n} "
            "must be positive"
        )
    return TensorType((cls_prob.shape[0] * rpn_post_nms_top_n, 5), dtype)


def base_anchors(ratios: Sequence[float], scales: Sequence[float], base: int) -> Array:
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


_NET = {"scales": [8.0], "feature_stride": 16, "rpn_post_nms_top_n": 4, "rpn_min_size": 4}


PROPOSALS = [
    sample((1, 6, 3, 4), (1, 12, 3, 4), np.array([[48, 64, 1]], np.float32), **_NET,
           rpn_pre_nms_top_n=9),
    sample((2, 2, 4, 4), (2, 4, 4, 4), np.array([[60, 40, 0.5], [64, 64, 1]], np.float32),
           scales=[1.0], ratios=[1.0], rpn_post_nms_top_n=40, threshold=0.3, iou_loss=True),
]  # fmt: skip


@relay_op(
    "vision.proposal",
    traits=(BY_VALUES, Float32(), Ordering),
    infer=proposal_type,
    meta_class="relay.attrs.ProposalAttrs",
    samples=PROPOSALS,
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
def proposal(
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
) -> Array:
    """The best boxes of each image as (image, left, top, right, bottom), overlaps suppressed.

    `im_info` is height, width and scale of each image. A box smaller than `rpn_min_size` at that
    scale is enlarged by it and scores -1, as one outside the image does. If there are too few,
    they are repeated in turn.
    """
    return propose(
        cls_prob, bbox_pred, im_info, scales=scales, ratios=ratios, feature_stride=feature_stride,
        threshold=threshold, rpn_pre_nms_top_n=rpn_pre_nms_top_n,
        rpn_post_nms_top_n=rpn_post_nms_top_n, rpn_min_size=rpn_min_size, iou_loss=iou_loss,
    )[0]  # fmt: skip


def propose(
    cls_prob: Array,
    bbox_pred: Array,
    im_info: Array,
    *,
    scales: Sequence[float],
    ratios: Sequence[float],
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> tuple[Array, Array]:
    """Return the rows of :func:`proposal` and the score of each, ``(rows, 1)``."""
    base = base_anchors(ratios, scales, feature_stride)
    count, (height, width) = len(base), cls_prob.shape[2:]
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1) * feature_stride
    anchors = np.concatenate([grid, grid], -1)[:, :, None] + base
    out, found = [], []
    for image, (scores, offsets, info) in enumerate(
        zip(cls_prob, bbox_pred, im_info.astype(np.float64), strict=True)
    ):
        moved = offsets.astype(np.float64).reshape(count, 4, height, width).transpose(2, 3, 0, 1)
        boxes = _decode_boxes(anchors, moved, iou_loss)
        boxes = np.maximum(np.minimum(boxes, info[[1, 0, 1, 0]] - 1), 0)
        marks = scores[count:].transpose(1, 2, 0).astype(np.float64)
        marks[int(info[0] / feature_stride) :] = -1
        marks[:, int(info[1] / feature_stride) :] = -1
        least = info[2] * rpn_min_size
        small = (boxes[..., 2:] - boxes[..., :2] + 1 < least).any(-1)
        boxes[small] += np.array([-1, -1, 1, 1]) * least / 2
        marks[small] = -1
        order = np.argsort(-marks.reshape(-1), kind="stable")
        order = order[:rpn_pre_nms_top_n] if rpn_pre_nms_top_n > 0 else order
        best = boxes.reshape(-1, 4)[order]
        kept = suppress(Boxes(best, extra=1), threshold, strict=True)
        chosen = np.resize(kept, rpn_post_nms_top_n)
        out.append(np.insert(best[chosen], 0, image, 1))
        found.append(marks.reshape(-1, 1)[order[chosen]])
    dtype = cls_prob.dtype
    return np.concatenate(out).astype(dtype), np.concatenate(found).astype(dtype)

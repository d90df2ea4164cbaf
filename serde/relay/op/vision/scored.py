"""Region proposals with their scores."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.relay.ir.registry import Array, relay_op
from serde.relay.ir.traits import Ordering
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import BY_VALUES
from serde.relay.op.vision.proposal import PROPOSALS, decompose_scored, proposal_type, propose

__all__: list[str] = []


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
    decompose=decompose_scored,
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

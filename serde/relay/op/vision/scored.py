"""Region proposals with their scores."""

from __future__ import annotations

from serde.relay.ir.registry import Array, relay_op
from serde.relay.ir.traits import Ordering
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import BY_VALUES
from serde.relay.op.vision.proposal import (
    PROPOSALS,
    Proposal,
    decompose_scored,
    proposal_type,
    propose,
)

__all__: list[str] = []


def _scored_type(
    cls_prob: TensorType, bbox_pred: TensorType, im_info: TensorType, *, proposal: Proposal
) -> list[TensorType]:
    rows = proposal_type(cls_prob, bbox_pred, im_info, proposal=proposal)
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
    cls_prob: Array, bbox_pred: Array, im_info: Array, *, proposal: Proposal
) -> tuple[Array, Array]:
    """The boxes of ``vision.proposal`` and the score of each, one a row."""
    return propose(cls_prob, bbox_pred, im_info, proposal=proposal)

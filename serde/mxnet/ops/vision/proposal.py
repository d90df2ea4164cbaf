"""Regions proposed from the scores of anchors."""

from __future__ import annotations

from dataclasses import dataclass

from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr, TupleGetItem
from serde.relay.ir.registry import call


@dataclass(frozen=True, kw_only=True)
class Proposals:
    """Attributes of proposals, in MXNet and in Relay; the defaults are those of MXNet."""

    scales: tuple[float, ...] = (4.0, 8.0, 16.0, 32.0)
    ratios: tuple[float, ...] = (0.5, 1.0, 2.0)
    feature_stride: int = 16
    threshold: float = 0.7
    rpn_pre_nms_top_n: int = 6000
    rpn_post_nms_top_n: int = 300
    rpn_min_size: int = 16
    iou_loss: bool = False


@OPS.imports("_contrib_Proposal", "_contrib_MultiProposal")
def import_proposal(
    ctx: ImportContext,
    cls_prob: Expr,
    bbox_pred: Expr,
    im_info: Expr,
    *,
    proposals: Proposals,
    output_score: bool = False,
) -> Expr | list[Expr]:
    name = "serde.scored_proposal" if output_score else "vision.proposal"
    result = call(name, cls_prob, bbox_pred, im_info, **vars(proposals))
    return [TupleGetItem(result, 0), TupleGetItem(result, 1)] if output_score else result


@OPS.exports("serde.scored_proposal")
def export_scored_proposal(
    ctx: ExportContext, cls_prob: Value, bbox_pred: Value, im_info: Value, *, proposals: Proposals
) -> list[Value]:
    """MXNet fails if nobody asks for the regions, so the scores do."""
    rows, scores = ctx.emit_tuple(
        "_contrib_MultiProposal", cls_prob, bbox_pred, im_info, outputs=2, **vars(proposals),
        output_score=True,
    )  # fmt: skip
    column = ctx.emit("slice_axis", rows, axis=1, begin=0, end=1)
    return [rows, ctx.emit("_identity_with_attr_like_rhs", scores, column)]


@OPS.exports("vision.proposal")
def export_proposal(
    ctx: ExportContext, cls_prob: Value, bbox_pred: Value, im_info: Value, *, proposals: Proposals
) -> Value:
    """The operator for one image reads no second one."""
    batch = ctx.type(cls_prob).shape[0]
    op = "_contrib_Proposal" if batch == 1 else "_contrib_MultiProposal"
    return ctx.emit(op, cls_prob, bbox_pred, im_info, **vars(proposals))

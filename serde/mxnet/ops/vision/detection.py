"""Boxes of objects, decoded and without those that overlap."""

from __future__ import annotations

from dataclasses import dataclass

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


@dataclass(frozen=True, kw_only=True)
class Detection:
    """Attributes of a detection, in MXNet and in Relay; the defaults are those of MXNet."""

    clip: bool = True
    threshold: float = 0.01
    variances: tuple[float, ...] = (0.1, 0.1, 0.2, 0.2)
    nms_threshold: float = 0.5
    force_suppress: bool = False
    nms_topk: int = -1


@OPS.imports("_contrib_MultiBoxDetection")
def import_multibox_detection(
    ctx: ImportContext,
    cls_prob: Expr,
    loc_pred: Expr,
    anchor: Expr,
    *,
    detection: Detection,
    background_id: int = 0,
) -> Expr:
    """The background is class 0 whatever `background_id` says, which MXNet does not read."""
    if not 0 < detection.nms_threshold <= 1:
        return relay.vision.multibox_transform_loc(
            cls_prob, loc_pred, anchor, detection.clip, detection.threshold, detection.variances
        )[0]
    return call("serde.multibox_detection", cls_prob, loc_pred, anchor, **vars(detection))


@OPS.exports("serde.multibox_detection")
def export_multibox_detection(
    ctx: ExportContext, cls_prob: Value, loc_pred: Value, anchor: Value, *, detection: Detection
) -> Value:
    return ctx.emit("_contrib_MultiBoxDetection", cls_prob, loc_pred, anchor, **vars(detection))

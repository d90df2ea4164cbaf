"""What a network for detection is trained towards."""

from __future__ import annotations

from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr, TupleGetItem
from serde.relay.ir.registry import call
from serde.walk.takes import Takes, dtypes


@OPS.imports("_contrib_MultiBoxTarget")
def import_multibox_target(
    ctx: ImportContext,
    anchor: Expr,
    label: Expr,
    cls_pred: Expr,
    *,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1.0,
    negative_mining_ratio: float = -1.0,
    negative_mining_thresh: float = 0.5,
    minimum_negative_samples: int = 0,
    variances: tuple[float, ...] = (0.1, 0.1, 0.2, 0.2),
) -> list[Expr]:
    """MXNet does not read `minimum_negative_samples`, and fails if mining finds too few."""
    found = call(
        "serde.multibox_target", anchor, label, cls_pred, overlap_threshold=overlap_threshold,
        ignore_label=ignore_label, negative_mining_ratio=negative_mining_ratio,
        negative_mining_thresh=negative_mining_thresh, variances=variances,
    )  # fmt: skip
    return [TupleGetItem(found, index) for index in range(3)]


@OPS.exports("serde.multibox_target", takes=Takes(label=dtypes("float32")))
def export_multibox_target(
    ctx: ExportContext,
    anchor: Value,
    label: Value,
    cls_pred: Value,
    *,
    overlap_threshold: float,
    ignore_label: float,
    negative_mining_ratio: float,
    negative_mining_thresh: float,
    variances: tuple[float, ...],
) -> tuple[Value, ...]:
    return ctx.emit_tuple(
        "_contrib_MultiBoxTarget", anchor, label, cls_pred, outputs=3,
        overlap_threshold=overlap_threshold, ignore_label=ignore_label,
        negative_mining_ratio=negative_mining_ratio,
        negative_mining_thresh=negative_mining_thresh, variances=variances,
    )  # fmt: skip

"""Anchors, the boxes that networks make of them, and what they are trained towards."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TupleGetItem, call
from serde.relay.op.vision.anchors import Decoding, Priors
from serde.relay.op.vision.detection import Detection
from serde.relay.op.vision.proposal import Proposal
from serde.relay.op.vision.targets import Targets
from serde.walk.takes import Takes, dtypes


@OPS.imports("_contrib_MultiBoxPrior")
def import_multibox_prior(
    ctx: Import, data: Expr,
    *, sizes: tuple[float, ...] = (1.0,), ratios: tuple[float, ...] = (1.0,), clip: bool = False,
    steps: tuple[float, ...] = (-1.0, -1.0), offsets: tuple[float, ...] = (0.5, 0.5),
) -> Expr:  # fmt: skip
    """Boxes of all sizes have the first ratio, in Relay they are square."""
    if not sizes or not ratios:
        raise Unsupported(f"sizes={sizes} and ratios={ratios} make no boxes")
    rest = (steps, offsets, clip)
    if ratios[0] == 1:
        return relay.vision.multibox_prior(data, sizes, ratios, *rest)
    first = relay.vision.multibox_prior(data, sizes[:1], (1.0, *ratios), *rest)
    first = relay.reshape(first, (1, -1, 1 + len(ratios), 4))
    parts = [relay.strided_slice(first, [1], [2], [1], axes=[2])]
    for size in sizes[1:]:
        both = relay.vision.multibox_prior(data, (size,), (1.0, ratios[0]), *rest)
        both = relay.reshape(both, (1, -1, 2, 4))
        parts.append(relay.strided_slice(both, [1], [2], [1], axes=[2]))
    parts.append(relay.strided_slice(first, [2], [1 + len(ratios)], [1], axes=[2]))
    return relay.reshape(relay.concatenate(parts[: None if ratios[1:] else -1], 2), (1, -1, 4))


@OPS.exports("vision.multibox_prior")
def export_multibox_prior(ctx: Export, data: Value, *, priors: Priors) -> Value:
    """Boxes of all sizes are square, whatever the first ratio is, which MXNet gives them."""
    ratios = (1.0, *priors.ratios[1:])
    return ctx.emit("_contrib_MultiBoxPrior", data, **{**vars(priors), "ratios": ratios})


@OPS.exports("vision.multibox_transform_loc", takes=Takes(keep_background=False))
def export_multibox_transform_loc(
    ctx: Export, cls_prob: Value, loc_pred: Value, anchor: Value, *, decoding: Decoding
) -> list[Value]:
    """Without a threshold of overlap MXNet's detection goes no further than this."""
    rows = ctx.emit(
        "_contrib_MultiBoxDetection", cls_prob, loc_pred, anchor, clip=decoding.clip,
        threshold=decoding.threshold, variances=decoding.variances, nms_threshold=-1.0,
    )  # fmt: skip
    classes = ctx.emit("slice_axis", rows, axis=2, begin=0, end=1)
    found = ctx.emit("sum", ctx.emit("_greater_equal_scalar", classes, scalar=0.0), axis=(1, 2))
    return [rows, ctx.emit("Cast", found, dtype="int32")]


@OPS.imports("_contrib_Proposal", "_contrib_MultiProposal")
def import_proposal(
    ctx: Import,
    cls_prob: Expr,
    bbox_pred: Expr,
    im_info: Expr,
    *,
    proposals: Proposal,
    output_score: bool = False,
) -> Expr | list[Expr]:
    name = "serde.scored_proposal" if output_score else "vision.proposal"
    result = call(name, cls_prob, bbox_pred, im_info, **vars(proposals))
    return [TupleGetItem(result, 0), TupleGetItem(result, 1)] if output_score else result


@OPS.exports("serde.scored_proposal")
def export_scored_proposal(
    ctx: Export, cls_prob: Value, bbox_pred: Value, im_info: Value, *, proposals: Proposal
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
    ctx: Export, cls_prob: Value, bbox_pred: Value, im_info: Value, *, proposals: Proposal
) -> Value:
    """The operator for one image reads no second one."""
    batch = ctx.type(cls_prob).shape[0]
    op = "_contrib_Proposal" if batch == 1 else "_contrib_MultiProposal"
    return ctx.emit(op, cls_prob, bbox_pred, im_info, **vars(proposals))


@OPS.imports("_contrib_MultiBoxDetection")
def import_multibox_detection(
    ctx: Import,
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
    ctx: Export, cls_prob: Value, loc_pred: Value, anchor: Value, *, detection: Detection
) -> Value:
    return ctx.emit("_contrib_MultiBoxDetection", cls_prob, loc_pred, anchor, **vars(detection))


@OPS.imports("_contrib_MultiBoxTarget")
def import_multibox_target(
    ctx: Import,
    anchor: Expr,
    label: Expr,
    cls_pred: Expr,
    *,
    targets: Targets,
    minimum_negative_samples: int = 0,
) -> list[Expr]:
    """MXNet does not read `minimum_negative_samples`, and fails if mining finds too few."""
    found = call("serde.multibox_target", anchor, label, cls_pred, **vars(targets))
    return [TupleGetItem(found, index) for index in range(3)]


@OPS.exports("serde.multibox_target", takes=Takes(label=dtypes("float32")))
def export_multibox_target(
    ctx: Export, anchor: Value, label: Value, cls_pred: Value, *, targets: Targets
) -> tuple[Value, ...]:
    given = anchor, label, cls_pred
    return ctx.emit_tuple("_contrib_MultiBoxTarget", *given, outputs=3, **vars(targets))

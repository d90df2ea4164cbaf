"""Anchors, and the boxes that networks make of them."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.walk.takes import Takes


@OPS.imports("_contrib_MultiBoxPrior")
def import_multibox_prior(
    ctx: ImportContext,
    data: Expr,
    *,
    sizes: tuple[float, ...] = (1.0,),
    ratios: tuple[float, ...] = (1.0,),
    clip: bool = False,
    steps: tuple[float, ...] = (-1.0, -1.0),
    offsets: tuple[float, ...] = (0.5, 0.5),
) -> Expr:
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
def export_multibox_prior(
    ctx: ExportContext,
    data: Value,
    *,
    sizes: tuple[float, ...],
    ratios: tuple[float, ...],
    steps: tuple[float, ...],
    offsets: tuple[float, ...],
    clip: bool,
) -> Value:
    """Boxes of all sizes are square, whatever the first ratio is, which MXNet gives them."""
    return ctx.emit(
        "_contrib_MultiBoxPrior", data, sizes=sizes, ratios=(1.0, *ratios[1:]), steps=steps,
        offsets=offsets, clip=clip,
    )  # fmt: skip


@OPS.exports("vision.multibox_transform_loc", takes=Takes(keep_background=False))
def export_multibox_transform_loc(
    ctx: ExportContext,
    cls_prob: Value,
    loc_pred: Value,
    anchor: Value,
    *,
    clip: bool,
    threshold: float,
    variances: tuple[float, ...],
    keep_background: bool,
) -> list[Value]:
    """Without a threshold of overlap MXNet's detection goes no further than this."""
    rows = ctx.emit(
        "_contrib_MultiBoxDetection", cls_prob, loc_pred, anchor, clip=clip, threshold=threshold,
        variances=variances, nms_threshold=-1.0,
    )  # fmt: skip
    classes = ctx.emit("slice_axis", rows, axis=2, begin=0, end=1)
    found = ctx.emit("sum", ctx.emit("_greater_equal_scalar", classes, scalar=0.0), axis=(1, 2))
    return [rows, ctx.emit("Cast", found, dtype="int32")]

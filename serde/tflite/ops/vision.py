"""Detection: of boxes that overlap, the best stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from struct import error

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core import require
from serde.errors import Unsupported
from serde.relay.ir import Expr
from serde.tflite.ops.table import OPS, Import


def _selected(
    ctx: Import, boxes: Expr, scores: Expr, limit: int, overlap: Expr, least: Expr
) -> tuple[Expr, Expr, Expr]:
    """Return as many places as may stay, 0 behind the last; which of them do; and their number."""
    of_images = relay.expand_dims(boxes, 0), relay.expand_dims(scores, 0, 2)
    most = ctx.const(limit, "int64")
    rows, count = relay.vision.all_class_non_max_suppression(*of_images, most, overlap, least)
    column = relay.squeeze(relay.strided_slice(rows, [2], [3], axes=[1]), [1])
    places = relay.cast(column, "int32")
    room = relay.concatenate([places, ctx.const(allocation.zeros(limit), "int32")], axis=0)
    number = relay.cast(relay.reshape(count, ()), "int32")
    stays = relay.less(ctx.const(allocation.arange(limit), "int32"), number)
    zero = ctx.const(0, "int32")
    return relay.where(stays, relay.strided_slice(room, [0], [limit]), zero), stays, number


@OPS.imports("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def import_non_max_suppression(
    ctx: Import, boxes: Expr, scores: Expr, limit: Expr, overlap: Expr, least: Expr,
    sigma: Expr | None = None,
) -> Sequence[Expr]:  # fmt: skip
    """The fifth version gives scores as well."""
    most = int(ctx.item(limit))
    places, stays, number = _selected(ctx, boxes, scores, most, overlap, least)
    if sigma is None:
        return [places, number]
    if ctx.item(sigma):
        raise Unsupported("scores that overlaps lower (soft suppression)")
    zero = ctx.const(0, ctx.type(scores).dtype)
    return [places, relay.where(stays, relay.take(scores, places, axis=0), zero), number]


_MOST = 2**16
_SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")
_OPTIONS = (
    "max_detections", "max_classes_per_detection", "num_classes", "use_regular_nms",
    "nms_iou_threshold", "nms_score_threshold", *_SCALES,
)  # fmt: skip


@OPS.imports("TFLite_Detection_PostProcess")
def import_detection_post_process(
    ctx: Import, boxes: Expr, scores: Expr, anchors: Expr
) -> Sequence[Expr]:
    """Boxes are told by anchors: the centre, and logarithms of height and width.

    The best class of each counts. A box goes that overlaps by more than the threshold, or whose
    score is below its own.
    """
    options = _flexible_options(ctx.operator.custom, _OPTIONS)
    if options["use_regular_nms"] or options["max_classes_per_detection"] != 1:
        raise Unsupported("suppression class by class, or several classes of a box")
    limit, classes = int(options["max_detections"]), int(options["num_classes"])
    if limit < 1 or ctx.static_shape(boxes, 3)[0] != 1 or classes < 1:
        raise Unsupported(f"{limit} detections of {classes} classes in {ctx.type(boxes)!r}")
    scale = ctx.const([options[name] for name in _SCALES], "float32")
    where, size = relay.split(relay.divide(relay.squeeze(boxes, [0]), scale), 2, axis=1)
    middle, extent = relay.split(anchors, 2, axis=1)
    centre = relay.add(relay.multiply(where, extent), middle)
    half = relay.multiply(relay.multiply(relay.exp(size), extent), ctx.const(0.5, "float32"))
    corners = [relay.subtract(centre, half), relay.add(centre, half)]
    decoded = relay.concatenate(corners, axis=1)
    own = relay.strided_slice(relay.squeeze(scores, [0]), [-classes], [2**31 - 1], axes=[1])
    overlap, least = (
        ctx.const(np.nextafter(np.float32(options[f"nms_{name}_threshold"]), end), "float32")
        for name, end in (("iou", np.float32(np.inf)), ("score", np.float32(-np.inf)))
    )
    best = relay.max(own, axis=[1])
    places, stays, number = _selected(ctx, decoded, best, limit, overlap, least)
    labels = relay.cast(relay.argmax(own, axis=[1]), "float32")
    found = [
        relay.where(mask, relay.take(each, places, axis=0), ctx.const(0, "float32"))
        for each, mask in (
            (decoded, relay.expand_dims(stays, 1)), (labels, stays), (best, stays),
        )
    ]  # fmt: skip
    count = relay.reshape(relay.cast(number, "float32"), (1,))
    return [*(relay.expand_dims(each, 0) for each in found), count]


def _flexible_options(data: bytes, names: Sequence[str]) -> Mapping[str, float]:
    """Return entries of a map in a FlexBuffer as numbers; 0 of what is not there, 1 of classes."""
    found = {**dict.fromkeys(names, 0.0), "max_classes_per_detection": 1.0}
    try:
        # Only what is looked up is read: a map claims any number of entries.
        root = require("flatbuffers.flexbuffers").GetRoot(bytearray(data)).AsMap
        for name in names:
            with suppress(KeyError):
                found[name] = float(root[name].AsFloat)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, error) as fault:
        raise Unsupported(f"options that are no map ({type(fault).__name__})") from None
    if not all(abs(each) < _MOST for each in found.values()):
        raise Unsupported(f"options of numbers beyond {_MOST}")
    return found

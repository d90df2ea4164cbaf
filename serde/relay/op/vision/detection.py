"""What a single-shot detector shows: its boxes decoded, sorted, and overlaps suppressed."""

from __future__ import annotations

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import ranges
from serde.relay.ir.expr import Constant, Expr, TupleGetItem, const
from serde.relay.ir.registry import Array, call, get, relay_op, sample
from serde.relay.ir.traits import Cases, Float32, Ordering
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import pairs
from serde.relay.op.vision.anchors import multibox_transform_loc
from serde.relay.op.vision.rows import columns
from serde.relay.op.vision.suppression import Boxes, suppress


def _detection_type(
    cls_prob: TensorType,
    loc_pred: TensorType,
    anchor: TensorType,
    *,
    clip: bool,
    threshold: float,
    variances: tuple[float, ...],
    nms_threshold: float,
    force_suppress: bool,
    nms_topk: int,
) -> TensorType:
    if not 0 < nms_threshold <= 1:
        raise TypeInferenceError(f"nms_threshold {nms_threshold} is not above 0 and up to 1")
    rows: TensorType = get("vision.multibox_transform_loc").infer(
        cls_prob, loc_pred, anchor, clip=clip, threshold=threshold, variances=variances,
        keep_background=False,
    )[0]  # fmt: skip
    return rows


def _decompose_detection(
    cls_prob: Expr,
    loc_pred: Expr,
    anchor: Expr,
    *,
    clip: bool,
    threshold: float,
    variances: tuple[float, ...],
    nms_threshold: float,
    force_suppress: bool,
    nms_topk: int,
) -> Expr:
    """Relay suppresses boxes of positive scores alone, so ranks stand for the scores."""
    type_ = cls_prob.type
    if not isinstance(type_, TensorType) or not isinstance(type_.shape[2], int):
        raise TypeInferenceError(f"needs a fixed number of anchors, found {type_!r}")
    dtype, number = type_.dtype, type_.shape[2]
    found = call(
        "vision.multibox_transform_loc", cls_prob, loc_pred, anchor, clip=clip,
        threshold=threshold, variances=variances,
    )  # fmt: skip
    rows, counts = TupleGetItem(found, 0), TupleGetItem(found, 1)
    score = call("squeeze", columns(rows, 1, 2), axis=(2,))
    order = call("argsort", score, axis=1, is_ascend=False, dtype="int32")
    ordered = call("take", rows, order, axis=1, batch_dims=1, mode="fast")
    ranks = Constant(np.arange(number, 0, -1).reshape(1, -1, 1).astype(dtype))
    marks = call("broadcast_to_like", ranks, columns(ordered, 1, 2))
    parts = [columns(ordered, 0, 1), marks, columns(ordered, 2, 6)]
    kept = call(
        "vision.non_max_suppression",
        call("concatenate", parts, axis=2),
        counts,
        order,
        const(-1, "int32"),
        const(np.nextafter(np.float32(nms_threshold), np.float32(2)), "float32"),
        force_suppress=force_suppress,
        top_k=nms_topk,
        return_indices=False,
    )
    if 0 < nms_topk < number:
        first, rest = (
            call("strided_slice", x, begin=[begin], end=[end], strides=[1], axes=[1])
            for x, begin, end in ((ordered, 0, nms_topk), (rows, nms_topk, number))
        )
        ordered = call("concatenate", [first, rest], axis=1)
    return call("concatenate", [columns(kept, 0, 1), columns(ordered, 1, 6)], axis=2)


_ANCHORS = np.array([[[0.1, 0.2, 0.5, 0.7], [0.0, 0.1, 0.3, 0.2], [0.4, 0.4, 0.9, 1.0],
                      [0.1, 0.3, 0.5, 0.8], [0.4, 0.3, 0.9, 0.9]]], np.float32)  # fmt: skip
_OFFSETS = np.linspace(-0.5, 0.5, 40, dtype=np.float32).reshape(2, 20)


@relay_op(
    "serde.multibox_detection",
    traits=(pairs(), Float32(), Ordering, Cases("threshold", ranges.rows_suppressed())),
    infer=_detection_type,
    decompose=_decompose_detection,
    samples=[
        sample((2, 3, 5), _OFFSETS, _ANCHORS, threshold=-2.0, nms_threshold=0.3),
        sample((2, 3, 5), _OFFSETS, _ANCHORS, nms_threshold=0.4, force_suppress=True, nms_topk=3),
        sample((1, 2, 5), (1, 20), _ANCHORS, clip=False, variances=[1.0, 0.5, 0.25, 0.5]),
    ],
)
def multibox_detection(
    cls_prob: Array,
    loc_pred: Array,
    anchor: Array,
    *,
    clip: bool = True,
    threshold: float = 0.01,
    variances: tuple[float, ...] = (0.1, 0.1, 0.2, 0.2),
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    nms_topk: int = -1,
) -> Array:
    """Rows (class, score, left, top, right, bottom) in order of their scores, -1 behind them.

    They are those of ``vision.multibox_transform_loc``. The class of a box becomes -1 that
    overlaps by more than `nms_threshold` with a better one of its class, or with `force_suppress`
    of any; so does that of all behind the best `nms_topk`, if positive, which keep their order.
    """
    rows, counts = multibox_transform_loc(
        cls_prob, loc_pred, anchor, clip=clip, threshold=threshold, variances=variances
    )
    for image, count in zip(rows, counts.tolist(), strict=True):
        order = np.argsort(-image[:count, 1], kind="stable")
        order = order[:nms_topk] if nms_topk > 0 else order
        best = image[order]
        classes = None if force_suppress else best[:, 0]
        kept = suppress(Boxes(best[:, 2:]), nms_threshold, strict=True, classes=classes)
        image[: len(order)] = best
        gone = np.delete(np.arange(count), kept)
        image[gone, 0] = -1
    return rows

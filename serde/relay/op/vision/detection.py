"""What a single-shot detector shows: its boxes decoded, sorted, and overlaps suppressed."""

from __future__ import annotations

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Cases, Constant, Expr, Float32, Ordering, TupleGetItem, const, ranges
from serde.relay.ir.registry import Array, call, get, relay_op, sample
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import pairs
from serde.relay.op.vision.anchors import Decoding, multibox_transform_loc
from serde.relay.op.vision.rows import columns
from serde.relay.op.vision.suppression import Boxes, suppress


@dataclass(frozen=True, kw_only=True)
class Detection:
    """Attributes of ``serde.multibox_detection``."""

    clip: bool = True
    threshold: float = 0.01
    variances: tuple[float, ...] = (0.1, 0.1, 0.2, 0.2)
    nms_threshold: float = 0.5
    force_suppress: bool = False
    nms_topk: int = -1

    def decoding(self) -> Decoding:
        """Return how boxes are made of anchors beforehand."""
        return Decoding(clip=self.clip, threshold=self.threshold, variances=self.variances)


def _detection_type(
    cls_prob: TensorType, loc_pred: TensorType, anchor: TensorType, *, detection: Detection
) -> TensorType:
    if not 0 < detection.nms_threshold <= 1:
        threshold = detection.nms_threshold
        raise TypeInferenceError(f"nms_threshold {threshold} is not above 0 and up to 1")
    infer = get("vision.multibox_transform_loc").infer
    rows: TensorType = infer(cls_prob, loc_pred, anchor, **vars(detection.decoding()))[0]
    return rows


def _decompose_detection(
    cls_prob: Expr, loc_pred: Expr, anchor: Expr, *, detection: Detection
) -> Expr:
    """Relay suppresses boxes of positive scores alone, so ranks stand for the scores."""
    type_ = cls_prob.type
    if not isinstance(type_, TensorType) or not isinstance(type_.shape[2], int):
        raise TypeInferenceError(f"needs a fixed number of anchors, found {type_!r}")
    dtype, number = type_.dtype, type_.shape[2]
    given = cls_prob, loc_pred, anchor
    found = call("vision.multibox_transform_loc", *given, **vars(detection.decoding()))
    rows, counts = TupleGetItem(found, 0), TupleGetItem(found, 1)
    score = call("squeeze", columns(rows, 1, 2), axis=(2,))
    order = call("argsort", score, axis=1, is_ascend=False, dtype="int32")
    ordered = call("take", rows, order, axis=1, batch_dims=1, mode="fast")
    ranks = Constant(np.arange(number, 0, -1).reshape(1, -1, 1).astype(dtype))
    marks = call("broadcast_to_like", ranks, columns(ordered, 1, 2))
    parts = [columns(ordered, 0, 1), marks, columns(ordered, 2, 6)]
    kept = call(
        "vision.non_max_suppression", call("concatenate", parts, axis=2), counts, order,
        const(-1, "int32"),
        const(np.nextafter(np.float32(detection.nms_threshold), np.float32(2)), "float32"),
        force_suppress=detection.force_suppress, top_k=detection.nms_topk, return_indices=False,
    )  # fmt: skip
    best = detection.nms_topk
    if 0 < best < number:
        first, rest = (
            call("strided_slice", x, begin=[begin], end=[end], strides=[1], axes=[1])
            for x, begin, end in ((ordered, 0, best), (rows, best, number))
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
    cls_prob: Array, loc_pred: Array, anchor: Array, *, detection: Detection
) -> Array:
    """Rows (class, score, left, top, right, bottom) in order of their scores, -1 behind them.

    They are those of ``vision.multibox_transform_loc``. The class of a box becomes -1 that
    overlaps by more than `nms_threshold` with a better one of its class, or with `force_suppress`
    of any; so does that of all behind the best `nms_topk`, if positive, which keep their order.
    """
    rows, counts = multibox_transform_loc(cls_prob, loc_pred, anchor, decoding=detection.decoding())
    for image, count in zip(rows, counts.tolist(), strict=True):
        order = np.argsort(-image[:count, 1], kind="stable")
        order = order[: detection.nms_topk] if detection.nms_topk > 0 else order
        best = image[order]
        classes = None if detection.force_suppress else best[:, 0]
        kept = suppress(Boxes(best[:, 2:]), detection.nms_threshold, strict=True, classes=classes)
        image[: len(order)] = best
        gone = np.delete(np.arange(count), kept)
        image[gone, 0] = -1
    return rows

"""Non-maximum suppression behind a detector."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

import numpy as np

from serde.errors import OptionError
from serde.relay.ir import RelayModel, TupleGetItem, as_dtype, call, const, tensor_type
from serde.relay.lowering.lengths import sliced
from serde.relay.transform.cutting import find_values
from serde.relay.transform.preprocessing import named_results, with_ends

__all__ = ["suppress_boxes"]

_OUTPUTS: Final = ("num_detections", "detection_boxes", "detection_scores", "detection_classes")


def suppress_boxes(
    model: RelayModel,
    boxes: str,
    scores: str | None = None,
    *,
    max: int = 100,
    iou: float = 0.5,
    score: float = 0.25,
    layout: Literal["NBC", "NCB"] = "NBC",
    format: Literal["corners", "center"] = "corners",
) -> RelayModel:
    """Return the detector with the best boxes of each class in the place of all of them.

    A box goes that overlaps more than `iou` with a better one of its class, or does not score
    more than `score`, as of ONNX's NonMaxSuppression. Of what stays of all classes, the best are
    outputs behind the model's others, as TensorRT's EfficientNMS names them, with zeros behind
    the last: ``num_detections`` (N, 1), int32; ``detection_boxes`` (N, max, 4), two corners each;
    ``detection_scores`` (N, max), and ``detection_classes`` (N, max), int32.

    Args:
        model: The model, with inferred types.
        boxes: Output, value or node with boxes: (N, B, 4) or (N, 4, B).
        scores: Likewise the scores; behind each box's four numbers if left out.
        max: How many boxes an image has at most.
        iou: Overlap, from 0 to 1.
        score: Least score; those below the least normal float32 count as 0.
        layout: Axes of scores: images, boxes and classes.
        format: Boxes are two opposite corners, or center, width and height.

    Raises:
        OptionError: A name is unknown or taken, or a number or type does not fit.
        TypeInferenceError: Boxes and scores are no such tensors.
    """
    words = layout in ("NBC", "NCB") and format in ("corners", "center")
    if not words or max != int(max) or not 0 <= iou <= 1 or not np.isfinite(score):
        told = f"max {max}, iou {iou}, score {score}, layout {layout}, format {format}"
        raise OptionError(f"nms: {told}: expected a count, an overlap, a score, NBC, corners")
    names = [boxes] if scores is None else [boxes, scores]
    model, found = find_values(model, "nms", names)
    if any(tensor_type(each).rank != 3 for each in found):
        raise OptionError(f"nms: expected three axes, found {[each.type for each in found]}")
    marks = as_dtype(found[-1], "float32")
    marks = call("transpose", marks, axes=(0, 2, 1)) if layout == "NCB" else marks
    corners = as_dtype(found[0], "float32") if scores is not None else sliced(marks, 2, 0, 4)
    if tensor_type(corners).shape[-1] != 4:
        corners = call("transpose", corners, axes=(0, 2, 1))
    if format == "center":
        center, half = sliced(corners, 2, 0, 2), sliced(corners, 2, 2, 4)
        half = call("multiply", half, const(0.5, "float32"))
        ends = [call("subtract", center, half), call("add", center, half)]
        corners = call("concatenate", ends, axis=2)
    least = np.nextafter(np.float32(score), np.float32(np.inf))
    suppressed = call(
        "vision.regular_non_max_suppression",
        corners,
        marks if scores is not None else sliced(marks, 2, 4),
        max_detections_per_class=int(max),
        max_detections=int(max),
        num_classes=tensor_type(marks).shape[-1] - (0 if scores is not None else 4),
        iou_threshold=iou,
        score_threshold=float(least if score < 0 else np.maximum(least, np.finfo("float32").tiny)),
    )
    best, kinds, points, count = (TupleGetItem(suppressed, index) for index in range(4))
    number = call("expand_dims", as_dtype(count, "int32"), axis=1)
    made = zip(_OUTPUTS, (number, best, points, as_dtype(kinds, "int32")), strict=True)
    kept = [(name, x) for name, x in named_results(model) if name not in names and x not in found]
    taken = {*model.meta.inputs, *(name for name, _ in kept)} & {*_OUTPUTS}
    if taken:
        raise OptionError(f"nms: {taken.pop()} is the name of an input or output already")
    states = {name: state for name, state in model.meta.states.items() if name in dict(kept)}
    meta = replace(model.meta, labels=(), states=states)
    return with_ends(model.evolve(meta=meta), model.main.params, [*kept, *made])

"""Non-maximum suppression behind a detector."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

import numpy as np

from serde.errors import OptionError
from serde.relay.ir import Expr, RelayModel, TupleGetItem, as_dtype, call, const, tensor_type
from serde.relay.lowering.lengths import sliced
from serde.relay.transform.cutting import find_values, results_of
from serde.relay.transform.preprocessing import with_ends
from serde.relay.transform.result_flattening import flatten_results

__all__ = ["suppress_boxes"]

_OUTPUTS: Final = ("num_detections", "detection_boxes", "detection_scores", "detection_classes")
"""What TensorRT's EfficientNMS calls its results, in their order."""


def suppress_boxes(
    model: RelayModel,
    boxes: str,
    scores: str | None = None,
    *,
    max_detections: int = 100,
    iou_threshold: float = 0.5,
    score_threshold: float = 0.25,
    layout: Literal["NBC", "NCB"] = "NBC",
    format: Literal["corners", "center"] = "corners",
) -> RelayModel:
    """Return the detector with the best boxes of each class in the place of all of them.

    A box goes whose overlap with a better one of its class is more than `iou_threshold`, or that
    does not score more than `score_threshold`, as ONNX's NonMaxSuppression has it; of what stays
    of all classes, the best `max_detections` of each image are given, as TensorRT's EfficientNMS
    does: ``num_detections`` (N, 1) of int32, ``detection_boxes`` (N, max, 4) by two corners,
    ``detection_scores`` (N, max), and ``detection_classes`` (N, max) of int32. Behind the last one
    are zeros. Other outputs of the model stand in front.

    Args:
        model: The model, with inferred types.
        boxes: Output, value or node with the boxes: (N, B, 4), (N, 4, B) or (N, B, 1, 4).
        scores: Likewise the scores of each class; if left out, they stand behind the four numbers
            of each box, in the layout of scores.
        max_detections: How many an image has at most.
        iou_threshold: From 0 to 1.
        score_threshold: Scores below the least normal float32 count as 0.
        layout: Axes of the scores: images, boxes and classes.
        format: Boxes are two opposite corners, or center, width and height.

    Raises:
        OptionError: A name is unknown, a number or type does not fit, or an output has the name
            of a new one.
        TypeInferenceError: Boxes and scores do not go together.
    """
    if max_detections < 1 or not 0 <= iou_threshold <= 1 or not np.isfinite(score_threshold):
        told = f"{max_detections}, {iou_threshold} and {score_threshold}"
        raise OptionError(f"expected detections, an overlap from 0 to 1 and a score, found {told}")
    names = [boxes] if scores is None else [boxes, scores]
    model, found = find_values(flatten_results(model), "nms", names)
    marks = as_dtype(found[-1], "float32")
    if tensor_type(marks).rank != 3:
        raise OptionError(f"{names[-1]!r}: expected the axes {layout}, found {found[-1].type!r}")
    marks = call("transpose", marks, axes=(0, 2, 1)) if layout == "NCB" else marks
    corners = sliced(marks, 2, 0, 4) if scores is None else _rows_of_boxes(boxes, found[0])
    marks = sliced(marks, 2, 4) if scores is None else marks
    classes = tensor_type(marks).shape[2]
    if type(classes) is not int or classes < 1:
        raise OptionError(f"{names[-1]!r}: expected a number of classes, found {found[-1].type!r}")
    least = np.nextafter(np.float32(score_threshold), np.float32(np.inf))
    suppressed = call(
        "vision.regular_non_max_suppression",
        _corners(corners) if format == "center" else corners,
        marks,
        max_detections_per_class=max_detections,
        max_detections=max_detections,
        num_classes=classes,
        iou_threshold=iou_threshold,
        score_threshold=float(least if least < 0 else max(least, np.finfo(np.float32).tiny)),
    )
    best, class_, score, number = (TupleGetItem(suppressed, index) for index in range(4))
    count = call("expand_dims", call("cast", number, dtype="int32"), axis=1)
    new = [count, best, score, call("cast", class_, dtype="int32")]
    kept = {
        name: value
        for name, value in zip(model.meta.outputs, results_of(model), strict=True)
        if name not in names and value not in found
    }
    for name in _OUTPUTS:
        if name in kept or name in model.meta.inputs:
            raise OptionError(f"{name!r} is the name of another input or output already")
    extra = {k: text for k, text in model.meta.extra.items() if k != "predicted_probabilities"}
    states = {name: state for name, state in model.meta.states.items() if name in kept}
    model = model.evolve(meta=replace(model.meta, labels=(), extra=extra, states=states))
    return with_ends(model, model.main.params, [*kept.values(), *new], [*kept, *_OUTPUTS])


def _rows_of_boxes(name: str, boxes: Expr) -> Expr:
    shape = tensor_type(boxes).shape
    if len(shape) == 4 and shape[2] == 1:
        boxes, shape = call("squeeze", boxes, axis=(2,)), (*shape[:2], shape[3])
    if len(shape) != 3 or 4 not in shape[1:]:
        raise OptionError(f"{name!r}: expected boxes of four numbers, found {boxes.type!r}")
    rows = boxes if shape[2] == 4 else call("transpose", boxes, axes=(0, 2, 1))
    return as_dtype(rows, "float32")


def _corners(boxes: Expr) -> Expr:
    """Return the corners of boxes that are told by center, width and height."""
    center, half = sliced(boxes, 2, 0, 2), sliced(boxes, 2, 2, 4)
    half = call("multiply", half, const(0.5, "float32"))
    ends = [call("subtract", center, half), call("add", center, half)]
    return call("concatenate", ends, axis=2)

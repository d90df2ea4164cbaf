"""Non-maximum suppression of each class on its own."""

from __future__ import annotations

from typing import Any as AnyValue, Literal

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Expr, TensorType, Tuple, TupleWrapper, const, ranges, tensor_type
from serde.relay.ir.registry import Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, require_float
from serde.relay.ir.traits import Cases, Float32, Fractions, InRange, Ordering
from serde.relay.ir.work import pairs
from serde.relay.lowering.lengths import length_of
from serde.relay.op.shape.create import positions_along
from serde.relay.op.vision.rows import columns, overlap_below, scalar, take_rows
from serde.relay.op.vision.suppression import Boxes, require_scalars, suppress


@dataclass(frozen=True, kw_only=True)
class PerClass:
    """Attributes of ``vision.regular_non_max_suppression``."""

    max_detections_per_class: int
    max_detections: int
    num_classes: int
    iou_threshold: float
    score_threshold: float


def _all_class_type(
    boxes: TensorType,
    scores: TensorType,
    max_output_boxes_per_class: TensorType,
    iou_threshold: TensorType,
    score_threshold: TensorType,
    *,
    output_format: str,
) -> list[TensorType]:
    """The result has room for every box of every class."""
    require_scalars(max_output_boxes_per_class, iou_threshold, score_threshold)
    _require_boxes(boxes)
    if scores.rank != 3:
        raise TypeInferenceError(f"expected scores of images, classes and boxes, found {scores!r}")
    batch = join_dim(boxes.shape[0], scores.shape[0])
    rows = scores.shape[1] * join_dim(boxes.shape[1], scores.shape[2])
    if output_format == "onnx":
        return [TensorType((batch * rows, 3), "int64"), TensorType((1,), "int64")]
    return [
        TensorType((batch, rows, 2), "int64"),
        TensorType((batch, rows), "float32"),
        TensorType((batch,), "int64"),
    ]


def _require_boxes(boxes: TensorType) -> None:
    require_float(boxes)
    if boxes.rank != 3 or (type(boxes.shape[2]) is int and boxes.shape[2] != 4):
        raise TypeInferenceError(f"expected boxes of four numbers of images, found {boxes!r}")


def _decompose_all_class(
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: Expr,
    iou_threshold: Expr,
    score_threshold: Expr,
    *,
    output_format: str,
) -> Expr:
    """From a threshold that is not positive on, every box overlaps with the first, which stays."""
    one, zero = const(1, "int64"), const(0, "int64")
    bound = call("cast", iou_threshold, dtype="float32")
    most = call("cast", max_output_boxes_per_class, dtype="int64")
    most = call("where", call("greater", most, zero), most, length_of(scores, 2, "int64"))
    most = call("where", call("greater", bound, const(0, "float32")), most, one)
    least = call("cast", score_threshold, dtype="float32")
    limits = (most, overlap_below(bound), least)
    found = call("serde.non_max_suppression", boxes, scores, *limits)
    if output_format == "tensorflow":
        return _group_by_image(found, scores)
    count = call("expand_dims", length_of(found, 0, "int64"), axis=0)
    batch, classes, number = (length_of(scores, axis, "int64") for axis in range(3))
    room = call("multiply", call("multiply", batch, classes), number)
    none = const([0], "int64")
    widths = call("concatenate", [none, call("subtract", room, count), none, none], axis=0)
    widths = call("reshape", widths, newshape=(2, 2))
    return Tuple([call("dyn.nn.pad", found, widths, zero), count])


def _group_by_image(found: Expr, scores: Expr) -> Expr:
    """Return (class, box) of what stays of each image, the scores, and how many."""
    image, class_, box = (
        call("take", found, const(n, "int64"), axis=1, mode="fast") for n in range(3)
    )
    images = positions_along(scores, 0, "int64")
    same = call("equal", call("expand_dims", image, axis=1), images)
    counts = call("sum", call("cast", same, dtype="int64"), axis=(0,))
    first = call("cumsum", counts, axis=0, exclusive=True)
    row = positions_along(found, 0, "int64")
    row = call("subtract", row, call("take", first, image, axis=0, mode="fast"))
    places = call("stack", [image, row], axis=0)
    nothing = call("zeros_like", call("reshape", scores, newshape=(0, -1)))
    none = call("cast", nothing, dtype="int64")
    pairs = [call("scatter_nd", none, places, each) for each in (class_, box)]
    marks = call("gather_nd", scores, call("transpose", found, axes=(1, 0)), index_rank=3)
    marks = call("cast", call("scatter_nd", nothing, places, marks), dtype="float32")
    return Tuple([call("stack", pairs, axis=2), marks, counts])


_ALL_CLASSES = (tensor((2, 6, 4), low=0.0), tensor((2, 3, 6)), np.int64(2), np.float32(0.3))


@relay_op(
    "vision.all_class_non_max_suppression",
    traits=(
        pairs(1, 4),
        Float32(),
        Ordering,
        Fractions(3, 4),
        InRange(ranges.within(2, ranges.COUNT)),
        Cases("threshold", ranges.boxes_suppressed),
    ),
    infer=_all_class_type,
    decompose=_decompose_all_class,
    meta_class="relay.attrs.AllClassNonMaximumSuppressionAttrs",
    samples=[
        sample(*_ALL_CLASSES, np.float32(-0.5)),
        sample(
            tensor((1, 8, 4), low=0.0),
            tensor((1, 2, 8)),
            np.int64(-1),
            np.float32(0.5),
            tensor((), low=0.0, high=0.5),
        ),
        sample(*_ALL_CLASSES, np.float32(0.0), output_format="tensorflow"),
    ],
)
def all_class_non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array,
    iou_threshold: Array,
    score_threshold: Array,
    *,
    output_format: Literal["onnx", "tensorflow"] = "onnx",
) -> tuple[Array, ...]:
    """The boxes that stay of each image and class, and how many.

    Boxes are two opposite corners; one goes that does not score more than `score_threshold`, or
    whose overlap with one that stays is at least `iou_threshold`. A limit that is not positive is
    none. Format "onnx": rows (image, class, box), then zeros, and their number. "tensorflow":
    for each image rows (class, box), then zeros; the scores; the numbers. Both have class after
    class, the best box of each first.
    """
    limit = int(max_output_boxes_per_class)
    chosen: list[list[tuple[float, int, int]]] = []
    for corners, classes in zip(boxes, scores, strict=True):
        found: list[tuple[float, int, int]] = []
        for class_, marks in enumerate(classes):
            order = np.argsort(-marks, kind="stable")
            order = order[marks[order] > score_threshold]
            kept = suppress(
                Boxes(corners[order]),
                float(iou_threshold),
                strict=False,
                limit=limit if limit > 0 else None,
            )
            found += [(float(marks[box]), class_, int(box)) for box in order[kept]]
        chosen.append(found)
    rows = scores.shape[1] * scores.shape[2]
    if output_format == "onnx":
        flat = [(image, *row[1:]) for image, found in enumerate(chosen) for row in found]
        selected = np.zeros((len(boxes) * rows, 3), np.int64)
        selected[: len(flat)] = np.array(flat, np.int64).reshape(-1, 3)
        return selected, np.array([len(flat)], np.int64)
    places = np.zeros((len(boxes), rows, 2), np.int64)
    marks = np.zeros((len(boxes), rows), np.float32)
    for image, found in enumerate(chosen):
        for row, (score, class_, box) in enumerate(found):
            places[image, row], marks[image, row] = (class_, box), score
    return places, marks, np.array([len(found) for found in chosen], np.int64)


@builder("vision.all_class_non_max_suppression")
def build_all_class_non_max_suppression(
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: AnyValue = -1,
    iou_threshold: AnyValue = -1.0,
    score_threshold: AnyValue = -1.0,
    output_format: str = "onnx",
) -> TupleWrapper:
    """Build ``vision.all_class_non_max_suppression``; limits are numbers or expressions."""
    result = call(
        "vision.all_class_non_max_suppression",
        boxes,
        scores,
        scalar(max_output_boxes_per_class, "int32"),
        scalar(iou_threshold, "float32"),
        scalar(score_threshold, "float32"),
        output_format=output_format,
    )
    return TupleWrapper(result, 2 if output_format == "onnx" else 3)


def _regular_type(boxes: TensorType, scores: TensorType, *, limits: PerClass) -> list[TensorType]:
    """The results have room for `max_detections` of each image."""
    _require_boxes(boxes)
    if scores.rank != 3:
        raise TypeInferenceError(f"expected scores of images, boxes and classes, found {scores!r}")
    if limits.max_detections < 1 or limits.max_detections_per_class < 1 or limits.num_classes < 1:
        raise TypeInferenceError(
            f"max_detections {limits.max_detections}, max_detections_per_class "
            f"{limits.max_detections_per_class} and num_classes {limits.num_classes} "
            "must be positive"
        )
    batch = join_dim(boxes.shape[0], scores.shape[0])
    join_dim(boxes.shape[1], scores.shape[1])
    join_dim(scores.shape[2], limits.num_classes)
    most = limits.max_detections
    shapes = ((batch, most, 4), (batch, most), (batch, most))
    return [TensorType(shape, "float32") for shape in (*shapes, (batch,))]


def _decompose_regular(boxes: Expr, scores: Expr, *, limits: PerClass) -> Expr:
    """The best of what stays of all classes, of equal scores the first."""
    dtype, low = tensor_type(scores).dtype, const(-np.inf, tensor_type(scores).dtype)
    good = call("greater_equal", scores, const(limits.score_threshold, dtype))
    marks = call("transpose", call("where", good, scores, low), axes=(0, 2, 1))
    found = call(
        "serde.non_max_suppression",
        boxes,
        marks,
        const(limits.max_detections_per_class if limits.iou_threshold >= 0 else 1, "int64"),
        const(min(max(limits.iou_threshold, 0.0), 1.0), "float32"),
        const(-np.inf, "float32"),
    )
    some = call("cast", call("ones_like", columns(found, 0, 1, 1)), dtype=dtype)
    places, some = call("transpose", found, axes=(1, 0)), call("squeeze", some, axis=(1,))
    kept = call("scatter_nd", call("zeros_like", marks), places, some)
    kept = call("greater", kept, const(0, dtype))
    keys = call("reshape", call("where", kept, marks, low), newshape=(0, -1))
    number = call("sum", call("cast", call("greater", keys, low), dtype="int64"), axis=(1,))
    number = call("expand_dims", number, axis=1)
    keys = call("nn.pad", keys, low, pad_width=((0, 0), (0, limits.max_detections)))
    order: Expr = call("argsort", keys, axis=1, is_ascend=False, dtype="int64")
    order = columns(order, 0, limits.max_detections, 1)
    shown = call("less", const(np.arange(limits.max_detections), "int64"), number)
    count = length_of(boxes, 1, "int64")
    class_, box = (call(name, order, count) for name in ("floor_divide", "floor_mod"))
    results = [
        call("where", mask, call("cast", each, dtype="float32"), const(0, "float32"))
        for mask, each in (
            (call("expand_dims", shown, axis=2), take_rows(boxes, box)),
            (shown, class_),
            (shown, take_rows(keys, order)),
        )
    ]
    number = call("minimum", number, const(limits.max_detections, "int64"))
    number = call("squeeze", number, axis=(1,))
    return Tuple([*results, call("cast", number, dtype="float32")])


_TFLITE = {"max_detections_per_class": 2, "max_detections": 5, "num_classes": 3}


@relay_op(
    "vision.regular_non_max_suppression", traits=(pairs(1, 4), Ordering,),
    infer=_regular_type,
    decompose=_decompose_regular,
    meta_class="relay.attrs.RegularNonMaximumSuppressionAttrs",
    samples=[
        sample(tensor((2, 6, 4), low=0.0), (2, 6, 3), **_TFLITE, iou_threshold=0.3,
               score_threshold=0.2),
        sample(tensor((1, 4, 4), low=0.0), (1, 4, 3), **_TFLITE, iou_threshold=0.9,
               score_threshold=3.0),
    ],
)  # fmt: skip
def regular_non_max_suppression(
    boxes: Array, scores: Array, *, limits: PerClass
) -> tuple[Array, Array, Array, Array]:
    """Boxes, classes, scores and number of the best detections of each image, as TFLite's.

    A box goes that scores less than `score_threshold`, or whose overlap with one of its class that
    stays is more than `iou_threshold`. Behind the last detection are zeros.
    """
    shape = (len(boxes), limits.max_detections)
    found_boxes, classes = np.zeros((*shape, 4), np.float32), np.zeros(shape, np.float32)
    marks, counts = np.zeros(shape, np.float32), np.zeros(len(boxes), np.float32)
    for image, (corners, classes_) in enumerate(zip(boxes, scores, strict=True)):
        found: list[tuple[float, int, int]] = []
        for class_, column in enumerate(classes_.T):
            order = np.argsort(-column, kind="stable")
            order = order[column[order] >= column.dtype.type(limits.score_threshold)]
            kept = suppress(
                Boxes(corners[order]),
                limits.iou_threshold,
                strict=True,
                limit=limits.max_detections_per_class,
            )
            found += [(float(column[box]), class_, int(box)) for box in order[kept]]
        best = sorted(found, key=lambda entry: -entry[0])[: limits.max_detections]
        for row, (score, class_, box) in enumerate(best):
            found_boxes[image, row], classes[image, row] = corners[box], class_
            marks[image, row] = score
        counts[image] = len(best)
    return found_boxes, classes, marks, counts

"""Suppression of boxes for each class by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.table import OPS
from serde.relax.ops.vision.boxes import choose_best, emit_loops, one_number, overlap

__all__: list[str] = []


@OPS.exports("vision.all_class_non_max_suppression")
def export_all_class_non_max_suppression(
    ctx: ExportContext,
    boxes: Value,
    scores: Value,
    max_output_boxes_per_class: Value,
    iou_threshold: Value,
    score_threshold: Value,
    *,
    output_format: str,
) -> tuple[Value, ...]:
    """Boxes are counted on in ``found``: of all images, or of each."""
    framework = ctx.framework
    tir, tools = framework.tir, framework.statements
    dtype, by_image = ctx.type(boxes).dtype, output_format == "tensorflow"

    def forms(corners: AnyValue, marks: AnyValue, *_: AnyValue) -> list[AnyValue]:
        batch, classes, count = marks.shape
        rows = classes * count
        room = [((count,), "int32")]
        if by_image:
            whole = [((batch, rows, 2), "int64"), ((batch, rows), "float32"), ((batch,), "int64")]
            return [*whole, *room]
        return [((batch * rows, 3), "int64"), ((1,), "int64"), *room]

    def write(given: Sequence[AnyValue], made: Sequence[AnyValue]) -> None:
        corners, marks, limit, bound, least = given
        selected, *middle, found, left = made
        batch, classes, count = marks.shape
        rows = classes * count
        picked = framework.cell("int64")
        if by_image:
            zero = tir.const(0, "int64")
            with tools.serial(0, batch) as b, tools.serial(0, rows) as r:
                selected[b, r, 0] = zero
                selected[b, r, 1] = zero
                middle[0][b, r] = tir.const(0.0, "float32")
        else:
            found[0] = tir.const(0, "int64")
            with tools.serial(0, batch * rows) as r, tools.serial(0, 3) as k:
                selected[r, k] = tir.const(0, "int64")
        with tools.serial(0, batch) as b:
            place = b if by_image else 0
            if by_image:
                found[b] = tir.const(0, "int64")
            with tools.serial(0, classes) as c:
                picked[0] = tir.const(0, "int64")
                with tools.serial(0, count) as i:
                    left[i] = tir.Select(
                        marks[b, c, i].astype("float32") > least[0],
                        tir.const(1, "int32"), tir.const(0, "int32"),
                    )  # fmt: skip

                def keep(box: AnyValue) -> None:
                    row = found[place]
                    numbers = [c, box] if by_image else [b, c, box]
                    for k, number in enumerate(numbers):
                        at = (b, row, k) if by_image else (row, k)
                        selected[at] = number.astype("int64")
                    if by_image:
                        middle[0][b, row] = marks[b, c, box].astype("float32")
                    found[place] = row + 1
                    picked[0] = picked[0] + 1

                def goes(box: AnyValue, other: AnyValue) -> AnyValue:
                    return (
                        overlap(
                            framework,
                            lambda k: corners[b, box, k],
                            lambda k: corners[b, other, k],
                            dtype,
                        )
                        >= bound[0]
                    )

                def more() -> AnyValue:
                    return tir.any(limit[0] <= 0, picked[0] < limit[0])

                choose_best(framework, count, lambda i: marks[b, c, i], left, keep, goes, more)

    operands = [
        boxes,
        scores,
        one_number(ctx, max_output_boxes_per_class, "int64"),
        one_number(ctx, iou_threshold, dtype),
        one_number(ctx, score_threshold, "float32"),
    ]
    results = emit_loops(ctx, "all_class_nms", write, operands, forms, 4 if by_image else 3)
    return results[:-1]


@OPS.exports("vision.regular_non_max_suppression")
def export_regular_non_max_suppression(
    ctx: ExportContext,
    boxes: Value,
    scores: Value,
    *,
    max_detections_per_class: int,
    max_detections: int,
    num_classes: int,
    iou_threshold: float,
    score_threshold: float,
) -> tuple[Value, ...]:
    """What stays of all classes is kept aside, and the best of that are chosen in turn."""
    framework = ctx.framework
    tir, tools = framework.tir, framework.statements
    dtype, marked = ctx.type(boxes).dtype, ctx.type(scores).dtype
    most = num_classes * max_detections_per_class
    bound, least = tir.const(iou_threshold, dtype), tir.const(score_threshold, marked)

    def forms(corners: AnyValue, _: AnyValue) -> list[AnyValue]:
        batch, count, _four = corners.shape
        shape = (batch, max_detections)
        whole = [(*shape, 4), shape, shape, (batch,)]
        return [
            *((each, "float32") for each in whole),
            ((count,), "int32"),
            ((most, 2), "int64"),
            ((most,), "int32"),
        ]

    def write(given: Sequence[AnyValue], made: Sequence[AnyValue]) -> None:
        corners, marks = given
        chosen, classes, best, numbers, left, aside, waiting = made
        batch, count, _ = corners.shape
        picked, held, row = (framework.cell("int64") for _ in range(3))
        zero = tir.const(0.0, "float32")
        with tools.serial(0, batch) as b:
            held[0] = tir.const(0, "int64")
            with tools.serial(0, max_detections) as r:
                classes[b, r] = zero
                best[b, r] = zero
                with tools.serial(0, 4) as k:
                    chosen[b, r, k] = zero
            with tools.serial(0, num_classes) as c:
                picked[0] = tir.const(0, "int64")
                with tools.serial(0, count) as i:
                    left[i] = (marks[b, i, c] >= least).astype("int32")

                def keep(box: AnyValue) -> None:
                    aside[held[0], 0] = c.astype("int64")
                    aside[held[0], 1] = box
                    waiting[held[0]] = tir.const(1, "int32")
                    held[0] = held[0] + 1
                    picked[0] = picked[0] + 1

                def goes(box: AnyValue, other: AnyValue) -> AnyValue:
                    common = overlap(
                        framework,
                        lambda k: corners[b, box, k],
                        lambda k: corners[b, other, k],
                        dtype,
                    )
                    return common > bound

                choose_best(
                    framework,
                    count,
                    lambda i: marks[b, i, c],
                    left,
                    keep,
                    goes,
                    lambda: picked[0] < max_detections_per_class,
                )
            row[0] = tir.const(0, "int64")

            def score_aside(i: AnyValue) -> AnyValue:
                return marks[b, aside[i, 1], aside[i, 0]]

            def take(place: AnyValue) -> None:
                classes[b, row[0]] = aside[place, 0].astype("float32")
                best[b, row[0]] = score_aside(place).astype("float32")
                with tools.serial(0, 4) as k:
                    chosen[b, row[0], k] = corners[b, aside[place, 1], k].astype("float32")
                row[0] = row[0] + 1

            choose_best(
                framework,
                held[0],
                score_aside,
                waiting,
                take,
                lambda box, other: tir.const(False, "bool"),
                lambda: row[0] < max_detections,
            )
            numbers[b] = row[0].astype("float32")

    return emit_loops(ctx, "regular_nms", write, [boxes, scores], forms, 7)[:4]

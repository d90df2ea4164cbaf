"""Suppression of boxes for each class by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any as AnyValue

import serde.relay as relay
from serde.core.records import dataclass
from serde.relax.framework import Framework
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relax.ops.vision.boxes import choose_best, emit_loops, one_number, overlap
from serde.relay.ir.expr import Expr


@dataclass(frozen=True)
class _AllClasses:
    """What ``vision.all_class_non_max_suppression`` is told.

    Attributes:
        framework: TVM.
        dtype: That of the boxes.
        by_image: Whether the boxes that stay are counted for each image.
    """

    framework: Framework
    dtype: str
    by_image: bool

    def forms(self, _: AnyValue, marks: AnyValue, *__: AnyValue) -> list[AnyValue]:
        """Return the results, and room for a number for each box."""
        batch, classes, count = marks.shape
        rows = classes * count
        room = ((count,), "int32")
        if not self.by_image:
            return [((batch * rows, 3), "int64"), ((1,), "int64"), room]
        shape = (batch, rows)
        return [((*shape, 2), "int64"), (shape, "float32"), ((batch,), "int64"), room]

    def write(self, given: Sequence[AnyValue], made: Sequence[AnyValue]) -> None:
        """Write the loops over images and classes."""
        marks, found = given[1], made[:-1]
        tir, tools = self.framework.tir, self.framework.statements
        for each in found:
            with tools.serial(0, prod(each.shape, start=tir.const(1, "int64"))) as place:
                each[place] = tir.const(0, str(each.dtype))
        with tools.serial(0, marks.shape[0]) as b, tools.serial(0, marks.shape[1]) as c:
            self._suppress(b, c, given, made)

    def _suppress(
        self, b: AnyValue, c: AnyValue, given: Sequence[AnyValue], made: Sequence[AnyValue]
    ) -> None:
        """Write what keeps the boxes of a class."""
        corners, marks, limit, bound, least = given
        selected, *scores, found, left = made
        tir, tools = self.framework.tir, self.framework.statements
        count, place = marks.shape[2], b if self.by_image else 0
        picked = self.framework.cell("int64")
        picked[0] = tir.const(0, "int64")
        with tools.serial(0, count) as i:
            left[i] = (marks[b, c, i].astype("float32") > least[0]).astype("int32")

        def keep(box: AnyValue) -> None:
            row = found[place]
            for k, number in enumerate([c, box] if self.by_image else [b, c, box]):
                at = (b, row, k) if self.by_image else (row, k)
                selected[at] = number.astype("int64")
            for each in scores:
                each[b, row] = marks[b, c, box].astype("float32")
            found[place] = row + 1
            picked[0] = picked[0] + 1

        def corner(of: AnyValue) -> Callable[[int], AnyValue]:
            return lambda k: corners[b, of, k]

        def goes(box: AnyValue, other: AnyValue) -> AnyValue:
            return overlap(self.framework, corner(box), corner(other), self.dtype) >= bound[0]

        def more() -> AnyValue:
            return tir.any(limit[0] <= 0, picked[0] < limit[0])

        choose_best(self.framework, count, lambda i: marks[b, c, i], left, keep, goes, more)


@OPS.exports("vision.all_class_non_max_suppression")
def export_all_class_non_max_suppression(
    ctx: Export, boxes: Value, scores: Value, max_output_boxes_per_class: Value,
    iou_threshold: Value, score_threshold: Value,
    *, output_format: str,
) -> tuple[Value, ...]:  # fmt: skip
    dtype, by_image = ctx.type(boxes).dtype, output_format == "tensorflow"
    suppression = _AllClasses(ctx.framework, dtype, by_image)
    operands = [
        boxes,
        scores,
        one_number(ctx, max_output_boxes_per_class, "int64"),
        one_number(ctx, iou_threshold, dtype),
        one_number(ctx, score_threshold, "float32"),
    ]
    count = 4 if by_image else 3
    made = emit_loops(ctx, "all_class_nms", suppression.write, operands, suppression.forms, count)
    return made[:-1]


@OPS.imports("relax.vision.all_class_non_max_suppression")
def import_all_class_non_max_suppression(
    ctx: Import, boxes: Expr, scores: Expr, max_output_boxes_per_class: Expr, iou_threshold: Expr,
    score_threshold: Expr,
    *, output_format: AnyValue,
) -> list[Expr]:  # fmt: skip
    """In the first of the two formats there are no rows behind the last one."""
    found = relay.vision.all_class_non_max_suppression(
        boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, output_format
    )
    if output_format == "tensorflow":
        return [found[index] for index in range(3)]
    rows, count = found[0], found[1]
    end = relay.concatenate([relay.cast(count, "int64"), ctx.const([3], "int64")], axis=0)
    begin, steps = ctx.const([0, 0], "int64"), ctx.const([1, 1], "int64")
    return [relay.strided_slice(rows, begin, end, steps), count]

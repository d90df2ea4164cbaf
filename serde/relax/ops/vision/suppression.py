"""Rows of boxes: those that count, and those that stay where others overlap with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.ops.table import OPS
from serde.relax.ops.vision.boxes import emit_loops, one_number, overlap

__all__: list[str] = []


@dataclass(frozen=True)
class _Suppression:
    """What ``vision.non_max_suppression`` is told."""

    framework: Framework
    dtype: str
    top_k: int
    corner: int
    score: int
    class_: int | None
    return_indices: bool
    invalid_to_bottom: bool

    def forms(self, rows: AnyValue, *_: AnyValue) -> list[AnyValue]:
        """Return the results: rows or places and their number; room for orders and boxes kept."""
        batch, count, _width = rows.shape
        shape = (batch, count)
        rooms = [(rows.shape, self.dtype), (shape, "int32"), (shape, "int32"), ((count,), "int32")]
        if self.return_indices:
            return [(shape, "int32"), ((batch, 1), "int32"), *rooms]
        return [(rows.shape, self.dtype), *rooms]

    def write(self, given: Sequence[AnyValue], made: Sequence[AnyValue]) -> None:
        """Write the loops over the images."""
        data, counts, places, limit, bound, order = given
        *_, rows, kept_places, stays, chosen = made
        tir, tools = self.framework.tir, self.framework.statements
        batch, count, width = data.shape
        number = self.framework.cell("int64")
        with tools.serial(0, batch) as b:
            number[0] = counts[b].astype("int64")
            if self.top_k > 0:
                fewer = tir.min(number[0], tir.const(self.top_k, "int64"))
                number[0] = tir.Select(bound[0] > 0, fewer, number[0])
            with tools.serial(0, count) as i:
                source = tir.Select(bound[0] > 0, order[b, i].astype("int64"), i.astype("int64"))
                used = i < number[0]
                with tools.serial(0, width) as k:
                    rows[b, i, k] = tir.if_then_else(
                        used, data[b, source, k], tir.const(-1, self.dtype)
                    )
                kept_places[b, i] = tir.if_then_else(
                    used,
                    places[b, source].astype("int32") if self.return_indices else tir.const(0),
                    tir.const(-1, "int32"),
                )
                stays[b, i] = used.astype("int32")
            with tools.If(bound[0] > 0), tools.Then():
                self._suppress(b, number[0], rows, stays, chosen, limit[0], bound[0])
            self._finish(b, made)

    def _suppress(
        self, b: AnyValue, number: AnyValue, rows: AnyValue, stays: AnyValue, chosen: AnyValue,
        limit: AnyValue, bound: AnyValue,
    ) -> None:  # fmt: skip
        """Write which of the rows, which are in order of their scores, stay."""
        tir, tools = self.framework.tir, self.framework.statements
        kept, hit = self.framework.cell("int64"), self.framework.cell("int32")
        zero, one = tir.const(0, "int32"), tir.const(1, "int32")
        kept[0] = tir.const(0, "int64")
        with tools.serial(0, number) as i:
            full = tir.all(limit >= 0, kept[0] >= limit)
            with tools.If(full):
                with tools.Then():
                    stays[b, i] = zero
                with tools.Else():
                    positive = rows[b, i, self.score] > tir.const(0, self.dtype)
                    with tools.If(positive), tools.Then():
                        hit[0] = zero
                        with tools.serial(0, kept[0]) as k:
                            other = chosen[k]
                            common = overlap(
                                self.framework,
                                lambda at: rows[b, i, self.corner + at],
                                lambda at: rows[b, other, self.corner + at],
                                self.dtype,
                            )
                            rivals = common >= bound
                            if self.class_ is not None:
                                same = rows[b, i, self.class_] == rows[b, other, self.class_]
                                rivals = tir.all(rivals, same)
                            with tools.If(rivals), tools.Then():
                                hit[0] = one
                        with tools.If(hit[0] == one):
                            with tools.Then():
                                stays[b, i] = zero
                            with tools.Else():
                                chosen[kept[0]] = i.astype("int32")
                                kept[0] = kept[0] + 1

    def _finish(self, b: AnyValue, made: Sequence[AnyValue]) -> None:
        """Write the results of an image: what stays, in front where that is asked for."""
        result, *rest = made
        rows, kept_places, stays, _ = made[-4:]
        tir, tools = self.framework.tir, self.framework.statements
        _, count, width = rows.shape
        less = tir.const(-1, self.dtype)
        place = self.framework.cell("int64")
        place[0] = tir.const(0, "int64")
        compact = self.return_indices or self.invalid_to_bottom
        if compact:
            with tools.serial(0, count) as i:
                if self.return_indices:
                    result[b, i] = tir.const(-1, "int32")
                else:
                    with tools.serial(0, width) as k:
                        result[b, i, k] = less
        with tools.serial(0, count) as i:
            if self.return_indices:
                here = tir.all(stays[b, i] == 1, kept_places[b, i] >= 0)
                with tools.If(here), tools.Then():
                    result[b, place[0]] = kept_places[b, i]
                    place[0] = place[0] + 1
            elif self.invalid_to_bottom:
                here = tir.all(stays[b, i] == 1, rows[b, i, 0] >= tir.const(0, self.dtype))
                with tools.If(here), tools.Then():
                    with tools.serial(0, width) as k:
                        result[b, place[0], k] = rows[b, i, k]
                    place[0] = place[0] + 1
            else:
                with tools.serial(0, width) as k:
                    result[b, i, k] = tir.if_then_else(stays[b, i] == 1, rows[b, i, k], less)
        if self.return_indices:
            rest[0][b, 0] = place[0].astype("int32")


@OPS.exports("vision.non_max_suppression")
def export_non_max_suppression(
    ctx: ExportContext,
    data: Value,
    valid_count: Value,
    indices: Value,
    max_output_size: Value,
    iou_threshold: Value,
    *,
    force_suppress: bool,
    top_k: int,
    coord_start: int,
    score_index: int,
    id_index: int,
    return_indices: bool,
    invalid_to_bottom: bool,
) -> Value | tuple[Value, ...]:
    framework, dtype = ctx.framework, ctx.type(data).dtype
    te, tir, topi = framework.te, framework.tir, framework.topi

    def score_order(rows: AnyValue, counts: AnyValue) -> AnyValue:
        """Return rows in order of their scores, those that do not count last."""
        least = te.min_value(dtype)
        keys = te.compute(
            rows.shape[:2],
            lambda b, i: tir.if_then_else(i < counts[b], rows[b, i, score_index], least),
            name="keys",
        )
        return topi.argsort(keys, axis=1, is_ascend=False, dtype="int32")

    suppression = _Suppression(
        framework, dtype, top_k, coord_start, score_index,
        None if force_suppress or id_index < 0 else id_index,
        return_indices, invalid_to_bottom,
    )  # fmt: skip
    operands = [
        data,
        valid_count,
        indices,
        one_number(ctx, max_output_size, "int64"),
        one_number(ctx, iou_threshold, dtype),
        ctx.emit_te(score_order, data, valid_count),
    ]
    count = 2 if return_indices else 1
    made = emit_loops(ctx, "non_max_suppression", suppression.write, operands,
                      suppression.forms, count + 4)  # fmt: skip
    return made[:2] if return_indices else made[0]

"""Boxes laid out over images, moved by what is predicted, and proposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.image.interpolation import as_float
from serde.relax.ops.table import OPS
from serde.relax.ops.vision.boxes import emit_loops
from serde.relay.ir.expr import Expr, TupleGetItem
from serde.relay.ir.registry import call

__all__: list[str] = []


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
    """What the lengths of the image tell, in float64."""
    framework, dtype = ctx.framework, ctx.type(data).dtype
    te, tir = framework.te, framework.tir
    wide = [*sizes, *(sizes[0] * np.sqrt(ratio) for ratio in ratios[1:])]
    tall = [*sizes, *(sizes[0] / np.sqrt(ratio) for ratio in ratios[1:])]

    def number(value: float) -> AnyValue:
        return tir.const(float(value), "float64")

    def choose(which: AnyValue, values: Sequence[float]) -> AnyValue:
        found = number(values[-1])
        for place in range(len(values) - 2, -1, -1):
            found = tir.Select(which == place, number(values[place]), found)
        return found

    def multibox_prior(image: AnyValue) -> AnyValue:
        height, width = image.shape[2:]
        count = len(wide)
        h, w = as_float(framework, height), as_float(framework, width)
        shape = te.compute((1,), lambda _: h / w, name="shape")

        def centre(place: AnyValue, axis: int) -> AnyValue:
            step = number(steps[axis]) if steps[axis] > 0 else number(1) / (h, w)[axis]
            return (as_float(framework, place) + number(offsets[axis])) * step

        rows = te.compute((height,), lambda i: centre(i, 0), name="rows")
        columns = te.compute((width,), lambda i: centre(i, 1), name="columns")

        def edge(_: AnyValue, box: AnyValue, side: AnyValue) -> AnyValue:
            which = tir.floormod(box, count)
            place = tir.floordiv(box, count)
            across = columns[tir.floormod(place, width)]
            down = rows[tir.floordiv(place, width)]
            half_w = choose(which, wide) * shape[0] / number(2)
            half_h = choose(which, tall) / number(2)
            middle = tir.Select(tir.floormod(side, 2) == 0, across, down)
            half = tir.Select(tir.floormod(side, 2) == 0, half_w, half_h)
            found = tir.Select(side < 2, middle - half, middle + half)
            if clip:
                found = tir.max(tir.min(found, number(1)), number(0))
            return found.astype(dtype)

        return te.compute((1, height * width * count, 4), edge, name="multibox_prior")

    return ctx.emit_te(multibox_prior, data)


def _move_box(
    tir: AnyValue,
    number: Callable[[float], AnyValue],
    moves: Sequence[AnyValue],
    box: Sequence[AnyValue],
    variances: Sequence[float],
) -> list[AnyValue]:
    """Return the corners of an anchor that is moved and grown, the lower ones first."""
    lows, highs = [], []
    for axis in (0, 1):
        low, high = box[axis], box[axis + 2]
        size, centre = high - low, (low + high) / number(2)
        middle = moves[axis] * number(variances[axis]) * size + centre
        half = tir.exp(moves[axis + 2] * number(variances[axis + 2])) * size / number(2)
        lows.append(middle - half)
        highs.append(middle + half)
    return [*lows, *highs]


@OPS.exports("vision.multibox_transform_loc")
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
) -> tuple[Value, ...]:
    framework, dtype = ctx.framework, ctx.type(cls_prob).dtype
    tir, tools = framework.tir, framework.statements

    def number(value: float) -> AnyValue:
        return tir.const(float(value), dtype)

    def forms(marks: AnyValue, *_: AnyValue) -> list[AnyValue]:
        batch, _classes, count = marks.shape
        return [((batch, count, 6), dtype), ((batch,), "int32")]

    def corners(offsets: AnyValue, anchors: AnyValue, b: AnyValue, i: AnyValue) -> list[AnyValue]:
        moves, box = [offsets[b, i * 4 + k] for k in range(4)], [anchors[0, i, k] for k in range(4)]
        ends = _move_box(tir, number, moves, box, variances)
        return [tir.max(tir.min(e, number(1)), number(0)) for e in ends] if clip else ends

    def write(given: Sequence[AnyValue], made: Sequence[AnyValue]) -> None:
        (marks, offsets, anchors), (rows, counts) = given, made
        batch, classes, count = marks.shape
        best = framework.cell("int64")
        with tools.serial(0, batch) as b:
            counts[b] = tir.const(0, "int32")
            with tools.serial(0, count) as i, tools.serial(0, 6) as k:
                rows[b, i, k] = number(-1)
            with tools.serial(0, count) as i:
                best[0] = tir.const(1, "int64")
                with tools.serial(0, classes - 1) as c:
                    better = marks[b, c + 1, i] > marks[b, best[0], i]
                    with tools.If(better), tools.Then():
                        best[0] = c.astype("int64") + 1
                score = marks[b, best[0], i]
                found = tir.all(score >= number(threshold), score > number(-1))
                kept = tir.const(True, "bool") if keep_background else found
                with tools.If(kept), tools.Then():
                    class_ = (best[0] - 1).astype(dtype)
                    values = [tir.Select(found, class_, number(-1)), score]
                    for k, value in enumerate([*values, *corners(offsets, anchors, b, i)]):
                        rows[b, counts[b], k] = value
                    counts[b] = counts[b] + 1

    operands = [cls_prob, loc_pred, anchor]
    return emit_loops(ctx, "multibox_transform_loc", write, operands, forms, 2)


@OPS.expands("vision.proposal")
def expand_proposal(cls_prob: Expr, bbox_pred: Expr, im_info: Expr, **attrs: AnyValue) -> Expr:
    """That with scores has a decomposition."""
    return TupleGetItem(call("serde.scored_proposal", cls_prob, bbox_pred, im_info, **attrs), 0)

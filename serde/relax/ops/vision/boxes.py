"""What the suppressions of boxes share: overlaps, and the choice of the best that is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relay.ir.expr import Expr

__all__ = ["choose_best", "emit_loops", "one_number", "overlap"]

Corner = Callable[[int], AnyValue]
"""A number of a box: two opposite corners."""


def overlap(framework: Framework, box: Corner, other: Corner, dtype: str) -> AnyValue:
    """Return the common part of two boxes in parts of their union, 0 where that is empty."""
    tir = framework.tir
    zero = tir.const(0.0, dtype)
    common: AnyValue = None
    areas: list[AnyValue] = [None, None]
    for axis in (0, 1):
        lows, highs = [], []
        for number, each in enumerate((box, other)):
            low, high = tir.min(each(axis), each(axis + 2)), tir.max(each(axis), each(axis + 2))
            lows.append(low)
            highs.append(high)
            area = areas[number]
            areas[number] = high - low if area is None else area * (high - low)
        side = tir.max(tir.min(*highs) - tir.max(*lows), zero)
        common = side if common is None else common * side
    union = areas[0] + areas[1] - common
    return tir.Select(union > zero, common / tir.Select(union > zero, union, zero + 1), zero)


def choose_best(
    framework: Framework, count: AnyValue, score: Callable[[AnyValue], AnyValue], left: AnyValue,
    keep: Callable[[AnyValue], None], goes: Callable[[AnyValue, AnyValue], AnyValue],
    more: Callable[[], AnyValue],
) -> None:  # fmt: skip
    """Write the loop that keeps the best of what is left, and drops what overlaps with it.

    Args:
        framework: TVM.
        count: How many boxes there are.
        score: That of a box; of equal ones the first is the best.
        left: Room for a number for each, 1 where it is left.
        keep: Writes what keeps a box.
        goes: Whether, of a kept box and another, the other goes.
        more: Whether another may be kept.
    """
    tir, tools = framework.tir, framework.statements
    best = framework.cell("int64")
    best[0] = tir.const(0, "int64")
    with tools.While(tir.all(best[0] >= 0, more())):
        best[0] = tir.const(-1, "int64")
        with tools.serial(0, count) as i:
            chosen = tir.max(best[0], 0)
            better = tir.any(best[0] < 0, score(i) > score(chosen))
            with tools.If(tir.all(left[i] == 1, better)), tools.Then():
                best[0] = i.astype("int64")
        with tools.If(best[0] >= 0), tools.Then():
            left[best[0]] = tir.const(0, "int32")
            keep(best[0])
            with tools.serial(0, count) as i, tools.If(left[i] == 1), tools.Then():
                gone = goes(best[0], i).astype("int32")
                left[i] = tir.const(1, "int32") - gone


def emit_loops(
    ctx: Export,
    name: str,
    write: Callable[[Sequence[AnyValue], Sequence[AnyValue]], None],
    operands: Sequence[Value],
    outputs: Callable[..., Sequence[tuple[Sequence[AnyValue], str]]],
    count: int,
) -> tuple[Value, ...]:
    """Write loops over tensors.

    Args:
        ctx: Where they are written.
        name: What they are called.
        write: Writes the statements, of buffers of the operands and of the results.
        operands: What is read.
        outputs: Gives, of the tensors, the shape and the dtype of each result, room that the loops
            need among them.
        count: How many results there are.
    """
    framework = ctx.framework

    def compute(*tensors: AnyValue) -> AnyValue:
        forms = outputs(*tensors)

        def write_all(*buffers: AnyValue) -> None:
            write(buffers[: len(tensors)], buffers[len(tensors) :])

        shapes, dtypes = zip(*forms, strict=True)
        made = framework.extern(name, tensors, shapes, dtypes, write_all)
        return made if len(made) > 1 else made[0]

    compute.__name__ = name
    if count == 1:
        return (ctx.emit_te(compute, *operands),)
    return ctx.emit_te_tuple(compute, *operands, outputs=count)


def one_number(ctx: Export, x: Value, dtype: str) -> Value:
    """Return a tensor of one element as a vector of that, in a dtype."""
    if x.data is not None:
        return ctx.const(x.data.reshape(1).astype(dtype))
    return ctx.emit("astype", ctx.emit("reshape", x, [1]), dtype)


@OPS.imports("relax.vision.get_valid_counts")
def import_get_valid_counts(
    ctx: Import, data: Expr, *, score_threshold: float, id_index: int, score_index: int
) -> list[Expr]:
    found = relay.vision.get_valid_counts(
        data, score_threshold, id_index=id_index, score_index=score_index
    )
    return [found[index] for index in range(3)]


@OPS.imports("relax.vision.multibox_transform_loc")
def import_multibox_transform_loc(
    ctx: Import, cls_pred: Expr, loc_pred: Expr, anchor: Expr,
    *, clip: bool, threshold: float, variances: tuple[float, ...], keep_background: bool,
    apply_softmax: bool = True,
) -> list[Expr]:  # fmt: skip
    """The corners (top, left, bottom, right) of all anchors, and the scores of all classes.

    Relay's operator of this name gives those of objects only.
    """
    batch, _, count = ctx.type(cls_pred).shape
    left, top, right, bottom = relay.split(anchor, 4, axis=2)
    moves = relay.reshape(loc_pred, (batch, count, 4))
    x, y, width, height = relay.split(
        relay.multiply(moves, ctx.like(loc_pred, variances)), 4, axis=2
    )

    def around(low: Expr, high: Expr, move: Expr, growth: Expr) -> tuple[Expr, Expr]:
        half = ctx.like(low, 0.5)
        size = relay.subtract(high, low)
        centre = relay.multiply(relay.add(low, high), half)
        middle = relay.add(relay.multiply(move, size), centre)
        reach = relay.multiply(relay.multiply(half, relay.exp(growth)), size)
        return relay.subtract(middle, reach), relay.add(middle, reach)

    lower, upper = around(top, bottom, y, height), around(left, right, x, width)
    boxes = relay.concatenate([lower[0], upper[0], lower[1], upper[1]], axis=2)
    boxes = relay.clip(boxes, 0.0, 1.0) if clip else boxes
    scores = relay.nn.softmax(cls_pred, axis=1) if apply_softmax else cls_pred
    least, none = ctx.like(scores, threshold), ctx.like(scores, 0)
    scores = relay.where(relay.greater_equal(scores, least), scores, none)
    if not keep_background:
        classes = ctx.static_lengths(cls_pred, [1])[0]
        objects = ctx.const(allocation.arange(classes)[:, None] > 0, "bool")
        scores = relay.where(objects, scores, none)
    return [boxes, scores]


@OPS.imports("relax.vision.non_max_suppression")
def import_non_max_suppression(
    ctx: Import, data: Expr, valid_count: Expr, indices: Expr,
    *, max_output_size: int, iou_threshold: float, force_suppress: bool, top_k: int,
    coord_start: int, score_index: int, id_index: int, return_indices: bool,
    invalid_to_bottom: bool, soft_nms_sigma: float, score_threshold: float,
) -> list[Expr]:  # fmt: skip
    if soft_nms_sigma:
        raise Unsupported("scores that fade by overlap have no counterpart")
    if score_threshold > 0:
        raise Unsupported(f"score_threshold={score_threshold} has no counterpart")
    found: AnyValue = relay.vision.non_max_suppression(
        data, valid_count, indices, max_output_size, iou_threshold, force_suppress, top_k,
        coord_start, score_index, id_index, return_indices, invalid_to_bottom,
    )  # fmt: skip
    return [found[0], found[1]] if return_indices else [found]

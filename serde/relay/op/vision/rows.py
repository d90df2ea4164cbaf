"""Rows of boxes of each image, as expressions."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.relay.ir import Expr, TupleGetItem, call, const, tensor_type
from serde.relay.lowering.lengths import sliced

__all__ = [
    "column", "columns", "corners_of", "in_front", "overlap_below", "scalar", "spread_by_class",
    "stay_first", "take_rows",
]  # fmt: skip


def columns(x: Expr, begin: int, end: int, axis: int = 2) -> Expr:
    """Return what lies between two places of an axis."""
    return sliced(x, axis, begin, end)


def column(rows: Expr, index: int) -> Expr:
    """Return one number of each row."""
    return call("take", rows, const(index, "int64"), axis=2, mode="fast")


def corners_of(boxes: Expr) -> tuple[Expr, Expr]:
    """Return the two corners of each box."""
    parts = call("split", boxes, indices_or_sections=2, axis=-1)
    return TupleGetItem(parts, 0), TupleGetItem(parts, 1)


def take_rows(x: Expr, places: Expr) -> Expr:
    """Return the rows, or numbers, of each image at places."""
    if tensor_type(x).rank == 2:
        return call("gather", x, places, axis=1)
    return call("take", x, places, axis=1, batch_dims=1, mode="fast")


def stay_first(stays: Expr) -> tuple[Expr, Expr]:
    """Return the order that puts what stays first, and which of these places have some."""
    gone = call("cast", call("logical_not", stays), dtype="int32")
    order = call("argsort", gone, axis=1, dtype="int64")
    return order, take_rows(stays, order)


def in_front(x: Expr, order: Expr, shown: Expr) -> Expr:
    """Return rows, or numbers, in another order, -1 where none are shown."""
    type_ = tensor_type(x)
    mask = call("expand_dims", shown, axis=2) if type_.rank == 3 else shown
    return call("where", mask, take_rows(x, order), const(-1, type_.dtype))


def spread_by_class(marks: Expr, classes: Expr) -> Expr:
    """Return marks of each class that occurs, 0 for boxes of others."""
    names = TupleGetItem(call("serde.unique", classes), 0)
    named = call("expand_dims", names, axis=1)
    same = call("equal", call("expand_dims", classes, axis=1), named)
    return call("where", same, marks, const(0, tensor_type(marks).dtype))


def scalar(value: AnyValue, dtype: str) -> Expr:
    """Return a number as a constant, an expression as it is."""
    return value if isinstance(value, Expr) else const(value, dtype)


def overlap_below(bound: Expr) -> Expr:
    """Return the overlap above which just what is at least `bound` lies, from 0 to 1.

    The product of a float32 with the number just below 1 is rounded to the number just below it.
    """
    below = call("multiply", bound, const(np.nextafter(np.float32(1), np.float32(0)), "float32"))
    return call("minimum", call("maximum", below, const(0, "float32")), const(1, "float32"))

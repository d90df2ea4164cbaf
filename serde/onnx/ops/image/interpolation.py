"""Resize emitted, axis by axis where it must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.onnx.export_context import ExportContext, Value
from serde.relay.ir.dims import Dim, product


def emit_resize(
    ctx: ExportContext,
    x: Value,
    *,
    sizes: Value | None = None,
    scales: Value | None = None,
    **attrs: AnyValue,
) -> Value:
    """Emit Resize; up to 12 its region and scales cannot be left out, only be empty."""
    empty = ctx.const(np.zeros(0, np.float32)) if ctx.version < 13 else None
    if scales is not None:
        return ctx.emit("Resize", x, empty, scales, **attrs)
    return ctx.emit("Resize", x, empty, empty, sizes, **attrs)


def resize_axis_by_axis(
    ctx: ExportContext,
    x: Value,
    lengths: Sequence[Dim],
    sizes: Sequence[Dim],
    how: Mapping[str, AnyValue],
) -> Value:
    """Resize the spatial axes in turn, each as the width of images one pixel high."""
    shape = list(lengths)
    for axis in range(2, len(shape)):
        rows = product(shape[1:axis])
        columns = product(shape[axis + 1 :])
        if columns == 1:
            folded = [shape[0], rows, 1, shape[axis]]
            grown: list[Dim] = [shape[0], rows, 1, sizes[axis]]
        else:
            folded = [shape[0], rows, shape[axis], columns]
            grown = [shape[0], rows, sizes[axis], columns]
        x = ctx.emit("Reshape", x, ctx.shape(folded))
        x = emit_resize(ctx, x, sizes=ctx.shape(grown), **how)
        shape[axis] = sizes[axis]
    return ctx.emit("Reshape", x, ctx.shape(shape))

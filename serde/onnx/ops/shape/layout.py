"""Orders of axes."""

from __future__ import annotations

from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value


def to_layout(ctx: ExportContext, x: Value, layout: str, wanted: str) -> Value:
    """Return `x`, whose axes are `layout`, with its axes in the order `wanted`.

    Raises:
        Unsupported: The layout does not have these axes.
    """
    if layout == wanted:
        return x
    if sorted(layout) != sorted(wanted):
        raise Unsupported(f"layout {layout!r} has no counterpart", hint=f"use {wanted}")
    return ctx.emit("Transpose", x, perm=[layout.index(letter) for letter in wanted])

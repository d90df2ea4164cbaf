"""Biases of convolutions, and sums in wider numbers."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.core.weights import dtype_name
from serde.relax.export_context import ExportContext, Value

__all__ = ["add_bias", "cast", "sum_dtype"]


def cast(ctx: ExportContext, x: Value, before: str, dtype: str) -> Value:
    """Write `x`, which is of the dtype `before`, in another dtype."""
    return x if before == dtype else ctx.emit("astype", x, dtype)


def sum_dtype(dtype: str, out_dtype: np.dtype[AnyValue] | None) -> str:
    """Return the dtype in which products of tensors of a dtype are summed."""
    wanted = dtype if out_dtype is None else dtype_name(out_dtype)
    return "float32" if wanted in ("float16", "bfloat16") else wanted


def add_bias(ctx: ExportContext, x: Value, bias: Value | None, rank: int) -> Value:
    """Write the addition of a bias to an image of `rank` spatial axes, channels first."""
    if bias is None:
        return x
    (channels,) = ctx.type(bias).shape
    column = ctx.emit("reshape", bias, ctx.shape_expr([1, channels, *[1] * rank]))
    return ctx.emit("add", x, column)

"""Convolutions. ONNX keeps channels behind the batch axis and adds the bias itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim
from serde.relay.shapes import split_padding

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def arranged(ctx: Ctx, x: Value, layout: str, wanted: str) -> Value:
    """Return `x`, whose axes are `layout`, with its axes in the order `wanted`.

    Raises:
        Unsupported: The layout does not have these axes.
    """
    if layout == wanted:
        return x
    if sorted(layout) != sorted(wanted):
        raise Unsupported(f"layout {layout!r} has no counterpart", hint=f"use {wanted}")
    return ctx.emit("Transpose", x, perm=[layout.index(letter) for letter in wanted])


def pads(padding: Sequence[Dim], ndim: int) -> list[int]:
    """Return explicit pads, all before the axes first, as ONNX and Relay order them.

    Raises:
        Unsupported: One is symbolic.
    """
    before, after = split_padding(fixed(padding, "padding"), ndim)
    return [*before, *after]


def fixed(values: Sequence[Dim], name: str) -> list[int]:
    """Return integers.

    Raises:
        Unsupported: One is symbolic.
    """
    result = [value for value in values if isinstance(value, int)]
    if len(result) != len(values):
        raise Unsupported(f"{name}: expected integers, found {list(values)}")
    return result


def _kernel_shape(ctx: Ctx, weight: Value, layout: str, spatial: str) -> list[int]:
    shape = ctx.type(weight).shape
    return fixed([shape[layout.index(letter)] for letter in spatial], "kernel_size")


def _require_dtype(ctx: Ctx, x: Value) -> None:
    if ctx.result_type().dtype != ctx.type(x).dtype:
        raise Unsupported(f"a convolution of {ctx.type(x).dtype} in {ctx.result_type().dtype}")


def _convolution(ndim: int) -> Callable[..., Value]:
    spatial = SPATIAL[ndim]

    def export_convolution(
        ctx: Ctx,
        x: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        strides: tuple[Dim, ...],
        padding: tuple[Dim, ...],
        dilation: tuple[Dim, ...],
        groups: int,
        channels: Dim | None,
        kernel_size: tuple[Dim, ...] | None,
        data_layout: str,
        kernel_layout: str,
        out_layout: str,
        out_dtype: np.dtype[AnyValue] | None,
    ) -> Value:
        _require_dtype(ctx, x)
        result = ctx.emit(
            "Conv",
            arranged(ctx, x, data_layout, "NC" + spatial),
            arranged(ctx, weight, kernel_layout, "OI" + spatial),
            bias,
            kernel_shape=_kernel_shape(ctx, weight, kernel_layout, spatial),
            strides=fixed(strides, "strides"),
            pads=pads(padding, ndim),
            dilations=fixed(dilation, "dilation"),
            group=groups,
        )
        return arranged(ctx, result, "NC" + spatial, out_layout or data_layout)

    return export_convolution


def _transposed(ndim: int) -> Callable[..., Value]:
    spatial = SPATIAL[ndim]

    def export_transposed_convolution(
        ctx: Ctx,
        x: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        channels: Dim | None,
        kernel_size: tuple[Dim, ...] | None,
        strides: tuple[Dim, ...],
        output_padding: tuple[Dim, ...],
        padding: tuple[Dim, ...],
        dilation: tuple[Dim, ...],
        groups: int,
        data_layout: str,
        kernel_layout: str,
        out_layout: str,
        out_dtype: np.dtype[AnyValue] | None,
    ) -> Value:
        _require_dtype(ctx, x)
        result = ctx.emit(
            "ConvTranspose",
            arranged(ctx, x, data_layout, "NC" + spatial),
            arranged(ctx, weight, kernel_layout, "IO" + spatial),
            bias,
            kernel_shape=_kernel_shape(ctx, weight, kernel_layout, spatial),
            strides=fixed(strides, "strides"),
            pads=pads(padding, ndim),
            output_padding=fixed(output_padding, "output_padding"),
            dilations=fixed(dilation, "dilation"),
            group=groups,
        )
        return arranged(ctx, result, "NC" + spatial, out_layout or data_layout)

    return export_transposed_convolution


for _ndim in SPATIAL:
    OPS.exports(f"nn.conv{_ndim}d")(_convolution(_ndim))
    OPS.exports(f"nn.conv{_ndim}d_transpose")(_transposed(_ndim))

"""Convolutions. ONNX adds the bias itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.conv.windows import (
    SPATIAL,
    filters,
    fixed,
    kernel_shape,
    pads,
    require_bytes,
    require_dtype,
)
from serde.onnx.ops.elementwise import cast
from serde.onnx.ops.shape import arranged
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim
from serde.relay.shapes import is_float


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
        integers = not is_float(ctx.type(x).dtype)
        if integers:
            require_bytes(ctx, x, weight)
        else:
            require_dtype(ctx, x)
        inputs = ctx.type(x).shape[data_layout.index("C")]
        result = ctx.emit(
            "ConvInteger" if integers else "Conv",
            arranged(ctx, x, data_layout, "NC" + spatial),
            filters(ctx, weight, kernel_layout, "OI" + spatial, groups, inputs),
            None if integers else bias,
            kernel_shape=kernel_shape(ctx, weight, kernel_layout, spatial),
            strides=fixed(strides, "strides"),
            pads=pads(padding, ndim),
            dilations=fixed(dilation, "dilation"),
            group=groups,
        )
        if ctx.result_type().dtype == "int64":
            result = cast(ctx, result, np.int64)
        if integers and bias is not None:
            result = ctx.emit("Add", result, ctx.view(bias, (*ctx.type(bias).shape, *(1,) * ndim)))
        return arranged(ctx, result, "NC" + spatial, out_layout or data_layout)

    return export_convolution


for _ndim in SPATIAL:
    OPS.exports(f"nn.conv{_ndim}d")(_convolution(_ndim))

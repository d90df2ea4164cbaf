"""Transposed convolutions. ONNX adds the bias itself."""

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
    require_dtype,
)
from serde.onnx.ops.shape import arranged
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim


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
        require_dtype(ctx, x)
        result = ctx.emit(
            "ConvTranspose",
            arranged(ctx, x, data_layout, "NC" + spatial),
            filters(ctx, weight, kernel_layout, "IO" + spatial),
            bias,
            kernel_shape=kernel_shape(ctx, weight, kernel_layout, spatial),
            strides=fixed(strides, "strides"),
            pads=pads(padding, ndim),
            output_padding=fixed(output_padding, "output_padding"),
            dilations=fixed(dilation, "dilation"),
            group=groups,
        )
        return arranged(ctx, result, "NC" + spatial, out_layout or data_layout)

    return export_transposed_convolution


for _ndim in SPATIAL:
    OPS.exports(f"nn.conv{_ndim}d_transpose")(_transposed(_ndim))

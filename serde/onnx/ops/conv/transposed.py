"""Transposed convolutions. ONNX adds the bias itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.conv.direct import AutoPad, per_axis
from serde.onnx.ops.conv.windows import (
    SPATIAL,
    arrange_filters,
    require_dtype,
    require_fixed,
    require_kernel_shape,
    to_onnx_pads,
)
from serde.onnx.ops.shape.layout import to_layout
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr


def _make_conv_transpose_exporter(ndim: int) -> Callable[..., Value]:
    spatial = SPATIAL[ndim]

    def export_transposed_convolution(
        ctx: ExportContext,
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
            to_layout(ctx, x, data_layout, "NC" + spatial),
            arrange_filters(ctx, weight, kernel_layout, "IO" + spatial),
            bias,
            kernel_shape=require_kernel_shape(ctx, weight, kernel_layout, spatial),
            strides=require_fixed(strides, "strides"),
            pads=to_onnx_pads(padding, ndim),
            output_padding=require_fixed(output_padding, "output_padding"),
            dilations=require_fixed(dilation, "dilation"),
            group=groups,
        )
        return to_layout(ctx, result, "NC" + spatial, out_layout or data_layout)

    return export_transposed_convolution


for _ndim in SPATIAL:
    OPS.exports(f"nn.conv{_ndim}d_transpose")(_make_conv_transpose_exporter(_ndim))


def _compute_padding(
    ctx: ImportContext,
    x: Expr,
    reach: Sequence[int],
    strides: Sequence[int],
    extra: Sequence[int],
    wanted: Sequence[int],
    upper: bool,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return pads and output padding that give lengths, or the data's times the strides.

    What is missing from a length comes behind the axis.
    """
    before, after, behind = [], [], []
    lengths = ctx.static_lengths(x, range(2, ctx.type(x).rank)) if wanted else ()
    for axis, (size, step, more) in enumerate(zip(reach, strides, extra, strict=True)):
        total = size + more - step
        if wanted:
            total = step * (lengths[axis] - 1) + more + size - wanted[axis]
        behind.append(more + max(0, -total))
        total = max(0, total)
        before.append(total // 2 if upper else total - total // 2)
        after.append(total - before[-1])
    return (*before, *after), tuple(behind)


@OPS.imports("ConvTranspose", since=(1, 11, 22))
def import_conv_transpose(
    ctx: ImportContext,
    x: Expr,
    w: Expr,
    b: Expr | None = None,
    *,
    auto_pad: AutoPad = "NOTSET",
    dilations: tuple[int, ...] = (),
    group: int = 1,
    kernel_shape: tuple[int, ...] = (),
    output_padding: tuple[int, ...] = (),
    output_shape: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    ndim = ctx.type(w).rank - 2
    if ndim not in SPATIAL:
        raise Unsupported(f"a transposed convolution over {ndim} axes")
    kernel = ctx.static_lengths(w, range(2, ndim + 2))
    if kernel_shape and kernel_shape != kernel:
        raise Unsupported(f"kernel_shape {list(kernel_shape)} with a weight of {ctx.type(w)!r}")
    steps, gaps = per_axis(strides, ndim, "strides"), per_axis(dilations, ndim, "dilations")
    extra = output_padding or (0,) * ndim
    if len(extra) != ndim or len(pads) not in (0, 2 * ndim):
        raise Unsupported(f"pads {list(pads)} and output_padding {list(extra)} of {ndim} axes")
    around = pads or (0,) * (2 * ndim)
    if auto_pad == "VALID" and not output_shape:
        around = (0,) * (2 * ndim)
    elif output_shape or auto_pad != "NOTSET":
        reach = [(size - 1) * gap + 1 for size, gap in zip(kernel, gaps, strict=True)]
        wanted = output_shape[-ndim:]
        upper = auto_pad == "SAME_UPPER"
        around, extra = _compute_padding(ctx, x, reach, steps, extra, wanted, upper)
    channels = ctx.type(w).shape[1] * group
    result = getattr(relay.nn, f"conv{ndim}d_transpose")(
        x,
        w,
        strides=steps,
        padding=around,
        dilation=gaps,
        output_padding=extra,
        groups=group,
        channels=channels,
        kernel_size=kernel,
        data_layout="NC" + SPATIAL[ndim],
        kernel_layout="IO" + SPATIAL[ndim],
    )
    return result if b is None else relay.nn.bias_add(result, b, axis=1)

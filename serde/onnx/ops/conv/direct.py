"""Convolutions. ONNX adds the bias itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.conv.windows import (
    SPATIAL,
    arrange_filters,
    require_bytes,
    require_dtype,
    require_fixed,
    require_kernel_shape,
    to_onnx_pads,
)
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.shape.layout import to_layout
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float


def _make_conv_exporter(ndim: int) -> Callable[..., Value]:
    spatial = SPATIAL[ndim]

    def export_convolution(
        ctx: ExportContext,
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
            to_layout(ctx, x, data_layout, "NC" + spatial),
            arrange_filters(ctx, weight, kernel_layout, "OI" + spatial, groups, inputs),
            None if integers else bias,
            kernel_shape=require_kernel_shape(ctx, weight, kernel_layout, spatial),
            strides=require_fixed(strides, "strides"),
            pads=to_onnx_pads(padding, ndim),
            dilations=require_fixed(dilation, "dilation"),
            group=groups,
        )
        if ctx.result_type().dtype == "int64":
            result = cast(ctx, result, np.int64)
        if integers and bias is not None:
            result = ctx.emit("Add", result, ctx.view(bias, (*ctx.type(bias).shape, *(1,) * ndim)))
        return to_layout(ctx, result, "NC" + spatial, out_layout or data_layout)

    return export_convolution


for _ndim in SPATIAL:
    OPS.exports(f"nn.conv{_ndim}d")(_make_conv_exporter(_ndim))


AutoPad = Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]


def per_axis(values: Sequence[int], ndim: int, name: str) -> tuple[int, ...]:
    """Return one number a spatial axis; 1 each where none are given.

    Raises:
        Unsupported: There are not as many as axes.
    """
    if values and len(values) != ndim:
        raise Unsupported(f"{name}: expected {ndim} numbers, found {len(values)}")
    return tuple(values) or (1,) * ndim


def compute_padding(
    ctx: ImportContext,
    x: Expr,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    auto_pad: AutoPad,
) -> tuple[int, ...]:
    """Return explicit pads, all before the axes first, of a window over the spatial axes.

    Raises:
        Unsupported: They depend on a length that is not known.
    """
    ndim = len(kernel)
    if auto_pad == "VALID":
        return (0,) * (2 * ndim)
    if auto_pad == "NOTSET":
        if pads and len(pads) != 2 * ndim:
            raise Unsupported(f"pads: expected {2 * ndim} numbers, found {len(pads)}")
        return tuple(pads) or (0,) * (2 * ndim)
    totals = []
    for axis, (size, stride, gap) in enumerate(zip(kernel, strides, dilations, strict=True)):
        reach = (size - 1) * gap + 1
        if stride == 1:
            totals.append(reach - 1)
            continue
        (length,) = ctx.static_lengths(x, [2 + axis])
        totals.append(max(0, (-(-length // stride) - 1) * stride + reach - length))
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return tuple(small + large if auto_pad == "SAME_UPPER" else large + small)


def pad_same(
    ctx: ImportContext,
    x: Expr,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    auto_pad: AutoPad,
    value: AnyValue,
) -> tuple[Expr, AutoPad]:
    """Return `x` padded where open lengths decide how much, and how the rest is to be padded.

    With a stride of 1 they do not.
    """
    spatial = ctx.type(x).shape[2:]
    pairs = list(zip(spatial, strides, strict=True))
    depends = any(step > 1 and not isinstance(length, int) for length, step in pairs)
    if not auto_pad.startswith("SAME") or not depends:
        return x, auto_pad
    lengths = relay.shape_of(x, "int64")
    nothing, two = _int64(0), _int64(2)
    widths = [(nothing, nothing)] * 2
    for axis, (size, step, gap) in enumerate(zip(kernel, strides, dilations, strict=True)):
        length = relay.take(lengths, _int64(2 + axis), axis=0, mode="fast")
        last = relay.multiply(
            relay.divide(relay.subtract(length, _int64(1)), _int64(step)), _int64(step)
        )
        end = relay.add(last, _int64((size - 1) * gap + 1))
        total = relay.maximum(relay.subtract(end, length), nothing)
        small = relay.divide(total, two)
        large = relay.subtract(total, small)
        widths.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    sides = relay.stack([relay.stack(pair, axis=0) for pair in widths], axis=0)
    fill = relay.const(value, ctx.type(x).dtype)
    return call("dyn.nn.pad", x, sides, fill, pad_mode="constant"), "VALID"


def _int64(value: int) -> Expr:
    return relay.Constant(np.array(value, np.int64))


@OPS.imports("Conv", since=(1, 11, 22))
def import_conv(
    ctx: ImportContext,
    x: Expr,
    w: Expr,
    b: Expr | None = None,
    *,
    auto_pad: AutoPad = "NOTSET",
    dilations: tuple[int, ...] = (),
    group: int = 1,
    kernel_shape: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    ndim = ctx.type(w).rank - 2
    if ndim not in SPATIAL:
        raise Unsupported(f"a convolution over {ndim} axes")
    kernel = kernel_shape or ctx.static_lengths(w, range(2, ndim + 2))
    if kernel != ctx.static_lengths(w, range(2, ndim + 2)):
        raise Unsupported(f"kernel_shape {list(kernel)} with a weight of {ctx.type(w)!r}")
    steps, gaps = per_axis(strides, ndim, "strides"), per_axis(dilations, ndim, "dilations")
    x, auto_pad = pad_same(ctx, x, kernel, steps, gaps, auto_pad, 0)
    build = getattr(relay.nn, f"conv{ndim}d")
    result = build(
        x,
        w,
        strides=steps,
        padding=compute_padding(ctx, x, kernel, steps, gaps, pads, auto_pad),
        dilation=gaps,
        groups=group,
        channels=ctx.type(w).shape[0],
        kernel_size=kernel,
        data_layout="NC" + SPATIAL[ndim],
        kernel_layout="OI" + SPATIAL[ndim],
    )
    return result if b is None else relay.nn.bias_add(result, b, axis=1)

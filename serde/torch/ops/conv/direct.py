"""Convolutions, and what stands for all of them. Layers add a bias themselves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float, split_padding
from serde.relay.lowering.conv import CONVOLUTIONS, convolution_on_floats, is_on_floats
from serde.torch.export_context import ExportContext, Value
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.conv.transposed import convolve_transposed
from serde.torch.ops.conv.windows import (
    SPATIAL,
    ConvAttributes,
    RelayConv,
    Sizes,
    kernel_size,
    over_batch,
    per_axis,
    require_real,
    write_conv,
)
from serde.torch.ops.shape.pad import flat_widths
from serde.torch.ops.table import OPS


@OPS.imports("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::_convolution_mode")
@OPS.imports(
    "aten::thnn_conv2d", "aten::slow_conv3d", "aten::_slow_conv2d_forward",
    "aten::slow_conv_dilated2d", "aten::slow_conv_dilated3d", "aten::slow_conv3d_forward",
    "aten::mkldnn_convolution", "aten::cudnn_convolution", "aten::miopen_convolution",
    "aten::_mps_convolution",
    ignored=("kernel_size", "benchmark", "deterministic", "allow_tf32"),
    renamed={"self": "input"},
)  # fmt: skip
def convolve(
    ctx: ImportContext,
    input: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    conv: ConvAttributes,
) -> Expr:
    """Return a convolution; integers are summed in their own dtype."""
    require_real(ctx, input)
    kernel = kernel_size(ctx, weight)
    ndim = len(kernel)
    dilation = per_axis(ctx, conv.dilation, ndim, "dilation")
    dtype = ctx.dtype(input)
    build = partial(
        getattr(relay.nn, f"conv{ndim}d"),
        weight=weight,
        strides=per_axis(ctx, conv.stride, ndim, "stride"),
        padding=conv.pads(ctx, kernel, dilation),
        dilation=dilation,
        groups=ctx.fixed(conv.groups),
        channels=ctx.type(weight).shape[0],
        kernel_size=kernel,
        data_layout="NC" + SPATIAL[ndim],
        kernel_layout="OI" + SPATIAL[ndim],
        out_dtype="" if is_float(dtype) else dtype,
    )

    def build_biased(x: Expr) -> Expr:
        found: Expr = build(x)
        return found if bias is None else relay.nn.bias_add(found, bias, axis=1)

    return over_batch(ctx, input, ndim, build_biased)


@OPS.imports("aten::cudnn_convolution_relu")
def import_conv_relu(
    ctx: ImportContext,
    self: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    conv: ConvAttributes,
) -> Expr:
    return relay.nn.relu(convolve(ctx, self, weight, bias, conv=conv))


@OPS.imports("aten::_conv_depthwise2d", "aten::conv_depthwise3d", ignored=("kernel_size",))
def import_depthwise_conv(
    ctx: ImportContext,
    self: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    conv: ConvAttributes,
) -> Expr:
    """Every channel is a group."""
    ndim = ctx.type(weight).rank - 2
    (channels,) = ctx.static_lengths(self, [-1 - ndim])
    return convolve(ctx, self, weight, bias, conv=replace(conv, groups=channels))


@OPS.imports(
    "aten::convolution", "aten::_convolution", "aten::convolution_overrideable",
    ignored=("benchmark", "deterministic", "cudnn_enabled", "allow_tf32"),
)  # fmt: skip
def import_convolution(
    ctx: ImportContext,
    input: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    conv: ConvAttributes,
    transposed: bool,
    output_padding: Sizes = 0,
) -> Expr:
    if transposed:
        return convolve_transposed(
            ctx, input, weight, bias, conv=conv, output_padding=output_padding
        )
    return convolve(ctx, input, weight, bias, conv=conv)


@OPS.imports("aten::conv_tbc")
def import_conv_tbc(
    ctx: ImportContext, self: Expr, weight: Expr, bias: Expr, *, pad: SymInt = 0
) -> Expr:
    """Time, batch and channels in this order, of the weight time, inputs and outputs."""
    moved = relay.transpose(self, axes=[1, 2, 0])
    filters = ctx.fold(relay.transpose(weight, axes=[2, 1, 0]))
    found = convolve(ctx, moved, filters, bias, conv=ConvAttributes(padding=pad))
    return relay.transpose(found, axes=[2, 0, 1])


@OPS.exports(*CONVOLUTIONS, when=is_on_floats)
def export_conv(
    ctx: ExportContext, data: Value, weight: Value, bias: Value | None = None, *, conv: RelayConv
) -> Value:
    """Padding that is not alike on both sides is a node of its own."""
    rank, options, inputs = len(conv.strides), conv.options(), ctx.type(data).shape[1]
    before, after = split_padding(conv.padding, rank)
    if before != after:
        data = ctx.call("F.pad", data, flat_widths(list(zip(before, after, strict=True))))
    elif any(before):
        options["padding"] = before
    return write_conv(ctx, f"Conv{rank}d", data, weight, bias, inputs, options)


OPS.expands(*CONVOLUTIONS)(convolution_on_floats("float64"))

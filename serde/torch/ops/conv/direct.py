"""Convolutions, those at learned positions too, and gradients of convolutions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, is_float, split_padding
from serde.relay.lowering.conv import CONVOLUTIONS, convolution_on_floats, is_on_floats
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
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value


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
    ctx: Import, input: Expr, weight: Expr, bias: Expr | None = None, *, conv: ConvAttributes
) -> Expr:
    """Return a convolution; integers are summed in their own dtype."""
    require_real(ctx, input)
    kernel = kernel_size(ctx, weight)
    ndim = len(kernel)
    dilation = per_axis(ctx, conv.dilation, ndim, "dilation")
    dtype = ctx.dtype(input)
    build = partial(
        getattr(relay.nn, f"conv{ndim}d"), weight=weight,
        strides=per_axis(ctx, conv.stride, ndim, "stride"),
        padding=conv.pads(ctx, kernel, dilation), dilation=dilation, groups=ctx.fixed(conv.groups),
        channels=ctx.type(weight).shape[0], kernel_size=kernel, data_layout="NC" + SPATIAL[ndim],
        kernel_layout="OI" + SPATIAL[ndim], out_dtype="" if is_float(dtype) else dtype,
    )  # fmt: skip

    def build_biased(x: Expr) -> Expr:
        found: Expr = build(x)
        return found if bias is None else relay.nn.bias_add(found, bias, axis=1)

    return over_batch(ctx, input, ndim, build_biased)


@OPS.imports("aten::cudnn_convolution_relu")
def import_conv_relu(
    ctx: Import, self: Expr, weight: Expr, bias: Expr | None = None, *, conv: ConvAttributes
) -> Expr:
    return relay.nn.relu(convolve(ctx, self, weight, bias, conv=conv))


@OPS.imports("aten::_conv_depthwise2d", "aten::conv_depthwise3d", ignored=("kernel_size",))
def import_depthwise_conv(
    ctx: Import, self: Expr, weight: Expr, bias: Expr | None = None, *, conv: ConvAttributes
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
    ctx: Import, input: Expr, weight: Expr, bias: Expr | None = None,
    *, conv: ConvAttributes, transposed: bool, output_padding: Sizes = 0,
) -> Expr:  # fmt: skip
    if transposed:
        return convolve_transposed(
            ctx, input, weight, bias, conv=conv, output_padding=output_padding
        )
    return convolve(ctx, input, weight, bias, conv=conv)


@OPS.imports("aten::conv_tbc")
def import_conv_tbc(ctx: Import, self: Expr, weight: Expr, bias: Expr, *, pad: SymInt = 0) -> Expr:
    """Time, batch and channels in this order, of the weight time, inputs and outputs."""
    moved = relay.transpose(self, axes=[1, 2, 0])
    filters = ctx.fold(relay.transpose(weight, axes=[2, 1, 0]))
    found = convolve(ctx, moved, filters, bias, conv=ConvAttributes(padding=pad))
    return relay.transpose(found, axes=[2, 0, 1])


@OPS.exports(*CONVOLUTIONS, when=is_on_floats)
def export_conv(
    ctx: Export, data: Value, weight: Value, bias: Value | None = None, *, conv: RelayConv
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


@OPS.imports("aten::convolution_backward", ignored=("bias_sizes", "output_padding"))
def import_convolution_backward(
    ctx: Import, grad_output: Expr, input: Expr, weight: Expr,
    *, conv: ConvAttributes, transposed: bool, output_mask: tuple[bool, ...],
) -> tuple[Expr, ...]:  # fmt: skip
    """The gradients of data, weight and bias."""
    if transposed:
        raise Unsupported("the gradient of a transposed convolution")
    kernel = kernel_size(ctx, weight)
    ndim = len(kernel)
    if ctx.type(input).rank != ndim + 2:
        raise Unsupported("the gradient of a convolution without a batch axis")
    asked = list(output_mask)
    found = [
        _of_data(ctx, grad_output, input, weight, conv, kernel) if asked[0] else ctx.unread(),
        _of_weight(ctx, grad_output, input, conv, kernel) if asked[1] else ctx.unread(),
        ctx.unread(),
    ]
    if asked[2]:
        found[2] = relay.sum(grad_output, axis=[0, *range(2, ndim + 2)])
    return tuple(found)


def _of_data(
    ctx: Import, grad: Expr, x: Expr, weight: Expr, conv: ConvAttributes, kernel: tuple[int, ...]
) -> Expr:
    """The transposed convolution, as long as the data."""
    ndim = len(kernel)
    stride, padding, dilation = _geometry(ctx, conv, ndim)
    lengths = ctx.static_lengths(x, range(2, ndim + 2))
    counts = ctx.static_lengths(grad, range(2, ndim + 2))
    extra: list[SymInt] = []
    for axis in range(ndim):
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        own = (counts[axis] - 1) * stride[axis] - 2 * padding[axis] + reach
        extra.append(lengths[axis] - own)
    return convolve_transposed(ctx, grad, weight, None, conv=conv, output_padding=tuple(extra))


def _geometry(
    ctx: Import, conv: ConvAttributes, ndim: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    if isinstance(conv.padding, str):
        raise Unsupported("padding by name")
    return (
        per_axis(ctx, conv.stride, ndim, "stride"),
        per_axis(ctx, conv.padding, ndim, "padding"),
        per_axis(ctx, conv.dilation, ndim, "dilation"),
    )


def _of_weight(
    ctx: Import, grad: Expr, x: Expr, conv: ConvAttributes, kernel: tuple[int, ...]
) -> Expr:
    """Data are convolved with gradients, samples being channels; strides and gaps change places."""
    ndim, groups = len(kernel), ctx.fixed(conv.groups)
    stride, padding, dilation = _geometry(ctx, conv, ndim)
    order = [1, 0, *range(2, ndim + 2)]
    parts = []
    data, gradients = (
        list(relay.split(each, groups, axis=1)) if groups > 1 else [each] for each in (x, grad)
    )
    attributes = ConvAttributes(stride=dilation, padding=padding, dilation=stride)
    for one, other in zip(data, gradients, strict=True):
        left, right = (relay.transpose(each, axes=order) for each in (one, other))
        found = convolve(ctx, left, right, None, conv=attributes)
        axes = list(range(2, ndim + 2))
        cut = relay.strided_slice(
            found, begin=[0] * ndim, end=list(kernel), strides=[1] * ndim, axes=axes
        )
        parts.append(relay.transpose(cut, axes=order))
    return parts[0] if groups == 1 else relay.concatenate(parts, axis=0)

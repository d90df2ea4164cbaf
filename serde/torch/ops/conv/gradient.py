"""Gradients of convolutions."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.conv.direct import convolve
from serde.torch.ops.conv.transposed import convolve_transposed
from serde.torch.ops.conv.windows import ConvAttributes, kernel_size, per_axis
from serde.torch.ops.table import OPS


@OPS.imports("aten::convolution_backward", ignored=("bias_sizes", "output_padding"))
def import_convolution_backward(
    ctx: ImportContext,
    grad_output: Expr,
    input: Expr,
    weight: Expr,
    *,
    conv: ConvAttributes,
    transposed: bool,
    output_mask: tuple[bool, ...],
) -> tuple[Expr, ...]:
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
    ctx: ImportContext,
    grad: Expr,
    x: Expr,
    weight: Expr,
    conv: ConvAttributes,
    kernel: tuple[int, ...],
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
    ctx: ImportContext, conv: ConvAttributes, ndim: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    if isinstance(conv.padding, str):
        raise Unsupported("padding by name")
    return (
        per_axis(ctx, conv.stride, ndim, "stride"),
        per_axis(ctx, conv.padding, ndim, "padding"),
        per_axis(ctx, conv.dilation, ndim, "dilation"),
    )


def _of_weight(
    ctx: ImportContext, grad: Expr, x: Expr, conv: ConvAttributes, kernel: tuple[int, ...]
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

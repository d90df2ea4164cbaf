"""Gradients of convolutions."""

from __future__ import annotations

from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.conv.windows import RelayConv, require_dtype, require_fixed, to_onnx_pads
from serde.onnx.ops.shape.layout import to_layout
from serde.onnx.ops.table import OPS


@OPS.exports("nn.conv2d_backward_weight")
def export_conv2d_backward_weight(
    ctx: ExportContext,
    grad: Value,
    x: Value,
    *,
    conv: RelayConv,
) -> Value:
    """A convolution over the batch, the gradient as its filters, strides and dilation exchanged."""
    require_dtype(ctx, grad)
    groups = conv.groups
    images = _split_groups(ctx, to_layout(ctx, x, conv.kernel_layout, "CNHW"), groups)
    errors = _split_groups(ctx, to_layout(ctx, grad, conv.data_layout, "CNHW"), groups)
    sides = to_onnx_pads(conv.padding, 2)
    strides, dilations = list(conv.strides), list(conv.dilation)
    parts = [
        ctx.emit("Conv", a, b, strides=dilations, dilations=strides, pads=sides)
        for a, b in zip(images, errors, strict=True)
    ]
    whole = ctx.emit("Concat", *parts, axis=1) if groups > 1 else parts[0]
    zeros, ends, axes = (
        ctx.ints([0, 0]),
        ctx.ints(require_fixed(conv.kernel_size or (), "kernel_size")),
        ctx.ints([2, 3]),
    )
    cut = ctx.emit("Slice", whole, zeros, ends, axes)
    return to_layout(ctx, cut, "IOHW", conv.out_layout or "OIHW")


def _split_groups(ctx: ExportContext, x: Value, groups: int) -> tuple[Value, ...]:
    """Return equal parts of the first axis."""
    if groups == 1:
        return (x,)
    count = groups if ctx.version >= 18 else None
    return ctx.emit_tuple("Split", x, outputs=groups, axis=0, num_outputs=count)

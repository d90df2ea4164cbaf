"""Convolutions at learned positions."""

from __future__ import annotations

from serde.relay.ir.shapes import split_padding
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.conv.windows import RelayConv
from serde.torch.ops.table import OPS


@OPS.exports("nn.deformable_conv2d")
def export_deformable_conv2d(
    ctx: ExportContext,
    data: Value,
    offset: Value,
    weight: Value,
    *,
    conv: RelayConv,
    deformable_groups: int,
) -> Value:
    """Places before the first pixel are zero; those after the last fade to zero."""
    (top, left), _ = split_padding(conv.padding, 2)
    return ctx.call(
        ctx.helper("deformable_conv2d"),
        data,
        offset,
        weight,
        list(conv.strides),
        [top, left],
        list(conv.dilation),
        conv.groups,
        deformable_groups,
    )

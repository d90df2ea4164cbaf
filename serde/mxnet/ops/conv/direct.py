"""Convolutions. MXNet pads both sides alike."""

from __future__ import annotations

from dataclasses import replace

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.conv.windows import IGNORED, ConvAttributes, add_bias, is_computed, layouts
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import split_padding
from serde.relay.ir.types import TensorType
from serde.relay.lowering.conv import CONVOLUTIONS, convolution_on_floats
from serde.relay.op.conv.windows import Convolution


@OPS.imports("Convolution", "Convolution_v1", ignored=IGNORED)
def import_convolution(
    ctx: ImportContext,
    data: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    conv: ConvAttributes,
    no_bias: bool = False,
) -> Expr:
    data_layout, kernel_layout = layouts(conv.ndim, conv.layout)
    result = getattr(relay.nn, f"conv{conv.ndim}d")(
        data,
        weight,
        **conv.to_relay(),
        channels=conv.num_filter,
        kernel_size=conv.kernel,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
    )
    return add_bias(result, None if no_bias else bias, data_layout)


@OPS.exports(*CONVOLUTIONS, when=is_computed)
def export_conv(
    ctx: ExportContext, data: Value, weight: Value, bias: Value | None = None, *, conv: Convolution
) -> Value:
    """Uneven padding becomes a node of its own."""
    shape = ctx.static_shape(weight)
    data, pad = _pad_evenly(ctx, data, conv.padding)
    return ctx.emit(
        "Convolution", data, weight, bias, kernel=shape[2:], num_filter=shape[0],
        stride=conv.strides, dilate=conv.dilation, pad=pad, num_group=conv.groups,
        no_bias=bias is None,
    )  # fmt: skip


OPS.expands(*CONVOLUTIONS)(convolution_on_floats("float64"))


def _pad_evenly(
    ctx: ExportContext, data: Value, padding: tuple[int, ...]
) -> tuple[Value, tuple[int, ...]]:
    """Return the data and what is padded on both sides; uneven padding goes in front.

    MXNet's Pad takes tensors of rank 4 and 5 only.
    """
    type_ = ctx.type(data)
    before, after = split_padding(padding, type_.rank - 2)
    if before == after:
        return data, before
    spread = type_.rank == 3
    if spread:
        data = ctx.reshape(data, (*type_.shape[:2], 1, type_.shape[2]))
    sides = [0] * (2 * ctx.type(data).rank)
    for axis, pair in enumerate(zip(before, after, strict=True)):
        place = 2 * (ctx.type(data).rank - len(before) + axis)
        sides[place : place + 2] = pair
    padded = ctx.emit("Pad", data, mode="constant", pad_width=sides, constant_value=0.0)
    if spread:
        wide: list[Dim] = [*type_.shape[:2], type_.shape[2] + before[0] + after[0]]
        shape = (*wide[:2], 1, wide[2])
        padded = ctx.reshape(replace(padded, type=TensorType(shape, type_.dtype)), wide)
    return padded, (0,) * len(before)

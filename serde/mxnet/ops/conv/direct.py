"""Convolutions. MXNet pads both sides alike."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any as AnyValue

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.conv.windows import (
    IGNORED,
    LAYOUTS,
    ConvAttributes,
    add_bias,
    arrange_filters,
    has_mxnet_form,
    layouts,
    narrow_sums,
    product_dtype,
    working_dtype,
)
from serde.mxnet.ops.layout import arranged, fixed_shape, tensor_type
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.precision import as_dtype
from serde.relay.ir.shapes import split_padding
from serde.relay.ir.types import TensorType
from serde.relay.op.conv.windows import Convolution
from serde.walk.expansion.tensors import has_filters_of_channels


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


def _has_whole_filters(call: Call) -> bool:
    """Whether each input channel has one filter a group, as MXNet counts them."""
    data, weight = (tensor_type(each) for each in call.args)
    groups = call.attrs["groups"]
    return groups == 1 or weight.shape[1] == 1 or data.shape[1] != groups


@OPS.exports(
    "nn.conv1d", "nn.conv2d", "nn.conv3d",
    when=lambda call: has_mxnet_form(call) and _has_whole_filters(call),
)  # fmt: skip
def export_conv(
    ctx: ExportContext, data: Value, weight: Value, bias: Value | None = None, *, conv: Convolution
) -> Value:
    """Uneven padding becomes a node of its own."""
    shape = ctx.static_shape(weight)
    has_filters_of_channels(ctx.type(data).shape[1], shape[0], shape[1], conv.groups)
    data, pad = _pad_evenly(ctx, data, conv.padding)
    return ctx.emit(
        "Convolution", data, weight, bias, kernel=shape[2:], num_filter=shape[0],
        stride=conv.strides, dilate=conv.dilation, pad=pad, num_group=conv.groups,
        no_bias=bias is None,
    )  # fmt: skip


@OPS.expands("nn.conv1d", "nn.conv2d", "nn.conv3d")
def expand_conv(data: Expr, weight: Expr, **attrs: AnyValue) -> Expr:
    """A weight of (C, M, ...) for C groups makes C times M channels."""
    ndim = tensor_type(data).rank - 2
    layout, out_layout = attrs["data_layout"], attrs["out_layout"] or attrs["data_layout"]
    wanted, filters = LAYOUTS[ndim, None]
    groups = attrs["groups"]
    weight = arrange_filters(weight, attrs["kernel_layout"], filters)
    result = arranged(data, layout, wanted)
    shape = fixed_shape(weight)
    if has_filters_of_channels(tensor_type(result).shape[1], shape[0], shape[1], groups):
        shape = (shape[0] * shape[1], 1, *shape[2:])
        weight = relay.reshape(weight, shape)
    dtype = product_dtype(data, attrs["out_dtype"])
    wide = working_dtype(data, weight, dtype, shape[1] * math.prod(shape[2:]))
    result = getattr(relay.nn, f"conv{ndim}d")(
        as_dtype(result, wide),
        as_dtype(weight, wide),
        strides=attrs["strides"],
        padding=attrs["padding"],
        dilation=attrs["dilation"],
        groups=groups,
        channels=shape[0],
        kernel_size=shape[2:],
        data_layout=wanted,
        kernel_layout=filters,
    )
    return arranged(narrow_sums(result, dtype), wanted, out_layout)


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

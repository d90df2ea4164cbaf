"""Convolution at learned places, and the correlation of two images."""

from __future__ import annotations

from functools import reduce
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.conv.direct import LAYOUTS
from serde.mxnet.ops.layout import FLOATS, arranged, converted, tensor_type
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import split_padding
from serde.weights import dtype_name


@OPS.imports("Correlation")
def import_correlation(
    ctx: ImportContext,
    data1: Expr,
    data2: Expr,
    *,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
) -> Expr:
    return relay.nn.correlation(
        data1, data2, kernel_size, max_displacement, stride1, stride2, pad_size, is_multiply, "NCHW"
    )


@OPS.exports("nn.correlation")
def export_correlation(
    ctx: ExportContext,
    data1: Value,
    data2: Value,
    *,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: tuple[int, ...],
    is_multiply: bool,
    layout: str,
) -> Value:
    before, after = split_padding(padding, 2)
    if len({*before, *after}) > 1:
        raise Unsupported(f"padding {padding} that differs by side")
    return ctx.emit(
        "Correlation", data1, data2, kernel_size=kernel_size, max_displacement=max_displacement,
        stride1=stride1, stride2=stride2, pad_size=before[0], is_multiply=is_multiply,
    )  # fmt: skip


def _require_images(layout: str | None, kernel: tuple[int, ...]) -> None:
    if layout not in (None, "NCHW") or len(kernel) != 2:
        raise Unsupported(f"layout {layout} and kernel {list(kernel)}; MXNet has NCHW alone")


@OPS.imports("_contrib_ModulatedDeformableConvolution", ignored=("workspace", "im2col_step"))
def import_modulated_deformable_convolution(
    ctx: ImportContext,
    data: Expr,
    offset: Expr,
    mask: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    kernel: tuple[int, ...],
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    num_filter: int,
    num_group: int = 1,
    num_deformable_group: int = 1,
    no_bias: bool = False,
    layout: Literal["NCW", "NCHW", "NCDHW"] | None = None,
) -> Expr:
    _require_images(layout, kernel)
    return call(
        "serde.deform_conv2d", data, weight, offset, bias, mask, strides=stride or (1, 1),
        padding=(pad or (0, 0)) * 2, dilation=dilate or (1, 1), groups=num_group,
        offset_groups=num_deformable_group,
    )  # fmt: skip


@OPS.imports("_contrib_DeformableConvolution", ignored=("workspace",))
def import_deformable_convolution(
    ctx: ImportContext,
    data: Expr,
    offset: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    kernel: tuple[int, ...],
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    num_filter: int,
    num_group: int = 1,
    num_deformable_group: int = 1,
    no_bias: bool = False,
    layout: Literal["NCW", "NCHW", "NCDHW"] | None = None,
) -> Expr:
    """Edges do not fade: up to one pixel past the last it is repeated, before the first is zero."""
    _require_images(layout, kernel)
    strides, dilation, padding = stride or (1, 1), dilate or (1, 1), pad or (0, 0)
    lengths, places = ctx.static_lengths(data, (2, 3)), ctx.static_lengths(offset, (2, 3))
    taps = num_deformable_group * kernel[0] * kernel[1]
    dtype = ctx.type(data).dtype
    shifts = relay.split(relay.reshape(offset, (-1, taps, 2, *places)), 2, axis=2)
    held, inside = [], []
    for axis, shift in enumerate(shifts):
        steps = np.arange(places[axis]) * strides[axis] - padding[axis]
        tap = np.indices(kernel)[axis].reshape(-1, 1, 1, 1) * dilation[axis]
        regular = tap + steps.reshape((1, 1, -1, 1) if axis == 0 else (1, 1, 1, -1))
        regular = np.tile(regular, (num_deformable_group, 1, 1, 1))
        first, end = (relay.Constant((n - regular).astype(dtype)) for n in (0, lengths[axis]))
        last = relay.Constant((lengths[axis] - 1 - regular).astype(dtype))
        inside += [relay.greater_equal(shift, first), relay.less(shift, end)]
        held.append(relay.minimum(shift, last))
    shown = relay.cast(reduce(relay.logical_and, inside), dtype)
    return call(
        "serde.deform_conv2d", data, weight,
        relay.reshape(relay.concatenate(held, axis=2), (-1, 2 * taps, *places)), bias,
        relay.squeeze(shown, [2]), strides=strides, padding=padding * 2, dilation=dilation,
        groups=num_group, offset_groups=num_deformable_group,
    )  # fmt: skip


def _modulated(node: Call) -> bool:
    (top, left, *rest), data = node.attrs["padding"], tensor_type(node.args[0])
    return [top, left] == rest and data.dtype in FLOATS


@OPS.exports("serde.deform_conv2d", when=_modulated)
def export_deform_conv2d(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    offset: Value,
    bias: Value | None,
    mask: Value | None,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    offset_groups: int,
) -> Value:
    """Taps that are not weighed are weighed by one."""
    outputs, *_ = filters = ctx.static_shape(weight)
    if mask is None:
        taps = filters[2] * filters[3] * offset_groups
        mask = ctx.emit("ones_like", ctx.emit("slice_axis", offset, axis=1, begin=0, end=taps))
    operands = [data, offset, mask, weight] + ([] if bias is None else [bias])
    return ctx.emit(
        "_contrib_ModulatedDeformableConvolution", *operands, kernel=filters[2:],
        num_filter=outputs, stride=strides, dilate=dilation, pad=padding[:2], num_group=groups,
        num_deformable_group=offset_groups, no_bias=bias is None, im2col_step=1,
    )  # fmt: skip


def _direct(node: Call) -> bool:
    attrs, data = node.attrs, tensor_type(node.args[0])
    return (
        (attrs["data_layout"], attrs["kernel_layout"]) == LAYOUTS[2, None]
        and attrs["out_layout"] in ("", "NCHW")
        and data.dtype in FLOATS
        and data.dtype == tensor_type(node.args[2]).dtype
        and attrs["out_dtype"] in (None, data.dtype)
    )


@OPS.exports("nn.deformable_conv2d", when=_direct)
def export_deformable_conv2d(
    ctx: ExportContext,
    data: Value,
    offset: Value,
    weight: Value,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    deformable_groups: int,
    groups: int,
    channels: AnyValue,
    kernel_size: AnyValue,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: AnyValue,
) -> Value:
    """Past the last pixel MXNet repeats it, Relay fades to zero: zeros there make them one.

    What MXNet computes for them is cut off.
    """
    filters = ctx.static_shape(weight)
    before, after = split_padding(padding, 2)
    wanted = ctx.static_lengths(offset, (2, 3))
    spare, more = [], []
    for axis, length in enumerate(ctx.static_lengths(data, (2, 3))):
        extra = max(1, after[axis] - before[axis])
        reach = (filters[2 + axis] - 1) * dilation[axis] + 1
        found = (length + extra + 2 * before[axis] - reach) // strides[axis] + 1
        spare.append(extra)
        more.append(found - wanted[axis])
    result = ctx.emit(
        "_contrib_DeformableConvolution", _extended(ctx, data, spare),
        _extended(ctx, offset, more), weight, kernel=filters[2:], num_filter=filters[0],
        stride=strides, dilate=dilation, pad=before, num_group=groups,
        num_deformable_group=deformable_groups, no_bias=True,
    )  # fmt: skip
    if not any(more):
        return result
    return ctx.emit("slice", result, begin=(None, None, 0, 0), end=(None, None, *wanted))


def _extended(ctx: ExportContext, x: Value, rows: list[int]) -> Value:
    """Return images with zeros below and to the right."""
    if not any(rows):
        return x
    sides = (0, 0, 0, 0, 0, rows[0], 0, rows[1])
    return ctx.emit("Pad", x, mode="constant", pad_width=sides, constant_value=0.0)


@OPS.expands("nn.deformable_conv2d")
def expand_deformable_conv2d(
    data: Expr,
    offset: Expr,
    weight: Expr,
    *,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: AnyValue,
    **attrs: AnyValue,
) -> Expr:
    """Other layouts and dtypes are brought to MXNet's, and back."""
    given = tensor_type(data).dtype
    dtype = given if out_dtype is None else dtype_name(out_dtype)
    wide = "float64" if "float64" in (given, dtype) else "float32"
    operands = (
        converted(arranged(each, layout, wanted), wide)
        for each, layout, wanted in (
            (data, data_layout, "NCHW"),
            (offset, data_layout, "NCHW"),
            (weight, kernel_layout, "OIHW"),
        )
    )
    attrs |= {"kernel_size": None, "data_layout": "NCHW", "kernel_layout": "OIHW"}
    result = call("nn.deformable_conv2d", *operands, **attrs)
    return converted(arranged(result, "NCHW", out_layout or data_layout), dtype)

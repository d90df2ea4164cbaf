"""Convolution at learned positions, and the correlation of two images."""

from __future__ import annotations

from functools import reduce
from typing import Any as AnyValue, Literal

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core import dataclass, dtype_name
from serde.errors import Unsupported
from serde.mxnet.ops.conv.direct import ConvAttributes, is_computed
from serde.mxnet.ops.table import FLOATS, OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, as_dtype, call, split_padding, tensor_type
from serde.relay.op.conv.deformable import Displacements
from serde.relay.op.conv.windows import Convolution


@OPS.imports("Correlation")
def import_correlation(
    ctx: Import, data1: Expr, data2: Expr,
    *, kernel_size: int = 1, max_displacement: int = 1, stride1: int = 1, stride2: int = 1,
    pad_size: int = 0, is_multiply: bool = True,
) -> Expr:  # fmt: skip
    return relay.nn.correlation(
        data1, data2, kernel_size, max_displacement, stride1, stride2, pad_size, is_multiply, "NCHW"
    )


def _is_padded_alike(node: Call) -> bool:
    before, after = split_padding(node.attrs["padding"], 2)
    return len({*before, *after}) == 1


@OPS.exports("nn.correlation", when=_is_padded_alike)
def export_correlation(ctx: Export, data1: Value, data2: Value, *, attrs: Displacements) -> Value:
    attributes = {**vars(attrs), "pad_size": attrs.padding[0]}
    del attributes["padding"], attributes["layout"]
    return ctx.emit("Correlation", data1, data2, **attributes)


@dataclass(frozen=True, kw_only=True)
class DeformableAttributes(ConvAttributes):
    """Attributes that the deformable convolutions of MXNet share."""

    num_deformable_group: int = 1
    no_bias: bool = False
    layout: Literal["NCW", "NCHW", "NCDHW"] | None = None

    def to_relay(self) -> dict[str, AnyValue]:
        """Return the attributes of ``serde.deform_conv2d``."""
        if self.layout not in (None, "NCHW") or self.ndim != 2:
            found = f"layout {self.layout} and kernel {list(self.kernel)}"
            raise Unsupported(f"{found}; MXNet has NCHW alone")
        return super().to_relay() | {"offset_groups": self.num_deformable_group}


@OPS.imports("_contrib_ModulatedDeformableConvolution", ignored=("workspace", "im2col_step"))
def import_modulated_deformable_convolution(
    ctx: Import, data: Expr, offset: Expr, mask: Expr, weight: Expr, bias: Expr | None = None,
    *, conv: DeformableAttributes,
) -> Expr:  # fmt: skip
    return call("serde.deform_conv2d", data, weight, offset, bias, mask, **conv.to_relay())


@OPS.imports("_contrib_DeformableConvolution", ignored=("workspace",))
def import_deformable_convolution(
    ctx: Import,
    data: Expr,
    offset: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    conv: DeformableAttributes,
) -> Expr:
    """Edges do not fade: up to one pixel past the last it is repeated, before the first is zero."""
    attrs, kernel = conv.to_relay(), conv.kernel
    strides, dilation, padding = conv.strides, conv.dilation, conv.padding
    lengths, outputs = ctx.static_lengths(data, (2, 3)), ctx.static_lengths(offset, (2, 3))
    taps = conv.num_deformable_group * kernel[0] * kernel[1]
    dtype = ctx.type(data).dtype
    shifts = relay.split(relay.reshape(offset, (-1, taps, 2, *outputs)), 2, axis=2)
    offsets, inside = [], []
    for axis, shift in enumerate(shifts):
        steps = allocation.arange(outputs[axis]) * strides[axis] - padding[axis]
        tap = allocation.indices(kernel)[axis].reshape(-1, 1, 1, 1) * dilation[axis]
        allocation.allow((*kernel, *outputs))
        regular = tap + steps.reshape((1, 1, -1, 1) if axis == 0 else (1, 1, 1, -1))
        regular = allocation.tile(regular, (conv.num_deformable_group, 1, 1, 1))
        first, end = (relay.Constant((n - regular).astype(dtype)) for n in (0, lengths[axis]))
        last = relay.Constant((lengths[axis] - 1 - regular).astype(dtype))
        inside += [relay.greater_equal(shift, first), relay.less(shift, end)]
        offsets.append(relay.minimum(shift, last))
    mask = relay.cast(reduce(relay.logical_and, inside), dtype)
    return call(
        "serde.deform_conv2d", data, weight,
        relay.reshape(relay.concatenate(offsets, axis=2), (-1, 2 * taps, *outputs)), bias,
        relay.squeeze(mask, [2]), **attrs,
    )  # fmt: skip


def _is_direct_deformed(node: Call) -> bool:
    """Whether padding is alike on both sides, and each group of offsets has filters of its own."""
    (top, left, *rest), data, weight = node.attrs["padding"], *map(tensor_type, node.args[:2])
    filters, offset_groups = weight.shape[0], node.attrs["offset_groups"]
    shared = offset_groups > 1 and (not isinstance(filters, int) or filters % offset_groups != 0)
    return [top, left] == rest and data.dtype in FLOATS and not shared


@OPS.exports("serde.deform_conv2d", when=_is_direct_deformed)
def export_deform_conv2d(
    ctx: Export, data: Value, weight: Value, offset: Value, bias: Value | None, mask: Value | None,
    *, strides: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], groups: int,
    offset_groups: int,
) -> Value:  # fmt: skip
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


@OPS.exports("nn.deformable_conv2d", when=is_computed)
def export_deformable_conv2d(
    ctx: Export,
    data: Value,
    offset: Value,
    weight: Value,
    *,
    conv: Convolution,
    deformable_groups: int,
) -> Value:
    """Past the last pixel MXNet repeats it, Relay fades to zero: zeros there make them one.

    What MXNet computes for them is cut off.
    """
    filters = ctx.static_shape(weight)
    before, after = split_padding(conv.padding, 2)
    wanted = ctx.static_lengths(offset, (2, 3))
    spare, more = [], []
    for axis, length in enumerate(ctx.static_lengths(data, (2, 3))):
        extra = max(1, after[axis] - before[axis])
        reach = (filters[2 + axis] - 1) * conv.dilation[axis] + 1
        found = (length + extra + 2 * before[axis] - reach) // conv.strides[axis] + 1
        spare.append(extra)
        more.append(found - wanted[axis])
    result = ctx.emit(
        "_contrib_DeformableConvolution", _pad_after(ctx, data, spare),
        _pad_after(ctx, offset, more), weight, kernel=filters[2:], num_filter=filters[0],
        stride=conv.strides, dilate=conv.dilation, pad=before, num_group=conv.groups,
        num_deformable_group=deformable_groups, no_bias=True,
    )  # fmt: skip
    if not any(more):
        return result
    return ctx.emit("slice", result, begin=(None, None, 0, 0), end=(None, None, *wanted))


def _pad_after(ctx: Export, x: Value, rows: list[int]) -> Value:
    """Return images with zeros below and to the right."""
    if not any(rows):
        return x
    sides = (0, 0, 0, 0, 0, rows[0], 0, rows[1])
    return ctx.emit("Pad", x, mode="constant", pad_width=sides, constant_value=0.0)


@OPS.expands("nn.deformable_conv2d")
def expand_deformable_conv2d(
    data: Expr, offset: Expr, weight: Expr, *, out_dtype: AnyValue, **attrs: AnyValue
) -> Expr:
    """Other dtypes are computed in those that MXNet has."""
    given = tensor_type(data).dtype
    dtype = given if out_dtype is None else dtype_name(out_dtype)
    wide = "float64" if "float64" in (given, dtype) else "float32"
    operands = (as_dtype(each, wide) for each in (data, offset, weight))
    return as_dtype(call("nn.deformable_conv2d", *operands, **attrs), dtype)

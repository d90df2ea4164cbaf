"""Convolutions. MXNet pads both sides alike and keeps weights as (out, in/groups, *kernel)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.layout import FLOATS, arranged, converted, fixed_shape, tensor_type
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import OpDef
from serde.relay.ir.shapes import is_float, split_padding
from serde.relay.ir.types import TensorType
from serde.weights import dtype_name

LAYOUTS = {
    (1, None): ("NCW", "OIW"),
    (2, None): ("NCHW", "OIHW"),
    (3, None): ("NCDHW", "OIDHW"),
    (1, "NCW"): ("NCW", "OIW"),
    (1, "NWC"): ("NWC", "OWI"),
    (2, "NCHW"): ("NCHW", "OIHW"),
    (2, "NHWC"): ("NHWC", "OHWI"),
    (3, "NCDHW"): ("NCDHW", "OIDHW"),
    (3, "NDHWC"): ("NDHWC", "ODHWI"),
}
"""Layouts of data and weight by number of spatial axes and MXNet's ``layout``."""

EXACT = 1 << 53
"""Up to this magnitude a float64 holds every integer."""

LAST = 2**31 - 1
"""Stands for the end of an axis, whatever its length."""

IGNORED = ("workspace", "cudnn_tune", "cudnn_off")


def layouts(ndim: int, layout: str | None) -> tuple[str, str]:
    """Return the layouts of data and weight.

    Raises:
        Unsupported: MXNet has no such layout.
    """
    if (ndim, layout) not in LAYOUTS:
        raise Unsupported(f"layout {layout!r} with {ndim} spatial axes")
    return LAYOUTS[ndim, layout]


def per_axis(value: Sequence[int], ndim: int, default: int, name: str) -> tuple[int, ...]:
    """Return one integer a spatial axis.

    Raises:
        Unsupported: There are neither none nor as many as axes.
    """
    if not value:
        return (default,) * ndim
    if len(value) != ndim:
        raise Unsupported(f"{name}: expected {ndim} values, found {len(value)}")
    return tuple(value)


@OPS.imports("Convolution", "Convolution_v1", ignored=IGNORED)
def import_convolution(
    ctx: ImportContext,
    data: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    kernel: tuple[int, ...],
    num_filter: int,
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    num_group: int = 1,
    no_bias: bool = False,
    layout: str | None = None,
) -> Expr:
    ndim = len(kernel)
    data_layout, kernel_layout = layouts(ndim, layout)
    padding = per_axis(pad, ndim, 0, "pad")
    build = getattr(relay.nn, f"conv{ndim}d")
    result = build(
        data,
        weight,
        strides=per_axis(stride, ndim, 1, "stride"),
        padding=padding + padding,
        dilation=per_axis(dilate, ndim, 1, "dilate"),
        groups=num_group,
        channels=num_filter,
        kernel_size=kernel,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
    )
    return _with_bias(result, None if no_bias else bias, data_layout)


def _with_bias(result: Expr, bias: Expr | None, layout: str) -> Expr:
    return result if bias is None else relay.nn.bias_add(result, bias, axis=layout.index("C"))


@OPS.imports("Deconvolution", ignored=IGNORED)
def import_deconvolution(
    ctx: ImportContext,
    data: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    kernel: tuple[int, ...],
    num_filter: int,
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    adj: tuple[int, ...] = (),
    target_shape: tuple[int, ...] = (),
    num_group: int = 1,
    no_bias: bool = True,
    layout: str | None = None,
) -> Expr:
    """``target_shape`` takes the place of ``pad`` and ``adj``, half of the surplus on each side."""
    ndim = len(kernel)
    data_layout, _ = layouts(ndim, layout)
    if data_layout[1] != "C":
        raise Unsupported(f"layout {layout!r} of a transposed convolution")
    strides = per_axis(stride, ndim, 1, "stride")
    dilation = per_axis(dilate, ndim, 1, "dilate")
    padding = per_axis(pad, ndim, 0, "pad")
    extra = per_axis(adj, ndim, 0, "adj")
    if target_shape and any(target_shape):
        spread = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        given = ctx.type(data).shape[2 : ndim + 2]
        lengths = [length for length in given if isinstance(length, int)]
        if len(lengths) < ndim:
            whole = transposed(
                ndim, data, weight, num_filter, kernel, strides,
                (0,) * ndim, (0,) * ndim, dilation, num_group,
            )  # fmt: skip
            cut = _cut_to(whole, target_shape)
            return _with_bias(cut, None if no_bias else bias, data_layout)
        surplus = [
            (length - 1) * s + reach - target
            for length, s, reach, target in zip(lengths, strides, spread, target_shape, strict=True)
        ]
        if min(surplus) < 0:
            raise Unsupported(f"target_shape {target_shape} is more than the input gives")
        padding = tuple((each + 1) // 2 for each in surplus)
        extra = tuple(each % 2 for each in surplus)
    result = transposed(
        ndim, data, weight, num_filter, kernel, strides, padding, extra, dilation, num_group
    )
    return _with_bias(result, None if no_bias else bias, data_layout)


def _cut_to(whole: Expr, target_shape: Sequence[int]) -> Expr:
    """Cut spatial axes whose lengths are symbols; of an odd surplus, one more in front."""
    ndim = len(target_shape)
    lengths = relay.strided_slice(relay.shape_of(whole, "int64"), [2], [2 + ndim])
    target = relay.Constant(np.array(target_shape, np.int64))
    surplus = relay.add(relay.subtract(lengths, target), relay.const(1, "int64"))
    starts = relay.floor_divide(surplus, relay.const(2, "int64"))
    axes = list(range(2, 2 + ndim))
    cut = relay.strided_slice(whole, starts, relay.add(starts, target), axes=axes)
    return relay.reshape(cut, (0, 0, *target_shape))


def transposed(
    ndim: int,
    data: Expr,
    weight: Expr,
    channels: int,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    extra: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> AnyValue:
    """Return a transposed convolution with the channel axis behind the batch axis."""
    build = getattr(relay.nn, f"conv{ndim}d_transpose")
    data_layout, kernel_layout = LAYOUTS[ndim, None]
    return build(
        data,
        weight,
        channels=channels,
        kernel_size=tuple(kernel),
        strides=tuple(strides),
        output_padding=tuple(extra),
        padding=(*padding, *padding),
        dilation=tuple(dilation),
        groups=groups,
        data_layout=data_layout,
        kernel_layout="IO" + kernel_layout[2:],
    )


def _direct(call: Call) -> bool:
    """Whether a convolution has MXNet's layouts and dtypes."""
    data, attrs = tensor_type(call.args[0]), call.attrs
    wanted, filters = LAYOUTS[data.rank - 2, None]
    transposed = call.op.name.endswith("_transpose") if isinstance(call.op, OpDef) else False
    return (
        attrs["data_layout"] == wanted
        and attrs["kernel_layout"] == ("IO" + filters[2:] if transposed else filters)
        and attrs["out_layout"] in ("", wanted)
        and data.dtype in FLOATS
        and attrs["out_dtype"] in (None, data.dtype)
    )


def _undivided(call: Call) -> bool:
    """Whether each input channel has one filter a group, as MXNet counts them."""
    data, weight = (tensor_type(each) for each in call.args)
    groups = call.attrs["groups"]
    return groups == 1 or weight.shape[1] == 1 or data.shape[1] != groups


@OPS.exports(
    "nn.conv1d", "nn.conv2d", "nn.conv3d", when=lambda call: _direct(call) and _undivided(call)
)
def export_conv(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    channels: AnyValue,
    kernel_size: AnyValue,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: AnyValue,
) -> Value:
    """Uneven padding becomes a node of its own."""
    shape = ctx.static_shape(weight)
    data, pad = _symmetric(ctx, data, padding)
    return ctx.emit(
        "Convolution", data, weight, bias, kernel=shape[2:], num_filter=shape[0], stride=strides,
        dilate=dilation, pad=pad, num_group=groups, no_bias=bias is None,
    )  # fmt: skip


@OPS.expands("nn.conv1d", "nn.conv2d", "nn.conv3d")
def expand_conv(data: Expr, weight: Expr, **attrs: AnyValue) -> Expr:
    """A weight of (C, M, ...) for C groups makes C times M channels."""
    ndim = tensor_type(data).rank - 2
    layout, out_layout = attrs["data_layout"], attrs["out_layout"] or attrs["data_layout"]
    wanted, filters = LAYOUTS[ndim, None]
    groups = attrs["groups"]
    weight = _filters(weight, attrs["kernel_layout"], filters)
    result = arranged(data, layout, wanted)
    shape = fixed_shape(weight)
    if shape[0] == groups == tensor_type(result).shape[1]:
        shape = (shape[0] * shape[1], 1, *shape[2:])
        weight = relay.reshape(weight, shape)
    dtype = _product(data, attrs["out_dtype"])
    wide = _working(data, weight, dtype, shape[1] * math.prod(shape[2:]))
    result = getattr(relay.nn, f"conv{ndim}d")(
        converted(result, wide),
        converted(weight, wide),
        strides=attrs["strides"],
        padding=attrs["padding"],
        dilation=attrs["dilation"],
        groups=groups,
        channels=shape[0],
        kernel_size=shape[2:],
        data_layout=wanted,
        kernel_layout=filters,
    )
    return arranged(_narrowed(result, dtype), wanted, out_layout)


def _filters(weight: Expr, layout: str, wanted: str) -> Expr:
    """Return a weight in a layout, its axis of groups joined with the first one."""
    if "G" not in layout:
        return arranged(weight, layout, wanted)
    moved = arranged(weight, layout, "G" + wanted)
    shape = fixed_shape(moved)
    return relay.reshape(moved, (shape[0] * shape[1], *shape[2:]))


def _product(data: Expr, out_dtype: AnyValue) -> str:
    return tensor_type(data).dtype if out_dtype is None else dtype_name(out_dtype)


def _working(data: Expr, weight: Expr, dtype: str, depth: int) -> str:
    """Return the dtype in which MXNet sums products exactly enough for `dtype`.

    Raises:
        Unsupported: Sums of integers may leave what a float64 holds exactly.
    """
    given = [tensor_type(each).dtype for each in (data, weight)]
    if all(map(is_float, given)):
        return "float64" if "float64" in (*given, dtype) else "float32"
    bounds = [max(-int(info.min), int(info.max)) for info in map(np.iinfo, given)]
    if math.prod(bounds) * depth > EXACT:
        raise Unsupported(f"a convolution of {given[0]} with {given[1]}: MXNet computes in float64")
    return "float64"


def _narrowed(result: Expr, dtype: str) -> Expr:
    """Return sums in `dtype`; those of integers wrap around, as integers do."""
    if not is_float(dtype):
        result = converted(result, "int64")
    return converted(result, dtype)


def _symmetric(
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


def _even(call: Call) -> bool:
    """Whether MXNet cuts off and adds what a transposed convolution does."""
    attrs = call.attrs
    before, after = split_padding(attrs["padding"], tensor_type(call.args[0]).rank - 2)
    pairs = zip(attrs["output_padding"], attrs["strides"], strict=True)
    return bool(before == after) and all(extra < stride for extra, stride in pairs)


@OPS.exports(
    "nn.conv1d_transpose",
    "nn.conv2d_transpose",
    "nn.conv3d_transpose",
    when=lambda call: _direct(call) and _even(call),
)
def export_conv_transpose(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    channels: AnyValue,
    kernel_size: AnyValue,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    output_padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: AnyValue,
) -> Value:
    ndim = ctx.type(data).rank - 2
    shape = ctx.static_shape(weight)
    return ctx.emit(
        "Deconvolution", data, weight, bias, kernel=shape[2:], num_filter=shape[1] * groups,
        stride=strides, dilate=dilation, pad=split_padding(padding, ndim)[0], adj=output_padding,
        num_group=groups, no_bias=bias is None,
    )  # fmt: skip


@OPS.expands("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def expand_conv_transpose(data: Expr, weight: Expr, **attrs: AnyValue) -> Expr:
    """What is cut off or added at one side only is so behind the operator."""
    ndim = tensor_type(data).rank - 2
    layout, out_layout = attrs["data_layout"], attrs["out_layout"] or attrs["data_layout"]
    wanted, filters = LAYOUTS[ndim, None]
    groups = attrs["groups"]
    weight = _filters(weight, attrs["kernel_layout"], "IO" + filters[2:])
    shape = fixed_shape(weight)
    dtype = _product(data, attrs["out_dtype"])
    wide = _working(data, weight, dtype, shape[0] // groups * math.prod(shape[2:]))
    before, after = split_padding(attrs["padding"], ndim)
    surplus = [cut - extra for cut, extra in zip(after, attrs["output_padding"], strict=True)]
    both = [max(min(pair), 0) for pair in zip(before, surplus, strict=True)]
    result = transposed(
        ndim,
        converted(arranged(data, layout, wanted), wide),
        converted(weight, wide),
        shape[1] * groups,
        shape[2:],
        attrs["strides"],
        both,
        (0,) * ndim,
        attrs["dilation"],
        groups,
    )
    added = [(0, 0), (0, 0), *((0, max(-each, 0)) for each in surplus)]
    if any(map(any, added)):
        result = relay.nn.pad(result, added, relay.const(0, wide))
    begin = [first - each for first, each in zip(before, both, strict=True)]
    end = [max(last, 0) - each for last, each in zip(surplus, both, strict=True)]
    if any(begin) or any(end):
        stop = [-each if each else LAST for each in end]
        result = relay.strided_slice(result, begin, stop, [1] * ndim, axes=list(range(2, 2 + ndim)))
    return arranged(_narrowed(result, dtype), wanted, out_layout)

"""Transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.conv.direct import (
    IGNORED,
    LAYOUTS,
    ConvAttributes,
    add_bias,
    is_computed,
    layouts,
    per_axis,
)
from serde.mxnet.ops.table import FLOATS, OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, split_padding, tensor_type
from serde.relay.lowering.conv import TRANSPOSED, convolution_on_floats, cut_behind, dtypes_of
from serde.relay.op.conv.windows import TransposedConvolution


@OPS.imports("Deconvolution", ignored=IGNORED)
def import_deconvolution(
    ctx: Import, data: Expr, weight: Expr, bias: Expr | None = None,
    *, conv: ConvAttributes, adj: tuple[int, ...] = (), target_shape: tuple[int, ...] = (),
    no_bias: bool = True,
) -> Expr:  # fmt: skip
    """``target_shape`` takes the place of ``pad`` and ``adj``, half of the surplus on each side."""
    ndim, kernel = conv.ndim, conv.kernel
    data_layout, _ = layouts(ndim, conv.layout)
    if data_layout[1] != "C":
        raise Unsupported(f"layout {conv.layout!r} of a transposed convolution")
    strides, dilation, padding = conv.strides, conv.dilation, conv.padding
    extra = per_axis(adj, ndim, 0, "adj")
    attrs = {
        "channels": conv.num_filter,
        "kernel_size": kernel,
        "strides": strides,
        "dilation": dilation,
        "groups": conv.num_group,
    }
    if target_shape and any(target_shape):
        reaches = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        given = ctx.type(data).shape[2 : ndim + 2]
        lengths = [length for length in given if isinstance(length, int)]
        if len(lengths) < ndim:
            whole = conv_transpose(data, weight, (0,) * ndim, (0,) * ndim, **attrs)
            return add_bias(_crop(whole, target_shape), None if no_bias else bias, data_layout)
        surplus = [
            (length - 1) * s + reach - target
            for length, s, reach, target in zip(
                lengths, strides, reaches, target_shape, strict=True
            )
        ]
        if min(surplus) < 0:
            raise Unsupported(f"target_shape {target_shape} is more than the input gives")
        padding = tuple((each + 1) // 2 for each in surplus)
        extra = tuple(each % 2 for each in surplus)
    result = conv_transpose(data, weight, padding, extra, **attrs)
    return add_bias(result, None if no_bias else bias, data_layout)


def _crop(whole: Expr, target_shape: Sequence[int]) -> Expr:
    """Cut spatial axes whose lengths are symbols; of an odd surplus, one more in front."""
    ndim = len(target_shape)
    lengths = relay.strided_slice(relay.shape_of(whole, "int64"), [2], [2 + ndim])
    target = relay.Constant(np.array(target_shape, np.int64))
    surplus = relay.add(relay.subtract(lengths, target), relay.const(1, "int64"))
    starts = relay.floor_divide(surplus, relay.const(2, "int64"))
    axes = list(range(2, 2 + ndim))
    cut = relay.strided_slice(whole, starts, relay.add(starts, target), axes=axes)
    return relay.reshape(cut, (0, 0, *target_shape))


def conv_transpose(
    data: Expr,
    weight: Expr,
    padding: Sequence[int],
    output_padding: Sequence[int],
    **attrs: AnyValue,
) -> Expr:
    """Return a transposed convolution with the channel axis behind the batch axis."""
    ndim = len(padding)
    data_layout, kernel_layout = LAYOUTS[ndim, None]
    result: Expr = getattr(relay.nn, f"conv{ndim}d_transpose")(
        data, weight, padding=(*padding, *padding), output_padding=tuple(output_padding),
        data_layout=data_layout, kernel_layout="IO" + kernel_layout[2:], **attrs,
    )  # fmt: skip
    return result


def _is_symmetric(call: Call) -> bool:
    """Whether MXNet cuts off and adds what a transposed convolution does."""
    attrs = call.attrs
    before, after = split_padding(attrs["padding"], tensor_type(call.args[0]).rank - 2)
    pairs = zip(attrs["output_padding"], attrs["strides"], strict=True)
    return bool(before == after) and all(extra < stride for extra, stride in pairs)


def _is_spread(dilation: Sequence[int]) -> bool:
    """Whether filters of three axes are spread, which MXNet refuses."""
    return len(dilation) == 3 and set(dilation) != {1}


def _is_direct(node: Call) -> bool:
    return is_computed(node) and _is_symmetric(node) and not _is_spread(node.attrs["dilation"])


@OPS.exports(*TRANSPOSED, when=_is_direct)
def export_conv_transpose(
    ctx: Export,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    conv: TransposedConvolution,
) -> Value:
    """Filters that are computed are copied: oneDNN errs where the image is the same buffer."""
    ndim = ctx.type(data).rank - 2
    shape = ctx.static_shape(weight)
    if not ctx.is_weight(weight):
        weight = ctx.emit("_mul_scalar", weight, scalar=1.0)
    return ctx.emit(
        "Deconvolution", data, weight, bias, kernel=shape[2:], num_filter=shape[1] * conv.groups,
        stride=conv.strides, dilate=conv.dilation, pad=split_padding(conv.padding, ndim)[0],
        adj=conv.output_padding, num_group=conv.groups, no_bias=bias is None,
    )  # fmt: skip


@OPS.expands(*TRANSPOSED)
def expand_conv_transpose(data: Expr, weight: Expr, **attrs: AnyValue) -> Expr:
    """What is cut off or added at one side only is so behind the operator.

    Filters of three axes that are spread have zeros in between.
    """
    dtypes = dtypes_of(data, weight, out_dtype=attrs["out_dtype"])
    if len(dtypes) > 1 or not dtypes.issubset(FLOATS):
        return convolution_on_floats("float64")(data, weight, **attrs)
    if _is_spread(attrs["dilation"]):
        weight = relay.nn.dilate(weight, (1, 1, *attrs["dilation"]))
        attrs |= {"dilation": (1, 1, 1), "kernel_size": None}
    return cut_behind(data, weight, alike=True, **attrs)

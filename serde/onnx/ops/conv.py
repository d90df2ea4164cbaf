"""Convolutions. ONNX keeps channels behind the batch axis and adds the bias itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.context import ImportContext as ImportCtx
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import cast
from serde.onnx.ops.linalg import BYTES
from serde.onnx.ops.shape import arranged
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim
from serde.relay.expr import Expr
from serde.relay.shapes import is_float, split_padding

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def pads(padding: Sequence[Dim], ndim: int) -> list[int]:
    """Return explicit pads, all before the axes first, as ONNX and Relay order them.

    Raises:
        Unsupported: One is symbolic.
    """
    before, after = split_padding(fixed(padding, "padding"), ndim)
    return [*before, *after]


def fixed(values: Sequence[Dim], name: str) -> list[int]:
    """Return integers.

    Raises:
        Unsupported: One is symbolic.
    """
    result = [value for value in values if isinstance(value, int)]
    if len(result) != len(values):
        raise Unsupported(f"{name}: expected integers, found {list(values)}")
    return result


def filters(ctx: Ctx, weight: Value, layout: str, wanted: str, groups: int) -> Value:
    """Return the weight as ONNX keeps it.

    An axis of groups in front is joined with the one behind it. Relay's depthwise
    weight has the filters of a channel on the input axis; ONNX counts them all in front.
    """
    shape = ctx.type(weight).shape
    if layout == "G" + wanted:
        return ctx.view(weight, (shape[0] * shape[1], *shape[2:]))
    moved = arranged(ctx, weight, layout, wanted)
    lengths = [shape[layout.index(letter)] for letter in wanted]
    if groups == 1 or lengths[0] != groups or lengths[1] == 1:
        return moved
    joined = [lengths[0] * lengths[1], 1, *lengths[2:]]
    return (
        ctx.view(weight, joined)
        if moved is weight
        else ctx.emit("Reshape", moved, ctx.shape(joined))
    )


def kernel_shape(ctx: Ctx, weight: Value, layout: str, spatial: str) -> list[int]:
    """Return the spatial lengths of a weight.

    Raises:
        Unsupported: One is symbolic.
    """
    shape = ctx.type(weight).shape
    return fixed([shape[layout.index(letter)] for letter in spatial], "kernel_size")


EXACT_DEPTH = (1 << 31) // 255**2
"""So many products of two bytes less their zero points add up within int32."""


def require_bytes(ctx: Ctx, x: Value, weight: Value) -> None:
    """Refuse a convolution of integers that ConvInteger, which sums bytes in int32, cannot say.

    Sums in int64 are the same where they cannot leave int32.

    Raises:
        Unsupported: The dtypes are others.
    """
    given = (ctx.type(x).dtype, ctx.type(weight).dtype)
    dtype = ctx.result_type().dtype
    size = ctx.type(weight).size
    enough = dtype == "int64" and isinstance(size, int) and size < EXACT_DEPTH
    if any(each not in BYTES for each in given) or not (dtype == "int32" or enough):
        raise Unsupported(
            f"a convolution of {given[0]} with {given[1]} in {dtype}: "
            f"ONNX convolves int8 and uint8 in int32"
        )


def _require_dtype(ctx: Ctx, x: Value) -> None:
    if ctx.result_type().dtype != ctx.type(x).dtype:
        raise Unsupported(f"a convolution of {ctx.type(x).dtype} in {ctx.result_type().dtype}")


def _convolution(ndim: int) -> Callable[..., Value]:
    spatial = SPATIAL[ndim]

    def export_convolution(
        ctx: Ctx,
        x: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        strides: tuple[Dim, ...],
        padding: tuple[Dim, ...],
        dilation: tuple[Dim, ...],
        groups: int,
        channels: Dim | None,
        kernel_size: tuple[Dim, ...] | None,
        data_layout: str,
        kernel_layout: str,
        out_layout: str,
        out_dtype: np.dtype[AnyValue] | None,
    ) -> Value:
        integers = not is_float(ctx.type(x).dtype)
        if integers:
            require_bytes(ctx, x, weight)
        else:
            _require_dtype(ctx, x)
        result = ctx.emit(
            "ConvInteger" if integers else "Conv",
            arranged(ctx, x, data_layout, "NC" + spatial),
            filters(ctx, weight, kernel_layout, "OI" + spatial, groups),
            None if integers else bias,
            kernel_shape=kernel_shape(ctx, weight, kernel_layout, spatial),
            strides=fixed(strides, "strides"),
            pads=pads(padding, ndim),
            dilations=fixed(dilation, "dilation"),
            group=groups,
        )
        if ctx.result_type().dtype == "int64":
            result = cast(ctx, result, np.int64)
        if integers and bias is not None:
            result = ctx.emit("Add", result, ctx.view(bias, (*ctx.type(bias).shape, *(1,) * ndim)))
        return arranged(ctx, result, "NC" + spatial, out_layout or data_layout)

    return export_convolution


def _transposed(ndim: int) -> Callable[..., Value]:
    spatial = SPATIAL[ndim]

    def export_transposed_convolution(
        ctx: Ctx,
        x: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        channels: Dim | None,
        kernel_size: tuple[Dim, ...] | None,
        strides: tuple[Dim, ...],
        output_padding: tuple[Dim, ...],
        padding: tuple[Dim, ...],
        dilation: tuple[Dim, ...],
        groups: int,
        data_layout: str,
        kernel_layout: str,
        out_layout: str,
        out_dtype: np.dtype[AnyValue] | None,
    ) -> Value:
        _require_dtype(ctx, x)
        result = ctx.emit(
            "ConvTranspose",
            arranged(ctx, x, data_layout, "NC" + spatial),
            filters(ctx, weight, kernel_layout, "IO" + spatial, 1),
            bias,
            kernel_shape=kernel_shape(ctx, weight, kernel_layout, spatial),
            strides=fixed(strides, "strides"),
            pads=pads(padding, ndim),
            output_padding=fixed(output_padding, "output_padding"),
            dilations=fixed(dilation, "dilation"),
            group=groups,
        )
        return arranged(ctx, result, "NC" + spatial, out_layout or data_layout)

    return export_transposed_convolution


for _ndim in SPATIAL:
    OPS.exports(f"nn.conv{_ndim}d")(_convolution(_ndim))
    OPS.exports(f"nn.conv{_ndim}d_transpose")(_transposed(_ndim))


@OPS.exports("nn.conv2d_backward_weight")
def export_conv2d_backward_weight(
    ctx: Ctx,
    grad: Value,
    x: Value,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    channels: Dim | None,
    kernel_size: tuple[int, ...] | None,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    """A convolution over the batch, the gradient as its filters, strides and dilation exchanged."""
    _require_dtype(ctx, grad)
    images = _grouped(ctx, arranged(ctx, x, kernel_layout, "CNHW"), groups)
    errors = _grouped(ctx, arranged(ctx, grad, data_layout, "CNHW"), groups)
    sides = pads(padding, 2)
    parts = [
        ctx.emit("Conv", a, b, strides=list(dilation), dilations=list(strides), pads=sides)
        for a, b in zip(images, errors, strict=True)
    ]
    whole = ctx.emit("Concat", *parts, axis=1) if groups > 1 else parts[0]
    zeros, ends, axes = ctx.ints([0, 0]), ctx.ints(kernel_size or ()), ctx.ints([2, 3])
    cut = ctx.emit("Slice", whole, zeros, ends, axes)
    return arranged(ctx, cut, "IOHW", out_layout or "OIHW")


def _grouped(ctx: Ctx, x: Value, groups: int) -> tuple[Value, ...]:
    """Return equal parts of the first axis."""
    if groups == 1:
        return (x,)
    count = groups if ctx.version >= 18 else None
    return ctx.emit_tuple("Split", x, outputs=groups, axis=0, num_outputs=count)


AutoPad = Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]


def per_axis(values: Sequence[int], ndim: int, name: str) -> tuple[int, ...]:
    """Return one number a spatial axis; 1 each where none are given.

    Raises:
        Unsupported: There are not as many as axes.
    """
    if values and len(values) != ndim:
        raise Unsupported(f"{name}: expected {ndim} numbers, found {len(values)}")
    return tuple(values) or (1,) * ndim


def padding_of(
    ctx: ImportCtx,
    x: Expr,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    auto_pad: AutoPad,
) -> tuple[int, ...]:
    """Return explicit pads, all before the axes first, of a window over the spatial axes.

    Raises:
        Unsupported: They depend on a length that is not known.
    """
    ndim = len(kernel)
    if auto_pad == "VALID":
        return (0,) * (2 * ndim)
    if auto_pad == "NOTSET":
        if pads and len(pads) != 2 * ndim:
            raise Unsupported(f"pads: expected {2 * ndim} numbers, found {len(pads)}")
        return tuple(pads) or (0,) * (2 * ndim)
    totals = []
    for axis, (size, stride, gap) in enumerate(zip(kernel, strides, dilations, strict=True)):
        reach = (size - 1) * gap + 1
        if stride == 1:
            totals.append(reach - 1)
            continue
        (length,) = ctx.static_lengths(x, [2 + axis])
        totals.append(max(0, (-(-length // stride) - 1) * stride + reach - length))
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return tuple(small + large if auto_pad == "SAME_UPPER" else large + small)


@OPS.imports("Conv", since=(1, 11, 22))
def import_conv(
    ctx: ImportCtx,
    x: Expr,
    w: Expr,
    b: Expr | None = None,
    *,
    auto_pad: AutoPad = "NOTSET",
    dilations: tuple[int, ...] = (),
    group: int = 1,
    kernel_shape: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    ndim = ctx.type(w).rank - 2
    if ndim not in SPATIAL:
        raise Unsupported(f"a convolution over {ndim} axes")
    kernel = kernel_shape or ctx.static_lengths(w, range(2, ndim + 2))
    if kernel != ctx.static_lengths(w, range(2, ndim + 2)):
        raise Unsupported(f"kernel_shape {list(kernel)} with a weight of {ctx.type(w)!r}")
    steps, gaps = per_axis(strides, ndim, "strides"), per_axis(dilations, ndim, "dilations")
    build = getattr(relay.nn, f"conv{ndim}d")
    result = build(
        x,
        w,
        strides=steps,
        padding=padding_of(ctx, x, kernel, steps, gaps, pads, auto_pad),
        dilation=gaps,
        groups=group,
        channels=ctx.type(w).shape[0],
        kernel_size=kernel,
        data_layout="NC" + SPATIAL[ndim],
        kernel_layout="OI" + SPATIAL[ndim],
    )
    return result if b is None else relay.nn.bias_add(result, b, axis=1)

"""Convolutions at learned places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.core.allocation import indices
from serde.core.weights import Array
from serde.errors import Unsupported
from serde.onnx.ops.conv.windows import (
    RelayConv,
    per_axis,
    require_fixed,
    require_kernel_shape,
    to_onnx_pads,
)
from serde.onnx.ops.elementwise.convert import as_dtype, cast
from serde.onnx.ops.image.sampling import (
    LINEAR,
    emit_arange,
    flatten_pixels,
    length_as_float64,
    sample,
)
from serde.onnx.ops.shape.reshape import unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, call


@OPS.exports("nn.deformable_conv2d")
def export_deformable_conv2d(
    ctx: Export, x: Value, offset: Value, weight: Value, *, conv: RelayConv, deformable_groups: int
) -> Value:
    """Spelled out: DeformConv fades before the first pixel, where Relay reads zero."""
    source, dtype = ctx.type(x).dtype, ctx.result_type().dtype
    work = "float64" if source == "float64" else "float32"
    batch, inputs, *space = ctx.type(x).shape
    _, outputs, height, width = ctx.result_type().shape
    window = require_kernel_shape(ctx, weight)
    taps, part = window[0] * window[1], inputs // deformable_groups
    image = as_dtype(ctx, x, work)
    shape = (batch * deformable_groups, part, *space)
    table = flatten_pixels(ctx, ctx.emit("Reshape", image, ctx.shape(shape)), shape)
    lengths = ctx.shape([batch * deformable_groups, taps, 2, height, width])
    shifts = ctx.emit("Reshape", as_dtype(ctx, offset, "float64"), lengths)
    dilations = np.reshape(require_fixed(conv.dilation, "dilation"), (2, 1))
    grid = indices(window).reshape(2, -1) * dilations
    strides, pads = require_fixed(conv.strides, "strides"), to_onnx_pads(conv.padding, 2)
    positions = [
        _compute_positions(ctx, shifts, axis, (count, strides[axis], -pads[axis]), grid[axis])
        for axis, count in enumerate((height, width))
    ]
    images = emit_arange(ctx, shape[0], 4)
    ends = [length_as_float64(ctx, length) for length in space]
    read = _sample_or_zero(ctx, table, images, positions, ends, work)
    split = ctx.shape([batch, deformable_groups, taps, height * width, part])
    moved = ctx.emit("Transpose", ctx.emit("Reshape", read, split), perm=[0, 1, 4, 2, 3])
    columns = ctx.shape([batch, conv.groups, inputs // conv.groups * taps, height * width])
    kernel = as_dtype(ctx, weight, work)
    matrix = ctx.emit("Reshape", kernel, ctx.shape([conv.groups, outputs // conv.groups, -1]))
    total = ctx.emit("MatMul", matrix, ctx.emit("Reshape", moved, columns))
    result = ctx.emit("Reshape", total, ctx.shape([batch, outputs, height, width]))
    return result if work == dtype else cast(ctx, result, dtype)


def _compute_positions(
    ctx: Export, shifts: Value, axis: int, steps: tuple[Dim, int, int], tap: Array
) -> Value:
    """Return where each tap reads along an axis: its shift added to its position in the window.

    Args:
        ctx: Where nodes are written.
        shifts: ``(n, taps, 2, height, width)`` of float64.
        axis: 0 for down, 1 for right.
        steps: Number of windows, their distance, and the first one's position.
        tap: The position of each tap in the window.
    """
    count, stride, first = steps
    shift = ctx.emit("Gather", shifts, ctx.const(axis, np.int64), axis=2)
    starts = emit_arange(ctx, count, 2 - axis)
    if stride != 1:
        starts = ctx.emit("Mul", starts, ctx.const(stride, np.float64))
    regular = ctx.emit("Add", starts, ctx.const((tap + first).reshape(-1, 1, 1), np.float64))
    return ctx.emit("Add", shift, regular)


def _sample_or_zero(
    ctx: Export,
    table: Value,
    images: Value,
    indices: Sequence[Value],
    lengths: Sequence[Value],
    dtype: str,
) -> Value:
    """Return pixels between neighbours, those behind the last zero, and zero before the first."""
    read = sample(ctx, table, images, indices, 4, lengths, LINEAR, dtype, zeros=True)
    before = [ctx.emit("Less", position, ctx.const([0], np.float64)) for position in indices]
    outside = unsqueeze(ctx, ctx.emit("Or", *before), [4])
    return ctx.emit("Where", outside, ctx.const(0, dtype), read)


@OPS.exports("serde.deform_conv2d", since=19)
def export_deform_conv2d(
    ctx: Export,
    x: Value,
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
    given = (bias, mask) if mask is not None else (bias,)
    return ctx.emit(
        "DeformConv",
        x,
        weight,
        offset,
        *given,
        kernel_shape=list(ctx.static_lengths(weight, [2, 3])),
        strides=list(strides),
        pads=list(padding),
        dilations=list(dilation),
        group=groups,
        offset_group=offset_groups,
    )


@OPS.imports("DeformConv", since=(19, 22))
def import_deform_conv(
    ctx: Import,
    x: Expr,
    w: Expr,
    offset: Expr,
    b: Expr | None = None,
    mask: Expr | None = None,
    *,
    dilations: tuple[int, ...] = (),
    group: int = 1,
    kernel_shape: tuple[int, ...] = (),
    offset_group: int = 1,
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    ndim = ctx.type(x).rank - 2
    if ndim != 2:
        raise Unsupported(f"a deformable convolution over {ndim} axes")
    if kernel_shape and kernel_shape != ctx.static_lengths(w, [2, 3]):
        raise Unsupported(f"kernel_shape {list(kernel_shape)} with a weight of {ctx.type(w)!r}")
    return call(
        "serde.deform_conv2d",
        x,
        w,
        offset,
        b,
        mask,
        strides=per_axis(strides, 2, "strides"),
        padding=pads or (0, 0, 0, 0),
        dilation=per_axis(dilations, 2, "dilations"),
        groups=group,
        offset_groups=offset_group,
    )

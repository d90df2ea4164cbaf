"""Transposed convolutions. ONNX adds the bias itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.conv.windows import (
    SPATIAL,
    ConvAttributes,
    RelayConv,
    per_axis,
    require_dtype,
    require_fixed,
)
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr
from serde.relay.lowering.conv import TRANSPOSED


@OPS.exports(*TRANSPOSED)
def export_conv_transpose(
    ctx: Export,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    output_padding: tuple[Dim, ...],
    conv: RelayConv,
) -> Value:
    require_dtype(ctx, x)
    longer = require_fixed(output_padding, "output_padding")
    attrs = _lengthen(conv.to_onnx(ctx, weight), longer)
    return ctx.emit("ConvTranspose", x, weight, bias, **attrs)


def _lengthen(attrs: Mapping[str, AnyValue], longer: Sequence[int]) -> dict[str, AnyValue]:
    """Return the attributes of a convolution whose results are longer at the end of each axis.

    ONNX has them longer by less than a stride or a dilation; what is more is padding less there.
    """
    pads, rest = list(attrs["pads"]), list(longer)
    steps = map(max, attrs["strides"], attrs["dilations"])
    for axis, (length, step) in enumerate(zip(longer, steps, strict=True)):
        if length < step:
            continue
        end = len(longer) + axis
        moved = min(length, max(pads[end], 0))
        pads[end] -= moved
        rest[axis] -= moved
        if rest[axis] >= step:
            raise Unsupported(f"output_padding {list(longer)} beyond the strides and dilations")
    return {**attrs, "pads": pads, "output_padding": rest}


def _compute_padding(
    ctx: Import, x: Expr, reach: Sequence[int], strides: Sequence[int], extra: Sequence[int],
    wanted: Sequence[int], upper: bool,
) -> tuple[tuple[int, ...], tuple[int, ...]]:  # fmt: skip
    """Return pads and output padding that give lengths, or the data's times the strides.

    What is missing from a length comes behind the axis.
    """
    before, after, behind = [], [], []
    if len(wanted) not in (0, len(reach)):
        raise Unsupported(f"output_shape {list(wanted)} of {len(reach)} axes")
    lengths = ctx.static_lengths(x, range(2, 2 + len(reach))) if wanted else ()
    for axis, (size, step, more) in enumerate(zip(reach, strides, extra, strict=True)):
        total = size + more - step
        if wanted:
            total = step * (lengths[axis] - 1) + more + size - wanted[axis]
        behind.append(more + max(0, -total))
        total = max(0, total)
        before.append(total // 2 if upper else total - total // 2)
        after.append(total - before[-1])
    return (*before, *after), tuple(behind)


@OPS.imports("ConvTranspose", since=(1, 11, 22))
def import_conv_transpose(
    ctx: Import, x: Expr, w: Expr, b: Expr | None = None,
    *, conv: ConvAttributes, output_padding: tuple[int, ...] = (),
    output_shape: tuple[int, ...] = (),
) -> Expr:  # fmt: skip
    """A length that is asked for, or SAME, decides the pads: the total is split over both sides."""
    kernel = conv.kernel(ctx, w, "a transposed convolution")
    ndim, pads = len(kernel), conv.pads
    strides = per_axis(conv.strides, ndim, "strides")
    dilations = per_axis(conv.dilations, ndim, "dilations")
    extra = output_padding or (0,) * ndim
    if len(extra) != ndim or len(pads) not in (0, 2 * ndim):
        raise Unsupported(f"pads {list(pads)} and output_padding {list(extra)} of {ndim} axes")
    padding = pads or (0,) * (2 * ndim)
    if conv.auto_pad == "VALID" and not output_shape:
        padding = (0,) * (2 * ndim)
    elif output_shape or conv.auto_pad != "NOTSET":
        extents = [(size - 1) * gap + 1 for size, gap in zip(kernel, dilations, strict=True)]
        lengths = output_shape[-ndim:]
        upper = conv.auto_pad == "SAME_UPPER"
        padding, extra = _compute_padding(ctx, x, extents, strides, extra, lengths, upper)
    result = getattr(relay.nn, f"conv{ndim}d_transpose")(
        x, w, strides=strides, padding=padding, dilation=dilations, output_padding=extra,
        groups=conv.group, channels=ctx.type(w).shape[1] * conv.group, kernel_size=kernel,
        data_layout="NC" + SPATIAL[ndim], kernel_layout="IO" + SPATIAL[ndim],
    )  # fmt: skip
    return result if b is None else relay.nn.bias_add(result, b, axis=1)

"""What the convolutions share. ONNX keeps channels behind the batch axis."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.ops.linalg.product import BYTE_DTYPES
from serde.onnx.ops.shape.layout import to_layout
from serde.relay.ir.dims import Dim
from serde.relay.ir.shapes import split_padding

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def to_onnx_pads(padding: Sequence[Dim], ndim: int) -> list[int]:
    """Return explicit pads, all before the axes first, as ONNX and Relay order them.

    Raises:
        Unsupported: One is symbolic.
    """
    before, after = split_padding(require_fixed(padding, "padding"), ndim)
    return [*before, *after]


def require_fixed(values: Sequence[Dim], name: str) -> list[int]:
    """Return integers.

    Raises:
        Unsupported: One is symbolic.
    """
    result = [value for value in values if isinstance(value, int)]
    if len(result) != len(values):
        raise Unsupported(f"{name}: expected integers, found {list(values)}")
    return result


def arrange_filters(
    ctx: ExportContext,
    weight: Value,
    layout: str,
    wanted: str,
    groups: int = 1,
    inputs: Dim | None = None,
) -> Value:
    """Return the weight as ONNX keeps it.

    An axis of groups in front is joined with the one behind it. Relay's depthwise
    weight, of as many groups as data has channels (`inputs`), has the filters of a channel
    on the input axis; ONNX counts them all in front.

    Raises:
        Unsupported: The number of channels is symbolic and decides what the weight means.
    """
    shape = ctx.type(weight).shape
    if layout == "G" + wanted:
        return ctx.view(weight, (shape[0] * shape[1], *shape[2:]))
    moved = to_layout(ctx, weight, layout, wanted)
    lengths = [shape[layout.index(letter)] for letter in wanted]
    if groups == 1 or lengths[0] != groups or lengths[1] == 1:
        return moved
    if inputs is not None and not isinstance(inputs, int):
        raise Unsupported(f"needs a fixed number of channels for {groups} groups, found {inputs}")
    if inputs != groups:
        return moved
    joined = [lengths[0] * lengths[1], 1, *lengths[2:]]
    return (
        ctx.view(weight, joined)
        if moved is weight
        else ctx.emit("Reshape", moved, ctx.shape(joined))
    )


def require_kernel_shape(ctx: ExportContext, weight: Value, layout: str, spatial: str) -> list[int]:
    """Return the spatial lengths of a weight.

    Raises:
        Unsupported: One is symbolic.
    """
    shape = ctx.type(weight).shape
    return require_fixed([shape[layout.index(letter)] for letter in spatial], "kernel_size")


EXACT_DEPTH = (1 << 31) // 255**2
"""So many products of two bytes less their zero points add up within int32."""


def require_bytes(ctx: ExportContext, x: Value, weight: Value) -> None:
    """Refuse a convolution of integers that ConvInteger, which sums bytes in int32, cannot say.

    Sums in int64 are the same where they cannot leave int32.

    Raises:
        Unsupported: The dtypes are others.
    """
    given = (ctx.type(x).dtype, ctx.type(weight).dtype)
    dtype = ctx.result_type().dtype
    size = ctx.type(weight).size
    enough = dtype == "int64" and isinstance(size, int) and size < EXACT_DEPTH
    if any(each not in BYTE_DTYPES for each in given) or not (dtype == "int32" or enough):
        raise Unsupported(
            f"a convolution of {given[0]} with {given[1]} in {dtype}: "
            f"ONNX convolves int8 and uint8 in int32"
        )


def require_dtype(ctx: ExportContext, x: Value) -> None:
    """Refuse a convolution in another dtype than its data.

    Raises:
        Unsupported: The result has another.
    """
    if ctx.result_type().dtype != ctx.type(x).dtype:
        raise Unsupported(f"a convolution of {ctx.type(x).dtype} in {ctx.result_type().dtype}")

"""Convolutions as they are written: channels behind the samples, biases inside."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float, layout_axes, split_padding
from serde.relay.ir.types import TensorType
from serde.relay.op.conv.windows import Convolution
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.shape.pad import flat_widths
from serde.torch.ops.table import OPS
from serde.torch.ops.written import DType, cast, permute
from serde.walk.expansion.tensors import has_filters_of_channels

SPATIAL: Final = {1: "W", 2: "HW", 3: "DHW"}


class RelayConv(Convolution):
    """Attributes of Relay's convolutions."""

    def options(self) -> dict[str, object]:
        """Return what differs from PyTorch's defaults, padding left out."""
        found: dict[str, object] = {}
        if set(self.strides) != {1}:
            found["stride"] = tuple(self.strides)
        if set(self.dilation) != {1}:
            found["dilation"] = tuple(self.dilation)
        if self.groups != 1:
            found["groups"] = self.groups
        return found


def to_channels_first(ctx: ExportContext, x: Value, layout: str, rank: int) -> Value:
    """Return data with channels behind the samples and the spatial axes in order."""
    axes = layout_axes(layout, "NC" + SPATIAL[rank])
    type_ = ctx.type(x)
    moved = permute(ctx, x, axes)
    return ctx.typed(moved, TensorType([type_.shape[axis] for axis in axes], type_.dtype))


def from_channels_first(ctx: ExportContext, x: Value, layout: str, rank: int) -> Value:
    """Return data in a layout."""
    return permute(ctx, x, ["NC".join(["", SPATIAL[rank]]).index(letter) for letter in layout])


def arrange_filters(
    ctx: ExportContext, weight: Value, layout: str, rank: int, first: str, splits: int | None
) -> Value:
    """Return a weight as PyTorch has it: a weight still where it is one.

    Args:
        ctx: What is written.
        weight: The filters.
        layout: Order of their axes, G being that of groups.
        rank: Number of spatial axes.
        first: "O", or "I" of transposed convolutions.
        splits: Number of groups where outputs of a group are the second axis, None elsewhere.
    """
    letters = first + ("I" if first == "O" else "O") + SPATIAL[rank]
    grouped = "G" in layout
    axes = layout_axes(layout, ("G" if grouped else "") + letters)
    type_ = ctx.type(weight)
    shape: list[Dim] = [type_.shape[axis] for axis in axes]
    merged = [shape[0] * shape[1], *shape[2:]] if grouped else shape
    if splits is not None and isinstance(merged[1], int) and merged[1] > 1:
        merged = [merged[0] * merged[1], 1, *merged[2:]]

    def build(w: Expr) -> Expr:
        if list(axes) != list(range(len(axes))):
            w = relay.transpose(w, axes)
        return w if merged == shape else relay.reshape(w, merged)

    if list(axes) == list(range(len(axes))) and merged == shape:
        return weight
    if ctx.is_weight(weight):
        return ctx.computed(build, weight)
    found = permute(ctx, weight, axes)
    if merged != shape:
        found = ctx.method(found, "reshape", *ctx.sizes(merged))
    return ctx.typed(found, TensorType(merged, type_.dtype))


def compute_dtype(ctx: ExportContext, data: Value, out_dtype: DType | None) -> str:
    """Return the dtype to multiply in: of integers one that holds the sums, as PyTorch has it."""
    dtype = ctx.type(data).dtype
    if is_float(dtype):
        return dtype if out_dtype is None or not is_float(out_dtype.name) else max(
            (dtype, out_dtype.name), key=lambda name: np.dtype(name).itemsize
        )  # fmt: skip
    return "float64"


def from_compute_dtype(ctx: ExportContext, result: Value, source: str) -> Value:
    """Return sums in the dtype of the result; those of integers wrap around."""
    wanted = ctx.result_type().dtype
    if source == "float64" and not is_float(wanted):
        result = ctx.method(result, "to", ctx.dtype("int64"))
        return cast(ctx, result, wanted, "int64")
    return cast(ctx, result, wanted, source)


def _typed_cast(ctx: ExportContext, x: Value, dtype: str) -> Value:
    type_ = ctx.type(x)
    if x.data is not None:
        return ctx.const(x.data.astype(dtype))
    return ctx.typed(cast(ctx, x, dtype), TensorType(type_.shape, dtype))


def _add_bias(ctx: ExportContext, x: Value, bias: Value, rank: int) -> Value:
    return ctx.infix("+", x, ctx.method(bias, "reshape", -1, *[1] * rank))


def _is_exact_in_float64(ctx: ExportContext, data: Value, weight: Value) -> bool:
    """Whether sums of products of integers are below 2**53."""
    widths = {"bool": 1, "int8": 8, "uint8": 8, "int16": 16, "uint16": 16}
    both = [widths.get(ctx.type(each).dtype, 64) for each in (data, weight)]
    return sum(both) <= 32


def export_convolution(
    ctx: ExportContext, data: Value, weight: Value, bias: Value | None, conv: RelayConv, rank: int
) -> Value:
    """Integers are multiplied as float64, which holds their sums."""
    work = compute_dtype(ctx, data, conv.out_dtype)
    integers = not is_float(ctx.type(data).dtype)
    if integers and not _is_exact_in_float64(ctx, data, weight):
        raise Unsupported(f"a convolution of {ctx.type(data).dtype}")
    x = to_channels_first(ctx, data, conv.data_layout, rank)
    inputs = ctx.type(x).shape[1]
    splits = _splits(ctx, weight, conv, inputs)
    w = arrange_filters(ctx, weight, conv.kernel_layout, rank, "O", splits)
    options = conv.options()
    before, after = split_padding(conv.padding, rank)
    x = _typed_cast(ctx, x, work)
    if before != after:
        x = ctx.call("F.pad", x, flat_widths(list(zip(before, after, strict=True))))
    elif any(before):
        options["padding"] = before
    if integers or work != ctx.type(w).dtype:
        result = ctx.call(f"F.conv{rank}d", x, _typed_cast(ctx, w, work), **options)
        result = from_compute_dtype(ctx, result, work)
        if bias is not None:
            result = _add_bias(ctx, result, bias, rank)
    else:
        result = _write_conv(ctx, f"onv{rank}d", x, w, bias, inputs, options)
    return from_channels_first(ctx, result, conv.out_layout or conv.data_layout, rank)


def _export_conv(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    rank: int,
    conv: RelayConv,
) -> Value:
    return export_convolution(ctx, data, weight, bias, conv, rank)


def _splits(ctx: ExportContext, weight: Value, conv: RelayConv, inputs: Dim) -> int | None:
    """Return the groups where outputs of a group are the second axis of the weight, else None.

    Raises:
        Unsupported: It is not known whether they are.
    """
    outputs = _outputs(ctx, weight, conv.kernel_layout)
    inner = ctx.type(weight).shape[conv.kernel_layout.index("I")]
    return conv.groups if has_filters_of_channels(inputs, outputs, inner, conv.groups) else None


def _outputs(ctx: ExportContext, weight: Value, layout: str) -> Dim:
    shape = ctx.type(weight).shape
    count = shape[layout.index("O")]
    return count * shape[layout.index("G")] if "G" in layout else count


def _write_conv(
    ctx: ExportContext,
    name: str,
    x: Value,
    w: Value,
    bias: Value | None,
    inputs: Dim,
    options: dict[str, object],
    *,
    transposed: bool = False,
) -> Value:
    """Write a layer where its weights are weights, a function elsewhere."""
    shape = ctx.type(w).shape
    fixed = [each for each in shape if isinstance(each, int)]
    groups = options.get("groups", 1)
    vector = bias is None or ctx.type(bias).rank == 1
    if not (ctx.is_weight(w, bias) and len(fixed) == len(shape) and vector):
        given = [] if bias is None else [bias]
        return ctx.call(f"F.c{name}", x, w, *given, **options)
    if not isinstance(inputs, int):
        inputs = fixed[0] if transposed else fixed[1] * int(str(groups))
    weights, made = {"weight": w}, dict(options)
    if bias is None:
        made["bias"] = False
    else:
        weights["bias"] = bias
    return ctx.layer(
        f"nn.C{name[:-1]}d" if "_" not in name else f"nn.ConvTranspose{len(shape) - 2}d",
        (x,),
        weights,
        in_channels=inputs,
        out_channels=fixed[1] * int(str(groups)) if transposed else fixed[0],
        kernel_size=tuple(fixed[2:]),
        **made,
    )


for _rank in SPATIAL:
    OPS.exports(f"nn.conv{_rank}d")(partial(_export_conv, rank=_rank))


def export_transposed_convolution(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    bias: Value | None,
    conv: RelayConv,
    output_padding: tuple[int, ...],
    rank: int,
) -> Value:
    """What is cut less behind than before is output padding; more is cut from the result."""
    work = compute_dtype(ctx, data, conv.out_dtype)
    if not is_float(ctx.type(data).dtype) and not _is_exact_in_float64(ctx, data, weight):
        raise Unsupported(f"a convolution of {ctx.type(data).dtype}")
    x = _typed_cast(ctx, to_channels_first(ctx, data, conv.data_layout, rank), work)
    w = arrange_filters(ctx, weight, conv.kernel_layout, rank, "I", None)
    inputs, options = ctx.type(x).shape[1], conv.options()
    before, after = split_padding(conv.padding, rank)
    extra = [p + b - a for p, b, a in zip(output_padding, before, after, strict=True)]
    limits = map(max, zip(conv.strides, conv.dilation, strict=True))
    direct = all(0 <= e < limit for e, limit in zip(extra, limits, strict=True))
    plain = direct and work == ctx.type(w).dtype
    if direct:
        if any(before):
            options["padding"] = before
        if any(extra):
            options["output_padding"] = tuple(extra)
    name = f"onv_transpose{rank}d"
    if plain:
        result = _write_conv(ctx, name, x, w, bias, inputs, options, transposed=True)
        return from_channels_first(ctx, result, conv.out_layout or conv.data_layout, rank)
    result = ctx.call(f"F.c{name}", x, _typed_cast(ctx, w, work), **options)
    if not direct:
        sides = [(-b, p - a) for p, b, a in zip(output_padding, before, after, strict=True)]
        result = ctx.call("F.pad", result, flat_widths(sides))
    result = from_compute_dtype(ctx, result, work)
    if bias is not None:
        result = _add_bias(ctx, result, bias, rank)
    return from_channels_first(ctx, result, conv.out_layout or conv.data_layout, rank)


def _export_conv_transpose(
    ctx: ExportContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    rank: int,
    conv: RelayConv,
    output_padding: tuple[int, ...],
) -> Value:
    return export_transposed_convolution(ctx, data, weight, bias, conv, output_padding, rank)


for _rank in SPATIAL:
    OPS.exports(f"nn.conv{_rank}d_transpose")(partial(_export_conv_transpose, rank=_rank))


@OPS.exports("nn.deformable_conv2d")
def export_deformable_conv2d(
    ctx: ExportContext,
    data: Value,
    offset: Value,
    weight: Value,
    *,
    conv: RelayConv,
    deformable_groups: int,
) -> Value:
    """Places before the first pixel are zero; those after the last fade to zero."""
    (top, left), _ = split_padding(conv.padding, 2)
    result = ctx.call(
        ctx.helper("deformable_conv2d"),
        to_channels_first(ctx, data, conv.data_layout, 2),
        to_channels_first(ctx, offset, conv.data_layout, 2),
        arrange_filters(ctx, weight, conv.kernel_layout, 2, "O", None),
        list(conv.strides),
        [top, left],
        list(conv.dilation),
        conv.groups,
        deformable_groups,
    )
    return from_channels_first(ctx, result, conv.out_layout or conv.data_layout, 2)

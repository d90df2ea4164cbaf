"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Literal

import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.coreml.mlprogram.ops.conv import ConvAttributes, Padding, to_relay_padding
from serde.coreml.neuralnetwork.import_context import images
from serde.coreml.neuralnetwork.layer_weights import LayerWeights
from serde.coreml.neuralnetwork.layers import value_weight
from serde.coreml.neuralnetwork.message_view import MessageView
from serde.coreml.neuralnetwork.ops.table import LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType, Var, call
from serde.relay.run.computed import ComputedWeight


def borders(part: MessageView | None) -> tuple[int, ...]:
    """Return amounts at both ends of height, then of width."""
    found = [] if part is None else list(part.message.borderAmounts)
    if len(found) not in (0, 2):
        raise Unsupported(f"expected amounts for height and width, found {len(found)}")
    pairs = [(int(each.startEdgeSize), int(each.endEdgeSize)) for each in found]
    return tuple(each for pair in pairs for each in pair) or (0, 0, 0, 0)


def pad_type(same: MessageView | None) -> Padding:
    """Return which side gets more where both sides cannot get the same."""
    if same is None:
        return "custom"
    return "same_lower" if same.message.asymmetryMode == 1 else "same"


@dataclass(frozen=True)
class Window:
    """A window over the last axes.

    Attributes:
        kernel: Its lengths.
        stride: Steps from one to the next.
        dilation: Steps from one element to the next.
        kind: How the data are padded.
        pad: By how much before and after each axis, where `kind` says so.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    kind: Padding
    pad: tuple[int, ...]

    def padding(self, ctx: Import, x: Expr) -> tuple[int, ...]:
        """Return the padding as Relay has it; lengths are looked at where it depends on them."""
        rank, count = ctx.type(x).rank, len(self.kernel)
        lengths = (0,) * count
        if self.kind in ("same", "same_lower") and any(each != 1 for each in self.stride):
            lengths = ctx.static_lengths(x, range(rank - count, rank))
        return to_relay_padding(
            lengths, self.kernel, self.stride, self.dilation, self.kind, self.pad
        )


@LAYERS.imports("convolution")
def import_convolution(
    ctx: Import, x: Expr, w: Expr | None = None,
    *, output_channels: int = 0, kernel_channels: int = 0, n_groups: int = 1,
    kernel_size: tuple[int, ...] = (3, 3), stride: tuple[int, ...] = (1, 1),
    dilation_factor: tuple[int, ...] = (1, 1), valid: MessageView | None = None,
    same: MessageView | None = None, is_deconvolution: bool = False, parameters: LayerWeights,
    output_shape: tuple[int, ...] = (),
) -> Expr:  # fmt: skip
    """A deconvolution has no dilation, whatever is written; a second input is the weight."""
    if len(kernel_size) != 2:
        raise Unsupported(f"a convolution of images along {len(kernel_size)} axes")
    ctx.at_least(x, 4)
    data, restore = images(ctx, x)
    kind = pad_type(same)
    pad = borders(None if valid is None else valid.submessage("paddingAmounts"))
    shape = (output_channels, kernel_channels, *kernel_size)
    if is_deconvolution:
        shape = (kernel_channels, output_channels // n_groups, *kernel_size)
    result = _convolve(
        ctx,
        data,
        ctx.weight(parameters.weights, shape, axis=int(is_deconvolution)) if w is None else w,
        Window(kernel_size, stride, dilation_factor, kind, pad),
        n_groups,
        output_channels,
        output_shape if is_deconvolution else None,
    )
    return restore(parameters.add_bias(ctx, result, output_channels, axis=1))


def _convolve(
    ctx: Import, x: Expr, weight: Expr, window: Window, groups: int, channels: int,
    output_shape: tuple[int, ...] | None,
) -> Expr:  # fmt: skip
    """Return a convolution, or a transposed one where an output shape, maybe empty, is given."""
    name = f"nn.conv{len(window.kernel)}d"
    attrs: dict[str, AnyValue] = {"strides": window.stride}
    if output_shape is None:
        attrs |= {"padding": window.padding(ctx, x), "dilation": window.dilation}
    else:
        name = f"{name}_transpose"
        around, rest = _crop(ctx, x, window, output_shape)
        attrs |= {"padding": around, "output_padding": rest}
    attrs |= {"groups": groups, "channels": channels, "kernel_size": window.kernel}
    return call(name, x, weight, **attrs)


def _crop(
    ctx: Import, x: Expr, window: Window, wanted: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what a deconvolution leaves out at both ends, and what it adds at the far one."""
    kernel, stride, kind, pad = window.kernel, window.stride, window.kind, window.pad
    if kind == "custom" and not wanted:
        return (*pad[0::2], *pad[1::2]), (0,) * len(kernel)
    rank = ctx.type(x).rank
    if wanted:
        lengths = ctx.static_lengths(x, range(rank - len(kernel), rank))
        whole = [
            (length - 1) * step + size
            for length, step, size in zip(lengths, stride, kernel, strict=True)
        ]
        totals = [have - want for have, want in zip(whole, wanted, strict=True)]
    else:
        totals = [size - step for size, step in zip(kernel, stride, strict=True)]
    before, after, rest = [], [], []
    for total in totals:
        small, large = max(0, total) // 2, -(-max(0, total) // 2)
        lower = kind == "same_lower" and not wanted
        before.append(large if lower else small)
        after.append(small if lower else large)
        rest.append(max(0, -total))
    return (*before, *after), tuple(rest)


Padding3d = Literal["CUSTOM", "VALID", "SAME"]

_AXES = ("depth", "height", "width")
_ENDS = ("front", "back", "top", "bottom", "left", "right")


@dataclass(frozen=True, kw_only=True)
class WindowAttributes3d:
    """Attributes that layers over depth, height and width have."""

    kernel_depth: int = 3
    kernel_height: int = 3
    kernel_width: int = 3
    stride_depth: int = 1
    stride_height: int = 1
    stride_width: int = 1
    padding_type: Padding3d = "CUSTOM"
    custom_padding_front: int = 0
    custom_padding_back: int = 0
    custom_padding_top: int = 0
    custom_padding_bottom: int = 0
    custom_padding_left: int = 0
    custom_padding_right: int = 0

    def window(self, dilation: tuple[int, ...] = (1, 1, 1)) -> Window:
        """Return the window, over the last three axes."""
        kernel = self.kernel_depth, self.kernel_height, self.kernel_width
        stride = self.stride_depth, self.stride_height, self.stride_width
        kind: Padding = "same" if self.padding_type == "SAME" else "custom"
        pad: tuple[int, ...] = (0,) * 6
        if self.padding_type == "CUSTOM":
            pad = tuple(getattr(self, f"custom_padding_{end}") for end in _ENDS)
        return Window(kernel, stride, dilation, kind, pad)


@LAYERS.imports("convolution3d")
def import_convolution3d(
    ctx: Import, x: Expr,
    *, output_channels: int = 0, input_channels: int = 0, n_groups: int = 1,
    spatial: WindowAttributes3d, dilation_depth: int = 1, dilation_height: int = 1,
    dilation_width: int = 1, parameters: LayerWeights, is_deconvolution: bool = False,
    output_shape: tuple[int, ...] = (),
) -> Expr:  # fmt: skip
    """Axes are batch, channel, depth, height and width."""
    window = spatial.window((dilation_depth, dilation_height, dilation_width))
    shape = (output_channels, input_channels // n_groups, *window.kernel)
    if is_deconvolution:
        shape = (input_channels, output_channels // n_groups, *window.kernel)
    result = _convolve(
        ctx, x, ctx.weight(parameters.weights, shape, axis=int(is_deconvolution)), window, n_groups,
        output_channels, output_shape if is_deconvolution else None,
    )  # fmt: skip
    return parameters.add_bias(ctx, result, output_channels, axis=1)


def border_amounts(pad: Sequence[int]) -> dict[str, AnyValue]:
    """Return amounts at both ends of height and width as a message; they come pair by pair."""
    pairs = list(zip(pad[0::2], pad[1::2], strict=True))
    return {"border_amounts": [{"start_edge_size": a, "end_edge_size": b} for a, b in pairs]}


def lifted_line(ctx: Export, x: Value) -> Value:
    """Return a batch of lines as images of one row."""
    shape = [*x.type.shape[:2], 1, x.type.shape[2]]
    return ctx.layer("expandDims", x, of=TensorType(shape, x.type.dtype), axes=[2])


def image_type(ctx: Export) -> TensorType:
    """Return the type of the result, of lines that of images of one row."""
    shape = ctx.result_type().shape
    return (
        ctx.result_type() if len(shape) == 4 else TensorType((*shape[:2], 1, shape[2]), "float32")
    )


def lowered_line(ctx: Export, x: Value) -> Value:
    """Return images as what the operation gives: images, or lines that had one row."""
    return x if ctx.result_type().rank == 4 else ctx.layer("squeeze", x, axes=[2])


@LAYERS.exports("conv")
def export_conv(
    ctx: Export, x: Value, weight: Value, bias: Value | None = None, *, conv: ConvAttributes
) -> Value:
    """A line is an image of one row."""
    if len(conv.strides) == 3:
        return _volume(ctx, x, weight, bias, conv)
    channels, per_group, *kernel = ctx.static_shape(weight, at_least=2)
    if not weight.is_known and len(kernel) == 1:
        of = TensorType((channels, per_group, 1, *kernel), weight.type.dtype)
        weight = ctx.layer("expandDims", weight, of=of, axes=[2])
    return _plane(ctx, x, weight, bias, conv)


@LAYERS.exports("conv_transpose")
def export_conv_transpose(
    ctx: Export, x: Value, weight: Value, bias: Value | None = None, *, conv: ConvAttributes
) -> Value:
    """Layers know no dilation here: zeros stand between the elements of a dilated weight."""
    weight = _dilate_weight(weight, conv.dilations)
    conv = replace(conv, dilations=(1,) * len(conv.strides))
    build = _volume if len(conv.strides) == 3 else _plane
    return build(ctx, x, weight, bias, conv, transposed=True)


def _plane(
    ctx: Export,
    x: Value,
    weight: Value,
    bias: Value | None,
    conv: ConvAttributes,
    *,
    transposed: bool = False,
) -> Value:
    """Append a convolution of images, as which lines go too; a computed weight is an input."""
    first, second, *window = ctx.static_shape(weight, at_least=2)
    kernel = window[-len(conv.strides) :]
    line = [1] * (2 - len(kernel))
    known = weight.is_known or transposed
    found = ctx.layer(
        "convolution", lifted_line(ctx, x) if line else x, *([] if known else [weight]),
        of=image_type(ctx), output_channels=second * conv.groups if transposed else first,
        kernel_channels=first if transposed else second, n_groups=conv.groups,
        kernel_size=[*line, *kernel], stride=[*line, *conv.strides],
        dilation_factor=[*line, *conv.dilations],
        valid={"padding_amounts": border_amounts([*[0] * 2 * len(line), *conv.pad])},
        is_deconvolution=transposed,
        weights=ctx.parameter(weight, axis=int(transposed)) if known else None,
        **_bias_fields(ctx, bias),
    )  # fmt: skip
    return lowered_line(ctx, found)


def _bias_fields(ctx: Export, bias: Value | None) -> dict[str, AnyValue]:
    """Return the fields of a bias."""
    return {"has_bias": bias is not None, "bias": None if bias is None else ctx.parameter(bias)}


def _dilate_weight(weight: Value, dilations: Sequence[int]) -> Value:
    if all(each == 1 for each in dilations):
        return weight
    kernel = Var("kernel", weight.type)
    spread = relay.nn.dilate(kernel, (1, 1, *dilations))
    found = ComputedWeight(spread, {kernel: value_weight(weight)})
    return Value(weight.name, TensorType(found.shape, found.dtype), None, found)


def volume_fields(
    kernel: Sequence[int], strides: Sequence[int], pad: Sequence[int]
) -> dict[str, AnyValue]:
    """Return the fields of a window over depth, height and width."""
    fields: dict[str, AnyValue] = {"padding_type": "CUSTOM"}
    fields |= {f"kernel_{axis}": size for axis, size in zip(_AXES, kernel, strict=True)}
    fields |= {f"stride_{axis}": step for axis, step in zip(_AXES, strides, strict=True)}
    return fields | {f"custom_padding_{end}": n for end, n in zip(_ENDS, pad, strict=True)}


def _volume(
    ctx: Export,
    x: Value,
    weight: Value,
    bias: Value | None,
    conv: ConvAttributes,
    *,
    transposed: bool = False,
) -> Value:
    """Append a convolution over depth, height and width."""
    ctx.since(14, "convolutions along three axes")
    first, second, *kernel = ctx.static_shape(weight, at_least=2)
    fields = volume_fields(kernel, conv.strides, conv.pad)
    fields |= {f"dilation_{axis}": gap for axis, gap in zip(_AXES, conv.dilations, strict=True)}
    return ctx.layer(
        "convolution3d", x, output_channels=second * conv.groups if transposed else first,
        input_channels=first if transposed else second * conv.groups, n_groups=conv.groups,
        is_deconvolution=transposed, weights=ctx.parameter(weight, axis=int(transposed)),
        **_bias_fields(ctx, bias), **fields,
    )  # fmt: skip

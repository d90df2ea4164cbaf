"""Convolutions. Channels come last; filters hold output channels first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue, TypeAlias

import serde.relay as relay
from serde.core import dataclass, zeros
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, TensorType, call, split_padding
from serde.relay.op.conv.windows import Convolution, TransposedConvolution
from serde.tflite.ops.table import INTEGERS, OPS, Export, Import, Value
from serde.tflite.ops.window import padding_of, same_padding
from serde.tflite.quantization import rescaled, scale_product, zero_point
from serde.walk.expansion.tensors import fixed_shape

__all__ = ["padded"]

_SPATIAL = {2: "HW", 3: "DHW"}
_AXES = {1: "W", **_SPATIAL}


@dataclass(frozen=True, kw_only=True)
class ConvOptions:
    """Options that the convolutions share."""

    padding: int = 0
    stride_w: int = 0
    stride_h: int = 0
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1
    fused_activation_function: int = 0

    def strides(self) -> tuple[int, ...]:
        """Return the strides along the spatial axes."""
        return self.stride_h, self.stride_w

    def dilation(self) -> tuple[int, ...]:
        """Return the dilation along the spatial axes."""
        return self.dilation_h_factor, self.dilation_w_factor

    def window(self, ctx: Import, x: Expr, kernel: tuple[int, ...]) -> dict[str, AnyValue]:
        """Return how the filter moves, as Relay's attributes have it."""
        strides, dilation = self.strides(), self.dilation()
        return {
            "strides": strides,
            "padding": padding_of(ctx, x, self.padding, kernel, strides, dilation),
            "dilation": dilation,
            "kernel_size": kernel,
            "data_layout": f"N{_SPATIAL[len(kernel)]}C",
        }


@dataclass(frozen=True, kw_only=True)
class Conv3dOptions(ConvOptions):
    """Options of convolutions over three axes."""

    stride_d: int = 0
    dilation_d_factor: int = 1

    def strides(self) -> tuple[int, ...]:
        """Return the strides along the spatial axes."""
        return self.stride_d, self.stride_h, self.stride_w

    def dilation(self) -> tuple[int, ...]:
        """Return the dilation along the spatial axes."""
        return self.dilation_d_factor, self.dilation_h_factor, self.dilation_w_factor


def _direct(
    ctx: Import, x: Expr, filter_: Expr, conv: ConvOptions
) -> tuple[Expr, dict[str, AnyValue]]:
    """Return the filter, and attributes of a convolution.

    Groups are not told: the channels of the input divided by those of the filter.
    """
    channels, *kernel, inner = ctx.static_shape(filter_, 4)
    (given,) = ctx.static_lengths(x, [3])
    if inner < 1 or given % inner:
        raise Unsupported(f"{given} channels by a filter of {ctx.type(filter_)!r}")
    window = conv.window(ctx, x, tuple(kernel))
    return filter_, {
        **window,
        "groups": given // inner,
        "channels": channels,
        "kernel_layout": "OHWI",
    }


def _depthwise(
    ctx: Import, x: Expr, filter_: Expr, conv: ConvOptions
) -> tuple[Expr, dict[str, AnyValue]]:
    """Return the same of a filter of [1, height, width, channels of the output]."""
    first, *kernel, channels = ctx.static_shape(filter_, 4)
    (given,) = ctx.static_lengths(x, [3])
    if first != 1 or given < 1 or channels % given:
        raise Unsupported(f"{given} channels by a depthwise filter of {ctx.type(filter_)!r}")
    window = conv.window(ctx, x, tuple(kernel))
    return relay.reshape(filter_, (*kernel, channels, 1)), {
        **window,
        "groups": given,
        "channels": channels,
        "kernel_layout": "HWOI",
    }


def _finish(ctx: Import, found: Expr, bias: Expr | None, function: int) -> Expr:
    if bias is not None:
        found = relay.nn.bias_add(found, bias, axis=-1)
    return ctx.activated(found, function)


def _codes_of(
    ctx: Import,
    x: Expr,
    weight: Expr,
    bias: Expr | None,
    attributes: dict[str, AnyValue],
    function: int,
) -> Expr:
    """Return codes of sums of products of codes without their zero points, and of the bias."""
    given, filters = ctx.tensor(0), ctx.tensor(1)
    one = ctx.const(1.0, "float32")
    points = zero_point(given), zero_point(filters)
    wide = "int64" if given.dtype == "int16" else "int32"
    found = relay.qnn.op.conv2d(x, weight, *points, one, one, **attributes, out_dtype=wide)
    sums = found if bias is None else relay.nn.bias_add(found, bias, axis=-1)
    made = ctx.result()
    scale = scale_product(given, filters)
    return rescaled(sums, scale, made, function, twice=made.dtype == "uint8")


_Reading: TypeAlias = Callable[[Import, Expr, Expr, ConvOptions], tuple[Expr, dict[str, AnyValue]]]
"""Returns a filter, and attributes of a convolution."""


def _reader(read: _Reading, *, on_codes: bool = False) -> Callable[..., Expr]:
    def convolve(
        ctx: Import, x: Expr, filter_: Expr, bias: Expr | None = None, *, conv: ConvOptions
    ) -> Expr:
        weight, attributes = read(ctx, x, filter_, conv)
        function = conv.fused_activation_function
        if on_codes:
            return _codes_of(ctx, x, weight, bias, attributes, function)
        return _finish(ctx, relay.nn.conv2d(x, weight, **attributes), bias, function)

    return convolve


for _op, _option, _read in (
    ("CONV_2D", "quantized_bias_type", _direct),
    ("DEPTHWISE_CONV_2D", "depth_multiplier", _depthwise),
):
    OPS.imports(_op, ignored=(_option,))(_reader(_read))
    INTEGERS.imports(_op, ignored=(_option,))(_reader(_read, on_codes=True))


@OPS.imports("CONV_3D")
def import_conv_3d(
    ctx: Import, x: Expr, filter_: Expr, bias: Expr | None = None, *, conv: Conv3dOptions
) -> Expr:
    *kernel, inner, channels = ctx.static_shape(filter_, 5)
    (given,) = ctx.static_lengths(x, [4])
    found = relay.nn.conv3d(
        x,
        filter_,
        **conv.window(ctx, x, tuple(kernel)),
        groups=given // max(inner, 1),
        channels=channels,
        kernel_layout="DHWIO",
    )
    return _finish(ctx, found, bias, conv.fused_activation_function)


def _transposed(
    ctx: Import, x: Expr, shape: tuple[int, ...], kernel: tuple[int, ...], conv: ConvOptions
) -> dict[str, AnyValue]:
    """Return how far the filter of a transposed convolution moves.

    The padding is that of the convolution whose input has the shape given.
    """
    axes, strides, dilation = range(1, len(kernel) + 1), conv.strides(), conv.dilation()
    pads, more = [], []
    for n, out, k, s, d in zip(
        ctx.static_lengths(x, axes), shape[1:-1], kernel, strides, dilation, strict=True
    ):
        whole = (n - 1) * s + (k - 1) * d + 1
        total = max(whole - out, 0) if conv.padding == 0 else 0
        pads.append((total // 2, total - total // 2))
        more.append(out - whole + total)
    if min(more) < 0 or any(each >= s for each, s in zip(more, strides, strict=True)):
        raise Unsupported(f"an output of {list(shape)} of an input of {ctx.type(x)!r}")
    return {
        "strides": strides,
        "padding": (*(each[0] for each in pads), *(each[1] for each in pads)),
        "dilation": dilation,
        "kernel_size": kernel,
        "data_layout": f"N{_SPATIAL[len(kernel)]}C",
        "output_padding": tuple(more),
    }


def _shape_of(ctx: Import, shape: Expr) -> tuple[int, ...]:
    return ctx.ints(shape) if ctx.is_constant(shape) else ctx.result().shape


def _transposed_reader(*, on_codes: bool) -> Callable[..., Expr]:
    def convolve(
        ctx: Import,
        output_shape: Expr,
        filter_: Expr,
        x: Expr,
        bias: Expr | None = None,
        *,
        conv: ConvOptions,
    ) -> Expr:
        channels, *kernel, _ = ctx.static_shape(filter_, 4)
        window = _transposed(ctx, x, _shape_of(ctx, output_shape), tuple(kernel), conv)
        window |= {"channels": channels, "kernel_layout": "OHWI"}
        function = conv.fused_activation_function
        if not on_codes:
            found = relay.nn.conv2d_transpose(x, filter_, **window)
            return _finish(ctx, found, bias, function)
        given, filters, one = ctx.tensor(2), ctx.tensor(1), ctx.const(1.0, "float32")
        window["out_dtype"] = "int64" if given.dtype == "int16" else "int32"
        points = zero_point(given), zero_point(filters)
        sums = relay.qnn.op.conv2d_transpose(x, filter_, *points, one, one, **window)
        sums = sums if bias is None else relay.nn.bias_add(sums, bias, axis=-1)
        return rescaled(sums, scale_product(given, filters), ctx.result(), function)

    return convolve


OPS.imports("TRANSPOSE_CONV", ignored=("quantized_bias_type",))(_transposed_reader(on_codes=False))
INTEGERS.imports("TRANSPOSE_CONV", ignored=("quantized_bias_type",))(
    _transposed_reader(on_codes=True)
)


@OPS.imports("CONV_3D_TRANSPOSE")
def import_conv_3d_transpose(
    ctx: Import,
    output_shape: Expr,
    filter_: Expr,
    x: Expr,
    bias: Expr | None = None,
    *,
    conv: Conv3dOptions,
) -> Expr:
    """The filter is [depth, height, width, outputs, inputs]."""
    *kernel, channels, _ = ctx.static_shape(filter_, 5)
    window = _transposed(ctx, x, _shape_of(ctx, output_shape), tuple(kernel), conv)
    found = relay.nn.conv3d_transpose(
        x, filter_, **window, channels=channels, kernel_layout="DHWOI"
    )
    return _finish(ctx, found, bias, conv.fused_activation_function)


@OPS.imports("STABLEHLO_CONVOLUTION", ignored=("precision_config",))
def import_convolution(
    ctx: Import, x: Expr, filter_: Expr,
    *, window_strides: AnyValue = None, padding: AnyValue = None, lhs_dilation: AnyValue = None,
    rhs_dilation: AnyValue = None, window_reversal: AnyValue = None, input_batch_dimension: int = 0,
    input_feature_dimension: int = 0, input_spatial_dimensions: AnyValue = None,
    kernel_input_feature_dimension: int = 0, kernel_output_feature_dimension: int = 0,
    kernel_spatial_dimensions: AnyValue = None, output_batch_dimension: int = 0,
    output_feature_dimension: int = 0, output_spatial_dimensions: AnyValue = None,
    feature_group_count: int = 1, batch_group_count: int = 1,
) -> Expr:  # fmt: skip
    """Options say which axis is which."""
    rank = ctx.rank(x)
    spatial = [
        ctx.numbers(each, rank - 2)
        for each in (input_spatial_dimensions, kernel_spatial_dimensions, output_spatial_dimensions)
    ]
    pads, apart = ctx.numbers(padding, 2 * (rank - 2), 0), ctx.numbers(lhs_dilation, rank - 2)
    if rank - 2 not in _AXES or batch_group_count != 1 or min([*pads, *(n - 1 for n in apart)]) < 0:
        raise Unsupported(
            f"a convolution over {rank - 2} axes, {batch_group_count} groups of batches"
        )
    orders = (
        [input_batch_dimension, *spatial[0], input_feature_dimension],
        [kernel_output_feature_dimension, *spatial[1], kernel_input_feature_dimension],
        [output_batch_dimension, *spatial[2], output_feature_dimension],
    )
    first, second, last = (ctx.axes(each, rank, all_=True) for each in orders)
    data, weight = relay.transpose(x, first), relay.transpose(filter_, second)
    if max(apart) > 1:
        data = relay.nn.dilate(data, [1, *apart, 1])
    for axis in (i for i, each in enumerate(ctx.numbers(window_reversal)) if each):
        weight = relay.reverse(weight, axis=ctx.axes([axis + 1], rank - 1)[0])
    channels, *kernel, _ = ctx.static_shape(weight)
    found = call(
        f"nn.conv{rank - 2}d", data, weight, strides=ctx.numbers(window_strides, rank - 2),
        padding=(*pads[::2], *pads[1::2]), dilation=ctx.numbers(rhs_dilation, rank - 2),
        groups=feature_group_count, channels=channels, kernel_size=tuple(kernel),
        data_layout=f"N{_AXES[rank - 2]}C", kernel_layout=f"O{_AXES[rank - 2]}I",
    )  # fmt: skip
    return relay.transpose(found, [last.index(axis) for axis in range(rank)])


def _is_written(node: Call) -> bool:
    """Whether a convolution is one, or one by groups, of channels that come last."""
    conv, data = node.attrs, node.args[0].type
    plain = conv["data_layout"] == "NHWC" and conv["kernel_layout"] == "OHWI"
    return plain and not conv["out_layout"] and isinstance(data, TensorType)


def padded(
    ctx: Export, data: Value, padding: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilation: Sequence[int] = (1, 1, 1), value: float = 0.0,
) -> tuple[Value, int]:  # fmt: skip
    """Return data and the kind of padding; what is neither kind is padded beforehand."""
    count = len(kernel)
    before, after = split_padding(padding, count)
    pairs = list(zip(before, after, strict=True))
    if not any(map(any, pairs)):
        return data, 1
    if same_padding(ctx.type(data).shape[1 : count + 1], kernel, strides, dilation) == pairs:
        return data, 0
    width = [(0, 0), *pairs, (0, 0)]
    border = ctx.const(value, ctx.type(data).dtype)
    return ctx.spell(lambda x, v: relay.nn.pad(x, width, v), data, border), 1


@OPS.exports("nn.conv2d", when=_is_written)
def export_conv2d(
    ctx: Export, data: Value, weight: Value, bias: Value | None = None, *, conv: Convolution
) -> Value:
    channels, height, width, inner = ctx.static_shape(weight, 4)
    (given,) = ctx.static_lengths(data, [3])
    data, kind = padded(ctx, data, conv.padding, (height, width), conv.strides, conv.dilation)
    options = {
        "padding": kind,
        "stride_h": conv.strides[0],
        "stride_w": conv.strides[1],
        "dilation_h_factor": conv.dilation[0],
        "dilation_w_factor": conv.dilation[1],
        "fused_activation_function": 0,
    }
    bias = _bias(ctx, bias, channels if conv.groups != given else channels * inner)
    if conv.groups == given and conv.groups > 1:
        filters = ctx.spell(_depthwise_filter, weight)
        many = {"depth_multiplier": channels * inner // given}
        return ctx.emit("DEPTHWISE_CONV_2D", data, filters, bias, **options, **many)
    return ctx.emit("CONV_2D", data, weight, bias, **options)


def _depthwise_filter(weight: Expr) -> Expr:
    """Return a filter as [1, height, width, channels of the output]."""
    channels, height, width, inner = fixed_shape(weight)
    moved = relay.transpose(weight, (1, 2, 0, 3))
    return relay.reshape(moved, (1, height, width, channels * inner))


def _bias(ctx: Export, bias: Value | None, channels: int) -> Value:
    """Return the bias; older runtimes want one."""
    dtype = ctx.result_type().dtype
    return ctx.const(zeros(channels), dtype) if bias is None else bias


@OPS.exports("nn.conv2d_transpose", when=_is_written)
def export_conv2d_transpose(
    ctx: Export,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    conv: TransposedConvolution,
) -> Value:
    """Without a kind of padding of its own, the whole result is cut."""
    if conv.groups != 1 or any(each != 1 for each in conv.dilation):
        raise Unsupported(f"groups {conv.groups} and dilation {list(conv.dilation)}")
    channels, *kernel, _ = ctx.static_shape(weight, 4)
    made, lengths = ctx.result_type(), ctx.static_lengths(data, (1, 2))
    batch, size = made.shape[:1], ctx.static_lengths(Value(-1, made), (1, 2))
    before, after = split_padding(conv.padding, 2)
    sizes = list(zip(lengths, kernel, conv.strides, strict=True))
    whole = [(n - 1) * s + k for n, k, s in sizes]
    same = [max(w - n, 0) for (_, _, _), w, n in zip(sizes, whole, size, strict=True)]
    is_same = all(
        (b, a) == (t // 2, t - t // 2) and n * s == length
        for b, a, t, (n, _, s), length in zip(before, after, same, sizes, size, strict=True)
    )
    options = {
        "stride_h": conv.strides[0],
        "stride_w": conv.strides[1],
        "fused_activation_function": 0,
    }
    if is_same or not any((*before, *after, *conv.output_padding)):
        kind = 0 if is_same else 1
        target = ctx.shape(made.shape)
        bias = _bias(ctx, bias, channels)
        return ctx.emit("TRANSPOSE_CONV", target, weight, data, bias, padding=kind, **options)
    more = [max(w, n + b) for w, n, b in zip(whole, size, before, strict=True)]
    if more != whole:
        raise Unsupported(f"output_padding {list(conv.output_padding)}")
    type_ = TensorType((*batch, *whole, channels), ctx.type(data).dtype)
    given = ctx.shape(type_.shape), weight, data, _bias(ctx, bias, channels)
    found = ctx.emit_as(type_, "TRANSPOSE_CONV", *given, padding=1, **options)
    ends = [b + n for b, n in zip(before, size, strict=True)]
    return ctx.spell(lambda x: relay.strided_slice(x, before, ends, axes=(1, 2)), found)


@OPS.expands("nn.conv1d")
def expand_conv1d(data: Expr, weight: Expr, *, conv: Convolution) -> Expr:
    """A convolution over two axes, of which the first has one element."""
    at = conv.data_layout.index("W"), conv.kernel_layout.index("W")
    before, after = split_padding(conv.padding, 1)
    found = relay.nn.conv2d(
        relay.expand_dims(data, axis=at[0]), relay.expand_dims(weight, axis=at[1]),
        strides=(1, *conv.strides), padding=(0, *before, 0, *after), dilation=(1, *conv.dilation),
        groups=conv.groups, channels=conv.channels,
        kernel_size=None if conv.kernel_size is None else (1, *conv.kernel_size),
        data_layout=conv.data_layout.replace("W", "HW"),
        kernel_layout=conv.kernel_layout.replace("W", "HW"), out_dtype=conv.out_dtype,
    )  # fmt: skip
    return relay.squeeze(found, axis=[at[0]])

"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, as_dtype, call, split_padding
from serde.relay.lowering.conv import (
    CONVOLUTIONS,
    TRANSPOSED,
    convolution_on_floats,
    is_on_floats,
    transposed_on_floats,
)
from serde.relay.op.conv.windows import Convolution
from serde.walk.takes import Takes, all_are

Padding = Literal["valid", "same", "same_lower", "custom"]

USUAL = {1: ("NCW", "OIW", "IOW"), 2: ("NCHW", "OIHW", "IOHW"), 3: ("NCDHW", "OIDHW", "IODHW")}
"""Layouts of data, of a weight and of that of a transposed convolution, by spatial axes."""


@dataclass(frozen=True, kw_only=True)
class ConvAttributes:
    """Attributes of MIL's convolutions."""

    strides: tuple[int, ...] = ()
    pad_type: Padding = "valid"
    pad: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    groups: int = 1

    def with_rank(self, rank: int) -> ConvAttributes:
        """Return the attributes along `rank` axes, defaults included."""
        if rank not in USUAL:
            raise Unsupported(f"a convolution along {rank} axes")
        ones = (1,) * rank
        return replace(
            self,
            strides=self.strides or ones,
            dilations=self.dilations or ones,
            pad=self.pad or (0,) * (2 * rank),
        )


def to_relay_padding(
    lengths: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pad_type: Padding,
    pad: Sequence[int],
) -> tuple[int, ...]:
    """Return the padding of windows as Relay has it: before each axis, then after each."""
    rank = len(kernel)
    if pad_type == "valid":
        return (0,) * (2 * rank)
    if pad_type == "custom":
        return (*pad[0::2], *pad[1::2])
    if not rank == len(lengths) == len(strides) == len(dilations):
        raise Unsupported(f"a kernel {list(kernel)} and strides {list(strides)}")
    before, after = [], []
    for length, size, stride, dilation in zip(lengths, kernel, strides, dilations, strict=True):
        reach = (size - 1) * dilation + 1
        total = max(0, (-(-length // stride) - 1) * stride + reach - length)
        small, large = total // 2, total - total // 2
        before.append(small if pad_type == "same" else large)
        after.append(large if pad_type == "same" else small)
    return (*before, *after)


def window_lengths(
    ctx: Import, x: Expr, rank: int, strides: Sequence[int], pad_type: Padding
) -> tuple[int, ...]:
    """Return the lengths that the padding of windows depends on, or zeros if on none."""
    if pad_type in ("same", "same_lower") and any(stride != 1 for stride in strides):
        return ctx.static_lengths(x, range(2, 2 + rank))
    return (0,) * rank


def to_mil_pads(padding: Sequence[int], rank: int) -> list[int]:
    """Return the padding of windows as MIL has it: pair by pair, before and after each axis."""
    before, after = split_padding(tuple(padding), rank)
    return [each for pair in zip(before, after, strict=True) for each in pair]


def _cast_parameters(
    ctx: Import, x: Expr, weight: Expr, bias: Expr | None
) -> tuple[Expr, Expr | None]:
    """Return parameters in the dtype of the data: from iOS17 on they may have another."""
    dtype = ctx.type(x).dtype
    return as_dtype(weight, dtype), None if bias is None else as_dtype(bias, dtype)


@OPS.imports("conv", since=(1, 17))
def import_conv(
    ctx: Import, x: Expr, weight: Expr, bias: Expr | None = None, *, conv: ConvAttributes
) -> Expr:
    """Padding that keeps the length over the stride depends on the length where there is one."""
    channels, _, *kernel = ctx.static_shape(weight, at_least=2)
    rank = len(kernel)
    conv = conv.with_rank(rank)
    lengths = window_lengths(ctx, x, rank, conv.strides, conv.pad_type)
    weight, bias = _cast_parameters(ctx, x, weight, bias)
    result = call(
        f"nn.conv{rank}d",
        x,
        weight,
        strides=conv.strides,
        padding=to_relay_padding(
            lengths, kernel, conv.strides, conv.dilations, conv.pad_type, conv.pad
        ),
        dilation=conv.dilations,
        groups=conv.groups,
        channels=channels,
        kernel_size=tuple(kernel),
    )
    return result if bias is None else relay.nn.bias_add(result, bias, axis=1)


@OPS.imports("conv_quantized")
def import_conv_quantized(
    ctx: Import, x: Expr, weight: Expr, bias: Expr | None, quant_scale: Expr, quant_bias: Expr,
    *, quantization_type: Literal["linear", "lut"], nbits: int = 8, conv: ConvAttributes,
) -> Expr:  # fmt: skip
    """The weight is its integers times a scale, plus an offset: of all, or of each filter."""
    if quantization_type == "lut" or nbits != 8:
        raise Unsupported(f"a weight of {nbits} bits in {quantization_type} quantisation")
    if bias is not None:
        raise Unsupported("a bias in integers, whose scale MIL does not tell")
    dtype, rank = ctx.type(x).dtype, ctx.type(weight).rank

    def filters(vector: Expr) -> Expr:
        vector = relay.cast(vector, dtype)
        size = ctx.type(vector).size
        return relay.reshape(vector, [-1, *[1] * (rank - 1)] if size != 1 else [1] * rank)

    scaled = relay.multiply(relay.cast(weight, dtype), filters(quant_scale))
    weight = relay.add(scaled, filters(quant_bias))
    return import_conv(ctx, x, weight, None, conv=conv)


def _may_be_parameters(ctx: Export, *values: Value | None) -> bool:
    """Whether values are constants, or the target takes others for parameters too."""
    return ctx.version >= 17 or all(each is None or each.is_constant for each in values)


def _add_bias(ctx: Export, result: Value, bias: Value | None) -> Value:
    return (
        result
        if bias is None
        else ctx.spell(lambda x, b: relay.nn.bias_add(x, b, axis=1), result, bias)
    )


@OPS.exports(*CONVOLUTIONS, when=is_on_floats)
def export_conv(
    ctx: Export, data: Value, weight: Value, bias: Value | None = None, *, conv: Convolution
) -> Value:
    """Padding goes pair by pair, before and after each axis."""
    if not weight.is_constant and any(each != 1 for each in conv.dilation):
        raise Unsupported("a dilated convolution whose weight is computed")
    inside = _may_be_parameters(ctx, bias)
    result = ctx.emit(
        "conv", x=data, weight=weight, bias=bias if inside else None, strides=conv.strides,
        pad_type="custom", pad=to_mil_pads(conv.padding, len(conv.strides)),
        dilations=conv.dilation, groups=conv.groups,
    )  # fmt: skip
    return result if inside else _add_bias(ctx, result, bias)


OPS.expands(*CONVOLUTIONS)(convolution_on_floats("float32"))


@OPS.imports("conv_transpose", since=(1, 17))
def import_conv_transpose(
    ctx: Import,
    x: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    conv: ConvAttributes,
    output_shape: tuple[int, ...] = (),
) -> Expr:
    """What the result has more or less than the whole comes off both ends, or off the last."""
    _, channels, *kernel = ctx.static_shape(weight, at_least=2)
    rank = len(kernel)
    conv = conv.with_rank(rank)
    pad_type = conv.pad_type
    before, after, extra = [], [], []
    lengths = ctx.static_lengths(x, range(2, 2 + rank)) if output_shape else (0,) * rank
    for axis, (stride, dilation) in enumerate(zip(conv.strides, conv.dilations, strict=True)):
        reach = (kernel[axis] - 1) * dilation + 1
        first, last = conv.pad[2 * axis : 2 * axis + 2] if pad_type == "custom" else (0, 0)
        # How much longer the result is than all that windows reach.
        more = stride - reach if pad_type == "same" else -first - last
        if output_shape:
            whole = (lengths[axis] - 1) * stride + reach
            more = output_shape[2 + axis] - whole
        if pad_type in ("same", "same_lower"):
            cut = max(-more, 0)
            first = cut // 2 if pad_type == "same" else cut - cut // 2
            last = cut - first
        rest = more + first + last
        before.append(first)
        after.append(last + max(-rest, 0))
        extra.append(max(rest, 0))
    weight, bias = _cast_parameters(ctx, x, weight, bias)
    result = call(
        f"nn.conv{rank}d_transpose", x, weight, strides=conv.strides, padding=(*before, *after),
        output_padding=tuple(extra), dilation=conv.dilations, groups=conv.groups,
        channels=channels * conv.groups, kernel_size=tuple(kernel),
    )  # fmt: skip
    return result if bias is None else relay.nn.bias_add(result, bias, axis=1)


@OPS.exports(*TRANSPOSED, takes=Takes(output_padding=all_are(0)), when=is_on_floats)
def export_conv_transpose(
    ctx: Export, data: Value, weight: Value, bias: Value | None = None, *, conv: Convolution
) -> Value:
    if not _may_be_parameters(ctx, weight):
        raise Unsupported(
            "a transposed convolution whose weight is computed",
            hint="use minimum_deployment_target='iOS17'",
        )
    inside = _may_be_parameters(ctx, bias)
    result = ctx.emit(
        "conv_transpose", x=data, weight=weight, bias=bias if inside else None,
        pad=to_mil_pads(conv.padding, len(conv.strides)), pad_type="custom", strides=conv.strides,
        dilations=conv.dilation, groups=conv.groups,
    )  # fmt: skip
    return result if inside else _add_bias(ctx, result, bias)


OPS.expands(*TRANSPOSED)(transposed_on_floats("float32"))

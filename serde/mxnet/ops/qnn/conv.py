"""Convolutions of quantised images, alone and with what oneDNN computes along with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.conv.direct import ConvAttributes, layouts
from serde.mxnet.ops.qnn.fused import (
    Calibration,
    Ending,
    Step,
    Weights,
    activations,
    layer_inside,
    levels_of,
    quantized_weights,
    real_result,
    scale_of,
    split_inputs,
)
from serde.mxnet.ops.qnn.parameters import (
    ONE,
    levels_in,
    magnitude,
    product_range,
    real_of,
    step,
    whole,
)
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir import Expr, call


def _attributes(conv: ConvAttributes) -> dict[str, AnyValue]:
    """Return the attributes of Relay's convolution of levels."""
    if layouts(conv.ndim, conv.layout)[0][1] != "C":
        raise Unsupported(f"layout {conv.layout!r} of a quantised convolution")
    return conv.to_relay()


def _sums(data: Expr, weight: Expr, bias: Expr | None, attrs: Mapping[str, AnyValue]) -> Expr:
    """Return a convolution of levels in int32."""
    total = call("serde.conv_integer", data, weight, None, None, **attrs)
    return total if bias is None else relay.nn.bias_add(total, bias, axis=1)


@OPS.imports("_contrib_quantized_conv", ignored=("workspace", "cudnn_tune", "cudnn_off"))
def import_quantized_conv(
    ctx: Import, *inputs: Expr, conv: ConvAttributes, no_bias: bool = False
) -> Sequence[Expr]:
    """MXNet adds the levels of the bias to the sums as they are, and takes data for int8."""
    count = 2 if no_bias else 3
    (data, weight, *bias), ranges = split_inputs(inputs, [count, 2 * count])
    if ctx.type(data).dtype != "uint8" or conv.num_group != 1 or conv.ndim == 1:
        raise Unsupported(
            f"a convolution of {ctx.type(data)!r} with num_group={conv.num_group}: "
            "MXNet has uint8, one group, and two or three spatial axes"
        )
    wide = relay.cast(bias[0], "int32") if bias else None
    total = _sums(data, weight, wide, _attributes(conv))
    ends = magnitude(*ranges[:2]), magnitude(*ranges[2:4])
    return [total, *product_range(*ends, ("int8", "int8"))]


@OPS.imports("_sg_mkldnn_conv")
def import_sg_mkldnn_conv(
    ctx: Import, *inputs: Expr, with_bn: bool = False, with_act: bool = False,
    with_sum: bool = False, with_postsum_act: bool = False, with_relu: bool = False,
    with_postsum_relu: bool = False, quantized: bool = False, calibration: Calibration,
) -> Sequence[Expr]:  # fmt: skip
    """The float form is the graph inside; attributes called ``relu`` are from before 1.6."""
    if not quantized:
        return ctx.subgraph(ctx.graph(0), *inputs)
    layers, functions = activations(
        ctx, ("Convolution", "BatchNorm"), ("relu", "leaky", "gelu", "clip")
    )
    attrs = layer_inside(layers, "Convolution")
    bias_count = 0 if attrs["no_bias"] else 1
    counts = [2, bias_count, 4 if with_bn else 0, 1 if with_sum else 0, 2, 2 if with_sum else 0]
    (data, weight), biases, norm, others, ends, other_ends = split_inputs(inputs, counts)
    if with_sum and (with_act or with_relu):
        raise Unsupported("a function before a sum in a quantised convolution: MXNet fails")
    bias = biases[0] if biases else None
    if with_bn:
        weight, bias = _fold_norm(ctx, weight, bias, norm, layer_inside(layers, "BatchNorm"))
    conv = ConvAttributes(**{field.name: attrs[field.name] for field in fields(ConvAttributes)})
    layer = _Layer(ctx, data, magnitude(*ends), _attributes(conv))
    positive = [name for name, _ in functions] in (["relu"], ["clip"])
    ending = calibration.ending("uint8" if positive else "int8")
    other = (others[0], magnitude(*other_ends)) if with_sum else None
    if ending is None:
        return layer.sums(weight, bias, functions, other)
    return layer.requantize(weight, bias, functions, other, ending)


def _fold_norm(
    ctx: Import,
    weight: Expr,
    bias: Expr | None,
    norm: Sequence[Expr],
    attrs: Mapping[str, AnyValue],
) -> tuple[Expr, Expr]:
    """Return weight and bias with a normalisation behind them; the factor is of float64."""
    gamma, beta, mean, variance = norm
    spread = relay.sqrt(
        relay.add(relay.cast(variance, "float64"), relay.const(attrs["eps"], "float64"))
    )
    top = relay.ones_like(spread) if attrs["fix_gamma"] else relay.cast(gamma, "float64")
    factor = relay.cast(relay.divide(top, spread), "float32")
    rank = ctx.type(weight).rank
    scaled = relay.multiply(weight, relay.expand_dims(factor, axis=1, num_newaxis=rank - 1))
    if bias is None:
        return scaled, relay.subtract(beta, relay.multiply(factor, mean))
    return scaled, relay.add(beta, relay.multiply(factor, relay.subtract(bias, mean)))


class _Layer:
    """A convolution of quantised data with float weights."""

    def __init__(self, ctx: Import, data: Expr, end: Expr, attrs: Mapping[str, AnyValue]) -> None:
        self.ctx = ctx
        self.data = data
        self.end = end
        self.attrs = attrs
        self.levels = levels_of(ctx, data)

    def weights(self, weight: Expr, bias: Expr | None, *, channels: bool) -> Weights:
        scale = scale_of(self.end, self.levels)
        groups = self.attrs["groups"]
        return quantized_weights(self.ctx, weight, bias, scale, channels=channels, groups=groups)

    def sums(
        self,
        weight: Expr,
        bias: Expr | None,
        functions: Sequence[tuple[str, Step]],
        other: tuple[Expr, Expr] | None,
    ) -> Sequence[Expr]:
        """Return what ends in int32; a cut to a range is left out."""
        weights = self.weights(weight, bias, channels=False)
        result = _sums(self.data, weights.weight, weights.bias, self.attrs)
        kept = [function for name, function in functions if name != "clip"]
        if other is not None or kept:
            result = relay.cast(result, "float32")
        if other is not None:
            unit = relay.multiply(scale_of(self.end, self.levels), weights.scale)
            ratio = relay.divide(unit, scale_of(other[1], levels_of(self.ctx, other[0])))
            result = relay.add(result, relay.multiply(relay.cast(other[0], "float32"), ratio))
        for function in kept:
            result = function(result)
        result = whole(result) if other is not None or kept else result
        weight_end = relay.reshape(relay.max(relay.abs(weight)), (1,))
        dtype = self.ctx.type(self.data).dtype
        return [result, *product_range(self.end, weight_end, (dtype, "int8"))]

    def requantize(
        self,
        weight: Expr,
        bias: Expr | None,
        functions: Sequence[tuple[str, Step]],
        other: tuple[Expr, Expr] | None,
        ending: Ending,
    ) -> Sequence[Expr]:
        """Return what ends in quantised numbers; the sum's dtype is that of what is added.

        oneDNN applies gelu to levels of the result instead of the numbers they stand for.
        """
        weights = self.weights(weight, bias, channels=True)
        data_step = step(self.end, self.levels)
        plain = (ending.dtype == "uint8" and other is None) or not functions
        if plain and other is None and len(self.attrs["strides"]) == 2:
            return [self._qlinear_conv(weights, data_step, ending), *ending.ends]
        total = _sums(self.data, weights.weight, weights.bias, self.attrs)
        real, unit = real_result(total, data_step, weights, 1), ending.step
        if other is not None:
            scale = step(other[1], levels_of(self.ctx, other[0]))
            real = relay.add(real, real_of(other[0], scale))
        for name, function in functions:
            if name == "gelu":
                real, unit = relay.divide(real, unit), ONE
            real = real if name == "clip" else function(real)
        stored = ending.dtype if other is None else self.ctx.type(other[0]).dtype
        result = levels_in(real, unit, stored)
        if stored != ending.dtype:
            result = relay.cast(result, ending.dtype)
        return [result, *ending.ends]

    def _qlinear_conv(self, weights: Weights, data_step: Expr, ending: Ending) -> Expr:
        """Return the layer as one operator, which cuts negative numbers off uint8."""
        (channels,) = self.ctx.static_shape(weights.scale)
        return call(
            "serde.qlinear_conv2d", self.data, weights.weight, weights.bias, data_step,
            relay.Constant(np.zeros((), self.ctx.type(self.data).dtype)), weights.step,
            relay.const(allocation.zeros(channels, np.int8)), ending.step,
            relay.Constant(np.zeros((), ending.dtype)), out_dtype=ending.dtype, **self.attrs,
        )  # fmt: skip

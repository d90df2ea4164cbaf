"""Products of quantised matrices, and those of self-attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.mxnet.ops.qnn.fused import (
    Calibration,
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
    LEVELS,
    known,
    levels_in,
    magnitude,
    number,
    product_range,
    real_of,
    scalar,
    step,
    whole,
)
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir import Expr, call

POSITIVE = ("relu", "leaky", "clip", "abs")
"""Functions after which MXNet takes the result of a fused layer for uint8."""


def _sums(ctx: Import, data: Expr, weight: Expr, bias: Expr | None, flatten: bool) -> Expr:
    """Return a product of levels in int32."""
    rows = relay.nn.batch_flatten(data) if flatten and ctx.type(data).rank != 2 else data
    total = call("serde.matmul_integer", rows, relay.transpose(weight, axes=[1, 0]), None, None)
    return total if bias is None else relay.add(total, bias)


def _bias_levels(bias: Expr, end: Expr, data_scale: Expr, weight_scale: Expr) -> Expr:
    """Return a bias of int8 in steps of data times weight, not rounded yet."""
    joint = known(relay.multiply(data_scale, weight_scale))
    one = known(relay.squeeze(end, axis=[0]))
    ratio = known(relay.divide(known(relay.multiply(joint, one)), scalar(LEVELS["int8"])))
    return relay.multiply(relay.cast(bias, "float32"), ratio)


@OPS.imports("_contrib_quantized_fully_connected")
def import_quantized_fully_connected(
    ctx: Import, *inputs: Expr, num_hidden: int, no_bias: bool = False, flatten: bool = True
) -> Sequence[Expr]:
    """MXNet cuts the levels of the bias towards zero."""
    count = 2 if no_bias else 3
    (data, weight, *biases), ranges = split_inputs(inputs, [count, 2 * count])
    ends = [magnitude(*ranges[i : i + 2]) for i in range(0, len(ranges), 2)]
    bias = None
    if biases:
        scales = scale_of(ends[0], levels_of(ctx, data)), scale_of(ends[1], LEVELS["int8"])
        bias = relay.cast(_bias_levels(biases[0], ends[2], *scales), "int32")
    total = _sums(ctx, data, weight, bias, flatten)
    return [total, *product_range(ends[0], ends[1], (ctx.type(data).dtype, "int8"))]


@OPS.imports("_sg_mkldnn_fully_connected")
def import_sg_mkldnn_fully_connected(
    ctx: Import,
    *inputs: Expr,
    quantized: bool = False,
    enable_float_output: bool = False,
    with_eltwise: bool = False,
    calibration: Calibration,
    channel_wise_quantize: bool | None = None,
) -> Sequence[Expr]:
    """The float form is the graph inside. Channel by channel, weights are float still."""
    if not quantized:
        return ctx.subgraph(ctx.graph(0), *inputs)
    layers, functions = activations(ctx, ("FullyConnected",), (*POSITIVE, "gelu"))
    attrs = layer_inside(layers, "FullyConnected")
    count = 2 if attrs["no_bias"] else 3
    pairs = 1 if channel_wise_quantize else count
    (data, weight, *biases), ranges = split_inputs(inputs, [count, 2 * pairs])
    ends = [magnitude(*ranges[i : i + 2]) for i in range(0, len(ranges), 2)]
    positive = any(name in POSITIVE for name, _ in functions)
    ending = calibration.ending("uint8" if positive else "int8")
    data_scale = scale_of(ends[0], levels_of(ctx, data))
    bias = biases[0] if biases else None
    if channel_wise_quantize:
        if ending is None and not enable_float_output:
            raise Unsupported("channel_wise_quantize with sums as the result: MXNet fails")
        weights = quantized_weights(ctx, weight, bias, data_scale, channels=True)
    else:
        weights = _stored_weights(weight, bias, data_scale, ends[1:])
    total = _sums(ctx, data, weights.weight, weights.bias, attrs["flatten"])
    if ending is None and not enable_float_output:
        sums = _function_of_sums(total, functions)
        return [sums, *product_range(ends[0], ends[1], (ctx.type(data).dtype, "int8"))]
    data_step = step(ends[0], levels_of(ctx, data))
    real = real_result(total, data_step, weights, ctx.type(total).rank - 1)
    for _, function in functions:
        real = function(real)
    if ending is None or enable_float_output:
        return [real]
    return [levels_in(real, ending.step, ending.dtype), *ending.ends]


def _stored_weights(
    weight: Expr, bias: Expr | None, data_scale: Expr, ends: Sequence[Expr]
) -> Weights:
    """Return weights of int8 with their ranges."""
    scale = scale_of(ends[0], LEVELS["int8"])
    if bias is None:
        return Weights(weight, None, scale)
    return Weights(weight, whole(_bias_levels(bias, ends[1], data_scale, scale)), scale)


def _function_of_sums(total: Expr, functions: Sequence[tuple[str, Step]]) -> Expr:
    """Return functions of sums, which oneDNN takes for the numbers themselves."""
    if not functions:
        return total
    real = relay.cast(total, "float32")
    for _, function in functions:
        real = function(real)
    return whole(real)


def _part(ctx: Import, data: Expr, heads: int, index: int) -> tuple[Expr, int]:
    """Return queries, keys or values as (batch, heads, length, width), and the width."""
    type_ = ctx.type(data)
    if type_.rank != 3 or type_.dtype != "int8":
        raise Unsupported(f"expected int8 of (length, batch, width), found {type_!r}")
    (width,) = ctx.static_lengths(data, [2])
    each = width // (3 * heads)
    split = relay.reshape(data, (0, 0, heads, 3, each))
    part = relay.take(split, relay.const(index, "int64"), axis=3)
    return relay.transpose(part, axes=[1, 2, 0, 3]), each


@dataclass(frozen=True, kw_only=True)
class AttentionLayer(Calibration):
    """Attributes of the products of self-attention."""

    heads: int
    quantized: bool = False
    enable_float_output: bool = False


def _join_heads(x: Expr) -> Expr:
    """Return the axes of batch and heads as one."""
    return relay.reshape(x, (-3, 0, 0))


@OPS.imports("_sg_mkldnn_selfatt_qk")
def import_sg_mkldnn_selfatt_qk(
    ctx: Import, *inputs: Expr, layer: AttentionLayer
) -> Sequence[Expr]:
    """Sums as the result come with a range from zero to zero."""
    if not layer.quantized:
        return ctx.subgraph(ctx.graph(0), *inputs)
    (data,), ranges = split_inputs(inputs, [1, 2])
    queries, width = _part(ctx, data, layer.heads, 0)
    keys = relay.transpose(_part(ctx, data, layer.heads, 1)[0], axes=[0, 1, 3, 2])
    total = call("serde.matmul_integer", _join_heads(queries), _join_heads(keys), None, None)
    share = scalar(1 / math.sqrt(width))
    ending = layer.ending("int8")
    if ending is None and not layer.enable_float_output:
        sums = whole(relay.multiply(relay.cast(total, "float32"), share))
        return [sums, number(-0.0), number(0.0)]
    unit = step(magnitude(*ranges), LEVELS["int8"])
    real = real_of(total, known(relay.multiply(known(relay.multiply(unit, unit)), share)))
    if ending is None:
        return [real]
    return [levels_in(real, ending.step, ending.dtype), *ending.ends]


@OPS.imports("_sg_mkldnn_selfatt_valatt")
def import_sg_mkldnn_selfatt_valatt(
    ctx: Import, *inputs: Expr, layer: AttentionLayer
) -> Sequence[Expr]:
    """Attention is of uint8; sums as the result come with the range of the product."""
    if not layer.quantized:
        return ctx.subgraph(ctx.graph(0), *inputs)
    (data, attention), ranges = split_inputs(inputs, [2, 4])
    if ctx.type(attention).dtype != "uint8":
        raise Unsupported(f"expected attention of uint8, found {ctx.type(attention)!r}")
    values, width = _part(ctx, data, layer.heads, 2)
    total = call("serde.matmul_integer", attention, _join_heads(values), None, None)
    apart = relay.reshape(total, (-4, -1, layer.heads, 0, 0))
    result = relay.reshape(relay.transpose(apart, axes=[2, 0, 1, 3]), (0, 0, layer.heads * width))
    ends = magnitude(*ranges[:2]), magnitude(*ranges[2:])
    ending = layer.ending("int8")
    if ending is None and not layer.enable_float_output:
        return [result, *product_range(*ends, ("int8", "uint8"))]
    units = step(ends[0], LEVELS["int8"]), step(ends[1], LEVELS["uint8"])
    real = real_of(result, known(relay.multiply(*units)))
    if ending is None:
        return [real]
    return [levels_in(real, ending.step, ending.dtype), *ending.ends]

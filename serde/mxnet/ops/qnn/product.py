"""Products of quantised matrices."""

from __future__ import annotations

from collections.abc import Sequence

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
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
    product_range,
    scalar,
    step,
    whole,
)
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call

POSITIVE = ("relu", "leaky", "clip", "abs")
"""Functions after which MXNet takes the result of a fused layer for uint8."""


def _sums(ctx: ImportContext, data: Expr, weight: Expr, bias: Expr | None, flatten: bool) -> Expr:
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
    ctx: ImportContext, *inputs: Expr, num_hidden: int, no_bias: bool = False, flatten: bool = True
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
    ctx: ImportContext,
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

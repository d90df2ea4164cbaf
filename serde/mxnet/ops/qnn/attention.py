"""Products of quantised self-attention, on queries, keys and values that lie interleaved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.qnn.fused import Calibration, split_inputs
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
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


def _part(ctx: ImportContext, data: Expr, heads: int, index: int) -> tuple[Expr, int]:
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
    ctx: ImportContext, *inputs: Expr, layer: AttentionLayer
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
    ctx: ImportContext, *inputs: Expr, layer: AttentionLayer
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

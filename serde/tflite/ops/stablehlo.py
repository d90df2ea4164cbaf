"""Operators of StableHLO that stand in files beside TFLite's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.tflite.import_context import ImportContext
from serde.tflite.ops.control import import_while
from serde.tflite.ops.elementwise import import_div
from serde.tflite.ops.table import OPS
from serde.walk.pairs import reads

__all__: list[str] = []

OPS.pairs(
    reads("STABLEHLO_ABS", "abs"),
    reads("STABLEHLO_ADD", "add"),
    reads("STABLEHLO_COSINE", "cos"),
    reads("STABLEHLO_EXPONENTIAL", "exp"),
    reads("STABLEHLO_FLOOR", "floor"),
    reads("STABLEHLO_LOG", "log"),
    reads("STABLEHLO_LOGISTIC", "sigmoid"),
    reads("STABLEHLO_MAXIMUM", "maximum"),
    reads("STABLEHLO_MINIMUM", "minimum"),
    reads("STABLEHLO_MULTIPLY", "multiply"),
    reads("STABLEHLO_NEGATE", "negative"),
    reads("STABLEHLO_POWER", "power"),
    reads("STABLEHLO_RSQRT", "rsqrt"),
    reads("STABLEHLO_SELECT", "where"),
    reads("STABLEHLO_SHIFT_LEFT", "left_shift"),
    reads("STABLEHLO_SUBTRACT", "subtract"),
    reads("STABLEHLO_TANH", "tanh"),
)

_COMPARISONS = ("equal", "not_equal", "greater_equal", "greater", "less_equal", "less")


def _ints(values: AnyValue) -> tuple[int, ...]:
    return () if values is None else tuple(int(each) for each in values)


@OPS.imports("STABLEHLO_DIVIDE")
def import_divide(ctx: ImportContext, x: Expr, y: Expr) -> Expr:
    return import_div(ctx, x, y)


@OPS.imports("STABLEHLO_REMAINDER")
def import_remainder(ctx: ImportContext, x: Expr, y: Expr) -> Expr:
    """It has the sign of what is divided."""
    return relay.trunc_mod(x, y) if not is_float(ctx.type(x).dtype) else relay.mod(x, y)


@OPS.imports("STABLEHLO_AND", "STABLEHLO_OR")
def import_logic(ctx: ImportContext, x: Expr, y: Expr) -> Expr:
    """Bits of integers."""
    name = "and" if ctx.operator.name == "STABLEHLO_AND" else "or"
    kind = "logical" if ctx.type(x).dtype == "bool" else "bitwise"
    return call(f"{kind}_{name}", x, y)


@OPS.imports("STABLEHLO_CLAMP")
def import_clamp(ctx: ImportContext, low: Expr, x: Expr, high: Expr) -> Expr:
    return relay.minimum(relay.maximum(x, low), high)


@OPS.imports("STABLEHLO_CBRT")
def import_cbrt(ctx: ImportContext, x: Expr) -> Expr:
    third = ctx.const(1 / 3, ctx.type(x).dtype)
    return relay.multiply(relay.sign(x), relay.power(relay.abs(x), third))


@OPS.imports("STABLEHLO_COMPARE", ignored=("compare_type",))
def import_compare(ctx: ImportContext, x: Expr, y: Expr, *, comparison_direction: int = 0) -> Expr:
    return call(_COMPARISONS[comparison_direction], x, y)


@OPS.imports("STABLEHLO_CONVERT")
def import_convert(ctx: ImportContext, x: Expr) -> Expr:
    return relay.cast(x, ctx.result().dtype)


@OPS.imports("STABLEHLO_RESHAPE")
def import_reshape(ctx: ImportContext, x: Expr) -> Expr:
    return relay.reshape(x, ctx.result().shape)


@OPS.imports("STABLEHLO_TRANSPOSE")
def import_transpose(ctx: ImportContext, x: Expr, *, permutation: AnyValue = None) -> Expr:
    return relay.transpose(x, _ints(permutation))


@OPS.imports("STABLEHLO_CONCATENATE")
def import_concatenate(ctx: ImportContext, *values: Expr, dimension: int = 0) -> Expr:
    return relay.concatenate(values, axis=dimension)


@OPS.imports("STABLEHLO_SLICE")
def import_slice(
    ctx: ImportContext,
    x: Expr,
    *,
    start_indices: AnyValue = None,
    limit_indices: AnyValue = None,
    strides: AnyValue = None,
) -> Expr:
    return relay.strided_slice(x, _ints(start_indices), _ints(limit_indices), _ints(strides))


@OPS.imports("STABLEHLO_BROADCAST_IN_DIM")
def import_broadcast_in_dim(
    ctx: ImportContext, x: Expr, *, broadcast_dimensions: AnyValue = None
) -> Expr:
    """Axis i of the operand becomes the axis that entry i names."""
    shape, axes = ctx.result().shape, _ints(broadcast_dimensions)
    lengths = [1] * len(shape)
    for axis, length in zip(axes, ctx.static_shape(x), strict=True):
        lengths[axis] = length
    return relay.broadcast_to(relay.reshape(x, lengths), shape)


@OPS.imports("STABLEHLO_IOTA")
def import_iota(ctx: ImportContext, *, iota_dimension: int = 0) -> Expr:
    made = ctx.result()
    lengths = [1] * len(made.shape)
    lengths[iota_dimension] = made.shape[iota_dimension]
    count = ctx.const(np.arange(made.shape[iota_dimension]).reshape(lengths), made.dtype)
    return relay.broadcast_to(count, made.shape)


@OPS.imports("STABLEHLO_PAD")
def import_pad(
    ctx: ImportContext,
    x: Expr,
    value: Expr,
    *,
    edge_padding_low: AnyValue = None,
    edge_padding_high: AnyValue = None,
    interior_padding: AnyValue = None,
) -> Expr:
    """Elements may be moved apart before the border is added."""
    apart = [each + 1 for each in _ints(interior_padding)]
    if any(each > 1 for each in apart):
        x = relay.nn.dilate(x, apart, float(ctx.item(value)))
    pairs = list(zip(_ints(edge_padding_low), _ints(edge_padding_high), strict=True))
    if any(min(pair) < 0 for pair in pairs):
        raise Unsupported(f"padding {pairs}, which cuts")
    return relay.nn.pad(x, pairs, value)


@OPS.imports("STABLEHLO_DOT_GENERAL", ignored=("precision_config",))
def import_dot_general(
    ctx: ImportContext,
    x: Expr,
    y: Expr,
    *,
    lhs_batching_dimensions: AnyValue = None,
    rhs_batching_dimensions: AnyValue = None,
    lhs_contracting_dimensions: AnyValue = None,
    rhs_contracting_dimensions: AnyValue = None,
) -> Expr:
    """Batching axes come first, then the others of the left side and of the right."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left = [next(letters) for _ in range(ctx.rank(x))]
    right = [next(letters) for _ in range(ctx.rank(y))]
    joined = (
        (lhs_batching_dimensions, rhs_batching_dimensions),
        (lhs_contracting_dimensions, rhs_contracting_dimensions),
    )
    for one, other in joined:
        for a, b in zip(_ints(one), _ints(other), strict=True):
            right[b] = left[a]
    batch = [left[axis] for axis in _ints(lhs_batching_dimensions)]
    gone = [left[axis] for axis in _ints(lhs_contracting_dimensions)]
    kept = [each for each in left + right if each not in batch and each not in gone]
    equation = f"{''.join(left)},{''.join(right)}->{''.join(batch + kept)}"
    return relay.einsum([x, y], equation)


@OPS.imports("STABLEHLO_DYNAMIC_SLICE")
def import_dynamic_slice(
    ctx: ImportContext, x: Expr, *starts: Expr, slice_sizes: AnyValue = None
) -> Expr:
    """The region is moved to where it lies in the tensor."""
    sizes = np.array(_ints(slice_sizes))
    room = np.subtract(ctx.static_shape(x), sizes)
    flat = [relay.cast(relay.reshape(each, (1,)), "int64") for each in starts]
    start = relay.concatenate(flat, axis=0)
    low = relay.maximum(start, ctx.const(0, "int64"))
    first = relay.minimum(low, ctx.const(room, "int64"))
    return relay.strided_slice(x, first, ctx.const(sizes, "int64"), slice_mode="size")


@OPS.imports("STABLEHLO_WHILE")
def import_stablehlo_while(
    ctx: ImportContext, *values: Expr, cond_subgraph_index: int = 0, body_subgraph_index: int = 0
) -> Sequence[Expr]:
    return import_while(
        ctx,
        *values,
        cond_subgraph_index=cond_subgraph_index,
        body_subgraph_index=body_subgraph_index,
    )

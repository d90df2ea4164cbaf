"""Normalisations of the last axes."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np
import onnx
from onnx import helper

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import normalize_axis
from serde.walk.pairs import writes
from serde.walk.takes import SINGLE, Takes, dtypes


@OPS.exports("serde.layer_norm", since=17, takes=Takes(stash_dtype=dtypes("float32", "bfloat16")))
def export_serde_layer_norm(
    ctx: ExportContext,
    x: Value,
    gamma: Value,
    beta: Value | None,
    *,
    axis: int,
    epsilon: float,
    stash_dtype: np.dtype[AnyValue],
) -> tuple[Value, ...]:
    return ctx.emit_tuple(
        "LayerNormalization",
        x,
        gamma,
        beta,
        outputs=3,
        axis=axis,
        epsilon=epsilon,
        stash_type=helper.np_dtype_to_tensor_dtype(stash_dtype),
    )


@OPS.imports("LayerNormalization", since=17)
def import_layer_norm(
    ctx: ImportContext,
    x: Expr,
    scale: Expr,
    b: Expr | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = onnx.TensorProto.FLOAT,
) -> list[Expr]:
    found = call(
        "serde.layer_norm",
        x,
        _broadcast_to_axes(ctx, x, scale, axis),
        None if b is None else _broadcast_to_axes(ctx, x, b, axis),
        axis=axis,
        epsilon=epsilon,
        stash_dtype=ctx.dtype(stash_type),
    )
    return [relay.TupleGetItem(found, each) for each in range(3)]


@OPS.imports("RMSNormalization", since=23, ignored=("stash_type",))
def import_rms_norm(
    ctx: ImportContext, x: Expr, scale: Expr, *, axis: int = -1, epsilon: float = 1e-5
) -> Expr:
    factor = _broadcast_to_axes(ctx, x, scale, axis)
    return call("serde.rms_norm", x, factor, axis=axis, epsilon=epsilon)


@OPS.imports("SimplifiedLayerNormalization", ignored=("stash_type",))
def import_simplified_layer_norm(
    ctx: ImportContext, x: Expr, scale: Expr, *, axis: int = -1, epsilon: float = 1e-5
) -> list[Expr]:
    """``y = x / sqrt(mean(x**2) + epsilon) * scale``; the second output is the inverse root."""
    found: list[Expr] = [call("serde.rms_norm", x, scale, axis=axis, epsilon=epsilon)]
    if not ctx.wants(1):
        return found
    rank = ctx.type(x).rank
    axes = tuple(range(axis % rank, rank))
    wide = relay.cast(x, "float32")
    square = relay.mean(relay.multiply(wide, wide), axis=axes, keepdims=True)
    return [*found, relay.rsqrt(relay.add(square, scalar_like(ctx, square, epsilon)))]


def _broadcast_to_axes(ctx: ImportContext, x: Expr, scale: Expr, axis: int) -> Expr:
    """Return a factor of the axes from `axis` on, to whose lengths ONNX broadcasts it."""
    lengths = ctx.type(x).shape[normalize_axis(axis, ctx.type(x).rank) :]
    if ctx.type(scale).shape == lengths:
        return scale
    return relay.broadcast_to(scale, lengths)


OPS.pairs(
    writes(
        "RMSNormalization", "serde.rms_norm", "axis", "epsilon", since=23, takes=Takes(data=SINGLE)
    )
)

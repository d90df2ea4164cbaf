"""Operators whose results have the range of their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.index.gather import import_embedding
from serde.mxnet.ops.pool import PoolAttributes, import_pooling
from serde.mxnet.ops.qnn.parameters import ONE, levels_in, scalar
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr

FLOAT32 = np.dtype(np.float32)


@OPS.imports("_contrib_quantized_flatten")
def import_quantized_flatten(
    ctx: ImportContext, data: Expr, min_data: Expr, max_data: Expr
) -> Sequence[Expr]:
    return [relay.nn.batch_flatten(data), min_data, max_data]


@OPS.imports("_contrib_quantized_act")
def import_quantized_act(
    ctx: ImportContext,
    data: Expr,
    min_data: Expr,
    max_data: Expr,
    *,
    act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"],
) -> Sequence[Expr]:
    if act_type != "relu":
        raise Unsupported(f"act_type={act_type!r}: MXNet has relu of quantised numbers only")
    if ctx.type(data).dtype != "int8":
        raise Unsupported("relu of uint8, whose result MXNet takes for int8")
    return [relay.maximum(data, relay.const(np.int8(0))), min_data, max_data]


@OPS.imports("_contrib_quantized_embedding", ignored=("sparse_grad",))
def import_quantized_embedding(
    ctx: ImportContext,
    data: Expr,
    weight: Expr,
    min_weight: Expr,
    max_weight: Expr,
    *,
    input_dim: int,
    output_dim: int,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Sequence[Expr]:
    rows = import_embedding(ctx, data, weight, input_dim=input_dim, output_dim=output_dim)
    return [rows, min_weight, max_weight]


@dataclass(frozen=True, kw_only=True)
class QuantizedPool(PoolAttributes):
    """The same, of layouts that MXNet has for quantised images."""

    layout: Literal["NCDHW", "NCHW"] | None = None


@OPS.imports("_contrib_quantized_pooling", ignored=("cudnn_off",))
def import_quantized_pooling(
    ctx: ImportContext, data: Expr, min_data: Expr, max_data: Expr, *, pool: QuantizedPool
) -> Sequence[Expr]:
    """Means of levels are rounded half to even; of a window past the padding, over all of it."""
    if pool.pool_type not in ("max", "avg"):
        raise Unsupported(
            f"pool_type={pool.pool_type!r}: MXNet has max and avg of quantised numbers"
        )
    if ctx.type(data).rank not in (4, 5):
        raise Unsupported(f"pooling of {ctx.type(data)!r}: MXNet wants two or three spatial axes")
    past = pool.pooling_convention == "full" and not pool.global_pool
    is_mean = pool.pool_type == "avg"
    summed = is_mean and past and pool.count_include_pad is not False
    dtype = ctx.type(data).dtype
    result = import_pooling(
        ctx,
        relay.cast(data, "float32") if is_mean else data,
        pool=replace(pool, pool_type="sum") if summed else pool,
    )
    if summed:
        result = relay.divide(result, scalar(prod(pool.kernel)))
    if is_mean:
        result = levels_in(result, ONE, dtype)
    return [result, min_data, max_data]

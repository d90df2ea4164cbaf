"""Arithmetic of quantised tensors, and operators whose results have the range of their data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any as AnyValue, Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.mxnet.ops.index.gather import import_embedding
from serde.mxnet.ops.pool import PoolAttributes, import_pooling
from serde.mxnet.ops.qnn.fused import Calibration, levels_of, scale_of, split_inputs
from serde.mxnet.ops.qnn.parameters import (
    LEVELS,
    ONE,
    WHOLE,
    known,
    levels_in,
    magnitude,
    product_range,
    real_of,
    scalar,
    step,
    symmetric,
    whole,
)
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir import Constant, Expr, TensorType


@OPS.imports("_contrib_quantized_concat", ignored=("num_args",))
def import_quantized_concat(ctx: Import, *inputs: Expr, dim: int = 1) -> Sequence[Expr]:
    """The range of the result holds all ranges; it is int8 if one of them is."""
    count = len(inputs) // 3
    data, ranges = split_inputs(inputs, [count, 2 * count])
    dtypes = {ctx.type(each).dtype for each in data}
    dtype = "int8" if "int8" in dtypes else "uint8"
    low = reduce(lambda a, b: known(relay.minimum(a, b)), ranges[::2])
    high = reduce(lambda a, b: known(relay.maximum(a, b)), ranges[1::2])
    scale = step(magnitude(low, high), LEVELS[dtype])
    scales = [
        step(magnitude(*ranges[2 * i : 2 * i + 2]), levels_of(ctx, each))
        for i, each in enumerate(data)
    ]
    if len(dtypes) == 1 and all(_same(each, scale) for each in scales):
        return [relay.concatenate(list(data), axis=dim), low, high]
    parts = [real_of(each, own) for each, own in zip(data, scales, strict=True)]
    return [levels_in(relay.concatenate(parts, axis=dim), scale, dtype), low, high]


def _same(a: Expr, b: Expr) -> bool:
    return isinstance(a, Constant) and isinstance(b, Constant) and bool(a.data == b.data)


@OPS.imports("_contrib_quantized_elemwise_add")
def import_quantized_elemwise_add(
    ctx: Import, lhs: Expr, rhs: Expr, lhs_min: Expr, lhs_max: Expr, rhs_min: Expr, rhs_max: Expr,
    *, calibration: Calibration,
) -> Sequence[Expr]:  # fmt: skip
    """Of different dtypes, the unsigned one is brought to the steps of the result first."""
    sides = ((lhs, magnitude(lhs_min, lhs_max)), (rhs, magnitude(rhs_min, rhs_max)))
    dtypes = {ctx.type(lhs).dtype, ctx.type(rhs).dtype}
    ending = calibration.ending("uint8" if dtypes == {"uint8"} else "int8")
    real = [real_of(x, step(end, levels_of(ctx, x))) for x, end in sides]
    if ending is not None:
        if len(dtypes) > 1:
            real = [
                real_of(levels_in(value, ending.step, "int8"), ending.step)
                if ctx.type(x).dtype == "uint8"
                else value
                for value, (x, _) in zip(real, sides, strict=True)
            ]
        return [levels_in(relay.add(*real), ending.step, ending.dtype), *ending.ends]
    if len(dtypes) > 1:
        raise Unsupported("a sum of int8 and uint8 in int32, in which MXNet loses the latter")
    reach = known(relay.add(sides[0][1], sides[1][1]))
    level = relay.multiply(relay.add(*real), scale_of(reach, WHOLE["int32"]))
    # In float64, for a float32 has no greatest integer of int32.
    wide = relay.clip(relay.cast(level, "float64"), -(2.0**31), 2.0**31 - 1)
    return [whole(wide), *symmetric(reach)]


@OPS.imports("_contrib_quantized_elemwise_mul")
def import_quantized_elemwise_mul(
    ctx: Import, lhs: Expr, rhs: Expr, lhs_min: Expr, lhs_max: Expr, rhs_min: Expr, rhs_max: Expr,
    *, calibration: Calibration, enable_float_output: bool = False,
) -> Sequence[Expr]:  # fmt: skip
    """A calibrated result is cut towards zero and wraps around."""
    if {ctx.type(lhs).dtype, ctx.type(rhs).dtype} != {"int8"}:
        raise Unsupported("a product with uint8: MXNet multiplies int8 only")
    ends = magnitude(lhs_min, lhs_max), magnitude(rhs_min, rhs_max)
    total = relay.multiply(relay.cast(lhs, "int32"), relay.cast(rhs, "int32"))
    scales = [scale_of(end, LEVELS["int8"]) for end in ends]
    if enable_float_output:
        unit = known(relay.divide(known(relay.divide(scalar(1), scales[0])), scales[1]))
        return [real_of(total, unit)]
    ending = calibration.ending("int8")
    if ending is None:
        return [total, *product_range(*ends, ("int8", "int8"))]
    result = scale_of(magnitude(*ending.ends), LEVELS["int8"])
    ratio = known(relay.divide(known(relay.divide(result, scales[0])), scales[1]))
    level = relay.cast(relay.multiply(relay.cast(total, "float32"), ratio), "int32")
    return [relay.cast(level, "int8"), *ending.ends]


@OPS.imports(
    "_contrib_quantized_batch_norm",
    ignored=("momentum", "use_global_stats", "output_mean_var", "cudnn_off", "fix_gamma"),
)
def import_quantized_batch_norm(
    ctx: Import, data: Expr, gamma: Expr, beta: Expr, moving_mean: Expr, moving_var: Expr,
    min_data: Expr, max_data: Expr,
    *, eps: float = 1e-3, axis: int = 1, calibration: Calibration,
) -> Sequence[Expr]:  # fmt: skip
    """``eps`` counts twice and ``fix_gamma`` not at all; uint8 is brought to int8 first."""
    ending = calibration.ending("int8")
    if ending is None:
        raise Unsupported("needs min_calib_range and max_calib_range, as in MXNet")
    end = magnitude(min_data, max_data)
    real = real_of(data, step(end, levels_of(ctx, data)))
    if ctx.type(data).dtype == "uint8":
        unit = step(end, LEVELS["int8"])
        real = real_of(levels_in(real, unit, "int8"), unit)
    spread = relay.sqrt(relay.add(moving_var, scalar(eps)))
    factor = relay.divide(gamma, spread)
    shift = relay.subtract(beta, relay.multiply(moving_mean, factor))
    (channels,) = _require_fixed(ctx.type(gamma))
    mean, variance = (relay.const(allocation.full(channels, value, np.float32)) for value in (0, 1))
    result = relay.nn.batch_norm(real, factor, shift, mean, variance, axis=axis, epsilon=eps)[0]
    return [levels_in(result, ending.step, ending.dtype), *ending.ends]


def _require_fixed(type_: TensorType) -> tuple[int, ...]:
    if type_.concrete_shape is None:
        raise Unsupported(f"needs a fixed number of channels, found {type_!r}")
    return type_.concrete_shape


FLOAT32 = np.dtype(np.float32)


@OPS.imports("_contrib_quantized_flatten")
def import_quantized_flatten(
    ctx: Import, data: Expr, min_data: Expr, max_data: Expr
) -> Sequence[Expr]:
    return [relay.nn.batch_flatten(data), min_data, max_data]


@OPS.imports("_contrib_quantized_act")
def import_quantized_act(
    ctx: Import,
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
    ctx: Import, data: Expr, weight: Expr, min_weight: Expr, max_weight: Expr,
    *, input_dim: int, output_dim: int, dtype: np.dtype[AnyValue] = FLOAT32,
) -> Sequence[Expr]:  # fmt: skip
    rows = import_embedding(ctx, data, weight, input_dim=input_dim, output_dim=output_dim)
    return [rows, min_weight, max_weight]


@dataclass(frozen=True, kw_only=True)
class QuantizedPool(PoolAttributes):
    """The same, of layouts that MXNet has for quantised images."""

    layout: Literal["NCDHW", "NCHW"] | None = None


@OPS.imports("_contrib_quantized_pooling", ignored=("cudnn_off",))
def import_quantized_pooling(
    ctx: Import, data: Expr, min_data: Expr, max_data: Expr, *, pool: QuantizedPool
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

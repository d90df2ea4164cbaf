"""Numbers beside tensors, and integers by way of floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.relay.ir import Expr, TensorType, is_float


def scalar_like(ctx: ImportContext, x: Expr, value: float) -> Expr:
    """Return `value` as a constant of the dtype of `x`; towards zero where that is an integer."""
    dtype = numpy_dtype(ctx.type(x).dtype)
    if not np.issubdtype(dtype, np.integer):
        with np.errstate(over="ignore"):
            return relay.Constant(np.array(value).astype(dtype))
    if not abs(value) < 2.0**63:
        raise Unsupported(f"{value} as {dtype} is beyond its range")
    return relay.Constant(np.array(int(value)).astype(dtype))


def with_scalar(ctx: ImportContext, data: Expr, scalar: float, is_int: bool) -> tuple[Expr, Expr]:
    """Return a tensor and a number as MXNet combines them, of one dtype.

    Truth values become int64 beside an integer; beside another number they and integers become
    float64.
    """
    dtype = ctx.type(data).dtype
    if dtype == "bool" or not (is_float(dtype) or is_int):
        data = relay.cast(data, "int64" if is_int else "float64")
    return data, scalar_like(ctx, data, scalar)


def in_floats(
    ctx: ImportContext, function: Callable[..., Expr], *operands: Expr, rounded: bool = False
) -> Expr:
    """Return what a function of floats gives; of integers, by way of float64.

    Args:
        ctx: The context.
        function: What is computed.
        operands: Tensors of one dtype.
        rounded: Whether the result for integers is rounded, instead of cut towards zero.
    """
    dtype = ctx.type(operands[0]).dtype
    if is_float(dtype):
        return function(*operands)
    result = function(*(relay.cast(x, "float64") for x in operands))
    return relay.cast(relay.round(result) if rounded else result, dtype)


def in_singles(ctx: ImportContext, function: Callable[..., Expr], *operands: Expr) -> Expr:
    """Return what a function gives that MXNet computes in float32 for integers.

    It is exact in float64 first, and rounded then.
    """
    dtype = ctx.type(operands[0]).dtype
    if is_float(dtype):
        return function(*operands)
    single = [relay.cast(x, "float32") for x in operands]
    found = function(*(relay.cast(x, "float64") for x in single))
    return relay.cast(relay.cast(found, "float32"), dtype)


def truth(ctx: ImportContext, x: Expr) -> Expr:
    """Return whether each element differs from zero."""
    return relay.not_equal(x, scalar_like(ctx, x, 0))


def dtype_of(x: Expr) -> str:
    """Return the dtype of a tensor whose type is known, else nothing."""
    return x.checked_type.dtype if isinstance(x.checked_type, TensorType) else ""

"""Functions of one tensor, element by element, as they are written."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from serde.errors import Unsupported
from serde.relay.ir.shapes import is_float
from serde.relay.op.elementwise.unary import clip_limits
from serde.torch.export_context import ExportContext, Value, number_of
from serde.torch.ops.table import OPS
from serde.torch.ops.written import FIRST_BIT, DType, cast, in_computed_dtype
from serde.walk.pairs import writes
from serde.weights import numpy_dtype

SAME = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "isfinite",
    "isinf", "isnan", "log", "log10", "log2", "ones_like", "rsqrt", "sigmoid", "sin", "sinh",
    "sqrt", "tan", "tanh", "zeros_like",
)  # fmt: skip
"""Functions that PyTorch calls as Relay does."""

OPS.pairs(
    *(writes(f"torch.{name}", name) for name in SAME),
    writes("torch.erf", "fast_erf"),
    writes("torch.exp", "fast_exp"),
    writes("torch.tanh", "fast_tanh"),
    writes("torch.erfinv", "serde.erfinv"),
    writes("torch.expm1", "serde.expm1"),
    writes("torch.lgamma", "serde.lgamma"),
    writes("torch.log1p", "serde.log1p"),
    writes("torch.round", "serde.round_even"),
)


@OPS.exports("abs")
def export_abs(ctx: ExportContext, data: Value) -> Value:
    return data if _is_unsigned(ctx, data) else ctx.call("torch.abs", data)


def _is_unsigned(ctx: ExportContext, data: Value) -> bool:
    return ctx.type(data).dtype.startswith("uint")


@OPS.exports("sign")
def export_sign(ctx: ExportContext, data: Value) -> Value:
    """Of NaN PyTorch's sign is zero, Relay's NaN."""
    if is_float(ctx.type(data).dtype):
        return ctx.call(ctx.helper("sign"), data)
    if _is_unsigned(ctx, data):
        positive = ctx.method(data, "to", ctx.dtype("bool"))
        return ctx.method(positive, "to", ctx.dtype(ctx.type(data).dtype))
    return ctx.call("torch.sign", data)


@OPS.exports("negative")
def export_negative(ctx: ExportContext, data: Value) -> Value:
    return in_computed_dtype(ctx, lambda x: ctx.prefix("-", x), data)


@OPS.exports("bitwise_not")
def export_bitwise_not(ctx: ExportContext, data: Value) -> Value:
    return in_computed_dtype(ctx, lambda x: ctx.prefix("~", x), data)


def _export_rounding(ctx: ExportContext, data: Value, *, target: str) -> Value:
    """Integers stay as they are."""
    return ctx.call(target, data) if is_float(ctx.type(data).dtype) else data


for _name in ("ceil", "floor", "trunc"):
    OPS.exports(_name)(partial(_export_rounding, target=f"torch.{_name}"))


@OPS.exports("round")
def export_round(ctx: ExportContext, data: Value) -> Value:
    """PyTorch rounds halves to even numbers, Relay away from zero."""
    if not is_float(ctx.type(data).dtype):
        return data
    return ctx.call(ctx.helper("round_half_away"), data)


@OPS.exports("serde.tgamma")
def export_tgamma(ctx: ExportContext, data: Value) -> Value:
    """In float64, where the logarithm of a large value keeps its digits."""
    dtype = ctx.type(data).dtype
    wide = cast(ctx, data, "float64")
    return cast(ctx, ctx.call(ctx.helper("gamma"), wide), dtype, "float64")


@OPS.exports("logical_not")
def export_logical_not(ctx: ExportContext, data: Value) -> Value:
    dtype = ctx.type(data).dtype
    if dtype == "bool":
        return ctx.prefix("~", data)
    return cast(ctx, ctx.prefix("~", ctx.method(data, "to", ctx.dtype("bool"))), dtype, "bool")


@OPS.exports("copy")
def export_copy(ctx: ExportContext, data: Value) -> Value:
    """No tensor is written to, so that one serves as its own copy."""
    return data


@OPS.exports("clip")
def export_clip(ctx: ExportContext, data: Value, *, a_min: float, a_max: float) -> Value:
    """Limits of integers are integers; one that is infinite is left out.

    Of 64 bits without a sign, the first one is turned over and back again.
    """
    dtype = ctx.type(data).dtype
    low, high = map(number_of, clip_limits(np.dtype(numpy_dtype(dtype)), a_min, a_max))
    if dtype == "uint64":
        turned = ctx.infix("^", ctx.method(data, "to", ctx.dtype("int64")), FIRST_BIT)
        turned = ctx.call("torch.clamp", turned, low + FIRST_BIT, high + FIRST_BIT)
        return ctx.method(ctx.infix("^", turned, FIRST_BIT), "to", ctx.dtype(dtype))
    if not is_float(dtype):
        return in_computed_dtype(ctx, lambda x: ctx.call("torch.clamp", x, low, high), data)
    low, high = float(low), float(high)
    if (low, high) == (0, 6):
        return ctx.call("F.relu6", data)
    limits = {} if low == -math.inf else {"min": low}
    limits |= {} if high == math.inf else {"max": high}
    if len(limits) == 2:
        return ctx.call("torch.clamp", data, low, high)
    return ctx.call("torch.clamp", data, **limits) if limits else data


@OPS.exports("cast")
def export_cast(ctx: ExportContext, data: Value, *, dtype: DType) -> Value:
    """PyTorch saturates where a float of 8 bits has no infinity; Relay gives NaN."""
    if dtype.name == "float8_e8m0fnu":
        raise Unsupported("PyTorch rounds zeros and negative numbers to float8_e8m0fnu otherwise")
    if dtype.name == "float8_e4m3fn" and ctx.type(data).dtype != "float8_e4m3fn":
        return ctx.call(ctx.helper("to_float8"), data)
    return cast(ctx, data, dtype.name)


@OPS.exports("cast_like")
def export_cast_like(ctx: ExportContext, data: Value, dtype_like: Value) -> Value:
    return cast(ctx, data, ctx.type(dtype_like).dtype)


@OPS.exports("reinterpret")
def export_reinterpret(ctx: ExportContext, data: Value, *, dtype: DType) -> Value:
    """TorchScript does not know ``view`` of a dtype."""
    return ctx.call("torch.view_copy", data, dtype=ctx.dtype(dtype.name))

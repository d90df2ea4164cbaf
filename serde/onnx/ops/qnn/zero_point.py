"""Zero points and scales of quantised products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType


def to_scalar(ctx: ImportContext, x: Expr | None) -> Expr | None:
    """Return a vector of one element as a scalar."""
    if x is None or ctx.type(x).shape != (1,):
        return x
    return relay.squeeze(x, axis=[0])


def drop_zero(ctx: ImportContext, x: Expr | None) -> Expr | None:
    """Return a zero point, or None if it is known to be zero."""
    found = None if x is None else ctx.known(x)
    return None if found is not None and not found.any() else to_scalar(ctx, x)


def to_row(ctx: ImportContext, zero_point: Expr | None) -> Expr | None:
    """Return a parameter of the left side, of which a vector has one element a row."""
    zero_point = to_scalar(ctx, zero_point)
    if zero_point is None or ctx.type(zero_point).rank != 1:
        return zero_point
    return relay.expand_dims(zero_point, axis=1)


def requantize(
    ctx: ImportContext, total: Expr, factor: Expr, zero_point: Expr | None, dtype: str
) -> Expr:
    """Return ``saturate(round(total * factor) + zero_point)``, rounded half to even."""
    real = relay.multiply(relay.cast(total, "float32"), factor)
    one = relay.const(np.float32(1))
    point = to_scalar(ctx, zero_point)
    return call("serde.quantize_linear", real, one, point, out_dtype=dtype)


def fits_qlinear(
    ctx: ImportContext, given: Sequence[Expr | None], dtype: str, *, columns: bool = True
) -> bool:
    """Whether one operator says a quantised product, and ONNX Runtime runs what it becomes.

    Args:
        ctx: The context.
        given: Data, weight, and scale and zero point of data, weight and result.
        dtype: That of the result.
        columns: Whether the weight may have a scale for each output.
    """
    types = [ctx.type(each) for each in given if each is not None]
    data, weight, *parameters = types
    if not (data.dtype == "uint8" or weight.dtype == "int8") or dtype != data.dtype:
        return False
    scale, zero = parameters[2:4]
    scalars = [*parameters[:2], *parameters[4:], *([] if columns else [scale, zero])]
    floats = all(each.dtype == "float32" for each in parameters[::2])
    whole = all(each.rank == 0 for each in scalars) and scale.rank == zero.rank
    return floats and whole and scale.rank <= 1


def cast_scale(ctx: ImportContext, x: Expr | None) -> Expr:
    if x is None:
        raise Unsupported("a scale is missing")
    return x if ctx.type(x).dtype == "float32" else relay.cast(x, "float32")


def cast_zero_point(ctx: ExportContext, zero_point: Value, like: Value) -> Value:
    """Return a constant zero point in the dtype of what it belongs to.

    Raises:
        Unsupported: It is computed at run time, or no number of that dtype.
    """
    dtype = ctx.type(like).dtype
    data = ctx.constant(zero_point)
    limits = np.iinfo(dtype)
    if (data < limits.min).any() or (data > limits.max).any():
        raise Unsupported(f"a zero point of {data.tolist()} is outside {dtype}")
    return ctx.const(data.reshape(()) if data.size == 1 else data, dtype)


def is_scalar_within(zero_point: Value, dtype: str) -> bool:
    """Whether a zero point is one constant number of `dtype`."""
    data = zero_point.data
    if data is None or data.size != 1:
        return False
    return bool(np.iinfo(dtype).min <= data.item() <= np.iinfo(dtype).max)


def runs_in_runtime(node: Call) -> bool:
    """ONNX Runtime wants one dtype before and after, and signed weights for signed data."""
    data, weight = (argument.type for argument in node.args[:2])
    if not isinstance(data, TensorType) or not isinstance(weight, TensorType):
        return False
    signed = data.dtype == "uint8" or weight.dtype == "int8"
    return signed and node.attrs["out_dtype"].name == data.dtype

"""Zero points and scales of quantised products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.linalg.product import BYTE_DTYPES
from serde.relay.ir.expr import Call, Expr, tensor_type
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.op.qnn.parameters import is_zero, narrow_zero_point


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


def runs_in_runtime(node: Call) -> bool:
    """ONNX Runtime wants one dtype before and after, and signed weights for signed data."""
    data, weight = (argument.type for argument in node.args[:2])
    if not isinstance(data, TensorType) or not isinstance(weight, TensorType):
        return False
    signed = data.dtype == "uint8" or weight.dtype == "int8"
    return signed and node.attrs["out_dtype"].name == data.dtype


def byte_points(*sides: tuple[Expr, Expr]) -> list[Expr | None] | None:
    """Return the zero points of bytes, nothing for 0; None if one is no constant byte."""
    if any(tensor_type(x).dtype not in BYTE_DTYPES for x, _ in sides):
        return None
    narrow = [narrow_zero_point(zero, tensor_type(x).dtype) for x, zero in sides]
    known = [each for each in narrow if each is not None]
    return [None if is_zero(x) else x for x in known] if len(known) == len(sides) else None

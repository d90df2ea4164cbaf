"""Products of quantised matrices. ONNX keeps a zero point in the dtype of its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.qnn.zero_point import (
    byte_points,
    cast_scale,
    drop_zero,
    fits_qlinear,
    requantize,
    runs_in_runtime,
    to_row,
    to_scalar,
)
from serde.onnx.ops.shape.reshape import to_attribute
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Any, Dim, product
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import broadcast
from serde.relay.ir.types import TensorType
from serde.relay.op.qnn.sums import body_of_sums


@OPS.expands("qnn.dense")
def expand_dense(
    data: Expr,
    weight: Expr,
    input_zero_point: Expr,
    weight_zero_point: Expr,
    input_scale: Expr,
    weight_scale: Expr,
    *,
    units: Dim | None,
    out_dtype: np.dtype[AnyValue],
) -> Expr:
    """MatMulInteger sums bytes in int32, a MatMul other integers."""
    points = byte_points((data, input_zero_point), (weight, weight_zero_point))
    if points is None or out_dtype != np.int32:
        given = (data, weight, input_zero_point, weight_zero_point, input_scale, weight_scale)
        return _IN_INTEGERS["qnn.dense"](*given, units=units, out_dtype=out_dtype)
    return call("serde.matmul_integer", data, relay.transpose(weight, (1, 0)), *points)


@OPS.expands("qnn.batch_matmul")
def expand_batch_matmul(
    x: Expr,
    y: Expr,
    x_zero_point: Expr,
    y_zero_point: Expr,
    x_scale: Expr,
    y_scale: Expr,
    *,
    transpose_a: bool,
    transpose_b: bool,
    **out: AnyValue,
) -> Expr:
    points = byte_points((x, x_zero_point), (y, y_zero_point))
    turns = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    if points is None:
        given = (x, y, x_zero_point, y_zero_point, x_scale, y_scale)
        return _IN_INTEGERS["qnn.batch_matmul"](*given, **turns, **out)
    sides = [
        relay.transpose(side, (0, 2, 1)) if turned else side
        for side, turned in ((x, transpose_a), (y, transpose_b))
    ]
    return call("serde.matmul_integer", *sides, *points)


_IN_INTEGERS = {
    name: body_of_sums(name, floats=False) for name in ("qnn.dense", "qnn.batch_matmul")
}


def _has_matmul_form(node: Call) -> bool:
    """ONNX Runtime has one zero point on the left, and one or one for each column on the right."""
    left, right = (x.type for x in node.args[2:])
    whole = not isinstance(left, TensorType) or left.rank == 0 or left.shape == (1,)
    return whole and (not isinstance(right, TensorType) or right.rank <= 1)


@OPS.exports("serde.matmul_integer", when=_has_matmul_form)
def export_matmul_integer(
    ctx: ExportContext, a: Value, b: Value, a_zero_point: Value | None, b_zero_point: Value | None
) -> Value:
    return ctx.emit("MatMulInteger", a, b, a_zero_point, b_zero_point)


@OPS.imports("MatMulInteger", since=10)
def import_matmul_integer(
    ctx: ImportContext,
    a: Expr,
    b: Expr,
    a_zero_point: Expr | None = None,
    b_zero_point: Expr | None = None,
) -> Expr:
    return build_integer_matmul(ctx, a, b, to_row(ctx, a_zero_point), b_zero_point)


def build_integer_matmul(
    ctx: ImportContext, a: Expr, b: Expr, a_zero_point: Expr | None, b_zero_point: Expr | None
) -> Expr:
    """Return NumPy's matmul of bytes, each less its zero point, in int32.

    Args:
        ctx: The context.
        a: Left side.
        b: Right side.
        a_zero_point: In the dtype of `a`; it broadcasts to it.
        b_zero_point: Likewise of `b`.
    """
    a_zero_point, b_zero_point = drop_zero(ctx, a_zero_point), drop_zero(ctx, b_zero_point)
    left, right = ctx.type(a).rank, ctx.type(b).rank
    if right == 1:
        column = build_integer_matmul(
            ctx, a, relay.expand_dims(b, axis=1), a_zero_point, b_zero_point
        )
        return relay.squeeze(column, axis=[left - 1])
    if left == 1 and right > 2:
        row = build_integer_matmul(ctx, relay.expand_dims(a, axis=0), b, a_zero_point, b_zero_point)
        return relay.squeeze(row, axis=[right - 2])
    if right == 2 or left == right == 3:
        return call("serde.matmul_integer", a, b, a_zero_point, b_zero_point)
    batch = broadcast(ctx.type(a).shape[:-2], ctx.type(b).shape[:-2])
    found = call(
        "serde.matmul_integer",
        _merge_batch(ctx, a, batch),
        _merge_batch(ctx, b, batch),
        _merge_points(ctx, a_zero_point, batch),
        _merge_points(ctx, b_zero_point, batch),
    )
    rows, columns = ctx.type(a).shape[-2], ctx.type(b).shape[-1]
    return relay.reshape(found, to_attribute([*batch, rows, columns]))


def _merge_points(ctx: ImportContext, zero_point: Expr | None, batch: Sequence[Dim]) -> Expr | None:
    if zero_point is None or ctx.type(zero_point).rank <= 2:
        return zero_point
    return _merge_batch(ctx, zero_point, batch)


def _merge_batch(ctx: ImportContext, x: Expr, batch: Sequence[Dim]) -> Expr:
    """Return `x` with the axes before its matrices broadcast to `batch` and joined."""
    shape = ctx.type(x).shape
    own, matrix = shape[:-2], shape[-2:]
    if all(dim == 1 for dim in own):
        return relay.reshape(x, to_attribute([1, *matrix]))
    if tuple(own) != tuple(batch):
        if any(isinstance(dim, Any) for dim in (*batch, *matrix)):
            raise Unsupported(f"batches of {shape}, some without a length or a name")
        x = relay.broadcast_to(x, [*batch, *matrix])
    return relay.reshape(x, to_attribute([product(batch), *matrix]))


@OPS.exports("serde.qlinear_matmul", when=runs_in_runtime)
def export_qlinear_matmul(
    ctx: ExportContext,
    lhs: Value,
    rhs: Value,
    lhs_scale: Value,
    lhs_zero: Value,
    rhs_scale: Value,
    rhs_zero: Value,
    out_scale: Value,
    out_zero: Value,
    *,
    out_dtype: np.dtype[AnyValue],
) -> Value:
    return ctx.emit(
        "QLinearMatMul", lhs, lhs_scale, lhs_zero, rhs, rhs_scale, rhs_zero, out_scale, out_zero
    )


@OPS.imports("QLinearMatMul", since=(10, 21))
def import_qlinear_matmul(
    ctx: ImportContext,
    a: Expr,
    a_scale: Expr,
    a_zero_point: Expr,
    b: Expr,
    b_scale: Expr,
    b_zero_point: Expr,
    y_scale: Expr,
    y_zero_point: Expr,
) -> Expr:
    dtypes = {ctx.type(each).dtype for each in (a, b, y_zero_point)}
    if not dtypes <= {"int8", "uint8"}:
        raise Unsupported(f"a product of {' and '.join(sorted(dtypes))}, of which sums are not "
                          "defined")  # fmt: skip
    sides = (to_scalar(ctx, each) for each in (a_scale, a_zero_point, b_scale, b_zero_point))
    given = [a, b, *sides, to_scalar(ctx, y_scale), to_scalar(ctx, y_zero_point)]
    dtype = ctx.type(y_zero_point).dtype
    ranks = (ctx.type(a).rank, ctx.type(b).rank)
    if ranks in ((2, 2), (3, 3)) and fits_qlinear(ctx, given, dtype, columns=ranks == (2, 2)):
        return call("serde.qlinear_matmul", *given, out_dtype=dtype)
    total = build_integer_matmul(ctx, a, b, to_row(ctx, a_zero_point), b_zero_point)
    left = cast_scale(ctx, to_row(ctx, a_scale))
    right, result = (cast_scale(ctx, to_scalar(ctx, each)) for each in (b_scale, y_scale))
    factor = relay.divide(relay.multiply(left, right), result)
    return requantize(ctx, total, factor, y_zero_point, dtype)

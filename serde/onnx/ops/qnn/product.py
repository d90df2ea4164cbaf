"""Products of quantised matrices. ONNX keeps a zero point in the dtype of its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.linalg.product import BYTE_DTYPES
from serde.onnx.ops.shape.reshape import to_attribute
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Any, Call, Dim, Expr, TensorType, broadcast, call, product, tensor_type
from serde.relay.op.qnn.parameters import is_zero, narrow_zero_point
from serde.relay.op.qnn.sums import body_of_sums


def to_scalar(ctx: Import, x: Expr | None) -> Expr | None:
    """Return a vector of one element as a scalar."""
    if x is None or ctx.type(x).shape != (1,):
        return x
    return relay.squeeze(x, axis=[0])


def drop_zero(ctx: Import, x: Expr | None) -> Expr | None:
    """Return a zero point, or None if it is known to be zero."""
    found = None if x is None else ctx.known(x)
    return None if found is not None and not found.any() else to_scalar(ctx, x)


def to_row(ctx: Import, zero_point: Expr | None) -> Expr | None:
    """Return a parameter of the left side, of which a vector has one element a row."""
    zero_point = to_scalar(ctx, zero_point)
    if zero_point is None or ctx.type(zero_point).rank != 1:
        return zero_point
    return relay.expand_dims(zero_point, axis=1)


def requantize(ctx: Import, total: Expr, factor: Expr, zero_point: Expr | None, dtype: str) -> Expr:
    """Return ``saturate(round(total * factor) + zero_point)``, rounded half to even."""
    real = relay.multiply(relay.cast(total, "float32"), factor)
    one = relay.const(np.float32(1))
    point = to_scalar(ctx, zero_point)
    return call("serde.quantize_linear", real, one, point, out_dtype=dtype)


def fits_qlinear(
    ctx: Import, given: Sequence[Expr | None], dtype: str, *, columns: bool = True
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


def cast_scale(ctx: Import, x: Expr | None) -> Expr:
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


@OPS.expands("qnn.dense")
def expand_dense(
    data: Expr, weight: Expr, *parameters: Expr, units: Dim | None, out_dtype: np.dtype[AnyValue]
) -> Expr:
    """MatMulInteger sums bytes in int32, a MatMul other integers."""
    input_zero_point, weight_zero_point, input_scale, weight_scale = parameters
    points = byte_points((data, input_zero_point), (weight, weight_zero_point))
    if points is None or out_dtype != np.int32:
        given = (data, weight, input_zero_point, weight_zero_point, input_scale, weight_scale)
        return _IN_INTEGERS["qnn.dense"](*given, units=units, out_dtype=out_dtype)
    return call("serde.matmul_integer", data, relay.transpose(weight, (1, 0)), *points)


@OPS.expands("qnn.batch_matmul")
def expand_batch_matmul(
    x: Expr, y: Expr, *parameters: Expr, transpose_a: bool, transpose_b: bool, **out: AnyValue
) -> Expr:
    x_zero_point, y_zero_point, x_scale, y_scale = parameters
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
    ctx: Export, a: Value, b: Value, a_zero_point: Value | None, b_zero_point: Value | None
) -> Value:
    return ctx.emit("MatMulInteger", a, b, a_zero_point, b_zero_point)


@OPS.imports("MatMulInteger", since=10)
def import_matmul_integer(
    ctx: Import,
    a: Expr,
    b: Expr,
    a_zero_point: Expr | None = None,
    b_zero_point: Expr | None = None,
) -> Expr:
    return build_integer_matmul(ctx, a, b, to_row(ctx, a_zero_point), b_zero_point)


def build_integer_matmul(
    ctx: Import, a: Expr, b: Expr, a_zero_point: Expr | None, b_zero_point: Expr | None
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


def _merge_points(ctx: Import, zero_point: Expr | None, batch: Sequence[Dim]) -> Expr | None:
    if zero_point is None or ctx.type(zero_point).rank <= 2:
        return zero_point
    return _merge_batch(ctx, zero_point, batch)


def _merge_batch(ctx: Import, x: Expr, batch: Sequence[Dim]) -> Expr:
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
    ctx: Export, lhs: Value, rhs: Value, lhs_scale: Value, lhs_zero: Value, rhs_scale: Value,
    rhs_zero: Value, out_scale: Value, out_zero: Value,
    *, out_dtype: np.dtype[AnyValue],
) -> Value:  # fmt: skip
    return ctx.emit(
        "QLinearMatMul", lhs, lhs_scale, lhs_zero, rhs, rhs_scale, rhs_zero, out_scale, out_zero
    )


@OPS.imports("QLinearMatMul", since=(10, 21))
def import_qlinear_matmul(
    ctx: Import, a: Expr, a_scale: Expr, a_zero_point: Expr, b: Expr, b_scale: Expr,
    b_zero_point: Expr, y_scale: Expr, y_zero_point: Expr,
) -> Expr:  # fmt: skip
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

"""Products of matrices, and the bias that follows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core.weights import dtype_name
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relax.precision import NARROW, widen
from serde.relay.ir import Call, Expr, Tuple, TupleType, call, is_float

__all__ = ["multiply_matrices"]

OutDtype = np.dtype[AnyValue] | None


def multiply_matrices(
    ctx: Export, a: Value, b: Value, dtypes: Sequence[str], out_dtype: OutDtype = None
) -> Value:
    """Write a product of stacks of matrices, which adds up in the dtype that Relay's does.

    Args:
        ctx: Where it is written.
        a: Left side.
        b: Right side.
        dtypes: Those of the two sides.
        out_dtype: The dtype of the result, if not that of the left side.
    """
    left, right = dtypes
    wanted = left if out_dtype is None else dtype_name(out_dtype)
    if is_float(left):
        inner = "float32" if left in NARROW else left
    else:
        inner = "int64" if is_float(wanted) else wanted
    if left == "bfloat16" or left != right:
        a, b = (ctx.emit("astype", each, inner) for each in (a, b))
        left = inner
    made = ctx.emit("matmul", a, b, out_dtype=None if left == inner else inner)
    return made if inner == wanted else ctx.emit("astype", made, wanted)


def _product(
    ctx: Export, a: Value, b: Value, out_dtype: OutDtype, turn_a: bool, turn_b: bool
) -> Value:
    """Write the product of two sides, the last two axes of each exchanged if asked."""
    dtypes = [ctx.type(each).dtype for each in (a, b)]
    sides = []
    for side, turned in ((a, turn_a), (b, turn_b)):
        rank = ctx.type(side).rank
        order = [*range(rank - 2), rank - 1, rank - 2]
        sides.append(ctx.emit("permute_dims", side, order) if turned else side)
    left, right = sides
    return multiply_matrices(ctx, left, right, dtypes, out_dtype)


@OPS.exports("nn.dense", ignored=("units",))
def export_dense(
    ctx: Export, data: Value, weight: Value, bias: Value | None = None, *, out_dtype: OutDtype
) -> Value:
    made = _product(ctx, data, weight, out_dtype, False, True)
    return made if bias is None else ctx.emit("add", made, bias)


@OPS.exports("nn.matmul", ignored=("units",))
@OPS.exports("nn.batch_matmul")
def export_matmul(
    ctx: Export,
    tensor_a: Value,
    tensor_b: Value,
    *,
    out_dtype: OutDtype,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    return _product(ctx, tensor_a, tensor_b, out_dtype, transpose_a, transpose_b)


@OPS.exports("serde.matmul")
def export_matmul_of_stacks(ctx: Export, a: Value, b: Value) -> Value:
    return _product(ctx, a, b, None, False, False)


@OPS.exports("nn.bias_add")
def export_bias_add(ctx: Export, data: Value, bias: Value, *, axis: int) -> Value:
    rank = ctx.type(data).rank
    behind = list(range(1, rank - axis % rank))
    return ctx.emit("add", data, ctx.emit("expand_dims", bias, behind) if behind else bias)


def _is_small_sum(node: Call) -> bool:
    """Whether a sum has at most two tensors of known lengths, for TVM contracts all at once."""
    type_ = node.args[0].type
    if not isinstance(type_, TupleType) or len(type_.fields) > 2:
        return False
    return all(getattr(each, "concrete_shape", None) is not None for each in type_.fields)


@OPS.exports("einsum", when=_is_small_sum)
def export_einsum(ctx: Export, data: Sequence[Value], *, equation: str) -> Value:
    dtype = ctx.type(data[0]).dtype
    made = ctx.emit("einsum", [widen(ctx, each) for each in data], equation)
    return ctx.emit("astype", made, dtype) if dtype in NARROW else made


@OPS.imports("relax.matmul")
def import_matmul(ctx: Import, x1: Expr, x2: Expr, *, out_dtype: str | None = None) -> Expr:
    """With another dtype of the result, operands are of it before they are multiplied."""
    if out_dtype is not None:
        x1, x2 = (x if ctx.dtype(x) == out_dtype else relay.cast(x, out_dtype) for x in (x1, x2))
    return call("serde.matmul", x1, x2)


@OPS.imports("relax.einsum")
def import_einsum(ctx: Import, operands: Expr, *, subscripts: str) -> Expr:
    return relay.einsum(Tuple(ctx.fields(operands)), subscripts)


@OPS.imports("relax.outer")
def import_outer(ctx: Import, x1: Expr, x2: Expr) -> Expr:
    return relay.multiply(relay.expand_dims(x1, 1), relay.expand_dims(x2, 0))

"""Dense layers and matrix products."""

from __future__ import annotations

from typing import Any as AnyValue

import serde.relay as relay
from serde.converters import ImportContext as Ctx
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.exporter import ExportContext as Out
from serde.mxnet.ops.table import OPS
from serde.relay.expr import Expr
from serde.weights import dtype_name


@OPS.imports("FullyConnected")
def import_fully_connected(
    ctx: Ctx,
    data: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    num_hidden: int,
    no_bias: bool = False,
    flatten: bool = True,
) -> Expr:
    rank = ctx.type(data).rank
    if flatten and rank == 1:
        data = relay.expand_dims(data, 1)
    elif flatten and rank > 2:
        data = relay.nn.batch_flatten(data)
    result = relay.nn.dense(data, weight, units=num_hidden)
    if bias is None or no_bias:
        return result
    return relay.nn.bias_add(result, bias, axis=-1)


@OPS.imports("batch_dot", ignored=("forward_stype",))
def import_batch_dot(
    ctx: Ctx, lhs: Expr, rhs: Expr, *, transpose_a: bool = False, transpose_b: bool = False
) -> Expr:
    """Leading axes beyond one batch axis are folded into one and back."""
    left, right = ctx.type(lhs), ctx.type(rhs)
    if left.rank != right.rank or left.rank < 3:
        raise Unsupported(f"expected two tensors of one rank of 3 or more, found {left}, {right}")
    if left.rank > 3:
        matrices = [relay.reshape(x, (-1, *ctx.static_shape(x)[-2:])) for x in (lhs, rhs)]
        product = relay.nn.batch_matmul(*matrices, transpose_a=transpose_a, transpose_b=transpose_b)
        rows = ctx.static_shape(lhs)[-1 if transpose_a else -2]
        columns = ctx.static_shape(rhs)[-2 if transpose_b else -1]
        return relay.reshape(product, (*ctx.static_shape(lhs)[:-2], rows, columns))
    return relay.nn.batch_matmul(lhs, rhs, transpose_a=transpose_a, transpose_b=transpose_b)


@OPS.imports("dot", ignored=("forward_stype",))
def import_dot(
    ctx: Ctx, lhs: Expr, rhs: Expr, *, transpose_a: bool = False, transpose_b: bool = False
) -> Expr:
    """Contracts the last axis of the left with the first of the right."""
    left, right = ctx.type(lhs), ctx.type(rhs)
    if (left.rank, right.rank) == (1, 1):
        return relay.sum(relay.multiply(lhs, rhs), axis=(0,), keepdims=True)
    if (left.rank, right.rank) != (2, 2):
        raise Unsupported(f"expected two matrices or two vectors, found {left} and {right}")
    return relay.nn.matmul(lhs, rhs, transpose_a=transpose_a, transpose_b=transpose_b)


@OPS.exports("nn.dense")
def export_dense(
    ctx: Out,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    units: AnyValue,
    out_dtype: AnyValue,
) -> Value:
    require_dtype(ctx, data, out_dtype)
    return ctx.emit(
        "FullyConnected",
        data,
        weight,
        bias,
        num_hidden=ctx.static_shape(weight)[0],
        no_bias=bias is None,
        flatten=False,
    )


def require_dtype(ctx: Out, data: Value, out_dtype: AnyValue) -> None:
    """Refuse results in another dtype than the data's.

    Raises:
        Unsupported: They are wanted.
    """
    if out_dtype is not None and dtype_name(out_dtype) != ctx.type(data).dtype:
        raise Unsupported(f"out_dtype={dtype_name(out_dtype)} of {ctx.type(data).dtype} data")


@OPS.exports("nn.matmul")
def export_matmul(
    ctx: Out,
    tensor_a: Value,
    tensor_b: Value,
    *,
    units: AnyValue,
    out_dtype: AnyValue,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    require_dtype(ctx, tensor_a, out_dtype)
    if ctx.type(tensor_a).rank == 2:
        return ctx.emit("dot", tensor_a, tensor_b, transpose_a=transpose_a, transpose_b=transpose_b)
    if transpose_a:
        order = list(range(ctx.type(tensor_a).rank))
        order[-1], order[-2] = order[-2], order[-1]
        tensor_a = ctx.emit("transpose", tensor_a, axes=order)
    return ctx.emit("dot", tensor_a, tensor_b, transpose_b=transpose_b)


@OPS.exports("nn.batch_matmul")
def export_batch_matmul(
    ctx: Out,
    tensor_a: Value,
    tensor_b: Value,
    *,
    out_dtype: AnyValue,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    require_dtype(ctx, tensor_a, out_dtype)
    left, right = (ctx.type(x).shape[0] for x in (tensor_a, tensor_b))
    if left != right:
        raise Unsupported(f"batches of {left} and {right} matrices")
    return ctx.emit(
        "batch_dot", tensor_a, tensor_b, transpose_a=transpose_a, transpose_b=transpose_b
    )

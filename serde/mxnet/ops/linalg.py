"""Dense layers and matrix products."""

from __future__ import annotations

import serde.relay as relay
from serde.converters import ImportContext as Ctx
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS
from serde.relay.expr import Expr


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

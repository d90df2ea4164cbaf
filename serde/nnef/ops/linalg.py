"""Products of matrices, the bias that follows them, and why matrices are not decomposed."""

from __future__ import annotations

import math
from math import prod

import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, call
from serde.walk.takes import Takes, like, ranks


@OPS.imports("matmul")
def import_matmul(
    ctx: Import,
    A: Expr,  # noqa: N803
    B: Expr,  # noqa: N803
    *,
    transposeA: bool = False,  # noqa: N803
    transposeB: bool = False,  # noqa: N803
) -> Expr:
    """Both have one number of axes; of those before the matrices, ones broadcast."""
    left, right = ctx.type(A), ctx.type(B)
    if min(left.rank, right.rank) < 2:
        raise Unsupported(f"a product of {left!r} and {right!r}: matrices have two axes")
    if all(length == 1 for length in right.shape[:-2]):
        matrix = B if right.rank == 2 else ctx.fold(relay.reshape(B, right.shape[-2:]))
        if transposeB and not transposeA:
            return call("nn.dense", A, matrix, units=right.shape[-2])
        return call(
            "nn.matmul", A, matrix, units=None, transpose_a=transposeA, transpose_b=transposeB
        )
    if left.rank == 3:
        return relay.nn.batch_matmul(A, B, transpose_a=transposeA, transpose_b=transposeB)
    return call("serde.matmul", _turn(ctx, A, transposeA), _turn(ctx, B, transposeB))


def _turn(ctx: Import, x: Expr, transpose: bool) -> Expr:
    """Return a tensor with its last two axes exchanged, if asked."""
    rank = ctx.rank(x)
    order = [*range(rank - 2), rank - 1, rank - 2]
    return ctx.fold(relay.transpose(x, axes=order)) if transpose else x


@OPS.imports("linear")
def import_linear(ctx: Import, input: Expr, filter: Expr, bias: Expr | None = None) -> Expr:
    """A bias belongs to the columns, which a vector that lacks the axis before them means, too."""
    data, weight = ctx.type(input), ctx.type(filter)
    if not data.rank == weight.rank == 2:
        raise Unsupported(f"a product of {data!r} and {weight!r}: both are matrices")
    units = weight.shape[0]
    found = call("nn.dense", input, filter, units=units)
    if bias is None or ctx.is_literal(bias, 0.0):
        return found
    shape = ctx.type(bias).shape
    if shape and shape == (*(1 for _ in shape[1:]), units):
        return relay.nn.bias_add(found, ctx.fold(relay.reshape(bias, (units,))), axis=1)
    return relay.add(*ctx.align(found, bias))


@OPS.exports("nn.dense", takes=Takes(result=like("data")), ignored=("units", "out_dtype"))
def export_dense(ctx: Export, data: Value, weight: Value, bias: Value | None = None) -> Value:
    added = () if bias is None else (ctx.pad_rank(bias, 2),)
    return _restore(ctx, ctx.emit("linear", _flatten(ctx, data), weight, *added))


def _flatten(ctx: Export, data: Value) -> Value:
    """Return a matrix of all rows: Khronos' runtime repeats no matrix over further axes."""
    *rows, width = ctx.static_shape(data)
    return data if len(rows) == 1 else ctx.reshape(data, (prod(rows), width))


def _restore(ctx: Export, found: Value) -> Value:
    """Return a matrix in the shape of the result."""
    shape = ctx.static_shape(Value("", ctx.result_type()))
    return found if len(shape) == 2 else ctx.emit("reshape", found, shape=list(shape))


_OWN = Takes(result=like("tensor_a"))


@OPS.exports("nn.matmul", takes=_OWN, ignored=("units", "out_dtype"))
@OPS.exports("nn.batch_matmul", takes=_OWN, ignored=("out_dtype",))
def export_matmul(
    ctx: Export, tensor_a: Value, tensor_b: Value, *, transpose_a: bool, transpose_b: bool
) -> Value:
    return _emit_matmul(ctx, tensor_a, tensor_b, transpose_a, transpose_b)


_MATRICES = ranks(2, math.inf)


@OPS.exports("serde.matmul", takes=Takes(a=_MATRICES, b=_MATRICES))
def export_stacked_matmul(ctx: Export, a: Value, b: Value) -> Value:
    return _emit_matmul(ctx, a, b)


def _emit_matmul(
    ctx: Export, a: Value, b: Value, transpose_a: bool = False, transpose_b: bool = False
) -> Value:
    """Write a product; a vector on the left is a row."""
    rank = ctx.type(a).rank
    if rank != 2 and ctx.type(b).rank == 2 and not transpose_a:
        return _restore(ctx, ctx.emit("matmul", _flatten(ctx, a), b, transposeB=transpose_b))
    left, right = ctx.align(a, b)
    return ctx.emit("matmul", left, right, transposeA=transpose_a, transposeB=transpose_b)


@OPS.exports("nn.bias_add")
def export_bias_add(ctx: Export, data: Value, bias: Value, *, axis: int) -> Value:
    axis %= ctx.type(data).rank
    shape = (*(1 for _ in range(axis)), *ctx.static_shape(bias))
    return ctx.emit("add", data, ctx.reshape(bias, shape))


OPS.refuses_calls(
    "serde.eig",
    "serde.eigh",
    "serde.svd",
    reason="NNEF has no fragment for eigenvalues and singular values",
)

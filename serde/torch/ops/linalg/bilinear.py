"""Products of two vectors with a tensor, and of groups of rows."""

from __future__ import annotations

import functools
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.import_context import ImportContext
from serde.torch.ops.table import OPS


@OPS.imports("aten::bilinear")
def import_bilinear(
    ctx: ImportContext, input1: Expr, input2: Expr, weight: Expr, bias: Expr | None = None
) -> Expr:
    """``y[..., o] = sum(x1[..., i] * weight[o, i, j] * x2[..., j]) + bias[o]``."""
    ctx.require_rank(weight, 3, 3)
    ctx.require_rank(input1, 1)
    outputs, inputs, others = ctx.static_shape(weight)
    rank = ctx.type(input1).rank
    rows = relay.reshape(input1, (-1, inputs))
    columns = relay.reshape(input2, (-1, others))
    matrix = relay.reshape(relay.transpose(weight, axes=[1, 0, 2]), (inputs, outputs * others))
    left = relay.reshape(relay.nn.matmul(rows, matrix, units=None), (-1, outputs, others))
    found = relay.sum(relay.multiply(left, relay.expand_dims(columns, axis=1)), axis=[2])
    if bias is not None:
        found = relay.nn.bias_add(found, bias, axis=-1)
    if rank == 2:
        return found
    head = [ctx.size(input1, axis) for axis in range(rank - 1)]
    return relay.reshape(found, ctx.shape_vector([*head, outputs]))


@OPS.imports("aten::_trilinear", ignored=("unroll_dim",))
def import_trilinear(
    ctx: ImportContext,
    i1: Expr,
    i2: Expr,
    i3: Expr,
    *,
    expand1: tuple[int, ...],
    expand2: tuple[int, ...],
    expand3: tuple[int, ...],
    sumdim: tuple[int, ...],
) -> Expr:
    """The product of three tensors, each with axes of length 1 put in, summed over axes."""
    parts = []
    for x, axes in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for axis in sorted(axes):
            x = relay.expand_dims(x, axis=axis)
        parts.append(x)
    return relay.sum(functools.reduce(relay.multiply, parts), axis=list(sumdim))


@OPS.imports("aten::_grouped_mm")
def import_grouped_mm(
    ctx: ImportContext,
    self: Expr,
    mat2: Expr,
    offs: Expr | None = None,
    bias: Expr | None = None,
    *,
    out_dtype: np.dtype[AnyValue] | None = None,
) -> Expr:
    """Products of groups that end where `offs` says: of rows, of columns, or of what is summed.

    All products are made, and those that belong to another group left out.
    """
    if bias is not None:
        raise Unsupported("a bias of grouped products")
    ranks = (ctx.type(self).rank, ctx.type(mat2).rank)
    dtype = ctx.dtype(self) if out_dtype is None else dtype_name(out_dtype)
    if offs is None:
        found = relay.nn.batch_matmul(self, mat2, transpose_b=False)
    elif ranks == (2, 3):
        every = relay.nn.batch_matmul(_per_group(ctx, self, mat2), mat2, transpose_b=False)
        own = relay.expand_dims(_members(ctx, offs, self, 0), axis=2)
        found = relay.sum(_keep(ctx, own, every), axis=[0])
    elif ranks == (3, 2):
        every = relay.nn.batch_matmul(self, _per_group(ctx, mat2, self), transpose_b=False)
        own = relay.expand_dims(_members(ctx, offs, mat2, 1), axis=1)
        found = relay.sum(_keep(ctx, own, every), axis=[0])
    else:
        own = relay.expand_dims(_members(ctx, offs, self, 1), axis=1)
        left = _keep(ctx, own, relay.expand_dims(self, axis=0))
        (groups,) = ctx.static_lengths(offs, [0])
        right = relay.repeat(relay.expand_dims(mat2, axis=0), groups, axis=0)
        found = relay.nn.batch_matmul(left, right, transpose_b=False)
    return ctx.cast(found, dtype)


@OPS.imports("transformers::grouped_mm_fallback")
def import_grouped_rows(ctx: ImportContext, input: Expr, weight: Expr, offs: Expr) -> Expr:
    """What the package transformers registers for dtypes that PyTorch's own operator refuses."""
    return import_grouped_mm(ctx, input, weight, offs)


def _per_group(ctx: ImportContext, x: Expr, groups: Expr) -> Expr:
    (count,) = ctx.static_lengths(groups, [0])
    return relay.repeat(relay.expand_dims(x, axis=0), count, axis=0)


def _keep(ctx: ImportContext, own: Expr, x: Expr) -> Expr:
    return relay.where(own, x, ctx.scalar(0, ctx.dtype(x)))


def _members(ctx: ImportContext, offs: Expr, x: Expr, axis: int) -> Expr:
    """Return for each group and element of an axis whether the one holds the other."""
    ends = relay.expand_dims(relay.cast(offs, "int64"), axis=1)
    (groups,) = ctx.static_lengths(offs, [0])
    padded = relay.nn.pad(ends, [(1, 0), (0, 0)], 0)
    starts = relay.strided_slice(padded, begin=[0], end=[groups], strides=[1], axes=[0])
    length = ctx.size(x, axis)
    zero, one = relay.const(0, "int64"), relay.const(1, "int64")
    if isinstance(length, int):
        places: Expr = relay.const(allocation.arange(length), "int64")
    else:
        places = relay.arange(zero, length, one, dtype="int64")
    return relay.logical_and(relay.less_equal(starts, places), relay.less(places, ends))

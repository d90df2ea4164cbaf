"""Conditions, and indices of what is not zero, as masks and as one-hot vectors."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.mlprogram.import_context import ImportContext
from serde.coreml.mlprogram.ops.shape.create import positions
from serde.coreml.mlprogram.ops.table import OPS
from serde.coreml.mlprogram.type_domains import NUMBERS_OR_BOOL, cast_to, compute_dtype
from serde.coreml.value import Value
from serde.errors import Unsupported
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr, tensor_type
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType
from serde.walk.pairs import reads


@OPS.exports("argwhere")
def export_argwhere(ctx: ExportContext, condition: Value) -> Value:
    return _find_nonzero(ctx, condition, ctx.result_type().shape[0])


def _find_nonzero(ctx: ExportContext, x: Value, count: Dim) -> Value:
    """Return the indices of what is not zero, one a row."""
    rank = ctx.type(x).rank
    if not rank:
        raise Unsupported("the places in a scalar")
    work = compute_dtype(ctx, ctx.type(x).dtype, NUMBERS_OR_BOOL)
    return ctx.emit("non_zero", TensorType((count, rank), "int32"), x=cast_to(ctx, x, work))


@OPS.exports("serde.nonzero")
def export_nonzero(ctx: ExportContext, data: Value) -> Value:
    """MIL has a row for each place, this operator a column."""
    shape = ctx.result_type().shape
    rows = _find_nonzero(ctx, data, shape[1])
    turned = ctx.emit("transpose", TensorType(shape, "int32"), x=rows, perm=[1, 0])
    return cast_to(ctx, turned, ctx.result_type().dtype)


@OPS.imports("one_hot")
def import_one_hot(
    ctx: ImportContext,
    indices: Expr,
    one_hot_vector_size: Expr,
    on_value: Expr | None = None,
    off_value: Expr | None = None,
    *,
    axis: int = -1,
) -> Expr:
    on = relay.const(np.int32(1)) if on_value is None else on_value
    off = relay.const(np.zeros(()), ctx.type(on).dtype) if off_value is None else off_value
    dtype = ctx.type(on).dtype
    if ctx.is_constant(one_hot_vector_size):
        return relay.one_hot(indices, on, off, ctx.ints(one_hot_vector_size)[0], axis, dtype)
    return call("dyn.one_hot", indices, on, off, one_hot_vector_size, axis=axis, dtype=dtype)


@OPS.expands("sequence_mask")
def expand_sequence_mask(data: Expr, valid_length: Expr, *, mask_value: float, axis: int) -> Expr:
    """As for all, with positions that networks before iOS14 can count."""
    type_, lengths = tensor_type(data), tensor_type(valid_length)
    dtype = lengths.dtype if is_float(lengths.dtype) else "int32"
    steps = positions(type_.shape[axis], data, axis, dtype)
    position_shape, length_shape = [1] * type_.rank, [1] * type_.rank
    position_shape[axis] = length_shape[1 - axis] = -1
    bounds = relay.reshape(relay.cast(valid_length, dtype), length_shape)
    inside = relay.less(relay.reshape(steps, position_shape), bounds)
    return relay.where(inside, data, relay.const(np.array(mask_value), type_.dtype))


OPS.pairs(reads("non_zero", "argwhere"))

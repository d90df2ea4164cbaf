"""Lists of tensors of one shape, which become one tensor with an axis in front."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.coreml.context import ImportContext as Ctx
from serde.coreml.ops.elementwise import DTYPES
from serde.coreml.ops.table import OPS
from serde.errors import Unsupported
from serde.relay.expr import Expr
from serde.relay.registry import call


@OPS.imports("make_list")
def import_make_list(
    ctx: Ctx,
    init_length: Expr | None = None,
    *,
    elem_shape: AnyValue,
    dynamic_length: bool = True,
    dtype: str = "fp32",
) -> Expr:
    """Its elements are zeros until they are written."""
    if dynamic_length:
        raise Unsupported("a list that grows", hint="make it with dynamic_length=False")
    shape = elem_shape if isinstance(elem_shape, tuple) else (elem_shape,)
    if any(isinstance(each, str) for each in shape):
        raise Unsupported("a list of tensors whose shape is not fixed")
    zero = relay.const(np.zeros(()), DTYPES[dtype])
    length = relay.const(np.int32(1)) if init_length is None else init_length
    dims = ctx.dims(relay.reshape(length, [1]) if not ctx.is_constant(length) else length)
    if dims is not None:
        return relay.full(zero, [*dims, *shape])
    tail = relay.const(np.array(shape, np.int32))
    whole = relay.concatenate((relay.reshape(length, [1]), tail), axis=0)
    return call("dyn.full", zero, whole)


@OPS.imports("list_length")
def import_list_length(ctx: Ctx, ls: Expr) -> Expr:
    lengths = relay.shape_of(ls, dtype="int32")
    return relay.take(lengths, relay.const(np.int32(0)), axis=0, mode="fast")


@OPS.imports("list_read")
def import_list_read(ctx: Ctx, ls: Expr, index: Expr) -> Expr:
    return relay.take(ls, index, axis=0, mode="fast")


@OPS.imports("list_gather")
def import_list_gather(ctx: Ctx, ls: Expr, indices: Expr) -> Expr:
    return relay.take(ls, indices, axis=0, mode="fast")


@OPS.imports("list_write")
def import_list_write(ctx: Ctx, ls: Expr, index: Expr, value: Expr) -> Expr:
    rows = relay.expand_dims(value, axis=0)
    return relay.scatter_nd(ls, relay.reshape(index, [1, 1]), rows, "update")


@OPS.imports("list_scatter")
def import_list_scatter(ctx: Ctx, ls: Expr, indices: Expr, value: Expr) -> Expr:
    return relay.scatter_nd(ls, relay.expand_dims(indices, axis=0), value, "update")

"""Vectors that a loop walks along or stacks, as rows of one element, as MXNet takes them."""

from __future__ import annotations

from dataclasses import replace

from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.relay.ir.types import TensorType

__all__ = ["as_rows", "from_row", "from_rows", "to_row"]


def as_rows(ctx: ExportContext, data: Value) -> Value:
    """Return a vector as rows of one element: to MXNet, a slice of it has an axis."""
    type_ = ctx.type(data)
    if type_.rank > 1:
        return data
    return ctx.reshape(data, (*type_.shape, 1))


def from_row(ctx: ExportContext, row: Value) -> Value:
    """Return a slice that is a scalar without the axis that a row has."""
    type_ = ctx.type(row)
    if type_.rank or not ctx.np_shape:
        return row
    return ctx.reshape(replace(row, type=TensorType((1,), type_.dtype)), ())


def to_row(ctx: ExportContext, value: Value) -> Value:
    """Return what is stacked with an axis, for MXNet stacks scalars as if they had one."""
    return value if ctx.type(value).rank or not ctx.np_shape else ctx.reshape(value, (1,))


def from_rows(ctx: ExportContext, stack: Value, type_: TensorType) -> Value:
    """Return stacked scalars as a vector."""
    if type_.rank > 1:
        return replace(stack, type=type_)
    return ctx.reshape(replace(stack, type=TensorType((*type_.shape, 1), type_.dtype)), type_.shape)

"""Operators of two tensors, which MXNet has again with a number on either side."""

from __future__ import annotations

from typing import Final, TypeAlias

from serde.mxnet.axis_groups import align
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.relay.ir.shapes import is_float

__all__ = ["Forms", "write_binary"]

Forms: TypeAlias = tuple[str, str, str]
"""MXNet's operator for two tensors, with a scalar behind, with a scalar in front."""

_ROUNDED: Final = frozenset(("_rdiv_scalar",))
"""MXNet's operators that compute integers in float32."""


def write_binary(ctx: ExportContext, forms: Forms, lhs: Value, rhs: Value) -> Value:
    """Write an operator of two tensors, in the form with a scalar where one of them is one."""
    tensors, behind, before = forms
    left, right = ctx.scalar(lhs), ctx.scalar(rhs)
    if right is not None:
        return ctx.emit(behind, lhs, scalar=right)
    if left is not None and (before not in _ROUNDED or is_float(ctx.type(rhs).dtype)):
        return ctx.emit(before, rhs, scalar=left)
    return ctx.emit_bytes(tensors, *align(ctx, lhs, rhs))

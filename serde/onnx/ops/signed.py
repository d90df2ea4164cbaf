"""Looking up by indices that count from the end, and arranging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np
from onnx import helper

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.expr import Call
from serde.relay.types import TensorType


def _index_types(*allowed: str) -> Callable[[Call], bool]:
    def indexed_by(node: Call) -> bool:
        indices = node.args[1].type
        return isinstance(indices, TensorType) and indices.dtype in allowed

    return indexed_by


@OPS.exports("serde.take", when=_index_types("int32", "int64"))
def export_signed_take(ctx: Ctx, x: Value, indices: Value, *, axis: int) -> Value:
    return ctx.emit("Gather", x, indices, axis=axis)


def export_signed_gather_nd(ctx: Ctx, x: Value, indices: Value, *, batch_dims: int) -> Value:
    return ctx.emit("GatherND", x, indices, batch_dims=batch_dims or None)


def _is_unbatched(node: Call) -> bool:
    return not node.attrs["batch_dims"] and _index_types("int64")(node)


OPS.exports("serde.gather_nd", since=12, when=_index_types("int64"))(export_signed_gather_nd)
OPS.exports("serde.gather_nd", when=_is_unbatched)(export_signed_gather_nd)


def _has_axes(node: Call) -> bool:
    """A OneHot of ONNX takes no scalar."""
    indices = node.args[0].type
    return isinstance(indices, TensorType) and indices.rank > 0


@OPS.exports("serde.one_hot", when=_has_axes)
def export_signed_one_hot(
    ctx: Ctx, indices: Value, values: Value, *, depth: int, axis: int
) -> Value:
    return ctx.emit("OneHot", indices, ctx.const(depth, np.int64), values, axis=axis)


@OPS.exports("serde.nonzero")
def export_nonzero(ctx: Ctx, x: Value) -> Value:
    return ctx.emit("NonZero", x)


@OPS.exports("serde.eye_like")
def export_eye_like(ctx: Ctx, x: Value, *, k: int, dtype: np.dtype[AnyValue] | None) -> Value:
    kind = None if dtype is None else helper.np_dtype_to_tensor_dtype(dtype)
    return ctx.emit("EyeLike", x, k=k, dtype=kind)


def _is_wide(node: Call) -> bool:
    """ONNX Runtime sums in the four dtypes of 32 and 64 bits."""
    data = node.args[0].type
    wide = ("int32", "int64", "float32", "float64")
    return isinstance(data, TensorType) and data.dtype in wide


@OPS.exports("serde.cumsum", when=_is_wide)
def export_cumsum_either_way(
    ctx: Ctx, x: Value, *, axis: int, exclusive: bool, reverse: bool
) -> Value:
    place = ctx.const(axis, np.int64)
    return ctx.emit(
        "CumSum", x, place, exclusive=int(exclusive) or None, reverse=int(reverse) or None
    )

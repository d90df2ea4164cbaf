"""Looking up by indices that count from the end, and arranging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np
from onnx import helper

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType


def _index_types(*allowed: str) -> Callable[[Call], bool]:
    def indexed_by(node: Call) -> bool:
        indices = node.args[1].type
        return isinstance(indices, TensorType) and indices.dtype in allowed

    return indexed_by


@OPS.exports("serde.take", when=_index_types("int32", "int64"))
def export_signed_take(ctx: ExportContext, x: Value, indices: Value, *, axis: int) -> Value:
    return ctx.emit("Gather", x, indices, axis=axis)


def export_signed_gather_nd(
    ctx: ExportContext, x: Value, indices: Value, *, batch_dims: int
) -> Value:
    return ctx.emit("GatherND", x, indices, batch_dims=batch_dims or None)


def _is_unbatched(node: Call) -> bool:
    return not node.attrs["batch_dims"] and _index_types("int64")(node)


OPS.exports("serde.gather_nd", since=12, when=_index_types("int64"))(export_signed_gather_nd)
OPS.exports("serde.gather_nd", when=_is_unbatched)(export_signed_gather_nd)


_ONE_HOT = {"int32": ("float16", "float32"), "int64": ("float16", "float32", "int64")}
"""For each dtype of indices the values that ONNX Runtime has a OneHot for."""


def _is_one_hot(node: Call) -> bool:
    """A OneHot of ONNX takes no scalar."""
    indices, values = (each.type for each in node.args)
    if not isinstance(indices, TensorType) or not isinstance(values, TensorType):
        return False
    return indices.rank > 0 and values.dtype in _ONE_HOT.get(indices.dtype, ())


@OPS.exports("serde.one_hot", when=_is_one_hot)
def export_signed_one_hot(
    ctx: ExportContext, indices: Value, values: Value, *, depth: int, axis: int
) -> Value:
    return ctx.emit("OneHot", indices, ctx.const(depth, ctx.type(indices).dtype), values, axis=axis)


@OPS.exports("serde.nonzero")
def export_nonzero(ctx: ExportContext, x: Value) -> Value:
    return ctx.emit("NonZero", x)


@OPS.exports("serde.eye_like")
def export_eye_like(
    ctx: ExportContext, x: Value, *, k: int, dtype: np.dtype[AnyValue] | None
) -> Value:
    kind = None if dtype is None else helper.np_dtype_to_tensor_dtype(dtype)
    return ctx.emit("EyeLike", x, k=k, dtype=kind)


def _is_wide(node: Call) -> bool:
    """ONNX Runtime sums in the four dtypes of 32 and 64 bits."""
    data = node.args[0].type
    wide = ("int32", "int64", "float32", "float64")
    return isinstance(data, TensorType) and data.dtype in wide


def _either_way(op: str) -> Callable[..., Value]:
    def export_either_way(
        ctx: ExportContext, x: Value, *, axis: int, exclusive: bool, reverse: bool
    ) -> Value:
        place = ctx.const(axis, np.int64)
        return ctx.emit(
            op, x, place, exclusive=int(exclusive) or None, reverse=int(reverse) or None
        )

    return export_either_way


OPS.exports("serde.cumsum", when=_is_wide)(_either_way("CumSum"))


OPS.exports("serde.cumprod", since=26, when=_is_wide)(_either_way("CumProd"))


@OPS.imports("Gather", since=(1, 11, 13))
def import_gather(ctx: ImportContext, x: Expr, indices: Expr, *, axis: int = 0) -> Expr:
    """Where indices are known, those from the end are counted from the start."""
    length = ctx.type(x).shape[axis]
    known = ctx.known(indices)
    if known is None or not isinstance(length, int):
        return call("serde.take", x, indices, axis=axis)
    if known.size and not -length <= known.min() <= known.max() < length:
        raise Unsupported(f"an index outside a length of {length}")
    return relay.take(x, relay.Constant(known % max(length, 1)), axis=axis, mode="fast")


@OPS.imports("GatherND", since=(11, 12, 13))
def import_gather_nd(ctx: ImportContext, x: Expr, indices: Expr, *, batch_dims: int = 0) -> Expr:
    return call("serde.gather_nd", x, indices, batch_dims=batch_dims)


@OPS.imports("OneHot", since=(9, 11, 28))
def import_one_hot(
    ctx: ImportContext, indices: Expr, depth: Expr, values: Expr, *, axis: int = -1
) -> Expr:
    if "int" not in ctx.type(indices).dtype:
        indices = relay.cast(indices, "int64")
    if ctx.is_constant(depth):
        count = int(ctx.constant(depth).item())
        return call("serde.one_hot", indices, values, depth=count, axis=axis)
    wide = relay.cast(indices, "int64")
    end = relay.reshape(relay.cast(depth, "int64"), newshape=())
    places = relay.where(relay.less(wide, relay.Constant(np.int64(0))), relay.add(wide, end), wide)
    off, on = (relay.take(values, relay.Constant(np.int64(each)), axis=0) for each in (0, 1))
    at = axis % (ctx.type(indices).rank + 1)
    return call("dyn.one_hot", places, on, off, end, axis=at, dtype=ctx.type(values).dtype)


@OPS.imports("NonZero", since=(9, 13))
def import_nonzero(ctx: ImportContext, x: Expr) -> Expr:
    return call("serde.nonzero", x)


@OPS.imports("EyeLike", since=(9, 22))
def import_eye_like(ctx: ImportContext, x: Expr, *, dtype: int | None = None, k: int = 0) -> Expr:
    return call("serde.eye_like", x, k=k, dtype=None if dtype is None else ctx.dtype(dtype))


def _accumulated(name: str) -> Callable[..., Expr]:
    def import_accumulated(
        ctx: ImportContext, x: Expr, axis: Expr, *, exclusive: bool = False, reverse: bool = False
    ) -> Expr:
        """Where the axis is computed, all of them are taken and one is chosen."""
        rank = ctx.type(x).rank
        if ctx.is_constant(axis) or rank == 1:
            only = int(ctx.constant(axis).item()) if rank > 1 else 0
            return call(name, x, axis=only, exclusive=exclusive, reverse=reverse)
        number = relay.reshape(relay.cast(axis, "int64"), newshape=())
        place = relay.floor_mod(number, relay.Constant(np.int64(rank)))
        found = [call(name, x, axis=i, exclusive=exclusive, reverse=reverse) for i in range(rank)]
        chosen: Expr = found[0]
        for i in range(1, rank):
            chosen = relay.where(relay.equal(place, relay.Constant(np.int64(i))), found[i], chosen)
        return chosen

    return import_accumulated


OPS.imports("CumSum", since=(11, 14))(_accumulated("serde.cumsum"))


OPS.imports("CumProd", since=26)(_accumulated("serde.cumprod"))

"""Elements put in order.

Which of equal elements comes first MIL leaves open; its runtimes keep their order.
"""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.core.records import dataclass
from serde.coreml.mlprogram.operators import GATHER_DTYPES, NUMBERS, cast_to, compute_dtype, emit_in
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr, TensorType, normalize_axis
from serde.relay.op.index.dynamic import DynamicTopK
from serde.relay.op.index.sorting import TopK


@OPS.imports("argsort")
def import_argsort(ctx: Import, x: Expr, *, axis: int = -1, ascending: bool = False) -> Expr:
    return relay.argsort(x, axis=axis, is_ascend=ascending, dtype="int32")


@OPS.exports("argsort", ignored=("dtype",))
def export_argsort(ctx: Export, data: Value, *, axis: int, is_ascend: bool) -> Value:
    type_ = ctx.type(data)
    place = normalize_axis(axis, type_.rank)
    found = _order(
        ctx, cast_to(ctx, data, compute_dtype(ctx, type_.dtype, NUMBERS)), place, is_ascend
    )
    return cast_to(ctx, found, ctx.result_type().dtype)


def _order(ctx: Export, x: Value, axis: int, ascending: bool) -> Value:
    made = TensorType(ctx.type(x).shape, "int32")
    return ctx.emit("argsort", made, x=x, axis=axis, ascending=ascending)


@OPS.exports("sort", ignored=("dtype",))
def export_sort(ctx: Export, data: Value, *, axis: int, is_ascend: bool) -> Value:
    """The attribute dtype has no meaning here."""
    type_ = ctx.type(data)
    place = normalize_axis(axis, type_.rank)
    work = compute_dtype(ctx, type_.dtype, NUMBERS)
    x = cast_to(ctx, data, work)
    order = _order(ctx, x, place, is_ascend)
    return emit_in(ctx, NUMBERS, "gather_along_axis", {"x": x}, indices=order, axis=place)


@dataclass(frozen=True, kw_only=True)
class TopKAttributes:
    """Attributes of ``topk`` in all versions."""

    k: int = 1
    axis: int = -1
    ascending: bool = False


@OPS.imports("topk", since=1)
def import_topk_v1(ctx: Import, x: Expr, *, topk: TopKAttributes) -> list[Expr]:
    return [*relay.topk(x, topk.k, topk.axis, "both", topk.ascending, "int32")]


@OPS.imports("topk", since=16, ignored=("sort",))
def import_topk_v16(
    ctx: Import, x: Expr, *, topk: TopKAttributes, return_indices: bool = True
) -> list[Expr]:
    """What is not asked to be sorted may be."""
    found = import_topk_v1(ctx, x, topk=topk)
    return found if return_indices else found[:1]


@OPS.imports("topk", since=17, ignored=("sort",))
def import_topk(
    ctx: Import,
    x: Expr,
    *,
    topk: TopKAttributes,
    return_indices: bool = True,
    output_indices_dtype: Literal["int32", "uint16"] = "int32",
) -> list[Expr]:
    """A number of -1 means all, as in Relay every number below 1 does."""
    found = relay.topk(x, topk.k, topk.axis, "both", topk.ascending, output_indices_dtype)
    return [*found] if return_indices else [found[0]]


@OPS.exports("topk")
def export_topk(ctx: Export, data: Value, *, topk: TopK) -> Value | tuple[Value, ...]:
    """A number below 1 means all; of these MIL has an order where their number is not fixed."""
    type_ = ctx.type(data)
    axis = normalize_axis(topk.axis, type_.rank)
    length = type_.shape[axis]
    count = topk.k if topk.k is not None and topk.k > 0 else length
    work = compute_dtype(ctx, type_.dtype, GATHER_DTYPES)
    x = cast_to(ctx, data, work)
    if isinstance(count, int):
        dims: list[Dim] = [*type_.shape[:axis], count, *type_.shape[axis + 1 :]]
        types = [TensorType(dims, work), TensorType(dims, "int32")]
        values, indices = ctx.emit_tuple(
            "topk", types, x=x, k=count, axis=axis, ascending=topk.is_ascend
        )
    else:
        indices = _order(ctx, x, axis, topk.is_ascend)
        made = TensorType(type_.shape, work)
        values = ctx.emit("gather_along_axis", made, x=x, indices=indices, axis=axis)
    types_ = ctx.result_types()
    found = cast_to(ctx, values, type_.dtype), cast_to(ctx, indices, types_[-1].dtype)
    if topk.ret_type == "both":
        return found
    return found[0] if topk.ret_type == "values" else cast_to(ctx, indices, types_[0].dtype)


@OPS.expands("dyn.topk")
def expand_dyn_topk(data: Expr, k: Expr, *, topk: DynamicTopK) -> Expr:
    """All in order, of which as many as are asked for are kept."""
    type_ = data.checked_type
    if not isinstance(type_, TensorType):
        raise Unsupported(f"expected a tensor, found {type_!r}")
    axis = normalize_axis(topk.axis, type_.rank)
    length = relay.take(relay.shape_of(data), relay.const([axis], "int32"), axis=0, mode="fast")
    asked = relay.reshape(relay.cast(k, "int32"), newshape=(1,))
    below = relay.less(asked, relay.const(1, "int32"))
    end = relay.where(below, length, relay.minimum(asked, length))
    parts = list(relay.topk(data, -1, axis, "both", topk.is_ascend, topk.dtype or "int32"))
    cut = [relay.strided_slice(part, [0], end, axes=[axis]) for part in parts]
    if topk.ret_type == "both":
        return relay.Tuple(cut)
    return cut[0] if topk.ret_type == "values" else cut[1]

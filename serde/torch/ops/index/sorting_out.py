"""Order, running sums and distinct entries, as they are written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from serde.errors import Unsupported
from serde.relay.ir.expr import Call
from serde.relay.op.index.sorting import TopK
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import DType, cast, dims_of, in_signed


def _sort(ctx: ExportContext, data: Value, axis: int, is_ascend: bool) -> tuple[Value, ...]:
    """Return elements in order and their places, equal ones in their own order."""
    options = {} if is_ascend else {"descending": True}
    return ctx.call_tuple("torch.sort", data, dim=axis, stable=True, **options, outputs=2)


@OPS.exports("sort")
@partial(in_signed, ordered=True)
def export_sort(
    ctx: ExportContext, data: Value, *, axis: int, is_ascend: bool, dtype: DType | None
) -> Value:
    return _sort(ctx, data, axis, is_ascend)[0]


@OPS.exports("argsort")
@partial(in_signed, ordered=True)
def export_argsort(
    ctx: ExportContext, data: Value, *, axis: int, is_ascend: bool, dtype: DType | None
) -> Value:
    options = {} if is_ascend else {"descending": True}
    places = ctx.call("torch.argsort", data, dim=axis, stable=True, **options)
    return cast(ctx, places, ctx.result_type().dtype, "int64")


@OPS.exports("topk")
@partial(in_signed, ordered=True)
def export_topk(ctx: ExportContext, data: Value, *, topk: TopK) -> Value | tuple[Value, ...]:
    """``torch.topk`` leaves open which of equal elements it names; their order tells it."""
    axis = topk.axis
    type_, axis = ctx.type(data), axis % ctx.type(data).rank
    whole = topk.k is None or topk.k < 1
    if topk.ret_type == "values" and not whole and type_.dtype != "bool":
        options = {} if not topk.is_ascend else {"largest": False}
        return ctx.call_tuple("torch.topk", data, topk.k, dim=axis, **options, outputs=2)[0]
    found = _sort(ctx, data, axis, topk.is_ascend)
    if not whole and type_.shape[axis] != topk.k:
        cut = (*[slice(None)] * axis, slice(None, topk.k))
        found = tuple(ctx.index(each, cut if axis else cut[0]) for each in found)
    if topk.ret_type == "values":
        return found[0]
    places = cast(ctx, found[1], ctx.result_types()[-1].dtype, "int64")
    return places if topk.ret_type == "indices" else (found[0], places)


@OPS.exports("searchsorted")
def export_searchsorted(
    ctx: ExportContext, sorted_sequence: Value, values: Value, *, right: bool, dtype: DType
) -> Value:
    options = {"right": True} if right else {}
    if dtype.name == "int32":
        options["out_int32"] = True
    found = ctx.call("torch.searchsorted", sorted_sequence, values, **options)
    return found if dtype.name == "int32" else cast(ctx, found, dtype.name, "int64")


@OPS.exports("unique")
def export_unique(
    ctx: ExportContext, data: Value, *, sorted: bool, return_counts: bool
) -> tuple[Value, ...]:
    found = ctx.call_tuple(ctx.helper("unique_padded"), data, sorted, outputs=5)
    return found if return_counts else found[:4]


@OPS.exports("serde.unique")
def export_serde_unique(
    ctx: ExportContext, data: Value, *, axis: int | None, sorted: bool
) -> tuple[Value, ...]:
    if axis is None:
        data, axis = ctx.method(data, "flatten"), 0
    return ctx.call_tuple(ctx.helper("unique_entries"), data, axis, sorted, outputs=4)


def _make_scan_exporter(target: str, identity: int) -> Callable[..., Value]:
    def export_scan(
        ctx: ExportContext,
        data: Value,
        *,
        axis: int | None,
        dtype: DType | None,
        exclusive: bool,
    ) -> Value:
        wanted = ctx.result_type().dtype
        if wanted == "bool":
            raise Unsupported("running results of truth values")
        if axis is None:
            data, axis = ctx.method(data, "flatten"), 0
        found = ctx.method(data, target, axis, dtype=ctx.dtype(wanted))
        return ctx.call(ctx.helper("shift_scan"), found, axis, identity) if exclusive else found

    return export_scan


def _make_serde_scan_exporter(target: str, identity: int) -> Callable[..., Value]:
    def export_serde_scan(
        ctx: ExportContext, data: Value, *, axis: int, exclusive: bool, reverse: bool
    ) -> Value:
        dtype = ctx.type(data).dtype
        given = ctx.method(data, "flip", axis) if reverse else data
        found = ctx.method(given, target, axis, dtype=ctx.dtype(dtype))
        if exclusive:
            found = ctx.call(ctx.helper("shift_scan"), found, axis, identity)
        return ctx.method(found, "flip", axis) if reverse else found

    return export_serde_scan


for _name, _identity in {"cumsum": 0, "cumprod": 1}.items():
    OPS.exports(_name)(in_signed(_make_scan_exporter(_name, _identity)))
    OPS.exports(f"serde.{_name}")(in_signed(_make_serde_scan_exporter(_name, _identity)))


@OPS.exports("serde.roll")
def export_roll(
    ctx: ExportContext, data: Value, *, shift: tuple[int, ...], axes: tuple[int, ...]
) -> Value:
    return ctx.call("torch.roll", data, dims_of(shift), dims_of(axes)) if axes else data


def _is_main_diagonal(call: Call) -> bool:
    return call.attrs["k"] == 0


@OPS.exports("serde.eye_like", when=_is_main_diagonal)
def export_eye_like(ctx: ExportContext, data: Value, *, k: int, dtype: DType | None) -> Value:
    type_ = ctx.result_type()
    return ctx.call("torch.eye", *ctx.sizes(type_.shape), dtype=ctx.dtype(type_.dtype))

"""Elements in order, the largest of them, and those that are distinct.

What is sorted are whole numbers in the order of the elements, in which all that is no number
comes last and the zeros are equal; so the order is that of Relay for any elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue, Final

import serde.relay as relay
from serde.relax.ops.index.gather import read_scalar
from serde.relax.ops.index.slicing import cut
from serde.relax.ops.shape.reshape import flatten
from serde.relax.ops.table import OPS, Export, Import, Scalar, Value
from serde.relay.ir import Call, Expr, TupleGetItem, call, normalize_axis, tensor_type
from serde.relay.op.index.dynamic import DynamicTopK
from serde.relay.op.index.sorting import TopK

__all__ = ["argsort", "pick", "sort_keys"]

_KEYS: Final = {
    "bool": "int32",
    "int8": "int32",
    "int16": "int32",
    "uint8": "int32",
    "uint16": "int32",
    "uint32": "int64",
    "float16": "float32",
    "bfloat16": "float32",
}
"""What holds all numbers of a narrower dtype in their order."""


def sort_keys(ctx: Export, data: Value) -> Value:
    """Return whole numbers in the order of the elements."""
    dtype = ctx.type(data).dtype
    wide = _KEYS.get(dtype, dtype)
    given = data if wide == dtype else ctx.emit("astype", data, wide)
    if wide in ("int32", "int64"):
        return given
    te, tir = ctx.framework.te, ctx.framework.tir
    bits = 32 if wide == "float32" else 64
    whole = f"int{bits}"
    greatest = tir.const(2 ** (bits - 1) - 1, whole)

    def keys(x: AnyValue) -> AnyValue:
        def one(*indices: AnyValue) -> AnyValue:
            own = x(*indices)
            number = tir.reinterpret(whole, own)
            if wide == "uint64":
                return number ^ tir.const(-(2**63), whole)
            number = tir.Select(number < 0, number ^ greatest, number)
            number = tir.Select(own == tir.const(0, wide), tir.const(0, whole), number)
            return tir.Select(tir.isnan(own), greatest, number)

        return te.compute(x.shape, one, name="keys")

    return ctx.emit_te(keys, given)


def argsort(ctx: Export, data: Value, axis: int, *, ascending: bool) -> Value:
    """Return the places that put the elements in order along an axis, of int64."""
    keys = sort_keys(ctx, data)
    return ctx.emit("argsort", keys, axis, descending=not ascending, dtype="int64")


def pick(ctx: Export, data: Value, places: Value, axis: int) -> Value:
    """Return the elements at places along an axis, which are inside of it."""
    if 0 in ctx.extents(places):  # Relax reads no empty indices.
        return ctx.emit(
            "zeros",
            ctx.framework.relax.ShapeExpr(ctx.wide(ctx.extents(places))),
            ctx.type(data).dtype,
        )
    return ctx.emit("gather_elements", data, places, axis)


@OPS.exports("sort", ignored=("dtype",))
def export_sort(ctx: Export, data: Value, *, axis: int, is_ascend: bool) -> Value:
    along = axis % ctx.type(data).rank
    return pick(ctx, data, argsort(ctx, data, along, ascending=is_ascend), along)


@OPS.imports("relax.sort")
def import_sort(ctx: Import, data: Expr, *, axis: int, descending: bool) -> Expr:
    return relay.sort(data, axis=axis, is_ascend=not descending)


@OPS.exports("argsort")
def export_argsort(
    ctx: Export, data: Value, *, axis: int, is_ascend: bool, dtype: AnyValue
) -> Value:
    order = argsort(ctx, data, axis % ctx.type(data).rank, ascending=is_ascend)
    return order if dtype == "int64" else ctx.emit("astype", order, str(dtype))


@OPS.imports("relax.argsort")
def import_argsort(
    ctx: Import, data: Expr, *, axis: int, descending: bool, dtype: str | None
) -> Expr:
    return relay.argsort(data, axis=axis, is_ascend=not descending, dtype=dtype or "int32")


@OPS.exports("topk")
def export_topk(ctx: Export, data: Value, *, topk: TopK) -> Value | tuple[Value, ...]:
    return _topk(ctx, data, topk.k or 0, topk.axis, topk.ret_type, topk.is_ascend, topk.dtype)


@OPS.exports("dyn.topk")
def export_dyn_topk(
    ctx: Export, data: Value, k: Value, *, topk: DynamicTopK
) -> Value | tuple[Value, ...]:
    tir = ctx.framework.tir
    count = read_scalar(ctx, k)
    if not isinstance(count, int):
        (length,) = ctx.wide([ctx.extents(data)[topk.axis]])
        count = tir.Select(count < 1, length, count)
    return _topk(ctx, data, count, topk.axis, topk.ret_type, topk.is_ascend, topk.dtype)


def _topk(
    ctx: Export, data: Value, k: AnyValue, axis: int, ret_type: str, is_ascend: bool,
    dtype: AnyValue,
) -> Value | tuple[Value, ...]:  # fmt: skip
    along = axis % ctx.type(data).rank
    order = argsort(ctx, data, along, ascending=is_ascend)
    if not (isinstance(k, int) and k < 1):
        order = cut(ctx, order, [along], [0], [1], [k])
    indices = order
    if ret_type != "values" and dtype != "int64":
        indices = ctx.emit("astype", order, str(dtype))
    if ret_type == "indices":
        return indices
    values = pick(ctx, data, order, along)
    return values if ret_type == "values" else (values, indices)


@OPS.imports("relax.topk")
def import_topk(
    ctx: Import, data: Expr, *, k: int, axis: int, ret_type: str, largest: bool, dtype: str | None
) -> list[Expr]:
    found: AnyValue = relay.topk(
        data, k=k, axis=axis, ret_type=ret_type, is_ascend=not largest, dtype=dtype or "int32"
    )
    return [found[0], found[1]] if ret_type == "both" else [found]


@OPS.exports("searchsorted")
def export_searchsorted(
    ctx: Export, sorted_sequence: Value, values: Value, *, right: bool, dtype: AnyValue
) -> Value:
    rows, wanted = (sort_keys(ctx, each) for each in (sorted_sequence, values))
    own = str(dtype) if dtype in ("int32", "int64") else "int64"
    made = ctx.emit_te(ctx.framework.topi.searchsorted, rows, wanted, right, own)
    return made if own == dtype else ctx.emit("astype", made, str(dtype))


@OPS.imports("relax.bucketize")
def import_bucketize(
    ctx: Import, input_tensor: Expr, boundaries: Expr, *, out_int32: bool, right: bool
) -> Expr:
    dtype = "int32" if out_int32 else "int64"
    return relay.searchsorted(boundaries, input_tensor, right=right, dtype=dtype)


def _distinct(ctx: Export, data: Value, *, ordered: bool) -> tuple[Value, ...]:
    """Return the distinct elements of a vector, and what ``unique`` tells of them.

    Returns:
        Values, first places, for each element the number of its value, counts, all as long as
        `data` and 0 behind the last; and how many values there are. Places are of int32.
    """
    dtype = ctx.type(data).dtype
    keys = sort_keys(ctx, data)
    order = argsort(ctx, data, 0, ascending=True)
    found = ctx.emit_te_tuple(_make_groups(ctx, dtype), data, keys, order, outputs=5)
    if ordered:
        return found
    values, places, inverse, counts, number = found
    *moved, _ranks = ctx.emit_te_tuple(
        _make_arrangement(ctx, dtype), values, places, inverse, counts, outputs=5
    )
    return *moved, number


def _make_groups(ctx: Export, dtype: str) -> Callable[..., AnyValue]:
    """Return what finds the runs of equal elements in their order."""
    framework = ctx.framework
    tir, statements = framework.tir, framework.statements
    zero, one = tir.const(0, "int32"), tir.const(1, "int32")

    def unique(data: AnyValue, keys: AnyValue, order: AnyValue) -> AnyValue:
        (length,) = data.shape

        def write(x: AnyValue, numbers: AnyValue, places: AnyValue, *outs: AnyValue) -> None:
            values, firsts, inverse, counts, number = outs
            number[0] = zero
            with statements.serial(0, length) as place:
                values[place] = tir.const(0, dtype)
                firsts[place] = zero
                counts[place] = zero
            last = framework.cell(str(keys.dtype))
            last[0] = tir.const(0, str(keys.dtype))
            with statements.serial(0, length) as step:
                place = places[step]
                new = tir.Or(number[0] == zero, numbers[place] != last[0])
                with statements.If(new), statements.Then():
                    values[number[0]] = x[place]
                    firsts[number[0]] = place.astype("int32")
                    last[0] = numbers[place]
                    number[0] = number[0] + one
                inverse[place] = number[0] - one
                counts[number[0] - one] = counts[number[0] - one] + one

        shapes = [*[(length,)] * 4, ctx.wide([1])]
        return framework.extern(
            "unique", [data, keys, order], shapes, [dtype, *["int32"] * 4], write
        )

    return unique


def _make_arrangement(ctx: Export, dtype: str) -> Callable[..., AnyValue]:
    """Return what puts the runs into the order of their first elements."""
    framework = ctx.framework
    tir, statements = framework.tir, framework.statements
    zero, one = tir.const(0, "int32"), tir.const(1, "int32")

    def arrange(*operands: AnyValue) -> AnyValue:
        length = operands[0].shape[0]

        def write(
            old_values: AnyValue, old_firsts: AnyValue, old_inverse: AnyValue, old_counts: AnyValue,
            *outs: AnyValue,
        ) -> None:  # fmt: skip
            values, firsts, inverse, counts, ranks = outs
            number = framework.cell("int32")
            number[0] = zero
            with statements.serial(0, length) as place:
                values[place] = tir.const(0, dtype)
                firsts[place] = zero
                counts[place] = zero
            with statements.serial(0, length) as place:
                run = old_inverse[place]
                first = old_firsts[run] == place.astype("int32")
                with statements.If(first), statements.Then():
                    ranks[run] = number[0]
                    values[number[0]] = old_values[run]
                    firsts[number[0]] = old_firsts[run]
                    counts[number[0]] = old_counts[run]
                    number[0] = number[0] + one
                inverse[place] = ranks[run]

        dtypes = [dtype, *["int32"] * 4]
        return framework.extern("unique", operands, [(length,)] * 5, dtypes, write)

    return arrange


@OPS.exports("unique")
def export_unique(
    ctx: Export, data: Value, *, sorted: bool, return_counts: bool
) -> tuple[Value, ...]:
    values, places, inverse, counts, number = _distinct(ctx, data, ordered=sorted)
    found = (values, places, inverse, number)
    return (*found, counts) if return_counts else found


def _is_flat(call: Call) -> bool:
    return call.attrs["axis"] is None or tensor_type(call.args[0]).rank == 1


@OPS.exports("serde.unique", when=_is_flat, ignored=("axis",))
def export_flat_unique(ctx: Export, data: Value, *, sorted: bool) -> tuple[Value, ...]:
    values, places, inverse, counts, number = _distinct(ctx, flatten(ctx, data), ordered=sorted)
    (length,) = ctx.read_shape(number)
    kept = [cut(ctx, each, [0], [0], [1], [length]) for each in (values, places, counts)]
    places, inverse, counts = (
        ctx.emit("astype", each, "int64") for each in (kept[1], inverse, kept[2])
    )
    return kept[0], places, inverse, counts


@OPS.imports("relax.unique")
def import_unique(
    ctx: Import, x: Expr,
    *, sorted: Scalar, return_index: Scalar, return_inverse: Scalar, return_counts: Scalar,
    axis: Scalar | None = None,
) -> list[Expr]:  # fmt: skip
    along = None if axis is None else normalize_axis(ctx.number(axis), ctx.rank(x))
    found = call("serde.unique", x, axis=along, sorted=bool(ctx.number(sorted)))
    wanted = [True, *(bool(ctx.number(x)) for x in (return_index, return_inverse, return_counts))]
    return [TupleGetItem(found, index) for index, each in enumerate(wanted) if each]

"""Distinct elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.import_context import ImportContext, Scalar
from serde.relax.ops.index.slicing import cut
from serde.relax.ops.index.sorting import argsort, sort_keys
from serde.relax.ops.shape.reshape import flatten
from serde.relax.ops.table import OPS
from serde.relay.ir.expr import Call, Expr, TupleGetItem, tensor_type
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import normalize_axis

__all__: list[str] = []


def _distinct(ctx: ExportContext, data: Value, *, ordered: bool) -> tuple[Value, ...]:
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


def _make_groups(ctx: ExportContext, dtype: str) -> Callable[..., AnyValue]:
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


def _make_arrangement(ctx: ExportContext, dtype: str) -> Callable[..., AnyValue]:
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
    ctx: ExportContext, data: Value, *, sorted: bool, return_counts: bool
) -> tuple[Value, ...]:
    values, places, inverse, counts, number = _distinct(ctx, data, ordered=sorted)
    found = (values, places, inverse, number)
    return (*found, counts) if return_counts else found


def _is_flat(call: Call) -> bool:
    return call.attrs["axis"] is None or tensor_type(call.args[0]).rank == 1


@OPS.exports("serde.unique", when=_is_flat, ignored=("axis",))
def export_flat_unique(ctx: ExportContext, data: Value, *, sorted: bool) -> tuple[Value, ...]:
    values, places, inverse, counts, number = _distinct(ctx, flatten(ctx, data), ordered=sorted)
    (length,) = ctx.read_shape(number)
    kept = [cut(ctx, each, [0], [0], [1], [length]) for each in (values, places, counts)]
    places, inverse, counts = (
        ctx.emit("astype", each, "int64") for each in (kept[1], inverse, kept[2])
    )
    return kept[0], places, inverse, counts


@OPS.imports("relax.unique")
def import_unique(
    ctx: ImportContext,
    x: Expr,
    *,
    sorted: Scalar,
    return_index: Scalar,
    return_inverse: Scalar,
    return_counts: Scalar,
    axis: Scalar | None = None,
) -> list[Expr]:
    along = None if axis is None else normalize_axis(ctx.number(axis), ctx.rank(x))
    found = call("serde.unique", x, axis=along, sorted=bool(ctx.number(sorted)))
    wanted = [True, *(bool(ctx.number(x)) for x in (return_index, return_inverse, return_counts))]
    return [TupleGetItem(found, place) for place, each in enumerate(wanted) if each]

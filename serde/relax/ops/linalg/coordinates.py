"""Sparse tensors as lists of coordinates, as loops over these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.ops.table import OPS

__all__: list[str] = []

Tensors = Sequence[AnyValue]


def _make_reshape(framework: Framework) -> Callable[..., Tensors]:
    """Return coordinates in another shape, and that shape without its -1."""
    tir, script = framework.tir, framework.statements

    def sparse_reshape(indices: AnyValue, before: AnyValue, after: AnyValue) -> Tensors:
        dtype = str(after.dtype)
        (axes,), (wanted,) = before.shape, after.shape

        def move(
            indices: AnyValue, before: AnyValue, after: AnyValue, moved: AnyValue, shape: AnyValue
        ) -> None:
            with script.serial(0, 1):
                whole, known = framework.cell("int64"), framework.cell("int64")
                whole[0], known[0] = tir.const(1, "int64"), tir.const(1, "int64")
                with script.serial(0, axes) as axis:
                    whole[0] = whole[0] * tir.Cast("int64", before[axis])
                with script.serial(0, wanted) as axis:
                    length = tir.Cast("int64", after[axis])
                    known[0] = known[0] * tir.Select(length < 0, tir.const(1, "int64"), length)
                with script.serial(0, wanted) as axis:
                    length = tir.Cast("int64", after[axis])
                    rest = tir.truncdiv(whole[0], tir.max(known[0], tir.const(1, "int64")))
                    shape[axis] = tir.Cast(dtype, tir.Select(length < 0, rest, length))
                flat = framework.cell("int64")
                with script.serial(0, indices_count) as row:
                    flat[0] = tir.const(0, "int64")
                    with script.serial(0, axes) as axis:
                        here = tir.Cast("int64", indices[row, axis])
                        flat[0] = flat[0] * tir.Cast("int64", before[axis]) + here
                    with script.serial(0, wanted) as step:
                        axis = wanted - 1 - step
                        length = tir.Cast("int64", shape[axis])
                        place = tir.truncmod(flat[0], length)
                        moved[row, axis] = tir.Cast(str(moved_dtype), place)
                        flat[0] = tir.truncdiv(flat[0], length)

        indices_count, moved_dtype = indices.shape[0], str(indices.dtype)
        shapes = [(indices_count, wanted), after.shape]
        inputs = [indices, before, after]
        return framework.extern("sparse_reshape", inputs, shapes, [moved_dtype, dtype], move)

    return sparse_reshape


@OPS.exports("sparse_reshape")
def export_sparse_reshape(
    ctx: ExportContext, sparse_indices: Value, prev_shape: Value, new_shape: Value
) -> Sequence[Value]:
    operands = (sparse_indices, prev_shape, new_shape)
    return ctx.emit_te_tuple(_make_reshape(ctx.framework), *operands, outputs=2)


def _make_empty(framework: Framework, rows: AnyValue) -> Callable[..., Tensors]:
    """Return which rows have no entry, and how many these are."""
    tir, script = framework.tir, framework.statements

    def find_empty_rows(indices: AnyValue) -> Tensors:
        entries = indices.shape[0]

        def find(indices: AnyValue, empty: AnyValue, count: AnyValue) -> None:
            with script.serial(0, 1):
                count[0] = tir.Cast("int64", rows)
                with script.serial(0, rows) as row:
                    empty[row] = tir.const(1, "int32")
                with script.serial(0, entries) as entry:
                    row = tir.Cast("int64", indices[entry, 0])
                    count[0] = count[0] - tir.Cast("int64", empty[row])
                    empty[row] = tir.const(0, "int32")

        shapes, dtypes = [(rows,), (1,)], ["int32", "int64"]
        return framework.extern("find_empty_rows", [indices], shapes, dtypes, find)

    return find_empty_rows


def _make_fill(framework: Framework, total: AnyValue) -> Callable[..., Tensors]:
    """Return the entries in order of their rows, with one more for each row that has none."""
    tir, script = framework.tir, framework.statements

    def fill_empty_rows(
        indices: AnyValue, values: AnyValue, filler: AnyValue, empty: AnyValue
    ) -> Tensors:
        entries, axes = indices.shape
        (rows,), dtype = empty.shape, str(indices.dtype)

        def fill(
            indices: AnyValue,
            values: AnyValue,
            filler: AnyValue,
            empty: AnyValue,
            moved: AnyValue,
            filled: AnyValue,
        ) -> None:
            with script.serial(0, 1):
                place = framework.cell("int64")
                place[0] = tir.const(0, "int64")
                with script.serial(0, rows) as row:
                    with script.If(empty[row] > 0), script.Then():
                        with script.serial(0, axes) as axis:
                            moved[place[0], axis] = tir.const(0, dtype)
                        moved[place[0], 0] = tir.Cast(dtype, row)
                        filled[place[0]] = filler[0]
                        place[0] = place[0] + 1
                    with script.serial(0, entries) as entry:
                        own = indices[entry, 0] == tir.Cast(dtype, row)
                        with script.If(own), script.Then():
                            with script.serial(0, axes) as axis:
                                moved[place[0], axis] = indices[entry, axis]
                            filled[place[0]] = values[entry]
                            place[0] = place[0] + 1

        shapes = [(total, axes), (total,)]
        inputs, dtypes = [indices, values, filler, empty], [dtype, str(values.dtype)]
        return framework.extern("fill_empty_rows", inputs, shapes, dtypes, fill)

    return fill_empty_rows


@OPS.exports("sparse_fill_empty_rows")
def export_sparse_fill_empty_rows(
    ctx: ExportContext,
    sparse_indices: Value,
    sparse_values: Value,
    dense_shape: Value,
    default_value: Value,
) -> Sequence[Value]:
    """How many rows there are, and how many of them are empty, is read when the model runs."""
    rows = ctx.read_shape(dense_shape)[0]
    find = _make_empty(ctx.framework, rows)
    empty, count = ctx.emit_te_tuple(find, sparse_indices, outputs=2)
    (added,) = ctx.read_shape(count)
    fill = _make_fill(ctx.framework, ctx.extents(sparse_indices)[0] + added)
    filler = ctx.emit("reshape", default_value, [1])
    indices, values = ctx.emit_te_tuple(
        fill, sparse_indices, sparse_values, filler, empty, outputs=2
    )
    return indices, values, ctx.emit("astype", empty, "bool")

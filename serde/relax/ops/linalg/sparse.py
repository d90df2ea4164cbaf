"""Sparse matrices, as loops over the elements of each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.ops.table import OPS
from serde.relax.precision import NARROW, widen
from serde.relay.ir.dims import Dim
from serde.relay.ir.shapes import layout_axes

__all__: list[str] = []

Tensors = Sequence[AnyValue]


def _blocks(framework: Framework, data: AnyValue) -> AnyValue:
    """Return the elements as blocks, which single ones are of one row and column."""
    shape = list(data.shape) + [1] * (3 - len(data.shape))
    return framework.topi.reshape(data, shape)


def _make_product(framework: Framework, *, sparse_first: bool) -> Callable[..., AnyValue]:
    """Return the product of a matrix and a sparse one, of which only what is there is read."""
    tir, script = framework.tir, framework.statements

    def sparse_dense(dense: AnyValue, data: AnyValue, columns: AnyValue, starts: AnyValue
    ) -> AnyValue:  # fmt: skip
        elements = _blocks(framework, data)
        _, height, width = elements.shape
        count, groups, dtype = dense.shape[0], starts.shape[0] - 1, str(dense.dtype)

        def multiply(
            dense: AnyValue, elements: AnyValue, columns: AnyValue, starts: AnyValue, out: AnyValue
        ) -> None:
            with script.parallel(0, count) as line, script.serial(0, groups * height) as row:
                group, inside = row // height, row % height
                total = framework.cell(dtype)
                total[0] = tir.const(0, dtype)
                begin = starts[group]
                with script.serial(0, starts[group + 1] - begin) as further:
                    place = begin + further
                    with script.serial(0, width) as tap:
                        factor = dense[line, columns[place] * width + tap]
                        total[0] = total[0] + factor * elements[place, inside, tap]
                if sparse_first:
                    out[row, line] = total[0]
                else:
                    out[line, row] = total[0]

        shape = (groups * height, count) if sparse_first else (count, groups * height)
        inputs = [dense, elements, columns, starts]
        return framework.extern("sparse_dense", inputs, [shape], [dtype], multiply)[0]

    return sparse_dense


@OPS.exports("nn.sparse_dense")
def export_sparse_dense(
    ctx: ExportContext,
    dense_data: Value,
    sparse_data: Value,
    sparse_indices: Value,
    sparse_indptr: Value,
    *,
    sparse_lhs: bool,
) -> Value:
    dtype = ctx.type(dense_data).dtype
    parts = [widen(ctx, each) for each in (dense_data, sparse_data)]
    function = _make_product(ctx.framework, sparse_first=sparse_lhs)
    made = ctx.emit_te(function, *parts, sparse_indices, sparse_indptr)
    return ctx.emit("astype", made, dtype) if dtype in NARROW else made


@OPS.exports("nn.internal.sparse_dense_padded")
def export_sparse_dense_padded(
    ctx: ExportContext,
    data: Value,
    weight_data: Value,
    weight_indices: Value,
    weight_indptr: Value,
    *,
    sparse_lhs: bool,
) -> Value:
    return export_sparse_dense(
        ctx, data, weight_data, weight_indices, weight_indptr, sparse_lhs=sparse_lhs
    )


def _make_dense(framework: Framework, columns_in_all: AnyValue) -> Callable[..., AnyValue]:
    """Return a sparse matrix with all its elements; what a row names twice is added."""
    tir, script = framework.tir, framework.statements

    def sparse_to_dense(data: AnyValue, columns: AnyValue, starts: AnyValue) -> AnyValue:
        elements = _blocks(framework, data)
        _, height, width = elements.shape
        groups, dtype = starts.shape[0] - 1, str(data.dtype)

        def spread(elements: AnyValue, columns: AnyValue, starts: AnyValue, out: AnyValue) -> None:
            with script.parallel(0, groups * height) as row:
                group, inside = row // height, row % height
                with script.serial(0, columns_in_all) as column:
                    out[row, column] = tir.const(0, dtype)
                begin = starts[group]
                with script.serial(0, starts[group + 1] - begin) as further:
                    place = begin + further
                    with script.serial(0, width) as tap:
                        column = columns[place] * width + tap
                        out[row, column] = out[row, column] + elements[place, inside, tap]

        shape = (groups * height, columns_in_all)
        inputs = [elements, columns, starts]
        return framework.extern("sparse_to_dense", inputs, [shape], [dtype], spread)[0]

    return sparse_to_dense


@OPS.exports("nn.sparse_add")
def export_sparse_add(
    ctx: ExportContext,
    dense_data: Value,
    sparse_data: Value,
    sparse_indices: Value,
    sparse_indptr: Value,
) -> Value:
    width = ctx.extents(dense_data)[1]
    function = _make_dense(ctx.framework, width)
    return ctx.emit(
        "add", dense_data, ctx.emit_te(function, sparse_data, sparse_indices, sparse_indptr)
    )


@OPS.exports("nn.sparse_conv2d")
def export_sparse_conv2d(
    ctx: ExportContext,
    dense_data: Value,
    sparse_data: Value,
    sparse_indices: Value,
    sparse_indptr: Value,
    *,
    layout: str,
    kernel_size: tuple[Dim, ...],
) -> Value:
    """A convolution with the matrix as its weight, with all its elements."""
    dtype = ctx.type(dense_data).dtype
    size = [ctx.dim(each) for each in kernel_size]
    channels = ctx.extents(dense_data)[layout.index("C")]
    dense = _make_dense(ctx.framework, math.prod(size) * channels)
    matrix = ctx.emit_te(dense, widen(ctx, sparse_data), sparse_indices, sparse_indptr)
    rows = ctx.framework.type_of(matrix.expr).shape.values[0]
    window = [*size, channels] if layout == "NHWC" else [channels, *size]
    weight = ctx.emit("reshape", matrix, [rows, *window])
    if layout == "NHWC":
        weight = ctx.emit("permute_dims", weight, [0, 3, 1, 2])
    data = widen(ctx, dense_data)
    if layout != "NCHW":
        data = ctx.emit("permute_dims", data, layout_axes(layout, "NCHW"))
    made = ctx.emit("nn.conv2d", data, weight, padding=[size[0] // 2] * 4)
    if layout != "NCHW":
        made = ctx.emit("permute_dims", made, layout_axes("NCHW", layout))
    return ctx.emit("astype", made, dtype) if dtype in NARROW else made


def _make_transpose(framework: Framework) -> Callable[..., Tensors]:
    """Return the transpose of a sparse matrix: elements are counted by column, then put there."""
    tir, script = framework.tir, framework.statements

    def sparse_transpose(data: AnyValue, columns: AnyValue, starts: AnyValue) -> Tensors:
        count, (size,) = starts.shape[0] - 1, data.shape
        place_type, start_type = str(columns.dtype), str(starts.dtype)

        def turn(data: AnyValue, columns: AnyValue, starts: AnyValue, elements: AnyValue,
                 rows: AnyValue, begins: AnyValue, following: AnyValue) -> None:  # fmt: skip
            with script.serial(0, 1):
                with script.serial(0, count + 1) as row:
                    begins[row] = tir.const(0, start_type)
                with script.serial(0, size) as place:
                    below = columns[place] + 1
                    begins[below] = begins[below] + tir.const(1, start_type)
                following[0] = tir.const(0, start_type)
                with script.serial(0, count) as row:
                    begins[row + 1] = begins[row + 1] + begins[row]
                    following[row + 1] = begins[row + 1]
                with script.serial(0, count) as row:
                    first = starts[row]
                    with script.serial(0, starts[row + 1] - first) as further:
                        column = columns[first + further]
                        elements[following[column]] = data[first + further]
                        rows[following[column]] = tir.Cast(place_type, row)
                        following[column] = following[column] + tir.const(1, start_type)

        shapes = [data.shape, columns.shape, starts.shape, starts.shape]
        dtypes = [str(data.dtype), place_type, start_type, start_type]
        inputs = [data, columns, starts]
        return framework.extern("sparse_transpose", inputs, shapes, dtypes, turn)[:3]

    return sparse_transpose


@OPS.exports("nn.sparse_transpose")
def export_sparse_transpose(
    ctx: ExportContext, sparse_data: Value, sparse_indices: Value, sparse_indptr: Value
) -> Sequence[Value]:
    operands = (sparse_data, sparse_indices, sparse_indptr)
    return ctx.emit_te_tuple(_make_transpose(ctx.framework), *operands, outputs=3)

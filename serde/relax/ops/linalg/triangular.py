"""Triangular systems and factors, as loops over the rows of each matrix."""

from __future__ import annotations

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.linalg.stacks import Matrix, write_of_stacks
from serde.relax.ops.table import OPS

__all__: list[str] = []


@OPS.exports("serde.cholesky")
def export_cholesky(ctx: ExportContext, data: Value) -> Value:
    """What a column explains is taken off the columns behind it."""
    tir, script = ctx.framework.tir, ctx.framework.statements

    def factor(matrix: Matrix, out: Matrix) -> None:
        size = matrix.shape[0]
        with script.serial(0, size) as row, script.serial(0, size) as column:
            value = matrix[row, column]
            out[row, column] = tir.if_then_else(column <= row, value, tir.const(0, out.dtype))
        root = ctx.framework.cell(out.dtype)
        with script.serial(0, size) as place:
            root[0] = tir.sqrt(out[place, place])
            with script.serial(0, size - place) as below:
                out[place + below, place] = out[place + below, place] / root[0]
            with script.serial(0, size - place - 1) as right:
                column = place + 1 + right
                with script.serial(0, size - column) as below:
                    row = column + below
                    taken = out[row, place] * out[column, place]
                    out[row, column] = out[row, column] - taken

    return write_of_stacks(ctx, "cholesky", factor, [data], lambda a: [a], kept=1)[0]


@OPS.exports("serde.triangular_solve")
def export_triangular_solve(
    ctx: ExportContext, a: Value, b: Value, *, lower: bool, transpose: bool
) -> Value:
    """Each unknown leaves the equations of those that follow."""
    script = ctx.framework.statements
    forward = lower != transpose

    def solve(matrix: Matrix, right: Matrix, out: Matrix) -> None:
        size, columns = right.shape
        with script.serial(0, size) as row, script.serial(0, columns) as column:
            out[row, column] = right[row, column]
        with script.serial(0, size) as step:
            place = step if forward else size - 1 - step
            with script.serial(0, columns) as column:
                out[place, column] = out[place, column] / matrix[place, place]
                with script.serial(0, size - 1 - step) as further:
                    row = place + 1 + further if forward else further
                    share = matrix[place, row] if transpose else matrix[row, place]
                    out[row, column] = out[row, column] - share * out[place, column]

    return write_of_stacks(ctx, "triangular_solve", solve, [a, b], lambda _, b: [b], kept=1)[0]

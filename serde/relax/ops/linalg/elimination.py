"""Elimination, triangular systems and factors, as loops over the rows of each matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from serde.relax.framework import Framework
from serde.relax.ops.linalg.stacks import Matrix, exchange, write_of_stacks
from serde.relax.ops.table import OPS, Export, Value


def _copy(framework: Framework, source: Matrix, target: Matrix) -> None:
    script = framework.statements
    rows, columns = source.shape
    with script.serial(0, rows) as row, script.serial(0, columns) as column:
        target[row, column] = source[row, column]


def _find_pivot(framework: Framework, work: Matrix, place: AnyValue, chosen: AnyValue) -> None:
    """Make the statements that find the greatest element of a column, from the diagonal on."""
    tir, script = framework.tir, framework.statements
    chosen[0] = tir.Cast("int64", place)
    with script.serial(0, work.shape[0] - place) as below:
        row = place + below
        larger = tir.abs(work[row, place]) > tir.abs(work[chosen[0], place])
        with script.If(larger), script.Then():
            chosen[0] = tir.Cast("int64", row)


def _eliminate(
    framework: Framework, work: Matrix, right: Matrix | None, turn: Callable[[], None]
) -> None:
    """Make the statements that turn a matrix into its upper triangle, and its right sides.

    Args:
        framework: TVM.
        work: The matrix.
        right: Its right sides, if there are any.
        turn: Makes statements for where two rows are exchanged.
    """
    tir, script = framework.tir, framework.statements
    size = work.shape[0]
    chosen, share = framework.cell("int64"), framework.cell(work.dtype)
    with script.serial(0, size) as place:
        _find_pivot(framework, work, place, chosen)
        with script.If(chosen[0] != tir.Cast("int64", place)), script.Then():
            for each in (work, right):
                if each is not None:
                    exchange(framework, each, place, chosen[0])
            turn()
        with script.serial(0, size - 1 - place) as below:
            row = place + 1 + below
            share[0] = work[row, place] / work[place, place]
            with script.If(work[place, place] == tir.const(0, work.dtype)), script.Then():
                share[0] = tir.const(0, work.dtype)
            with script.serial(0, size - place) as behind:
                column = place + behind
                work[row, column] = work[row, column] - share[0] * work[place, column]
            if right is not None:
                with script.serial(0, right.shape[1]) as column:
                    right[row, column] = right[row, column] - share[0] * right[place, column]


def _substitute(framework: Framework, work: Matrix, right: Matrix) -> None:
    """Make the statements that solve the triangle, from the last unknown on."""
    script = framework.statements
    size, columns = right.shape
    with script.serial(0, size) as step, script.serial(0, columns) as column:
        place = size - 1 - step
        right[place, column] = right[place, column] / work[place, place]
        with script.serial(0, place) as row:
            right[row, column] = right[row, column] - work[row, place] * right[place, column]


@OPS.exports("serde.solve")
def export_solve(ctx: Export, a: Value, b: Value) -> Value:
    framework = ctx.framework

    def solve(matrix: Matrix, right: Matrix, out: Matrix, work: Matrix) -> None:
        _copy(framework, matrix, work)
        _copy(framework, right, out)
        _eliminate(framework, work, out, lambda: None)
        _substitute(framework, work, out)

    return write_of_stacks(ctx, "solve", solve, [a, b], lambda a, b: [b, a], kept=1)[0]


@OPS.exports("serde.inverse")
def export_inverse(ctx: Export, data: Value) -> Value:
    framework = ctx.framework
    tir, script = framework.tir, framework.statements

    def invert(matrix: Matrix, out: Matrix, work: Matrix) -> None:
        _copy(framework, matrix, work)
        size = work.shape[0]
        with script.serial(0, size) as row, script.serial(0, size) as column:
            one, zero = (tir.const(each, out.dtype) for each in (1, 0))
            out[row, column] = tir.if_then_else(row == column, one, zero)
        _eliminate(framework, work, out, lambda: None)
        _substitute(framework, work, out)

    return write_of_stacks(ctx, "inverse", invert, [data], lambda a: [a, a], kept=1)[0]


@OPS.exports("serde.det")
def export_det(ctx: Export, data: Value) -> Value:
    framework = ctx.framework
    tir, script = framework.tir, framework.statements

    def determinant(matrix: Matrix, out: Matrix, work: Matrix) -> None:
        _copy(framework, matrix, work)
        out[0, 0] = tir.const(1, out.dtype)

        def turn() -> None:
            out[0, 0] = -out[0, 0]

        _eliminate(framework, work, None, turn)
        with script.serial(0, work.shape[0]) as place:
            out[0, 0] = out[0, 0] * work[place, place]

    (made,) = write_of_stacks(ctx, "det", determinant, [data], lambda a: [(1, 1), a], kept=1)
    return _without_matrix(ctx, data, made)


@OPS.exports("serde.slogdet")
def export_slogdet(ctx: Export, data: Value) -> Sequence[Value]:
    framework = ctx.framework
    tir, script = framework.tir, framework.statements

    def logarithm(matrix: Matrix, sign: Matrix, size: Matrix, work: Matrix) -> None:
        _copy(framework, matrix, work)
        zero, one = tir.const(0, sign.dtype), tir.const(1, sign.dtype)
        sign[0, 0] = one
        size[0, 0] = zero

        def turn() -> None:
            sign[0, 0] = -sign[0, 0]

        _eliminate(framework, work, None, turn)
        with script.serial(0, work.shape[0]) as place:
            factor = work[place, place]
            turned = tir.Select(factor < zero, -one, tir.Select(factor == zero, zero, one))
            sign[0, 0] = sign[0, 0] * turned
            size[0, 0] = size[0, 0] + tir.log(tir.abs(factor))

    found = write_of_stacks(
        ctx, "slogdet", logarithm, [data], lambda a: [(1, 1), (1, 1), a], kept=2
    )
    return [_without_matrix(ctx, data, each) for each in found]


def _without_matrix(ctx: Export, data: Value, made: Value) -> Value:
    """Return numbers that are matrices of one element each without these axes."""
    rank = ctx.type(data).rank
    return ctx.emit("squeeze", made, [rank - 2, rank - 1])


@OPS.exports("serde.cholesky")
def export_cholesky(ctx: Export, data: Value) -> Value:
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
    ctx: Export, a: Value, b: Value, *, lower: bool, transpose: bool
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

"""Orthogonal factors and eigenvalues of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Final, Literal

from serde.relax.framework import Framework
from serde.relax.ops.linalg.stacks import Matrix, write_of_stacks
from serde.relax.ops.table import OPS, Export, Value

_MOST_SWEEPS: Final = 60
"""Of Jacobi's method, which needs about ten for matrices of a thousand rows."""

_SMALL: Final = {"float32": 2.0**-25, "float64": 2.0**-54}
"""What is left of an element beside its diagonal, relative to the latter."""


def _reflect(
    framework: Framework, rows: Matrix, row: AnyValue, vectors: Matrix, scale: Matrix, at: AnyValue
) -> None:
    """Make the statements that reflect a row at what a vector is normal to."""
    script = framework.statements
    share = framework.cell(rows.dtype)
    share[0] = framework.tir.const(0, rows.dtype)
    behind = rows.shape[1] - at
    with script.serial(0, behind) as further:
        share[0] = share[0] + rows[row, at + further] * vectors[at, at + further]
    share[0] = share[0] * scale[at, 0]
    with script.serial(0, behind) as further:
        column = at + further
        rows[row, column] = rows[row, column] - share[0] * vectors[at, column]


def _find_reflection(
    framework: Framework, work: Matrix, vectors: Matrix, scale: Matrix, at: AnyValue
) -> None:
    """Make the statements that find the vector that takes a row to its diagonal."""
    tir, script = framework.tir, framework.statements
    zero, one = (tir.const(each, work.dtype) for each in (0, 1))
    tail, end = framework.cell(work.dtype), framework.cell(work.dtype)
    behind = work.shape[1] - at - 1
    tail[0] = zero
    with script.serial(0, behind) as further:
        value = work[at, at + 1 + further]
        tail[0] = tail[0] + value * value
    head = work[at, at]
    length = tir.sqrt(head * head + tail[0])
    end[0] = tir.Select(head >= zero, -length, length)
    still = tail[0] == zero
    scale[at, 0] = tir.Select(still, zero, (end[0] - head) / tir.Select(still, one, end[0]))
    with script.serial(0, behind) as further:
        column = at + 1 + further
        vectors[at, column] = work[at, column] / tir.Select(still, one, work[at, at] - end[0])
    vectors[at, at] = one


@OPS.exports("serde.lq")
def export_lq(ctx: Export, data: Value) -> Sequence[Value]:
    """Householder's reflections, of which each takes a row to its diagonal; Q is their product."""
    framework = ctx.framework
    tir, script = framework.tir, framework.statements

    def factor(
        matrix: Matrix,
        lower: Matrix,
        orthogonal: Matrix,
        work: Matrix,
        vectors: Matrix,
        scale: Matrix,
    ) -> None:
        rows, columns = matrix.shape
        zero, one = (tir.const(each, work.dtype) for each in (0, 1))
        with script.serial(0, rows) as row, script.serial(0, columns) as column:
            work[row, column] = matrix[row, column]
            orthogonal[row, column] = tir.if_then_else(row == column, one, zero)
        with script.serial(0, rows) as place:
            _find_reflection(framework, work, vectors, scale, place)
            with script.serial(0, rows - place) as below:
                _reflect(framework, work, place + below, vectors, scale, place)
            with script.serial(0, rows) as row:
                lower[row, place] = tir.if_then_else(row < place, zero, work[row, place])
        with script.serial(0, rows) as step, script.serial(0, rows) as row:
            _reflect(framework, orthogonal, row, vectors, scale, rows - 1 - step)

    return write_of_stacks(
        ctx, "lq", factor, [data], lambda a: [(a[0], a[0]), a, a, a, (a[0], 1)], kept=2
    )


def _rotate(
    framework: Framework, work: Matrix, vectors: Matrix, first: AnyValue, second: AnyValue
) -> None:
    """Make the statements that turn two axes so that one element becomes zero."""
    tir, script = framework.tir, framework.statements
    one = tir.const(1, work.dtype)
    tangent, cosine, left = (framework.cell(work.dtype) for _ in range(3))
    ratio = (work[second, second] - work[first, first]) / (work[first, second] * 2)
    tangent[0] = ratio
    size = one / (tir.abs(tangent[0]) + tir.sqrt(tangent[0] * tangent[0] + one))
    tangent[0] = tir.Select(tangent[0] < tir.const(0, work.dtype), -size, size)
    cosine[0] = one / tir.sqrt(tangent[0] * tangent[0] + one)
    sine = tangent[0] * cosine[0]
    with script.serial(0, work.shape[0]) as row:
        for each in (work, vectors):
            left[0] = each[row, first]
            each[row, first] = cosine[0] * left[0] - sine * each[row, second]
            each[row, second] = sine * left[0] + cosine[0] * each[row, second]
    with script.serial(0, work.shape[0]) as column:
        left[0] = work[first, column]
        work[first, column] = cosine[0] * left[0] - sine * work[second, column]
        work[second, column] = sine * left[0] + cosine[0] * work[second, column]


def _diagonalize(framework: Framework, work: Matrix, vectors: Matrix) -> None:
    """Make the statements that rotate a symmetric matrix until its diagonal is all there is."""
    tir, script = framework.tir, framework.statements
    size = work.shape[0]
    sweep, turned = framework.cell("int32"), framework.cell("int32")
    sweep[0] = tir.const(0, "int32")
    turned[0] = tir.const(1, "int32")
    with script.While(tir.all(turned[0] > 0, sweep[0] < _MOST_SWEEPS)):
        turned[0] = tir.const(0, "int32")
        sweep[0] = sweep[0] + 1
        with script.serial(0, size) as first, script.serial(0, size - 1 - first) as behind:
            second = first + 1 + behind
            diagonal = tir.abs(work[first, first]) + tir.abs(work[second, second])
            least = diagonal * tir.const(_SMALL[work.dtype], work.dtype)
            with script.If(tir.abs(work[first, second]) > least), script.Then():
                turned[0] = tir.const(1, "int32")
                _rotate(framework, work, vectors, first, second)


def _put_in_order(
    framework: Framework, work: Matrix, vectors: Matrix, values: Matrix, out: Matrix
) -> None:
    """Make the statements that sort eigenvalues, and make the greatest components positive."""
    tir, script = framework.tir, framework.statements
    size = work.shape[0]
    rank, peak = framework.cell("int64"), framework.cell(work.dtype)
    zero = tir.const(0, work.dtype)
    with script.serial(0, size) as place:
        rank[0] = tir.const(0, "int64")
        with script.serial(0, size) as other:
            one, two = work[other, other], work[place, place]
            before = tir.any(one < two, tir.all(one == two, other < place))
            with script.If(before), script.Then():
                rank[0] = rank[0] + 1
        peak[0] = zero
        with script.serial(0, size) as row:
            larger = tir.abs(vectors[row, place]) > tir.abs(peak[0])
            with script.If(larger), script.Then():
                peak[0] = vectors[row, place]
        values[0, rank[0]] = work[place, place]
        with script.serial(0, size) as row:
            value = vectors[row, place]
            out[row, rank[0]] = tir.Select(peak[0] < zero, -value, value)


@OPS.exports("serde.eigh")
def export_eigh(
    ctx: Export, data: Value, *, triangle: Literal["lower", "upper"]
) -> Sequence[Value]:
    """Jacobi's method: plane after plane is turned until no element stands off the diagonal."""
    framework = ctx.framework
    tir, script = framework.tir, framework.statements

    def find(matrix: Matrix, values: Matrix, out: Matrix, work: Matrix, vectors: Matrix) -> None:
        size = matrix.shape[0]
        with script.serial(0, size) as row, script.serial(0, size) as column:
            own = row >= column if triangle == "lower" else row <= column
            work[row, column] = tir.if_then_else(own, matrix[row, column], matrix[column, row])
            one, zero = (tir.const(each, work.dtype) for each in (1, 0))
            vectors[row, column] = tir.if_then_else(row == column, one, zero)
        _diagonalize(framework, work, vectors)
        _put_in_order(framework, work, vectors, values, out)

    found = write_of_stacks(ctx, "eigh", find, [data], lambda a: [(1, a[0]), a, a, a], kept=2)
    return [ctx.emit("squeeze", found[0], [ctx.type(data).rank - 2]), found[1]]

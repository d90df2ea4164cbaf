"""Sums of products as loops that a processor runs well.

Blocks of the result stay in registers while their sums are made. Vectors lie along the columns of
the result, whose operand is packed once for all rows; or along the sum, where both operands have
it so in memory. The last block lies back over the one before it, which computes a few results
twice and needs no code for what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Final

from serde.relax.contractions import Axes, Contraction, Env, Expressions, indices_of_sum

__all__ = ["write_kernel"]

_SERIAL: Final = 2**16
"""Products, or numbers that are copied, for which threads cost more than they give."""

_UNROLLED: Final = 16
"""Terms of a sum that are written one by one."""

_FEW_ROWS: Final = 3
"""For which columns are not packed."""

_TASKS: Final = 8
"""That there are at least, where rows can be divided."""

_TILE: Final = 12
"""Vectors of results in registers: half the processors have sixteen."""


def write_kernel(exprs: Expressions, found: Contraction, lanes: int) -> AnyValue:
    """Return the function of a sum of products.

    Args:
        exprs: For expressions.
        found: What it computes.
        lanes: Numbers that a vector of the processor holds.
    """
    along = exprs.slope(found.vector, found.columns, found.ones)
    columns, rows = (exprs.known(each.size(exprs)) for each in (found.columns, found.rows))
    in_sum = [exprs.slope(x, found.sum, found.ones) for x in (found.vector, found.broadcast)]
    summed = exprs.known(found.sum.size(exprs))
    kernel: _Kernel
    if in_sum == [1, 1] and (along != 1 or columns == 1) and (summed is None or summed >= lanes):
        kernel = _SumInVectors(exprs, found, lanes)
    elif rows is not None and rows <= _FEW_ROWS:
        kernel = _FewRows(exprs, found if along == 1 else found.row_by_row(), lanes)
    else:
        kernel = _Packed(exprs, found, lanes, along)
    body = exprs.framework.write_statements(kernel.write)
    return found.function.with_body(body)


class _Kernel:
    """Loops over blocks of the result.

    Attributes:
        tile: Rows and columns of a block.
    """

    def __init__(self, exprs: Expressions, found: Contraction, lanes: int) -> None:
        self.exprs, self.found, self.lanes = exprs, found, lanes
        self.T = exprs.framework.statements
        self.dtype = exprs.dtype(found.main.body.value)
        axes = found.batch, found.rows, found.columns, found.sum
        self.sizes = [each.size(exprs) for each in axes]
        self.batch, self.rows, self.columns, self.summed = self.sizes
        self.tile = self.choose(exprs.known(self.rows), exprs.known(self.columns))

    def choose(self, rows: int | None, columns: int | None) -> tuple[int, int]:
        """Return the rows and columns of a block."""
        raise NotImplementedError

    def block(self, batch: AnyValue, part: tuple[AnyValue, AnyValue], column: AnyValue) -> None:
        """Write the blocks at a column, for a part of the rows: the first block, and how many."""
        raise NotImplementedError

    def write(self) -> None:
        """Write the statements."""
        exprs, found = self.exprs, self.found
        for buffer in found.function.body.block.alloc_buffers:
            if found.last is None or not buffer.same_as(found.result):
                self.T.add_to_parent(exprs.tir.AllocBuffer(buffer, {}))
        for each in found.before:
            self._copy(each)
        rows, columns = (self._count(i) for i in (0, 1))
        tasks, many = (exprs.known(each) for each in (self.batch * columns, rows))
        parts = 1 if tasks is None or many is None else min(many, -(-_TASKS // max(tasks, 1)))
        each_part = exprs.simplify((rows + parts - 1) // parts)
        work = [exprs.known(each) for each in self.sizes]
        with self._loop(work, exprs.simplify(self.batch * columns * parts)) as task:
            part, rest = exprs.simplify(task % parts), exprs.simplify(task // parts)
            batch, column = exprs.simplify(rest // columns), exprs.simplify(rest % columns)
            first = exprs.tir.min(part * each_part, exprs.simplify(rows - each_part))
            first = exprs.simplify(first if parts > 1 else 0)
            self.block(batch, (first, each_part), self._start(1, column))

    def _loop(self, lengths: Sequence[int | None], count: AnyValue) -> AnyValue:
        """Return a loop, in threads where it is long."""
        work = 1
        for each in lengths:
            work *= _SERIAL if each is None else each
        made = self.T.parallel if work >= _SERIAL else self.T.serial
        return made(self.exprs.number(0), self.exprs.number(count))

    def _copy(self, block: AnyValue) -> None:
        """Write a block that comes before the sums."""
        exprs = self.exprs
        *outer, last = [(each.var, each.dom.extent) for each in block.iter_vars]
        axes = Axes(tuple(outer))
        lengths = [exprs.known(axes.size(exprs)), exprs.known(last[1])]
        with self._loop(lengths, axes.size(exprs)) as i, self.serial(last[1]) as j:
            env = {**axes.at(exprs, i), last[0]: j}
            value, *indices = exprs.at([block.body.value, *block.body.indices], env)
            self.T.buffer_store(block.body.buffer, value, indices)

    def serial(self, count: AnyValue) -> AnyValue:
        """Return a loop."""
        return self.T.serial(self.exprs.number(0), self.exprs.number(count))

    def vector(self, count: int) -> AnyValue:
        """Return a loop that becomes a vector."""
        return self.T.vectorized(self.exprs.number(0), self.exprs.number(count))

    def cell(self, count: AnyValue, scope: str = "local") -> AnyValue:
        """Return room for numbers."""
        held = self.T.alloc_buffer((count,), self.dtype, scope=scope, layout=None)
        return self.T.buffer_proxy(held)

    def zeros(self, count: int, width: int = 1) -> AnyValue:
        """Return vectors of zeros."""
        made = self.cell(count * width)
        for index in range(count):
            with self.vector(width) as lane:
                made[index * width + lane] = self.exprs.tir.const(0, self.dtype)
        return made

    def _count(self, axis: int) -> AnyValue:
        """Return how many blocks there are along rows (0) or columns (1)."""
        size, tile = self.sizes[1 + axis], self.tile[axis]
        return self.exprs.simplify((size + tile - 1) // tile)

    def _start(self, axis: int, index: AnyValue) -> AnyValue:
        """Return where a block begins; the last lies back."""
        size, tile = self.exprs.known(self.sizes[1 + axis]), self.tile[axis]
        if size is None or size % tile == 0:
            return self.exprs.simplify(index * tile)
        return self.exprs.tir.min(self.exprs.simplify(index * tile), self.exprs.number(size - tile))

    def inside(self, axis: int, index: AnyValue) -> AnyValue:
        """Return an index, or the last where blocks may reach beyond it."""
        size = self.sizes[1 + axis]
        known = self.exprs.known(size) is not None
        return index if known else self.exprs.tir.min(index, size - 1)

    def env(self, batch: AnyValue, row: AnyValue, column: AnyValue, at: Env | None = None) -> Env:
        """Return what the indices of the computation are."""
        found, exprs = self.found, self.exprs
        axes = zip((found.batch, found.rows, found.columns), (batch, row, column), strict=True)
        places = [each.at(exprs, index) for each, index in axes if index is not None]
        merged: Env = dict(found.ones)
        for each in (*places, at or {}):
            merged.update(each)
        return merged

    def store(self, env: Env, value: AnyValue) -> None:
        """Write what is made of a sum."""
        found, exprs = self.found, self.exprs
        indices = found.main.body.indices
        if found.last is None:
            self.T.buffer_store(found.result, value, exprs.at(indices, env))
            return
        places = indices_of_sum(found.last, found.main) or []
        own: Env = {each.var: 0 for each in found.last.iter_vars}
        given = zip(places, indices, strict=True)
        own.update({x: env[y] for x, y in given if exprs.known(x) is None})
        body = found.last.body
        made = exprs.replaced(body.value, found.result, value)
        made, *indices = exprs.at([made, *body.indices], own)
        self.T.buffer_store(body.buffer, made, indices)

    def terms(self, linear: bool, write: Callable[[AnyValue, Env], None]) -> None:
        """Write something for each term of the sums, given its number and its indices.

        Args:
            linear: Whether its place in memory follows from its number.
            write: Writes it.
        """
        exprs, axes = self.exprs, self.found.sum
        count = exprs.known(self.summed)

        def nest(left: Sequence[tuple[AnyValue, AnyValue]], number: AnyValue, env: Env) -> None:
            if not left:
                write(exprs.simplify(number), env)
                return
            (variable, length), *left = left
            with self.serial(length) as index:
                nest(left, number * length + index, {**env, variable: index})

        if count is not None and count <= _UNROLLED:
            for number in range(count):
                write(exprs.number(number), axes.at(exprs, exprs.number(number)))
        elif linear:
            with self.serial(self.summed) as number:
                write(number, axes.at(exprs, number))
        else:
            nest(axes.indices, exprs.number(0), {})


class _SumInVectors(_Kernel):
    """Both operands have the sum next to each other in memory."""

    def choose(self, rows: int | None, columns: int | None) -> tuple[int, int]:
        """Return blocks of three by four, or as long as one of them is short."""
        high = min(3, rows or 3)
        wide = min(4 if high == 3 else 8 // high, columns or 4)
        return min(_TILE // wide, 4, rows or 3) if wide < 3 else high, wide

    def block(self, batch: AnyValue, part: tuple[AnyValue, AnyValue], column: AnyValue) -> None:
        """Write the blocks at a column."""
        exprs, (high, wide) = self.exprs, self.tile
        width = self.lanes * (2 if 2 * high * wide <= _TILE else 1)
        whole, rest = (exprs.simplify(x) for x in (self.summed // width, self.summed % width))
        cells = [(i, j) for i in range(high) for j in range(wide)]
        with self.serial(part[1]) as index:
            row = self._start(0, part[0] + index)
            envs = [
                self.env(batch, self.inside(0, row + i), self.inside(1, column + j))
                for i, j in cells
            ]

            def term(cell: int, number: AnyValue) -> AnyValue:
                env = {**envs[cell], **self.found.sum.at(exprs, number)}
                return exprs.at([self.found.broadcast * self.found.vector], env)[0]

            sums, others = self.zeros(len(cells), width), self.zeros(len(cells))
            with self.serial(whole) as number:
                for cell in range(len(cells)):
                    with self.vector(width) as lane:
                        at = cell * width + lane
                        sums[at] = sums[at] + term(cell, number * width + lane)
            if exprs.known(rest) != 0:
                with self.serial(rest) as number:
                    for cell in range(len(cells)):
                        others[cell] = others[cell] + term(cell, whole * width + number)
            for cell, env in enumerate(envs):
                parts = [sums[cell * width + lane] for lane in range(width)]
                while len(parts) > 1:
                    parts = [x + y for x, y in zip(parts[::2], parts[1::2], strict=True)]
                self.store(env, parts[0] + others[cell])


class _Columns(_Kernel):
    """Vectors lie along the columns."""

    def pieces(self) -> list[tuple[int, int]]:
        """Return where the vectors of a block begin, and their widths."""
        wide, lanes = self.tile[1], self.lanes
        if wide >= lanes:
            return [(min(first, wide - lanes), lanes) for first in range(0, wide, lanes)]
        found, first = [], 0
        while first < wide:
            width = 1 << ((wide - first).bit_length() - 1)
            found.append((first, width))
            first += width
        return found

    def sums(
        self,
        batch: AnyValue,
        row: AnyValue,
        column: AnyValue,
        factor: Callable[[AnyValue, AnyValue, Env], AnyValue],
        linear: bool,
    ) -> None:
        """Write a block, of which `factor` gives the factor by column, number of term, indices."""
        exprs, found, pieces, high = self.exprs, self.found, self.pieces(), self.tile[0]
        rows = [self.inside(0, row + i) for i in range(high)]
        starts = [sum(width for _, width in pieces[:i]) for i in range(len(pieces))]
        line = starts[-1] + pieces[-1][1]
        sums = self.zeros(high, line)

        def add(number: AnyValue, at: Env) -> None:
            for i, own in enumerate(rows):
                (one,) = exprs.at([found.broadcast], self.env(batch, own, None, at))
                for start, (first, width) in zip(starts, pieces, strict=True):
                    with self.vector(width) as lane:
                        place = i * line + start + lane
                        sums[place] = sums[place] + one * factor(first + lane, number, at)

        self.terms(linear, add)

        def keep(inside: Callable[[AnyValue], AnyValue]) -> None:
            for i, own in enumerate(rows):
                for start, (first, width) in zip(starts, pieces, strict=True):
                    with self.vector(width) as lane:
                        env = self.env(batch, own, inside(column + first + lane))
                        self.store(env, sums[i * line + start + lane])

        if exprs.known(self.columns) is not None:
            keep(lambda index: index)
            return
        with self.T.If(column + self.tile[1] <= self.columns):
            with self.T.Then():
                keep(lambda index: index)
            with self.T.Else():
                keep(lambda index: self.inside(1, index))


class _FewRows(_Columns):
    """What is read in vectors is read where it lies."""

    def choose(self, rows: int | None, columns: int | None) -> tuple[int, int]:
        """Return all rows, and columns that divide the result where some do."""
        high, lanes = rows or 1, self.lanes
        most = lanes * (_TILE - 4) // high // lanes * lanes
        if columns is None:
            return high, 2 * lanes
        if columns <= most:
            return high, columns
        fitting = [each for each in range(2 * lanes, most + 1, lanes) if columns % each == 0]
        return high, max(fitting, default=most // 2 // lanes * lanes or lanes)

    def block(self, batch: AnyValue, part: tuple[AnyValue, AnyValue], column: AnyValue) -> None:
        """Write the block at a column."""
        exprs, found = self.exprs, self.found

        def factor(place: AnyValue, number: AnyValue, at: Env) -> AnyValue:
            env = self.env(batch, None, self.inside(1, column + place), at)
            return exprs.at([found.vector], env)[0]

        linear = exprs.slope(found.vector, found.sum, found.ones) is not None
        self.sums(batch, exprs.number(0), column, factor, linear)


class _Packed(_Columns):
    """What is read in vectors is packed for all rows of some columns.

    Args:
        along: How far apart columns are in memory, None if that varies.
    """

    def __init__(
        self, exprs: Expressions, found: Contraction, lanes: int, along: int | None
    ) -> None:
        self._along = along
        super().__init__(exprs, found, lanes)

    def choose(self, rows: int | None, columns: int | None) -> tuple[int, int]:
        """Return blocks that fill the registers, and waste the least."""
        lanes, vectors = self.lanes, 2
        if columns is not None:
            vectors = min((3, 2), key=lambda each: -(-columns // (each * lanes)) * each)
        wide = vectors * lanes
        high = 4 if vectors == 3 or (rows or 1) % 4 == 0 else _TILE // vectors
        return min(high, rows or high), min(wide, columns or wide)

    def block(self, batch: AnyValue, part: tuple[AnyValue, AnyValue], column: AnyValue) -> None:
        """Write the blocks at a column, for which it is packed."""
        exprs, found, wide = self.exprs, self.found, self.tile[1]
        packed = self.cell(exprs.simplify(self.summed * wide), "global")
        self._pack(packed, batch, column)
        with self.serial(part[1]) as index:
            row = self._start(0, part[0] + index)
            linear = exprs.slope(found.broadcast, found.sum, found.ones) is not None
            self.sums(batch, row, column, lambda x, k, _: packed[k * wide + x], linear)

    def _pack(self, packed: AnyValue, batch: AnyValue, column: AnyValue) -> None:
        exprs, found, wide = self.exprs, self.found, self.tile[1]
        linear = exprs.slope(found.vector, found.sum, found.ones) is not None

        def several(env: Callable[[AnyValue, Env], Env]) -> None:
            def copy(number: AnyValue, at: Env) -> None:
                for first, width in self.pieces():
                    with self.vector(width) as lane:
                        place = first + lane
                        (value,) = exprs.at([found.vector], env(place, at))
                        packed[number * wide + place] = value

            self.terms(linear, copy)

        def one_by_one() -> None:
            with self.serial(wide) as j:
                own = self.inside(1, column + j)

                def copy(number: AnyValue, at: Env) -> None:
                    env = self.env(batch, None, own, at)
                    packed[number * wide + j] = exprs.at([found.vector], env)[0]

                self.terms(linear, copy)

        if not found.columns.indices:
            one_by_one()
            return
        last, length = found.columns.indices[-1]
        known = exprs.known(length)
        if self._along == 1 and exprs.known(self.columns) is not None:
            several(lambda j, at: self.env(batch, None, column + j, at))
        elif exprs.slope(found.vector, Axes(((last, length),)), found.ones) != 1 or (
            known is not None and known < wide
        ):
            one_by_one()
        else:

            def in_row(j: AnyValue, at: Env) -> Env:
                env = self.env(batch, None, column, at)
                return {**env, last: env[last] + j}

            with self.T.If(column % length + wide <= length):
                with self.T.Then():
                    several(in_row)
                with self.T.Else():
                    one_by_one()

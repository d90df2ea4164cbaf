"""Sums of products, and other reductions, as loops that a processor runs well.

Blocks of the result stay in registers while their sums are made. Vectors lie along the columns of
the result, for which an operand is packed once for all rows; or along the sum, where both operands
have it so in memory. A last block that is not whole begins earlier, and makes some results again.

What reduces several times, as a softmax does, is written row by row: all of it for one row, which
stays near, then for the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Final

from serde.core import replace
from serde.relax.contractions import (
    Axes,
    Contraction,
    Env,
    Expressions,
    axes_of,
    find_contraction,
    find_reductions,
    stores_of,
)

__all__ = ["write_kernel"]

_SERIAL: Final = 2**16
"""Products, or numbers that are copied, for which threads cost more than they give."""

_LONG: Final = 256
"""Numbers that lie one behind the other for which a loop is worth its start."""

_FEW_ROWS: Final = 3
"""For which columns are not packed."""

_VECTORS: Final = 12
"""Of results in registers: most processors have sixteen, and twice as many of 512 bits."""


def write_kernel(
    exprs: Expressions, function: AnyValue, blocks: Sequence[AnyValue], bits: int
) -> AnyValue:
    """Return a function that reduces, for vectors of so many bits; None if it does not."""
    if not blocks:
        return None
    found = find_contraction(exprs, blocks)
    written = _Rows(exprs, blocks, bits) if found is None else _Kernel(exprs, found, bits)
    if not written.is_known:
        return None
    root = function.body  # Passes of TVM ask for the block around all.

    def write() -> None:
        for buffer in root.block.alloc_buffers:
            written.T.add_to_parent(exprs.tir.AllocBuffer(buffer, {}))
        written.write()

    body = exprs.framework.write_statements(write)
    block = type(root.block)([], [], [], root.block.name_hint, body)
    return function.with_body(type(root)([], root.predicate, block))


def _is_pointwise(exprs: Expressions, found: Contraction) -> bool:
    """Whether there is one block behind the sums, which reads each where it writes."""
    if len(found.after) != 1:
        return False
    axes, result = axes_of(found.after[0]), found.store.buffer
    reads = [x for x in found.after[0].reads if result.same_as(exprs.source(x))]
    if len(reads) != 1 or len(reads[0].region) != len(axes) or not _is_at(exprs, reads[0], axes):
        return False
    lengths = zip(axes, result.shape, strict=True)
    return all(exprs.framework.are_equal(own[1], length) for own, length in lengths)


def _is_at(exprs: Expressions, read: AnyValue, axes: Axes) -> bool:
    """Whether what a block reads has these of its indices first."""
    return len(read.region) >= len(axes) and all(
        place.min.same_as(own) and exprs.known(place.extent) == 1
        for place, (own, _) in zip(read.region, axes, strict=False)
    )


class _Loops:
    """Loops, and blocks that reduce nothing."""

    is_known = True
    """Whether it can be written."""

    def __init__(self, exprs: Expressions) -> None:
        self.exprs, self.T = exprs, exprs.framework.statements

    def loop(self, count: AnyValue, *work: AnyValue) -> AnyValue:
        """Return a loop, in threads if there is much work."""
        much = math.prod(_SERIAL if x is None else x for x in map(self.exprs.known, work or (0,)))
        made = self.T.parallel if much >= _SERIAL else self.T.serial
        return made(self.exprs.number(0), self.exprs.number(count))

    def copy(self, block: AnyValue, done: int = 0, row: AnyValue = 0) -> None:
        """Write a block that sums nothing, of its first indices for one place."""
        axes, zeros = axes_of(block), dict.fromkeys((x for x, _ in axes_of(block)), 0)
        first = max(done, len(axes) - 1)
        while first > done and (self.exprs.known(self.exprs.size(axes[first:])) or _LONG) < _LONG:
            if self.exprs.slope(block.body.value, axes[first - 1 :], zeros) not in (0, 1):
                break
            first -= 1
        outer, last, env = axes[done:first], axes[first:], self.exprs.places(axes[:done], row)
        count, length = map(self.exprs.size, (outer, last))
        with self.loop(count, *(() if done else (count, length))) as i, self.loop(length) as j:
            places = {**env, **self.exprs.places(outer, i), **self.exprs.places(last, j)}
            self.assign(block.body, places, block.body.value)

    def assign(self, store: AnyValue, env: Env, value: AnyValue) -> None:
        """Write a number where a statement does."""
        value, *indices = self.exprs.at([value, *store.indices], env)
        self.T.buffer_store(store.buffer, value, indices)


class _Rows(_Loops):
    """Blocks that reduce, and others: for one row, which is their first indices, then the next."""

    def __init__(self, exprs: Expressions, blocks: Sequence[AnyValue], bits: int) -> None:
        super().__init__(exprs)
        summed = [axes_of(each, summed=True) for each in blocks]
        ranks = range(min(len(axes_of(each)) for each in blocks) if any(summed) else 0, 0, -1)
        self.rank = next((rank for rank in ranks if self._fits(blocks, rank)), 0)
        self.rows = exprs.size(axes_of(blocks[0])[: self.rank])
        if exprs.known(self.rows) == 1:
            self.rank = 0
        reduced = [find_reductions(exprs, each, self.rank) for each in blocks]
        kernels = [[_Kernel(exprs, x, bits, self.rank) for x in each] for each in reduced]
        self.stages = [*zip(blocks, kernels, strict=True)]
        self.is_known = [*map(bool, kernels)] == [*map(bool, summed)]

    def _fits(self, blocks: Sequence[AnyValue], rank: int) -> bool:
        """Whether a row, of the first so many indices, needs nothing of another row."""
        exprs, first = self.exprs, axes_of(blocks[0])[:rank]
        written = [store.buffer for each in blocks for store in stores_of(each)]
        for block in blocks:
            axes, at = axes_of(block)[:rank], [*block.writes]
            at += (x for x in block.reads if any(exprs.source(x).same_as(y) for y in written))
            pairs = zip(axes, first, strict=True)
            alike = all(exprs.framework.are_equal(x, y) for (_, x), (_, y) in pairs)
            if not alike or not all(_is_at(exprs, each, axes) for each in at):
                return False
            for each in find_reductions(exprs, block, rank):  # Vectors do not lie along rows.
                along = exprs.slope(each.vector, axes[-1:], each.zeros)
                if along == 1 and exprs.slope(each.vector, each.sum, each.zeros) != 1:
                    return False
        return True

    def write(self) -> None:
        """Write the statements."""
        if not self.rank:
            self._write_stages(0)
            return
        block = self.stages[0][0]
        work = (each for _, each in [*axes_of(block), *axes_of(block, summed=True)])
        with self.loop(self.rows, *work) as row:
            self._write_stages(self.rank, row)

    def _write_stages(self, done: int, row: AnyValue = 0) -> None:
        for block, kernels in self.stages:
            for kernel in kernels:
                kernel.sums(row, threads=not done)
            if not kernels:
                self.copy(block, done, row)


class _Kernel(_Loops):
    """One reduction, of whose indices the first are given from outside where it is in a row."""

    def __init__(self, exprs: Expressions, found: Contraction, bits: int, rank: int = 0) -> None:
        super().__init__(exprs)
        self.dtype = str(found.store.buffer.dtype)
        self.lanes = lanes = bits // exprs.framework.tvm.DataType(self.dtype).bits
        self.vectors = _VECTORS * (2 if bits >= 512 else 1)
        along = exprs.slope(found.vector, found.columns, found.zeros)
        axes = found.rows, found.columns, found.sum
        rows, columns, self.terms = (exprs.known(exprs.size(each)) for each in axes)
        operands = [found.vector, found.broadcast][: 2 if found.broadcast is not None else 1]
        near = {exprs.slope(x, found.sum, found.zeros) for x in operands} == {1}
        self.inner = near and along != 1 and (self.terms is None or self.terms >= lanes)
        self.packed = not self.inner and (rows is None or rows > _FEW_ROWS)
        if not (self.inner or self.packed or along == 1) and len(found.columns) > 1:
            *others, last = found.columns
            found = replace(found, batch=[*found.batch, *others], columns=[last])
            columns, along = exprs.known(last[1]), exprs.slope(found.vector, [last], found.zeros)
        # What has gaps would be gathered number by number: LLVM takes it out of whole vectors.
        self.has_gaps = not self.inner and found.broadcast is None and along != 1
        self.found, self.tile = found, self._tile(rows, columns)
        self.sizes = [exprs.size(x) for x in (found.batch, found.rows, found.columns, found.sum)]
        self.inside = exprs.size(found.batch[rank:])
        self.last = found.after[0] if _is_pointwise(exprs, found) else None

    def _tile(self, rows: int | None, columns: int | None) -> tuple[int, int]:
        """Return the rows and columns of a block: what fits into the registers."""
        lanes = self.lanes
        if self.inner:
            return min(3, rows or 3), min(4, columns or 4)
        if not self.packed:  # Columns that divide the result, if any do.
            most = 8 * lanes // (rows or 1) // lanes * lanes
            fit = [x for x in range(2 * lanes, most + 1, lanes) if columns and columns % x == 0]
            wide = max(fit, default=2 * lanes)
            return rows or 1, columns if columns and columns <= most else wide
        vectors = min((3, 2), key=lambda x: -(-columns // (x * lanes)) * x) if columns else 2
        high, few = self.vectors // vectors, self.vectors // 3
        high = few if rows and rows % few == 0 else high
        return min(high, rows or high), min(vectors * lanes, columns or vectors * lanes)

    def write(self) -> None:
        """Write the statements."""
        for each in self.found.before:
            self.copy(each)
        self.sums()
        for each in self.found.after if self.last is None else ():
            self.copy(each)

    def sums(self, row: AnyValue = 0, *, threads: bool = True) -> None:
        """Write the sums of one row."""
        simplify, count = self.exprs.simplify, self._count(1)
        with self.loop(simplify(self.inside * count), *(self.sizes if threads else ())) as task:
            batch = simplify(row * self.inside + task // count)
            self._block(batch, self._start(1, task % count))

    def _store(self, env: Env, value: AnyValue) -> None:
        """Write a sum, and what is made of it."""
        self.assign(self.found.store, env, value)
        if self.last is not None:
            pairs = zip(axes_of(self.last), self.found.store.indices, strict=True)
            self.assign(self.last.body, {x: env[y] for (x, _), y in pairs}, self.last.body.value)

    def _vector(self, width: int) -> AnyValue:
        made = self.T.serial if self.has_gaps else self.T.vectorized
        return made(self.exprs.number(0), self.exprs.number(width))

    def _room(self, count: AnyValue) -> AnyValue:
        # TVM puts what is small on the stack, but only in this scope.
        held = self.T.alloc_buffer((count,), self.dtype, scope="global", layout=None)
        return self.T.buffer_proxy(held)

    def _count(self, axis: int) -> AnyValue:
        """Return how many blocks of rows (0) or columns (1) there are."""
        return self.exprs.simplify((self.sizes[1 + axis] + self.tile[axis] - 1) // self.tile[axis])

    def _start(self, axis: int, index: AnyValue) -> AnyValue:
        """Return where a block of rows (0) or columns (1) begins."""
        size, tile = self.exprs.known(self.sizes[1 + axis]), self.tile[axis]
        start = self.exprs.simplify(index * tile)
        return self.exprs.tir.min(start, size - tile) if size and size % tile else start

    def _env(self, batch: AnyValue, row: AnyValue, column: AnyValue, at: Env) -> Env:
        """Return the indices of the computation; blocks may reach beyond sizes that are unknown."""
        exprs, found, env = self.exprs, self.found, {**self.found.zeros, **at}
        axes = (found.batch, batch), (found.rows, row), (found.columns, column)
        for (each, index), size in zip(axes, self.sizes, strict=False):
            last = index if exprs.known(size) else exprs.tir.min(index, size - 1)
            env.update(exprs.places(each, last))
        return env

    def _terms(self, write: Callable[[AnyValue, Env], None], done: int = 0, *at: AnyValue) -> None:
        """Write something for each term of the sums, by its number and its indices."""
        axes = self.found.sum
        if done < len(axes):
            with self.loop(axes[done][1]) as index:
                self._terms(write, done + 1, *at, index)
            return
        number = self.exprs.number(0)
        for (_, length), index in zip(axes, at, strict=True):
            number = self.exprs.simplify(number * length + index)
        write(number, {variable: x for (variable, _), x in zip(axes, at, strict=True)})

    def _block(self, batch: AnyValue, column: AnyValue) -> None:
        """Write the blocks of all rows at some columns."""
        high, wide = self.tile
        width = wide if self.has_gaps else min(self.lanes, wide)
        packed = self._pack(batch, column) if self.packed else None
        with self.loop(self._count(0)) as index:
            row = self._start(0, index)
            if self.inner:
                self._sum_along(
                    batch, [(row + i, column + j) for i in range(high) for j in range(wide)]
                )
                return
            firsts = [min(first, wide - width) for first in range(0, wide, width)]
            cells = [(row + i, first) for i in range(high) for first in firsts]
            sums = self._begun(len(cells), width)

            def add(number: AnyValue, at: Env) -> None:
                for cell, (own, first) in enumerate(cells):
                    with self._vector(width) as lane:
                        env = self._env(batch, own, column + first + lane, at)
                        near = None if packed is None else packed[number * wide + first + lane]
                        self._add(sums[cell], lane, env, near)

            self._terms(add)
            for cell, (own, first) in enumerate(cells):
                with self._vector(width) as lane:
                    env = self._env(batch, own, column + first + lane, {})
                    self._store(env, sums[cell][lane])

    def _add(self, sums: AnyValue, place: AnyValue, env: Env, packed: AnyValue = None) -> None:
        """Write that a term comes to a sum, one operand of which may be packed."""
        first, second = self.found.broadcast, self.found.vector
        term = self.exprs.at([second], env)[0] if packed is None else packed
        if first is not None:
            term = self.exprs.at([first], env)[0] * term
        sums[place] = self.found.combine(sums[place], term)

    def _begun(self, count: int, width: int) -> list[AnyValue]:
        """Return vectors that sums begin with, each in room of its own, which are registers."""
        made = [self._room(width) for _ in range(count)]
        for each in made:
            with self._vector(width) as lane:
                each[lane] = self.found.begin
        return made

    def _sum_along(self, batch: AnyValue, cells: list[tuple[AnyValue, AnyValue]]) -> None:
        """Write a block whose vectors lie along the sum."""
        exprs, size, most = self.exprs, self.sizes[3], self.vectors // len(cells)
        fit = [x for x in (1, 2, 4) if x <= most and x * self.lanes <= (self.terms or math.inf)]
        width, done = self.lanes * max(fit), exprs.number(0)
        sums, others = self._begun(len(cells), width), self._begun(len(cells), 1)
        for step in dict.fromkeys((width, self.lanes, 1)):
            count, first = exprs.simplify((size - done) // step), done
            with self.loop(count) as number:
                for cell, place in enumerate(cells):
                    with self._vector(step) as lane:
                        at = exprs.places(self.found.sum, first + number * step + lane)
                        to = sums if step > 1 else others
                        self._add(to[cell], lane, self._env(batch, *place, at))
            done = exprs.simplify(done + count * step)
        for held, other, place in zip(sums, others, cells, strict=True):
            half = width // 2
            while half:
                with self._vector(half) as lane:
                    held[lane] = self.found.combine(held[lane], held[lane + half])
                half //= 2
            total = self.found.combine(held[0], other[0])
            self._store(self._env(batch, *place, {}), total)

    def _pack(self, batch: AnyValue, column: AnyValue) -> AnyValue:
        """Write copies of some columns, term by term, and return where they are."""
        exprs, found, wide = self.exprs, self.found, self.tile[1]
        packed = self._room(exprs.simplify(self.sizes[3] * wide))

        def copy(lane: AnyValue, number: AnyValue, env: Env) -> None:
            packed[number * wide + lane] = exprs.at([found.vector], env)[0]

        def in_vectors(number: AnyValue, at: Env) -> None:
            with self._vector(wide) as lane:
                env = self._env(batch, 0, column, at)
                copy(lane, number, {**env, last: env[last] + lane})

        def in_runs(number: AnyValue, at: Env) -> None:
            with self.loop((wide - 1) // (exprs.known(length) or wide) + 2) as index:
                first = (column // length + index) * length - column
                low, high = exprs.tir.max(first, 0), exprs.tir.min(first + length, wide)
                with self.T.serial(low, high) as lane:
                    env = self._env(batch, 0, column + first, at)
                    copy(lane, number, {**env, last: lane - first})

        def one_by_one() -> None:
            with self.loop(wide) as lane:
                env = self._env(batch, 0, column + lane, {})
                self._terms(lambda number, at: copy(lane, number, {**env, **at}))

        *_, (last, length) = found.columns or [(None, 1)]
        near = exprs.slope(found.vector, found.columns[-1:], found.zeros) in (1, 2, 3)
        if exprs.slope(found.vector, found.columns, found.zeros) == 1 and exprs.known(length):
            self._terms(in_vectors)
        elif near and exprs.known(length):
            self._terms(in_runs)
        else:
            one_by_one()
        return packed

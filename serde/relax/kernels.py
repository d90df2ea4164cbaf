"""Sums of products as loops that a processor runs well.

Blocks of the result stay in registers while their sums are made. Vectors lie along the columns of
the result, for which an operand is packed once for all rows; or along the sum, where both operands
have it so in memory. A last block that is not whole begins earlier, and makes some results again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any as AnyValue, Final

from serde.core import replace
from serde.relax.contractions import Contraction, Env, Expressions

__all__ = ["write_kernel"]

_SERIAL: Final = 2**16
"""Products, or numbers that are copied, for which threads cost more than they give."""

_FEW_ROWS: Final = 3
"""For which columns are not packed."""

_VECTORS: Final = 12
"""Of results in registers: most processors have sixteen."""


def write_kernel(exprs: Expressions, found: Contraction, bits: int) -> AnyValue:
    """Return the function of a sum of products, for vectors of so many bits."""
    body = exprs.framework.write_statements(_Kernel(exprs, found, bits).write)
    root = found.function.body  # Passes of TVM ask for the block around all.
    block = type(root.block)([], [], [], root.block.name_hint, body)
    return found.function.with_body(type(root)([], root.predicate, block))


def _is_pointwise(exprs: Expressions, found: Contraction) -> bool:
    """Whether there is one block behind the sums, which reads each where it writes."""
    last, result = found.after[-1] if found.after else found.main, found.main.body.buffer
    reads = [x for x in last.reads if result.same_as(exprs.source(x))]
    if len(found.after) != 1 or len(reads) != 1 or len(reads[0].region) != len(last.iter_vars):
        return False
    return all(
        place.min.same_as(own.var)
        and exprs.known(place.extent) == 1
        and exprs.framework.are_equal(own.dom.extent, length)
        for place, own, length in zip(reads[0].region, last.iter_vars, result.shape, strict=True)
    )


class _Kernel:
    def __init__(self, exprs: Expressions, found: Contraction, bits: int) -> None:
        self.exprs, self.T = exprs, exprs.framework.statements
        value = found.main.body.value
        self.dtype = str(getattr(value, "dtype", None) or value.ty.dtype)
        self.lanes = lanes = bits // exprs.framework.tvm.DataType(self.dtype).bits
        along = exprs.slope(found.vector, found.columns, found.zeros)
        axes = found.rows, found.columns, found.sum
        rows, columns, terms = (exprs.known(exprs.size(each)) for each in axes)
        in_sum = [exprs.slope(x, found.sum, found.zeros) for x in (found.vector, found.broadcast)]
        self.inner = in_sum == [1, 1] and along != 1 and (terms is None or terms >= lanes)
        self.packed = not self.inner and (rows is None or rows > _FEW_ROWS)
        if not (self.inner or self.packed or along == 1) and len(found.columns) > 1:
            *others, last = found.columns
            found = replace(found, batch=[*found.batch, *others], columns=[last])
            columns = exprs.known(last[1])
        self.found, self.tile = found, self._tile(rows, columns)
        self.sizes = [exprs.size(x) for x in (found.batch, found.rows, found.columns, found.sum)]
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
        high = 4 if vectors == 3 or (rows and rows % 4 == 0) else _VECTORS // vectors
        return min(high, rows or high), min(vectors * lanes, columns or vectors * lanes)

    def write(self) -> None:
        """Write the statements."""
        for buffer in self.found.function.body.block.alloc_buffers:
            self.T.add_to_parent(self.exprs.tir.AllocBuffer(buffer, {}))
        for each in self.found.before:
            self._copy(each)
        count = self._count(1)
        with self._loop(self.exprs.simplify(self.sizes[0] * count), *self.sizes) as task:
            self._block(self.exprs.simplify(task // count), self._start(1, task % count))
        for each in self.found.after if self.last is None else ():
            self._copy(each)

    def _loop(self, count: AnyValue, *work: AnyValue) -> AnyValue:
        """Return a loop, in threads if there is much work."""
        much = math.prod(_SERIAL if x is None else x for x in map(self.exprs.known, work or (0,)))
        made = self.T.parallel if much >= _SERIAL else self.T.serial
        return made(self.exprs.number(0), self.exprs.number(count))

    def _copy(self, block: AnyValue) -> None:
        """Write a block that sums nothing."""
        *outer, last = [(each.var, each.dom.extent) for each in block.iter_vars]
        count = self.exprs.size(outer)
        with self._loop(count, count, last[1]) as i, self._loop(last[1]) as j:
            self._assign(block, {**self.exprs.places(outer, i), last[0]: j}, block.body.value)

    def _assign(self, block: AnyValue, env: Env, value: AnyValue) -> None:
        value, *indices = self.exprs.at([value, *block.body.indices], env)
        self.T.buffer_store(block.body.buffer, value, indices)

    def _store(self, env: Env, value: AnyValue) -> None:
        """Write a sum, and what is made of it."""
        self._assign(self.found.main, env, value)
        if self.last is not None:
            pairs = zip(self.last.iter_vars, self.found.main.body.indices, strict=True)
            self._assign(self.last, {x.var: env[y] for x, y in pairs}, self.last.body.value)

    def _vector(self, width: int) -> AnyValue:
        return self.T.vectorized(self.exprs.number(0), self.exprs.number(width))

    def _room(self, count: AnyValue, scope: str) -> AnyValue:
        held = self.T.alloc_buffer((count,), self.dtype, scope=scope, layout=None)
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
            with self._loop(axes[done][1]) as index:
                self._terms(write, done + 1, *at, index)
            return
        number = self.exprs.number(0)
        for (_, length), index in zip(axes, at, strict=True):
            number = self.exprs.simplify(number * length + index)
        write(number, {variable: x for (variable, _), x in zip(axes, at, strict=True)})

    def _block(self, batch: AnyValue, column: AnyValue) -> None:
        """Write the blocks of all rows at some columns."""
        (high, wide), found = self.tile, self.found
        width = min(self.lanes, wide)
        packed = self._pack(batch, column) if self.packed else None
        with self._loop(self._count(0)) as index:
            row = self._start(0, index)
            if self.inner:
                self._sum_along(
                    batch, [(row + i, column + j) for i in range(high) for j in range(wide)]
                )
                return
            firsts = [min(first, wide - width) for first in range(0, wide, width)]
            cells = [(row + i, first) for i in range(high) for first in firsts]
            sums = self._zeros(len(cells), width)

            def add(number: AnyValue, at: Env) -> None:
                for cell, (own, first) in enumerate(cells):
                    with self._vector(width) as lane:
                        env = self._env(batch, own, column + first + lane, at)
                        one, other = self.exprs.at([found.broadcast, found.vector], env)
                        if packed is not None:
                            other = packed[number * wide + first + lane]
                        sums[cell * width + lane] = sums[cell * width + lane] + one * other

            self._terms(add)
            for cell, (own, first) in enumerate(cells):
                with self._vector(width) as lane:
                    env = self._env(batch, own, column + first + lane, {})
                    self._store(env, sums[cell * width + lane])

    def _zeros(self, count: int, width: int) -> AnyValue:
        made = self._room(count * width, "local")
        for index in range(count):
            with self._vector(width) as lane:
                made[index * width + lane] = self.exprs.tir.const(0, self.dtype)
        return made

    def _sum_along(self, batch: AnyValue, cells: list[tuple[AnyValue, AnyValue]]) -> None:
        """Write a block whose vectors lie along the sum."""
        exprs, size = self.exprs, self.sizes[3]
        width = self.lanes * (2 if 2 * len(cells) <= _VECTORS else 1)
        sums, others = self._zeros(len(cells), width), self._zeros(len(cells), 1)
        whole, rest = exprs.simplify(size // width), exprs.simplify(size % width)

        def add(cell: int, sums: AnyValue, place: AnyValue, number: AnyValue) -> None:
            env = self._env(batch, *cells[cell], exprs.places(self.found.sum, number))
            one, other = exprs.at([self.found.broadcast, self.found.vector], env)
            sums[place] = sums[place] + one * other

        with self._loop(whole) as number:
            for cell in range(len(cells)):
                with self._vector(width) as lane:
                    add(cell, sums, cell * width + lane, number * width + lane)
        with self._loop(rest) as number:
            for cell in range(len(cells)):
                add(cell, others, cell, whole * width + number)
        for cell, place in enumerate(cells):
            parts = [sums[cell * width + lane] for lane in range(width)]
            while len(parts) > 1:
                parts = [x + y for x, y in zip(parts[::2], parts[1::2], strict=True)]
            self._store(self._env(batch, *place, {}), parts[0] + others[cell])

    def _pack(self, batch: AnyValue, column: AnyValue) -> AnyValue:
        """Write copies of some columns, term by term, and return where they are."""
        exprs, found, wide = self.exprs, self.found, self.tile[1]
        packed = self._room(exprs.simplify(self.sizes[3] * wide), "global")

        def copy(lane: AnyValue, number: AnyValue, env: Env) -> None:
            packed[number * wide + lane] = exprs.at([found.vector], env)[0]

        def in_vectors(number: AnyValue, at: Env) -> None:
            with self._vector(wide) as lane:
                env = self._env(batch, 0, column, at)
                copy(lane, number, {**env, last: env[last] + lane})

        def one_by_one() -> None:
            with self._loop(wide) as lane:
                env = self._env(batch, 0, column + lane, {})
                self._terms(lambda number, at: copy(lane, number, {**env, **at}))

        *_, (last, length) = found.columns or [(None, 1)]
        near = exprs.slope(found.vector, found.columns[-1:], found.zeros) == 1
        if exprs.slope(found.vector, found.columns, found.zeros) == 1 and exprs.known(length):
            self._terms(in_vectors)
        elif near and (exprs.known(length) or wide) >= wide:
            with self.T.If(column % length + wide <= length):
                with self.T.Then():
                    self._terms(in_vectors)
                with self.T.Else():
                    one_by_one()
        else:
            one_by_one()
        return packed

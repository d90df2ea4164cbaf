"""From the tables of a file to a model as plain data; values stay ranges of the file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np

from serde.core import MAX_RANK, OpenFile, Weight, dataclass, numpy_dtype
from serde.errors import FormatError
from serde.io.contained import member_path
from serde.io.cursor import Cursor
from serde.io.packed import PackedWeight
from serde.tflite.facts import METADATA_NAME, Facts, read_facts
from serde.tflite.flatbuffer import Table, root_table
from serde.tflite.model import Operator, Quantization, Signature, Subgraph, Tensor, TfliteModel
from serde.tflite.schema import code_names, option_values
from serde.tflite.sparsity import sparse_weight

__all__ = ["IDENTIFIER", "read_file"]

IDENTIFIER: Final = b"TFL3"
"""Bytes 4 to 8 of a file."""

_PACKED: Final = {"int4": 4, "uint4": 4, "int2": 2}
"""Types of which a byte holds several elements, by their bits."""

_BLOCKWISE: Final = 2
"""The kind of details of a quantisation that are blocks."""


def read_file(source: str | bytes) -> TfliteModel:
    """Return the model in a file, or in its bytes.

    Raises:
        FormatError: It is not sound.
    """
    if isinstance(source, bytes):
        return _Reader(Cursor(source), ExitStack()).model()
    with ExitStack() as opened:
        cursor = Cursor(opened.enter_context(OpenFile.open(source)))
        return _Reader(cursor, opened).model()


@dataclass(frozen=True, slots=True)
class _Range:
    """Bytes of a file."""

    cursor: Cursor
    start: int
    count: int

    def weight(self, shape: tuple[int, ...], dtype: str) -> Weight:
        """Return the values that they are, without reading them."""
        self.cursor.at = min(self.start, self.cursor.size)
        return self.cursor.weight(shape, dtype, "values")

    def raw(self) -> Weight:
        """Return the bytes themselves."""
        return self.weight((self.count,), "uint8")


class _Reader:
    def __init__(self, cursor: Cursor, opened: ExitStack) -> None:
        if cursor.head(8)[4:] != IDENTIFIER:
            raise FormatError("expected TFL3 at byte 4", path=cursor.path)
        self._cursor = cursor
        self._stack = opened
        self._others: dict[str, Cursor] = {}
        self._root = root_table(cursor)
        self._buffers = self._root.tables(12)
        self._groups = [each.text(4) for each in self._root.tables(20)]
        self._external = {each.number(4, "I"): each for each in self._root.tables(22)}
        self._types = code_names("TensorType")
        self._files = [] if cursor.path is None else [cursor.path]

    def model(self) -> TfliteModel:
        """Return the model."""
        version = self._root.number(4, "I")
        if version != 3:
            raise self._root.fault(f"expected version 3 of the schema, found {version}")
        codes = [self._code(each) for each in self._root.tables(6)]
        subgraphs = [self._subgraph(each, codes) for each in self._root.tables(8)]
        if not subgraphs:
            raise self._root.fault("a model without a subgraph")
        metadata = {x.text(4): self._bytes(x.number(6, "I")) for x in self._root.tables(16)}
        own = metadata.get(METADATA_NAME)
        return TfliteModel(
            subgraphs,
            [self._signature(each, subgraphs) for each in self._root.tables(18)],
            self._root.text(10),
            metadata,
            self._cursor.path,
            tuple(self._files),
            Facts() if own is None else read_facts(own.array().tobytes(), self._cursor),
        )

    def _code(self, table: Table) -> tuple[str, int, bool]:
        """Return name and version of an operator, and whether it is none of the schema's."""
        code = max(table.number(4, "b"), table.number(10, "i"))
        name = code_names("BuiltinOperator").get(code)
        if name == "CUSTOM":
            return table.text(6), table.number(8, "i", 1), True
        return name or f"operator {code}", table.number(8, "i", 1), False

    def _subgraph(self, table: Table, codes: Sequence[tuple[str, int, bool]]) -> Subgraph:
        tensors = [self._tensor(each) for each in table.tables(4)]
        count = len(tensors)
        return Subgraph(
            table.text(12),
            tensors,
            self._indices(table, 6, count),
            self._indices(table, 8, count),
            [self._operator(each, codes, count) for each in table.tables(10)],
        )

    def _indices(self, table: Table, slot: int, count: int, least: int = 0) -> tuple[int, ...]:
        found = tuple(map(int, table.numbers(slot, "<i4")))
        wrong = next((each for each in found if not least <= each < count), None)
        if wrong is not None:
            raise table.fault(f"expected the number of one of {count} tensors, found {wrong}")
        return found

    def _operator(
        self, table: Table, codes: Sequence[tuple[str, int, bool]], count: int
    ) -> Operator:
        index = table.number(4, "I")
        if index >= len(codes):
            raise table.fault(f"expected one of {len(codes)} operator codes, found {index}")
        name, version, is_custom = codes[index]
        where = table.bytes_range(14)
        return Operator(
            name,
            version,
            self._indices(table, 6, count, -1),
            self._indices(table, 8, count, -1),
            {} if is_custom else self._options(table),
            b"" if where is None else self._range(*where).raw().array().tobytes(),
            is_custom,
        )

    def _options(self, table: Table) -> dict[str, object]:
        """Return the options of an operator, which lie in one of two fields."""
        for kind, slot in (("BuiltinOptions", 10), ("BuiltinOptions2", 26)):
            number = table.number(slot, "B")
            found = table.table(slot + 2) if number else None
            if found is not None:
                name = code_names(kind).get(number)
                if name is None:
                    raise table.fault(f"options of the unknown kind {number}")
                return option_values(found, name)
        return {}

    def _tensor(self, table: Table) -> Tensor:
        number = table.number(6, "b")
        dtype = self._types.get(number)
        if dtype is None:
            raise table.fault(f"a tensor of the unknown type {number}")
        declared = table.numbers(4, "<i4")
        signature = table.numbers(18, "<i4")
        shape = tuple(map(int, signature if len(signature) == len(declared) else declared))
        if len(shape) > MAX_RANK or any(each < -1 for each in shape):
            raise table.fault(f"expected lengths of at most {MAX_RANK} axes, found {shape[:40]}")
        name, is_variable = table.text(10), bool(table.number(14, "B"))
        buffer = table.number(8, "I")
        kind = dtype.lower()
        values = None if is_variable else self._values(table, buffer, shape, kind)
        quantization = self._quantization(table.table(12))
        return Tensor(name, shape, kind, buffer, values, quantization, is_variable)

    def _values(
        self, table: Table, number: int, shape: tuple[int, ...], dtype: str
    ) -> Weight | None:
        """Return the values of a tensor, bytes where they are texts."""
        where = self._external_range(table) or self._buffer_range(number, table)
        if where is None or not where.count:
            return None
        if dtype in ("string", "resource", "variant"):
            return where.raw()

        def stored(shape: tuple[int, ...]) -> Weight:
            bits = _PACKED.get(dtype)
            size = math.prod(shape)
            expected = -(-size * bits // 8) if bits else size * numpy_dtype(dtype).itemsize
            if -1 in shape or where.count != expected:
                message = f"expected {expected} bytes for {dtype}{list(shape)}, found {where.count}"
                raise table.fault(f"{table.text(10)}: {message}")
            if bits:
                return PackedWeight(where.raw(), shape, dtype, bits)
            return where.weight(shape, dtype)

        sparsity = table.table(16)
        if sparsity is None or -1 in shape:
            return stored(shape)
        most = self._cursor.size
        return sparse_weight(sparsity, table.text(10), shape, most, lambda size: stored((size,)))

    def _buffer_range(self, number: int, table: Table) -> _Range | None:
        """Return the bytes of a buffer; the first is empty by rule."""
        if number == 0:
            return None
        if number >= len(self._buffers):
            message = f"expected one of {len(self._buffers)} buffers, found {number}"
            raise table.fault(message)
        buffer = self._buffers[number]
        where = buffer.bytes_range(4)
        offset, size = buffer.number(6, "Q"), buffer.number(8, "Q")
        if offset > 1 and size > 0:
            return self._range(offset, size)
        return None if where is None else self._range(*where)

    def _external_range(self, table: Table) -> _Range | None:
        """Return the bytes in another file that a tensor names."""
        number = table.number(24, "I")
        if not number:
            return None
        found = self._external.get(number)
        if found is None or found.number(6, "I") >= len(self._groups):
            raise table.fault(f"no external buffer has the number {number}")
        if self._cursor.path is None:
            raise table.fault("external buffers beside bytes in memory")
        folder = str(Path(self._cursor.path).parent)
        path = member_path(folder, self._groups[found.number(6, "I")])
        if path not in self._others:
            self._files.append(path)
            opened = self._stack.enter_context(OpenFile.open(path))
            self._others[path] = Cursor(opened)
        return _Range(self._others[path], found.number(8, "Q"), found.number(10, "Q"))

    def _range(self, position: int, count: int) -> _Range:
        if position + count > self._cursor.size:
            raise FormatError(
                f"a buffer: expected {count} bytes, found the end of the file",
                path=self._cursor.path,
                offset=min(position, self._cursor.size),
            )
        return _Range(self._cursor, position, count)

    def _bytes(self, number: int) -> Weight:
        found = self._buffer_range(number, self._root)
        return (found or self._range(0, 0)).raw()

    def _quantization(self, table: Table | None) -> Quantization | None:
        if table is None:
            return None
        scales, zeros = table.numbers(8, "<f4"), table.numbers(10, "<i8")
        axis = table.number(16, "i")
        if table.number(12, "B") == _BLOCKWISE:
            details = table.table(14)
            if details is None or details.number(8, "i") < 1:
                raise table.fault("blocks without a length")
            block = details.number(8, "i"), details.number(4, "i"), details.number(6, "i")
            return Quantization(scales, zeros, axis, block)
        if not len(scales):
            return None
        if not np.isfinite(scales).all() or (scales <= 0).any():
            raise table.fault(f"expected scales above zero, found {scales[:4]}")
        if len(zeros) not in (0, 1, len(scales)):
            message = f"expected a zero point for each of {len(scales)} scales, found {len(zeros)}"
            raise table.fault(message)
        zeros = zeros if len(zeros) else np.zeros(1, np.int64)
        return Quantization(scales, zeros, axis)

    def _signature(self, table: Table, subgraphs: Sequence[Subgraph]) -> Signature:
        index = table.number(12, "I")
        if index >= len(subgraphs):
            raise table.fault(f"expected one of {len(subgraphs)} subgraphs, found {index}")
        count = len(subgraphs[index].tensors)
        inputs, outputs = dict[str, int](), dict[str, int]()
        for slot, found in ((4, inputs), (6, outputs)):
            for each in table.tables(slot):
                number = each.number(6, "I")
                if number >= count:
                    raise each.fault(f"expected one of {count} tensors, found {number}")
                found[each.text(4)] = number
        return Signature(table.text(8), index, inputs, outputs)

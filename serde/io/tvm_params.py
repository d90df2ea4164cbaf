"""TVM's parameter files: names, then arrays, read as file ranges and written as a stream.

Layout (little-endian): ``u64 0xF7E58D4F05049CB7, u64 reserved, u64 count``, each
name as ``u64 length`` and UTF-8, ``u64 count`` again, the arrays, each in the
container of :mod:`serde.relay.text.containers`. The reserved word, 0 in TVM's files, is
the mark of :mod:`serde.io.pairs` in those of a pair.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Final

from serde.core import MAX_TENSORS, OpenFile, Weight, expect, numpy_dtype
from serde.io.atomic import write_all, write_weight
from serde.io.cursor import Cursor
from serde.io.pairs import UNMARKED
from serde.relay.text.containers import (
    HEAD_BYTES,
    RELAY_CODES,
    ElementCodes,
    container_head,
    unpack_head,
)

__all__ = ["PARAMS_HEAD", "param_chunks", "read_params", "write_params"]

_MAGIC: Final = 0xF7E58D4F05049CB7
# The least that a name, and an array of rank 0 without values, take.
_LEAST_NAME: Final = 8
_LEAST_ARRAY: Final = HEAD_BYTES + 8

PARAMS_HEAD: Final = struct.pack("<Q", _MAGIC)
"""First bytes of every parameter file."""


def read_params(source: OpenFile | bytes, codes: ElementCodes = RELAY_CODES) -> dict[str, Weight]:
    """Return the arrays of a parameter file by name, in its order; values are not read.

    Args:
        source: The file.
        codes: How it writes element types.

    Raises:
        FormatError: The bytes are not such a file.
    """
    cursor = Cursor(source)
    if cursor.head(8) != PARAMS_HEAD:
        found = cursor.head(8).hex(" ") or "nothing"
        raise cursor.error(f"expected a parameter file of TVM's, found {found}")
    cursor.at = 8
    cursor.u64("reserved word")
    names = _read_names(cursor)
    count = cursor.u64("number of arrays")
    if count != len(names):
        raise cursor.error(f"expected {len(names)} arrays, found {count}", back=8)
    if count * _LEAST_ARRAY > cursor.left:
        raise cursor.error(f"{count} arrays do not fit into {cursor.left} bytes", back=8)
    arrays = {name: _read_array(cursor, name, codes) for name in names}
    if cursor.left:
        raise cursor.error(f"expected the end of the file, found {cursor.left} bytes")
    return arrays


def _read_names(cursor: Cursor) -> dict[str, None]:
    count = cursor.u64("number of names")
    if count > min(MAX_TENSORS, cursor.left // _LEAST_NAME):
        raise cursor.error(f"{count} names do not fit into {cursor.left} bytes", back=8)
    names: dict[str, None] = {}
    for _ in range(count):
        name = cursor.name()
        if name in names:
            raise cursor.error(f"the name {name!r} occurs twice")
        names[name] = None
    return names


def _read_array(cursor: Cursor, name: str, codes: ElementCodes) -> Weight:
    head = cursor.take(HEAD_BYTES, f"array {name}")
    try:
        rank, dtype = unpack_head(head, codes)
    except ValueError as error:
        raise cursor.error(f"array {name}: {error}", back=HEAD_BYTES) from None
    shape = cursor.numbers(f"{rank}q", "shape")
    if any(length < 0 for length in shape):
        raise cursor.error(f"a negative length in the shape {list(shape)}")
    # NumPy counts the bytes of even an empty array as if no axis had the length 0.
    if math.prod(length or 1 for length in shape) >= 2**60:
        raise cursor.error(f"the shape {list(shape)} is beyond any memory")
    expected = math.prod(shape) * numpy_dtype(dtype).itemsize
    count = cursor.u64("number of bytes")
    if count != expected:
        message = f"expected {expected} bytes for {dtype}{list(shape)}, found {count}"
        raise cursor.error(message, back=8)
    return cursor.weight(shape, dtype, "values")


def _file_head(names: Mapping[str, Weight], mark: int = UNMARKED) -> bytes:
    encoded = [name.encode("utf-8") for name in names]
    parts = [PARAMS_HEAD, struct.pack("<QQ", mark, len(encoded))]
    for name in encoded:
        parts += [struct.pack("<Q", len(name)), name]
    parts.append(struct.pack("<Q", len(encoded)))
    return b"".join(parts)


def param_chunks(params: Mapping[str, Weight]) -> Iterator[bytes | memoryview]:
    """Yield a parameter file piece by piece.

    Raises:
        RelayError: TVM's arrays cannot hold an element type.
    """
    yield _file_head(params)
    for weight in params.values():
        yield container_head(weight.shape, weight.dtype)
        yield from weight.chunks()


def write_params(
    params: Mapping[str, Weight],
    path: str | os.PathLike[str],
    *,
    mark: int = UNMARKED,
    codes: ElementCodes = RELAY_CODES,
) -> None:
    """Write a parameter file; bytes that lie in a file are copied from there.

    Args:
        params: Arrays by name.
        path: A file that does not exist yet.
        mark: Of the pair that it belongs to.
        codes: How it writes element types.

    Raises:
        RelayError: TVM's arrays cannot hold an element type.
        FormatError: A source file changed or shrank.
    """
    expect("bytes", sum(weight.nbytes for weight in params.values()))
    with open(path, "xb", buffering=0) as file:
        fd = file.fileno()
        write_all(fd, _file_head(params, mark))
        for name, weight in params.items():
            write_all(fd, container_head(weight.shape, weight.dtype, codes))
            write_weight(weight, fd, name)

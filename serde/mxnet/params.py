"""Parameter files: lists of NDArrays with names, of every version MXNet wrote.

Layout (little-endian): ``u64 0x112, u64 reserved, u64 count``, the arrays, ``u64 count
of names``, each name as ``u64 length`` and UTF-8. An array begins with a magic
number that tells its version; the oldest have none and begin with the rank:

=========== ======================================================================
no magic    ``u32 ndim``, ``u32`` dims
0xF993FAC8  ``i32 ndim``, ``i64`` dims
0xF993FAC9  ``i32`` storage, [storage shape,] ``i32 ndim``, ``i64`` dims
0xF993FACA  likewise; rank 0 is a scalar and -1 means no value
=========== ======================================================================

Then ``i32 i32`` device, ``i32`` type, [for each index array its type and
shape,] the values, [the index arrays]. An array without a value ends after
its shape. Definition: ``NDArray::Save`` and ``NDArray::LegacyLoad`` of MXNet.
The reserved word, 0 in MXNet's files, is the mark of :mod:`serde.io.pairs` in those of a pair.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Mapping

from serde.core import MAX_RANK, MAX_TENSORS, OpenFile, Weight, expect
from serde.errors import Unsupported
from serde.io.atomic import write_all, write_weight
from serde.io.cursor import Cursor
from serde.io.pairs import UNMARKED
from serde.mxnet.arrays import SparseWeight
from serde.mxnet.model import DTYPES

__all__ = ["LIST_MAGIC", "read_params", "write_params"]

LIST_MAGIC = 0x112

_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA

_CPU = struct.pack("<ii", 1, 0)

_STORAGE = {0: "default", 1: "row_sparse", 2: "csr"}

# The least that an array and its name take: a rank of 0 and an empty name.
_LEAST_ARRAY = 12


def read_params(source: OpenFile | bytes) -> tuple[list[str] | None, list[Weight | None]]:
    """Return the names (None if the list has none) and the arrays of a parameter file.

    Values are not read: an array of a file becomes a range of it. An array
    that was never given a value is None.

    Raises:
        FormatError: The bytes are not such a file.
    """
    cursor = Cursor(source)
    _check_magic(cursor)
    cursor.u64("reserved word")
    count = cursor.u64("number of arrays")
    if count > min(MAX_TENSORS, cursor.left // _LEAST_ARRAY) and count:
        raise cursor.error(f"{count} arrays do not fit into {cursor.size} bytes", back=8)
    arrays = [_read_array(cursor) for _ in range(count)]
    names = _read_names(cursor, count)
    if cursor.left:
        raise cursor.error(f"expected the end of the file, found {cursor.left} bytes")
    return names, arrays


def _check_magic(cursor: Cursor) -> None:
    head = cursor.head(8)
    if head == struct.pack("<Q", LIST_MAGIC):
        cursor.at = 8
        return
    found = head.hex(" ") or "nothing"
    if head.startswith(b"PK\x03\x04"):
        found = "a zip archive: the .npz of MXNet 2 holds bare arrays and is not read"
    elif head.lstrip()[:1] == b"{":
        found = "JSON text: symbol and parameters may be swapped"
    elif head.startswith(b"\x1f\x8b"):
        found = "gzip data"
    raise cursor.error(f"expected an MXNet parameter file, found {found}")


def _read_names(cursor: Cursor, arrays: int) -> list[str] | None:
    count = cursor.u64("number of names")
    if count not in (0, arrays):
        raise cursor.error(f"expected 0 or {arrays} names, found {count}", back=8)
    if count == 0 and arrays:
        return None
    names: dict[str, None] = {}
    for _ in range(count):
        name = cursor.name()
        if name in names:
            raise cursor.error(f"the name {name!r} occurs twice")
        names[name] = None
    return list(names)


def _read_array(cursor: Cursor) -> Weight | None:
    start = cursor.at
    magic = cursor.u32("array")
    if magic in (_V2, _V3):
        return _read_current(cursor, start, scalars=magic == _V3)
    if magic == _V1:
        shape = _read_shape(cursor, cursor.i32("rank"))
    elif magic <= MAX_RANK:
        shape = _check_shape(cursor, cursor.numbers(f"{magic}I", "shape"))
    else:
        raise cursor.error(f"expected an array, found the magic number {magic:#x}", back=4)
    if not shape:
        return None
    return cursor.weight(shape, _read_type(cursor), "values")


def _read_current(cursor: Cursor, start: int, *, scalars: bool) -> Weight | None:
    code = cursor.i32("storage")
    if code not in _STORAGE:
        raise cursor.error(f"expected a storage of 0, 1 or 2, found {code}", back=4)
    stored = _read_shape(cursor, cursor.i32("rank")) if code else ()
    rank = cursor.i32("rank")
    if rank == -1 and scalars:
        return None
    shape = _read_shape(cursor, rank)
    if not shape and not scalars:
        return None
    dtype = _read_type(cursor)
    if code == 0:
        return cursor.weight(shape, dtype, "values")
    return _SPARSE[code](cursor, start, shape, stored, dtype)


def _read_shape(cursor: Cursor, rank: int) -> tuple[int, ...]:
    if not 0 <= rank <= MAX_RANK:
        raise cursor.error(f"expected a rank from 0 to {MAX_RANK}, found {rank}", back=4)
    return _check_shape(cursor, cursor.numbers(f"{rank}q", "shape"))


def _check_shape(cursor: Cursor, shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(length < 0 for length in shape):
        raise cursor.error(f"a negative length in the shape {list(shape)}")
    # NumPy counts the bytes of even an empty array as if no axis had the length 0.
    if math.prod(length or 1 for length in shape) >= 2**60:
        raise cursor.error(f"the shape {list(shape)} is beyond any memory")
    return shape


def _read_type(cursor: Cursor) -> str:
    """Read device and type; where the array once was has no meaning here."""
    cursor.take(8, "device")
    return _type_name(cursor)


def _type_name(cursor: Cursor) -> str:
    flag = cursor.i32("type")
    if not 0 <= flag < len(DTYPES):
        raise cursor.error(f"expected a type from 0 to {len(DTYPES) - 1}, found {flag}", back=4)
    return DTYPES[flag]


def _read_index_head(cursor: Cursor, stored: int, most: int) -> tuple[str, tuple[int, ...]]:
    """Read what indices there are: as many as is `stored`, or if that is 0, up to `most`.

    MXNet writes how much is stored before it has waited for what computes it, which may leave 0,
    and the rest of the array behind that; it reads as much as there are indices, then.
    """
    dtype, shape = _read_vector_head(cursor)
    if shape[0] != stored and (stored or shape[0] > most):
        raise cursor.error(f"expected {stored} indices, found the shape {list(shape)}")
    return dtype, shape


def _read_vector_head(cursor: Cursor) -> tuple[str, tuple[int, ...]]:
    dtype = _type_name(cursor)
    if dtype not in ("int32", "int64"):
        raise cursor.error(f"expected indices of int32 or int64, found {dtype}", back=4)
    shape = _read_shape(cursor, cursor.i32("rank"))
    if len(shape) != 1:
        raise cursor.error(f"expected a vector of indices, found the shape {list(shape)}")
    return dtype, shape


def _read_row_sparse(
    cursor: Cursor, start: int, shape: tuple[int, ...], stored: tuple[int, ...], dtype: str
) -> SparseWeight:
    if not shape or not stored or stored[1:] != shape[1:] or stored[0] > shape[0]:
        raise cursor.error(f"row_sparse array {list(shape)} cannot store {list(stored)}")
    index_type, index_shape = _read_index_head(cursor, stored[0], shape[0])
    data = cursor.weight((*index_shape, *shape[1:]), dtype, "values")
    indices = cursor.weight(index_shape, index_type, "indices")
    return SparseWeight("row_sparse", shape, data, indices, path=cursor.path, offset=start)


def _read_csr(
    cursor: Cursor, start: int, shape: tuple[int, ...], stored: tuple[int, ...], dtype: str
) -> SparseWeight:
    if len(shape) != 2 or len(stored) != 1 or stored[0] > math.prod(shape):
        raise cursor.error(f"csr array {list(shape)} cannot store {list(stored)}")
    # One without values may lack the row pointers, too.
    pointer_type, pointer_shape = _read_vector_head(cursor)
    if pointer_shape[0] != shape[0] + 1 and (pointer_shape[0] or stored[0]):
        raise cursor.error(
            f"expected {shape[0] + 1} indices, found the shape {list(pointer_shape)}"
        )
    index_type, index_shape = _read_index_head(cursor, stored[0], math.prod(shape))
    data = cursor.weight(index_shape, dtype, "values")
    indptr = cursor.weight(pointer_shape, pointer_type, "row pointers")
    indices = cursor.weight(index_shape, index_type, "indices")
    return SparseWeight("csr", shape, data, indices, indptr, path=cursor.path, offset=start)


_SPARSE: dict[int, Callable[[Cursor, int, tuple[int, ...], tuple[int, ...], str], SparseWeight]] = {
    1: _read_row_sparse,
    2: _read_csr,
}


def write_params(
    params: Mapping[str, Weight], path: str | os.PathLike[str], *, mark: int = UNMARKED
) -> None:
    """Write a parameter file, the arrays one after another, each from where it is.

    Arrays have the newest form only where an older one could not say one of them: a scalar, or
    an axis of length 0. All have it then: MXNet loads a file in one semantics of shapes.

    Args:
        params: Arrays by full name, such as ``arg:weight``.
        path: A file that does not exist yet.
        mark: Of the pair that it belongs to; it stands in the reserved word.

    Raises:
        Unsupported: MXNet has no such dtype.
        FormatError: A source file changed or shrank.
    """
    expect("bytes", sum(weight.nbytes for weight in params.values()))
    plain = all(weight.shape and 0 not in weight.shape for weight in params.values())
    magic = _V2 if plain else _V3
    with open(path, "xb", buffering=0) as file:
        fd = file.fileno()
        write_all(fd, struct.pack("<QQQ", LIST_MAGIC, mark, len(params)))
        for name, weight in params.items():
            write_all(fd, _array_head(weight, magic))
            write_weight(weight, fd, name)
        encoded = [name.encode() for name in params]
        names = b"".join(struct.pack("<Q", len(name)) + name for name in encoded)
        write_all(fd, struct.pack("<Q", len(encoded)) + names)


def _array_head(weight: Weight, magic: int) -> bytes:
    if weight.dtype not in DTYPES:
        raise Unsupported(f"MXNet has no {weight.dtype}")
    shape = weight.shape
    head = struct.pack(f"<Iii{len(shape)}q", magic, 0, len(shape), *shape)
    return head + _CPU + struct.pack("<i", DTYPES.index(weight.dtype))

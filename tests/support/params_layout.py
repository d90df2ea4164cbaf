"""MXNet's parameter files written out byte by byte, from their documented layout."""

import struct
from collections.abc import Sequence

import numpy as np

LIST_MAGIC, V1, V2, V3 = 0x112, 0xF993FAC8, 0xF993FAC9, 0xF993FACA
DEFAULT, ROW_SPARSE, CSR = 0, 1, 2
CPU = struct.pack("<ii", 1, 0)
FLAGS = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "uint8": 3,
    "int32": 4,
    "int8": 5,
    "int64": 6,
    "bool": 7,
    "int16": 8,
    "uint16": 9,
    "uint32": 10,
    "uint64": 11,
    "bfloat16": 12,
}


def listing(arrays: Sequence[bytes], names: Sequence[str | bytes] = ()) -> bytes:
    """The list around arrays and names."""
    raw = [name if isinstance(name, bytes) else name.encode() for name in names]
    parts = [struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays)), *arrays]
    parts.append(struct.pack("<Q", len(raw)))
    parts.extend(struct.pack("<Q", len(name)) + name for name in raw)
    return b"".join(parts)


def shape64(shape: Sequence[int]) -> bytes:
    """A shape as written since version 1."""
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def flag(array: np.ndarray) -> bytes:
    """The number of an array's type."""
    return struct.pack("<i", FLAGS[array.dtype.name])


def legacy(array: np.ndarray) -> bytes:
    """An array as MXNet 0.5 to 0.10 wrote it."""
    head = struct.pack(f"<I{array.ndim}I", array.ndim, *array.shape)
    return head + CPU + flag(array) + array.tobytes()


def v1(array: np.ndarray) -> bytes:
    """An array as MXNet 0.11 wrote it."""
    return struct.pack("<I", V1) + shape64(array.shape) + CPU + flag(array) + array.tobytes()


def v2(array: np.ndarray, magic: int = V2) -> bytes:
    """A dense array as MXNet since 0.12 writes it; `magic` V3 is numpy mode's."""
    head = struct.pack("<Ii", magic, DEFAULT)
    return head + shape64(array.shape) + CPU + flag(array) + array.tobytes()


def sparse(
    storage: int, shape: Sequence[int], data: np.ndarray, indices: Sequence[np.ndarray]
) -> bytes:
    """An array in sparse storage; for csr the row pointers come first."""
    parts = [struct.pack("<Ii", V2, storage), shape64(data.shape), shape64(shape), CPU, flag(data)]
    parts.extend(flag(index) + shape64(index.shape) for index in indices)
    parts.append(data.tobytes())
    parts.extend(index.tobytes() for index in indices)
    return b"".join(parts)

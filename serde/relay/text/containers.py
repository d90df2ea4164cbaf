"""TVM's container of one array, as metadata, JSON graphs and parameter files hold it.

Layout (little-endian): ``u64`` magic, ``u64 0``, ``i32`` device type, ``i32``
device, ``i32`` rank, ``u8`` type code, ``u8`` bits, ``u16`` lanes, ``i64``
lengths, ``i64`` count of bytes, the values row-major.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import MAX_RANK, numpy_dtype
from serde.errors import RelayError

__all__ = [
    "DLPACK_CODES", "HEAD_BYTES", "RELAY_CODES", "ElementCodes", "array_bytes",
    "array_from_bytes", "container_head", "unpack_head",
]  # fmt: skip

_MAGIC: Final = 0xDD5E40F096B4A13F
_HEADER: Final = struct.Struct("<QQiiiBBH")
_CPU: Final = 1
_TYPE_CODES: Final = {"int": 0, "uint": 1, "float": 2}
_BITS: Final = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64)}
_NUMBERS: Final[dict[str, tuple[int, int]]] = {
    **{f"{kind}{bits}": (_TYPE_CODES[kind], bits) for kind in _BITS for bits in _BITS[kind]},
    "bfloat16": (4, 16),
}


class ElementCodes:
    """How containers write element types.

    Args:
        codes: Type code and bits of each element type.

    Attributes:
        codes: Likewise.
        names: The element type of each pair.
    """

    def __init__(self, codes: Mapping[str, tuple[int, int]]) -> None:
        self.codes = codes
        self.names = {code: name for name, code in codes.items()}


RELAY_CODES: Final = ElementCodes(
    {**_NUMBERS, "bool": (1, 1), "float8_e4m3fn": (6, 8), "float8_e5m2": (7, 8)}
)
"""Those of TVM up to 0.19, which had Relay."""

DLPACK_CODES: Final = ElementCodes(
    {
        **_NUMBERS,
        "bool": (6, 8),
        "float8_e4m3fn": (10, 8),
        "float8_e4m3fnuz": (11, 8),
        "float8_e5m2": (12, 8),
        "float8_e5m2fnuz": (13, 8),
        "float8_e8m0fnu": (14, 8),
    }
)
"""Those of TVM from 0.22, which are DLPack's."""

HEAD_BYTES: Final = _HEADER.size
"""Length of what stands before the lengths of the axes."""


def container_head(shape: tuple[int, ...], dtype: str, codes: ElementCodes = RELAY_CODES) -> bytes:
    """Return all of a container that stands before the values.

    Raises:
        RelayError: TVM has no such element type.
    """
    if dtype not in codes.codes:
        raise RelayError(f"TVM's arrays cannot hold {dtype}")
    code, bits = codes.codes[dtype]
    count = math.prod(shape) * ((bits + 7) // 8)
    head = _HEADER.pack(_MAGIC, 0, _CPU, 0, len(shape), code, bits, 1)
    return head + struct.pack(f"<{len(shape) + 1}q", *shape, count)


def unpack_head(raw: bytes, codes: ElementCodes = RELAY_CODES) -> tuple[int, str]:
    """Return the rank and the element type from the first bytes of a container.

    Raises:
        ValueError: They are not such a head.
    """
    if len(raw) < HEAD_BYTES:
        raise ValueError(f"an array container of {len(raw)} bytes has no header")
    magic, _, _, _, rank, code, bits, lanes = _HEADER.unpack_from(raw)
    if magic != _MAGIC:
        raise ValueError(f"expected an array container, found the number {magic:#x}")
    if not 0 <= rank <= MAX_RANK:
        raise ValueError(f"expected a rank from 0 to {MAX_RANK}, found {rank}")
    if lanes != 1 or (code, bits) not in codes.names:
        raise ValueError(f"an array of type code {code}, {bits} bits and {lanes} lanes")
    return rank, codes.names[code, bits]


def array_bytes(data: np.ndarray[AnyValue, AnyValue]) -> bytes:
    """Return an array in a container.

    Raises:
        RelayError: TVM has no such element type.
    """
    body = np.ascontiguousarray(data)
    if body.dtype.byteorder == ">":
        body = body.astype(body.dtype.newbyteorder("<"))
    return container_head(data.shape, data.dtype.name) + body.tobytes()


def array_from_bytes(
    raw: bytes, codes: ElementCodes = RELAY_CODES
) -> np.ndarray[AnyValue, AnyValue]:
    """Return the array in a container.

    Raises:
        ValueError: The bytes are not a container, or its sizes do not agree with them.
    """
    rank, name = unpack_head(raw, codes)
    start = HEAD_BYTES + 8 * rank + 8
    if len(raw) < start:
        raise ValueError(f"an array of rank {rank} does not fit {len(raw)} bytes")
    *shape, count = struct.unpack_from(f"<{rank + 1}q", raw, HEAD_BYTES)
    if any(length < 0 for length in shape):
        raise ValueError(f"an array has the shape {tuple(shape)}")
    dtype = numpy_dtype(name)
    expected = math.prod(shape) * dtype.itemsize
    if count != expected or len(raw) - start != expected:
        raise ValueError(
            f"an array of shape {tuple(shape)} and {name} takes {expected} bytes, "
            f"found {len(raw) - start}"
        )
    return np.frombuffer(raw, dtype, offset=start).reshape(shape).copy()

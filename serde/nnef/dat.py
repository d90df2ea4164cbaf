"""Tensor files (``.dat``): a header of 128 bytes, then the elements.

Source: section "Tensor File Format" of the NNEF 1.0 specification.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from serde.core import Array, FileWeight, OpenFile, Weight, dataclass
from serde.errors import FormatError, Unsupported
from serde.io.packed import HighFirstWeight

__all__ = ["HEADER_BYTES", "read_dat", "write_header"]

HEADER_BYTES: Final = 128
MAX_RANK: Final = 8

_MAGIC: Final = b"\x4e\xef"
_VERSION: Final = b"\x01\x00"
_FLOAT, _UINT, _QUINT, _QINT, _INT, _BOOL = range(6)
_LAYOUT: Final = struct.Struct("<2s2s2I8I2I19I")
_KINDS: Final = {_FLOAT: "float", _UINT: "uint", _QUINT: "uint", _QINT: "int", _INT: "int"}
_WIDTHS: Final = {"float": (16, 32, 64), "uint": (8, 16, 32, 64), "int": (8, 16, 32, 64)}


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of a tensor file.

    Attributes:
        weight: The elements.
        quantized: Whether they are marked as quantised integers.
    """

    weight: Weight
    quantized: bool


def read_dat(opened: OpenFile) -> Stored:
    """Return the tensor of a file, whose elements stay there.

    Raises:
        FormatError: The header is malformed, or is not that of a file of this size.
    """
    if opened.size < HEADER_BYTES:
        raise FormatError(
            f"expected a header of {HEADER_BYTES} bytes, found {opened.size}", path=opened.path
        )
    header = bytearray(HEADER_BYTES)
    opened.read_into(header, 0)
    magic, version, length, rank, *rest = _LAYOUT.unpack(bytes(header))
    extents, (bits, kind), reserved = rest[:MAX_RANK], rest[8:10], rest[10:]
    if magic != _MAGIC:
        raise FormatError(f"expected a tensor file, found {magic!r}", path=opened.path, offset=0)
    if version != _VERSION:
        found = f"{version[0]}.{version[1]}"
        raise FormatError(f"expected version 1.0, found {found}", path=opened.path, offset=2)
    if length != opened.size - HEADER_BYTES:
        raise FormatError(
            f"the header claims {length} bytes of data, found {opened.size - HEADER_BYTES}",
            path=opened.path,
            offset=4,
        )
    if rank > MAX_RANK:
        raise FormatError(
            f"expected at most {MAX_RANK} axes, found {rank}", path=opened.path, offset=8
        )
    shape = tuple(extents[:rank])
    dtype = _dtype(kind, bits, reserved[0], opened.path)
    count = math.prod(shape)
    expected = (count * bits + 7) // 8
    if expected != length:
        raise FormatError(
            f"shape {shape} of {dtype} takes {expected} bytes, found {length}",
            path=opened.path,
            offset=12,
        )
    return Stored(_weight(opened, shape, dtype, bits, length), kind in (_QINT, _QUINT))


def _dtype(kind: int, bits: int, reserved: int, path: str) -> str:
    if kind == _BOOL and bits in (1, 8):
        return "bool"
    # Files of the first writers mark signed integers so.
    name = "int" if kind == _UINT and reserved else _KINDS.get(kind)
    if name is None or bits not in _WIDTHS[name]:
        raise FormatError(f"no item type {kind} has {bits} bits", path=path, offset=44)
    return f"{name}{bits}"


def _weight(opened: OpenFile, shape: tuple[int, ...], dtype: str, bits: int, length: int) -> Weight:
    stored = opened.range(HEADER_BYTES, length)
    if dtype != "bool":
        return FileWeight(stored, shape, dtype)
    codes: Weight = FileWeight(stored, (length,), "uint8")
    if bits == 1:
        codes = HighFirstWeight(codes, 1, math.prod(shape))
    return _LogicalWeight(codes).reshaped(shape)


class _LogicalWeight(Weight):
    """Logical values, of which a code of one byte each tells whether it is not zero.

    Args:
        codes: The codes, a weight of one axis.
    """

    def __init__(self, codes: Weight) -> None:
        self.shape = codes.shape
        self.dtype = "bool"
        self._codes = codes

    def rows(self, start: int, stop: int) -> Array:
        """Return values `start` to `stop`."""
        return self._codes.rows(start, stop) != 0


def write_header(shape: tuple[int, ...], dtype: str, *, quantized: bool = False) -> bytes:
    """Return the header of a tensor file.

    Args:
        shape: Lengths of the axes.
        dtype: dtype of the elements.
        quantized: Whether they are quantised integers.

    Raises:
        Unsupported: A tensor file holds no such tensor.
    """
    if len(shape) > MAX_RANK:
        raise Unsupported(f"tensor files hold at most {MAX_RANK} axes, found {len(shape)}")
    name = dtype.rstrip("0123456789")
    bits = 1 if dtype == "bool" else int(dtype[len(name) :] or 0)
    if dtype != "bool" and bits not in _WIDTHS.get(name, ()):
        raise Unsupported(f"tensor files hold no {dtype}")
    kind = {"bool": _BOOL, "float": _FLOAT, "uint": _UINT, "int": _INT}[name]
    if quantized:
        if kind not in (_UINT, _INT):
            raise Unsupported(f"quantised data are integers, found {dtype}")
        kind = {_UINT: _QUINT, _INT: _QINT}[kind]
    length = (math.prod(shape) * bits + 7) // 8
    if length >= 2**32 or any(extent >= 2**32 for extent in shape):
        raise Unsupported(f"tensor files hold less than 4 GiB, found shape {shape} of {dtype}")
    extents = (*shape, *[0] * (MAX_RANK - len(shape)))
    return _LAYOUT.pack(_MAGIC, _VERSION, length, len(shape), *extents, bits, kind, *[0] * 19)

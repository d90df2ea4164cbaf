"""The element types of ONNX tensors and how their values lie in bytes.

Source: onnx.proto, ``TensorProto.DataType`` and the comments of its data
fields. Types narrower than a byte are packed from the lowest bits up, and the
last byte is filled with zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from serde.weights import Array, Weight, numpy_dtype

__all__ = ["CODES", "ELEMENTS", "Element", "PackedWeight", "packed_chunks"]

_BLOCK = 2**20
"""Elements that are packed at a time; a multiple of every group."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element type.

    Attributes:
        code: Its number in ``TensorProto.DataType``.
        dtype: Its name in NumPy or ml_dtypes.
        bits: Bits of one element in ``raw_data``.
        field: The typed field of ``TensorProto`` that may hold it instead.
        per_entry: Entries of that field for one element; below 1 where an entry holds several.
    """

    code: int
    dtype: str
    bits: int
    field: str
    per_entry: float = 1

    def nbytes(self, size: int) -> int:
        """Return the length of `size` elements in ``raw_data``."""
        return -(-size * self.bits // 8)

    def entries(self, size: int) -> int:
        """Return how many entries of the typed field hold `size` elements."""
        return math.ceil(size * self.per_entry)


ELEMENTS = MappingProxyType(
    {
        element.code: element
        for element in (
            Element(1, "float32", 32, "float_data"),
            Element(2, "uint8", 8, "int32_data"),
            Element(3, "int8", 8, "int32_data"),
            Element(4, "uint16", 16, "int32_data"),
            Element(5, "int16", 16, "int32_data"),
            Element(6, "int32", 32, "int32_data"),
            Element(7, "int64", 64, "int64_data"),
            Element(9, "bool", 8, "int32_data"),
            Element(10, "float16", 16, "int32_data"),
            Element(11, "float64", 64, "double_data"),
            Element(12, "uint32", 32, "uint64_data"),
            Element(13, "uint64", 64, "uint64_data"),
            Element(14, "complex64", 64, "float_data", 2),
            Element(15, "complex128", 128, "double_data", 2),
            Element(16, "bfloat16", 16, "int32_data"),
            Element(17, "float8_e4m3fn", 8, "int32_data"),
            Element(18, "float8_e4m3fnuz", 8, "int32_data"),
            Element(19, "float8_e5m2", 8, "int32_data"),
            Element(20, "float8_e5m2fnuz", 8, "int32_data"),
            Element(21, "uint4", 4, "int32_data", 1 / 2),
            Element(22, "int4", 4, "int32_data", 1 / 2),
            Element(23, "float4_e2m1fn", 4, "int32_data", 1 / 2),
            Element(24, "float8_e8m0fnu", 8, "int32_data"),
            Element(25, "uint2", 2, "int32_data", 1 / 4),
            Element(26, "int2", 2, "int32_data", 1 / 4),
            Element(27, "float6_e2m3fn", 6, "int32_data"),
            Element(28, "float6_e3m2fn", 6, "int32_data"),
        )
    }
)
"""Element types by number; strings, which have no fixed width, are not among them."""

CODES = MappingProxyType({element.dtype: element for element in ELEMENTS.values()})
"""Element types by dtype name."""


class PackedWeight(Weight):
    """Values narrower than a byte, packed as ONNX packs them.

    Args:
        packed: The bytes, a weight of one axis and dtype ``uint8``.
        shape: Lengths of the axes of the values.
        dtype: Name of their type.

    Raises:
        ValueError: The number of bytes is not what the shape needs.
    """

    def __init__(self, packed: Weight, shape: tuple[int, ...], dtype: str) -> None:
        self.shape = shape
        self.dtype = dtype
        self.packed = packed
        self._bits = CODES[dtype].bits
        if packed.size != CODES[dtype].nbytes(self.size):
            raise ValueError(f"{packed.size} bytes cannot hold {dtype}{list(shape)}")

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0, one element a byte."""
        row = math.prod(self.shape[1:])
        shape = (stop - start, *self.shape[1:]) if self.shape else ()
        first, last = start * row, stop * row
        per_group, group_bytes = _group(self._bits)
        skipped = first // per_group
        end = min(self.packed.size, -(-last // per_group) * group_bytes)
        data = self.packed.rows(skipped * group_bytes, end)
        value = _unpack(data, last - skipped * per_group, self._bits)
        value = value[first - skipped * per_group :]
        return value.view(numpy_dtype(self.dtype)).reshape(shape)


def packed_chunks(weight: Weight, bits: int) -> Iterator[bytes]:
    """Yield the values of `weight`, one element a byte, packed to `bits` each."""
    per_group, _ = _group(bits)
    rest = np.empty(0, np.uint8)
    for chunk in weight.chunks():
        values = np.concatenate([rest, np.frombuffer(chunk, np.uint8)])
        whole = len(values) // per_group * per_group
        for start in range(0, whole, _BLOCK):
            yield _pack(values[start : min(start + _BLOCK, whole)], bits)
        rest = values[whole:]
    if len(rest):
        yield _pack(rest, bits)


def _group(bits: int) -> tuple[int, int]:
    """Return how many elements, in how many bytes, begin and end with a byte."""
    total = math.lcm(bits, 8)
    return total // bits, total // 8


def _pack(values: Array, bits: int) -> bytes:
    per_group, group_bytes = _group(bits)
    padded = np.zeros((-(-len(values) // per_group), per_group), np.uint32)
    padded.reshape(-1)[: len(values)] = values & np.uint8((1 << bits) - 1)
    words = np.zeros(len(padded), "<u4")
    for index in range(per_group):
        words |= padded[:, index] << np.uint32(bits * index)
    packed = words.view(np.uint8).reshape(-1, 4)[:, :group_bytes]
    return packed.tobytes()[: -(-len(values) * bits // 8)]


def _unpack(data: Array, count: int, bits: int) -> Array:
    per_group, group_bytes = _group(bits)
    groups = -(-count // per_group)
    padded = np.zeros(groups * group_bytes, np.uint8)
    padded[: len(data)] = data
    values = np.empty((groups, per_group), np.uint8)
    for start in range(0, groups, _BLOCK):
        part = padded[start * group_bytes : (start + _BLOCK) * group_bytes]
        words = np.zeros((len(part) // group_bytes, 4), np.uint8)
        words[:, :group_bytes] = part.reshape(-1, group_bytes)
        flat = words.view("<u4").reshape(-1)
        for index in range(per_group):
            shifted = flat >> np.uint32(bits * index)
            values[start : start + _BLOCK, index] = shifted & np.uint32((1 << bits) - 1)
    return values.reshape(-1)[:count]

"""Values narrower than a byte, as ONNX and Core ML pack them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from serde.core.weights import Array, FileRange, Weight, numpy_dtype

__all__ = [
    "HighFirstWeight", "PackedBytes", "PackedWeight", "high_first_chunks", "stored_chunks",
    "stored_source",
]  # fmt: skip

_BLOCK = 2**20
"""Elements that are packed at a time; a multiple of every group."""


class PackedWeight(Weight):
    """Values narrower than a byte, packed from the lowest bits up, the last byte filled with zeros.

    Args:
        packed: The bytes, a weight of one axis and dtype ``uint8``.
        shape: Lengths of the axes of the values.
        dtype: Name of the type of one byte that stands for a value.
        bits: Bits of a value.

    Raises:
        ValueError: The number of bytes is not what the shape needs.
    """

    def __init__(self, packed: Weight, shape: tuple[int, ...], dtype: str, bits: int) -> None:
        self.shape = shape
        self.dtype = dtype
        self.packed = packed
        self.bits = bits
        if packed.size != -(-self.size * bits // 8):
            raise ValueError(f"{packed.size} bytes cannot hold {dtype}{list(shape)}")

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0, one element a byte."""
        row = math.prod(self.shape[1:])
        shape = (stop - start, *self.shape[1:]) if self.shape else ()
        first, last = start * row, stop * row
        per_group, group_bytes = _group(self.bits)
        skipped = first // per_group
        end = min(self.packed.size, -(-last // per_group) * group_bytes)
        data = self.packed.rows(skipped * group_bytes, end)
        value = _unpack(data, last - skipped * per_group, self.bits)
        value = value[first - skipped * per_group :]
        return value.view(numpy_dtype(self.dtype)).reshape(shape)


class PackedBytes(Weight):
    """The bytes that values of some bits are packed into, from the lowest bits up.

    Args:
        values: The values, one element a byte.
        bits: Bits of a value.
    """

    def __init__(self, values: Weight, bits: int) -> None:
        self.shape = (-(-values.size * bits // 8),)
        self.dtype = "uint8"
        self._values = values
        self._bits = bits

    @property
    def source(self) -> FileRange | None:
        """The file range that holds these bytes, if the values lie in a file so."""
        if isinstance(self._values, PackedWeight) and self._values.bits == self._bits:
            return self._values.packed.source
        return self._values.source if self._bits == 8 else None

    def rows(self, start: int, stop: int) -> Array:
        """Return bytes `start` to `stop`."""
        per_group, group_bytes = _group(self._bits)
        first, last = start // group_bytes, -(-stop // group_bytes)
        flat = self._values.reshaped((self._values.size,))
        values = flat.rows(first * per_group, min(flat.size, last * per_group))
        data = np.frombuffer(_pack(values.view(np.uint8), self._bits), np.uint8)
        begin = first * group_bytes
        return data[start - begin : stop - begin].copy()


class HighFirstWeight(Weight):
    """Values of 1 to 7 bits, packed from the highest bit of each byte down, a byte a value here.

    Args:
        packed: The bytes, a weight of one axis and dtype ``uint8``.
        bits: Bits of a value.
        size: Number of values.

    Raises:
        ValueError: The number of bytes is not what the values need.
    """

    def __init__(self, packed: Weight, bits: int, size: int) -> None:
        self.shape = (size,)
        self.dtype = "uint8"
        self.packed = packed
        self._bits = bits
        if packed.size != -(-size * bits // 8):
            raise ValueError(f"{packed.size} bytes cannot hold {size} values of {bits} bits")

    def rows(self, start: int, stop: int) -> Array:
        """Return values `start` to `stop`."""
        per_group, group_bytes = _group(self._bits)
        skipped = start // per_group
        end = min(self.packed.size, -(-stop // per_group) * group_bytes)
        data = self.packed.rows(skipped * group_bytes, end)
        count = stop - skipped * per_group
        result = np.empty(count, np.uint8)
        for first in range(0, count, _BLOCK):
            last = min(count, first + _BLOCK)
            part = np.unpackbits(data[first * self._bits // 8 : -(-last * self._bits // 8)])
            digits = part[: (last - first) * self._bits].reshape(-1, self._bits)
            result[first:last] = digits @ (1 << np.arange(self._bits - 1, -1, -1))
        return result[start - skipped * per_group :]


def stored_source(weight: Weight, bits: int | None = None) -> FileRange | None:
    """Return the file range that holds a weight as it is stored, packed if it is narrow.

    Args:
        weight: The weight.
        bits: Bits of a value as it is to be stored; as many as it has if left out.
    """
    if isinstance(weight, PackedWeight):
        return weight.packed.source if bits in (None, weight.bits) else None
    return weight.source if bits is None or bits >= 8 else None


def stored_chunks(weight: Weight, bits: int) -> Iterator[memoryview | bytes]:
    """Yield the bytes of a weight of `bits` a value as they are stored, in bounded pieces."""
    if bits >= 8:
        return weight.chunks()
    if isinstance(weight, PackedWeight) and weight.bits == bits:
        return weight.packed.chunks()
    return _pack_chunks(weight, bits)


def high_first_chunks(weight: Weight) -> Iterator[bytes]:
    """Yield truth values packed from the highest bit of each byte down, in bounded pieces."""
    return _grouped(weight, 8, lambda values: np.packbits(values).tobytes())


def _pack_chunks(weight: Weight, bits: int) -> Iterator[bytes]:
    """Yield the values of `weight`, one element a byte, packed to `bits` each."""
    per_group, _ = _group(bits)
    return _grouped(weight, per_group, lambda values: _pack(values, bits))


def _grouped(weight: Weight, per_group: int, pack: Callable[[Array], bytes]) -> Iterator[bytes]:
    """Yield values, one element a byte, packed in pieces of whole groups."""
    rest = np.empty(0, np.uint8)
    for chunk in weight.chunks():
        values = np.concatenate([rest, np.frombuffer(chunk, np.uint8)])
        whole = len(values) // per_group * per_group
        for start in range(0, whole, _BLOCK):
            yield pack(values[start : min(start + _BLOCK, whole)])
        rest = values[whole:]
    if len(rest):
        yield pack(rest)


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

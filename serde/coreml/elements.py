"""The element types of ML Programs, and how their values lie in ``weight.bin``.

Source: ``DataType`` of Apple's MIL.proto, and the storage format of coremltools' MILBlob.
"""

from __future__ import annotations

from types import MappingProxyType

from serde.core.records import dataclass

__all__ = ["BY_DTYPE", "BY_MIL", "UNSIGNED", "Element"]


@dataclass(frozen=True, slots=True)
class Element:
    """One element type.

    Attributes:
        name: MIL's name, such as ``fp16``.
        mil: Its number in ``DataType``.
        blob: Its number in a record of ``weight.bin``; None where that cannot hold it.
        bits: Bits of a value there.
        dtype: Name of the dtype of a value here; wider where NumPy has none so narrow.
    """

    name: str
    mil: int
    blob: int | None
    bits: int
    dtype: str

    def nbytes(self, size: int) -> int:
        """Return the length of `size` values in ``weight.bin``."""
        return -(-size * self.bits // 8)


_ELEMENTS = (
    Element("bool", 1, None, 8, "bool"), Element("fp16", 10, 1, 16, "float16"),
    Element("fp32", 11, 2, 32, "float32"), Element("fp64", 12, None, 64, "float64"),
    Element("bf16", 13, 5, 16, "bfloat16"), Element("int8", 21, 4, 8, "int8"),
    Element("int16", 22, 6, 16, "int16"), Element("int32", 23, 14, 32, "int32"),
    Element("int64", 24, None, 64, "int64"), Element("int4", 25, 8, 4, "int4"),
    Element("uint8", 31, 3, 8, "uint8"), Element("uint16", 32, 7, 16, "uint16"),
    Element("uint32", 33, 15, 32, "uint32"), Element("uint64", 34, None, 64, "uint64"),
    Element("uint4", 35, 11, 4, "uint4"), Element("uint2", 36, 10, 2, "uint2"),
    Element("uint1", 37, 9, 1, "uint8"), Element("uint6", 38, 13, 6, "uint8"),
    Element("uint3", 39, 12, 3, "uint8"), Element("fp8e4m3fn", 40, None, 8, "float8_e4m3fn"),
    Element("fp8e5m2", 41, None, 8, "float8_e5m2"),
)  # fmt: skip

BY_MIL = MappingProxyType({element.mil: element for element in _ELEMENTS})
"""Element types by number in ``DataType``; strings are not among them."""

BY_DTYPE = MappingProxyType(
    {each.dtype: each for each in _ELEMENTS if each.name not in ("uint1", "uint3", "uint6")}
)
"""Element types by the dtype that they hold exactly."""

_NARROW = ("uint1", "uint2", "uint3", "uint4", "uint6", "uint8")

UNSIGNED = MappingProxyType({each.bits: each for each in _ELEMENTS if each.name in _NARROW})
"""Integers of at most a byte without a sign, by their bits."""

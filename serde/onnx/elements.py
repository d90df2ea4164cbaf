"""The element types of ONNX tensors, how values lie in bytes, and where in messages.

Source: onnx.proto, ``TensorProto.DataType`` and the comments of its data
fields. Types narrower than a byte are packed from the lowest bits up, and the
last byte is filled with zeros.

Source: the field numbers of onnx.proto.
"""

from __future__ import annotations

import math
from types import MappingProxyType

from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.io.wire import MessageLayout

__all__ = ["CODES", "ELEMENTS", "LAYOUT", "MESSAGES", "Element", "element_dtype"]

STRING = 8
"""Number of the element type of strings, which is none of :data:`ELEMENTS`."""


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


def element_dtype(code: int) -> str:
    """Return the name of an element type.

    Raises:
        Unsupported: It is that of strings, or unknown.
    """
    if code == STRING:
        raise Unsupported("a tensor of strings has no counterpart in Relay")
    if code not in ELEMENTS:
        raise Unsupported(f"element type {code} is unknown")
    return ELEMENTS[code].dtype


MESSAGES = MappingProxyType(
    {
        "ModelProto": {
            7: ("graph", "GraphProto", False),
            20: ("training_info", "TrainingInfoProto", True),
            25: ("functions", "FunctionProto", True),
        },
        "GraphProto": {
            1: ("node", "NodeProto", True),
            5: ("initializer", "TensorProto", True),
            15: ("sparse_initializer", "SparseTensorProto", True),
        },
        "NodeProto": {5: ("attribute", "AttributeProto", True)},
        "AttributeProto": {
            5: ("t", "TensorProto", False),
            6: ("g", "GraphProto", False),
            10: ("tensors", "TensorProto", True),
            11: ("graphs", "GraphProto", True),
            22: ("sparse_tensor", "SparseTensorProto", False),
            23: ("sparse_tensors", "SparseTensorProto", True),
        },
        "SparseTensorProto": {
            1: ("values", "TensorProto", False),
            2: ("indices", "TensorProto", False),
        },
        "FunctionProto": {
            7: ("node", "NodeProto", True),
            11: ("attribute_proto", "AttributeProto", True),
        },
        "TrainingInfoProto": {
            1: ("initialization", "GraphProto", False),
            2: ("algorithm", "GraphProto", False),
        },
        "TensorProto": {},
    }
)
"""Messages that lead to a tensor: field number to name, message and whether it repeats."""

DATA_FIELDS = MappingProxyType({4: "float_data", 9: "raw_data", 10: "double_data"})
"""Fields of TensorProto whose bytes are the values as they lie in memory."""

LAYOUT = MessageLayout("ModelProto", MESSAGES, {"TensorProto": DATA_FIELDS})

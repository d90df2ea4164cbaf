"""Constants of ML Programs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import serde.core.allocation as allocation
from serde.core import Array, ArrayWeight, dataclass, numpy_dtype
from serde.coreml.elements import BY_MIL, Element
from serde.coreml.reader import value_shape
from serde.errors import FormatError, Unsupported
from serde.io.packed import PackedWeight

__all__ = ["NonTensor", "element_of", "read_value"]

_STRING = 2
_FIELDS = {
    "floats": ("float32",),
    "doubles": ("float64",),
    "bools": ("bool",),
    "longInts": ("int64", "uint64"),
    "ints": ("int32", "int16", "uint16", "int8", "uint8", "uint32", "int4", "uint4", "uint2"),
}
"""Fields of ``TensorValue`` that hold one entry a value, and what of."""


@dataclass(frozen=True, slots=True)
class NonTensor:
    """A constant that is no tensor of numbers: text, or a list, tuple or dictionary.

    Attributes:
        value: A string, or a tuple of them; numbers where a list holds them.
    """

    value: Any


def element_of(code: int) -> Element:
    """Return an element type by its number.

    Raises:
        Unsupported: It is that of strings, or unknown.
    """
    if code == _STRING:
        raise Unsupported("a tensor of strings has no counterpart in Relay")
    if code not in BY_MIL:
        raise Unsupported(f"element type {code} is unknown")
    return BY_MIL[code]


def read_value(value: Any, source: str | None) -> Array | NonTensor:
    """Return a constant that lies in the program itself.

    Raises:
        FormatError: Its values do not fit its type.
        Unsupported: It is of a type that has no counterpart.
    """
    kind = value.immediateValue.WhichOneof("value")
    if kind == "list":
        items = [read_value(item, source) for item in value.immediateValue.list.values]
        return NonTensor(tuple(_to_python(item) for item in items))
    if kind == "tuple":
        items = [read_value(item, source) for item in value.immediateValue.tuple.values]
        return NonTensor(tuple(_to_python(item) for item in items))
    if kind != "tensor":
        raise Unsupported(f"a constant of kind {kind}")
    tensor = value.immediateValue.tensor
    if value.type.tensorType.dataType == _STRING:
        texts = tuple(tensor.strings.values)
        return NonTensor(texts[0] if len(texts) == 1 and not value.type.tensorType.rank else texts)
    return _read_tensor(value, tensor, source)


def _to_python(item: Array | NonTensor) -> Any:
    return item.value if isinstance(item, NonTensor) else item.tolist()


def _read_tensor(value: Any, tensor: Any, source: str | None) -> Array:
    """Return the values of a tensor that lies in the program, as bytes or as entries."""
    shape = value_shape(value, source)
    element = element_of(value.type.tensorType.dataType)
    field = tensor.WhichOneof("value")
    size = math.prod(shape)
    if field is None and not size:
        return allocation.zeros(shape, numpy_dtype(element.dtype))
    if field == "bytes":
        raw = tensor.bytes.values
        if len(raw) != element.nbytes(size):
            raise _fault(f"{len(raw)} bytes", element, shape, source)
        if element.bits < 8:
            held = ArrayWeight(np.frombuffer(raw, np.uint8))
            return PackedWeight(held, shape, element.dtype, element.bits).array()
        return np.frombuffer(raw, numpy_dtype(element.dtype)).reshape(shape).copy()
    if field is None or element.dtype not in _FIELDS.get(field, ()):
        raise _fault(str(field), element, shape, source)
    entries = getattr(tensor, field).values
    if len(entries) != size:
        raise _fault(f"{len(entries)} entries", element, shape, source)
    found = np.array(entries, dtype=np.int64 if field in ("ints", "longInts") else None)
    return found.astype(numpy_dtype(element.dtype)).reshape(shape)


def _fault(found: str, element: Element, shape: tuple[int, ...], source: str | None) -> FormatError:
    return FormatError(
        f"a constant: expected values of {element.name}{list(shape)}, found {found}", path=source
    )

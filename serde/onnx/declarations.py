"""How types of Relay are declared in an ONNX graph."""

from __future__ import annotations

import onnx
from onnx import helper

from serde.core.weights import numpy_dtype
from serde.relay.ir.dims import Any
from serde.relay.ir.types import SequenceType, TensorType

__all__ = ["value_type_proto"]


def value_type_proto(name: str, type_: TensorType | SequenceType) -> onnx.ValueInfoProto:
    """Return the declaration of a tensor or sequence; a symbolic dimension keeps its name."""
    if isinstance(type_, SequenceType):
        element = value_type_proto(name, type_.element).type
        return helper.make_value_info(name, helper.make_sequence_type_proto(element))
    dims = [
        dim if isinstance(dim, int) else None if isinstance(dim, Any) else str(dim)
        for dim in type_.shape
    ]
    code = helper.np_dtype_to_tensor_dtype(numpy_dtype(type_.dtype))
    return helper.make_tensor_value_info(name, code, dims)

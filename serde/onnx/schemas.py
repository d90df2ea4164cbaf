"""What ONNX's own schemas say about the types that operators take."""

from __future__ import annotations

import functools

import onnx
from onnx import helper

from serde.weights import numpy_dtype

__all__ = ["allowed_types", "takes_dtype", "type_text"]


def type_text(dtype: str) -> str:
    """Return how schemas call a tensor's type: ``tensor(float)``."""
    kind = helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype))
    return f"tensor({onnx.TensorProto.DataType.Name(kind).lower()})"


def allowed_types(
    schema: onnx.defs.OpSchema, formal: onnx.defs.OpSchema.FormalParameter
) -> frozenset[str]:
    """Return the types that an input or output of an operator may have."""
    for constraint in schema.type_constraints:
        if constraint.type_param_str == formal.type_str:
            return frozenset(constraint.allowed_type_strs)
    return frozenset({formal.type_str})


@functools.cache
def takes_dtype(op: str, version: int, dtype: str) -> bool:
    """Whether an operator, as it stands at a version, takes a dtype as its first input."""
    schema = onnx.defs.get_schema(op, version, "")
    return type_text(dtype) in allowed_types(schema, schema.inputs[0])

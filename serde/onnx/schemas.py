"""What ONNX's own schemas say about the types that operators take."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import onnx
from onnx import helper, numpy_helper
from onnx.shape_inference import InferenceError

from serde.onnx.declarations import value_type_proto
from serde.relay.types import SequenceType, TensorType, Type
from serde.weights import Array, numpy_dtype

__all__ = ["allowed_types", "fault_of_node", "takes_dtype", "type_text"]


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


def fault_of_node(
    node: onnx.NodeProto,
    version: int,
    types: Sequence[Type | None],
    values: Sequence[Array | None],
) -> str | None:
    """Return why ONNX's own inference refuses a node of ONNX's domain, or None if it does not.

    Args:
        node: The node.
        version: Version of the operator set.
        types: Types of its inputs; None for one that is left out or not known.
        values: Values of its inputs where they are known.
    """
    if any(attribute.HasField("g") for attribute in node.attribute):
        return None
    protos = {
        name: value_type_proto(name, type_).type
        for name, type_ in zip(node.input, types, strict=False)
        if name and isinstance(type_, (TensorType, SequenceType))
    }
    if any(name and name not in protos for name in node.input):
        return None
    data = {
        name: numpy_helper.from_array(value)
        for name, value in zip(node.input, values, strict=False)
        if name and value is not None
    }
    opsets = [helper.make_opsetid("", version)]
    try:
        schema = onnx.defs.get_schema(node.op_type, version, "")
        onnx.shape_inference.infer_node_outputs(schema, node, protos, data, opset_imports=opsets)
    except (InferenceError, onnx.checker.ValidationError) as error:
        return f"ONNX refuses it: {' '.join(str(error).split())}"
    except onnx.defs.SchemaError:
        return None
    return _fault_of_order(node, types[0]) if node.op_type == "Transpose" else None


def _fault_of_order(node: onnx.NodeProto, type_: Type | None) -> str | None:
    """Return why a Transpose does not fit, whose axes ONNX's inference does not count."""
    order = next((list(each.ints) for each in node.attribute if each.name == "perm"), None)
    if order is None or not isinstance(type_, TensorType) or len(order) == type_.rank:
        return None
    return f"axes {order} for a tensor of rank {type_.rank}"

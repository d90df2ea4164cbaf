"""Where tensors lie in ONNX's protobuf messages.

Source: the field numbers of onnx.proto.
"""

from __future__ import annotations

from types import MappingProxyType

from serde.io.wire import MessageLayout

__all__ = ["LAYOUT", "MESSAGES"]

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

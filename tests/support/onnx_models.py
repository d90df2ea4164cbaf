"""Tensors and models of ONNX, made with its own library."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from serde.core.weights import Array
from serde.onnx.elements import CODES

ODD = (61, 45, 3)
"""A shape whose size is no multiple of 2 or 4, and whose data is large at 2 bits."""


def values(dtype: str, shape: tuple[int, ...] = ODD) -> Array:
    """Return random values of a type: every bit pattern that it has may occur."""
    rng = np.random.default_rng(7)
    element = CODES[dtype]
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if element.bits >= 8:
        size = int(np.prod(shape)) * element.bits // 8
        return np.frombuffer(rng.bytes(size), onnx_dtype(dtype)).reshape(shape)
    patterns = rng.integers(0, 2**element.bits, shape).astype(np.uint8)
    if dtype.startswith("int"):
        half = 2 ** (element.bits - 1)
        return (patterns.astype(np.int8) - half).astype(onnx_dtype(dtype))
    return patterns.view(onnx_dtype(dtype))


def onnx_dtype(dtype: str) -> np.dtype:
    return np.dtype(helper.tensor_dtype_to_np_dtype(CODES[dtype].code))


def tensor(name: str, array: Array) -> TensorProto:
    return numpy_helper.from_array(array, name)


def model_of(*initializers: TensorProto, nodes: list[onnx.NodeProto] | None = None):
    graph = helper.make_graph(
        nodes or [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N"])],
        list(initializers),
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="test")


def same_bits(one: Array, other: Array) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()

"""Operators run on arrays, as they are or decomposed, and single nodes run by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator
from support.runtime import open_session

from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import OpDef, call, get
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import post_order

Array = np.ndarray


def run_kernel(name: str, *operands: Array, **attrs: Any) -> Any:
    """Check the types of a call, run its kernel, and check the type inferred."""
    node = call(name, *map(_variable, operands), **attrs)
    result = get(name).kernel(*operands, **node.attrs)
    first = result[0] if isinstance(result, tuple) else result
    inferred = node.type if isinstance(node.type, TensorType) else node.type.fields[0]
    assert inferred == TensorType(first.shape, first.dtype)
    return result


def run_decomposed(name: str, *operands: Array, **attrs: Any) -> Array:
    """Run the body that an extension operator decomposes into, call by call."""
    definition = get(name)
    variables = [_variable(operand) for operand in operands]
    body = definition.decompose(*variables, **definition.bind(attrs))
    values: dict[Expr, Any] = dict(zip(variables, operands, strict=True))
    for node in post_order(body):
        if node not in values:
            values[node] = _evaluate(node, values)
    return values[body]


def _evaluate(node: Expr, values: dict[Expr, Any]) -> Any:
    if isinstance(node, Constant):
        return node.data
    if isinstance(node, Tuple):
        return tuple(values[field] for field in node.fields)
    if isinstance(node, TupleGetItem):
        return values[node.tuple_value][node.index]
    assert isinstance(node, Call)
    assert isinstance(node.op, OpDef)
    assert not node.op.name.startswith("serde.")
    return node.op.kernel(*[values[argument] for argument in node.args], **node.attrs)


def infer(name: str, *shapes: Sequence[Dim | str], dtype: str = "float32", **attrs: Any) -> str:
    """Return the text of the type of a call on tensors of these shapes."""
    node = call(name, *[Var("x", TensorType(shape, dtype)) for shape in shapes], **attrs)
    return repr(node.type)


def _variable(value: Array) -> Var:
    return Var("x", TensorType(value.shape, value.dtype))


def run_node(op: str, *inputs: Array | None, opset: int = 18, **attrs: Any) -> Array:
    """Return the first output of one ONNX node, by ONNX Runtime; None is an absent input."""
    model, given = _single_node(op, inputs, opset, attrs)
    return open_session(model.SerializeToString()).run(None, given)[0]


def run_reference(op: str, *inputs: Array | None, opset: int = 18, **attrs: Any) -> Array:
    """Return the first output of one ONNX node, by ONNX's reference implementation."""
    model, given = _single_node(op, inputs, opset, attrs)
    return ReferenceEvaluator(model).run(None, given)[0]


def _single_node(
    op: str, inputs: Sequence[Array | None], opset: int, attrs: dict[str, Any]
) -> tuple[ModelProto, dict[str, Array]]:
    names = ["" if value is None else f"i{index}" for index, value in enumerate(inputs)]
    given = {name: value for name, value in zip(names, inputs, strict=True) if name}
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in given.items()
    ]
    node = helper.make_node(op, names, ["out"], **attrs)
    kind = helper.np_dtype_to_tensor_dtype(inputs[0].dtype)
    out = helper.make_tensor_value_info("out", kind, None)
    graph = helper.make_graph([node], "one", infos, [out])
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = helper.find_min_ir_version_for(opsets)
    return model, given

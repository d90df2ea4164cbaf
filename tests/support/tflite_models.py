"""TFLite models of one operator, made by LiteRT's schema, and run by LiteRT's interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import interpreter, schema_py_generated as schema

__all__ = ["T", "join_graphs", "make_graph", "make_model", "run_litert"]


@dataclass
class T:
    """A tensor: its shape, dtype, values if it is constant, and scales and zero points."""

    shape: Sequence[int]
    dtype: str = "float32"
    data: Any = None
    scale: Any = None
    zero: Any = 0
    axis: int = 0
    is_variable: bool = False
    signature: Sequence[int] | None = None


@dataclass
class Node:
    """An operator of a model: its code, numbers of tensors and options by their names."""

    op: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""
    version: int = 1


def make_graph(
    tensors: Sequence[T], nodes: Sequence[Node], inputs: Sequence[int], outputs: Sequence[int]
) -> bytes:
    """Return the file of a model of one graph."""
    model = schema.ModelT()
    model.version = 3
    model.buffers = [schema.BufferT()]
    graph = schema.SubGraphT()
    graph.tensors = [_tensor(each, i, model.buffers) for i, each in enumerate(tensors)]
    graph.inputs, graph.outputs = list(inputs), list(outputs)
    model.operatorCodes, graph.operators = [], []
    for node in nodes:
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, node.op)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.version = node.version
        operator = schema.OperatorT()
        operator.opcodeIndex = len(model.operatorCodes)
        operator.inputs, operator.outputs = list(node.inputs), list(node.outputs)
        if hasattr(schema.BuiltinOptions2, node.kind):
            operator.builtinOptions2Type = getattr(schema.BuiltinOptions2, node.kind)
            operator.builtinOptions2 = getattr(schema, f"{node.kind}T")()
            for name, value in node.options.items():
                setattr(operator.builtinOptions2, name, value)
        elif node.kind:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, node.kind)
            operator.builtinOptions = getattr(schema, f"{node.kind}T")()
            for name, value in node.options.items():
                setattr(operator.builtinOptions, name, value)
        model.operatorCodes.append(code)
        graph.operators.append(operator)
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def make_model(
    op: str,
    inputs: Sequence[T | None],
    outputs: Sequence[T],
    kind: str = "",
    version: int = 1,
    **options: Any,
) -> bytes:
    """Return the file of a model of one operator.

    Args:
        op: Name of its code.
        inputs: What it reads; tensors without values are inputs of the model.
        outputs: What it gives.
        kind: Name of the table of its options.
        version: Its version.
        options: The options.
    """
    tensors = [each for each in inputs if each is not None]
    numbers, places = [], iter(range(len(tensors)))
    for each in inputs:
        numbers.append(-1 if each is None else next(places))
    made = list(range(len(tensors), len(tensors) + len(outputs)))
    node = Node(op, numbers, made, options, kind, version)
    free = [i for i, each in enumerate(tensors) if each.data is None and not each.is_variable]
    return make_graph([*tensors, *outputs], [node], free, made)


def join_graphs(main: bytes, *others: bytes) -> bytes:
    """Return a model whose graphs are those of several."""
    model, *more = (
        schema.ModelT.InitFromObj(schema.Model.GetRootAs(x, 0)) for x in (main, *others)
    )
    for each in more:
        codes, buffers = len(model.operatorCodes), len(model.buffers)
        for graph in each.subgraphs:
            for operator in graph.operators or []:
                operator.opcodeIndex += codes
            for tensor in graph.tensors:
                tensor.buffer += buffers
        model.operatorCodes += each.operatorCodes or []
        model.buffers += each.buffers
        model.subgraphs += each.subgraphs
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _tensor(given: T, number: int, buffers: list[Any]) -> Any:
    made = schema.TensorT()
    made.name = f"t{number}".encode()
    made.shape = list(given.shape)
    made.type = getattr(schema.TensorType, given.dtype.upper())
    made.isVariable = given.is_variable
    made.hasRank = True
    if given.signature is not None:
        made.shapeSignature = list(given.signature)
    made.buffer = 0
    if given.data is not None:
        buffer = schema.BufferT()
        values = np.asarray(given.data, given.dtype)
        buffer.data = np.frombuffer(values.tobytes(), np.uint8)
        made.buffer = len(buffers)
        buffers.append(buffer)
    if given.scale is not None:
        quantization = schema.QuantizationParametersT()
        scales = np.atleast_1d(np.asarray(given.scale, np.float32))
        quantization.scale = scales.tolist()
        zeros = np.broadcast_to(np.asarray(given.zero), scales.shape)
        quantization.zeroPoint = [int(each) for each in zeros]
        quantization.quantizedDimension = given.axis
        made.quantization = quantization
    return made


def run_litert(
    data: bytes, feed: Sequence[np.ndarray], *, optimised: bool = False
) -> list[np.ndarray]:
    """Return what LiteRT's kernels give: the reference ones, or those without delegates.

    Tensors keep their own memory: where RESHAPE shares that of its input, an operator behind it
    that works in place spoils what others still read (LiteRT 2.3, without XNNPACK).
    """
    kinds = interpreter.OpResolverType
    resolver = kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES if optimised else kinds.BUILTIN_REF
    made = interpreter.Interpreter(
        model_content=data,
        experimental_op_resolver_type=resolver,
        experimental_preserve_all_tensors=True,
    )
    for each, value in zip(made.get_input_details(), feed, strict=True):
        if list(each["shape"]) != list(value.shape):
            made.resize_tensor_input(each["index"], value.shape)
    made.allocate_tensors()
    for each, value in zip(made.get_input_details(), feed, strict=True):
        made.set_tensor(each["index"], value)
    made.invoke()
    return [
        made.get_tensor(each["index"]).copy()
        if each["shape"].all()
        else np.empty(each["shape"], each["dtype"])
        for each in made.get_output_details()
    ]

"""ONNX's own inference of types over a graph that was written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import onnx

from serde.core.records import dataclass
from serde.errors import ConverterBug
from serde.onnx.builder import inner_graphs
from serde.onnx.interface import value_type_proto
from serde.onnx.model import OnnxModel
from serde.relay.ir.types import TensorType

__all__ = ["captures", "infer_shapes"]

_PIECE: Final = 16_384
"""Nodes that are inferred at once: ONNX copies what it is given twice."""


def infer_shapes(native: OnnxModel) -> None:
    """Let ONNX's own strict inference run over the graph, weights declared but not filled.

    Raises:
        ConverterBug: It finds a fault.
    """
    if len(native.proto.graph.node) > _PIECE:
        _Pieces(native).run()
        return
    declared = onnx.ModelProto()
    for name in native.weights:
        declared.graph.input.append(_declare(native, name))
    # Messages that follow each other are one, which spares a copy of the model.
    _infer(native.proto.SerializeToString() + declared.SerializeToString())


def _infer(serialized: bytes) -> onnx.ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(serialized, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        raise ConverterBug(f"ONNX's shape inference refuses the graph: {error}") from error


def _declare(native: OnnxModel, weight: str) -> onnx.ValueInfoProto:
    found = native.weights[weight]
    return value_type_proto(weight, TensorType(found.shape, found.dtype))


@dataclass(slots=True)
class _Piece:
    """Nodes that follow each other.

    Attributes:
        nodes: The nodes.
        outer: Names that they read and do not make.
        told: Types that the graph tells of what they make.
    """

    nodes: Sequence[onnx.NodeProto]
    outer: list[str]
    told: list[onnx.ValueInfoProto]


class _Pieces:
    """A large graph, inferred a piece at a time with the types that the pieces before gave.

    Args:
        native: The model.
    """

    def __init__(self, native: OnnxModel) -> None:
        self._native = native
        graph = native.proto.graph
        self._initializers = {each.name: each for each in graph.initializer}
        self._types = {each.name: each for each in graph.input}
        self._told = {each.name: each for each in (*graph.value_info, *graph.output)}
        self._constants: dict[str, onnx.NodeProto] = {}

    def run(self) -> None:
        """Infer the pieces."""
        nodes = self._native.proto.graph.node
        pieces = [self._cut(nodes[i : i + _PIECE]) for i in range(0, len(nodes), _PIECE)]
        crossing = {name for piece in pieces for name in piece.outer}
        for piece in pieces:
            found = _infer(self._model(piece).SerializeToString())
            for value in found.graph.value_info:
                if value.name in crossing:
                    # A copy: what is found goes.
                    self._types[value.name] = onnx.ValueInfoProto()
                    self._types[value.name].CopyFrom(value)

    def _cut(self, nodes: Sequence[onnx.NodeProto]) -> _Piece:
        made: set[str] = set()
        read: set[str] = set()
        for node in nodes:
            made.update(node.output)
            read.update(node.input)
            if node.op_type == "Constant":
                self._constants[node.output[0]] = node
            elif node.attribute:
                read |= captures(inner_graphs(node.attribute))
        told = [self._told[name] for name in sorted(made & self._told.keys())]
        return _Piece(nodes, sorted(read - made), told)

    def _model(self, piece: _Piece) -> onnx.ModelProto:
        """Return a model of a piece, with what it reads declared."""
        whole, model = self._native.proto, onnx.ModelProto()
        model.ir_version = whole.ir_version
        model.opset_import.extend(whole.opset_import)
        model.functions.extend(whole.functions)
        model.graph.name = whole.graph.name
        for name in piece.outer:
            if name in self._initializers:
                model.graph.initializer.append(self._initializers[name])
            elif name in self._constants:  # Its value may tell a shape.
                model.graph.node.append(self._constants[name])
            elif name in self._native.weights:
                model.graph.input.append(_declare(self._native, name))
            elif name in self._types:
                model.graph.input.append(self._types[name])
        model.graph.node.extend(piece.nodes)
        model.graph.value_info.extend(piece.told)
        return model


def captures(graphs: Iterable[onnx.GraphProto]) -> set[str]:
    """Return what the nodes of subgraphs read, those of the subgraphs in them included."""
    names: set[str] = set()
    stack = list(graphs)
    while stack:
        inner = stack.pop()
        names.update(value.name for value in inner.output)
        for node in inner.node:
            names.update(node.input)
            stack += inner_graphs(node.attribute)
    return names

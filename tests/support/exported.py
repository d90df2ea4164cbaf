"""Relay written as ONNX and run in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from support.runtime import newest_runtime_opset, open_session

import serde
from serde.onnx.builder import walk_nodes
from serde.relay.ir.expr import Function
from serde.relay.ir.module import IRModule
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType

OPSETS = [11, 13, 17, 21, newest_runtime_opset()]


def typed(source: Function | IRModule) -> IRModule:
    """A module with all types."""
    mod = IRModule({"main": source}) if isinstance(source, Function) else source
    return InferType()(mod)


def export(
    source: Function | IRModule,
    opset: int = 17,
    params: Mapping[str, np.ndarray] | None = None,
    **options: Any,
) -> onnx.ModelProto:
    """A model as ONNX, approved by ONNX's checker, with names that occur once."""
    model = (typed(source), dict(params or {}))
    proto = serde.export_model(model, format="onnx", opset=opset, **options)
    onnx.checker.check_model(proto, full_check=True)
    graphs = (proto.graph, *proto.functions)
    nodes = [node for graph in graphs for node in walk_nodes(graph.node)]
    names = [name for node in nodes for name in (node.name, *node.output) if name]
    assert len(names) == len(set(names))
    return onnx.ModelProto.FromString(proto.SerializeToString())


def run_proto(proto: onnx.ModelProto, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs that ONNX Runtime computes."""
    session = open_session(proto.SerializeToString())
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))


def interpreted(source: Function | IRModule, arguments: Sequence[Any]) -> list[np.ndarray]:
    """The tensors that the interpreter computes."""
    mod = typed(source)
    pending, found = [run(mod["main"], arguments, mod=mod)], []
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            pending.extend(reversed(item))
        else:
            found.append(item)
    return found


def assert_close(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    """Equal up to the rounding of sums in another order."""
    for actual, wanted in zip(found, expected, strict=True):
        assert actual.dtype == wanted.dtype
        assert actual.shape == wanted.shape
        np.testing.assert_allclose(actual, wanted, rtol=2e-5, atol=2e-5)


def subgraph(node: onnx.NodeProto, name: str) -> onnx.GraphProto:
    """An attribute of a node that is a graph."""
    return next(each.g for each in node.attribute if each.name == name)


def operators(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """The operators of nodes, subgraphs not included."""
    return [node.op_type for node in nodes]

"""How many nodes a model has once its own functions are expanded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx

from serde.core.limits import budget
from serde.errors import FormatError
from serde.onnx.scopes import FunctionKey, domain_name

__all__ = ["check_expansion", "function_key"]


def function_key(node: onnx.NodeProto) -> FunctionKey:
    """Return what the function that a node may call goes by."""
    return domain_name(node.domain), node.op_type, node.overload


def check_expansion(
    graph: onnx.GraphProto, functions: Mapping[FunctionKey, onnx.FunctionProto]
) -> None:
    """Check that expanding the functions that a graph calls comes to an end in time.

    Raises:
        FormatError: A function calls itself.
        LimitError: There would be too many nodes.
    """
    if not functions:
        return
    sizes: dict[FunctionKey, int] = {}
    path: dict[FunctionKey, None] = {}
    pending = [key for key in dict.fromkeys(_calls(graph.node)) if key in functions]
    while pending:
        key = pending[-1]
        inner = [each for each in dict.fromkeys(_calls(functions[key].node)) if each in functions]
        missing = [each for each in inner if each not in sizes]
        if key in sizes or not missing:
            sizes[key] = _total(functions[key].node, sizes)
            path.pop(key, None)
            pending.pop()
            continue
        path[key] = None
        again = next((each for each in missing if each in path), None)
        if again is not None:
            raise FormatError(f"function {again[1]!r} calls itself")
        pending.extend(missing)
    called = sum(sizes.get(key, 0) for key in _calls(graph.node))
    budget().foresee("nodes", called, "calls of the model's functions")


def _total(nodes: Iterable[onnx.NodeProto], sizes: Mapping[FunctionKey, int]) -> int:
    return sum(1 + sizes.get(key, 0) for key in _calls(nodes))


def _calls(nodes: Iterable[onnx.NodeProto]) -> Iterator[FunctionKey]:
    """Yield what each node calls, those of subgraphs included."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield function_key(node)
        for attribute in node.attribute:
            graphs = [attribute.g] if attribute.HasField("g") else attribute.graphs
            for graph in graphs:
                pending.extend(graph.node)

"""Native models as graphs of Khronos' package."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.core.optional import require
from serde.nnef.model import NnefModel
from serde.nnef.text.printer import graph_text, quantization_text

__all__ = ["to_live"]


def to_live(model: NnefModel) -> AnyValue:
    """Return an ``nnef.Graph`` with the data of its variables, as ``nnef.load_graph`` does.

    Raises:
        MissingDependency: The package is not installed.
    """
    nnef = require("nnef")
    quantization = quantization_text(model) if model.quantization else None
    graph = nnef.parse_string(graph_text(model), quantization, stdlib="", lowered=[])
    for name, operation in model.variables().items():
        data = model.weights[operation.attributes["label"]].array()
        tensor = graph.tensors[name]
        graph.tensors[name] = nnef.Tensor(
            tensor.name, tensor.dtype, list(data.shape), data, tensor.quantization
        )
    return graph

"""Layers as MXNet fuses them for oneDNN, turned into quantised ones as its quantisation does."""

from __future__ import annotations

import json
from typing import Any

from serde.compat import import_mxnet


def fused(symbol: Any) -> Any:
    """The graph with what MXNet computes in one step when it quantises."""
    return symbol.get_backend_symbol("MKLDNN_QUANTIZE")


def quantized(symbol: Any, ranges: list[str], outputs: int = 3, **attrs: Any) -> Any:
    """The graph of one fused node with that node quantised.

    Args:
        symbol: The graph.
        ranges: Names of the further inputs.
        outputs: How many results the node has.
        attrs: Its further attributes.
    """
    graph = json.loads(symbol.tojson())
    nodes = graph["nodes"]
    (place,) = (i for i, node in enumerate(nodes) if node["op"].startswith("_sg_"))
    node = nodes[place]
    node["inputs"] += [[place + i, 0, 0] for i in range(len(ranges))]
    node["attrs"] = {
        **node.get("attrs", {}),
        "quantized": "True",
        **{name: str(value) for name, value in attrs.items()},
    }
    nodes[place:place] = [{"op": "null", "name": name, "inputs": []} for name in ranges]
    graph["arg_nodes"] = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    graph["heads"] = [[len(nodes) - 1, i, 0] for i in range(outputs)]
    del graph["node_row_ptr"]
    return import_mxnet().sym.load_json(json.dumps(graph))

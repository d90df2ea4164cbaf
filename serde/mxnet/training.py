"""What a graph says of training, for formats whose models train."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any as AnyValue, Final

from serde.mxnet.aliases import canonical_name
from serde.mxnet.attributes import decode_attribute
from serde.mxnet.model import Graph, Node
from serde.relay.ir.model import TRAINING_HEADS, TRAINING_NODES

__all__ = ["training_facts"]

_NORM: Final = ("momentum", "use_global_stats")

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "BatchNorm": _NORM,
    "BatchNorm_v1": _NORM,
    "_contrib_SyncBatchNorm": _NORM,
    "_contrib_BatchNormWithReLU": _NORM,
    "Dropout": ("axes",),
    "RNN": ("p",),
}
"""Attributes of operators that only matter in training."""

_LOSSES: Final = (
    "SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput",
    "SVMOutput", "MakeLoss",
)  # fmt: skip

_USUAL: Final[Mapping[str, tuple[AnyValue, AnyValue]]] = {
    "momentum": (float, 0.9),
    "use_global_stats": (bool, False),
    "axes": (tuple, ()),
    "p": (float, 0.0),
}
"""Attributes with their types, and what they are where nothing is said."""


def training_facts(graph: Graph, outputs: tuple[str, ...]) -> dict[str, str]:
    """Return facts for :attr:`ModelMeta.extra`: of unusual nodes, and of losses.

    Args:
        graph: The graph.
        outputs: Names of its outputs.
    """
    nodes = {}
    for node in graph.nodes:
        op = canonical_name(node.op)
        keys = [key for key in _KEYS.get(op, ()) if key in node.attrs]
        if keys:
            found = {key: _read(node, key) for key in keys}
            unusual = {key: each for key, each in found.items() if each != _USUAL[key][1]}
            if unusual:
                nodes[node.name] = unusual
    heads = {
        name: canonical_name(graph.nodes[entry.node].op)
        for name, entry in zip(outputs, graph.heads, strict=True)
        if canonical_name(graph.nodes[entry.node].op) in _LOSSES
    }
    facts = {TRAINING_NODES: nodes, TRAINING_HEADS: heads}
    return {key: json.dumps(each, sort_keys=True) for key, each in facts.items() if each}


def _read(node: Node, key: str) -> AnyValue:
    """Return an attribute; as usual where it is malformed, of which the converter tells."""
    kind, usual = _USUAL[key]
    try:
        return kind(decode_attribute(node.attrs[key], kind))
    except (TypeError, ValueError):
        return usual

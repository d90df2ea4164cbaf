"""How often a conversion goes over the graph of a model, whatever the passes are called."""

from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import serde
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import get

MOST_WALKS = 11
"""How often a conversion of what needs no change may ask a node for what is below it."""

BLOCKS = 20


def chain_of_layers() -> onnx.ModelProto:
    """A chain of convolutions, activations and sums, nothing of which can be made simpler."""
    nodes, weights, x = [], [], "x"
    for block in range(BLOCKS):
        conv, relu, add, tanh, w, b = (f"{each}{block}" for each in ("c", "r", "a", "t", "w", "b"))
        weights += [
            helper.make_tensor(w, TensorProto.FLOAT, (4, 4, 1, 1), range(16)),
            helper.make_tensor(b, TensorProto.FLOAT, (4,), range(4)),
        ]
        nodes += [
            helper.make_node("Conv", [x, w, b], [conv]),
            helper.make_node("Relu", [conv], [relu]),
            helper.make_node("Add", [relu, x], [add]),
            helper.make_node("Tanh", [add], [tanh]),
        ]
        x = tanh
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 4, 3, 3)) for name in ("x", x)
    ]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[Expr]:
    """How often each convolution is asked for what is below it."""
    slot: Any = Expr.below
    counts: Counter[Expr] = Counter()

    def read(node: Expr) -> tuple[Expr, ...]:
        if isinstance(node, Call) and node.op is get("nn.conv2d"):
            counts[node] += 1
        return slot.__get__(node)

    monkeypatch.setattr(Expr, "below", property(read, slot.__set__))
    return counts


def test_a_conversion_walks_a_graph_that_stays_as_it_is_a_few_times(
    tmp_path: Path, asked: Counter[Expr]
) -> None:
    report = serde.convert(chain_of_layers(), tmp_path / "chain.onnx")
    assert report.after["Conv"] == len(asked) == BLOCKS
    assert max(asked.values()) <= MOST_WALKS, asked.most_common(3)

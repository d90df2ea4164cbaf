"""Functions as texts, and callbacks of patterns that are functions."""

from __future__ import annotations

from collections.abc import Callable

import serde.relay as relay
from serde.relay.dataflow_pattern import DFPattern, DFPatternCallback
from serde.relay.ir.expr import Call, Expr, Function
from serde.relay.ir.visit import post_order

NodeMap = dict[DFPattern, list[Expr]]
Build = Callable[[Expr, Expr, NodeMap], Expr]

HEAD = "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32], "
HEAD += "%z: Tensor[(2, 3), float32]) "


def main(text: str) -> Function:
    return relay.fromtext(f'#[version = "0.0.5"]\n{HEAD}{{ {text} }}')["main"]


def function(params: str, body: str, name: str, result: str = "Tensor[(2, 3), float32]") -> str:
    """The text of a function that partitioning makes, of parameters of one type."""
    typed = ", ".join(f"%{param}: Tensor[(2, 3), float32]" for param in params.split())
    return f'fn ({typed}, PartitionedFromPattern="{name}") -> {result} {{ {body} }}'


class Rewrite(DFPatternCallback):
    """Builds what stands for a match with a function."""

    def __init__(self, pattern: DFPattern, build: Build, **named: bool) -> None:
        super().__init__(**named)
        self.pattern = pattern
        self.build = build

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        return self.build(pre, post, node_map)


def subtracted(_pre: Expr, post: Expr, _nodes: NodeMap) -> Expr:
    assert isinstance(post, Call)
    return post.args[0] - post.args[1]


def unchanged(_pre: Expr, post: Expr, _nodes: NodeMap) -> Expr:
    return post


def first_of(pattern: DFPattern) -> Build:
    return lambda _pre, _post, nodes: nodes[pattern][0]


def marks(expr: Expr) -> list[dict[str, object]]:
    return [node.attrs for node in post_order(expr) if isinstance(node, Function) and node.attrs]

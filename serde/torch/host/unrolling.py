"""Conditionals and loops of which it is known, while the program is walked, what they do.

The nodes of the branch that is taken, or of one iteration after another, take the place of the
node. Values keep their identity so: what an iteration appends to a list or writes to a tensor is
seen by the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any as AnyValue, Final, Protocol

from serde.core.report import Report
from serde.relay.ir.expr import Expr
from serde.torch.aliases import Values
from serde.torch.host.control import find_branch
from serde.torch.model import TRACED_FUNCTION, Argument, Graph, Node, Ref
from serde.walk.holes import Hole

__all__ = ["ENDLESS", "MAX_UNROLLED_NODES", "REST", "unroll_nodes"]

MAX_UNROLLED_NODES: Final = 1000
"""Most nodes that the iterations of a loop may become in its place."""

ENDLESS: Final = 2**63 - 1
"""The number of iterations of a loop that only its condition ends."""

REST: Final = "prim::Loop.rest"
"""A loop of which the first iterations are done; how many, is its last argument."""

_READS: Final = frozenset(
    [
        "aten::Bool.Tensor", "aten::Float.Tensor", "aten::Int.Tensor", "aten::item",
        "aten::ScalarImplicit", "aten::IntImplicit", "aten::FloatImplicit",
        "prim::ImplicitTensorToNum", "aten::is_nonzero", "aten::equal", "aten::allclose",
    ]
)  # fmt: skip
"""Operators that make numbers of tensors."""


class Reader(Protocol):
    """The walk, as far as it tells what arguments are."""

    report: Report

    def value(self, argument: Argument, scope: Values) -> AnyValue:
        """Return an argument with the values that it names."""


_ASSUMED: Final = (
    "assertions of the program, and branches that only raise errors, are taken to hold"
)


def unroll_nodes(graph: Graph, scope: Values, walk: Reader) -> Iterator[Node]:
    """Yield nodes, those inside conditionals and loops in their place where they can be.

    Each is to be converted before the next is asked for.
    """
    pending = [iter(graph.nodes)]
    while pending:
        for node in pending[-1]:
            inner = _unroll(node, scope, walk)
            if inner is not None:
                pending.append(inner)
                break
            yield node
        else:
            pending.pop()


def _unroll(node: Node, scope: Values, walk: Reader) -> Iterator[Node] | None:
    if node.op == "prim::If":
        condition = walk.value(node.arguments[0][1], scope)
        block = None if isinstance(condition, Hole) else find_branch(condition, node.blocks)
        if block is None:
            return None
        if isinstance(condition, Expr) and _ASSUMED not in walk.report.notes:
            walk.report.notes.append(_ASSUMED)
        return _branch(node, block)
    if node.op == TRACED_FUNCTION:
        return _function(node)
    if node.op == "prim::Loop":
        limit, going, *_ = (each for _, each in node.arguments)
        values = walk.value(limit, scope), walk.value(going, scope)
        if not any(isinstance(each, Expr) for each in values) and _is_short(node, *values):
            return _iterations(node, *values, scope, walk)
    return None


def _function(node: Node) -> Iterator[Node]:
    (block,) = node.blocks
    yield _hand_on(node, [each for _, each in node.arguments], block.inputs)
    yield from _branch(node, block)


def _branch(node: Node, block: Graph) -> Iterator[Node]:
    yield from block.nodes
    yield _hand_on(node, block.outputs, node.outputs)


def _hand_on(node: Node, values: Iterable[Argument], names: Sequence[str]) -> Node:
    """Return a node that gives values other names."""
    given = [(str(place), each) for place, each in enumerate(values)]
    return Node("prim::results", node.name, given, names, where=node.where)


def _is_short(node: Node, limit: int, going: bool) -> bool:
    """Whether the iterations of a loop may take its place."""
    if limit <= 0 or not going:
        return True
    (block,) = node.blocks
    count = _count(block)
    if limit < ENDLESS:
        return limit * count <= MAX_UNROLLED_NODES and not _hangs_on_tensors(block)
    return not _hangs_on_tensors(block)


def _count(block: Graph) -> int:
    total, pending = 0, [block]
    while pending:
        graph = pending.pop()
        total += len(graph.nodes)
        for node in graph.nodes:
            pending.extend(node.blocks)
    return total


def _hangs_on_tensors(block: Graph) -> bool:
    """Whether it hangs on tensors if there is another iteration, as far as the block tells."""
    makers = {name: node for node in block.nodes for name in node.outputs}
    pending: list[Argument] = [block.outputs[0]]
    seen: set[str] = set()
    while pending:
        each = pending.pop()
        if isinstance(each, (list, tuple)):
            pending.extend(each)
        if not isinstance(each, Ref) or each.name in seen or each.name not in makers:
            continue
        seen.add(each.name)
        node = makers[each.name]
        if node.op in _READS:
            return True
        pending.extend(value for _, value in node.arguments)
        for inner in node.blocks:
            makers |= {name: maker for maker in inner.nodes for name in maker.outputs}
            pending.extend(inner.outputs)
    return False


def _iterations(node: Node, limit: int, going: bool, scope: Values, walk: Reader) -> Iterator[Node]:
    """Yield the nodes of one iteration after another, while it is known that there is one more.

    What is left when that is not known, or when there are too many, is a loop of its own.
    """
    (block,) = node.blocks
    own = [*block.inputs, *_names(block)]
    carried = [f"{node.name}.carried{place}" for place in range(len(node.outputs))]
    condition = f"{node.name}.going"
    state: list[Argument] = [each for _, each in node.arguments[2:]]
    done, most = 0, min(limit, max(1, MAX_UNROLLED_NODES // max(1, _count(block))))
    more: AnyValue = going
    while done < most and not isinstance(more, Expr) and more:
        for name in own:
            scope.values.pop(name, None)
        yield _hand_on(node, [done, *state], block.inputs)
        yield from block.nodes
        for name in (condition, *carried):
            scope.values.pop(name, None)
        yield _hand_on(node, block.outputs, [condition, *carried])
        state = [Ref(name) for name in carried]
        more = walk.value(Ref(condition), scope)
        done += 1
    if done < limit and (isinstance(more, Expr) or more):
        given = enumerate([limit, Ref(condition), *state, done])
        rest = [(str(place), each) for place, each in given]
        yield Node(REST, node.name, rest, node.outputs, where=node.where, blocks=node.blocks)
    else:
        yield _hand_on(node, state, node.outputs)


def _names(block: Graph) -> Iterator[str]:
    """Yield the names of all values that a block makes, those of inner ones too."""
    pending = [block]
    while pending:
        graph = pending.pop()
        for node in graph.nodes:
            yield from node.outputs
            pending.extend(node.blocks)
            for inner in node.blocks:
                yield from inner.inputs

"""Lengths that a file leaves to MXNet's inference: a 0 in the shape of zeros.

Gluon's cells begin with states of zeros for a batch that is not known when they are made. MXNet
finds it where such a tensor, or what is computed from it, meets one that must be of the same shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping, Sequence

import serde.relay as relay
from serde.mxnet.aliases import canonical_name
from serde.mxnet.model import Entry, Graph, Node
from serde.relay.dims import Dim
from serde.relay.expr import Call, Expr
from serde.relay.types import TensorType

__all__ = ["complete"]

_SAME_SHAPE = frozenset([
    "_grad_add", "_maximum", "_minimum", "add_n", "elemwise_add", "elemwise_div", "elemwise_mul",
    "elemwise_sub", "where",
])  # fmt: skip
"""Operators whose inputs have one shape."""

_MADE = frozenset(["_full", "_ones", "_zeros"])

Results = MutableMapping[int, Sequence[Expr]]


def complete(
    graph: Graph, node: Node, results: Results, convert: Callable[[int], Sequence[Expr]]
) -> None:
    """Give the tensors of unknown length that a node takes the length of the others.

    Args:
        graph: The graph, which does not have NumPy's shapes.
        node: A node whose inputs are converted.
        results: What each node gives, by its place; what changes is replaced.
        convert: Converts the node at a place anew.
    """
    if canonical_name(node.op) not in _SAME_SHAPE:
        return
    shapes = {entry: _shape(results[entry.node][entry.index]) for entry in node.inputs}
    known = [shape for shape in shapes.values() if shape and not _unknown(shape)]
    for entry, shape in shapes.items():
        fitting = [other for other in known if len(other) == len(shape)]
        if fitting and _unknown(shape):
            _fill(graph, entry, fitting[0][shape.index(0)], results, convert)


def _shape(x: Expr) -> tuple[Dim, ...]:
    return x.type.shape if isinstance(x.type, TensorType) else ()


def _unknown(shape: Iterable[Dim]) -> bool:
    return any(type(length) is int and length == 0 for length in shape)


def _fill(
    graph: Graph,
    entry: Entry,
    length: Dim,
    results: Results,
    convert: Callable[[int], Sequence[Expr]],
) -> None:
    """Make a tensor, and what it is computed from, of the length that it lacks."""
    pending, path = [entry.node], set()
    while pending:
        place = pending.pop()
        if place in path or not any(_unknown(_shape(each)) for each in results[place]):
            continue
        path.add(place)
        pending += [each.node for each in graph.nodes[place].inputs]
    for place in sorted(path):
        if canonical_name(graph.nodes[place].op) in _MADE:
            results[place] = [_longer(each, length) for each in results[place]]
        else:
            results[place] = convert(place)


def _longer(made: Expr, length: Dim) -> Expr:
    """Return a filled tensor whose lengths of 0 are `length`."""
    if not isinstance(made, Call) or not isinstance(made.type, TensorType):
        return made
    shape = [length if _unknown([each]) else each for each in made.type.shape]
    filled = relay.full(made.args[0], shape, made.type.dtype)
    filled.span = made.span
    return filled

"""What a walk into Relay has met, for those who show a model that cannot be converted.

A model with gaps does not become Relay, yet its walk goes on to the end, so every node is seen
with what it reads. Nothing is kept where nobody asks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from typing import Any as AnyValue
from typing import Final

from serde.relay.ir.expr import Expr
from serde.walk.holes import Holes

__all__ = ["Trace", "TracedNode", "note_node", "note_outputs", "tracing"]

_MOST_HOLES: Final = 64
"""Results of a gap that are told apart; a file may claim any number."""


@dataclass(frozen=True, slots=True)
class TracedNode:
    """A node of a source as the walk has met it.

    Attributes:
        op: Its operator, as the format calls it.
        name: What it is called, with the graphs around it.
        inputs: What it reads; None for what is left out.
        attributes: Its attributes as the file has them.
        results: What stands for its results: holes where it was not converted.
    """

    op: str
    name: str
    inputs: Sequence[Expr | None]
    attributes: Mapping[str, AnyValue]
    results: Sequence[Expr]


@dataclass(slots=True)
class Trace:
    """What a walk has met.

    Attributes:
        nodes: The nodes, in its order.
        outputs: Names of the model's outputs, and what stands for them.
    """

    nodes: list[TracedNode] = field(default_factory=list)
    outputs: list[tuple[str, Expr]] = field(default_factory=list)


_TRACE: ContextVar[Trace | None] = ContextVar("trace", default=None)


@contextmanager
def tracing() -> Iterator[Trace]:
    """Yield what walks inside the body of a ``with`` statement enter their nodes into."""
    trace = Trace()
    token = _TRACE.set(trace)
    try:
        yield trace
    finally:
        _TRACE.reset(token)


def note_node(
    op: str,
    name: str,
    inputs: Sequence[Expr | None],
    attributes: Mapping[str, AnyValue],
    results: Sequence[Expr],
) -> Sequence[Expr]:
    """Enter a node, if anybody asks, and return its results; of a gap, each hole made once."""
    trace = _TRACE.get()
    if trace is None:
        return results
    known = list(islice(results, _MOST_HOLES))
    trace.nodes.append(TracedNode(op, name, tuple(inputs), attributes, known))
    return Holes(len(results), known) if isinstance(results, Holes) else results


def note_outputs(names: Sequence[Hashable], values: Sequence[AnyValue]) -> None:
    """Enter the outputs of a model, if anybody asks."""
    trace = _TRACE.get()
    if trace is not None:
        pairs = zip(names, values, strict=True)
        trace.outputs = [(str(name), value) for name, value in pairs if isinstance(value, Expr)]

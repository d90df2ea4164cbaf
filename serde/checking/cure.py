"""What to leave in float32 where float16 takes an output too far from the exact result.

Where rounding begins to count is seen in the values inside: samples of the exact run beside those
of the rounded one. What is proposed was run: with these nodes in float32, rounding is small.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.checking.distance import deviation, distance, ratio
from serde.checking.yardstick import Measured
from serde.core.weights import Array
from serde.relay.ir import Call, Expr, OpDef, children
from serde.relay.run.arithmetic import Arithmetic, Exact, Rounded, Watched

__all__ = ["find_wide_nodes"]

_SAMPLES = 4096
"""Elements of a value that are compared."""

_NODES, _NEARLY, _JUMP = 3, 1e-3, 4.0
"""How many nodes are tried, what rounding makes of most values, and how much more counts."""

_SECONDS = 30.0
"""Time after which nothing else is tried."""


def find_wide_nodes(measured: Measured, at: int, enough: float) -> tuple[tuple[str, ...], float]:
    """Return names of nodes, and how far from the exact result an output is with them in float32.

    Args:
        measured: The runs of a set of inputs.
        at: Number of the output.
        enough: Part of the output's deviation below which rounding must take it.

    Returns:
        No names if none were found.
    """
    exact = measured.exact[at]
    runs = _Sampled(Exact()), _Sampled(Rounded())
    for run in runs:
        measured.run(run)
    end = time.monotonic() + _SECONDS
    for names in _candidates(runs[0].values, runs[1].values):
        if time.monotonic() > end:
            break
        outputs = measured.run(Rounded(frozenset(names)))
        far = ratio(distance(outputs[at], exact, np.isfinite(exact)).mean, deviation(exact))
        if far <= enough:
            return tuple(sorted(names)), far
    return (), 0.0


class _Sampled(Watched):
    """Another arithmetic, some elements of whose results are kept by node."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        super().__init__(arithmetic)
        self.values: dict[Call, Array] = {}

    def see(self, node: Call, value: AnyValue) -> None:
        """Keep elements of floats."""
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            flat = value.reshape(-1)
            self.values[node] = flat[:: -(-flat.size // _SAMPLES)].astype(np.float64)


def _candidates(exact: Mapping[Call, Array], rounded: Mapping[Call, Array]) -> Iterator[set[str]]:
    """Yield names of nodes at which rounding begins to count, alone and with their neighbours."""
    far = {
        node: ratio(distance(rounded[node], value, np.isfinite(value)).mean, deviation(value))
        for node, value in exact.items()
        if node in rounded and rounded[node].shape == value.shape
    }
    users: dict[Call, list[Call]] = {}
    above: dict[Call, list[Call]] = {}
    for node in far:
        above[node] = [each for each in _calls_below(node) if each in far]
        for each in above[node]:
            users.setdefault(each, []).append(node)
    jumps = {n: d / max([_NEARLY, *(far[each] for each in above[n])]) for n, d in far.items()}
    first = [n for n in sorted(jumps, key=lambda n: -jumps[n]) if jumps[n] > _JUMP][:_NODES]
    for node in first:
        around, below = above[node], users.get(node, [])
        for group in ([node], [node, *below], [node, *around], [node, *around, *below]):
            yield {_name(each) for each in group}


def _calls_below(node: Call) -> Iterator[Call]:
    for child in children(node):
        nodes: Sequence[Expr] = (child,) if isinstance(child, Call) else children(child)
        yield from (each for each in nodes if isinstance(each, Call))


def _name(node: Call) -> str:
    if node.span is not None:
        return node.span.source_name
    return node.op.name if isinstance(node.op, OpDef) else ""

"""Which parts of regions go to the toolchain, by a cost that the user gives.

The parts are those of a region that no tensor connects. As long as its cost does not rise, a region
loses the part without which it costs least, and all of it if it still costs no less than the host.
Then regions are made anew of what is left, until none loses a part: no choice makes a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from serde.core import dataclass
from serde.relay.ir import TensorType
from serde.relay.ir.expr import Call
from serde.target.layering import Layering

__all__ = ["Candidate", "Cost", "find_losses"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a cost is asked of.

    Attributes:
        nodes: Operators of ONNX that are written for it, in order.
        calls: Calls of Relay in it, with their types.
        inputs: Types of the tensors that it is handed, weights aside.
        outputs: Types of the tensors that it gives.
    """

    nodes: tuple[str, ...]
    calls: tuple[Call, ...]
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]


Cost: TypeAlias = Callable[[Candidate], float]
"""Returns what a candidate costs on the chip, transfers included, less its cost on the host."""


def find_losses(
    graph: Layering, regions: Sequence[int | None], cost: Callable[[set[int]], float]
) -> set[int]:
    """Return the units that regions lose; `cost` tells what units cost in one region."""
    lost: set[int] = set()
    for number, parts in _connected_parts(graph, regions).items():
        whole = kept = {unit for unit, region in enumerate(regions) if region == number}
        least = cost(kept)
        while len(parts) > 1:
            fewest, index = min((cost(kept - part), index) for index, part in enumerate(parts))
            if fewest > least:
                break
            kept, least = kept - parts.pop(index), fewest
        lost |= whole - kept if least < 0 else whole
    return lost


def _connected_parts(graph: Layering, regions: Sequence[int | None]) -> dict[int, list[set[int]]]:
    """Return the parts of each region that no tensor connects."""
    found: dict[int, list[set[int]]] = {}
    seen: set[int] = set()
    for first, region in enumerate(regions):
        pending = [] if region is None or first in seen else [first]
        part = set(pending)
        while pending:
            unit = pending.pop()
            near = {*graph.before(unit), *graph.after(unit)} - part
            near = {each for each in near if regions[each] == region}
            pending += near
            part |= near
        seen |= part
        if region is not None and part:
            found.setdefault(region, []).append(part)
    return found

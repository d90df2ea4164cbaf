"""Which candidates for regions go to the toolchain, by a cost that the user gives.

The candidates are the connected parts of the regions that there would be without a cost. In the
order of evaluation, each joins the group of its region to which it adds least, if that is less
than it costs alone, or begins a group. A group that costs no less on the chip than on the host
stays there. Parts of one region never wait for each other, so regions wait in no circle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from serde.core import dataclass
from serde.relay.ir import TensorType
from serde.relay.ir.expr import Call
from serde.target.layering import Layering

__all__ = ["Candidate", "Cost", "choose"]


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


def choose(
    graph: Layering,
    regions: Sequence[int | None],
    cost: Callable[[Sequence[int]], float],
    is_large: Callable[[Sequence[int]], bool],
) -> list[int | None]:
    """Return the number of each unit's region; None for what stays on the host.

    Args:
        graph: The units.
        regions: Regions of the units without a cost.
        cost: What units cost in one region, less what they cost on the host.
        is_large: Whether units are enough for a region.
    """
    groups: list[tuple[int, float, list[int]]] = []
    for region, part in _connected_parts(graph, regions):
        alone = cost(part)
        added, index, total = math.inf, -1, 0.0
        for number, (own, before, units) in enumerate(groups):
            joined = cost([*units, *part]) if own == region else math.inf
            if joined - before < min(added, alone):
                added, index, total = joined - before, number, joined
        if index >= 0:
            groups[index] = (region, total, [*groups[index][2], *part])
        else:
            groups.append((region, alone, part))
    chosen = sorted((own, sorted(units)) for own, total, units in groups if total < 0)
    chosen = [(own, units) for own, units in chosen if is_large(units)]
    numbers = {unit: number for number, (_, units) in enumerate(chosen) for unit in units}
    return [numbers.get(unit) for unit in range(len(regions))]


def _connected_parts(
    graph: Layering, regions: Sequence[int | None]
) -> Iterator[tuple[int, list[int]]]:
    """Yield the parts of regions that no tensor connects, each with the number of its region."""
    seen: set[int] = set()
    for first, region in enumerate(regions):
        if region is None or first in seen:
            continue
        part = [first]
        seen.add(first)
        for unit in part:  # It grows while it is walked.
            near = {*graph.before(unit), *graph.after(unit)} - seen
            near = {each for each in near if regions[each] == region}
            part += sorted(near)
            seen |= near
        yield region, part

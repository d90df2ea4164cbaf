"""Which units go into one region.

Host and target take turns: a path through the graph that goes from the target to the host and
back needs two regions, since a region must be over before what waits for it can begin. So the
longest such alternation is a lower bound of their number, and it is met by numbering: each unit
of the target goes into the region whose number is that of the turns behind it. A region may hold
parts that are not connected. Where a unit may go into several regions, it goes where the fewest
tensors cross.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from serde.core.records import dataclass, field

__all__ = ["Layering", "Tensor", "assign_regions"]


@dataclass(slots=True, eq=False)
class Tensor:
    """A value between units.

    Attributes:
        producer: The unit that gives it; None for an input.
        consumers: The units that read it, each once.
        is_result: Whether it is a result of the whole.
    """

    producer: int | None
    consumers: list[int] = field(default_factory=list)
    is_result: bool = False


@dataclass(slots=True, eq=False)
class Layering:
    """Units and the tensors between them, in the order of evaluation.

    Attributes:
        inside: Whether each unit is the target's.
        reads: Numbers of the tensors that each unit reads.
        gives: Numbers of the tensors that each unit gives.
        tensors: The tensors.
    """

    inside: list[bool]
    reads: list[list[int]]
    gives: list[list[int]]
    tensors: list[Tensor]

    def before(self, unit: int) -> list[int]:
        """Return the units whose results a unit reads."""
        made = (self.tensors[number].producer for number in self.reads[unit])
        return [each for each in made if each is not None]

    def after(self, unit: int) -> list[int]:
        """Return the units that read the results of a unit."""
        return [each for number in self.gives[unit] for each in self.tensors[number].consumers]


def assign_regions(graph: Layering, sizes: Sequence[int], min_nodes: int) -> list[int | None]:
    """Return the number of each unit's region; None for what stays on the host.

    The numbers are those of the order of evaluation, from 0 on.

    Args:
        graph: The units.
        sizes: Nodes in each unit.
        min_nodes: Least number of nodes in a region; what is in smaller ones stays on the host.
    """
    inside = list(graph.inside)
    for _ in range(_ROUNDS):
        regions = _number(graph, inside)
        _move(graph, inside, regions)
        small = _find_small(regions, sizes, min_nodes)
        if not small:
            break
        inside = [here and regions[unit] not in small for unit, here in enumerate(inside)]
    else:
        # Without those that are too small the others stay convex, if not the fewest.
        regions = [None if number in small else number for number in regions]
    used = sorted({number for number in regions if number is not None})
    dense = {number: index for index, number in enumerate(used)}
    return [None if number is None else dense[number] for number in regions]


_ROUNDS = 16
"""How often regions are made anew without the units of those that were too small."""


def _find_small(regions: Sequence[int | None], sizes: Sequence[int], min_nodes: int) -> set[int]:
    counts: Counter[int] = Counter()
    for number, size in zip(regions, sizes, strict=True):
        if number is not None:
            counts[number] += size
    return {number for number, count in counts.items() if count < min_nodes}


def _number(graph: Layering, inside: Sequence[bool]) -> list[int | None]:
    """Return the earliest region of each unit of the target."""
    regions: list[int | None] = []
    over: list[int] = []  # Number of the region that each unit of the host waits for, or -1.
    for unit, here in enumerate(inside):
        earliest = -1
        for other in graph.before(unit):
            region = regions[other]
            earliest = max(earliest, over[other] + (1 if here else 0) if region is None else region)
        regions.append(max(earliest, 0) if here else None)
        over.append(-1 if here else earliest)
    return regions


def _move(graph: Layering, inside: Sequence[bool], regions: list[int | None]) -> None:
    """Move units of the target to other regions, where fewer tensors cross then."""
    last = max((number for number in regions if number is not None), default=0)
    if last == 0:
        return
    crossing = _Crossing(graph, regions)
    latest = [last] * len(regions)
    for unit in reversed(range(len(regions))):
        bound = last
        for other in graph.after(unit):
            region = regions[other]
            bound = min(bound, region - (not inside[unit]) if region is not None else latest[other])
        latest[unit] = bound
        if regions[unit] is not None:
            ways = {regions[other] for other in graph.after(unit)}
            crossing.choose(unit, [*ways, bound], regions[unit], bound)
    over: list[int] = []
    for unit, here in enumerate(inside):
        bound = -1
        for other in graph.before(unit):
            region = regions[other]
            bound = max(bound, over[other] + (1 if here else 0) if region is None else region)
        over.append(-1 if here else bound)
        if here:
            bound = max(bound, 0)
            ways = {regions[other] for other in graph.before(unit)}
            crossing.choose(unit, [*ways, bound], bound, regions[unit])


class _Crossing:
    """Counts the tensors that cross the edges of regions, and moves units."""

    def __init__(self, graph: Layering, regions: list[int | None]) -> None:
        self._graph = graph
        self._regions = regions
        self._users: list[Counter[int | None]] = [
            Counter(regions[unit] for unit in tensor.consumers) for tensor in graph.tensors
        ]

    def choose(
        self, unit: int, ways: Sequence[int | None], low: int | None, high: int | None
    ) -> None:
        """Let a unit go into the best of some regions; it stays where none is better."""
        here = self._regions[unit]
        if here is None or low is None or high is None or low >= high:
            return
        best, least = here, self._cost(unit, here)
        for way in sorted({way for way in ways if way is not None and low <= way <= high}):
            cost = self._cost(unit, way)
            if cost < least:
                best, least = way, cost
        self._place(unit, best)

    def _place(self, unit: int, region: int) -> None:
        here = self._regions[unit]
        if region == here:
            return
        for number in self._graph.reads[unit]:
            self._users[number][here] -= 1
            self._users[number][region] += 1
        self._regions[unit] = region

    def _cost(self, unit: int, region: int) -> int:
        """Return how many inputs and outputs of regions there are with a unit in a region."""
        graph, here = self._graph, self._regions[unit]
        cost = 0
        for number in graph.reads[unit]:
            tensor, users = graph.tensors[number], self._users[number]
            source = None if tensor.producer is None else self._regions[tensor.producer]
            others = users[region] - (region == here)
            if source != region or tensor.producer is None:
                cost += others == 0
            if source is not None:
                away = len(tensor.consumers) - users[source] - (here != source)
                cost += source != region and away == 0 and not tensor.is_result
        for number in graph.gives[unit]:
            tensor, users = graph.tensors[number], self._users[number]
            readers = {each for each, count in users.items() if count}
            cost += len(readers - {region, None})
            cost += tensor.is_result or bool(readers - {region})
        return cost

"""Which candidates for regions go to the toolchain, by a cost that the user gives.

The candidates are the connected parts of the regions that there would be without a cost. In the
order of evaluation, each part joins the one group of its region to which it adds less than it
would cost by itself, and least of all, or begins a group of its own. A group that costs no less on
the chip than on the host stays on the host. Parts of one region never wait for each other, so
whichever are chosen, regions wait for each other in no circle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any as AnyValue, TypeAlias

from serde.core import dataclass, numpy_dtype
from serde.errors import OptionError
from serde.relay.ir import TensorType
from serde.relay.ir.expr import Call
from serde.target.layering import Layering

__all__ = ["Candidate", "Cost", "choose", "read_cost"]


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

    @property
    def transfer_bytes(self) -> int:
        """Bytes of the tensors that go in and out; a length that is no number counts as one."""
        return sum(map(_bytes_of, (*self.inputs, *self.outputs)))


Cost: TypeAlias = Callable[[Candidate], float]
"""Returns what a candidate costs on the chip, transfers included, less its cost on the host."""


def _bytes_of(type_: TensorType) -> int:
    lengths = (dim if isinstance(dim, int) else 1 for dim in type_.shape)
    return math.prod(lengths) * numpy_dtype(type_.dtype).itemsize


def read_cost(cost: Cost, candidate: Candidate) -> float:
    """Return what a user's function says of a candidate.

    Raises:
        OptionError: It fails, or gives no number.
    """
    try:
        found: AnyValue = cost(candidate)
        value = float(found)
    except Exception as error:
        raise OptionError(f"cost: the function fails: {type(error).__name__}: {error}") from error
    if math.isnan(value):
        raise OptionError(f"cost: expected a number, found {found!r}")
    return value


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
    chosen: list[list[int]] = []
    for parts in _connected_parts(graph, regions):
        groups: list[tuple[list[int], float]] = []
        for part in parts:
            alone = cost(part)
            joined = [(cost([*units, *part]), units, before) for units, before in groups]
            added = [total - before for total, _, before in joined]
            best = min(range(len(added)), key=added.__getitem__, default=None)
            if best is not None and added[best] < alone:
                groups[best] = ([*groups[best][0], *part], joined[best][0])
            else:
                groups.append((part, alone))
        chosen += [sorted(units) for units, total in groups if total < 0 and is_large(units)]
    found: list[int | None] = [None] * len(regions)
    for number, units in enumerate(chosen):
        for unit in units:
            found[unit] = number
    return found


def _connected_parts(graph: Layering, regions: Sequence[int | None]) -> list[list[list[int]]]:
    """Return, for each region, the units of each of its parts that no tensor connects."""
    count = max((number for number in regions if number is not None), default=-1) + 1
    parts: list[list[list[int]]] = [[] for _ in range(count)]
    seen: set[int] = set()
    for first, region in enumerate(regions):
        if region is None or first in seen:
            continue
        part, pending = [], [first]
        seen.add(first)
        while pending:
            unit = pending.pop()
            part.append(unit)
            for other in (*graph.before(unit), *graph.after(unit)):
                if regions[other] == region and other not in seen:
                    seen.add(other)
                    pending.append(other)
        parts[region].append(sorted(part))
    return parts

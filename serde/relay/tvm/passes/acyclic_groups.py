"""Groups of the nodes of a graph that may be joined as long as no group depends on itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["AcyclicGroups"]

_GAP: Final = 1 << 96
"""Distance of two labels in an order just made."""
_STEP: Final = 1 << 32
"""Distance of the labels of groups that are moved, so that others fit between them."""


class AcyclicGroups:
    """Groups with a topological order that is kept while groups are joined.

    Whether one depends on another is searched between their places in that order only, and what
    a search has passed moves out of the way of the next one; so joining takes about as much time
    as the graph has edges. The order is a list with labels: labels grow along it.
    """

    def __init__(self) -> None:
        self._root: list[int] = []
        self._below: list[set[int]] = []
        self._known: list[set[int]] = []
        self._label: list[int] = []
        self._before: list[int] = []
        self._after: list[int] = []

    def add(self) -> int:
        """Return the number of a new group."""
        self._root.append(len(self._root))
        self._below.append(set())
        self._known.append(set())
        return len(self._root) - 1

    def connect(self, below: int, above: int) -> None:
        """Note that group `above` depends on group `below`; a group may depend on itself."""
        if below != above:
            self._below[above].add(below)

    def find(self, group: int) -> int:
        """Return the group that a group has become part of; itself if it has not."""
        top = group
        while self._root[top] != top:
            top = self._root[top]
        while self._root[group] != top:
            self._root[group], group = top, self._root[group]
        return top

    def settle(self) -> None:
        """Order the groups when all edges are known; those that depend on themselves come last."""
        count = len(self._root)
        above: list[list[int]] = [[] for _ in range(count)]
        for group, below in enumerate(self._below):
            for other in below:
                above[other].append(group)
        waiting = [len(below) for below in self._below]
        order = [group for group in range(count) if not waiting[group]]
        for group in order:  # grows while it is walked
            for other in above[group]:
                waiting[other] -= 1
                if not waiting[other]:
                    order.append(other)
        order += [group for group in range(count) if waiting[group] > 0]
        self._label = [0] * count
        self._before, self._after = [-1] * count, [-1] * count
        for index, group in enumerate(order):
            self._label[group] = (index + 1) * _GAP
            if index:
                self._before[group], self._after[order[index - 1]] = order[index - 1], group

    def merge(self, candidates: Iterable[int], above: int) -> None:
        """Join a group with those among some that it depends on, as far as that makes no cycle.

        One that another group needs, which `above` depends on, stays out, whatever the order.

        Args:
            candidates: Groups that `above` depends on directly.
            above: The group.
        """
        high = self.find(above)
        roots = {self.find(each) for each in candidates} - {high}
        found = self._search(roots, high)
        if not roots:
            return
        low = min(roots, key=self._label.__getitem__)
        limit = self._label[low]
        moved = [each for each in found if each not in roots and self._label[each] > limit]
        self._move_before(low, sorted(moved, key=self._label.__getitem__))
        for each in roots:
            if each != low:
                self._contract(low, each)
        self._contract(low, high)

    def _search(self, roots: set[int], high: int) -> dict[int, None]:
        """Take those out of `roots` that something needs which `high` needs.

        Returns:
            What `high` needs and what comes after the first of `roots` that are left.
        """
        found: dict[int, None] = {}
        stack = [high] if roots else []
        limits = sorted(roots, key=self._label.__getitem__, reverse=True)
        while stack and roots:
            group = stack.pop()
            if group != high:
                self._reject(roots, group, high)
            while limits and limits[-1] not in roots:
                limits.pop()
            if not limits:
                break
            limit = self._label[limits[-1]]
            if group != high and self._label[group] <= limit:
                continue
            for other in self._compact(group):
                if other not in found and self._label[other] > limit:
                    found[other] = None
                    stack.append(other)
        return found

    def _reject(self, roots: set[int], group: int, high: int) -> None:
        """Take out of `roots` what a group is known to need, at once or over others."""
        needed = {self.find(each) for each in self._below[group] & roots}
        needed |= roots & self._known[group]
        if not needed >= roots:
            needed |= roots & self._compact(group)
        if needed:
            roots -= needed
            self._known[group] |= needed
            self._known[high] |= needed

    def _compact(self, group: int) -> set[int]:
        """Return the groups that a group depends on."""
        found = {self.find(other) for other in self._below[group]}
        found.discard(group)
        self._below[group] = found
        return found

    def _move_before(self, group: int, moved: list[int]) -> None:
        """Move groups, in their order, to right before another one."""
        if not moved:
            return
        for each in moved:
            self._unlink(each)
        before = self._before[group]
        step = self._find_step(group, len(moved))
        if not step:
            self._relabel(group)
            step = self._find_step(group, len(moved))
        label = self._label[before] if before >= 0 else self._label[group] - _GAP
        for each in moved:
            label += step
            self._label[each] = label
            self._before[each] = before
            if before >= 0:
                self._after[before] = each
            before = each
        self._after[before], self._before[group] = group, before

    def _find_step(self, group: int, count: int) -> int:
        """Return the distance at which `count` labels fit before a group; 0 if they do not."""
        before = self._before[group]
        gap = _GAP if before < 0 else self._label[group] - self._label[before]
        return min(_STEP, gap // (count + 1))

    def _unlink(self, group: int) -> None:
        before, after = self._before[group], self._after[group]
        if before >= 0:
            self._after[before] = after
        if after >= 0:
            self._before[after] = before

    def _relabel(self, group: int) -> None:
        """Give all groups in the list labels that are far from each other."""
        first = group
        while self._before[first] >= 0:
            first = self._before[first]
        label = 0
        while first >= 0:
            label += _GAP
            self._label[first] = label
            first = self._after[first]

    def _contract(self, low: int, high: int) -> None:
        self._unlink(high)
        self._root[high] = low
        for sets in (self._below, self._known):
            small, large = sorted((sets[low], sets[high]), key=len)
            large |= small
            large -= {low, high}
            sets[low], sets[high] = large, set()

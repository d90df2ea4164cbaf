"""Folding: a level of a graph as a few dozen boxes inside each other.

Nodes whose names share a scope stand in a box, as ``layer1/block2``. Where names do not tell,
stretches of nodes that repeat become blocks, and what is long all the same is cut into sections.
Blocks alike that follow each other stand in one box with their count. No box holds more than
``MOST_CHILDREN``, and no two boxes lead into each other: each is a stretch of one topological order
of what is around it.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, groupby, pairwise
from typing import Final, Literal, TypeAlias

from serde.core.records import dataclass
from serde.walk.repeats import is_periodic, repeated_runs

__all__ = ["MOST_CHILDREN", "Group", "Item", "Leaves", "fold"]

MOST_CHILDREN: Final = 120
"""Most boxes directly inside a box: what a browser lays out at once in some tenths of a second."""

_SECTION: Final = 40
_MOST_OF_ALL: Final = 0.5
_MOST_SCOPES: Final = 12
_FEWEST_IN_RUN: Final = 3
_FEWEST_IN_BLOCK: Final = 3
_FEWEST_TO_SEARCH: Final = 12
_MOST_ROUNDS: Final = 8
_MOST_SWITCHES: Final = 64
_MOST_RUNS: Final = 40
_WORK: Final = 1_200_000
"""Tokens that one search for repeats looks at."""

GroupKind: TypeAlias = Literal["scope", "block", "repeat", "section"]


@dataclass(eq=False, slots=True)
class Group:
    """A box that unfolds.

    Attributes:
        title: What it is called.
        kind: What its nodes have in common: a scope of names, that they recur, that they are boxes
            alike, or nothing.
        children: What stands in it, each after what it reads: numbers of nodes, and boxes.
        key: The same for boxes that hold the same operators, wired alike.
        size: Number of nodes below it.
    """

    title: str
    kind: GroupKind
    children: list[Item]
    key: int = -1
    size: int = 0


Item: TypeAlias = int | Group


@dataclass(frozen=True)
class Leaves:
    """The nodes of a level.

    Attributes:
        sources: For each node, those of the level that it reads.
        names: Their names.
        tokens: What a node is but for its name and what it reads: equal for nodes alike.
    """

    sources: Mapping[int, Sequence[int]]
    names: Mapping[int, str]
    tokens: Mapping[int, Hashable]


def fold(members: Sequence[int], leaves: Leaves) -> list[Item]:
    """Return what stands on a level, at most ``MOST_CHILDREN``.

    Args:
        members: Numbers of its nodes, each after those that it reads.
        leaves: What is known of them.
    """
    named = sum(bool(leaves.names[member]) for member in members)
    return _without_wrapper(_Folder(members, leaves).level(members, 0), named)


def _without_wrapper(items: list[Item], named: int) -> list[Item]:
    """Return items with what is in the only scope in its place, where it holds most that is named.

    Inputs and outputs have no name here.
    """
    groups = [item for item in items if isinstance(item, Group)]
    while len(groups) == 1 and groups[0].kind == "scope":
        (only,) = groups
        if only.size < _MOST_OF_ALL * named:
            break
        if len(items) + len(only.children) > MOST_CHILDREN:
            break
        place = items.index(only)
        items = [*items[:place], *only.children, *items[place + 1 :]]
        groups = [item for item in items if isinstance(item, Group)]
    return items


class _Folder:
    """State of folding one level."""

    def __init__(self, members: Sequence[int], leaves: Leaves) -> None:
        self._leaves = leaves
        names = [leaves.names[m] for m in members]
        split, self._fewest = _splitter(names)
        self._paths = {m: split(leaves.names[m]) for m in members}
        self._keys: dict[Hashable, int] = {}
        self._kinds = 0

    def level(self, members: Sequence[int], depth: int) -> list[Item]:
        """Return the children of a box that holds `members`, whose scopes agree up to `depth`."""
        items: list[Item] = []
        for name, part in self._scopes(members, depth):
            if not name:
                items += part
                continue
            items.append(self._scope(name, part, depth + 1))
        return self._sections(self._alike(self._repeats(self._in_order(items))))

    def _scope(self, name: str, members: Sequence[int], depth: int) -> Group:
        """Return the box of a scope; one that only holds another is named after both."""
        title = name
        while len(inner := {self._component(m, depth) for m in members}) == 1:
            (only,) = inner
            if not only:
                break
            title, depth = f"{title}/{only}", depth + 1
        return self._finish(Group(title, "scope", self.level(members, depth)))

    def _component(self, member: int, depth: int) -> str:
        path = self._paths[member]
        return path[depth] if depth < len(path) else ""

    def _scopes(self, members: Sequence[int], depth: int) -> Iterator[tuple[str, list[int]]]:
        """Yield scopes with their nodes, and nodes of none one by one with an empty name."""
        names = {m: self._component(m, depth) for m in members}
        cut = self._tangled(members, names)
        if cut:
            members = self._gathered(members, names)
        parts = self._parts(members, names, cut)
        if cut and self._stuck(parts):
            parts = self._parts(members, names, set(names.values()))
        for name, part in parts:
            fewest = _FEWEST_IN_RUN if name in cut else self._fewest
            yield (name, part) if name and len(part) >= fewest else ("", part)

    def _parts(
        self, members: Sequence[int], names: Mapping[int, str], cut: set[str]
    ) -> list[tuple[str, list[int]]]:
        """Return the nodes by scope; of those in `cut`, and of none, stretches of the order."""
        whole: dict[str, list[int]] = {}
        parts: list[tuple[str, list[int]]] = []
        for name, run in groupby(members, names.__getitem__):
            part = list(run)
            if not name:
                parts += (("", [each]) for each in part)
            elif name in cut:
                parts.append((name, part))
            elif name in whole:
                whole[name] += part
            else:
                whole[name] = part
                parts.append((name, part))
        return parts

    def _tangled(self, members: Sequence[int], names: Mapping[int, str]) -> set[str]:
        """Return the scopes that lead into each other, so that no order puts them one by one."""
        parts = self._parts(members, names, set())
        return {parts[place][0] for place in self._stuck(parts)} - {""}

    def _stuck(self, parts: Sequence[tuple[str, Sequence[int]]]) -> set[int]:
        """Return the places of parts that lead into each other, or from one such to another."""
        own: dict[int, int] = {m: at for at, (_, part) in enumerate(parts) for m in part}
        edges = list(self._edges(own))
        forward = set(_sorted(len(parts), edges))
        if len(forward) == len(parts):
            return set()
        backward = _sorted(len(parts), [(target, source) for source, target in edges])
        return set(range(len(parts))) - forward - set(backward)

    def _gathered(self, members: Sequence[int], names: Mapping[int, str]) -> list[int]:
        """Return nodes in an order that stays in a scope while it can.

        Where it must leave one, it goes on with the scope of which it can finish the greatest part.
        """
        inside = set(members)
        sources = {m: [s for s in self._leaves.sources[m] if s in inside] for m in members}
        scopes: dict[str, list[int]] = defaultdict(list)
        for member in members:
            scopes[names[member]].append(member)
        done: set[int] = set()
        order: list[int] = []

        def reach(name: str) -> list[int]:
            found: list[int] = []
            reached: set[int] = set()
            for member in scopes[name]:
                if all(source in done or source in reached for source in sources[member]):
                    reached.add(member)
                    found.append(member)
            return found

        for _ in range(min(_MOST_SWITCHES, _WORK // (4 * len(members)) + 2)):
            found = reach("") if scopes.get("") else []
            if not found:
                runs = [(name, reach(name)) for name, part in scopes.items() if name and part]
                if not runs:
                    return order
                _, found = max(runs, key=lambda run: len(run[1]) / len(scopes[run[0]]))
            order += found
            done.update(found)
            name = names[found[0]]
            scopes[name] = [member for member in scopes[name] if member not in done]
        return order + [member for member in members if member not in done]

    def _edges(self, own: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Yield which owner of nodes reads of which other, given the owner of each."""
        for member, owner in own.items():
            for source in self._leaves.sources[member]:
                if source in own and own[source] != owner:
                    yield own[source], owner

    def _in_order(self, items: list[Item]) -> list[Item]:
        """Return items so that each follows what it reads, otherwise as the source has them."""
        if not any(isinstance(item, Group) for item in items):
            return sorted(items, key=_first)
        items = sorted(items, key=_first)
        order = _sorted(len(items), self._edges(_owners(items)))
        return [items[place] for place in order]

    # Repeats.

    def _repeats(self, items: list[Item]) -> list[Item]:
        """Return items with stretches that recur as blocks."""
        for _ in range(_MOST_ROUNDS):
            if len(items) < _FEWEST_TO_SEARCH:
                break
            found = self._best_run(items)
            if found is None:
                break
            items = self._as_blocks(items, *found)
        return items

    def _best_run(self, items: Sequence[Item]) -> tuple[int, Sequence[int]] | None:
        """Return length and places of the stretch whose recurrence tells most.

        It saves many boxes, and few values lead from one of its blocks to what follows.
        """
        tokens = [self._token(item) for item in items]
        most = min(len(items) // 2, max(24, _WORK // len(items)))
        least = max(_FEWEST_TO_SEARCH // 2, len(items) // 20)
        found: dict[int, list[tuple[int, int, list[int]]]] = defaultdict(list)
        for length, places in repeated_runs([tokens], most):
            starts = [start for _, start in places]
            saved = (len(starts) - 1) * (length - 1)
            if saved > least and length >= _FEWEST_IN_BLOCK:
                heapq.heappush(found[length], (saved, -starts[0], starts))
                if len(found[length]) > 2:
                    heapq.heappop(found[length])
        runs = [(saved, length, starts) for length, of in found.items() for saved, _, starts in of]
        crossing, readers = self._crossing(items)
        best: tuple[float, int, Sequence[int]] = (0.0, 0, ())
        for _, length, given in heapq.nlargest(_MOST_RUNS, runs, key=lambda run: run[0]):
            if is_periodic(tokens[given[0] : given[0] + length]):
                continue
            turned = _turned(tokens, length, given, crossing, readers)
            cut = sum(crossing[start] + crossing[start + length] for start in turned)
            score = (len(turned) - 1) * (length - 1) / max(1.0, cut / (2 * len(turned)))
            score *= 1 + _joined(turned, length) / len(turned)
            if score > best[0]:
                best = (score, length, turned)
        return None if best[0] == 0 else (best[1], best[2])

    def _crossing(self, items: Sequence[Item]) -> tuple[list[int], list[int]]:
        """Return, for each border between items, how many values lead over it, and readers.

        These are the nodes that read what stands before the border.
        """
        where = _owners(items)
        last: dict[int, int] = {}
        readers = [0] * (len(items) + 1)
        for member, place in where.items():
            for source in self._leaves.sources[member]:
                if source in where:
                    last[source] = max(last.get(source, 0), place)
                    readers[where[source] + 1] += 1
        change = [0] * (len(items) + 2)
        for source, end in last.items():
            change[where[source] + 1] += 1
            change[end + 1] -= 1
        return list(accumulate(change)), readers

    def _as_blocks(self, items: list[Item], length: int, starts: Sequence[int]) -> list[Item]:
        blocks = {s: self._finish(Group("", "block", items[s : s + length])) for s in starts}
        ((key, _),) = Counter(block.key for block in blocks.values()).most_common(1)
        found: list[Item] = []
        place = 0
        number = 0
        letter = _letter(self._kinds)
        self._kinds += 1
        while place < len(items):
            block = blocks.get(place)
            if block is None or block.key != key:
                found.append(items[place])
                place += 1
                continue
            number += 1
            block.title = f"block {letter}{number}"
            block.children = self._sections(self._alike(block.children))
            found.append(block)
            place += length
        return found

    def _token(self, item: Item) -> Hashable:
        return item.key if isinstance(item, Group) else self._number(self._leaves.tokens[item])

    def _number(self, token: Hashable) -> int:
        return self._keys.setdefault(token, len(self._keys))

    def _finish(self, group: Group) -> Group:
        """Count a box and find its key."""
        where = _owners(group.children)
        group.size = len(where)
        reads: list[list[int]] = [[] for _ in group.children]
        for member, place in where.items():
            for source in self._leaves.sources[member]:
                own = where.get(source)
                if own != place:
                    reads[place].append(-1 if own is None else place - own)
        tokens = tuple(
            (self._token(item), tuple(read))
            for item, read in zip(group.children, reads, strict=True)
        )
        group.key = self._number((group.kind == "repeat", tokens))
        return group

    def _alike(self, items: list[Item]) -> list[Item]:
        """Return items with boxes alike that follow each other in one box."""
        found: list[Item] = []
        for _, run in groupby(items, lambda item: (isinstance(item, Group), self._token(item))):
            part = list(run)
            titles = [item.title for item in part if isinstance(item, Group)]
            if len(titles) < 2:
                found += part
                continue
            part = self._sections(part)
            found.append(self._finish(Group(_common_title(titles), "repeat", part)))
        return found

    # Sections.

    def _sections(self, items: list[Item]) -> list[Item]:
        """Return items cut into stretches, as often as there are too many."""
        while len(items) > MOST_CHILDREN:
            size = max(_SECTION, math.isqrt(len(items)))
            parts = [items[at : at + size] for at in range(0, len(items), size)]
            total = 0
            cut: list[Item] = []
            for part in parts:
                count = sum(item.size if isinstance(item, Group) else 1 for item in part)
                title = _section_title(part, total, count)
                cut.append(self._finish(Group(title, "section", part)))
                total += count
            items = cut
        return items


def _joined(starts: Sequence[int], length: int) -> int:
    """Return how many blocks follow the one before at once."""
    return sum(b - a == length for a, b in pairwise(starts))


def _turned(
    tokens: Sequence[Hashable],
    length: int,
    starts: Sequence[int],
    crossing: Sequence[int],
    readers: Sequence[int],
) -> Sequence[int]:
    """Return the places moved to where fewest values lead from one block into the next.

    Of several such, those behind the value that most nodes read: a residual that goes on.
    """
    if _joined(starts, length) < len(starts) // 2:
        return starts

    def at(turn: int) -> list[int]:
        moved = [s + turn for s in starts if s + turn + length <= len(tokens)]
        first = tokens[moved[0] : moved[0] + length] if moved else []
        return [s for s in moved if tokens[s : s + length] == first]

    return min(
        (found for turn in range(length) if len(found := at(turn)) >= max(2, len(starts) - 1)),
        key=lambda found: (
            sum(crossing[s] for s in found) / len(found),
            -sum(readers[s] for s in found[1:]) / len(found),
            -len(found),
        ),
        default=starts,
    )


def _letter(number: int) -> str:
    """Return A to Z, then AA and so on, for numbers from zero."""
    letters = ""
    while number >= 0:
        number, last = divmod(number, 26)
        letters = chr(ord("A") + last) + letters
        number -= 1
    return letters


def _common_title(titles: Sequence[str]) -> str:
    """Return what boxes alike are called together, as ``layer0 - layer11``."""
    first, last = titles[0], titles[-1]
    return first if first == last else f"{first} \N{EN DASH} {last}"


def _section_title(part: Sequence[Item], before: int, count: int) -> str:
    """Return what a section is called: after its boxes, if it holds nothing else."""
    titles = [item.title for item in part if isinstance(item, Group)]
    if len(titles) == len(part):
        return _common_title(titles)
    return f"nodes {before + 1:,}\N{EN DASH}{before + count:,}"


def _first(item: Item) -> int:
    while isinstance(item, Group):
        item = item.children[0]
    return item


def _owners(items: Sequence[Item]) -> dict[int, int]:
    """Return, for every node below items, the place of its item."""
    found: dict[int, int] = {}
    for place, item in enumerate(items):
        pending = [item]
        while pending:
            each = pending.pop()
            if isinstance(each, Group):
                pending += reversed(each.children)
            else:
                found[each] = place
    return found


def _sorted(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the first `count` numbers so that each follows those that lead to it, low ones first.

    Those that lead into each other, and what follows them, are left out.
    """
    after: dict[int, list[int]] = defaultdict(list)
    waiting = [0] * count
    for source, target in set(edges):
        after[source].append(target)
        waiting[target] += 1
    ready = [number for number in range(count) if waiting[number] == 0]
    found = []
    while ready:
        number = heapq.heappop(ready)
        found.append(number)
        for target in after[number]:
            waiting[target] -= 1
            if waiting[target] == 0:
                heapq.heappush(ready, target)
    return found


def _splitter(names: Sequence[str]) -> tuple[Callable[[str], tuple[str, ...]], int]:
    """Return what splits a name into scopes, and how many nodes make a scope of names."""
    given = [name for name in names if name]
    for separator, fewest in (("/", 2), (".", 2), ("_", 4)):
        if 2 * sum(separator in name.strip(separator) for name in given) >= len(given) > 0:
            return partial(_path, separator), fewest
    return lambda _name: (), 2


def _path(separator: str, name: str) -> tuple[str, ...]:
    """Return the scopes of a name, its own part left off, and a number with what it numbers."""
    parts: list[str] = []
    for part in name.split(separator):
        if part.isdigit() and parts and separator == "_":
            parts[-1] += f"_{part}"
        elif part:
            parts.append(part)
    return tuple(parts[: min(len(parts) - 1, _MOST_SCOPES)])

"""Which units go into one region: as few regions as any partition has, all of them convex."""

from __future__ import annotations

import numpy as np
import pytest
from support.partitions import check_convex, fewest_by_trial

from serde.target.layering import Layering, Tensor, assign_regions

NONE: list[int | None] = []


def layering(inside: str, reads: list[list[int]], results: list[int] | None = None) -> Layering:
    """Units of the target (``x``) and the host (``.``) that each give one tensor."""
    count = len(inside)
    tensors = [Tensor(unit) for unit in range(count)]
    for unit, sources in enumerate(reads):
        for source in sources:
            tensors[source].consumers.append(unit)
    read = {source for sources in reads for source in sources}
    for unit in range(count) if results is None else results:
        tensors[unit].is_result = unit not in read if results is None else True
    return Layering([each == "x" for each in inside], reads, [[i] for i in range(count)], tensors)


def assign(
    inside: str, reads: list[list[int]], min_nodes: int = 1, results: list[int] | None = None
) -> list[int | None]:
    graph = layering(inside, reads, results)
    return assign_regions(graph, [1] * len(inside), min_nodes)


def random_graph(seed: int, most: int) -> tuple[str, list[list[int]]]:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, most + 1))
    # A brute-force search of more than eight units of the target takes too long.
    inside = ["x" if rng.random() < 0.65 else "." for _ in range(count)]
    while inside.count("x") > 8:
        inside[int(rng.integers(count))] = "."
    density = rng.choice([0.15, 0.3, 0.6])
    reads = [[s for s in range(unit) if rng.random() < density] for unit in range(count)]
    return "".join(inside), reads


def check_random(seed: int, most: int) -> None:
    inside, reads = random_graph(seed, most)
    found = assign(inside, reads)
    assert [number is not None for number in found] == [each == "x" for each in inside]
    check_convex(found, reads)
    assert len({n for n in found if n is not None}) == fewest_by_trial(inside, reads), seed


@pytest.mark.parametrize("seed", range(60))
def test_regions_are_as_few_as_any_partition_has(seed: int) -> None:
    check_random(seed, 8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 460))
def test_regions_of_up_to_twelve_nodes_are_as_few_as_any_partition_has(seed: int) -> None:
    check_random(seed, 12)


@pytest.mark.parametrize(
    ("inside", "reads", "expected"),
    [
        ("", [], []),
        (".", [[]], [None]),
        ("x", [[]], [0]),
        ("xx", [[], [0]], [0, 0]),
        # Parts that are not connected are one region.
        ("xx", [[], []], [0, 0]),
        ("x.x", [[], [0], [1]], [0, None, 1]),
        # A path round the host makes two regions, though there is an edge between them.
        ("x.x", [[], [0], [0, 1]], [0, None, 1]),
        (".x.x.", [[], [0], [1], [2], [3]], [None, 0, None, 1, None]),
        # What does not wait for the host goes into the first region.
        ("x.xx", [[], [0], [1], [0]], [0, None, 1, 0]),
        # Two turns of the host beside each other are one alternation.
        ("x..xx", [[], [0], [0], [1], [2]], [0, None, None, 1, 1]),
        # The second of the host has nothing to wait for.
        (".x.x", [[], [0], [], [2]], [None, 0, None, 0]),
    ],
)
def test_regions_by_hand(inside: str, reads: list[list[int]], expected: list[int | None]) -> None:
    assert assign(inside, reads) == expected


def test_a_unit_goes_where_what_reads_it_is() -> None:
    # Unit 3 could go with the first region; its only reader is in the second.
    assert assign("x.xxx", [[], [0], [1], [], [2, 3]]) == [0, None, 1, 1, 1]


def test_a_unit_stays_with_what_it_reads_where_that_crosses_less() -> None:
    # Units 3 to 5 read three tensors of the first region and give one to the second.
    inside, reads = "xxx.xx", [[], [], [], [0], [0, 1, 2], [3, 4]]
    assert assign(inside, reads, results=[5]) == [0, 0, 0, None, 0, 1]


@pytest.mark.parametrize(
    ("min_nodes", "expected"),
    [(1, [0, 0, None, 1, None, 2, 2]), (2, [0, 0, None, None, None, 1, 1]), (3, [None] * 7)],
)
def test_regions_that_are_too_small_stay_on_the_host(
    min_nodes: int, expected: list[int | None]
) -> None:
    assert assign("xx.x.xx", [[], [0], [1], [2], [3], [4], [5]], min_nodes) == expected


def test_what_is_too_small_leaves_no_gap_in_the_numbers() -> None:
    found = assign(".x.xx.xx", [[], [0], [1], [2], [3], [4], [5], [6]], 2)
    assert found == [None, None, None, 0, 0, None, 1, 1]


@pytest.mark.wide
def test_many_rounds_end() -> None:
    rng = np.random.default_rng(5)
    count = 3_000
    inside = "".join("x" if rng.random() < 0.5 else "." for _ in range(count))
    reads = [sorted({int(rng.integers(max(0, u - 9), u)) for _ in range(2)}) if u else [] for u in
             range(count)]  # fmt: skip
    for min_nodes in (1, 2, 3, 5, 9):
        found = assign(inside, reads, min_nodes)
        check_convex(found, reads)
        sizes = np.bincount([n for n in found if n is not None], minlength=1)
        assert all(size >= min_nodes or size == 0 for size in sizes)

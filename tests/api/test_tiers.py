"""What comes first of a grid of parameters."""

from __future__ import annotations

import itertools

import pytest
from support.tiers import NUMBERS, covering, first_of_grid, first_of_numbers


@pytest.mark.parametrize("lengths", [(4, 3, 2), (3, 3, 3), (4, 2, 2, 2)])
def test_every_pair_of_values_comes_first(lengths: tuple[int, ...]) -> None:
    grid = list(itertools.product(*map(range, lengths)))
    chosen = [grid[place] for place in first_of_grid(grid)]
    assert len(chosen) < len(grid)
    for i, j in itertools.combinations(range(len(lengths)), 2):
        pairs = set(itertools.product(range(lengths[i]), range(lengths[j])))
        assert {(point[i], point[j]) for point in chosen} == pairs


def test_every_value_of_two_lists_comes_first() -> None:
    grid = list(itertools.product(range(9), range(4)))
    chosen = [grid[place] for place in first_of_grid(grid)]
    assert {a for a, _ in chosen} == set(range(9))
    assert {b for _, b in chosen} == set(range(4))
    assert len(chosen) < 14


def test_every_value_comes_first_where_pairs_are_many() -> None:
    grid = list(itertools.product(range(24), range(7), range(2)))
    chosen = [grid[place] for place in first_of_grid(grid)]
    assert {a for a, _, _ in chosen} == set(range(24))
    assert {b for _, b, _ in chosen} == set(range(7))
    assert {c for _, _, c in chosen} == set(range(2))
    assert len(chosen) < 30


def test_lists_and_small_grids_are_whole() -> None:
    assert first_of_grid([(i, i) for i in range(20)]) == set(range(20))
    assert first_of_grid(list(itertools.product(range(2), range(2)))) == set(range(4))
    assert first_of_grid([]) == set()


@pytest.mark.parametrize("count", [0, 1, 6, 7, 48, 60, 200])
def test_an_eighth_of_many_numbers_comes_first(count: int) -> None:
    chosen = sorted(first_of_numbers(count))
    assert len(chosen) == min(count, max(NUMBERS, count // 8))
    assert set(chosen) <= set(range(count))
    gaps = [b - a for a, b in itertools.pairwise(chosen)]
    assert max(gaps, default=0) - min(gaps, default=0) <= 1


def test_a_cover_is_the_same_in_every_process() -> None:
    grid = list(itertools.product(range(6), range(5), range(4)))
    assert covering(grid, 2) == covering(grid, 2)

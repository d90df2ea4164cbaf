"""What the comparison of speed with its stored baseline finds."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
STORED = json.loads((BENCHMARKS / "baseline.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def baseline() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return runpy.run_path(str(BENCHMARKS / "baseline.py"))


@pytest.mark.parametrize("slower", STORED)
def test_a_figure_far_above_its_baseline_is_told(slower: str, baseline: dict[str, Any]) -> None:
    assert baseline["exceeding"](STORED, STORED) == []
    now = {**STORED, slower: STORED[slower] * 1.3}
    assert baseline["exceeding"](now, STORED) == [slower]


def test_what_is_measured_is_what_is_stored(baseline: dict[str, Any], tmp_path: Path) -> None:
    """With steps that take no time but that of their first call."""
    seconds = baseline["measure_nodes"].__globals__
    seconds |= {"cpu_of": lambda step: lambda: 1.0, "cpu_seconds": lambda *args, **kwargs: 1.0}
    seconds |= {"SMALL": 10, "LARGE": 20}
    found = {**baseline["measure_start"](tmp_path), **baseline["measure_nodes"](tmp_path)}
    assert found.keys() == STORED.keys()
    assert found["a node read, of a large graph by a small one"] == 0.5

"""Random graphs over all operators through formats, each judged by what the format belongs to.

``python benchmarks/differential.py`` takes as many as are wanted, and shows one that fails.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from support.differential import available
from support.differential_paths import follow, judge_seed, onward
from support.drawn_graphs import drawn_graphs
from support.typed_graphs import TypedGraph, generate, operators, operators_of

from serde.relay.ir.registry import all_ops
from serde.relay.ir.traits import Foreign, Random

QUICK = [name for name in available() if name not in ("relax", "torch")]
"""Formats that are judged in milliseconds."""

FIRST, FAST, ALL = 2, 20, 300
SEEDS = [
    *[pytest.param(seed, marks=pytest.mark.wide) for seed in range(FIRST, FAST)],
    *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(FAST, ALL)],
]


def told(found: dict[str, object]) -> str:
    """Return what is wrong, with the command that shows it."""
    rows = found["findings"]
    assert isinstance(rows, list)
    return "\n".join(
        f"{row['path']} {row['kind']}: {row['said']}\n"
        f"python benchmarks/differential.py --seed {row['seed']} --path '{row['path']}'"
        for row in rows
    )


@pytest.mark.parametrize("seed", range(FIRST))
def test_onnx_and_mxnet_agree_with_kernels(seed: int) -> None:
    names = [name for name in QUICK if name in ("onnx", "mxnet")]
    found = judge_seed(seed, names, onward(seed, names))
    assert told(found) == ""
    assert found["agreed"]


@pytest.mark.parametrize("seed", SEEDS)
def test_formats_agree_with_kernels(seed: int) -> None:
    found = judge_seed(seed, QUICK, onward(seed, QUICK))
    assert told(found) == ""
    assert found["agreed"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, ALL, 10))
def test_all_formats_agree_with_kernels(seed: int) -> None:
    """PyTorch exports programs, and TVM compiles modules, which takes seconds."""
    found = judge_seed(seed, available(), onward(seed, available()))
    assert told(found) == ""


@pytest.mark.wide
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(graph=drawn_graphs())
def test_drawn_graphs_agree_with_kernels(graph: TypedGraph) -> None:
    """Hypothesis makes the choices, and shrinks a graph that fails."""
    names = [name for name in QUICK if name in ("relay", "onnx")]
    trail = follow(graph, names, lambda name: ())
    assert trail.findings == []


def test_a_seed_gives_one_graph() -> None:
    first, second = (generate(11).without(frozenset()) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.model.mod.astext() == second.model.mod.astext()
    for name, value in first.feeds.items():
        np.testing.assert_array_equal(second.feeds[name], value)


@pytest.mark.wide
def test_graphs_come_to_have_all_operators() -> None:
    """Those aside whose results are drawn, or are no tensors of numbers."""
    seen: set[str] = set()
    for seed in range(400):
        seen |= {name for item in generate(seed).items for name in operators_of(item.expr)}
    assert len(seen) > 0.7 * len(operators())
    missing = all_ops().keys() - set(operators())
    drawn = {n for n, each in all_ops().items() if each.has(Random, Foreign)}
    assert drawn <= missing
    assert len(missing - drawn) < 12

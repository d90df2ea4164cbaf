"""Random graphs over all operators through formats, each judged by what the format belongs to.

``python benchmarks/differential.py`` takes as many as are wanted, and shows one that fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from support.differential_judges import available
from support.differential_paths import follow, judge_seed, onward
from support.drawn_graphs import drawn_graphs
from support.random_graphs import Item, Rejected
from support.typed_graphs import TypedGraph, TypedMaker, generate, operators, operators_of
from support.varied_samples import require_in_range

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


@pytest.mark.parametrize(
    ("name", "others", "attrs"),
    [
        ("take", [1, -1], {"batch_dims": 1, "axis": 1, "mode": "fast"}),
        ("take", [1, 3], {"batch_dims": 1, "axis": 1, "mode": "fast"}),
        ("one_hot", [0, 4], {"depth": 4, "axis": -1, "dtype": "float32"}),
        ("mod", [3, 0], {}),
        ("floor_divide", [0, 2], {}),
    ],
)
def test_indices_and_divisors_out_of_range_are_not_drawn(
    name: str, others: list[int], attrs: dict[str, Any]
) -> None:
    maker = TypedMaker(3, operators())
    values = maker.constant(np.array(others), "int64")
    operands = {
        "take": [maker.constant(np.arange(6).reshape(2, 3), "float32"), values],
        "one_hot": [values, maker.constant(1, "float32"), maker.constant(0, "float32")],
    }.get(name, [maker.constant([7, 9], "int64"), values])
    good = [*operands]
    good[operands.index(values)] = maker.constant([1, 2], "int64")
    require_in_range(all_ops()[name], good, attrs)
    with pytest.raises(Rejected):
        require_in_range(all_ops()[name], operands, attrs)


def test_what_float32_rounds_to_a_tie_is_not_drawn() -> None:
    """-1.5 / 0.2 is -7.5 in float32, and a little nearer to zero in float64."""
    maker = TypedMaker(3, operators())
    definition = all_ops()["qnn.simulated_quantize"]
    attrs = definition.bind({})

    def quantised(value: float) -> list[Item]:
        data, scale = maker.constant([value], "float32"), maker.constant([0.2], "float32")
        return [data, maker.constant(1, "int32"), scale, maker.constant([7], "int32")]

    maker.require_steady(definition, quantised(-1.6), attrs)
    with pytest.raises(Rejected):
        maker.require_steady(definition, quantised(-1.5), attrs)


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

"""Regions by a cost: what pays goes, whatever is chosen runs as the whole does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.partitions import check_random

import serde.relay as relay
from serde.errors import OptionError
from serde.relay.op.contrib.onnx import partition_for_onnx
from serde.target.costs import Candidate
from serde.target.onnx import build


def branches(count: int) -> relay.IRModule:
    """Parts that nothing connects: products of matrices of different sizes, then the host."""
    inputs, results = [], []
    for index in range(count):
        size = 2 ** (index + 1)
        x = relay.var(f"x{index}", shape=(size, size))
        inputs.append(x)
        results.append(relay.erf(relay.nn.relu(relay.nn.matmul(x, x))))
    return relay.IRModule.from_expr(relay.Function(inputs, relay.Tuple(results)))


def gain(overhead: float) -> Any:
    """A call of the chip costs as much, each product saves its size."""

    def cost(candidate: Candidate) -> float:
        products = [call for call in candidate.calls if call.op.name == "nn.matmul"]
        assert [*candidate.nodes].count("MatMul") == len(products)
        assert len(candidate.inputs) == len(candidate.outputs) == len(products)
        return overhead - sum(call.type.shape[0] for call in products)

    return cost


@pytest.mark.parametrize(
    ("cost", "sizes"),
    [
        (gain(1.0), {2, 4, 8}),
        (gain(13.0), {2, 4, 8}),  # Together they pay, none by itself.
        (gain(14.0), set()),
        (lambda c: sum(4.0 - each.shape[0] for each in c.inputs), {8}),
        (lambda c: -1.0 if len(c.inputs) == 1 else math.inf, {8}),
        (lambda _: math.inf, set()),
    ],
)
def test_what_pays_goes(cost: Any, sizes: set[int]) -> None:
    module = build(partition_for_onnx(branches(3), supported=["MatMul", "Relu"], cost=cost))
    found = {port.type.shape[0] for region in module.imported_modules for port in region.inputs}
    assert len(module.imported_modules) == bool(sizes)
    assert found == sizes
    inputs = [np.full((n, n), 0.25, np.float32) for n in (2, 4, 8)]
    for index, result in enumerate(module.get_function("main")(*inputs)):
        want = np.float32(math.erf(0.0625 * 2 ** (index + 1)))
        np.testing.assert_allclose(result, np.full_like(inputs[index], want), rtol=1e-6)


def test_regions_are_made_anew_without_what_is_lost() -> None:
    """Between two products lies what does not pay; regions that waited for it stay apart."""
    x = relay.var("x", shape=(4, 4))
    body = relay.nn.matmul(relay.erf(relay.nn.relu(relay.erf(relay.nn.matmul(x, x)))), x)
    mod = relay.IRModule.from_expr(body)

    def cost(candidate: Candidate) -> float:
        return 1.0 - 2.0 * candidate.nodes.count("MatMul")

    module = build(partition_for_onnx(mod, supported=["MatMul", "Relu"], cost=cost))
    assert [each.nodes for each in module.imported_modules] == [("MatMul",), ("MatMul",)]


@pytest.mark.parametrize("least", [1, 3, 5])
def test_small_regions_stay_whatever_they_cost(least: int) -> None:
    cost = gain(1.0)
    mod = partition_for_onnx(branches(2), supported=["MatMul", "Relu"], cost=cost, min_nodes=least)
    assert len(mod.functions) == (2 if least < 5 else 1)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda _: math.nan, "cost: expected a number, found nan"),
        (lambda _: None, "cost: TypeError"),
        (lambda _: 1 // 0, "cost: ZeroDivisionError"),
        (3, "cost: TypeError: 'int' object is not callable"),
    ],
)
def test_a_cost_that_is_none_is_one_line(cost: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        partition_for_onnx(branches(1), cost=cost)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.wide) for seed in range(6, 40))]
)
def test_random_graphs_run_whatever_a_cost_chooses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prices: dict[str, float] = {}

    def cost(candidate: Candidate) -> float:
        moved = 0.2 * len({*candidate.inputs, *candidate.outputs})
        return moved + sum(prices.setdefault(op, rng.normal()) for op in candidate.nodes)

    check_random(seed, cost=cost)

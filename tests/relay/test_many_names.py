"""Thousands of names that are equal or begin each other are made unique in linear time."""

from __future__ import annotations

import time

import pytest

import serde
import serde.relay as relay

pytestmark = pytest.mark.wide

COUNT = 8_000


def parameters(names: list[str]) -> relay.IRModule:
    params = [relay.var(name, shape=(1,)) for name in names]
    return relay.IRModule.from_expr(relay.Function(params, relay.Tuple(params)))


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["w"] * COUNT, id="equal"),
        pytest.param(["w"] * 4000 + [f"w{i}" for i in range(1, 4001)], id="numbered"),
        pytest.param(["w" + "_" * i for i in range(2000)], id="longer"),
        pytest.param(["w" + "_1" * i for i in range(2000)], id="nested"),
    ],
)
def test_parameters_of_one_name(names: list[str]) -> None:
    begin = time.process_time()
    model = serde.to_relay(parameters(names))
    assert time.process_time() - begin < 10
    found = [param.name_hint for param in model.main.params]
    assert len(set(found)) == len(names)
    assert found[0] == "w"


@pytest.mark.parametrize("names", [["w"] * 2000, ["w" + "_" * i for i in range(1000)] * 2])
def test_results_of_one_name(names: list[str]) -> None:
    x = relay.var("x", shape=(1,))
    pair = relay.Tuple([x])
    mod = relay.IRModule.from_expr(relay.Function([x], relay.Tuple([pair] * len(names))))
    model = serde.to_relay(mod)
    model = model.evolve(meta=relay.ModelMeta(("x",), tuple(names)))
    begin = time.process_time()
    flat = relay.transform.flatten_results(model)
    assert time.process_time() - begin < 1
    found = flat.meta.outputs
    assert len(set(found)) == len(names)

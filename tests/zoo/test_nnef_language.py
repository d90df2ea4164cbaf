"""Language models of gluonnlp as NNEF: Relay's interpreter and the specification against MXNet.

Recurrent layers are written step by step, attention as products.
"""

from __future__ import annotations

import importlib.util
import types
from pathlib import Path

import numpy as np
import pytest
from support.accuracy import CEILING, FLOOR, LEAST_CHANGE, refer
from support.gluonnlp_nets import RECIPES
from support.nnef_written import write
from support.oracle import PlainMxnet
from support.zoo import zoo_net

import serde
from serde.compat import import_mxnet
from serde.conversion.prepare import PrepareOptions, prepare
from serde.core.report import Report

pytest.importorskip("nnef")

SMALL = ("bert_small", "transformer_small", "elmo_small", "standard_gru_lm_200")


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.wide if name in SMALL else pytest.mark.slow])
        for name in RECIPES
    ],
)
def test_net(mx: types.ModuleType, name: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("gluonnlp") is None:
        pytest.skip("gluonnlp is not installed")
    net, oracle = zoo_net(name), PlainMxnet()
    judged = refer(oracle, mx, net, tmp_path)
    oracle.close()
    bound = min(max(FLOOR, 3 * judged.own), CEILING)
    given = net.inputs(7)
    shapes = {key: np.shape(each) for key, each in given.items()}
    model = serde.to_relay(net.symbol, params={**net.args, **net.aux}, input_shapes=shapes)
    found = write(prepare(model, PrepareOptions(), report=Report()), tmp_path / "net")
    assert judged.change > LEAST_CHANGE
    assert judged.error(found.interpret(given)) <= bound
    assert judged.error(found.evaluate(given)) <= bound

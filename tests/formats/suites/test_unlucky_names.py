"""Names that are empty, or equal once a format spells them: the engines of each format judge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.differential_judges import JUDGES, Judge, evaluate

import serde.relay as relay
from serde.core.optional import is_installed
from serde.core.weights import ArrayWeight
from serde.relay.ir.model import ModelMeta, RelayModel

NAMES = [("", "w"), ("x", ""), ("a_b", "a.b"), ("a.b", "a_b"), ("value", ""), ("x", "@main")]
"""An input, and a weight beside it."""

SLOW_ASIDE = [
    pytest.param(each, id=name, marks=[pytest.mark.wide] if name in ("relax", "torch") else [])
    for name, each in JUDGES.items()
]
"""TVM compiles and PyTorch exports, which takes seconds."""


def named(first: str, second: str) -> RelayModel:
    x, w = relay.var(first, shape=(2, 3)), relay.var(second, shape=(2, 3))
    body = relay.subtract(relay.multiply(x, x), w)
    values = np.linspace(-2, 3, 6, dtype=np.float32).reshape(2, 3)
    meta = ModelMeta(inputs=(first,), outputs=("y",))
    mod = relay.IRModule.from_expr(relay.Function([x, w], body))
    return RelayModel(relay.transform.InferType()(mod), {second: ArrayWeight(values)}, meta)


@pytest.mark.parametrize(("first", "second"), NAMES)
@pytest.mark.parametrize("judge", SLOW_ASIDE)
def test_an_input_and_a_weight(judge: Judge, first: str, second: str, tmp_path: Path) -> None:
    if not is_installed(judge.package):
        pytest.skip(f"{judge.package} is not installed")
    model = named(first, second)
    feed = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)
    (expected,) = evaluate(model, {first: feed})
    path = judge.write(model, tmp_path)
    (found,) = judge.run(path, model, [feed])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    again = judge.read(path, model)
    (variable,) = again.inputs()
    (read,) = evaluate(again, {variable.name_hint: feed})
    np.testing.assert_allclose(read, expected, rtol=1e-6)


@pytest.mark.parametrize("first", ["", "self", "a b"])
@pytest.mark.parametrize("judge", SLOW_ASIDE)
def test_the_order_of_inputs(judge: Judge, first: str, tmp_path: Path) -> None:
    """It is kept where the graph reads the second first, whatever the first is called."""
    if not is_installed(judge.package):
        pytest.skip(f"{judge.package} is not installed")
    one, two = relay.var(first, shape=(2, 3)), relay.var("x", shape=(3,))
    mod = relay.IRModule.from_expr(relay.Function([one, two], relay.add(relay.exp(two), one)))
    meta = ModelMeta(inputs=(first, "x"), outputs=("y",))
    model = RelayModel(relay.transform.InferType()(mod), {}, meta)
    feeds = [np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3), np.arange(3, dtype=np.float32)]
    path = judge.write(model, tmp_path)
    (found,) = judge.run(path, model, feeds)
    np.testing.assert_allclose(found, np.exp(feeds[1]) + feeds[0], rtol=1e-6)
    again = judge.read(path, model)
    assert [each.type.shape for each in again.inputs()] == [(2, 3), (3,)]

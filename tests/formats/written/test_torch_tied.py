"""Weights that several operators share, as PyTorch's modules hold them: once."""

from __future__ import annotations

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call

torch = pytest.importorskip("torch")


def test_rows_of_a_layer_that_come_before_it() -> None:
    """An embedding by an index of its own, and the layer that gives words again."""
    table = np.random.default_rng(1).normal(size=(7, 4)).astype("f4")
    place, w = relay.var("place", shape=(3, 1), dtype="int64"), relay.var("w", shape=(7, 4))
    body = relay.nn.dense(call("serde.gather_nd", w, place), w)
    module = IRModule({"main": relay.Function([place, w], body)})
    model = RelayModel(module, {"w": ArrayWeight(table)}, ModelMeta(("place",), ("y",)))
    written = serde.export_model(model, format="torch")
    places = np.array([[2], [6], [0]])
    with torch.no_grad():
        found = written(torch.from_numpy(places)).numpy()
    np.testing.assert_allclose(found, table[places[:, 0]] @ table.T, rtol=1e-6, atol=1e-6)
    assert [tuple(each.shape) for each in written.parameters()] == [(7, 4)]

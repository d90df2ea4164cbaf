"""What a symbol says of training is a fact of the model."""

from __future__ import annotations

import json
from typing import Any

import pytest

import serde
from serde.compat import import_mxnet
from serde.relay.ir.model import TRAINING_HEADS, TRAINING_NODES

mx = import_mxnet()

UNUSUAL = {
    "BatchNorm": ({"momentum": 0.7, "use_global_stats": True}, {}),
    "Dropout": ({"axes": [0]}, {"p": 0.3}),
}
"""Operators with what is unusual of them, and with what is no fact."""


def facts(symbol: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts of a symbol's nodes and outputs."""
    shapes, _, states = symbol.infer_shape(data=(2, 3, 4, 4))
    names = zip(symbol.list_arguments(), shapes, strict=True)
    params = {name: mx.nd.ones(shape) for name, shape in names if name not in ("data", "label")}
    params |= {
        name: mx.nd.ones(shape)
        for name, shape in zip(symbol.list_auxiliary_states(), states, strict=True)
    }
    model = serde.to_relay(symbol, params=params, input_shapes={"data": (2, 3, 4, 4)})
    extra = model.meta.extra
    return json.loads(extra.get(TRAINING_NODES, "{}")), json.loads(extra.get(TRAINING_HEADS, "{}"))


@pytest.mark.parametrize("op", UNUSUAL)
def test_what_is_unusual_is_noted(op: str) -> None:
    unusual, usual = UNUSUAL[op]
    node = getattr(mx.sym, op)(mx.sym.var("data"), name="layer", **unusual, **usual)
    assert facts(node) == ({"layer": unusual}, {})


@pytest.mark.parametrize("op", UNUSUAL)
def test_what_is_usual_is_not(op: str) -> None:
    node = getattr(mx.sym, op)(mx.sym.var("data"), name="layer")
    assert facts(node) == ({}, {})


def test_losses_are_noted_by_output() -> None:
    dense = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
    head = mx.sym.SoftmaxOutput(dense, label=mx.sym.var("label"), name="softmax")
    assert facts(mx.sym.Group([head, dense])) == ({}, {"softmax_output": "SoftmaxOutput"})

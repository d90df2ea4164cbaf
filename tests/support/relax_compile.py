"""A small net that is compiled, and a compiler that crashes."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType

__all__ = ["BIAS", "WEIGHT", "answer_and_crash", "dense_model", "expected"]

_RNG = np.random.default_rng(3)
WEIGHT = _RNG.normal(size=(5, 8)).astype(np.float32)
BIAS = _RNG.normal(size=(5,)).astype(np.float32)


def dense_model(scale: float = 1.0) -> RelayModel:
    """Return a dense layer and a rectifier, for any number of rows; a second result is the sum."""
    data = relay.var("data", TensorType((symbol("N"), 8), "float32"))
    weight, bias = relay.var("fc/weight", shape=(5, 8)), relay.var("fc/bias", shape=(5,))
    layer = relay.nn.bias_add(relay.nn.dense(data, weight), bias)
    body = relay.Tuple([relay.nn.relu(layer), layer])
    module = IRModule({"main": Function([data, weight, bias], body)})
    weights = {"fc/weight": ArrayWeight(WEIGHT * np.float32(scale)), "fc/bias": ArrayWeight(BIAS)}
    return RelayModel(module, weights, ModelMeta(inputs=("data",), outputs=("prob:0", "fc")))


def expected(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the net gives, in float64."""
    layer = x.astype(np.float64) @ WEIGHT.astype(np.float64).T + BIAS
    return np.maximum(layer, 0), layer


def answer_and_crash(request: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> None:
    """End the process that was to compile, as a fault of TVM's does."""
    os.kill(os.getpid(), signal.SIGSEGV)

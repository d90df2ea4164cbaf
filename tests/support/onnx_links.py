"""Models that refer to weights in files of others, and what ONNX makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.core.weights import Array, ArrayWeight

__all__ = ["RNG", "WEIGHTS", "change", "dense_net", "link", "places", "run", "write"]

RNG = np.random.default_rng(3)
WEIGHTS = {
    "first": RNG.normal(size=(40, 24)).astype(np.float32),
    "second": RNG.normal(size=(24, 40)).astype(np.float32),
    "bias": RNG.normal(size=(40,)).astype(np.float32),
}


def dense_net() -> relay.RelayModel:
    """Two dense layers; the weight of each is what ONNX's Gemm takes."""
    x = relay.var("x", shape=(2, 24))
    weights = {name: relay.var(name, shape=value.shape) for name, value in WEIGHTS.items()}
    hidden = relay.nn.bias_add(relay.nn.dense(x, weights["first"]), weights["bias"])
    body = relay.nn.dense(relay.tanh(hidden), weights["second"])
    mod = relay.IRModule.from_expr(relay.Function([x, *weights.values()], body))
    params = {name: ArrayWeight(value) for name, value in WEIGHTS.items()}
    meta = relay.ModelMeta(inputs=("x",), outputs=("y",))
    return relay.RelayModel(relay.transform.InferType()(mod), params, meta)


def write(path: Path, format: str, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return serde.from_relay(dense_net(), format=format, path=path, **options)


def run(path: Path, inputs: dict[str, Array]) -> list[Array]:
    """What ONNX Runtime computes without its optimisations, after ONNX's own checks."""
    onnx.checker.check_model(path, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def places(path: Path) -> dict[str, tuple[str, int, int]]:
    """Where the external tensors of a model lie: file, offset and length."""
    found = {}
    for each in onnx.load(path, load_external_data=False).graph.initializer:
        entries = {entry.key: entry.value for entry in each.external_data}
        if entries:
            found[each.name] = (entries["location"], int(entries["offset"]), int(entries["length"]))
    return found


def link(source: Path, target: Path, **options: Any) -> Report:
    report = Report()
    return serde.convert(source, target, link_weights=True, report=report, **options)


def change(path: Path, at: int) -> None:
    """Change one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)

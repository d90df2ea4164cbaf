"""Quantised operators of MXNet: their inputs, and layers fused for oneDNN as it quantises them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
from support.mxnet_check import same
from support.oracle import run_mxnet
from support.runtime import newest_runtime_opset, run_onnx

import serde
from serde.compat import import_mxnet
from serde.relay.run.interpreter import run

CALIBRATED = {"min_calib_range": -3.0, "max_calib_range": 4.1}
BYTES = ["int8", "uint8"]


def levels(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    limits = np.iinfo(dtype)
    drawn = np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape)
    return drawn.astype(dtype)


def reals(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-4, 4, shape).astype(np.float32)


def end(value: float) -> np.ndarray:
    return np.array([value], np.float32)


def fused(symbol: Any) -> Any:
    """The graph with what MXNet computes in one step when it quantises."""
    return symbol.get_backend_symbol("MKLDNN_QUANTIZE")


def quantized(symbol: Any, ranges: list[str], outputs: int = 3, **attrs: Any) -> Any:
    """The graph of one fused node with that node quantised.

    Args:
        symbol: The graph.
        ranges: Names of the further inputs.
        outputs: How many results the node has.
        attrs: Its further attributes.
    """
    graph = json.loads(symbol.tojson())
    nodes = graph["nodes"]
    (place,) = (i for i, node in enumerate(nodes) if node["op"].startswith("_sg_"))
    node = nodes[place]
    node["inputs"] += [[place + i, 0, 0] for i in range(len(ranges))]
    node["attrs"] = {
        **node.get("attrs", {}),
        "quantized": "True",
        **{name: str(value) for name, value in attrs.items()},
    }
    nodes[place:place] = [{"op": "null", "name": name, "inputs": []} for name in ranges]
    graph["arg_nodes"] = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    graph["heads"] = [[len(nodes) - 1, i, 0] for i in range(outputs)]
    del graph["node_row_ptr"]
    return import_mxnet().sym.load_json(json.dumps(graph))


def with_parameters(
    symbol: Any,
    params: dict[str, Any],
    inputs: dict[str, np.ndarray],
    tolerance: float | None = None,
    runs: int = 1,
) -> None:
    """Compare a graph with weights, those of auxiliary states among them.

    Args:
        symbol: The graph.
        params: Values of its weights.
        inputs: Values of its inputs.
        tolerance: Relative and absolute; by the dtype if left out.
        runs: How often MXNet is asked; what it says most often counts.
    """
    answers = [run_mxnet(symbol, params, inputs) for _ in range(runs)]
    votes = Counter(b"".join(array.tobytes() for array in answer) for answer in answers)
    expected = next(
        answer
        for answer in answers
        if b"".join(array.tobytes() for array in answer) == votes.most_common(1)[0][0]
    )
    model = serde.to_relay(
        symbol,
        params,
        input_shapes={name: value.shape for name, value in inputs.items()},
        input_dtypes={name: value.dtype.name for name, value in inputs.items()},
    )
    assert list(model.meta.outputs) == symbol.list_outputs()
    values = {**inputs, **{name: value.asnumpy() for name, value in params.items()}}
    result = run(model.main, [values[p.name_hint] for p in model.main.params], mod=model.mod)
    same(result if isinstance(result, tuple) else (result,), expected, tolerance)
    proto = serde.from_relay(model, format="onnx", opset=newest_runtime_opset())
    given = {name: inputs[name] for name in model.meta.inputs}
    same(run_onnx(proto.SerializeToString(), given)[1], expected, tolerance)

"""Draws of MXNet's random operators, judged by shape, dtype and distribution.

ONNX Runtime 1.32 has none of the random operators of version 22, so models go to version 21.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
from support.mxnet_check import run_under
from support.runtime import run_onnx

import serde
from serde.compat import import_mxnet
from serde.relay.run.interpreter import run

OPSET = 21
COUNT = 40_000
DTYPES = ("float16", "float32", "float64")
Values = Mapping[str, np.ndarray]


def graph(op: str, names: Sequence[str] = (), heads: int = 1, **attrs: Any) -> Any:
    """A symbol of one node, whatever MXNet's own Python functions make of its attributes."""
    nodes: list[dict[str, Any]] = [{"op": "null", "name": name, "inputs": []} for name in names]
    inputs = [[place, 0, 0] for place in range(len(names))]
    texts = {name: str(value) for name, value in attrs.items()}
    nodes.append({"op": op, "name": "node", "attrs": texts, "inputs": inputs})
    found = {
        "nodes": nodes,
        "arg_nodes": list(range(len(names))),
        "heads": [[len(names), head, 0] for head in range(heads)],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    return import_mxnet().sym.load_json(json.dumps(found))


def engines(symbol: Any, feeds: Values, *, numpy: bool = True) -> list[list[np.ndarray]]:
    """The outputs of MXNet, of the interpreter and of ONNX Runtime."""
    shapes = {name: value.shape for name, value in feeds.items()}
    dtypes = {name: value.dtype.name for name, value in feeds.items()}
    model = serde.to_relay(symbol, input_shapes=shapes, input_dtypes=dtypes)
    given = {name: feeds[name] for name in model.meta.inputs}
    result = run(model.main, list(given.values()), mod=model.mod)
    proto = serde.from_relay(model, format="onnx", opset=OPSET)
    return [
        run_under(symbol, feeds, numpy=numpy),
        list(result) if isinstance(result, tuple) else [result],
        run_onnx(proto.SerializeToString(), given)[1],
    ]


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    """The greatest difference of two empirical distribution functions (Kolmogorov, Smirnov)."""
    found, expected = np.sort(found.ravel()), np.sort(expected.ravel())
    places = np.concatenate([found, expected])
    sides = [np.searchsorted(each, places, side="right") / each.size for each in (found, expected)]
    return float(np.abs(sides[0] - sides[1]).max())


def alike(symbol: Any, feeds: Values | None = None, *, numpy: bool = True, each: int = 0) -> None:
    """Compare shapes, dtypes and the distributions of draws.

    Args:
        symbol: The graph.
        feeds: Values of its variables.
        numpy: Whether MXNet runs it with NumPy's shapes.
        each: How many of the last axes hold parameters, each with a distribution of its own.
    """
    import_mxnet().random.seed(11)
    onnxruntime.set_seed(11)
    theirs, *ours = engines(symbol, feeds or {}, numpy=numpy)
    for engine, outputs in zip(("interpreter", "ONNX Runtime"), ours, strict=True):
        assert len(outputs) == len(theirs)
        for found, expected in zip(outputs, theirs, strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            assert np.isfinite(found.astype(np.float64)).all()
            lead = expected.ndim - each
            rows = [x.reshape(int(np.prod(x.shape[:lead])), -1).T for x in (found, expected)]
            for one, other in zip(*rows, strict=True):
                # Two draws of equal distribution exceed this once in 100,000 times.
                apart = distance(one, other)
                assert apart < 2.5 * np.sqrt(2 / max(one.size, 1)), engine

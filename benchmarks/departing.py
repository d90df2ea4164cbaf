"""How surely, and in how many runs, the node is found at which a runtime errs.

Nets of MXNet's zoo become ONNX; in what ONNX Runtime is given, one node drawn by a seed computes
something else, as a wrong kernel would, and is looked for by what the file says::

    python benchmarks/departing.py [NET...] [--faults 4] [--seed 0]

It prints a line a fault, and how many were found at their node.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from calibrate import calibrate  # noqa: E402

import serde  # noqa: E402
from serde.bridge.formats import get_bridge  # noqa: E402
from serde.checking.departing import find_departure  # noqa: E402
from serde.compat import import_mxnet  # noqa: E402
from serde.core import Report  # noqa: E402

NETS = (
    "alexnet", "densenet121", "mobilenet0_25", "mobilenet1_0", "mobilenet_v2_0_5", "resnet18_v1",
    "resnet18_v2", "resnet34_v1", "squeezenet1_0", "squeezenet1_1",
)  # fmt: skip
WRONG = {
    "Add": "Sub", "Clip": "Relu", "GlobalAveragePool": "GlobalMaxPool", "Mul": "Div",
    "Relu": "Abs", "Sigmoid": "Tanh",
}  # fmt: skip
SHAPE = (1, 3, 224, 224)


def converted(name: str, folder: Path) -> Path:
    """Return a net with calibrated weights as ONNX."""
    import_mxnet()
    from mxnet.gluon.model_zoo import vision

    symbol, arguments, states = calibrate(getattr(vision, name)(), {"data": SHAPE}, batch=1)
    params = {f"arg:{key}": value for key, value in arguments.items()}
    params |= {f"aux:{key}": value for key, value in states.items()}
    path = folder / f"{name}.onnx"
    serde.export_model(symbol, params, format="onnx", input_shapes={"data": SHAPE}, path=path)
    return path


def with_fault(native: Any, index: int) -> Any:
    """Return a model of which one node computes something else."""
    proto = type(native.proto)()
    proto.CopyFrom(native.proto)
    node = proto.graph.node[index]
    if node.op_type == "Clip":
        del node.input[1:]
    node.op_type = WRONG[node.op_type]
    return replace(native, proto=proto)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nets", nargs="*", default=NETS)
    parser.add_argument("--faults", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    drawn, bridge = random.Random(given.seed), get_bridge("onnx")
    data = {"data": np.random.default_rng(given.seed).standard_normal(SHAPE).astype(np.float32)}
    found = total = 0
    for name in given.nets:
        with tempfile.TemporaryDirectory() as folder:
            native = bridge.load(converted(name, Path(folder)), None, bridge.bind_import({}))
            model = bridge.to_relay(native, bridge.bind_import({}), report=Report())
            nodes = [i for i, each in enumerate(native.proto.graph.node) if each.op_type in WRONG]
            print(f"{name}: {find_departure(bridge, native, model, data).sentence}")
            for index in drawn.sample(nodes, min(given.faults, len(nodes))):
                node = native.proto.graph.node[index]
                begun = time.perf_counter()
                told = find_departure(bridge, with_fault(native, index), model, data)
                names = () if told.first is None else (told.first.name, told.first.target)
                right = node.output[0] in names or node.name in names
                found, total = found + right, total + 1
                seconds = time.perf_counter() - begun
                what = "found" if right else f"WRONG: {told.sentence}"
                print(f"  {node.op_type} {node.name}: {what}, {told.runs} runs, {seconds:.1f} s")
    print(f"{found} of {total} found")


if __name__ == "__main__":
    main()

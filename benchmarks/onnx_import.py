"""Measures how long and in how much memory ONNX models become Relay.

    python benchmarks/onnx_import.py [resnet bert ...]

The models have the sizes and nodes of ResNet-50 (100 MB) and BERT base (440 MB). Each time is the
median of five rounds in one process that reads from the page cache; memory is the peak of a new
process, above what it had with the same modules imported. "all weights" also reads the bytes of
every weight, piece by piece, as a conversion does. The aim is one and a half times the time of
``onnx.load``, and no more memory than a bounded part of the model.
"""

from __future__ import annotations

import gc
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import serde  # noqa: E402

ROUNDS = 5
MB = 1e6


class Graph:
    """A graph that grows node by node."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(1)

    def emit(self, op: str, *inputs: str, **attributes: object) -> str:
        """Add a node and return its output."""
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def weight(self, *shape: int) -> str:
        """Add random values and return their name."""
        name = f"w{len(self.weights)}"
        value = self._rng.standard_normal(shape, np.float32) * 0.05
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def constant(self, value: object, dtype: object = np.float32) -> str:
        """Add a small tensor and return its name."""
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def save(self, path: Path, shape: list[object], output: str) -> None:
        """Write the model with one input, ``x``."""
        declared = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
        result = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "g", declared, result, self.weights)
        opsets = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def resnet(path: Path) -> None:
    """Write ResNet-50: bottlenecks of 1x1, 3x3 and 1x1 convolutions, each normalised."""
    g = Graph()

    def conv(x: str, before: int, after: int, kernel: int, stride: int = 1) -> str:
        pads = [kernel // 2] * 4
        x = g.emit("Conv", x, g.weight(after, before, kernel, kernel), pads=pads,
                   kernel_shape=[kernel] * 2, strides=[stride] * 2)  # fmt: skip
        return g.emit("BatchNormalization", x, *(g.weight(after) for _ in range(4)))

    x = g.emit("Relu", conv("x", 3, 64, 7, 2))
    x = g.emit("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        width = 64 * 2**stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            y = g.emit("Relu", conv(x, channels, width, 1))
            y = conv(g.emit("Relu", conv(y, width, width, 3, stride)), width, 4 * width, 1)
            around = x if block else conv(x, channels, 4 * width, 1, stride)
            x, channels = g.emit("Relu", g.emit("Add", y, around)), 4 * width
    x = g.emit("Flatten", g.emit("GlobalAveragePool", x))
    x = g.emit("Gemm", x, g.weight(1000, channels), g.weight(1000), transB=1)
    g.save(path, ["N", 3, 224, 224], x)


def bert(path: Path) -> None:
    """Write the twelve layers of BERT base, with layer norms and gelu spelled out."""
    g, width, heads = Graph(), 768, 12

    def norm(x: str) -> str:
        centred = g.emit("Sub", x, g.emit("ReduceMean", x, axes=[-1]))
        square = g.emit("ReduceMean", g.emit("Mul", centred, centred), axes=[-1])
        scale = g.emit("Sqrt", g.emit("Add", square, g.constant(1e-12)))
        x = g.emit("Mul", g.emit("Div", centred, scale), g.weight(width))
        return g.emit("Add", x, g.weight(width))

    def dense(x: str, before: int, after: int) -> str:
        return g.emit("Add", g.emit("MatMul", x, g.weight(before, after)), g.weight(after))

    def split(x: str, order: list[int]) -> str:
        shape = g.constant([0, 0, heads, width // heads], np.int64)
        return g.emit("Transpose", g.emit("Reshape", x, shape), perm=order)

    x = norm(g.emit("Add", "x", g.weight(1, 128, width)))
    for _ in range(12):
        q = split(dense(x, width, width), [0, 2, 1, 3])
        k = split(dense(x, width, width), [0, 2, 3, 1])
        v = split(dense(x, width, width), [0, 2, 1, 3])
        scores = g.emit("Softmax", g.emit("Div", g.emit("MatMul", q, k), g.constant(8.0)))
        y = g.emit("Transpose", g.emit("MatMul", scores, v), perm=[0, 2, 1, 3])
        y = g.emit("Reshape", y, g.constant([0, 0, width], np.int64))
        x = norm(g.emit("Add", x, dense(y, width, width)))
        y = dense(x, width, 4 * width)
        gate = g.emit("Add", g.emit("Erf", g.emit("Div", y, g.constant(2**0.5))), g.constant(1.0))
        y = g.emit("Mul", g.emit("Mul", y, gate), g.constant(0.5))
        x = norm(g.emit("Add", x, dense(y, 4 * width, width)))
    x = g.emit("MatMul", x, g.weight(width, 30522))
    g.save(path, ["N", 128, width], x)


NETS: dict[str, Callable[[Path], None]] = {"resnet": resnet, "bert": bert}


def read_weights(path: Path) -> None:
    """Import, and read every weight piece by piece."""
    for weight in serde.to_relay(path).params.values():
        for _ in weight.chunks():
            pass


ACTIONS: dict[str, Callable[[Path], object]] = {
    "onnx.load": onnx.load,
    "to_relay": serde.to_relay,
    "to_relay, all weights": read_weights,
    "convert": lambda path: serde.convert(path, path.with_name("again.onnx"), opset=13),
}


def high_water() -> float:
    """The greatest resident size of this process so far, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise SystemExit("this system does not tell the peak memory of a process")
    return int(found.group(1)) * 1024


def print_peak(action: str, path: Path) -> None:
    """Do it with a tiny model, which imports all modules, then with the model."""
    tiny = path.with_name("tiny.onnx")
    ACTIONS[action](tiny)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from what is in use
    before = high_water()
    ACTIONS[action](path)
    print(high_water() - before)


def peak(action: str, path: Path) -> float:
    """Bytes that a new process needs for an action beyond its modules."""
    command = [sys.executable, __file__, "--peak", action, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def seconds(action: Callable[[Path], object], path: Path) -> float:
    """Time of one run, without that of releasing its result."""
    gc.collect()
    start = time.perf_counter()
    result = action(path)
    taken = time.perf_counter() - start
    del result
    return taken


def measure(name: str, directory: Path) -> None:
    """Build one model and print a row an action."""
    path = directory / f"{name}.onnx"
    NETS[name](path)
    nodes = len(onnx.load(path).graph.node)
    times: dict[str, list[float]] = {action: [] for action in ACTIONS}
    for _ in range(ROUNDS):
        for action, run in ACTIONS.items():
            times[action].append(seconds(run, path))
    load = statistics.median(times["onnx.load"])
    for action, taken in times.items():
        middle = statistics.median(taken)
        print(
            f"| {name}, {nodes} nodes | {path.stat().st_size / MB:.0f} MB | {action} | "
            f"{middle:.2f} s | {middle / load:.2f} | {peak(action, path) / MB:.0f} MB |",
            flush=True,
        )
    path.unlink()


def main(names: list[str]) -> None:
    """Measure the models named, or all."""
    with tempfile.TemporaryDirectory() as folder:
        tiny = Graph()
        tiny.save(Path(folder) / "tiny.onnx", ["N", 4], tiny.emit("Add", "x", tiny.weight(4)))
        print("| model | size | action | time | by onnx.load | peak |")
        print("|---|---|---|---|---|---|")
        for name in names or list(NETS):
            measure(name, Path(folder))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        print_peak(sys.argv[2], Path(sys.argv[3]))
    else:
        main(sys.argv[1:])

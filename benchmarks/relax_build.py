"""Measures how long and in how much memory ONNX models become modules of Relax.

    python benchmarks/relax_build.py [resnet bert ...]

The models have the sizes and nodes of ResNet-50 (100 MB) and BERT base (440 MB). "TVM" is
``onnx.load`` and TVM's own importer, with weights as parameters; "serde" is ``serde.export_model``,
which gives the same: a module with the weights beside it. "frozen" has them as constants in the
module, as TVM's importer does by default. Times are of the processor, so that what else runs does
not count: medians of alternating rounds, each in a new process that has converted a tiny net of the
same operators before, reading from the page cache. Memory is the peak above what the process had
then. A module that holds every weight once needs the size of the file.
The exit code is 0 where serde needs neither more time nor more memory than TVM.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from benchmarks.coreml import measured  # noqa: E402
from benchmarks.onnx_import import NETS, Graph  # noqa: E402

ROUNDS = 5
MB = 1e6


def by_tvm(path: Path) -> Any:
    """TVM's importer, with the weights as parameters."""
    return _read_by_tvm(path, keep=True)


def by_tvm_frozen(path: Path) -> Any:
    """TVM's importer, with the weights as constants."""
    return _read_by_tvm(path, keep=False)


def _read_by_tvm(path: Path, *, keep: bool) -> Any:
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    shapes = {"x": [1, *(each.dim_value for each in _dims(path)[1:])]}
    return from_onnx(onnx.load(path), shape_dict=shapes, keep_params_in_input=keep)


def by_serde(path: Path, **options: Any) -> Any:
    """serde, with the weights as parameters."""
    import serde

    shapes = {"x": (1, *(each.dim_value for each in _dims(path)[1:]))}
    return serde.export_model(path, format="relax", input_shapes=shapes, **options)


def by_serde_frozen(path: Path) -> Any:
    """serde, with the weights as constants."""
    return by_serde(path, freeze_vars=True)


def _dims(path: Path) -> Any:
    """Return the dimensions of a model's input, which a file beside it repeats."""
    import onnx

    graph = onnx.ModelProto.FromString(path.with_suffix(".head").read_bytes()).graph
    return graph.input[0].type.tensor_type.shape.dim


WAYS: dict[str, Callable[[Path], Any]] = {
    "TVM": by_tvm,
    "serde": by_serde,
    "TVM, frozen": by_tvm_frozen,
    "serde, frozen": by_serde_frozen,
}


def tiny(path: Path) -> None:
    """Write a net of all operators that the others have, which loads what converts them."""
    g = Graph()
    x = g.emit("Conv", "x", g.weight(4, 3, 1, 1))
    x = g.emit("Relu", g.emit("BatchNormalization", x, *(g.weight(4) for _ in range(4))))
    x = g.emit("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    y = g.emit(
        "Reshape", g.emit("Transpose", x, perm=[0, 2, 3, 1]), g.constant([1, 9, 4], np.int64)
    )
    y = g.emit("Sub", y, g.emit("ReduceMean", y, axes=[-1]))
    y = g.emit("Sqrt", g.emit("Add", g.emit("Mul", y, y), g.constant(1.0)))
    y = g.emit("Softmax", g.emit("Erf", g.emit("Div", y, g.constant(2.0))))
    y = g.emit("Reshape", g.emit("MatMul", y, g.weight(4, 4)), g.constant([1, 36], np.int64))
    x = g.emit("Flatten", g.emit("GlobalAveragePool", x))
    x = g.emit("Gemm", x, g.weight(36, 4), g.weight(36), transB=1)
    g.save(path, ["N", 3, 6, 6], g.emit("Add", x, y))


def write(name: str, path: Path) -> int:
    """Write a model, and beside it one of its input alone; return how many nodes it has."""
    import onnx

    {**NETS, "tiny": tiny}[name](path)
    model = onnx.load(path)
    nodes = len(model.graph.node)
    del model.graph.node[:], model.graph.initializer[:]
    path.with_suffix(".head").write_bytes(model.SerializeToString())
    return nodes


def run(way: str, tiny: Path, source: Path) -> dict[str, Any]:
    """Seconds, bytes and bindings of a conversion, after that of a tiny net."""
    warnings.simplefilter("ignore")
    convert = WAYS[way]
    convert(tiny)
    held: list[Any] = []
    start = time.process_time()
    _, size = measured(lambda: held.append(convert(source)))
    seconds = time.process_time() - start
    return {"seconds": seconds, "size": size, "calls": _calls(held[0])}


def _calls(module: Any) -> dict[str, int]:
    """How often ``main`` calls each operator."""
    from tvm import relax

    found: Counter[str] = Counter()

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call):
            found[getattr(expr.op, "name", "") or "function"] += 1

    relax.analysis.post_order_visit(module["main"], visit)
    return dict(found)


def in_process(way: str, *paths: Path) -> dict[str, Any]:
    """The figures of a conversion, from a new process."""
    command = [sys.executable, __file__, "--run", way, *map(os.fspath, paths)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def measure(name: str, directory: Path) -> bool:
    """Print the rows of a model; return whether serde needs no more than TVM."""
    tiny, source = directory / "tiny.onnx", directory / f"{name}.onnx"
    nodes = write(name, source)
    size = source.stat().st_size
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, rows in found.items():
            rows.append(in_process(way, tiny, source))
    times, peaks = {}, {}
    for way, rows in found.items():
        times[way] = statistics.median(each["seconds"] for each in rows)
        peaks[way] = statistics.median(each["size"] for each in rows)
        calls = sum(rows[0]["calls"].values())
        print(
            f"| {name}, {nodes} nodes, {size / MB:.0f} MB | {way} | {times[way]:.2f} s "
            f"| {1e6 * times[way] / nodes:.0f} us | {peaks[way] / MB:.0f} MB "
            f"| {peaks[way] / size:.2f} | {calls} |",
            flush=True,
        )
    source.unlink()
    return all(
        column[ours] <= column[ours.replace("serde", "TVM")]
        for column in (times, peaks)
        for ours in ("serde", "serde, frozen")
    )


def main(names: list[str]) -> int:
    """Measure the models named, or all."""
    if find_spec("tvm") is None:
        print("TVM is not installed for this Python: nothing to compare with")
        return 0
    print("| model | way | time | a node | peak | by the file | calls |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        write("tiny", Path(directory) / "tiny.onnx")
        found = [measure(name, Path(directory)) for name in names or list(NETS)]
    return 0 if all(found) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        print("\n" + json.dumps(run(sys.argv[2], *map(Path, sys.argv[3:]))))
        sys.exit(0)
    sys.exit(main(sys.argv[1:]))
